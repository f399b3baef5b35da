"""A group that replaces another: next to it if quota and plan allow both, otherwise after it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.handlers.quota_gate.comparison import Unread, Usage
from hyperpod_cdk.handlers.quota_gate.reading import NoSuchQuota, NotFound
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.groups import CLUSTER
from hyperpod_cdk.transitions.between import with_stacks
from hyperpod_cdk.transitions.plan import betweens
from hyperpod_cdk.transitions.room import Room, room_for, swaps, verdict
from tests.support.tables import row_by_row
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


TOTAL, EACH = (quotas.get(f"hyperpod_instances_{word}") for word in ("total", "per_cluster"))


def known(limit: float, *, total: float = 99, each: float = 99, **more: Any) -> Room:
    limits = {quotas.cluster_usage(P5).key: limit, TOTAL.key: total, EACH.key: each}
    return Room(limits={**limits, quotas.cluster_spot_usage(P5).key: limit}, **more)


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


MOVE = "Move the jobs of instance group old to new, or end them: HyperPod drains none before it terminates the nodes."


def test_jobs_move_between_the_steps() -> None:
    first, last = planned(OLD, NEW, room=known(4)).steps
    assert (first.first, first.loses, first.needs_a_person) == ((), (), False)
    assert last.first == (MOVE,)
    assert last.needs_a_person
    says = (
        "In this step dev-hyperpod is deployed in its present form with instance group new and old, so that"
        " jobs can move before a later step removes old; there is room for both: the quota 'ml.p5.48xlarge for"
        " cluster usage' is 4, and both use 4 in this cluster; the quota 'Total number of instances allowed"
        " across SageMaker HyperPod clusters' is 99, and both use 6 in this cluster; the quota 'Maximum number"
        " instances allowed per SageMaker HyperPod cluster' is 99, and both use 6 in this cluster."
    )
    assert first.between == (says,)


def test_the_other_order_is_reported() -> None:
    first, last = planned(OLD, NEW, room=known(3)).steps
    says = (
        "In this step dev-hyperpod is deployed in its present form without instance group old, and a later step"
        " adds new: there is no room for both, because the quota 'ml.p5.48xlarge for cluster usage' is 3, and"
        " both use 4 in this cluster. Jobs cannot move from one to the other; they start again."
    )
    assert first.between == (says,)
    assert first.needs_a_person
    assert last.loses == ()


def _system(name: str) -> dict[str, Any]:
    return group(name, 2, "ml.m5.2xlarge")


@pytest.mark.parametrize(
    ("m5", "p5", "total", "stand"),
    [
        (4, 4, 8, ["system", "old", "sys2", "new"]),
        # jobs without accelerators can move, those with start again
        (4, 3, 8, ["system", "sys2"]),
        (4, 3, 6, ["system", "sys2"]),
        (3, 4, 8, ["old", "new"]),
        # nor is there room for the one once the others are gone: all in one update
        (4, 3, 3, None),
        (3, 3, 8, None),
    ],
)
def test_each_kind_of_group_has_room_of_its_own(m5: float, p5: float, total: float, stand: list[str] | None) -> None:
    base, head = cluster(_system("system"), group("old")), cluster(_system("sys2"), group("new"))
    limits = {quotas.cluster_usage("ml.m5.2xlarge").key: m5, quotas.cluster_usage(P5).key: p5}
    room = Room(limits={**limits, TOTAL.key: total, EACH.key: 99})
    found = planned(base, head, room=room)
    if stand is None:
        (step,) = found.steps
        assert any("so that jobs cannot move: there is no room for both" in each for each in step.interrupts)
        return
    assert steps(found) == BOTH
    middle = with_stacks(base, [each.stack for each in betweens(base, head, room)])
    assert names(middle) == stand
    for later in (room, Room(), known(1)):
        again = planned(middle, head, room=later)
        assert [(each.first, each.loses) for each in again.steps] == [
            (each.first, each.loses) for each in found.steps[1:]
        ]


def test_what_becomes_of_each_kind_of_group_is_stated() -> None:
    base = cluster(_system("system"), group("old"))
    head = cluster(_system("sys2"), group("new", TrainingPlanArn=PLAN))
    limits = {quotas.cluster_usage("ml.m5.2xlarge").key: 9, TOTAL.key: 9, EACH.key: 9}
    first, last = planned(base, head, room=Room(limits=limits, available={PLAN: 0})).steps
    assert first.between == (
        (
            "In this step dev-hyperpod is deployed in its present form without instance group old, and a later"
            " step adds new: there is no room for both, because training plan april has 0 left, and new takes 2."
            " Jobs cannot move from one to the other; they start again. In this step dev-hyperpod is deployed in"
            " its present form with instance group sys2 and system, so that jobs can move before a later step"
            " removes system; there is room for both: the quota 'ml.m5.2xlarge for cluster usage' is 9, and"
            " both use 4 in this cluster; the quota 'Total number of instances allowed across SageMaker HyperPod"
            " clusters' is 9, and both use 4 in this cluster; the quota 'Maximum number instances allowed per"
            " SageMaker HyperPod cluster' is 9, and both use 4 in this cluster."
        ),
    )
    assert [len(each.loses) for each in (first, last)] == [1, 1]
    assert last.first == (MOVE.replace("group old to new", "group system to sys2"),)


P5EN = "ml.p5en.48xlarge"


def test_jobs_move_to_the_next_chip_of_a_maker() -> None:
    first, last = planned(OLD, cluster(SYSTEM, group("new", kind=P5EN))).steps
    assert (bool(first.between), first.loses) == (True, ())
    assert "Until that later step" not in first.between[0]
    assert last.first == (MOVE,)


def _teams(*kinds: str, custom: bool = False) -> Stack:
    rows = [{"InstanceType": each, "Count": 1} for each in kinds]
    kind = "Custom::ComputeQuota" if custom else "AWS::SageMaker::ComputeQuota"
    quota = {"Type": kind, "Properties": {"ComputeQuotaConfig": {"ComputeQuotaResources": rows}}}
    return stack("platform", resources={"Quota": quota})


@pytest.mark.parametrize(
    ("before", "after", "is_said"),
    [
        (_teams(P5), _teams(P5EN), True),
        (_teams(P5, custom=True), _teams(P5EN, custom=True), True),
        (_teams(P5, P5EN), _teams(P5EN), False),
        # of the old type nobody has one either
        (_teams("ml.g5.xlarge"), _teams(P5EN), False),
        (_teams(), _teams(P5EN), False),
    ],
)
def test_teams_without_a_quota_for_the_new_type_wait(before: Stack, after: Stack, *, is_said: bool) -> None:
    base = assembly(*OLD.stacks, before)
    head = assembly(*cluster(SYSTEM, group("new", kind=P5EN)).stacks, after)
    (said,) = planned(base, head).steps[0].between
    wait = f" Until that later step no team has a quota for {P5EN}: jobs for it wait."
    assert said.endswith(wait) is is_said


def _scripted(name: str, folder: str, *, kind: str = P5) -> Assembly:
    uploaded = {"Type": "Custom::CDKBucketDeployment", "Properties": {"DestinationBucketKeyPrefix": folder}}
    scripts = {"SourceS3Uri": {"Fn::Join": ["/", ["s3:/", {"Fn::ImportValue": "bucket"}, folder]]}}
    body = cluster(SYSTEM, group(name, kind=kind, LifeCycleConfig=scripts)).by_name["dev-hyperpod"]
    foundation = stack("foundation", exports=["bucket"], resources={"Upload": uploaded})
    return assembly(foundation, replace(body, dependencies=("dev-foundation",)))


def test_scripts_that_another_stack_uploads_come_first() -> None:
    base, head = _scripted("old", "one"), _scripted("new", "two", kind=P5EN)
    found = planned(base, head)
    assert steps(found) == [
        ("deploy", "dev-foundation", "dev-hyperpod", "exclusively"),
        ("deploy", "dev-hyperpod"),
    ]
    (form,) = betweens(base, head)
    assert form.first == ("dev-foundation",)
    assert names(assembly(form.stack)) == ["system", "old", "new"]
    middle = with_stacks(base, [head.by_name["dev-foundation"], form.stack])
    assert steps(planned(middle, head)) == [("deploy", "dev-hyperpod")]


def test_what_is_not_known_is_reported() -> None:
    (said,) = planned(OLD, NEW).steps[0].between
    defaults = (quotas.cluster_usage(P5).default, TOTAL.default, EACH.default)
    assert said.endswith(
        "; it is unknown whether there is room for both: the quotas 'ml.p5.48xlarge for cluster usage', 'Total number "
        "of instances allowed across SageMaker HyperPod clusters' and 'Maximum number instances allowed per SageMaker "
        "HyperPod cluster' are unknown (AWS was not asked; AWS's defaults as of "
        "{}: {}, {} and {}). Without room HyperPod refuses this step or adds no node, and old stays as it is: in that "
        "case, remove it from the file first.".format(quotas.AS_OF, *defaults)
    )


def of_others(count: float, *unread: Unread) -> dict[tuple[str, str], Usage]:
    used = Usage(at_least=count, unread=unread)
    return {("Cluster", f"hyperpod_instances:{P5}"): used, ("Cluster", "hyperpod_instances"): used}


UNREAD = Unread(kind="HyperPod cluster", name="far", reason="no permission")


@row_by_row(
    "room, has_room, says",
    [
        # the old two and the new two, beside two for the system
        (known(4, total=6, each=6), True, "and both use 4 in this cluster"),
        (known(3), False, "the quota 'ml.p5.48xlarge for cluster usage' is 3, and both use 4 in this cluster"),
        (known(9, total=5), False, f"the quota '{TOTAL.name}' is 5, and both use 6 in this cluster"),
        (known(9, each=5), False, f"the quota '{EACH.name}' is 5, and both use 6 in this cluster"),
        # a quota is the account's: other clusters take of it, and not of what one cluster may have
        (known(5, others=of_others(1), each=6), True, "both use 4 in this cluster, other clusters 1"),
        (known(4, others=of_others(1)), False, "is 4, and both use 4 in this cluster, other clusters 1"),
        (
            known(9, others=of_others(0, UNREAD)),
            None,
            "both use 4 in this cluster; the use of other clusters is unknown (no permission)",
        ),
        # what could be read is too much already
        (known(4, others=of_others(1, UNREAD)), False, "is 4, and both use 4 in this cluster, other clusters 1"),
        (Room(limits={TOTAL.key: 5}), False, f"the quota '{TOTAL.name}' is 5, and both use 6 in this cluster"),
    ],
)
def test_every_quota_that_both_run_into(room: Room, says: str, *, has_room: bool | None) -> None:
    told = verdict(room, OLD, swaps(OLD, NEW)[0])
    assert told.has_room is has_room
    assert says in told.says


def spot(name: str, count: int = 2) -> dict[str, Any]:
    return group(name, count, CapacityRequirements={"Spot": {}})


def test_spot_has_quotas_of_its_own() -> None:
    spots = {quotas.get(f"hyperpod_spot_instances_{word}").key: 99.0 for word in ("total", "per_cluster")}
    usage, spot_usage = quotas.cluster_usage(P5), quotas.cluster_spot_usage(P5)
    head = cluster(SYSTEM, spot("new"))
    limits = {TOTAL.key: 99.0, EACH.key: 99.0, **spots, usage.key: 0.0, spot_usage.key: 2.0}
    # the old one is no Spot group, and its quota is full
    assert verdict(Room(limits=limits), OLD, swaps(OLD, head)[0]).has_room is True
    base = cluster(SYSTEM, spot("old", 1))
    told = verdict(Room(limits=limits), base, swaps(base, head)[0])
    assert (told.has_room, told.says) == (
        False,
        "the quota 'ml.p5.48xlarge for cluster spot instance usage' is 2, and both use 3 in this cluster",
    )


def test_groups_of_one_plan_share_what_is_free_in_it() -> None:
    head = cluster(SYSTEM, group("new", TrainingPlanArn=PLAN), group("more", TrainingPlanArn=PLAN))
    (swap,) = swaps(OLD, head)
    told = verdict(known(99, available={PLAN: 3}), OLD, swap)
    assert (told.has_room, told.says) == (False, "training plan april has 3 left, and new and more take 4")
    assert verdict(known(99, available={PLAN: 4}), OLD, swap).has_room is True


def test_a_count_that_is_not_known_is_not_zero() -> None:
    count: dict[str, Any] = {"Ref": "Count"}
    base = cluster(SYSTEM, group("old", count))
    (swap,) = swaps(base, NEW)
    told = verdict(known(99), base, swap)
    assert told.has_room is None
    assert told.says.startswith(
        "the quota 'ml.p5.48xlarge for cluster usage' is 99, and both use 2 in this cluster, without groups"
        " whose count is known only at deployment"
    )
    assert verdict(known(1), base, swap).has_room is False


def test_groups_of_karpenter_are_no_matter_of_room() -> None:
    def scaled(name: str) -> Assembly:
        body = cluster(SYSTEM, group(name, 0)).by_name["dev-hyperpod"].resources["Cluster"].body
        body["Properties"]["AutoScaling"] = {"Mode": "Enable", "AutoScalerType": "Karpenter"}
        return assembly(stack("hyperpod", resources={"Cluster": dict(body)}))

    assert swaps(scaled("old"), scaled("new")) == []


def test_a_cluster_without_a_name_in_the_template_may_be_counted_twice() -> None:
    def unnamed(name: str) -> Assembly:
        properties = {"ClusterName": {"Ref": "Name"}, "InstanceGroups": [SYSTEM, group(name)]}
        return assembly(stack("hyperpod", resources={"Cluster": {"Type": CLUSTER, "Properties": properties}}))

    (swap,) = swaps(unnamed("old"), unnamed("new"))
    told = verdict(known(99), unnamed("old"), swap)
    assert swap.called == ""
    assert told.has_room is None
    assert "(the name of this one is known only at deployment)" in told.says


@pytest.mark.parametrize(
    ("free", "stand"), [(1, ["system"]), (2, ["system", "old", "new"]), (None, ["system", "old", "new"])]
)
def test_a_training_plan_has_room_for_what_is_free_in_it(free: int | None, stand: list[str]) -> None:
    head = cluster(SYSTEM, group("new", TrainingPlanArn=PLAN))
    missing = {PLAN: "no permission"} if free is None else {}
    room = known(99, available={} if free is None else {PLAN: free}, missing=missing)
    assert names(with_stacks(OLD, [each.stack for each in betweens(OLD, head, room)])) == stand
    told = verdict(room, OLD, swaps(OLD, head)[0])
    assert told.says.startswith("it is unknown whether training plan april has enough left (no permission)") is (
        free is None
    )


@row_by_row(
    "base, head",
    [
        # nobody's nodes go, or nobody's come
        (OLD, cluster(SYSTEM)),
        (cluster(SYSTEM), NEW),
        (cluster(SYSTEM, group("old", 0)), NEW),
        (OLD, cluster(SYSTEM, group("new", 0))),
        (OLD, cluster(SYSTEM, group("old", 3))),
        # another kind of job
        (OLD, cluster(SYSTEM, group("new", 2, "ml.m5.4xlarge"))),
        (OLD, cluster(SYSTEM, group("new", 2, "ml.trn2.48xlarge"))),
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


@pytest.mark.parametrize(("others", "steps_"), [(97, BOTH), (98, BOTH), (99, BOTH[1:])])
def test_no_cluster_has_more_groups_than_hyperpod_takes(others: int, steps_: list[Any]) -> None:
    many = [group(f"g{each}", 1, "ml.m5.2xlarge") for each in range(others)]
    base, head = cluster(*many, group("old")), cluster(*many, group("new"))
    assert steps(planned(base, head, room=known(999, total=999, each=999))) == steps_


def test_the_last_group_with_a_node_does_not_go_first() -> None:
    assert betweens(cluster(group("old")), cluster(group("new")), known(1)) == []


ONE = "dev-hyperpod: One update removes instance group old and adds new, so that jobs cannot move: "


@pytest.mark.parametrize(
    ("base", "head", "limit", "why"),
    [
        (
            cluster(group("old")),
            cluster(group("new")),
            3,
            (
                "there is no room for both, because the quota 'ml.p5.48xlarge for cluster usage' is 3, and both"
                " use 4 in this cluster, and without old no other group with a node would be left. AWS does not"
                " document whether the update waits for the termination of the old nodes; HyperPod may refuse it."
            ),
        ),
        (
            OLD,
            cluster(SYSTEM, group("new", OverrideVpcConfig={"Subnets": [{"Fn::ImportValue": "far"}]})),
            9,
            "new needs a resource that is not deployed yet.",
        ),
        (
            OLD,
            cluster(SYSTEM, group("new", LifeCycleConfig={"SourceS3Uri": "s3://b/other"})),
            9,
            "the lifecycle scripts of new are not uploaded yet.",
        ),
        (
            cluster(*(group(f"g{each}", 1, "ml.m5.2xlarge") for each in range(99)), group("old")),
            cluster(*(group(f"g{each}", 1, "ml.m5.2xlarge") for each in range(99)), group("new")),
            9,
            "a cluster has at most 100 groups.",
        ),
    ],
    ids=["no room for the last", "not there", "scripts", "too many"],
)
def test_why_groups_are_exchanged_in_one_update_is_reported(
    base: Assembly, head: Assembly, limit: float, why: str
) -> None:
    found = planned(base, head, room=known(limit, total=999, each=999))
    assert found.steps[-1].interrupts[-1] == f"{ONE}{why}"


def in_zone(name: str, export: str) -> dict[str, Any]:
    return group(name, OverrideVpcConfig={"Subnets": [{"Fn::ImportValue": export}]})


def with_network(exports: list[str], *groups: dict[str, Any], imports: list[str] | None = None) -> Assembly:
    """Return a cluster whose groups stand in subnets of another stack, which may itself use a third one's."""
    (hyperpod,) = cluster(*groups).stacks
    network = stack("foundation", exports=exports, imports=imports or [])
    return assembly(stack("observability", exports=imports or []), network, hyperpod)


@pytest.mark.parametrize("imports", [[], ["keys"]])
def test_what_another_stack_gives_to_a_new_group_comes_first(imports: list[str]) -> None:
    """A zone that comes: its subnet, then the group in it beside the old one, then the old one goes."""
    base = with_network(["near"], SYSTEM, in_zone("old", "near"))
    head = with_network(["near", "far"], SYSTEM, in_zone("new", "far"), imports=imports)
    found = planned(base, head, room=known(9))
    keys = [("deploy", "dev-observability", "exclusively")] if imports else []
    assert steps(found) == [*keys, ("deploy", "dev-foundation", "exclusively"), *BOTH]
    assert [len(each.between) for each in found.steps] == [*([0] * len(keys)), 0, 1, 0]
    assert not [each for step in found.steps for each in step.interrupts if each.startswith(ONE)]
    # what was done is read anew, and the rest of the plan is the same
    there = with_stacks(base, [each for each in head.stacks if each.name != "dev-hyperpod"])
    rest = planned(there, head, room=known(9))
    assert steps(rest) == BOTH
    assert [each.between for each in rest.steps] == [each.between for each in found.steps[-2:]]


def test_what_goes_with_the_old_group_lets_no_other_stack_come_first() -> None:
    """The new subnet takes the name of the export that the old group uses."""
    base = with_network(["near", "far"], SYSTEM, in_zone("old", "far"))
    far = {"Value": "elsewhere", "Export": {"Name": "far"}}
    moved = with_network(["near", "new"], SYSTEM, in_zone("new", "new"))
    network = moved.by_name["dev-foundation"]
    outputs = {**network.template["Outputs"], "far": far}
    head = with_stacks(moved, [replace(network, template={**network.template, "Outputs": outputs})])
    assert betweens(base, head, known(9)) == []


@pytest.mark.parametrize("limit", [3, 9])
def test_where_a_step_goes_between_nothing_is_exchanged(limit: float) -> None:
    found = planned(OLD, NEW, room=known(limit))
    assert not [each for step in found.steps for each in step.interrupts if each.startswith(ONE)]


@dataclass
class Api:
    """Service Quotas, HyperPod clusters and training plans; what ``said`` names is answered with that sentence."""

    said: dict[str, str] = field(default_factory=dict)
    rows: dict[str, float] = field(default_factory=lambda: {QUOTA: 8, TOTAL.name: 90, EACH.name: 20})
    asked: list[str] = field(default_factory=list)
    plan: dict[str, Any] | None = field(default_factory=lambda: {"Status": "Active", "AvailableInstanceCount": 3})

    def pages(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        self._ask(service, operation)
        if operation == "list_clusters":
            return [{"ClusterName": "dev"}, {"ClusterName": "far"}]
        assert (key, params) == ("Quotas", {"ServiceCode": "sagemaker"})
        return []

    def call(self, service: str, operation: str, **params: Any) -> Any:
        self._ask(service, operation)
        if operation == "describe_training_plan":
            assert params == {"TrainingPlanName": PLAN}
            if self.plan is None:
                raise NotFound("no such plan")
            return self.plan
        if operation == "describe_cluster":
            assert params == {"ClusterName": "far"}
            return {"InstanceGroups": [{"InstanceType": P5, "CurrentCount": 3, "TargetCount": 3}]}
        codes = {each.code: each.name for each in (quotas.cluster_usage(P5), TOTAL, EACH)}
        name = codes[params["QuotaCode"]]
        if name not in self.rows:
            raise NoSuchQuota(name)
        return {"Quota": {"QuotaName": name, "QuotaCode": params["QuotaCode"], "Value": self.rows[name]}}

    send = call

    def _ask(self, service: str, operation: str) -> None:
        self.asked.append(operation)
        if operation in self.said:
            action = (
                f"{service}:{operation.title().replace('_', '')}" if self.said[operation] == "no permission" else ""
            )
            raise NotAnswered(self.said[operation], action=action)


PLANNED = cluster(SYSTEM, group("new", TrainingPlanArn=PLAN))


def test_what_the_account_has_counts() -> None:
    found = room_for(Api(), OLD, PLANNED)
    assert dict(found.limits) == {quotas.cluster_usage(P5).key: 8.0, TOTAL.key: 90.0, EACH.key: 20.0}
    assert dict(found.available) == {PLAN: 3}
    assert {key: each.at_least for key, each in found.others.items()} == {
        ("Cluster", f"hyperpod_instances:{P5}"): 3.0,
        ("Cluster", "hyperpod_instances"): 3.0,
    }
    told = verdict(found, OLD, swaps(OLD, PLANNED)[0])
    assert told.has_room is True
    assert told.says.startswith("training plan april has 3 left, and new takes 2; the quota '")
    assert "is 8, and both use 4 in this cluster, other clusters 3" in told.says


def test_nobody_is_asked_where_no_group_comes_in_the_place_of_another() -> None:
    api = Api()
    assert room_for(api, OLD, OLD) == Room()
    assert api.asked == []


ALL = ("get_service_quota", "list_service_quotas", "list_aws_default_service_quotas")
NO_QUOTAS = (
    f"the quotas '{QUOTA}', '{TOTAL.name}' and '{EACH.name}' are unknown ({{}}; AWS's defaults as of {quotas.AS_OF}: 0,"
    f" {TOTAL.default} and {EACH.default})"
)
NO_PLAN = (
    "it is unknown whether training plan april has enough left (no permission; allow sagemaker:DescribeTrainingPlan)"
)
NO_CLUSTERS = (
    f"the quota '{QUOTA}' is 8, and both use 4 in this cluster; the use of other clusters is unknown ({{0}}); the"
    f" quota '{TOTAL.name}' is 90, and both use 6 in this cluster; the use of other clusters is unknown ({{0}})"
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (dict.fromkeys(ALL, "no permission"), NO_QUOTAS.format("no permission; allow service-quotas:GetServiceQuota")),
        (dict.fromkeys(ALL, "AWS throttles"), NO_QUOTAS.format("AWS throttles")),
        ({"describe_training_plan": "no permission"}, NO_PLAN),
        ({"list_clusters": "no permission"}, NO_CLUSTERS.format("no permission")),
        ({"describe_cluster": "AWS throttles"}, NO_CLUSTERS.format("AWS throttles")),
    ],
    ids=["denied", "throttled", "plan denied", "clusters denied", "one cluster throttled"],
)
def test_what_could_not_be_read_is_not_known(said: dict[str, str], told: str) -> None:
    found = verdict(room_for(Api(said), OLD, PLANNED), OLD, swaps(OLD, PLANNED)[0])
    assert (found.has_room, found.says) == (None, told)


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (None, "AWS has no such plan"),
        ({"Status": "Expired", "AvailableInstanceCount": 9}, "its status is Expired"),
        ({"Status": "Suspended", "AvailableInstanceCount": 9}, "its status is Suspended"),
        ({"AvailableInstanceCount": 9}, "its status is unknown"),
        ({"Status": "Active"}, "AWS does not show it"),
    ],
)
def test_a_plan_that_gives_nothing_has_no_room(plan: dict[str, Any] | None, why: str) -> None:
    found = verdict(room_for(Api(plan=plan), OLD, PLANNED), OLD, swaps(OLD, PLANNED)[0])
    assert (found.has_room, found.says) == (
        None,
        (f"it is unknown whether training plan april has enough left ({why})"),
    )


def test_a_quota_that_aws_does_not_list_is_not_known() -> None:
    found = verdict(room_for(Api(rows={QUOTA: 8, EACH.name: 20}), OLD, NEW), OLD, swaps(OLD, NEW)[0])
    assert found.has_room is None
    assert found.says == (
        f"the quota '{TOTAL.name}' is unknown (Service Quotas has no quota \"{TOTAL.name}\" of sagemaker; AWS's "
        f"default as of {quotas.AS_OF}: {TOTAL.default})"
    )
