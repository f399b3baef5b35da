"""The state of deployed stacks on AWS: blocked stacks, stacks of others, and other importers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore.session import get_session

from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError
from hyperpod_cdk.transitions.model import Refusal
from hyperpod_cdk.transitions.standing import Standing, read_standing, read_to_destroy
from tests.support.scripted_aws import WHO, Fails, ScriptedSession
from tests.support.tables import row_by_row
from tests.transitions.stacks import ACCOUNT, REGION, assembly, planned, stack

FOUNDATION = stack("foundation", exports=["vpc"])
STORAGE = stack("storage", imports=["vpc"])
HEAD = assembly(FOUNDATION, STORAGE)
NOT_IMPORTED = Fails("ValidationError", "Export 'vpc' is not imported by any stack.")


def standing(
    statuses: dict[str, str],
    *,
    head: Assembly = HEAD,
    deployed: Assembly = HEAD,
    imports: Any = NOT_IMPORTED,
    read: Callable[[Api, Assembly], Standing] = read_standing,
    protected: Collection[str] = (),
    triggers: Mapping[str, Any] | None = None,
) -> Standing:
    templates = {each.name: each.template for each in deployed.stacks}
    arn = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{{}}/0"
    stacks = [
        {
            "StackName": name,
            "StackId": arn.format(name),
            "StackStatus": status,
            "EnableTerminationProtection": name in protected,
            "RollbackConfiguration": (triggers or {}).get(name, {}),
        }
        for name, status in statuses.items()
    ]
    scripted = ScriptedSession(
        {
            "sts:GetCallerIdentity": WHO,
            "cloudformation:DescribeStacks": {"Stacks": stacks},
            "cloudformation:GetTemplate": lambda params: {"TemplateBody": templates[params["StackName"]]},
            "cloudformation:ListChangeSets": {"Summaries": [{"ChangeSetName": "cdk-deploy-change-set"}]},
            "cloudformation:ListImports": imports,
        }
    )
    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    return read(LiveAws.open(region=REGION, account=ACCOUNT, own=own, session=scripted.session()), head)


def test_plans_start_from_the_deployed_stacks() -> None:
    found = standing({"dev-foundation": "UPDATE_COMPLETE", "dev-storage": "CREATE_COMPLETE"})
    assert [each.name for each in found.base.stacks] == ["dev-foundation", "dev-storage"]
    assert (found.blockers, found.importers, found.notes) == ((), {}, ())


@pytest.mark.parametrize(
    ("alarms", "minutes", "note"),
    [
        ([], 10, None),
        (
            ["errors"],
            0,
            (
                "dev-storage has rollback triggers, which were set outside of the app: CloudFormation rolls its"
                " update back if errors goes into ALARM during it, and also if errors does not exist then, for"
                " example because a step deletes it."
            ),
        ),
        (
            ["errors", "of:us"],
            10,
            (
                "dev-storage has rollback triggers, which were set outside of the app: CloudFormation rolls its"
                " update back if errors or of:us goes into ALARM during it or within 10 minutes after it, and"
                " also if errors or of:us does not exist then, for example because a step deletes it."
            ),
        ),
    ],
)
def test_alarms_that_roll_an_update_back_are_named(alarms: list[str], minutes: int, note: str | None) -> None:
    # CloudFormation API reference, RollbackConfiguration: what a stack was once given applies to later updates, too
    found = {
        "RollbackTriggers": [
            {"Arn": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{each}", "Type": "AWS::CloudWatch::Alarm"}
            for each in alarms
        ],
        "MonitoringTimeInMinutes": minutes,
    }
    triggers = {"dev-foundation": found, "dev-storage": found}
    statuses = {"dev-foundation": "UPDATE_COMPLETE", "dev-storage": "CREATE_COMPLETE"}
    # of a stack that no step deploys nothing is said
    head = assembly(FOUNDATION, stack("storage", imports=["vpc"], exports=["scratch"]))
    assert standing(statuses, head=head, triggers=triggers).notes == ((note,) if note else ())


@pytest.mark.parametrize(
    ("status", "why", "what_works"),
    [
        (
            "UPDATE_IN_PROGRESS",
            "dev-storage is UPDATE_IN_PROGRESS: CloudFormation works on it.",
            "Wait until it has ended, then plan again.",
        ),
        (
            "DELETE_IN_PROGRESS",
            "dev-storage is DELETE_IN_PROGRESS: CloudFormation works on it.",
            "Wait until it has ended, then plan again.",
        ),
        (
            "UPDATE_ROLLBACK_FAILED",
            "dev-storage is UPDATE_ROLLBACK_FAILED: CloudFormation does not accept a deployment of it.",
            (
                "'hyperpod-cdk recover dev' names the cause and rolls back the rest of the last deployment; then "
                "plan again."
            ),
        ),
        (
            "DELETE_FAILED",
            (
                "dev-storage is DELETE_FAILED: its deletion has begun, and CloudFormation does not accept a "
                "deployment of it."
            ),
            "'hyperpod-cdk recover dev' names the cause and finishes the deletion; then deploy it again.",
        ),
        (
            "IMPORT_ROLLBACK_FAILED",
            ("dev-storage is IMPORT_ROLLBACK_FAILED: it is unknown whether CloudFormation accepts a deployment of it."),
            "'hyperpod-cdk recover dev' names what failed; bring it into a state with _COMPLETE.",
        ),
    ],
)
def test_a_stack_that_takes_no_deployment(status: str, why: str, what_works: str) -> None:
    found = standing({"dev-foundation": "CREATE_COMPLETE", "dev-storage": status})
    assert found.blockers == (Refusal(why=why, what_works=what_works),)


@pytest.mark.parametrize("half", [["x"], 5])
@pytest.mark.parametrize("read", [read_standing, read_to_destroy])
def test_half_a_template_is_one_line(half: Any, read: Callable[[Api, Assembly], Standing]) -> None:
    torn = replace(FOUNDATION, template=half)
    with pytest.raises(
        AssemblyError, match=r"^the deployed stacks cannot be read: the answer to cloudformation:GetTempl"
    ):
        standing({"dev-foundation": "CREATE_COMPLETE"}, deployed=assembly(torn), read=read)


STATUSES: list[str] = get_session().get_service_model("cloudformation").shape_for("StackStatus").enum  # type: ignore[attr-defined]  # botocore: an enum of strings
AT_REST = {
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "IMPORT_COMPLETE",
    "IMPORT_ROLLBACK_COMPLETE",
}
NOT_THERE = {"REVIEW_IN_PROGRESS", "DELETE_COMPLETE", "ROLLBACK_COMPLETE"}
FAILED = {"CREATE_FAILED", "UPDATE_FAILED", "ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED", "DELETE_FAILED"}
UNKNOWN = {"IMPORT_ROLLBACK_FAILED"}
BUSY = {each for each in STATUSES if each.endswith("_IN_PROGRESS")} - NOT_THERE


def test_each_status_of_a_stack_is_in_one_set() -> None:
    """CloudFormation user guide, "Stack status codes"."""
    sets = (AT_REST, NOT_THERE, FAILED, UNKNOWN, BUSY)
    assert sorted(STATUSES) == sorted(each for one in sets for each in one)


@row_by_row("status", [*STATUSES, "HALTED"])
def test_no_verb_deploys_or_deletes_what_takes_neither(status: str) -> None:
    """Of each status that CloudFormation has, and of one that it may get."""
    statuses = {"dev-foundation": "CREATE_COMPLETE", "dev-storage": status}
    planned_from = standing(statuses)
    assert (not planned_from.blockers) == (status in AT_REST | NOT_THERE)
    assert ("dev-storage" in {each.name for each in planned_from.base.stacks}) == (
        status not in NOT_THERE | {"ROLLBACK_FAILED"}
    )
    destroyed = standing(statuses, read=read_to_destroy)
    assert (not destroyed.blockers) == (status in AT_REST | NOT_THERE | FAILED)


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS"])
def test_an_incomplete_first_deployment_is_created_again(status: str) -> None:
    found = standing({"dev-foundation": "CREATE_COMPLETE", "dev-storage": status})
    assert [each.name for each in found.base.stacks] == ["dev-foundation"]
    assert found.blockers == ()


@pytest.mark.parametrize("head", [HEAD, assembly(stack("foundation")), assembly(stack("foundation"), stack("storage"))])
@pytest.mark.parametrize("protected", [[], ["dev-storage"]])
def test_what_is_left_of_a_creation_is_not_deleted_unnamed(head: Assembly, protected: list[str]) -> None:
    # the CDK CLI deletes it first (2.1148.1, deployStack); what it imports is held by a stack of ours, not of others
    held = {
        "Cluster": {"Type": "AWS::SageMaker::Cluster", "Properties": {}},
        "Files": {"Type": "AWS::FSx::FileSystem", "Properties": {}},
        "Role": {"Type": "AWS::IAM::Role", "Properties": {}},
    }
    found = standing(
        {"dev-foundation": "CREATE_COMPLETE", "dev-storage": "ROLLBACK_FAILED"},
        head=head,
        deployed=assembly(FOUNDATION, stack("storage", imports=["vpc"], resources=held)),
        imports={"Imports": ["dev-storage"]},
        protected=protected,
    )
    why = (
        "dev-storage is ROLLBACK_FAILED: a failed creation could not be rolled back. What is left of it, which can "
        "be Always, Cluster and Files, would be deleted to create it again, and holds what it imports."
    )
    what_works = (
        "'hyperpod-cdk recover dev' names the cause and what will be deleted, and deletes the rest of it; then plan"
    )
    assert found.blockers == (Refusal(why=why, what_works=f"{what_works} again."),)
    assert found.importers == {}
    plan = planned(found.base, found.head, blockers=found.blockers, importers=found.importers)
    assert (plan.steps, [each.why for each in plan.refusals]) == ((), [why])


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE"])
def test_protected_resources_are_not_recreated(status: str) -> None:
    # the CDK CLI deletes it first (2.1148.1, deployStack), which CloudFormation refuses for a protected one
    found = standing({"dev-foundation": "CREATE_COMPLETE", "dev-storage": status}, protected=["dev-storage"])
    why = f"dev-storage is {status} and protected against deletion; it must be deleted to be created again."
    what_works = "'hyperpod-cdk recover dev' names the cause and deletes the rest of it; then plan again."
    assert found.blockers == (Refusal(why=why, what_works=what_works),)


@pytest.mark.parametrize(
    "status", ["CREATE_COMPLETE", "CREATE_FAILED", "DELETE_FAILED", "UPDATE_ROLLBACK_FAILED", "IMPORT_ROLLBACK_FAILED"]
)
def test_a_stack_of_others_has_our_name(status: str) -> None:
    """Also one that takes no deployment: 'recover' refuses it, and is not offered."""
    theirs = stack("storage")
    theirs = type(theirs)(**{**vars(theirs), "template": {"Resources": {"Site": {"Type": "AWS::S3::Bucket"}}}})
    found = standing(
        {"dev-foundation": "CREATE_COMPLETE", "dev-storage": status},
        deployed=assembly(FOUNDATION, theirs),
    )
    (refusal,) = found.blockers
    assert refusal.why == (
        "dev-storage is deployed and has no resource in common with the stack of that name: it belongs to somebody "
        "else, or to another app (SHA-256 of its template: 566784a78ab2)."
    )


@pytest.mark.parametrize(("imports", "blocked"), [(["vpc"], 0), ([], 1)])
def test_a_stack_that_left_the_app_is_ours_where_it_is_joined_to_ours(imports: list[str], blocked: int) -> None:
    # 'platform' is a name that an environment's stack can have had
    deployed = assembly(FOUNDATION, stack("platform", imports=imports))
    found = standing(
        {"dev-foundation": "CREATE_COMPLETE", "dev-platform": "CREATE_COMPLETE"},
        head=assembly(FOUNDATION),
        deployed=deployed,
    )
    why = (
        "dev-platform is deployed and uses nothing of this environment's stacks, and they use nothing of it: it"
        " belongs to somebody"
    )
    assert [each.why for each in found.blockers] == [
        f"{why} else, or to another app (SHA-256 of its template: 37c04c06f00b)."
    ] * blocked


def test_who_else_imports_is_asked_of_what_goes() -> None:
    statuses = {"dev-foundation": "CREATE_COMPLETE", "dev-storage": "CREATE_COMPLETE"}
    head = assembly(stack("foundation"), stack("storage"))
    assert standing(statuses, head=head).importers == {}
    found = standing(statuses, head=head, imports={"Imports": ["dev-storage", "theirs"]})
    assert found.importers == {"vpc": ("theirs",)}
    with pytest.raises(AssemblyError, match=r"^which stacks import changed exports cannot be read: "):
        standing(statuses, head=head, imports=Fails("AccessDenied", "no"))


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_FAILED", "DELETE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED"])
def test_all_that_bears_our_names_is_destroyed_whatever_its_state(status: str) -> None:
    head = assembly(FOUNDATION, stack("storage", imports=["vpc"], after=["foundation"]), stack("more"))
    found = standing({"dev-foundation": "CREATE_COMPLETE", "dev-storage": status}, head=head, read=read_to_destroy)
    assert {each.name: each.dependencies for each in found.base.stacks} == {
        "dev-foundation": (),
        "dev-storage": () if status == "ROLLBACK_COMPLETE" else ("dev-foundation",),
    }
    assert (found.blockers, found.head.stacks, found.importers) == ((), (), {})


def test_what_is_under_way_or_of_others_is_not_destroyed() -> None:
    found = standing({"dev-foundation": "CREATE_COMPLETE", "dev-storage": "UPDATE_IN_PROGRESS"}, read=read_to_destroy)
    assert [each.why for each in found.blockers] == ["dev-storage is UPDATE_IN_PROGRESS: CloudFormation works on it."]
    found = standing(
        {"dev-foundation": "CREATE_COMPLETE"}, read=read_to_destroy, imports={"Imports": ["dev-foundation", "theirs"]}
    )
    assert found.importers == {"vpc": ("theirs",)}


@pytest.mark.parametrize("lost", ["StackName", "StackId", "StackStatus", "OutputKey", "ParameterKey", "Key"])
def test_half_a_row_of_a_stack_is_no_answer(lost: str) -> None:
    row: dict[str, Any] = {
        "StackName": "dev-storage",
        "StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/dev-storage/0",
        "StackStatus": "CREATE_COMPLETE",
        "Outputs": [{"OutputKey": "a", "OutputValue": "b"}],
        "Parameters": [{"ParameterKey": "a", "ParameterValue": "b"}],
        "Tags": [{"Key": "a", "Value": "b"}],
    }
    lists = [row["Outputs"], row["Parameters"], row["Tags"]]
    for part in (row, *(each[0] for each in lists)):
        part.pop(lost, None)
    scripted = ScriptedSession({"sts:GetCallerIdentity": WHO, "cloudformation:DescribeStacks": {"Stacks": [row]}})
    own = Own(stacks=(), hyperpod_cluster="", eks_cluster="")
    aws = LiveAws.open(region=REGION, account=ACCOUNT, own=own, session=scripted.session())
    for read in (read_standing, read_to_destroy):
        with pytest.raises(AssemblyError, match=f"DescribeStacks cannot be read: '{lost}' is missing$"):
            read(aws, HEAD)
