"""Numbers in pages that the code determines: each one is listed here with its source."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_cdk._cli import living
from hyperpod_cdk._cli.scaffold import Answers, environment_text
from hyperpod_cdk.catalog import hyperpod, lustre, prices
from hyperpod_cdk.catalog import notifications as catalog
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.environment import STACKS
from hyperpod_cdk.config.fleet import SOAK_MINUTES
from hyperpod_cdk.config.source import MAX_BYTES
from hyperpod_cdk.handlers.grafana import dashboards
from hyperpod_cdk.handlers.grafana import index as grafana
from hyperpod_cdk.handlers.notifications import index as notifications
from hyperpod_cdk.review import isolation, review_file, stored
from hyperpod_cdk.review.change_sets import MOST_BODY_BYTES
from hyperpod_cdk.review.figures.cost import cost
from hyperpod_cdk.templates.assembly import EMPTY, read_assembly
from tests.config.conftest import rows_of
from tests.stacks.test_both_doors import IN_OTHER_WORDS
from tests.support.assembly import synthesized_once

PROJECT = Path(__file__).parent.parent


def _minutes_of_prod() -> tuple[str, str]:
    """Return when the first node of prod is requested and when all is complete, from the table in test_times.py."""
    page = (PROJECT / "docs" / "decisions" / "0015-one-foundation.md").read_text(encoding="utf-8")
    row = re.search(r"^\| prod \| ([\d,]+) \| ([\d,]+) \|", page, re.MULTILINE)
    assert row is not None
    began, ended = (int(each.replace(",", "")) for each in row.groups())
    return f"{began / 60:.0f}", f"{ended / 60:.0f}"


def _leads() -> tuple[str, str, str]:
    weeks, day, last = notifications.LEADS
    return f"{weeks.days}", f"{day.days}", f"{last.total_seconds() / 60:.0f}"


def _lustre() -> tuple[str]:
    price = prices.shipped().find("us-west-2", "lustre.ssd.250")
    assert price is not None
    return (f"{4800 * price.usd:,.0f}",)


_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def _of_script(name: str, pattern: str) -> str:
    found = re.search(
        pattern, (PROJECT / "lifecycle_scripts" / "node" / name).read_text(encoding="utf-8"), re.MULTILINE
    )
    assert found is not None, name
    return found[1]


def _dollars(sku: str) -> float:
    price = prices.shipped().find("us-west-2", sku)
    assert price is not None
    return float(price.monthly)


@pytest.mark.parametrize(
    ("page", "sentence", "numbers"),
    [
        (
            "README.md",
            r"requested after about (\d+) minutes and the environment is complete after (\d+)\.",
            _minutes_of_prod,
        ),
        ("README.md", r"first node after about (\d+) minutes and is complete after (\d+) \(", _minutes_of_prod),
        ("README.md", r"4,800 GiB of Lustre at 250 MB/s per TiB: \$([\d,]+) per month in us-west-2", _lustre),
        (
            "README.md",
            r"Add-ons wait at most (\d+) minutes for the first node",
            lambda: (f"{hyperpod.NODE_WAIT_DEFAULT_MINUTES}",),
        ),
        (
            "docs/library.md",
            r"After (\d+) minutes it fails with HyperPod's own reason",
            lambda: (f"{hyperpod.NODE_WAIT_DEFAULT_MINUTES}",),
        ),
        ("docs/day-two.md", r"--watch` repeats every (\d+) seconds", lambda: (f"{living.EVERY_S}",)),
        ("docs/day-two.md", r"(\d+) days, (\d+) day and (\d+) minutes before a start and an end", _leads),
        (
            "docs/review.md",
            r"at most (\d+) seconds and (\d+) MiB, including all processes",
            lambda: (f"{isolation.TIME_LIMIT_SECONDS}", f"{isolation.MEMORY_LIMIT_MIB}"),
        ),
        ("docs/review.md", r"An exception is valid for at most (\d+) days", lambda: (f"{review_file.LONGEST_DAYS}",)),
        ("README.md", r"at list prices of (\w+ \d+) \(", lambda: (f"{prices.shipped().as_of:%B %Y}",)),
        (
            "README.md",
            r"its file system about \$([\d,]+) in",
            lambda: (f"{round(4800 * _dollars('lustre.ssd.250'), -3):,.0f}",),
        ),
        ("README.md", r"Each environment has up to (\w+) stacks:", lambda: (_WORDS[len(STACKS)],)),
        ("docs/coming-from.md", r"A file can have at most (\d+) MB\.", lambda: (f"{MAX_BYTES / 1e6:.0f}",)),
        *(
            ("docs/day-two.md", rf"{asked}, every (\d+) minutes", lambda: (f"{catalog.WATCH_MINUTES}",))
            for asked in ("DescribeCluster", "DescribeTrainingPlan", "Service Quotas and the groups of [^|,]+")
        ),
        ("docs/day-two.md", r"\| (\w+) dashboards in the folder", lambda: (_WORDS[len(dashboards.DASHBOARDS)],)),
        (
            "docs/day-two.md",
            r"a token that is valid for (\w+) minutes",
            lambda: (_WORDS[grafana.TOKEN_SECONDS // 60],),
        ),
        (
            "docs/extending.md",
            r"ports (\d+) and (\d+) to (\d+) open",
            lambda: tuple(f"{port}" for ports in lustre.TCP_PORTS for port in sorted(set(ports))),
        ),
        (
            "docs/lifecycle-scripts.md",
            r"waits up to (\d+) s for the EBS volume",
            lambda: (_of_script("hyperpod-data-disk", r"HYPERPOD_DISK_TIMEOUT_SECONDS:-(\d+)\}"),),
        ),
        (
            "docs/lifecycle-scripts.md",
            r"waits up to (\d+) s for the network and devices",
            lambda: (_of_script("hyperpod-lustre-efa", r"HYPERPOD_EFA_WAIT_SECONDS:-(\d+)\}"),),
        ),
        (
            "docs/lifecycle-scripts.md",
            r"again after (\d+) s if it fails",
            lambda: (_of_script("hyperpod-lustre-efa.service", r"^RestartSec=(\d+)$"),),
        ),
        (
            "docs/lifecycle-of-an-environment.md",
            r"\$(\d+) a month each",
            lambda: (f"{_dollars('kms.key'):.0f}",),
        ),
        ("docs/review.md", r"the ([\d,]+) bytes that CloudFormation accepts", lambda: (f"{MOST_BODY_BYTES:,}",)),
        ("docs/review.md", r"up to (\d+) MB for each asset", lambda: (f"{stored.LARGEST / 1e6:.0f}",)),
        ("docs/fleet.md", r"`soak_minutes` \(at most (\d+),", lambda: (f"{SOAK_MINUTES.maximum}",)),
        ("docs/fleet.md", r"cost a month of (\d+) hours at list prices", lambda: (f"{prices.HOURS_PER_MONTH}",)),
    ],
)
def test_a_page_says_what_the_code_has(page: str, sentence: str, numbers: Callable[[], tuple[str, ...]]) -> None:
    found = re.search(sentence, " ".join((PROJECT / page).read_text(encoding="utf-8").split()))
    assert found is not None, f"{page} has no such sentence any more"
    assert found.groups() == numbers()


def test_an_example_has_the_nodes_that_its_row_says() -> None:
    rows = re.findall(
        r"^\| \[[\w-]+\]\(examples/([\w-]+)\.yaml\) \| (\w+) (\S+) nodes\b",
        (PROJECT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert len(rows) == 5
    for name, said, kind in rows:
        groups = load_environment(PROJECT / "examples" / f"{name}.yaml").environment.hyperpod.instance_groups
        count = sum(group.count for group in groups if group.capacity is not None and group.instance_type)
        number = int(said) if said.isdecimal() else _WORDS.index(said)
        assert number == count, f"{name}: {kind}"


def test_where_rules_stand_counts_the_wrong_files() -> None:
    page = (PROJECT / "docs" / "decisions" / "0018-rooms.md").read_text(encoding="utf-8")
    found = re.search(r"of (\d+) wrong files\s+constructs refuse\s(\d+), (\d+) of them with the file's sentence", page)
    assert found is not None
    files, refused, in_its_words = map(int, found.groups())
    assert files == sum(map(len, rows_of("wrong_files.yaml").values()))
    assert refused - in_its_words == len(IN_OTHER_WORDS)


def test_what_the_first_environment_costs(tmp_path: Path) -> None:
    answers = Answers(
        name="gpu",
        account="111122223333",
        region="us-east-1",
        zones=("use1-az5", "use1-az4"),
        instance_type="ml.p5.48xlarge",
        count=2,
        capacity="training_plan",
        training_plan_arn="arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april",
        team="research",
        lustre=True,
        admin_role_arns=("arn:aws:iam::111122223333:role/platform-admin",),
    )
    file = tmp_path / "environments" / "gpu.yaml"
    file.parent.mkdir()
    file.write_text(environment_text(answers), encoding="utf-8")
    synthesized_once(tmp_path, "gpu", load_environment(file))
    found = cost(EMPTY, read_assembly(tmp_path / "gpu", "gpu"), prices=prices.shipped())
    assert found.monthly.after is not None
    said = re.search(r"this environment costs about \$(\d+) per month", (PROJECT / "README.md").read_text("utf-8"))
    assert said is not None
    assert int(said[1]) == round(found.monthly.after, -1)
