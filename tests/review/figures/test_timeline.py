"""The timeline of a deployment: dependencies, durations, and what exists if it fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import durations
from hyperpod_cdk.review.figures.timeline import timeline
from hyperpod_cdk.review.model import BlastRadius, Effect, ResourceEffect, Step, Timeline
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, read_assembly
from hyperpod_cdk.templates.difference import compare
from tests.support.assembly import shipped
from tests.support.tables import row_by_row

STACK = durations.STACK.high
OTHER = durations.OTHERS.high
NAT = "AWS::EC2::NatGateway"
EKS = "AWS::EKS::Cluster"
LUSTRE = "AWS::FSx::FileSystem"
CLUSTER = "AWS::SageMaker::Cluster"
EFA = {"LustreConfiguration": {"EfaEnabled": True}}
CHECKED = {"InstanceGroups": [{"OnStartDeepHealthChecks": ["InstanceStress"]}]}
TOPIC = "AWS::SNS::Topic"


def resource(kind: str = TOPIC, *needs: str, **properties: Any) -> dict[str, Any]:
    """Return a resource; ``needs`` are logical ids that it refers to."""
    return {
        "Type": kind,
        "Properties": {**properties, **({"Needs": [{"Ref": each} for each in needs]} if needs else {})},
    }


def assembly(**stacks: Mapping[str, Any]) -> Assembly:
    """Return stacks that need one another in their order; a name's underscores are dashes."""
    made: list[Stack] = []
    for name, resources in stacks.items():
        needed = tuple(each.name for each in made[-1:])
        made.append(Stack(name=name.replace("_", "-"), template={"Resources": resources}, dependencies=needed))
    return Assembly(environment="test", stacks=tuple(made))


def planned(base: Assembly, head: Assembly, **effects: Effect) -> Timeline:
    """Lay out the change; ``effects`` are by logical id, as the blast radius tells them."""
    changes = compare(base, head)
    told = tuple(
        ResourceEffect(
            stack=change.resource.stack,
            logical_id=change.resource.logical_id,
            type=change.resource.type,
            name=change.resource.name,
            effect=effects[change.resource.logical_id],
            stateful=False,
            summary="",
        )
        for change in changes
        if change.resource.logical_id in effects
    )
    return timeline(base, head, changes, BlastRadius(resources=told))


def first(head: Assembly) -> Timeline:
    return planned(EMPTY, head)


def step(found: Timeline, name: str, action: str | None = None) -> Step:
    (only,) = [each for each in found.steps if each.name == name and action in (None, each.action)]
    return only


def test_nothing_to_deploy() -> None:
    same = assembly(a={"X": resource()})
    assert planned(same, same) == Timeline()


def test_a_step_waits_for_what_it_refers_to() -> None:
    found = first(assembly(a={"Late": resource(TOPIC, "Nat"), "Nat": resource(NAT), "Free": resource()}))
    assert step(found, "Nat").starts.high == STACK
    assert step(found, "Late").starts.high == STACK + 5
    assert step(found, "Free").starts.high == STACK
    assert found.total.high == STACK + 5 + OTHER
    assert found.total.low == pytest.approx(durations.STACK.low + 1.4 + durations.OTHERS.low, abs=0.01)


@pytest.mark.parametrize(
    "reference",
    [
        {"Properties": {"A": {"Fn::GetAtt": ["Nat", "Id"]}}},
        {"Properties": {"A": {"Fn::GetAtt": "Nat.Id"}}},
        {"Properties": {"A": {"Fn::Sub": "x-${Nat}"}}},
        {"Properties": {"A": {"Fn::Join": ["", ["x", {"Ref": "Nat"}]]}}},
        {"Properties": {"A": {"Fn::If": ["C", {"Ref": "Nat"}, ""]}}},
        {"DependsOn": "Nat"},
        {"DependsOn": ["Nat"]},
    ],
)
def test_every_way_to_refer_counts(reference: dict[str, Any]) -> None:
    found = first(assembly(a={"Late": {"Type": TOPIC, **reference}, "Nat": resource(NAT)}))
    assert step(found, "Late").starts.high == STACK + 5


def test_a_step_waits_through_a_resource_that_does_not_change() -> None:
    def made(size: int) -> Assembly:
        return assembly(
            a={
                "Fs": resource(LUSTRE, S=size),
                "Between": resource(TOPIC, "Fs"),
                "Last": resource(TOPIC, "Between", S=size),
            }
        )

    found = planned(made(1), made(2))
    assert [each.name for each in found.steps] == ["Fs", "Last"]
    assert step(found, "Last").starts.high == STACK + 20


def test_stacks_follow_one_another() -> None:
    found = first(assembly(one={"Nat": resource(NAT)}, two={"X": resource()}))
    assert step(found, "X").starts.high == STACK + 5 + STACK
    assert not any("in parallel" in note for note in found.notes)


def test_stacks_that_do_not_need_one_another_go_side_by_side() -> None:
    first_stack = Stack(name="one", template={"Resources": {"Nat": resource(NAT)}})
    slow, quick, last = (
        Stack(name=name, template={"Resources": {name.title(): each}}, dependencies=needed)
        for name, each, needed in (
            ("slow", resource(LUSTRE), ("one",)),
            ("quick", resource(), ("one",)),
            ("last", resource(), ("slow", "quick")),
        )
    )
    found = first(Assembly(environment="test", stacks=(first_stack, slow, quick, last)))
    begin = STACK + 5 + STACK
    assert step(found, "Slow").starts.high == step(found, "Quick").starts.high == begin
    assert step(found, "Last").starts.high == begin + 15 + STACK
    assert found.total.high == begin + 15 + STACK + OTHER
    assert [each.name for each in found.steps if each.is_critical] == ["Nat", "Slow", "Last"]
    assert found.critical_path == ("one / Nat", "slow / Slow")
    assert step(found, "Quick").if_it_fails.startswith(
        "CloudFormation deletes what it created of quick; one stays as deployed."
    )
    assert found.notes[0] == (
        "Stacks that do not depend on each other are deployed in parallel, as with cdk deploy --concurrency 3; one "
        "after another, the CLI's default, they take longer."
    )


def test_a_stack_without_changes_takes_no_time() -> None:
    def made(size: int) -> Assembly:
        return assembly(one={"X": resource()}, two={"Y": resource(TOPIC, S=size)})

    found = planned(made(1), made(2))
    assert found.total.high == STACK + OTHER
    assert [each.stack for each in found.steps] == ["two"]


def test_the_critical_path_names_what_lasts() -> None:
    found = first(assembly(a={"Quick": resource(), "Nat": resource(NAT, "Quick"), "Fs": resource(LUSTRE)}))
    assert found.critical_path == ("a / Fs",)
    assert [each.name for each in found.steps if each.is_critical] == ["Fs"]
    assert not step(found, "Nat").is_critical


def test_a_path_of_quick_steps_is_named_whole() -> None:
    found = first(assembly(a={"One": resource(), "Two": resource(TOPIC, "One")}))
    assert found.critical_path == ("a / One", "a / Two")


def test_two_steps_that_both_hold_the_deployment_up_are_critical() -> None:
    found = first(assembly(a={"One": resource(NAT), "Two": resource(NAT)}))
    assert [each.is_critical for each in found.steps] == [True, True]
    assert found.critical_path == ("a / One",)


def test_deletions_come_last_and_what_refers_goes_first() -> None:
    base = assembly(a={"Nat": resource(NAT), "Route": resource(TOPIC, "Nat"), "Kept": resource(TOPIC, S=1)})
    head = assembly(a={"Kept": resource(TOPIC, S=2), "New": resource(LUSTRE)})
    found = planned(base, head)
    assert [(each.name, each.action) for each in found.steps] == [
        ("Kept", "update"),
        ("New", "create"),
        ("Route", "delete"),
        ("Nat", "delete"),
    ]
    assert step(found, "Route").starts.high == STACK + 15
    assert step(found, "Nat").starts.high == STACK + 15 + OTHER
    assert found.critical_path == ("a / New", "a / Nat")


def test_a_replacement_makes_the_new_one_and_deletes_the_old_one_at_the_end() -> None:
    base, head = (assembly(a={"Fs": resource(LUSTRE, S=size), "Nat": resource(NAT, S=size)}) for size in (1, 2))
    found = planned(base, head, Fs=Effect.REPLACED)
    assert [(each.name, each.action) for each in found.steps] == [
        ("Fs", "replace"),
        ("Nat", "update"),
        ("Fs (the old one)", "delete"),
    ]
    assert step(found, "Fs").lasts.high == 15
    assert step(found, "Fs (the old one)").starts.high == STACK + 15


def test_what_is_kept_is_not_deleted() -> None:
    kept = {**resource(LUSTRE, S=1), "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    base = assembly(a={"Fs": kept, "Other": kept})
    head = assembly(a={"Fs": {**kept, "Properties": {"S": 2}}})
    found = planned(base, head, Fs=Effect.REPLACED)
    assert [(each.name, each.action) for each in found.steps] == [("Fs", "replace")]


def test_a_stack_that_is_gone_stays_in_the_account() -> None:
    found = planned(assembly(a={"X": resource()}, b={"Y": resource(NAT)}), assembly(a={"X": resource()}))
    assert found.steps == ()
    assert found.notes == (
        "cdk deploy leaves the stack b as it is, which is no longer in the app; delete it with CloudFormation.",
    )


@pytest.mark.parametrize(
    ("kind", "before", "after", "high"),
    [
        (EKS, {"Version": "1.34"}, {"Version": "1.35"}, 25),
        (EKS, {"Version": "1.34", "Tags": []}, {"Version": "1.34", "Tags": [1]}, 12),
        (LUSTRE, {**EFA, "S": 1}, EFA, 20),
        (LUSTRE, *({"LustreConfiguration": {"PerUnitStorageThroughput": mbps}} for mbps in (125, 250)), 60),
        (LUSTRE, *({"LustreConfiguration": {"ThroughputCapacity": mbps}} for mbps in (4000, 8000)), 60),
        (CLUSTER, {"InstanceGroups": []}, CHECKED, 150),
        (CLUSTER, {"InstanceGroups": []}, {**CHECKED, "NodeProvisioningMode": "Continuous"}, 25),
        (CLUSTER, {**CHECKED, "Tags": [1]}, CHECKED, 25),
    ],
)
def test_an_update_takes_what_its_change_takes(
    kind: str, before: dict[str, Any], after: dict[str, Any], high: float
) -> None:
    base, head = (assembly(a={"X": {"Type": kind, "Properties": each}}) for each in (before, after))
    assert step(planned(base, head), "X").lasts.high == high


@row_by_row(
    "kind, properties, high",
    [
        (LUSTRE, {"LustreConfiguration": {"EfaEnabled": "true"}}, 60),
        (LUSTRE, {"LustreConfiguration": {"EfaEnabled": False}}, 15),
        ("AWS::EC2::VPCEndpoint", {"VpcEndpointType": "Interface"}, 4),
        ("AWS::EC2::VPCEndpoint", {"VpcEndpointType": "Gateway"}, OTHER),
        ("AWS::Lambda::Function", {"VpcConfig": {"SubnetIds": ["s"]}}, 1.5),
        ("AWS::Lambda::Function", {}, OTHER),
        (CLUSTER, {"InstanceGroups": [{"OnStartDeepHealthChecks": ["InstanceStress"]}]}, 150),
        (CLUSTER, {"InstanceGroups": {"Ref": "Groups"}}, 25),
    ],
)
def test_a_creation_takes_what_its_properties_take(kind: str, properties: dict[str, Any], high: float) -> None:
    assert step(first(assembly(a={"X": {"Type": kind, "Properties": properties}})), "X").lasts.high == high


def test_a_source_says_what_is_not_settled() -> None:
    assert step(first(assembly(a={"X": resource()})), "X").source == (
        "not published: a default (no number is published; seconds are customary)"
    )


def test_resources_with_a_cost_if_the_first_deployment_fails() -> None:
    found = first(
        assembly(
            net={"Nat": resource(NAT), "Gateway": resource("AWS::EC2::VPCEndpoint", VpcEndpointType="Gateway")},
            store={"Fs": {**resource(LUSTRE), "DeletionPolicy": "Retain"}, "After": resource(TOPIC, "Fs")},
            pod={"Eks": resource(EKS), "Cluster": resource(CLUSTER, "Eks")},
        )
    )
    assert step(found, "Nat").if_it_fails == (
        "CloudFormation deletes what it created of net. Nothing that costs money by the hour exists by then."
    )
    assert step(found, "After").if_it_fails == (
        "CloudFormation deletes what it created of store but keeps Fs; net stays as deployed. Existing by then, and "
        "costing money by the hour: the NAT gateway Nat and the file system Fs."
    )
    assert step(found, "Cluster").if_it_fails == (
        "CloudFormation deletes what it created of pod; net and store stay as deployed. Nodes that have started "
        "cost money until they are terminated. Existing by then, and costing money by the hour: the NAT gateway "
        "Nat, the EKS control plane Eks and the file system Fs."
    )


def test_what_happens_if_an_update_fails() -> None:
    base, head = (assembly(a={"Nat": resource(NAT), "X": resource(TOPIC, S=size)}) for size in (1, 2))
    assert step(planned(base, head), "X").if_it_fails == (
        "CloudFormation rolls a back to its earlier state. Existing by then, and costing money by the hour: the NAT "
        "gateway Nat."
    )
    assert step(planned(base, head, X=Effect.REFUSED), "X").if_it_fails == (
        "The service refuses this change, so that the deployment fails here. CloudFormation rolls a back to its "
        "earlier state. Existing by then, and costing money by the hour: the NAT gateway Nat."
    )


def test_what_happens_if_a_deletion_fails() -> None:
    found = planned(assembly(a={"X": resource(), "Y": resource()}), assembly(a={"Y": resource()}))
    assert step(found, "X").if_it_fails == (
        "CloudFormation leaves it in the account and still completes the update of a; it is not deleted later. "
        "Nothing that costs money by the hour exists by then."
    )


def test_many_of_a_kind_are_counted() -> None:
    found = first(assembly(net={f"Nat{number}": resource(NAT) for number in range(4)}, late={"X": resource()}))
    assert step(found, "X").if_it_fails.endswith("Existing by then, and costing money by the hour: 4 NAT gateways.")


def test_checks_that_cloudformation_does_not_wait_for_are_noted() -> None:
    groups = [
        {"InstanceGroupName": "gpu", "OnStartDeepHealthChecks": ["InstanceStress"]},
        {"InstanceGroupName": "system"},
    ]
    found = first(assembly(a={"C": resource(CLUSTER, NodeProvisioningMode="Continuous", InstanceGroups=groups)}))
    assert found.notes[-1] == (
        "New nodes of gpu run deep health checks for another 60 to 120 minutes before pods may use them; with "
        "continuous provisioning CloudFormation does not wait for that."
    )


def test_a_circle_is_shown_and_not_followed() -> None:
    found = first(assembly(a={"A": resource(TOPIC, "B"), "B": resource(TOPIC, "A"), "C": resource(TOPIC, "C")}))
    assert sorted(each.name for each in found.steps) == ["A", "B", "C"]


GRAPHS = st.dictionaries(
    st.integers(0, 11), st.tuples(st.sets(st.integers(0, 11)), st.sampled_from([TOPIC, NAT, LUSTRE, EKS])), min_size=1
)


@given(GRAPHS)
def test_no_step_begins_before_what_it_needs_is_done(graph: dict[int, tuple[set[int], str]]) -> None:
    resources = {
        f"R{number}": resource(kind, *(f"R{each}" for each in sorted(needs) if each < number and each in graph))
        for number, (needs, kind) in graph.items()
    }
    found = first(assembly(a=resources))
    steps = {each.name: each for each in found.steps}
    assert steps.keys() == resources.keys()
    for name, body in resources.items():
        for needed in body["Properties"].get("Needs", ()):
            before = steps[needed["Ref"]]
            assert steps[name].starts.high >= round(before.starts.high + before.lasts.high, 2) - 0.01
            assert steps[name].starts.low >= round(before.starts.low + before.lasts.low, 2) - 0.01
    ends = [each.starts.high + each.lasts.high for each in found.steps]
    assert found.total.high == pytest.approx(max(ends), abs=0.02)
    assert any(each.is_critical for each in found.steps)


def test_a_thousand_resources_are_laid_out() -> None:
    resources = {f"R{number}": resource(TOPIC, *([f"R{number // 2}"] if number else [])) for number in range(1000)}
    head = assembly(a=resources)
    changes = compare(EMPTY, head)
    found = timeline(EMPTY, head, changes, BlastRadius())
    assert len(found.steps) == 1000


def test_prod_is_deployed_in_the_order_of_its_stacks(assemblies: Path) -> None:
    shipped(assemblies, "prod")
    found = first(read_assembly(assemblies / "prod", "prod"))
    assert list(dict.fromkeys(each.stack for each in found.steps)) == [
        "prod-foundation",
        "prod-storage",
        "prod-hyperpod",
        "prod-platform",
        "prod-observability",
    ]
    assert {EKS, CLUSTER} <= {each.type for each in found.steps if each.is_critical}
    # what tests/stacks/test_times.py models lies between
    assert found.total.low < 38 < found.total.high < 90
    assert found.durations_as_of == durations.AS_OF.isoformat()


def test_what_is_replaced_only_because_of_another_is_a_step_too() -> None:
    base = assembly(dev={"Vpc": resource(NAT, Name="old"), "Cluster": resource(CLUSTER, "Vpc")})
    head = assembly(dev={"Vpc": resource(NAT, Name="new"), "Cluster": resource(CLUSTER, "Vpc")})
    told = tuple(
        ResourceEffect(
            stack="dev", logical_id=name, type=kind, name=name, effect=Effect.REPLACED, stateful=True, summary=""
        )
        for name, kind in (("Vpc", NAT), ("Cluster", CLUSTER))
    )

    laid_out = timeline(base, head, compare(base, head), BlastRadius(resources=told))

    assert [(step.name, step.action) for step in laid_out.steps] == [
        ("Vpc", "replace"),
        ("Cluster", "replace"),
        ("Cluster (the old one)", "delete"),
        ("Vpc (the old one)", "delete"),
    ]


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ((TOPIC,), None),
        ((LUSTRE, NAT), None),
        (
            ("AWS::RDS::DBInstance",),
            ("1 DB instance", "It counts", 36),
        ),
        (
            ("AWS::ElastiCache::CacheCluster", "AWS::DynamoDB::Table", TOPIC),
            ("1 cache cluster and 1 table", "They count", 12),
        ),
    ],
)
def test_what_counts_as_seconds_and_can_take_hours_is_noted(
    kinds: tuple[str, ...], said: tuple[str, str, int] | None
) -> None:
    found = first(assembly(a={f"X{number}": resource(kind) for number, kind in enumerate(kinds)}))
    expected = []
    if said:
        who, count, hours = said
        expected = [
            (
                f"It is not published how long {who} will take. {count} as seconds here, and can take hours: "
                f"CloudFormation waits for up to {hours}."
            )
        ]
    assert [each for each in found.notes if "It is not published" in each] == expected
