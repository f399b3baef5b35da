"""`hyperpod-cdk plans` over real HTTP against the embedded AWS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk._cli import plans
from tests.support.callers import with_callers
from tests.support.embedded import Embedded, embedded

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RECORD = Path("environments/prod.plans.json")
QUOTA = "Number of ml.p5.48xlarge instances in reserved capacity across training plans per Region"
PLAN = {
    "name": "h100-april",
    "instance_type": "ml.p5.48xlarge",
    "instance_count": 2,
    "availability_zone_id": "use1-az5",
}


def offer(zone_id: str, price: float, *blocks: tuple[int, int]) -> dict[str, Any]:
    """Up to eight instances in blocks from one day of December to another."""
    return {
        "instance_type": "ml.p5.48xlarge",
        "instance_count": 8,
        "availability_zone_id": zone_id,
        "price_per_instance_hour": price,
        "blocks": [
            {"start_time": f"2026-12-{first:02}T11:30:00Z", "end_time": f"2026-12-{last:02}T11:30:00Z"}
            for first, last in blocks
        ],
    }


OFFERS = [
    offer("use1-az5", 32, (1, 8)),
    offer("use1-az4", 28, (3, 5)),
    offer("use1-az6", 30, (3, 4)),
    offer("use1-az5", 24, (2, 4), (10, 11)),
]


@pytest.fixture
def workspace(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with environments/prod.yaml of this repository, entered."""
    (tmp_path / "environments").mkdir()
    shipped = (project / "environments" / "prod.yaml").read_text(encoding="utf-8")
    (tmp_path / "environments" / "prod.yaml").write_text(with_callers(shipped), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(aws: Embedded, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    """Run a verb with the credentials and the endpoint of an embedded AWS."""
    for name, value in aws.environment().items():
        monkeypatch.setenv(name, value)
    access = plans.Access(open=plans._open, now=lambda: NOW)
    return CliRunner().invoke(plans.app, list(arguments), obj=access, catch_exceptions=False)


@pytest.mark.usefixtures("workspace")
def test_search(monkeypatch: pytest.MonkeyPatch) -> None:
    document: Mapping[str, Any] = {"training_plans": {"plans": [PLAN], "offers": OFFERS}}
    # long enough for a second request to be sent while the first one waits
    with embedded(document, now=NOW, latency_ms=50) as aws:
        done = run(aws, monkeypatch, "search", "prod", "--format", "json")
        calls = aws.calls()
    assert (done.exit_code, done.stderr) == (0, "")
    (search,) = json.loads(done.stdout)["searches"]
    assert [
        (
            each["price_per_accelerator_hour"],
            each["upfront_fee"],
            [block["availability_zone_id"] for block in each["blocks"]],
            each["fits"],
        )
        for each in search["offers"]
    ] == [
        ("3.0000", "3456.00", ["use1-az5", "use1-az5"], ["h100"]),
        ("3.5000", "2688.00", ["use1-az4"], []),
        ("3.7500", "1440.00", ["use1-az6"], []),
        ("4.0000", "10752.00", ["use1-az5"], ["h100"]),
    ]
    assert calls["by_operation"] == {
        "ec2:DescribeAvailabilityZones": 1,
        "sagemaker:SearchTrainingPlanOfferings": 15,
        "sts:GetCallerIdentity": 1,
    }
    assert calls["in_flight_maximum"] > 1


P5 = ("--instance-type", "ml.p5.48xlarge", "--count", "2")


@pytest.mark.usefixtures("workspace")
def test_every_duration_without_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded({"training_plans": {"offers": OFFERS}}, now=NOW) as aws:
        done = run(aws, monkeypatch, "search", *P5, "--every-day")
        asked = aws.calls()["by_operation"]["sagemaker:SearchTrainingPlanOfferings"]
    assert (done.exit_code, asked) == (0, 182)
    assert done.stdout.startswith("2 ml.p5.48xlarge in us-east-1: 4 offers among 182 durations from 1 to 182 days")


@pytest.mark.usefixtures("workspace")
def test_throttling_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    throttled = {"service": "sagemaker", "operation": "SearchTrainingPlanOfferings", "kind": "throttle", "times": 1}
    with embedded({"training_plans": {"offers": OFFERS}, "faults": [throttled]}, now=NOW) as aws:
        done = run(aws, monkeypatch, "search", *P5, "--days", "1..3")
    assert (done.exit_code, "not answered" in done.stdout) == (0, False)
    assert done.stdout.startswith("2 ml.p5.48xlarge in us-east-1: 3 offers among 1, 2 and 3 days")


@pytest.mark.usefixtures("workspace")
def test_the_quota_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    document: Mapping[str, Any] = {
        "training_plans": {"plans": [PLAN], "offers": OFFERS},
        "quotas": {"sagemaker": {QUOTA: 3}},
    }
    with embedded(document, now=NOW) as aws:
        done = run(aws, monkeypatch, "search", "prod")
    assert done.exit_code == 1
    first, refusal, more = done.stdout.splitlines()
    assert first.startswith("2 ml.p5.48xlarge in us-east-1 for h100: no offers")
    assert f'"{QUOTA}", which is 3: ' in refusal
    assert "ResourceLimitExceeded" in refusal
    assert more.endswith("--quota-code L-9EF527CA --desired-value 5")


@pytest.mark.usefixtures("workspace")
def test_record(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = {**PLAN, "blocks": OFFERS[3]["blocks"], "status": "Scheduled"}
    with embedded({"training_plans": {"plans": [plan]}}, now=NOW) as aws:
        done = run(aws, monkeypatch, "record", "prod")
    assert (done.exit_code, done.stderr) == (0, "")
    (recorded,) = json.loads(RECORD.read_text(encoding="utf-8"))["plans"]
    assert [(each["start"], each["availability_zone_id"]) for each in recorded["blocks"]] == [
        ("2026-12-02T11:30:00Z", "use1-az5"),
        ("2026-12-10T11:30:00Z", "use1-az5"),
    ]
    before = RECORD.read_bytes()
    denied = {"service": "sagemaker", "operation": "DescribeTrainingPlan", "kind": "access_denied"}
    with embedded({"training_plans": {"plans": [plan]}, "faults": [denied]}, now=NOW) as aws:
        done = run(aws, monkeypatch, "record", "prod")
    assert (done.exit_code, RECORD.read_bytes()) == (1, before)
    said = (
        "no permission for sagemaker:DescribeTrainingPlan (no identity-based policy); nothing was written; AWS says: "
    )
    assert f'{said}"User: ' in done.stderr
    with embedded({}, now=NOW) as aws:
        done = run(aws, monkeypatch, "record", "prod")
    assert (done.exit_code, RECORD.read_bytes()) == (1, before)
    assert "there is no plan h100-april in account 111122223333 in us-east-1; nothing was written" in done.stderr


@pytest.mark.usefixtures("workspace")
def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    done = CliRunner().invoke(plans.app, ["record", "prod"])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("no AWS credentials; ")
