"""`hyperpod-cdk prices refresh` and `prices show`, with a Pricing API of a few products."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk._cli.prices import Access, app
from hyperpod_cdk.catalog import prices
from hyperpod_cdk.checks.answers import AwsAccessError, NotAnswered
from hyperpod_cdk.config import load_environment
from tests.cli.conftest import Run
from tests.support.answers import answered

Invoke = Callable[..., Result]

DAY = "2026-11-20"
ANEW = "write it again with 'hyperpod-cdk prices refresh'"


def product(usage: str, usd: str, unit: str = "Hrs") -> str:
    dimension = {"unit": unit, "beginRange": "0", "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usage}},
            "terms": {"OnDemand": {"a": {"priceDimensions": {"b": dimension}}}},
            "publicationDate": f"{DAY}T17:05:01Z",
        }
    )


@dataclass
class PriceList:
    """Answers every region with the same products; ``refuses`` is raised in their place."""

    products: dict[str, list[str]] = field(
        default_factory=lambda: {
            "AmazonEKS": [product("AmazonEKS-Hours:perCluster", "0.11")],
            "AmazonEC2": [product("NatGateway-Hours", "0.045")],
            "AmazonVPC": [product("VpcEndpoint-Hours", "0.01", "GB")],
        }
    )
    refuses: NotAnswered | None = None
    regions: set[str] = field(default_factory=set)

    def __call__(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        assert (service, operation, key) == ("pricing", "get_products", "PriceList")
        if self.refuses is not None:
            raise self.refuses
        self.regions |= {each["Value"] for each in params["Filters"] if each["Field"] == "regionCode"}
        return self.products.get(params["ServiceCode"], [])


@pytest.fixture
def price_list() -> PriceList:
    """The API."""
    return PriceList()


@pytest.fixture
def invoke(price_list: PriceList, workspace: Path) -> Invoke:
    """Runs a verb in a project with one environment in us-west-2."""

    def run_verb(*arguments: str, access: Access | None = None) -> Result:
        where = [*arguments, "--project", str(workspace)]
        return CliRunner().invoke(app, where, obj=access or Access(open=lambda: price_list))

    return run_verb


def written(workspace: Path) -> prices.Prices:
    return prices.of_project(workspace)


def test_the_regions_of_the_environments_are_asked(invoke: Invoke, price_list: PriceList, workspace: Path) -> None:
    result = invoke("refresh")
    assert (result.exit_code, result.stderr) == (0, "")
    assert price_list.regions == {"us-west-2"}
    file = written(workspace)
    assert {key: f"{row.usd:f}" for key, row in file.rows.items()} == {
        ("us-west-2", "eks.cluster"): "0.11",
        ("us-west-2", "nat_gateway"): "0.045",
    }
    assert str(file.as_of) == DAY
    lines = result.stdout.splitlines()
    assert "us-west-2: EKS cluster: 0.10 -> 0.11 per cluster-hour" in lines
    assert "us-west-2: ml.p4d.24xlarge: removed, was 25.91001756 per instance-hour" in lines
    assert "omitted: AmazonVPC in us-west-2: VpcEndpoint-Hours is sold by GB, not by endpoint-hour" in lines
    assert "not found: ml.g5.12xlarge in us-west-2" in lines
    changes = sum(line.startswith("us-west-2: ") for line in lines)
    assert lines[-1] == (
        f"wrote {workspace / 'prices.json'}: 2 prices as of {DAY}, {changes} changes against the shipped prices;"
        " commit it with the environments"
    )


def test_what_was_not_found_is_not_passed_and_with_strict_not_accepted(invoke: Invoke, workspace: Path) -> None:
    done = invoke("refresh", "--format", "json")
    assert (done.exit_code, answered("price-changes", done.stdout)["passed"]) == (0, None)
    assert invoke("refresh", "--strict").exit_code == 1
    assert (workspace / "prices.json").is_file()


def test_a_second_time_nothing_changes(invoke: Invoke, workspace: Path) -> None:
    invoke("refresh")
    before = (workspace / "prices.json").read_bytes()
    result = invoke("refresh")
    done = f"wrote {workspace / 'prices.json'}: 2 prices as of {DAY}, no change since {DAY}"
    assert result.stdout.splitlines()[-1] == f"{done}; commit it with the environments"
    assert (workspace / "prices.json").read_bytes() == before


def test_regions_by_name_and_a_file_of_one_s_own(invoke: Invoke, price_list: PriceList, workspace: Path) -> None:
    out = workspace / "all.json"
    result = invoke("refresh", "--region", "us-east-1", "--region", "eu-west-2", "--out", str(out))
    assert result.exit_code == 0
    assert price_list.regions == {"us-east-1", "eu-west-2"}
    assert prices.read_prices(out, where="all.json").regions() == ("eu-west-2", "us-east-1")
    assert not (workspace / "prices.json").exists()


def test_regions_that_are_not_asked_for_stay(invoke: Invoke, workspace: Path) -> None:
    invoke("refresh", "--region", "eu-west-2")
    invoke("refresh", "--region", "us-east-1")
    assert written(workspace).regions() == ("eu-west-2", "us-east-1")


def test_a_dry_run_writes_nothing(invoke: Invoke, workspace: Path) -> None:
    result = invoke("refresh", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith(f"would write {workspace / 'prices.json'}: 2 prices as of {DAY}, ")
    assert not result.stdout.splitlines()[-1].endswith("environments")
    assert not (workspace / "prices.json").exists()


def test_refresh_as_json(invoke: Invoke, workspace: Path) -> None:
    told = json.loads(invoke("refresh", "--format", "json").stdout)
    assert told["file"] == str(workspace / "prices.json")
    assert (told["written"], told["as_of"]) == (True, DAY)
    assert "us-west-2: EKS cluster: 0.10 -> 0.11 per cluster-hour" in told["changes"]
    assert "ml.g5.12xlarge in us-west-2" in told["missing"]
    assert told["left_out"] == ["AmazonVPC in us-west-2: VpcEndpoint-Hours is sold by GB, not by endpoint-hour"]


def test_an_empty_answer_leaves_the_file_as_it_was(invoke: Invoke, price_list: PriceList, workspace: Path) -> None:
    invoke("refresh")
    before = (workspace / "prices.json").read_bytes()
    price_list.products.clear()
    result = invoke("refresh")
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "not found: CloudWatch alarm in us-west-2"
    assert lines[-1] == "the Pricing API has no price for us-west-2; nothing was written"
    assert (workspace / "prices.json").read_bytes() == before


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (
            NotAnswered("no permission for pricing:GetProducts", action="pricing:GetProducts"),
            "no permission for pricing:GetProducts; allow pricing:GetProducts; nothing was written\n",
        ),
        (NotAnswered("AWS throttles"), "AWS throttles; nothing was written\n"),
    ],
)
def test_no_answer_leaves_no_file(
    missing: NotAnswered, said: str, invoke: Invoke, price_list: PriceList, workspace: Path
) -> None:
    price_list.refuses = missing
    result = invoke("refresh")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", said)
    assert sorted(path.name for path in workspace.iterdir()) == ["environments"]


def test_nobody_to_ask_as(invoke: Invoke) -> None:
    def refuse() -> PriceList:
        raise AwsAccessError("no AWS credentials; set AWS_PROFILE or run 'aws sso login'")

    result = invoke("refresh", access=Access(open=refuse))
    assert (result.exit_code, result.stderr) == (2, "no AWS credentials; set AWS_PROFILE or run 'aws sso login'\n")


def test_an_unknown_region(invoke: Invoke) -> None:
    for verb in ("refresh", "show"):
        result = invoke(verb, "--region", "us-wst-2")
        assert result.exit_code == 2
        assert result.stderr.startswith("--region: must be an AWS region known on ")
        assert result.stderr.endswith('got "us-wst-2"; did you mean us-west-2?\n')


def test_no_environment_and_no_region(invoke: Invoke, workspace: Path) -> None:
    (workspace / "environments" / "dev.yaml").unlink()
    result = invoke("refresh")
    folder = workspace / "environments"
    assert (result.exit_code, result.stderr) == (2, f"no environment in {folder}; specify the Regions with --region\n")


def test_an_environment_that_is_refused_has_no_region(invoke: Invoke, workspace: Path) -> None:
    (workspace / "environments" / "bad.yaml").write_text("name: bad\n", encoding="utf-8")
    result = invoke("refresh")
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "bad.yaml is refused, so its Region is unknown; run 'hyperpod-cdk validate', or specify --region\n"
    )
    assert invoke("refresh", "--region", "us-west-2").exit_code == 0


def test_a_file_that_cannot_be_read_is_replaced(invoke: Invoke, workspace: Path) -> None:
    (workspace / "prices.json").write_text("{", encoding="utf-8")
    result = invoke("refresh")
    assert result.exit_code == 0
    assert result.stderr.startswith("replaces a file that could not be read: prices.json:1: is not JSON: ")
    assert len(written(workspace).rows) == 2


def test_what_is_no_file_is_left_alone(invoke: Invoke, workspace: Path) -> None:
    (workspace / "prices.json").mkdir()
    result = invoke("refresh")
    file = workspace / "prices.json"
    assert (result.exit_code, result.stderr) == (
        2,
        f"{file} is not a file; remove it or specify another one with --out\n",
    )


def test_a_folder_that_is_not_there(invoke: Invoke, workspace: Path) -> None:
    out = workspace / "nowhere" / "prices.json"
    result = invoke("refresh", "--out", str(out))
    assert (result.exit_code, result.stderr) == (
        2,
        f"cannot write {out}: No such file or directory; the old file is unchanged\n",
    )


def test_show_the_prices_of_a_region(invoke: Invoke) -> None:
    lines = invoke("show", "--region", "us-west-2").stdout.splitlines()
    assert lines[0] == f"the shipped prices, as of {prices.AS_OF}"
    assert lines[1].split() == ["region", "what", "US", "dollars", "per", "as", "of", "source"]
    nat = next(line for line in lines if "NAT gateway" in line)
    assert nat.split() == ["us-west-2", "NAT", "gateway", "0.045", "gateway-hour", "2026-10-04", "list-us-west-2"]
    dashboard = next(line for line in lines if "CloudWatch dashboard" in line)
    assert dashboard.startswith("any")
    assert dashboard.endswith("dashboards, not confirmed (1)")
    assert "not confirmed (1): a project's notes on the price list, without the list's date" in lines
    assert not [line for line in lines if "us-east-1 " in line]
    assert lines[-1].startswith("list-us-west-2: ")


def test_show_the_project_s_own_prices(invoke: Invoke, workspace: Path) -> None:
    invoke("refresh")
    shown = invoke("show").stdout
    assert shown.startswith(f"prices.json, as of {DAY}\n")
    told = answered("prices", invoke("show", "--format", "json").stdout)
    assert (told["file"], told["as_of"], sorted(told["sources"])) == ("prices.json", DAY, ["api"])
    assert told["prices"] == [{**row.as_data(), "unsure": ""} for row in written(workspace).rows.values()]


def test_show_a_region_without_prices(invoke: Invoke, workspace: Path) -> None:
    invoke("refresh")
    assert invoke("show", "--region", "eu-west-1").stdout.splitlines() == [
        f"prices.json, as of {DAY}",
        "no prices for eu-west-1; run 'hyperpod-cdk prices refresh --region eu-west-1'",
    ]
    assert written(workspace).regions() == ("us-west-2",)


def test_show_a_file_that_cannot_be_read(invoke: Invoke, workspace: Path) -> None:
    (workspace / "prices.json").write_text("[]", encoding="utf-8")
    result = invoke("show")
    assert (result.exit_code, result.stderr) == (
        2,
        f"prices.json: must be an object with format, as_of, sources and prices; {ANEW}\n",
    )


def test_an_environment_takes_no_notice_of_the_price_file(invoke: Invoke, workspace: Path) -> None:
    invoke("refresh")
    assert load_environment(workspace / "environments" / "dev.yaml").environment.name == "dev"


def test_the_verbs_are_there(run: Run, tmp_path: Path) -> None:
    nowhere = {"AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    done = run("prices", "refresh", AWS_EC2_METADATA_DISABLED="true", **nowhere)
    assert (done.returncode, done.stderr) == (2, "no AWS credentials; set AWS_PROFILE or run 'aws sso login'\n")
