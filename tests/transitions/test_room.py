"""A group in the place of another: beside it where quota and plan take both, after it where they do not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.transitions.between import with_stacks
from hyperpod_cdk.transitions.plan import betweens
from hyperpod_cdk.transitions.room import Room, room_for, swaps, verdict
from tests.transitions.stacks import assembly, planned, stack, steps

P5 = "ml.p5.48xlarge"
QUOTA = f"{P5} for cluster usage"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/april"
BOTH = [("deploy", "dev-hyperpod", "exclusively"), ("deploy", "dev-hyperpod")]


def group(name: str, count: Any = 2, kind: str = P5, **more: Any) -> dict[str, Any]:
    return {"InstanceGroupName": name, "InstanceType": kind, "InstanceCount": count, **more}


def cluster(*groups: dict[str, Any], **more: Any) -> Assembly:
    body = {"Type": "AWS::SageMaker::Cluster", "Properties": {"ClusterName": "dev", "InstanceGroups": list(groups)}}
    return assembly(stack("hyperpod", resources={"Cluster": body, **more}))


SYSTEM = group("system", 2, "ml.m5.2xlarge")
OLD = cluster(SYSTEM, group("old"))
NEW = cluster(SYSTEM, group("new"))


def known(limit: float, **more: Any) -> Room:
    return Room(limits={quotas.normalized(QUOTA): limit}, **more)


def names(assembly_: Assembly) -> list[str]:
    groups = assembly_.by_name["dev-hyperpod"].resources["Cluster"].properties["InstanceGroups"]
    return [each["InstanceGroupName"] for each in groups]


@pytest.mark.parametrize(
    ("limit", "stand"),
    [(3, ["system"]), (4, ["system", "old", "new"]), (None, ["system", "old", "new"])],
)
def test_the_quota_decides_which_comes_first(limit: float | None, stand: list[str]) -> None:
    room = Room() if limit is None else known(limit)
    found = planned(OLD, NEW, room=room)
    assert steps(found) == BOTH
    middle = with_stacks(OLD, [each.stack for each in betweens(OLD, NEW, room)])
    assert names(middle) == stand
    # the way goes on from there, whatever is known by then
    for later in (room, Room(), known(1)):
        assert steps(planned(middle, NEW, room=later)) == BOTH[1:]


MOVE = "Move the jobs of instance group old to new, or end them: HyperPod drains none before it takes the nodes away."


def test_jobs_move_between_the_steps() -> None:
    first, last = planned(OLD, NEW, room=known(4)).steps
    assert (first.first, first.loses, first.needs_a_person) == ((), (), False)
    assert last.first == (MOVE,)
    assert last.needs_a_person
    says = (
        "In this step dev-hyperpod is deployed as it stands with instance group new beside old, so that jobs can move "
        "before a later step takes old away; there is room for both: the quota 'ml.p5.48xlarge for cluster usage' is "
        "4, and both take 4 in this cluster."
    )
    assert first.between == (says,)


def test_the_other_order_is_said() -> None:
    first, last = planned(OLD, NEW, room=known(3)).steps
    says = (
        "In this step dev-hyperpod is deployed as it stands without instance group old, and new comes in a later "
        "step: there is no room for both, since the quota 'ml.p5.48xlarge for cluster usage' is 3, and both take 4 in "
        "this cluster. Jobs cannot move from one to the other; they start again."
    )
    assert first.between == (says,)
    assert first.needs_a_person
    assert last.loses == ()


def test_what_is_not_known_is_said() -> None:
    (said,) = planned(OLD, NEW).steps[0].between
    assert said.endswith(
        "; whether there is room for both is not known: the quota 'ml.p5.48xlarge for cluster usage' is not known (AWS "
        f"was not asked; AWS's default as of {quotas.AS_OF} is {quotas.cluster_usage(P5).default}). Without room "
        "HyperPod refuses this step or adds no node, and old stays as it is: take it out of the file first then."
    )


@pytest.mark.parametrize(
    ("free", "stand"), [(1, ["system"]), (2, ["system", "old", "new"]), (None, ["system", "old", "new"])]
)
def test_a_training_plan_has_room_for_what_is_free_in_it(free: int | None, stand: list[str]) -> None:
    head = cluster(SYSTEM, group("new", TrainingPlanArn=PLAN))
    room = known(99, available={} if free is None else {PLAN: free}, why="no permission")
    assert names(with_stacks(OLD, [each.stack for each in betweens(OLD, head, room)])) == stand
    told = verdict(room, OLD, swaps(OLD, head)[0])
    assert told.says.startswith("what training plan april has free is not known (no permission)") is (free is None)


@pytest.mark.parametrize(
    ("base", "head"),
    [
        # nobody's nodes go, or nobody's come
        (OLD, cluster(SYSTEM)),
        (cluster(SYSTEM), NEW),
        (cluster(SYSTEM, group("old", 0)), NEW),
        (OLD, cluster(SYSTEM, group("new", 0))),
        (OLD, cluster(SYSTEM, group("old", 3))),
        # another kind of job
        (OLD, cluster(SYSTEM, group("new", 2, "ml.m5.4xlarge"))),
        # what it uses does not stand
        (
            OLD,
            cluster(
                SYSTEM, group("new", ExecutionRole={"Fn::GetAtt": ["Role", "Arn"]}), Role={"Type": "AWS::IAM::Role"}
            ),
        ),
        (OLD, cluster(SYSTEM, group("new", OverrideVpcConfig={"Subnets": [{"Fn::ImportValue": "far"}]}))),
        (OLD, cluster(SYSTEM, group("new", LifeCycleConfig={"SourceS3Uri": "s3://b/other"}))),
    ],
)
def test_one_step_is_enough_or_all_there_is(base: Assembly, head: Assembly) -> None:
    assert betweens(base, head, known(99)) == []


def test_the_last_group_with_a_node_does_not_go_first() -> None:
    assert betweens(cluster(group("old")), cluster(group("new")), known(1)) == []


@dataclass
class Api:
    """Service Quotas and training plans."""

    denied: str = ""
    asked: list[str] = field(default_factory=list)

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        self.asked.append(operation)
        assert (service, key, params) == ("service-quotas", "Quotas", {"ServiceCode": "sagemaker"})
        if operation == self.denied:
            raise NotAnswered("no permission", action="x:Y")
        return [{"QuotaName": QUOTA, "Value": 8.0 if operation == "list_service_quotas" else 0.0}]

    def call(self, service: str, operation: str, **params: Any) -> Any:
        self.asked.append(operation)
        assert (service, operation, params) == ("sagemaker", "describe_training_plan", {"TrainingPlanName": "april"})
        if operation == self.denied:
            raise NotAnswered("no permission", action="x:Y")
        return {"AvailableInstanceCount": 3}

    send = call


PLANNED = cluster(SYSTEM, group("new", TrainingPlanArn=PLAN))


def test_what_the_account_has_counts() -> None:
    found = room_for(Api(), OLD, PLANNED)
    assert (dict(found.limits), dict(found.available)) == ({quotas.normalized(QUOTA): 8.0}, {PLAN: 3})


def test_nobody_is_asked_where_no_group_comes_in_the_place_of_another() -> None:
    api = Api()
    assert room_for(api, OLD, OLD) == Room()
    assert api.asked == []


@pytest.mark.parametrize("denied", ["list_service_quotas", "list_aws_default_service_quotas", "describe_training_plan"])
def test_what_could_not_be_read_is_not_known(denied: str) -> None:
    found = room_for(Api(denied), OLD, PLANNED)
    assert found.why == "no permission; allow x:Y"
    assert verdict(found, OLD, swaps(OLD, PLANNED)[0]).has_room is None
