"""`hyperpod-cdk quotas show` and `quotas request`, with an AWS that remembers what it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk._cli.quota_requests import Tools
from hyperpod_cdk._cli.quotas import app
from hyperpod_cdk.checks.answers import AwsAccessError, NotAnswered, QuotaRequest, QuotaValue
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.recorded_quotas import RecordedQuota, RecordedQuotas
from hyperpod_cdk.quotas.needs import required_quotas
from tests.support.answers import answered
from tests.support.callers import with_callers
from tests.support.fake_aws import FakeAws

Invoke = Callable[..., Result]

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FILE = "environments/prod.yaml"
P5 = "ml.p5.48xlarge for cluster usage"
P5_CODE = "L-8762A75F"
PLENTY = 1_000_000.0


@dataclass
class WritableAws(FakeAws):
    """Also takes requests; ``refuses`` holds what AWS answers to a quota's code in place of a request."""

    requested: list[tuple[str, str, float]] = field(default_factory=list)
    refuses: dict[str, NotAnswered] = field(default_factory=dict)

    def request_quota(self, service: str, code: str, desired: float) -> QuotaRequest:
        self.requested.append((service, code, desired))
        if code in self.refuses:
            raise self.refuses[code]
        return opened(service=service, code=code, desired=desired, created=NOW, request_id="new")


def opened(**changes: Any) -> QuotaRequest:
    given: dict[str, Any] = {
        "request_id": "0123abcd",
        "service": "sagemaker",
        "code": P5_CODE,
        "name": P5,
        "desired": 3.0,
        "status": "PENDING",
        "created": NOW - timedelta(days=3),
    }
    return QuotaRequest(**{**given, **changes})


@pytest.fixture
def aws(project: Path) -> WritableAws:
    """An account that has plenty for prod, and no requests."""
    fake = WritableAws()
    answers = fake.answers
    for each in required_quotas(load_environment(project / FILE).environment):
        answers.quota[each.name] = QuotaValue(name=each.name, code=each.code, value=PLENTY)  # type: ignore[index]
        answers.quota_requests[each.service, each.code] = ()  # type: ignore[index]
        if each.usage:
            answers.usage[each.usage] = 0.0  # type: ignore[index]
    return fake


@pytest.fixture
def invoke(own_project: Path, aws: WritableAws) -> Invoke:
    """Runs a verb; ``answer`` is what a person says, None where there is nobody."""

    def run_verb(*arguments: str, answer: bool | None = None) -> Result:
        def confirm(question: str) -> bool:
            print(question)
            return bool(answer)

        tools = Tools(open_aws=lambda _: aws, confirm=None if answer is None else confirm, now=lambda: NOW)
        runner = CliRunner(env={"COLUMNS": "250", "NO_COLOR": "1"})
        return runner.invoke(app, [*arguments, "--project", str(own_project)], obj=tools, catch_exceptions=False)

    return run_verb


def let(aws: WritableAws, value: float, name: str = P5, code: str = P5_CODE, **more: Any) -> None:
    aws.answers.quota[name] = QuotaValue(name=name, code=code, value=value, **more)  # type: ignore[index]


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_show(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 8)
    aws.answers.usage["hyperpod_instances:ml.p5.48xlarge"] = 3.0  # type: ignore[index]
    done = invoke("show", "prod")
    shown = lines(done.stdout)
    assert done.exit_code == 0, done.output
    assert shown[0] == "verdict needed spare used by others value quota"
    assert "passed 2 1 3 8 ml.p5.48xlarge for cluster usage" in shown
    assert "passed 1 0 1000000 NAT gateways per Availability Zone (use1-az5)" in shown
    assert "group type count largest today limited by" in shown
    assert "h100 ml.p5.48xlarge 2 5 ml.p5.48xlarge for cluster usage" in shown
    assert shown[-1] == "all groups together fit 2 times over, limited by ml.p5.48xlarge for cluster usage"


def test_show_what_does_not_suffice(
    invoke: Invoke, aws: WritableAws, own_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_project)
    let(aws, 0, is_default=True)
    done = invoke("show", "prod")
    shown = lines(done.stdout)
    assert done.exit_code == 1
    assert "error 2 1 0 0 (default) ml.p5.48xlarge for cluster usage" in shown
    (found,) = (line for line in shown if f"{FILE}:" in line)
    assert found.partition(" ")[2] == (
        "hyperpod.instance_groups[1].count: needs 2 ml.p5.48xlarge for cluster usage, quota is at its default of 0 in "
        "us-east-1; run 'hyperpod-cdk quotas request prod'"
    )
    assert shown[-1] == "all groups together do not fit, limited by ml.p5.48xlarge for cluster usage"


def test_show_what_could_not_be_read(invoke: Invoke, aws: WritableAws) -> None:
    aws.answers.quota[P5] = NotAnswered("not allowed", action="servicequotas:GetServiceQuota")  # type: ignore[index]
    done = invoke("show", "prod")
    shown = lines(done.stdout)
    assert done.exit_code == 0
    assert "skipped 2 1 0 unknown ml.p5.48xlarge for cluster usage" in shown
    assert (
        f'skipped the quota "{P5}" could not be read in us-east-1: not allowed; allow servicequotas:GetServiceQuota'
    ) in shown
    assert f"(not read: {P5})" in done.stdout
    aws.answers.quota = NotAnswered("AWS does not answer")
    shown = lines(invoke("show", "prod").stdout)
    assert [line for line in shown if line.startswith("skipped ") and "quotas" in line] == [
        "skipped 17 quotas could not be compared: AWS does not answer"
    ]
    assert "h100 ml.p5.48xlarge 2 unknown (not read: 4 quotas)" in shown
    assert shown[-1] == "all groups together: unknown, no quota could be read"


@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_row_is_a_line_however_narrow(invoke: Invoke, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = invoke("show", "prod").stdout.splitlines()
    assert [line.rstrip() for line in shown] == shown
    (row,) = (line for line in shown if "EBS volume" in line)
    assert row.endswith("  Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance")


def test_show_json(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 1)
    done = invoke("show", "prod", "--format", "json")
    report = answered("quotas", done.stdout)
    assert (done.exit_code, report["passed"], report["region"]) == (1, False, "us-east-1")
    quota = next(each for each in report["quotas"] if each["quota"] == P5)
    assert (quota["value"], quota["needed"], quota["verdict"], quota["code"]) == (1, 2, "error", P5_CODE)
    assert report["largest"]["groups"][1]["largest_count"] == 1
    assert report["largest"]["mix"] == {"times": 0, "bound_by": P5, "unread": []}


def test_nothing_to_request(invoke: Invoke, aws: WritableAws) -> None:
    done = invoke("request", "prod")
    assert (done.exit_code, done.stdout) == (0, "the quotas are high enough; there is nothing to request\n")
    assert aws.requested == []


def test_request_after_yes(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 0)
    aws.answers.usage["hyperpod_instances:ml.p5.48xlarge"] = 4.0  # type: ignore[index]
    done = invoke("request", "prod", answer=True)
    assert done.exit_code == 0, done.output
    assert aws.requested == [("sagemaker", P5_CODE, 2 + 4 + 1)]
    assert lines(done.stdout) == [
        "now to request last request quota",
        "0 7 none ml.p5.48xlarge for cluster usage",
        "request 1 increase from AWS?",
        "requested 1; AWS decides most requests in one to three business days",
        "value status id age case open request",
        "7 PENDING new 0 h none ml.p5.48xlarge for cluster usage",
    ]


def test_no_means_no(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 0)
    done = invoke("request", "prod", answer=False)
    assert (done.exit_code, done.stderr, aws.requested) == (0, "nothing was requested\n", [])


@pytest.mark.parametrize("more", [[], ["--format", "json"]])
def test_no_terminal_to_ask(invoke: Invoke, aws: WritableAws, more: list[str]) -> None:
    let(aws, 0)
    done = invoke("request", "prod", *more)
    assert (done.exit_code, aws.requested) == (2, [])
    assert done.stderr == "would request 1 increase, but there is no terminal to ask for confirmation; add --yes\n"


def test_yes_asks_no_question(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 2)
    let(aws, 0, "VPCs per Region", "L-F678F1CE")
    done = invoke("request", "prod", "--yes", "--format", "json")
    assert done.exit_code == 0
    assert aws.requested == [("sagemaker", P5_CODE, 3), ("vpc", "L-F678F1CE", 1)]
    told = answered("quota-requests", done.stdout)
    assert [(each["code"], each["value"], each["status"]) for each in told["requested"]] == [
        (P5_CODE, 3, "PENDING"),
        ("L-F678F1CE", 1, "PENDING"),
    ]
    assert (told["open"], told["problems"]) == ([], [])


@pytest.mark.parametrize("arguments", [[], ["--yes"]])
def test_an_open_request_is_shown_and_not_repeated(invoke: Invoke, aws: WritableAws, arguments: list[str]) -> None:
    let(aws, 0)
    aws.answers.quota_requests["sagemaker", P5_CODE] = (  # type: ignore[index]
        opened(status="CASE_OPENED", case_id="170001"),
        opened(request_id="old", status="DENIED"),
    )
    done = invoke("request", "prod", *arguments)
    assert (done.exit_code, aws.requested) == (0, [])
    assert lines(done.stdout) == [
        "value status id age case open request",
        "3 CASE_OPENED 0123abcd 3 d 170001 ml.p5.48xlarge for cluster usage",
    ]


def test_an_open_request_for_too_little_says_what_is_missing(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 0)
    aws.answers.quota_requests["sagemaker", P5_CODE] = (opened(desired=2.0),)  # type: ignore[index]
    done = invoke("request", "prod", "--yes")
    assert aws.requested == []
    assert lines(done.stdout)[-1] == f'"{P5}": 2 is requested, but 3 is needed; ask for it in its support case'


def test_an_open_request_that_is_not_needed_is_shown_too(invoke: Invoke, aws: WritableAws) -> None:
    aws.answers.quota_requests["sagemaker", P5_CODE] = (opened(created=None),)  # type: ignore[index]
    done = invoke("request", "prod")
    assert (done.exit_code, aws.requested) == (0, [])
    assert lines(done.stdout)[-1] == "3 PENDING 0123abcd unknown none ml.p5.48xlarge for cluster usage"


def test_a_denied_request_is_asked_again_and_reported(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 0)
    aws.answers.quota_requests["sagemaker", P5_CODE] = (opened(status="DENIED"),)  # type: ignore[index]
    done = invoke("request", "prod", "--yes")
    assert aws.requested == [("sagemaker", P5_CODE, 3)]
    assert "0 3 DENIED 3 d ago ml.p5.48xlarge for cluster usage" in lines(done.stdout)


def test_what_aws_does_not_raise(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 0, adjustable=False)
    done = invoke("request", "prod", "--yes")
    assert (done.exit_code, aws.requested) == (1, [])
    assert done.stderr == f'"{P5}" is 0, which AWS does not increase\n'


def test_one_refusal_does_not_stop_the_next(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 0)
    let(aws, 0, "VPCs per Region", "L-F678F1CE")
    aws.refuses[P5_CODE] = NotAnswered("not allowed", action="servicequotas:RequestServiceQuotaIncrease")
    done = invoke("request", "prod", "--yes")
    assert done.exit_code == 1
    assert [code for _, code, _ in aws.requested] == [P5_CODE, "L-F678F1CE"]
    assert done.stderr == (
        f'"{P5}" could not be requested: not allowed; allow servicequotas:RequestServiceQuotaIncrease\n'
    )


def test_unread_quotas_and_histories_are_problems(invoke: Invoke, aws: WritableAws) -> None:
    let(aws, 0)
    denied = NotAnswered("not allowed", action="servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota")
    aws.answers.quota_requests["sagemaker", P5_CODE] = denied  # type: ignore[index]
    aws.answers.quota["VPCs per Region"] = NotAnswered("throttled")  # type: ignore[index]
    done = invoke("request", "prod", "--yes")
    assert (done.exit_code, aws.requested) == (1, [])
    assert done.stderr.splitlines() == [
        (
            f'whether a request for "{P5}" is open could not be read: not allowed; '
            "allow servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota"
        ),
        'the quota "VPCs per Region" could not be read in us-east-1: throttled',
    ]


def test_zones_share_one_request(invoke: Invoke, aws: WritableAws) -> None:
    name, code = "NAT gateways per Availability Zone", "L-FE5A380F"
    let(aws, 5, name, code)
    aws.answers.usage["nat_gateways:use1-az5"] = 5.0  # type: ignore[index]
    invoke("request", "prod", "--yes")
    assert aws.requested == [("vpc", code, 6)]


def test_nobody_to_ask_as(own_project: Path) -> None:
    def no_access(_: object) -> WritableAws:
        raise AwsAccessError("no AWS credentials were found; set AWS_PROFILE")

    tools = Tools(open_aws=no_access, confirm=None, now=lambda: NOW)
    for verb in ("show", "request"):
        done = CliRunner().invoke(app, [verb, "prod", "--project", str(own_project)], obj=tools)
        assert (done.exit_code, done.stderr) == (2, "no AWS credentials were found; set AWS_PROFILE\n")


def test_an_unknown_environment(invoke: Invoke) -> None:
    done = invoke("show", "pord")
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def own_project(project: Path, tmp_path: Path) -> Path:
    """A project of its own with prod, so that a record is written there and nowhere else."""
    file = tmp_path / FILE
    file.parent.mkdir()
    file.write_text(with_callers((project / FILE).read_text(encoding="utf-8")), encoding="utf-8")
    return tmp_path


@pytest.fixture
def record(own_project: Path, aws: WritableAws) -> Invoke:
    """Runs ``quotas show prod --record`` in the project of its own."""

    def run_record(*arguments: str, now: datetime = NOW) -> Result:
        tools = Tools(open_aws=lambda _: aws, confirm=None, now=lambda: now)
        runner = CliRunner(env={"COLUMNS": "250", "NO_COLOR": "1"})
        given = ["show", "prod", "--record", *arguments, "--project", str(own_project)]
        return runner.invoke(app, given, obj=tools, catch_exceptions=False)

    return run_record


def written(own_project: Path) -> RecordedQuotas | None:
    return load_environment(own_project / FILE).recorded_quotas


def test_record(record: Invoke, aws: WritableAws, own_project: Path) -> None:
    let(aws, 8)
    aws.answers.usage["hyperpod_instances:ml.p5.48xlarge"] = 3.0  # type: ignore[index]
    done = record()
    assert done.exit_code == 0, done.output
    assert f"{P5}: new, 8" in lines(done.stdout)
    assert lines(done.stdout)[-1].endswith("environments/prod.quotas.json; commit it with the environment")
    found = written(own_project)
    assert found is not None
    assert (found.recorded, found.account, found.region) == (NOW.date(), "111122223333", "us-east-1")
    quota = found.find("sagemaker", P5)
    assert quota == RecordedQuota(
        service="sagemaker",
        name=P5,
        code=P5_CODE,
        value=8.0,
        is_default=False,
        used={"cluster:ml.p5.48xlarge": 3.0},
    )
    needs = required_quotas(load_environment(own_project / FILE).environment)
    assert {(need.service, need.name) for need in needs} == {(each.service, each.name) for each in found.quotas}


def test_record_again(record: Invoke, aws: WritableAws, own_project: Path) -> None:
    record()
    day_after = NOW + timedelta(days=1)
    assert lines(record(now=day_after).stdout)[-1].endswith("; nothing changed since 2026-11-21")
    let(aws, 2, is_default=True)
    done = record(now=day_after)
    assert lines(done.stdout)[-2] == f"{P5}: 1000000 -> 2 (default)"
    found = written(own_project)
    assert found is not None
    assert found.recorded == day_after.date()


def test_record_as_json(record: Invoke) -> None:
    told = answered("quotas", record("--format", "json").stdout)
    assert told["record"]["file"].endswith("environments/prod.quotas.json")
    assert f"{P5}: new, 1000000" in told["record"]["changes"]


def test_a_quota_that_is_not_read_leaves_the_record_as_it_was(
    record: Invoke, aws: WritableAws, own_project: Path
) -> None:
    record()
    before = (own_project / "environments/prod.quotas.json").read_bytes()
    aws.answers.quota[P5] = NotAnswered("not allowed", action="servicequotas:GetServiceQuota")  # type: ignore[index]
    done = record(now=NOW + timedelta(days=1))
    assert done.exit_code == 1
    assert done.stderr == f"{P5}: not allowed; allow servicequotas:GetServiceQuota; nothing was written\n"
    assert (own_project / "environments/prod.quotas.json").read_bytes() == before
    assert sorted(path.name for path in (own_project / "environments").iterdir()) == ["prod.quotas.json", "prod.yaml"]


def test_what_others_use_may_be_unknown_in_a_record(record: Invoke, aws: WritableAws, own_project: Path) -> None:
    aws.answers.usage["hyperpod_instances:ml.p5.48xlarge"] = NotAnswered("throttled")  # type: ignore[index]
    assert record().exit_code == 0
    found = written(own_project)
    assert found is not None
    quota = found.find("sagemaker", P5)
    assert quota is not None
    assert quota.used == {"cluster:ml.p5.48xlarge": None}


def test_a_record_that_cannot_be_read_is_replaced_and_a_newer_one_is_not(record: Invoke, own_project: Path) -> None:
    path = own_project / "environments/prod.quotas.json"
    path.write_text("{", encoding="utf-8")
    done = record()
    assert done.exit_code == 0
    why = f"{path}:1: is not JSON: expecting property name enclosed in double quotes"
    assert done.stderr == f"replaces a record that could not be read: {why}\n"
    assert written(own_project) is not None
    newer = path.read_text(encoding="utf-8").replace('"schema_version": 1', '"schema_version": 2')
    path.write_text(newer, encoding="utf-8")
    done = record()
    assert done.exit_code == 2
    assert done.stderr.endswith("got 2; update hyperpod-cdk; nothing was written\n")
    assert path.read_text(encoding="utf-8") == newer
