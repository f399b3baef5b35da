"""Numbers that pages name and code decides: each stands here with the place that it comes from."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_cdk._cli import living
from hyperpod_cdk._cli.scaffold import Answers, environment_text
from hyperpod_cdk.catalog import hyperpod, prices
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.handlers.notifications import index as notifications
from hyperpod_cdk.review import isolation, review_file
from hyperpod_cdk.review.figures.cost import cost
from hyperpod_cdk.templates.assembly import EMPTY, read_assembly
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
        ("docs/fleet.md", r"cost a month of (\d+) hours at list prices", lambda: (f"{prices.HOURS_PER_MONTH}",)),
    ],
)
def test_a_page_says_what_the_code_has(page: str, sentence: str, numbers: Callable[[], tuple[str, ...]]) -> None:
    found = re.search(sentence, " ".join((PROJECT / page).read_text(encoding="utf-8").split()))
    assert found is not None, f"{page} has no such sentence any more"
    assert found.groups() == numbers()


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
