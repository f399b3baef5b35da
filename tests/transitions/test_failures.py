"""The cause of a failure, from events as CloudFormation writes them, and the line of the file that it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.review.changes.causes import line_of_failure
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.transitions.failures import first_failure, held_back, inside, plain_reason

STACK = {"StackId": "id", "PhysicalResourceId": "id", "LogicalResourceId": "dev-storage"}


def of_stack(status: str, reason: str = "") -> dict[str, Any]:
    return {
        **STACK,
        "ResourceType": "AWS::CloudFormation::Stack",
        "ResourceStatus": status,
        "ResourceStatusReason": reason,
    }


def of(logical_id: str, status: str, reason: str = "") -> dict[str, Any]:
    shared = {"StackId": "id", "PhysicalResourceId": "p", "ResourceType": "AWS::SQS::Queue"}
    return {**shared, "LogicalResourceId": logical_id, "ResourceStatus": status, "ResourceStatusReason": reason}


def test_what_was_cancelled_is_no_cause_and_an_older_operation_is_none() -> None:
    # the words "Resource creation cancelled" and "Resource update cancelled" are CloudFormation's
    happened = [
        of_stack("UPDATE_IN_PROGRESS", "User Initiated"),
        of("Old", "UPDATE_FAILED", "long ago"),
        of_stack("UPDATE_ROLLBACK_COMPLETE"),
        of_stack("UPDATE_IN_PROGRESS", "User Initiated"),
        of("A", "UPDATE_FAILED", "Resource update cancelled"),
        of("B", "CREATE_FAILED", "Resource creation cancelled"),
        of("C", "CREATE_FAILED", "no room"),
        of("D", "UPDATE_FAILED", "no right"),
        of_stack("UPDATE_ROLLBACK_IN_PROGRESS", "The following resource(s) failed to update: [A, B, C, D]. "),
        of("A", "UPDATE_FAILED", "gone"),
        of_stack("UPDATE_ROLLBACK_FAILED", "The following resource(s) failed to update: [A]. "),
    ]
    found = first_failure(happened[::-1], "UPDATE_ROLLBACK_FAILED")
    assert found is not None
    assert (found.logical_id, found.could_not, found.reason) == ("C", "made", "no room")
    assert [each.reason for each in held_back(happened[::-1], "UPDATE_ROLLBACK_FAILED")] == ["gone"]


@pytest.mark.parametrize(
    ("status", "events", "names"),
    [
        ("UPDATE_COMPLETE", [("A", "DELETE_FAILED"), ("B", "DELETE_FAILED"), ("A", "DELETE_COMPLETE")], ["B"]),
        ("UPDATE_COMPLETE", [("A", "DELETE_FAILED")] * 3, ["A"]),
        # what failed to change was taken back: the update has not ended well
        ("UPDATE_COMPLETE", [("A", "UPDATE_FAILED")], []),
        ("CREATE_COMPLETE", [("A", "DELETE_FAILED")], []),
        ("UPDATE_ROLLBACK_COMPLETE", [("A", "UPDATE_FAILED"), ("B", "DELETE_FAILED")], ["B"]),
        ("UPDATE_ROLLBACK_COMPLETE", [("B", "DELETE_FAILED"), ("B", "DELETE_COMPLETE")], []),
    ],
)
def test_what_an_update_has_left_behind(status: str, events: list[tuple[str, str]], names: list[str]) -> None:
    is_undone = status == "UPDATE_ROLLBACK_COMPLETE"
    happened = [
        of_stack("UPDATE_IN_PROGRESS"),
        of("Old", "DELETE_FAILED", "long ago"),
        of_stack("UPDATE_COMPLETE"),
        of_stack("UPDATE_IN_PROGRESS"),
        *([of_stack("UPDATE_ROLLBACK_IN_PROGRESS")] if is_undone else []),
        *(of(*each) for each in events),
        of_stack(status if is_undone else "UPDATE_COMPLETE"),
    ]
    assert [each.logical_id for each in held_back(happened[::-1], status)] == names


OUTER, INNER = (
    f"arn:aws:cloudformation:us-east-1:111122223333:stack/{name}/0" for name in ("dev-a-B-1", "dev-a-B-1-C-2")
)


def nested(stack: str, inner: str, logical_id: str) -> list[dict[str, Any]]:
    """Return the events of a stack whose creation fails at a nested one."""
    kind = {"ResourceType": "AWS::CloudFormation::Stack", "StackId": stack}
    begins = {**kind, "PhysicalResourceId": stack, "LogicalResourceId": "it", "ResourceStatus": "CREATE_IN_PROGRESS"}
    said = "Embedded stack was not successfully created: The following resource(s) failed to create: [Queue]."
    fails = {**kind, "PhysicalResourceId": inner, "LogicalResourceId": logical_id, "ResourceStatus": "CREATE_FAILED"}
    return [{**fails, "ResourceStatusReason": said}, begins]


def test_the_cause_is_what_failed_inside_of_nested_stacks() -> None:
    deepest = [of("Queue", "CREATE_FAILED", "no room"), of_stack("CREATE_IN_PROGRESS")]
    events = {OUTER: nested(OUTER, INNER, "C"), INNER: deepest}
    failure = first_failure(nested("id", OUTER, "B"), "ROLLBACK_COMPLETE")
    assert failure is not None
    found = inside(failure, lambda stack_id: events[stack_id])
    assert (found.place, found.reason) == ("dev-a-B-1-C-2.Queue", "no room")

    def denied(_: str) -> list[dict[str, Any]]:
        raise NotAnswered("no permission")

    # where its events are not told, what its parent says is
    assert inside(failure, denied) == failure
    assert inside(failure, lambda _: []) == failure


def test_a_stack_that_fails_without_a_resource_gives_its_own_reason() -> None:
    refused = "Export dev-a cannot be deleted as it is in use by dev-platform"
    happened = [of_stack("UPDATE_IN_PROGRESS"), of_stack("UPDATE_ROLLBACK_IN_PROGRESS", refused)]
    found = first_failure(happened[::-1], "UPDATE_ROLLBACK_COMPLETE")
    assert found is not None
    assert (found.is_of_stack, found.logical_id, found.reason) == (True, "dev-storage", refused)
    assert first_failure([], "UPDATE_ROLLBACK_COMPLETE") is None
    assert held_back(happened, "CREATE_COMPLETE") == []


@pytest.mark.parametrize(
    ("reason", "plain"),
    [
        (
            (
                'Resource handler returned message: "Not supported: v1.20.44 (Service: EKS, Request ID: 1)" '
                "(RequestToken: 2, HandlerErrorCode: InvalidRequest)"
            ),
            "Not supported: v1.20.44",
        ),
        (
            "Received response status [FAILED] from custom resource. Message returned: 1 of 15\n  short (RequestId: 3)",
            "1 of 15 short",
        ),
        ("Not authorized.", "Not authorized"),
        ("", ""),
    ],
)
def test_a_reason_is_reported_without_wrappers(reason: str, plain: str) -> None:
    assert plain_reason(reason) == plain


EVENTS = st.lists(
    st.builds(
        of,
        st.sampled_from("ABC"),
        st.sampled_from(["CREATE_COMPLETE", "CREATE_FAILED", "UPDATE_FAILED", "DELETE_COMPLETE"]),
        st.sampled_from(["", "x", "Resource creation cancelled", "Resource update cancelled"]),
    )
    | st.builds(of_stack, st.sampled_from(["CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"])),
    max_size=12,
)


@given(EVENTS)
def test_the_cause_is_the_first_own_failure_since_the_operation_began(events: list[dict[str, Any]]) -> None:
    found = first_failure(events[::-1], "UPDATE_ROLLBACK_FAILED")
    begins = [number for number, each in enumerate(events) if each["ResourceStatus"] == "UPDATE_IN_PROGRESS"]
    after = events[begins[-1] :] if begins else []
    own = [
        each["LogicalResourceId"]
        for each in after
        if each["ResourceStatus"].endswith("_FAILED") and "cancelled" not in each["ResourceStatusReason"]
    ]
    assert (found.logical_id if found else None) == (own[0] if own else None)


FILE = """
name: dev
account: "111122223333"
region: us-east-1
eks:
  admin_role_arns: ["arn:aws:iam::111122223333:role/admin"]
  addon_versions: {vpc-cni: v1.20.44-eksbuild.1}
network:
  availability_zones: {use1-az5: {}, use1-az4: {}}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
    - {name: more, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
storage:
  lustre:
    - name: scratch
      availability_zone_id: use1-az4
      capacity_gib: 1200
"""


@pytest.mark.parametrize(
    ("path", "reason", "line", "place"),
    [
        # its path, as the quota gate states it
        (
            "x",
            "needs more; hyperpod.instance_groups[1].count: needs 4 ml.m5.2xlarge",
            13,
            "hyperpod.instance_groups[1].count",
        ),
        # likewise of a key that is left out: the line of what it would stand in
        ("x", "needs one more: storage.lustre[0].claim: none", 16, "storage.lustre[0].claim"),
        # a value that stands once
        ("x", "Addon version specified is not supported: v1.20.44-eksbuild.1", 7, "eks.addon_versions.vpc-cni"),
        # the item that it is made of
        ("dev/storage/Lustre-scratch/FileSystem", "no capacity", 16, "storage.lustre[0]"),
        # a value that stands twice, words, an account, a path that the file does not have
        ("x", "no ml.m5.2xlarge is left", None, None),
        ("x", "the system is out of more", None, None),
        ("x", "account 111122223333 in us-east-1 may not", None, None),
        ("x", "see docs.aws.amazon.com, ec2.describe_vpcs, network.example.com, storage.lustre[1].claim", None, None),
        ("dev/storage/Lustre-other/FileSystem", "no capacity", None, None),
    ],
)
def test_the_line_of_the_file_that_a_failure_is_about(
    tmp_path: Path, path: str, reason: str, line: int | None, place: str | None
) -> None:
    file = tmp_path / "dev.yaml"
    file.write_text(FILE, encoding="utf-8")
    made = Resource(stack="dev-storage", logical_id="It", type="AWS::FSx::FileSystem", body={}, path=path)
    found = line_of_failure(made, reason, load_environment(file))
    assert (found.line if found else None, found.path if found else None) == (line, place)
    assert found is None or found.file.endswith("dev.yaml")
