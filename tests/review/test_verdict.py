"""The one line on top: its level, its sentence, whether a person is asked, and whether something is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.review.model import Attention, Effect, Fabric, Level, Policy, ResourceEffect
from hyperpod_cdk.review.verdict import sentence
from tests.review.judged import CLUSTER, FINDINGS, LAYER, LUSTRE, changed, finding, judged, proven, resource
from tests.support.tables import row_by_row

REFUSED = (changed("Export dev-x:It", Effect.REFUSED, is_indirect=True),)


@row_by_row(
    "resources, level, needs_approval",
    [
        ([], Level.NONE, False),
        ([resource(Effect.ADDED)], Level.ADDED, False),
        ([resource(Effect.ADDED), resource(Effect.IN_PLACE)], Level.IN_PLACE, False),
        ([resource(Effect.IN_PLACE), resource(Effect.UNKNOWN)], Level.UNKNOWN, True),
        ([resource(Effect.UNKNOWN, "Custom::Thing")], Level.UNKNOWN, False),
        ([resource(Effect.UNKNOWN), resource(Effect.INTERRUPTED)], Level.INTERRUPTED, True),
        ([resource(Effect.INTERRUPTED), resource(Effect.REFUSED)], Level.REFUSED, True),
        ([resource(Effect.REFUSED), resource(Effect.DELETED)], Level.DELETED, True),
        ([resource(Effect.DELETED), resource(Effect.REPLACED)], Level.REPLACED, True),
        # nobody knows what happens to what holds something: a person is asked
        ([resource(Effect.UNKNOWN, LUSTRE, stateful=True)], Level.UNKNOWN, True),
        ([resource(Effect.IN_PLACE, LUSTRE, stateful=True)], Level.IN_PLACE, False),
        # what is made anew without harm is no more than a change in place
        ([resource(Effect.REPLACED, LAYER)], Level.IN_PLACE, False),
        ([resource(Effect.DELETED, LAYER), resource(Effect.ADDED)], Level.IN_PLACE, False),
        # what stays in the account is out of its stack nevertheless
        ([resource(Effect.LEFT_BEHIND, LUSTRE, stateful=True)], Level.DELETED, True),
        ([resource(Effect.LEFT_BEHIND)], Level.IN_PLACE, False),
        # what is refused in part is never less than refused
        ([resource(Effect.REPLACED, LAYER, properties=REFUSED)], Level.REFUSED, True),
        ([resource(Effect.LEFT_BEHIND, properties=REFUSED)], Level.REFUSED, True),
        ([resource(Effect.REPLACED, properties=REFUSED)], Level.REPLACED, True),
        ([resource(Effect.LEFT_BEHIND, LUSTRE, stateful=True, properties=REFUSED)], Level.DELETED, True),
    ],
)
def test_level(resources: list[ResourceEffect], level: Level, needs_approval: bool) -> None:  # noqa: FBT001 - a table
    found = judged(*resources)
    assert (found.level, bool(found.needs_approval)) == (level, needs_approval)


@pytest.mark.parametrize("resource_type", [CLUSTER, LUSTRE, "AWS::EKS::Cluster", "AWS::EC2::VPC"])
@pytest.mark.parametrize(("effect", "level"), [(Effect.REPLACED, Level.REPLACED), (Effect.DELETED, Level.DELETED)])
def test_what_everything_stands_on_is_never_less(resource_type: str, effect: Effect, level: Level) -> None:
    assert judged(resource(effect, resource_type)).level is level


SCALED_DOWN = (changed("InstanceGroups[a].InstanceCount", Effect.INTERRUPTED),)
LEFT_OUT = (changed("InstanceGroups[b]", Effect.DELETED, before="4 x ml.g5.12xlarge"),)
TWO_GROUPS = (*SCALED_DOWN, changed("RestrictedInstanceGroups[b]", Effect.INTERRUPTED))


@row_by_row(
    "resources, said",
    [
        ([], "No deployed resource changes."),
        ([resource(Effect.ADDED)], "Adds 1 resource; no deployed resource changes."),
        ([resource(Effect.ADDED)] * 12, "Adds 12 resources; no deployed resource changes."),
        ([resource(Effect.IN_PLACE)], "Changes 1 resource in place."),
        (
            [resource(Effect.IN_PLACE)] * 2 + [resource(Effect.ADDED)],
            "Changes 2 resources in place and adds 1 resource.",
        ),
        ([resource(Effect.REPLACED, LAYER)], "Changes 1 resource in place."),
        (
            [resource(Effect.REPLACED, LUSTRE), resource(Effect.INTERRUPTED, CLUSTER, properties=TWO_GROUPS)]
            + [resource(Effect.IN_PLACE)] * 4,
            "Replaces 1 file system and interrupts the nodes of 2 instance groups; 4 more change in place.",
        ),
        (
            [resource(Effect.INTERRUPTED, CLUSTER, properties=SCALED_DOWN), resource(Effect.IN_PLACE)],
            "Interrupts the nodes of 1 instance group; 1 more changes in place.",
        ),
        (
            [resource(Effect.INTERRUPTED, CLUSTER), resource(Effect.ADDED)],
            "Interrupts the nodes of 1 HyperPod cluster; 1 is added.",
        ),
        # a group that is left out is one whose nodes are interrupted, and is counted once
        (
            [resource(Effect.INTERRUPTED, CLUSTER, properties=(*SCALED_DOWN, *LEFT_OUT, *LEFT_OUT))],
            "Interrupts the nodes of 2 instance groups.",
        ),
        (
            [
                resource(Effect.INTERRUPTED, CLUSTER, properties=SCALED_DOWN),
                resource(Effect.INTERRUPTED, "AWS::EKS::Nodegroup", logical_id="Other"),
            ],
            "Interrupts the nodes of 1 instance group and 1 nodegroup.",
        ),
        (
            [resource(Effect.DELETED, "AWS::EC2::Subnet")] * 2 + [resource(Effect.ADDED)] * 2,
            "Deletes 2 subnets; 2 are added.",
        ),
        (
            [resource(Effect.REFUSED, CLUSTER), resource(Effect.UNKNOWN, "Custom::Quota")],
            (
                "Changes 1 HyperPod cluster in a way that the service refuses and has unknown effects on 1 custom "
                "resource."
            ),
        ),
        ([resource(Effect.LEFT_BEHIND, LUSTRE, stateful=True)], "Leaves 1 file system behind."),
        # what holds something is named first, and of many kinds only two
        (
            [
                resource(Effect.REPLACED, "AWS::IAM::Role"),
                resource(Effect.REPLACED, "AWS::IAM::Policy"),
                resource(Effect.REPLACED, "AWS::SQS::Queue"),
                resource(Effect.REPLACED, LUSTRE, stateful=True),
            ],
            "Replaces 1 file system, 1 IAM role and 2 other resources.",
        ),
    ],
)
def test_sentence(resources: list[ResourceEffect], said: str) -> None:
    assert sentence(resources) == said
    assert judged(*resources).sentence == said


REPLACED_IN_PART = resource(Effect.REPLACED, LUSTRE, properties=REFUSED)
BROKEN_GROUP = proven("instance group", S3="broken", ECR="broken")
BROKEN_SYSTEM = proven("file system", S3="broken", ECR="holds")


@pytest.mark.parametrize(
    ("resources", "sections", "said"),
    [
        ([REPLACED_IN_PART], {}, "Replaces 1 file system. The service refuses part of the change to 1 resource."),
        (
            [REPLACED_IN_PART] * 2,
            {},
            "Replaces 2 file systems. The service refuses part of the change to 2 resources.",
        ),
        # what is refused as a whole is said once
        (
            [resource(Effect.REFUSED, LUSTRE, properties=REFUSED)],
            {},
            "Changes 1 file system in a way that the service refuses.",
        ),
        (
            [],
            {"fabric": Fabric(subjects=(BROKEN_GROUP, proven("instance group", S3="unknown")))},
            "No deployed resource changes. The network of 1 instance group is broken.",
        ),
        (
            [resource(Effect.ADDED)],
            {"fabric": Fabric(subjects=(BROKEN_SYSTEM, BROKEN_GROUP, BROKEN_SYSTEM))},
            (
                "Adds 1 resource; no deployed resource changes. The network of 1 instance group and 2 file systems "
                "is broken."
            ),
        ),
        (
            [],
            {"policy": Policy(findings=(finding(),))},
            "No deployed resource changes. The policy finds 1 error.",
        ),
        (
            [REPLACED_IN_PART],
            {
                "fabric": Fabric(subjects=(BROKEN_SYSTEM,)),
                "policy": Policy(findings=tuple(each for each, _ in FINDINGS)),
            },
            (
                "Replaces 1 file system. The service refuses part of the change to 1 resource. The network of 1 "
                "file system is broken. The policy finds 2 errors."
            ),
        ),
    ],
)
def test_what_is_wrong_is_reported(resources: list[ResourceEffect], sections: dict[str, Any], said: str) -> None:
    found = judged(*resources, **sections)
    assert (found.sentence, found.is_wrong) == (said, True)


@row_by_row(
    "resources, sections, expected",
    [
        ([], {}, False),
        *(([resource(effect)], {}, effect is Effect.REFUSED) for effect in Effect),
        ([resource(Effect.IN_PLACE, properties=REFUSED)], {}, True),
        ([resource(Effect.LEFT_BEHIND, properties=REFUSED)], {}, True),
        ([], {"fabric": Fabric(subjects=(proven("file system", S3="holds", ECR="unknown"),))}, False),
        ([], {"fabric": Fabric(subjects=(BROKEN_SYSTEM,))}, True),
        *(([], {"policy": Policy(findings=(given,))}, is_error) for given, is_error in FINDINGS),
    ],
)
def test_what_is_wrong(resources: list[ResourceEffect], sections: dict[str, Any], expected: bool) -> None:  # noqa: FBT001 - a table
    assert judged(*resources, **sections).is_wrong is expected


def test_lifted_protection_is_a_change_even_where_no_template_differs() -> None:
    lifted = Attention(effect=None, about="protection", resource="dev-x", message="It goes.")

    alone = judged(protection=[lifted])
    assert (alone.level, alone.sentence) == (Level.IN_PLACE, "Protection is removed.")
    beside = judged(resource(Effect.ADDED), protection=[lifted])
    assert beside.level is Level.IN_PLACE
    assert beside.sentence == "Adds 1 resource. Protection is removed."
