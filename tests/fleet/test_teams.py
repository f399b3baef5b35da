"""``teams cost``: shares that add up to the cent, use as AWS's report writes it, and no unknown that reads as zero."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk.catalog.prices import parse_prices
from hyperpod_cdk.config import LoadedEnvironment, load_environment
from hyperpod_cdk.config.recorded_plans import RecordedPlan, RecordedPlans
from hyperpod_cdk.fleet.model import Pool, TeamsCost
from hyperpod_cdk.fleet.teams import UsageError, read_usage, teams_cost
from tests.support.answers import answered

TODAY = date(2026, 11, 20)
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
PRICES = parse_prices(
    json.dumps(
        {
            "format": 1,
            "as_of": "2026-11-01",
            "sources": {"x": "a price list"},
            "prices": [
                {
                    "region": "us-east-1",
                    "sku": f"node.{name}",
                    "usd": usd,
                    "unit": "instance-hour",
                    "as_of": "2026-11-01",
                    "source": "x",
                }
                for name, usd in (("ml.m5.2xlarge", "0.461"), ("ml.g5.8xlarge", "3.06"))
            ],
        }
    ),
    where="prices.json",
)
FILE = """\
name: dev
account: "111122223333"
region: us-east-1
network:
  availability_zones: {{use1-az5: {{}}, use1-az4: {{}}}}
eks: {{kubernetes_version: "1.35", endpoint_access: private}}
hyperpod:
  instance_groups:
    - {{name: system, instance_type: ml.m5.2xlarge, count: 2, availability_zone_id: use1-az4}}
    - name: h100
      instance_type: ml.p5.48xlarge
      count: {h100}
      availability_zone_id: use1-az5
      capacity: training_plan
      training_plan_arn: {arn}
    - {{name: a10g, instance_type: ml.g5.8xlarge, count: 4, availability_zone_id: use1-az5, capacity: {a10g}}}
task_governance:
  teams:
    - {{name: research, quota: [{{instance_type: ml.p5.48xlarge, count: {research}}}]}}
    - name: product
      quota:
        - {{instance_type: ml.p5.48xlarge, accelerators: {accelerators}}}
        - {{instance_type: ml.g5.8xlarge, count: 3}}
"""
Make = Callable[..., LoadedEnvironment]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("teams")
    (found / "environments").mkdir()
    return found


def written(
    folder: Path,
    *,
    h100: int = 4,
    research: int = 2,
    accelerators: int = 8,
    a10g: str = "on_demand",
    fee: str = "",
    seats: int | None = None,
    currency: str = "USD",
) -> LoadedEnvironment:
    path = folder / "environments" / "dev.yaml"
    path.write_text(
        FILE.format(h100=h100, arn=ARN, research=research, accelerators=accelerators, a10g=a10g), encoding="utf-8"
    )
    record = path.with_name("dev.plans.json")
    record.unlink(missing_ok=True)
    if fee:
        plan = RecordedPlan(
            arn=ARN,
            name="h100-april",
            status="Active",
            target_resources=("hyperpod-cluster",),
            instance_count=seats or h100,
            blocks=(),
            upfront_fee=fee,
            currency=currency,
        )
        plans = RecordedPlans(
            schema_version=1, recorded=TODAY, account="111122223333", region="us-east-1", plans=(plan,)
        )
        record.write_text(plans.text(), encoding="utf-8")
    return load_environment(path, today=TODAY)


def pool(found: TeamsCost, instance_type: str) -> Pool:
    return next(each for each in found.pools if each.instance_type == instance_type)


def by_quota(found: Pool) -> dict[str, float | None]:
    return {each.team: each.by_quota for each in found.shares}


def test_shares_add_up_to_the_plans_fee(folder: Path) -> None:
    found = teams_cost(written(folder, fee="100000.01"), PRICES)
    p5 = pool(found, "ml.p5.48xlarge")
    assert (p5.cost, p5.capacity, p5.nodes) == (100000.01, "training plan h100-april", 4)
    # 8 of 32 GPUs are one of four nodes; what rounding leaves goes to the largest share
    assert by_quota(p5) == {"research": 50000.01, "product": 25000.0, "": 25000.0}
    assert [each.nodes for each in p5.shares] == [2, 1, None]
    g5 = pool(found, "ml.g5.8xlarge")
    assert (g5.cost, g5.period) == (8935.2, "a month of 730 hours")
    assert by_quota(g5) == {"product": 6701.4, "": 2233.8}
    assert by_quota(pool(found, "ml.m5.2xlarge")) == {"": 673.06}


def test_seats_that_no_group_takes_are_nobodys(folder: Path) -> None:
    found = pool(teams_cost(written(folder, fee="80000", seats=8), PRICES), "ml.p5.48xlarge")
    assert by_quota(found) == {"research": 20000.0, "product": 10000.0, "": 50000.0}


@pytest.mark.parametrize(
    ("more", "instance_type", "why"),
    [
        (
            {},
            "ml.p5.48xlarge",
            "no record states the fee of h100-april in US dollars; run 'hyperpod-cdk plans record dev'",
        ),
        (
            {"fee": "5", "currency": "CNY"},
            "ml.p5.48xlarge",
            "no record states the fee of h100-april in US dollars; run 'hyperpod-cdk plans record dev'",
        ),
        ({"a10g": "spot"}, "ml.g5.8xlarge", "the Spot price of ml.g5.8xlarge changes all the time"),
    ],
)
def test_an_unknown_price_is_no_zero(
    folder: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], instance_type: str, why: str
) -> None:
    monkeypatch.chdir(folder)
    found = teams_cost(written(folder, **more), PRICES)  # type: ignore[arg-type]  # texts only
    unknown = pool(found, instance_type)
    assert (unknown.cost, unknown.why, found.passed) == (None, why, None)
    assert {each.by_quota for each in unknown.shares} == {None}
    assert "of unknown cost" in found.verdict
    assert why in [each.reason for each in found.skipped]


SCALED = """\
name: dev
account: "111122223333"
region: us-east-1
network: {availability_zones: {use1-az5: {}, use1-az4: {}}}
eks: {endpoint_access: private}
hyperpod:
  autoscaling: karpenter
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 2, availability_zone_id: use1-az4}
    - {name: a10g, instance_type: ml.g5.8xlarge, count: 0, availability_zone_id: use1-az5, capacity: on_demand}
task_governance:
  teams: [{name: research, quota: [{instance_type: ml.g5.8xlarge, count: 2}]}]
"""


def test_nodes_that_karpenter_makes_are_not_none() -> None:
    found = teams_cost(load_environment(Path("dev.yaml"), text=SCALED, today=TODAY), PRICES)
    scaled = pool(found, "ml.g5.8xlarge")
    assert (scaled.cost, scaled.why, by_quota(scaled)) == (
        None,
        "Karpenter sets how many nodes a10g has",
        {"research": None, "": None},
    )
    assert found.verdict == "$673.06 of nodes among 1 team, and 1 pool of unknown cost."


def test_a_type_without_a_price_is_unknown(folder: Path) -> None:
    none = replace(PRICES, rows={})
    found = teams_cost(written(folder), none)
    assert {each.cost for each in found.pools} == {None}
    # nothing that is known is no zero
    assert found.verdict == "An unknown amount of nodes among 2 teams."
    assert pool(found, "ml.m5.2xlarge").why == (
        "no price for ml.m5.2xlarge in us-east-1 in the price file of 2026-11-01; run 'hyperpod-cdk prices refresh'"
    )


@settings(max_examples=20)
@given(
    quotas=st.integers(2, 64).flatmap(
        lambda nodes: st.integers(1, nodes - 1).flatmap(
            lambda mine: st.tuples(st.just(nodes), st.just(mine), st.integers(1, 8 * (nodes - mine)))
        )
    ),
    extra=st.integers(0, 8),
    fee=st.decimals(0, 10_000_000, places=2),
    hours=st.lists(st.decimals(0, 100_000, places=2), min_size=3, max_size=3),
)
def test_whatever_the_quotas_and_the_use_the_shares_reconcile(
    folder: Path, quotas: tuple[int, int, int], extra: int, fee: Decimal, hours: list[Decimal]
) -> None:
    h100, research, accelerators = quotas
    loaded = written(
        folder, h100=h100, research=research, accelerators=accelerators, seats=h100 + extra, fee=f"{fee:f}"
    )
    rows = [
        f"2026-11-01,hyperpod-ns-{team},{team},ml.p5.48xlarge,0,0,0,{each},0,0,0,0,0"
        for team, each in zip(("research", "product", "other"), hours, strict=True)
    ]
    usage = read_usage(report(*rows), where="x.csv")
    found = pool(teams_cost(loaded, PRICES, usage), "ml.p5.48xlarge")
    assert sum(Decimal(str(each.by_quota)) for each in found.shares) == fee
    assert all((each.by_quota or 0) >= -0.01 for each in found.shares)
    if sum(hours):
        assert sum(Decimal(str(each.by_use)) for each in found.shares) == fee
    else:
        assert {each.by_use for each in found.shares} == {None}


# --- the usage report -------------------------------------------------------------------------------------------------

HEAD = """\
ClusterName: dev
Type: Summary Utilization Report
Report Date Generated: 2026-11-03
Report Date Range (UTC): 2026-11-01 to 2026-11-02
"""
COLUMNS = """\
,,,Instance,NeuronCore,,,GPU,,,vCPU,,
Date,Namespace,Team,Type,Total utilization (hours),Allocated utilization (hours),Borrowed utilization (hours),\
Total utilization (hours),Allocated utilization (hours),Borrowed utilization (hours),\
Total utilization (hours),Allocated utilization (hours),Borrowed utilization (hours)
"""


def report(*rows: str, missing: str = "") -> str:
    return "\n".join([f"{HEAD}{missing}{COLUMNS}".rstrip("\n"), *rows, ""])


ROWS = (
    "2026-11-01,hyperpod-ns-research,research,ml.p5.48xlarge,0.00,0.00,0.00,300.00,200.00,100.00,900.00,0.00,0.00",
    "2026-11-02,hyperpod-ns-research,research,ml.p5.48xlarge,0.00,0.00,0.00,100.00,100.00,0.00,300.00,0.00,0.00",
    "2026-11-02,hyperpod-ns-product,product,ml.p5.48xlarge,0.00,0.00,0.00,100.00,100.00,0.00,300.00,0.00,0.00",
    "2026-11-02,default,,ml.m5.2xlarge,0.00,0.00,0.00,0.00,0.00,0.00,12.00,12.00,0.00",
)


def test_use_divides_the_cost_beside_the_quotas(folder: Path) -> None:
    found = teams_cost(written(folder, fee="80000"), PRICES, read_usage(report(*ROWS), where="usage.csv"))
    p5 = pool(found, "ml.p5.48xlarge")
    assert {each.team: (each.used_hours, each.by_use) for each in p5.shares} == {
        "research": (400.0, 64000.0),
        "product": (100.0, 16000.0),
        "": (0.0, 0.0),
    }
    # a node without accelerators counts by vCPU, and what has no team is nobody's
    assert [(each.team, each.used_hours) for each in pool(found, "ml.m5.2xlarge").shares] == [("", 12.0)]
    assert [(each.what, each.reason) for each in found.skipped] == [
        ("what teams used of ml.g5.8xlarge", "the report has no hours for ml.g5.8xlarge")
    ]


def test_periods_without_data_are_reported(folder: Path) -> None:
    missing = "Missing data periods\n2026-11-01 00:00:00 to 2026-11-01 06:00:00\n"
    usage = read_usage(report(*ROWS, missing=missing), where="usage.csv")
    assert usage.missing == ("2026-11-01 00:00:00 to 2026-11-01 06:00:00",)
    found = teams_cost(written(folder, fee="80000"), PRICES, usage)
    assert found.skipped[0].reason == "the report has no data for 2026-11-01 00:00:00 to 2026-11-01 06:00:00"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.csv: has no line that begins with Date,Namespace,Team,Type,"),
        (report("2026-11-01,a,b,c,1"), "x.csv:7: needs 13 columns, got 5"),
        (
            report("2026-11-01,a,b,c,x,0,0,0,0,0,0,0,0"),
            "x.csv:7: needs hours as numbers, got x,0,0,0,0,0,0,0,0",
        ),
        (
            report("2026-11-01,a,b,c,-1,0,0,0,0,0,0,0,0"),
            "x.csv:7: needs hours from 0 to 1,000,000,000,000, got -1,0,0,0,0,0,0,0,0",
        ),
        (
            report("2026-11-01,a,b,c,NaN,0,0,0,0,0,0,0,0"),
            "x.csv:7: needs hours from 0 to 1,000,000,000,000, got NaN,0,0,0,0,0,0,0,0",
        ),
    ],
)
def test_another_file_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_usage(text, where="x.csv")
    assert str(caught.value).startswith(said)


def test_a_field_without_an_end_and_a_number_without_a_size_are_refused() -> None:
    long = f"2026-11-01,{'a' * 200_000},b,c,0,0,0,0,0,0,0,0,0"
    for row, said in (
        (long, "x.csv: is no CSV: field larger than field limit (131072)"),
        (
            "2026-11-01,a,b,c,0,0,0,1e400,0,0,0,0,0",
            "x.csv:7: needs hours from 0 to 1,000,000,000,000, got 0,0,0,1e400,0,0,0,0,0",
        ),
    ):
        with pytest.raises(UsageError) as caught:
            read_usage(report(row), where="x.csv")
        assert str(caught.value) == said


@pytest.mark.parametrize(
    ("kind", "hours"),
    [
        # by the catalog, and by what the report says of a type that the catalog does not know
        ("ml.p5.48xlarge", {"research": 10, "product": 0}),
        ("ml.future.48xlarge", {"research": 10, "product": 0}),
        ("ml.m5.2xlarge", {"research": 0, "product": 50}),
    ],
)
def test_pods_without_accelerators_use_none_of_a_type_that_has_some(kind: str, hours: dict[str, int]) -> None:
    gpu = 0 if kind == "ml.m5.2xlarge" else 10
    rows = (f"2026-11-01,a,research,{kind},0,0,0,{gpu},0,0,0,0,0", f"2026-11-01,b,product,{kind},0,0,0,0,0,0,50,0,0")
    found = read_usage(report(*rows), where="x.csv").hours
    assert {team: int(found[team, kind]) for team in ("research", "product")} == hours


def test_what_nobody_has_a_quota_of_is_theirs_who_used_it(folder: Path) -> None:
    # all nodes are in quotas, and half of the hours are of a namespace without a team
    rows = [f"2026-11-01,a,{team},ml.p5.48xlarge,0,0,0,10,0,0,0,0,0" for team in ("research", "")]
    loaded = written(folder, research=3, fee="60000")
    found = pool(teams_cost(loaded, PRICES, read_usage(report(*rows), where="x.csv")), "ml.p5.48xlarge")
    assert [(each.team, each.by_quota, each.by_use) for each in found.shares] == [
        ("research", 45000.0, 30000.0),
        ("product", 15000.0, 0.0),
        ("", 0.0, 30000.0),
    ]


def test_a_report_without_results_has_no_hours() -> None:
    assert read_usage(report("No Results"), where="x.csv").hours == {}


# --- the verb ---------------------------------------------------------------------------------------------------------


def run(folder: Path, *words: str) -> Result:
    line = ["teams", "cost", "dev", "--project", str(folder), *words]
    return CliRunner().invoke(cli.app, line, prog_name="hyperpod-cdk", catch_exceptions=False)


def test_the_verb_shows_pools_and_all(folder: Path) -> None:
    written(folder, fee="80000")
    (folder / "prices.json").write_text(PRICES.text(), encoding="utf-8")
    (folder / "usage.csv").write_text(report(*ROWS), encoding="utf-8")
    done = run(folder, "--usage", str(folder / "usage.csv"))
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("dev: $89,608.26 of nodes among 2 teams.\n")
    assert (
        "4 nodes of ml.p5.48xlarge, training plan h100-april: $80,000.00 for the plan\n"
        "  h100-april, all of its window\n"
        "  team      quota in nodes  by quota    hours used  by use\n"
        "  research  2               $40,000.00  400.00      $64,000.00\n"
        "  product   1               $20,000.00  100.00      $16,000.00\n"
        "  (nobody)  -               $20,000.00  0.00        $0.00\n"
    ) in done.stdout
    assert re.search(r"\nall of them, at prices as of \d{4}-\d{2}-\d{2} where no plan has its fee\n", done.stdout)
    assert max(map(len, done.stdout.split("skipped")[0].splitlines())) <= 80
    answered("teams-cost", run(folder, "--usage", str(folder / "usage.csv"), "--format", "json").stdout)
    assert run(folder, "--strict").exit_code == 1
    assert run(folder).exit_code == 0


@pytest.mark.parametrize("name", ["nowhere.csv", "bytes.csv"])
def test_a_file_that_cannot_be_read_is_one_sentence(folder: Path, name: str) -> None:
    written(folder)
    (folder / "bytes.csv").write_bytes(b"\xff\xfe")
    done = run(folder, "--usage", str(folder / name))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"--usage: cannot read {folder / name}: ")
