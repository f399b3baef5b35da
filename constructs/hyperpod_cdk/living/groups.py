"""Instance groups and their counts: which ones Karpenter sets, what a deployment does to nodes, since when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC
from typing import Any, Final

from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.living.look import Stated, reading
from hyperpod_cdk.living.model import Difference, Next, Unread
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.review.nouns import count
from hyperpod_cdk.templates.groups import CLUSTER as CLUSTER  # noqa: PLC0414 - re-exported for callers
from hyperpod_cdk.templates.groups import instance_groups

_LISTS: Final = ("InstanceGroups", "RestrictedInstanceGroups")
_GROUP: Final = re.compile(r"(?:Restricted)?InstanceGroups\[([^\]]+)\](?:\.(\w+))?")


def without_scaled(stated: Stated) -> dict[str, Any]:
    """Leave out the counts that Karpenter sets: its changes are no drift."""
    resource = stated.resource
    scaled = {
        each.name
        for each in instance_groups(stated.assembly)
        if each.is_scaled and (each.cluster.stack, each.cluster.logical_id) == (resource.stack, resource.logical_id)
    }
    return {
        name: [
            {key: member for key, member in each.items() if key != "InstanceCount"}
            if isinstance(each, dict) and each.get("InstanceGroupName") in scaled
            else each
            for each in value
        ]
        if name in _LISTS and isinstance(value, list)
        else value
        for name, value in stated.properties.items()
    }


def sent(resource_type: str, place: str, actual: str | None, wanted: str | None) -> Next | None:
    """Say what happens to nodes if UpdateCluster gets what the file says; None if this place is not a group's size.

    UpdateCluster brings every group to the InstanceCount in the request, and picks the nodes to terminate at random
    (developer guide, "Scaling down a SageMaker HyperPod cluster"). Some pages of the guide say that a group that is
    missing in the request is deleted; another page says that this needs InstanceGroupsToDelete.
    """
    found = _GROUP.fullmatch(place) if resource_type == CLUSTER else None
    if found is None:
        return None
    name, member = found.groups()
    if member == "InstanceCount" and actual is not None and wanted is not None:
        return _resized(name, actual, wanted)
    if member is not None:
        return None
    if wanted is None:
        return Next(
            effect="unknown",
            sentence=(
                f"Unknown: the update leaves out group {name}. AWS's pages differ on whether that alone deletes it with"
                " its nodes; add it to the file first."
            ),
            nodes_lost=None,
        )
    if actual is None:
        return Next(effect="makes", sentence=f"Creates group {name} again, with new nodes.")
    return None


def _resized(name: str, actual: str, wanted: str) -> Next | None:
    if not (actual.isdecimal() and wanted.isdecimal()):
        return None
    difference = int(wanted) - int(actual)
    if difference > 0:
        return Next(effect="sets", sentence=f"Sets {name} from {actual} to {wanted}: {_nodes(difference)} created.")
    return Next(
        effect="sets",
        sentence=(
            f"Sets {name} from {actual} back to {wanted}: {_nodes(-difference)} terminated; HyperPod chooses which."
        ),
        nodes_lost=-difference,
    )


def _nodes(number: int) -> str:
    return f"{count(number, 'node')} {plural(number, 'is', 'are')}"


def dated(aws: Api, differences: Sequence[Difference]) -> tuple[list[Difference], list[Unread]]:
    """Add to each count since when it differs, and give what was not read of that.

    The time is that of the last scaling operation that HyperPod lists, which it does for 14 days (developer guide,
    "Tracking requests with SageMaker HyperPod cluster operations"); a cluster without one has no such time.
    """
    times: dict[str, str] = {}
    skipped: list[Unread] = []
    found: list[Difference] = []
    for each in differences:
        if each.type != CLUSTER or not each.path.endswith("].InstanceCount"):
            found.append(each)
            continue
        if each.id not in times:
            times[each.id] = ""
            try:
                times[each.id] = _last_scaling(aws, each.id)
            except NotAnswered as missing:
                what = f"when {each.stack} / {each.resource} was last scaled"
                skipped.append(Unread(what=what, reason=missing.reason, action=missing.action, aws_said=missing.said))
        found.append(each.model_copy(update={"since": times[each.id]}))
    return found, skipped


def _last_scaling(aws: Api, cluster: str) -> str:
    """Return when the last scaling of a cluster began (ListClusterOperations, botocore 1.44.5), empty if none did."""
    asked = {"Type": "Scaling", "SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 1}
    try:
        answer = aws.call("sagemaker", "list_cluster_operations", ClusterName=cluster, **asked)
    except NotFound:
        return ""
    with reading("sagemaker:ListClusterOperations"):
        times = [each["CreationTime"].astimezone(UTC) for each in answer["ClusterOperationSummaries"]]
        return f"last scaled {times[0]:%Y-%m-%d %H:%M} UTC" if times else ""
