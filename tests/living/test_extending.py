"""Extensions of training plans: on offer, bought after the plan's name is typed, and never bought twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hyperpod_cdk import cli
from hyperpod_cdk._cli.extending import Buying
from hyperpod_cdk.checks.policy import VERBS
from hyperpod_cdk.living.extending import DAYS, USUAL_DAYS
from tests.living.test_status import opened
from tests.support.answers import answered
from tests.support.scripted_aws import WHO, Fails

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/h100-april"
END = datetime(2099, 4, 30, 11, 30, tzinfo=UTC)
DENIED: Any = Fails("AccessDeniedException", "no", 403)
FILE = f"""
name: dev
account: "111122223333"
region: us-east-1
eks: {{admin_role_arns: ["arn:aws:iam::111122223333:role/admin"], public_access_cidrs: [54.240.193.128/26]}}
network: {{availability_zones: {{use1-az5: {{}}, use1-az4: {{}}}}}}
hyperpod:
  instance_groups:
    - {{name: system, instance_type: ml.m5.2xlarge, count: 2, availability_zone_id: use1-az4}}
    - name: h100
      instance_type: ml.p5.48xlarge
      count: 4
      availability_zone_id: use1-az5
      capacity: training_plan
      training_plan_arn: {PLAN}
task_governance:
  teams: [{{name: research, quota: [{{instance_type: ml.p5.48xlarge, count: 4}}]}}]
"""


def _offers(params: Mapping[str, Any]) -> dict[str, Any]:
    assert params["TrainingPlanArn"] == PLAN
    days = params["DurationHours"] // 24
    if days > 14:
        return {"TrainingPlanOfferings": [], "TrainingPlanExtensionOfferings": []}
    # a longer one is cheaper
    fee = {1: "3840.00", 7: "24192.00"}.get(days)
    row = {
        "TrainingPlanExtensionOfferingId": f"tpeo-{days}",
        "AvailabilityZone": "us-east-1a",
        "StartDate": END,
        "EndDate": END + timedelta(days=days),
        "DurationHours": params["DurationHours"],
        "UpfrontFee": fee,
        "CurrencyCode": "USD",
    }
    return {"TrainingPlanOfferings": [], "TrainingPlanExtensionOfferings": [row] if fee else []}


def _extended(params: Mapping[str, Any]) -> dict[str, Any]:
    row = {"TrainingPlanExtensionOfferingId": params["TrainingPlanExtensionOfferingId"]}
    before = {"TrainingPlanExtensionOfferingId": "tpeo-0", "Status": "Expired", "PaymentStatus": "Paid"}
    return {"TrainingPlanExtensions": [before, {**row, "Status": "Pending", "PaymentStatus": "Pending"}]}


def script(**more: Any) -> dict[str, Any]:
    """Return a plan of four nodes with two extensions on offer."""
    plan = {
        "TrainingPlanArn": PLAN,
        "TrainingPlanName": "h100-april",
        "Status": "Active",
        "EndTime": END,
        "TotalInstanceCount": 4,
        "ReservedCapacitySummaries": [
            {
                "ReservedCapacityArn": "arn:aws:sagemaker:us-east-1:111122223333:reserved-capacity/h100-april",
                "InstanceType": "ml.p5.48xlarge",
                "TotalInstanceCount": 4,
                "Status": "Active",
            }
        ],
    }
    found: dict[str, Any] = {
        "sts:GetCallerIdentity": WHO,
        "sagemaker:DescribeTrainingPlan": plan,
        "sagemaker:SearchTrainingPlanOfferings": _offers,
        "sagemaker:DescribeTrainingPlanExtensionHistory": {"TrainingPlanExtensions": []},
        "sagemaker:ExtendTrainingPlan": _extended,
    }
    return {**found, **{f"sagemaker:{name}": answer for name, answer in more.items()}}


@dataclass
class Runs:
    """Runs the verb, and keeps what AWS was asked; what may be bought goes by a way of its own."""

    folder: Path
    file: str = FILE
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    once: list[str] = field(default_factory=list)
    then: dict[str, Any] | None = None
    """What AWS answers when something is bought, where that is another answer by then."""

    def __call__(self, *words: str, aws: dict[str, Any] | None = None, typed: str = "") -> Result:
        (self.folder / "environments").mkdir(exist_ok=True)
        (self.folder / "environments" / "dev.yaml").write_text(self.file, encoding="utf-8")
        answers = script() if aws is None else aws

        def once(region: str, _account: str) -> Any:
            self.once.append(region)
            return opened(self.then or answers, self.asked)

        way = Buying(open=lambda _region, _account: opened(answers, self.asked), once=once)
        line = ["plans", "extend", "dev", "--project", str(self.folder), *words]
        return CliRunner().invoke(cli.app, line, prog_name="hyperpod-cdk", obj=way, input=typed)

    @property
    def bought(self) -> list[str]:
        """The offers that were bought."""
        name = "sagemaker:ExtendTrainingPlan"
        return [params["TrainingPlanExtensionOfferingId"] for each, params in self.asked if each == name]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    # what is confirmed is typed at a terminal, which no test has
    monkeypatch.setattr("hyperpod_cdk._cli.transitions.is_terminal", lambda: True)
    return Runs(folder=tmp_path)


def test_an_offer_whose_number_is_none_is_skipped(run: Runs) -> None:
    offer = {"TrainingPlanExtensionOfferingId": "tpeo-7", "UpfrontFee": "24192.00", "DurationHours": "a week"}
    done = run("--format", "json", aws=script(SearchTrainingPlanOfferings={"TrainingPlanExtensionOfferings": [offer]}))
    found = json.loads(done.stdout)
    assert (found["passed"], found["plans"]) == (None, [])
    assert [each["reason"] for each in found["skipped"] if each["what"] == "plan h100-april"] == [
        "the answer to sagemaker:DescribeTrainingPlan cannot be read: what should be a number is none"
    ]


def test_the_cheapest_comes_first_with_what_ends_without_it(run: Runs) -> None:
    done = run()
    assert (done.exit_code, done.stdout) == (
        0,
        (
            "dev: 2 extensions on offer for 1 plan.\n"
            "\n"
            "plan h100-april is Active and ends at 2099-04-30 11:30 UTC\n"
            "  its nodes leave at 2099-04-30 10:30 UTC; it can be extended until 2099-04-30\n"
            "  10:30 UTC\n"
            "  these groups end with it: h100: 4 nodes\n"
            "  teams with quotas for its type: research: 4 nodes of ml.p5.48xlarge\n"
            "days  per accelerator-hour  fee           then ends             offer\n"
            "7     4.5000 USD            24192.00 USD  2099-05-07 11:30 UTC  tpeo-7\n"
            "1     5.0000 USD            3840.00 USD   2099-05-01 11:30 UTC  tpeo-1\n"
            "skipped jobs on the nodes: this command does not ask Kubernetes, which knows them\n"
        ),
    )
    assert (run.bought, run.once) == ([], [])


@pytest.mark.parametrize(
    ("words", "days"), [((), USUAL_DAYS), (("--days", "14"), (14,)), (("--days", "13..14,21,182"), (13, 14, 21, 182))]
)
def test_each_duration_is_a_call(run: Runs, words: tuple[str, ...], days: tuple[int, ...]) -> None:
    run(*words)
    name = "sagemaker:SearchTrainingPlanOfferings"
    assert sorted(params["DurationHours"] // 24 for each, params in run.asked if each == name) == list(days)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--days", "15"),
            "--days: extensions are sold by the day up to 14 days and by the week from there to 182, got 15; take 21",
        ),
        (("--days", "183"), '--days: must be from 1 to 182, got "183"'),
        (("--plan", "other"), '--plan: the environment has no plan "other"; it has h100-april'),
        (("--confirm", "h100-april"), "--confirm is for --buy"),
        (
            ("--buy", "tpeo-7", "--format", "json"),
            "--format json cannot ask for confirmation; add --confirm with the name of the plan",
        ),
        (
            ("--buy", "tpeo-14", "--confirm", "h100-april"),
            "--buy: tpeo-14 is not among the extensions that are offered now; choose one of the list",
        ),
        (
            ("--buy", "tpeo-7", "--confirm", "h100"),
            "--confirm: must be the name of the plan that the extension is for, h100-april, got h100",
        ),
    ],
)
def test_what_is_refused_buys_nothing(run: Runs, words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert (done.exit_code, done.stderr, run.bought) == (2, f"{said}\n", [])


def test_every_duration_that_is_sold() -> None:
    assert (DAYS[:14], DAYS[14:16], DAYS[-1], set(USUAL_DAYS) <= set(DAYS)) == (
        tuple(range(1, 15)),
        (21, 28),
        182,
        True,
    )


def test_without_a_terminal_the_flag_is_named(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hyperpod_cdk._cli.transitions.is_terminal", lambda: False)
    done = run("--buy", "tpeo-7", typed="h100-april\n")
    asked = (
        "this must be typed on a terminal, and standard input is not a terminal; in a program, add --confirm h100-april"
    )
    assert (done.exit_code, run.bought) == (1, [])
    assert f"Type h100-april to buy it: {asked}\n" in done.stdout


@pytest.mark.parametrize("typed", ["", "yes\n", "tpeo-7\n"])
def test_only_the_plans_name_buys(run: Runs, typed: str) -> None:
    done = run("--buy", "tpeo-7", typed=typed)
    assert (done.exit_code, done.stdout.splitlines()[-1], run.bought) == (1, "Nothing was bought.", [])


@pytest.mark.parametrize(("words", "typed"), [((), "h100-april\n"), (("--confirm", "h100-april"), "")])
def test_one_is_bought_once(run: Runs, words: tuple[str, ...], typed: str) -> None:
    done = run("--buy", "tpeo-7", *words, typed=typed)
    assert (done.exit_code, run.bought, run.once) == (0, ["tpeo-7"], ["us-east-1"])
    assert done.stdout.splitlines()[-1] == "dev: h100-april is extended: Pending, payment Pending."


def test_a_purchase_as_json(run: Runs) -> None:
    done = run("--buy", "tpeo-7", "--confirm", "h100-april", "--format", "json")
    found = answered("extensions", done.stdout)
    assert found["bought"] == {
        "plan": "h100-april",
        "offer": "tpeo-7",
        "status": "Pending",
        "payment": "Pending",
        "problem": "",
    }


BOUGHT = {
    "TrainingPlanExtensionOfferingId": "tpeo-7",
    "ExtendedAt": END - timedelta(days=3),
    "DurationHours": 168,
    "Status": "Scheduled",
    "PaymentStatus": "Paid",
}


def _history(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"TrainingPlanExtensions": list(rows)}


def test_what_went_through_although_its_answer_was_lost_is_not_bought_again(run: Runs) -> None:
    rows: list[dict[str, Any]] = []

    def extend(_params: Any) -> Any:
        rows.append(BOUGHT)
        return Fails("InternalFailure", "no answer in time", 500)

    aws = script(ExtendTrainingPlan=extend, DescribeTrainingPlanExtensionHistory=lambda _params: _history(*rows))
    first = run("--buy", "tpeo-7", "--confirm", "h100-april", aws=aws)
    assert (first.exit_code, "Check before you try again" in first.stdout) == (1, True)
    again = run("--buy", "tpeo-7", "--confirm", "h100-april", aws=aws)
    assert (again.exit_code, run.bought) == (0, ["tpeo-7"])
    assert again.stdout.splitlines()[-1] == (
        "dev: h100-april is extended by this offer already: Scheduled, payment Paid."
    )
    at = f"{END - timedelta(days=3):%Y-%m-%d %H:%M} UTC"
    assert f"  was extended at {at} by 7 days (Scheduled, payment Paid)\n" in again.stdout


def test_an_offer_that_is_gone_since_it_was_bought_is_reported(run: Runs) -> None:
    aws = script(SearchTrainingPlanOfferings=_gone, DescribeTrainingPlanExtensionHistory=_history(BOUGHT))
    done = run("--buy", "tpeo-7", "--confirm", "h100-april", aws=aws)
    assert (done.exit_code, run.bought) == (0, [])
    assert done.stdout.splitlines()[-1] == "dev: h100-april is extended by this offer already: Scheduled, payment Paid."


def _dearer(params: Mapping[str, Any]) -> dict[str, Any]:
    found = _offers(params)
    for row in found["TrainingPlanExtensionOfferings"]:
        row["UpfrontFee"] = "99999.00"
    return found


def _gone(_params: Mapping[str, Any]) -> dict[str, Any]:
    return {"TrainingPlanOfferings": [], "TrainingPlanExtensionOfferings": []}


@pytest.mark.parametrize(
    ("then", "said"),
    [
        (
            {"SearchTrainingPlanOfferings": _dearer},
            "it costs 99999.00 USD now, and 24192.00 USD was shown",
        ),
        ({"SearchTrainingPlanOfferings": _gone}, "it is no longer offered"),
        ({"SearchTrainingPlanOfferings": DENIED}, "its earlier extensions and its price now are unknown: "),
        (
            {"DescribeTrainingPlanExtensionHistory": DENIED},
            "its earlier extensions and its price now are unknown: ",
        ),
        (
            {
                "DescribeTrainingPlanExtensionHistory": _history(
                    {**BOUGHT, "TrainingPlanExtensionOfferingId": "tpeo-0", "PaymentStatus": "Pending"}
                )
            },
            "an earlier extension of it is not paid yet, and AWS sells no other until it is: tpeo-0 of ",
        ),
    ],
)
def test_what_changes_between_showing_and_buying_buys_nothing(run: Runs, then: dict[str, Any], said: str) -> None:
    run.then = script(**then)
    done = run("--buy", "tpeo-7", typed="h100-april\n")
    assert (done.exit_code, run.bought) == (1, [])
    *_, verdict, problem = done.stdout.splitlines()
    assert verdict == "dev: h100-april is not extended: nothing was bought."
    assert problem.startswith(said)


@pytest.mark.parametrize(("fee", "told"), [(None, "no fee"), ("on request", "on request"), ("NaN", "NaN")])
def test_what_has_no_price_is_not_bought(run: Runs, fee: str | None, told: str) -> None:
    def offers(params: Mapping[str, Any]) -> dict[str, Any]:
        found = _offers(params)
        for row in found["TrainingPlanExtensionOfferings"]:
            del row["UpfrontFee"]
            row.update({"UpfrontFee": fee} if fee else {})
        return found

    aws = script(SearchTrainingPlanOfferings=offers)
    done = run("--buy", "tpeo-7", "--confirm", "h100-april", aws=aws)
    assert (done.exit_code, run.bought) == (1, [])
    *_, verdict, problem = done.stdout.splitlines()
    assert verdict == "dev: h100-april is not extended: nothing was bought."
    assert problem == f"its price is unknown: AWS shows {told}"


def test_an_extension_that_failed_is_no_purchase(run: Runs) -> None:
    aws = script(DescribeTrainingPlanExtensionHistory=_history({**BOUGHT, "Status": "Failed"}))
    done = run("--buy", "tpeo-7", "--confirm", "h100-april", aws=aws)
    assert (done.exit_code, run.bought) == (0, ["tpeo-7"])


@pytest.mark.parametrize(
    "answer",
    [
        DENIED,
        Fails("ResourceNotFound", "gone"),
        Fails("ThrottlingException", "slow down"),
        Fails("ValidationException", "the offering has expired"),
    ],
)
def test_a_purchase_that_aws_turns_away_was_none(run: Runs, answer: Any) -> None:
    done = run("--buy", "tpeo-7", "--confirm", "h100-april", aws=script(ExtendTrainingPlan=answer))
    assert (done.exit_code, run.bought) == (1, ["tpeo-7"])
    assert "dev: h100-april is not extended: nothing was bought.\n" in done.stdout


@pytest.mark.parametrize("answer", [Fails("InternalFailure", "oops", 500), Fails("ServiceUnavailable", "later", 503)])
def test_a_purchase_that_is_not_answered_is_not_made_again(run: Runs, answer: Any) -> None:
    done = run("--buy", "tpeo-7", "--confirm", "h100-april", aws=script(ExtendTrainingPlan=answer))
    assert (done.exit_code, run.bought) == (1, ["tpeo-7"])
    assert (
        "dev: It is unknown whether h100-april is extended. Check before you try again: aws sagemaker"
        f" describe-training-plan-extension-history --training-plan-arn {PLAN}\n"
    ) in done.stdout


@pytest.mark.parametrize(
    ("call", "what"),
    [("DescribeTrainingPlan", "plan h100-april"), ("SearchTrainingPlanOfferings", "extensions of h100-april by 1 day")],
)
def test_what_is_not_answered_is_skipped(run: Runs, call: str, what: str) -> None:
    done = run("--days", "1", "--format", "json", aws=script(**{call: DENIED}))
    found = json.loads(done.stdout)
    assert (done.exit_code, found["passed"], found["skipped"][-1]["what"]) == (0, None, what)
    assert run("--days", "1", "--strict", aws=script(**{call: DENIED})).exit_code == 1


@pytest.mark.parametrize(
    ("denied", "verdict", "line"),
    [
        (
            (1, 7),
            "It is unknown whether an extension is on offer for 1 plan.",
            "the offers for these days are unknown: 1, 7",
        ),
        (
            (1,),
            "1 extension on offer for 1 plan, as far as AWS shows.",
            "the offers for these days are unknown: 1",
        ),
        ((), "1 extension on offer for 1 plan.", ""),
    ],
)
def test_what_aws_does_not_show_is_not_nothing(run: Runs, denied: tuple[int, ...], verdict: str, line: str) -> None:
    def search(params: Mapping[str, Any]) -> Any:
        days = params["DurationHours"] // 24
        refused = Fails("AccessDeniedException", "no", 403)
        return refused if days in denied else _offers(params) if days == 7 else {"TrainingPlanExtensionOfferings": []}

    words = ("--days", "1,7")
    done = run(*words, aws=script(SearchTrainingPlanOfferings=search))
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, f"dev: {verdict}")
    assert (f"  {line}\n" in done.stdout) is bool(line)
    assert "no extension is offered" not in done.stdout


def test_a_plan_whose_end_is_unknown_is_not_clean(run: Runs) -> None:
    answers = script()
    del answers["sagemaker:DescribeTrainingPlan"]["EndTime"]
    done = run("--days", "7", aws=answers)
    assert (
        "plan h100-april is Active and ends at an unknown time its nodes leave at an unknown time; it is unknown until"
        " when it can be extended"
    ) in " ".join(done.stdout.split())
    found = json.loads(run("--days", "7", "--format", "json", aws=answers).stdout)
    assert (found["passed"], found["plans"][0]["too_late"]) == (None, None)


def test_a_fee_below_nothing_is_no_price(run: Runs) -> None:
    row = {"TrainingPlanExtensionOfferingId": "tpeo-x", "DurationHours": 168, "UpfrontFee": "-5", "CurrencyCode": "USD"}
    answers = script(SearchTrainingPlanOfferings={"TrainingPlanExtensionOfferings": [row]})
    found = json.loads(run("--days", "7", "--format", "json", aws=answers).stdout)
    assert found["plans"][0]["extensions"][0]["price"] is None


def test_an_answer_without_what_is_needed_is_skipped(run: Runs) -> None:
    done = run("--days", "1", "--format", "json", aws=script(DescribeTrainingPlan={"Status": "Active"}))
    found = json.loads(done.stdout)
    assert (done.exit_code, found["passed"], found["plans"]) == (0, None, [])
    assert found["skipped"][-1]["what"] == "plan h100-april"
    assert "'TrainingPlanName' is missing" in found["skipped"][-1]["reason"]


def test_no_plan_at_all(run: Runs) -> None:
    run.file = FILE.replace("capacity: training_plan\n", "capacity: on_demand\n").replace(
        f"      training_plan_arn: {PLAN}\n", ""
    )
    done = run()
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "dev: the environment names no plan")


def test_only_what_the_rights_of_the_verb_allow_is_asked(run: Runs) -> None:
    run("--buy", "tpeo-7", "--confirm", "h100-april")
    (verb,) = (each for each in VERBS if each.name == "plans extend")
    assert {name for name, _ in run.asked} == set(verb.actions)


def test_too_late(run: Runs) -> None:
    aws = script()
    aws["sagemaker:DescribeTrainingPlan"]["EndTime"] = datetime.now(UTC) + timedelta(minutes=59)
    aws["sagemaker:SearchTrainingPlanOfferings"] = {"TrainingPlanOfferings": []}
    done = run(aws=aws)
    assert "it is too late to extend it" in " ".join(done.stdout.split())
    assert "  no extension is offered for these durations\n" in done.stdout
