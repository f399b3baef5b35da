"""Nodes that no deployment created: shown first in a plan, confirmed by a person, and never removed by a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.handlers.quota_gate.reading import NotFound
from hyperpod_cdk.living.taken import Taken, taken
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.transitions import pages
from tests.support.tables import row_by_row
from tests.transitions.stacks import assembly, stack
from tests.transitions.test_run import Cloud, FakePerson, deployment


def cluster(counts: dict[str, Any], **more: Any) -> Assembly:
    """Return an environment with a cluster of these groups."""
    groups = [
        {"InstanceGroupName": name, "InstanceType": "ml.p5.48xlarge", "InstanceCount": number}
        for name, number in counts.items()
    ]
    properties = {"ClusterName": "dev", "InstanceGroups": groups, **more}
    resources = {
        "Cluster": {"Type": "AWS::SageMaker::Cluster", "Properties": properties},
        "Counts": {"Type": "Custom::HyperPodNodeCounts", "Properties": {}},
    }
    return assembly(stack("hyperpod", resources=resources))


BASE = cluster({"h100": 2})
OTHER = cluster({"h100": 2}, NodeRecovery="None")
SCALED: dict[str, Any] = {"Fn::GetAtt": ["Counts", "Count0"]}


@dataclass
class Scaled(Cloud):
    """A cloud whose cluster has these groups by now, or an error in place of them."""

    groups: dict[str, int] = field(default_factory=dict)
    error: Exception | None = None

    def call(self, service: str, operation: str, **params: Any) -> Any:
        if service != "sagemaker":
            return super().call(service, operation, **params)
        assert (operation, params) == ("describe_cluster", {"ClusterName": "dev"})
        if self.error:
            raise self.error
        rows = [{"InstanceGroupName": name, "TargetCount": number} for name, number in self.groups.items()]
        return {"ClusterName": "dev", "InstanceGroups": rows}


@row_by_row(
    "base, head, groups, said",
    [
        (BASE, OTHER, {"h100": 6}, "Sets h100 from 6 back to 2: 4 nodes are terminated; HyperPod chooses which."),
        (BASE, OTHER, {"h100": 3}, "Sets h100 from 3 back to 2: 1 node is terminated; HyperPod chooses which."),
        (BASE, OTHER, {"h100": 2}, ""),
        (BASE, OTHER, {"h100": 1}, ""),
        # the cluster is not in the change
        (BASE, BASE, {"h100": 6}, ""),
        (BASE, cluster({"h100": 6}), {"h100": 6}, ""),
        (BASE, cluster({"h100": 8}), {"h100": 6}, ""),
        (
            BASE,
            cluster({"h100": 4}),
            {"h100": 6},
            "Sets h100 from 6 back to 4: 2 nodes are terminated; HyperPod chooses which.",
        ),
        # what the file itself takes is the plan's own to say
        (BASE, cluster({"h100": 1}), {"h100": 2}, ""),
        (
            BASE,
            cluster({"system": 1}),
            {"h100": 6, "system": 1},
            "Deletes group h100, which has 6 nodes instead of the deployed 2.",
        ),
        (
            BASE,
            OTHER,
            {"h100": 2, "extra": 3},
            (
                "Unknown: the update leaves out group extra. AWS's pages differ on whether that alone deletes it"
                " with its nodes; add it to the file first."
            ),
        ),
        # Karpenter's
        (cluster({"h100": SCALED}), cluster({"h100": SCALED}, NodeRecovery="None"), {"h100": 40}, ""),
    ],
)
def test_what_is_taken(base: Assembly, head: Assembly, groups: dict[str, int], said: str) -> None:
    assert taken(Scaled(groups=groups), base, head) == Taken(sentences=(said,) if said else ())


def test_what_was_not_answered_is_reported() -> None:
    denied = NotAnswered("no permission for sagemaker:DescribeCluster")
    assert taken(Scaled(error=denied), BASE, OTHER).unseen == (
        (
            "Whether it removes nodes that no deployment created could not be checked: no permission for"
            " sagemaker:DescribeCluster"
        ),
    )


GONE = (
    "dev-hyperpod / Cluster: the HyperPod cluster dev no longer exists, and CloudFormation does not know that."
    " Its update of the cluster fails, and the rollback can fail for the same reason."
)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (OTHER, (GONE,)),
        # nothing of it changes, it is made anew by another name, or goes
        (BASE, ()),
        (cluster({"h100": 2}, ClusterName="other"), ()),
        (assembly(stack("hyperpod")), ()),
    ],
)
def test_a_cluster_that_is_gone_is_not_updated(head: Assembly, said: tuple[str, ...]) -> None:
    assert taken(Scaled(error=NotFound("no such cluster")), BASE, head) == Taken(gone=said)


def test_a_plan_that_updates_what_is_gone_is_refused(tmp_path: Path) -> None:
    cloud = Scaled(stacks={each.name: each for each in BASE.stacks}, error=NotFound("no such cluster"))
    person = FakePerson([True])
    assert not deployment(cloud, OTHER, person, tmp_path).run()
    assert ([each.why for each in person.shown[0].refusals], cloud.ran) == ([GONE], [])


def _cloud(groups: dict[str, int]) -> Scaled:
    return Scaled(stacks={each.name: each for each in BASE.stacks}, groups=groups)


def test_a_person_sees_it_on_top(tmp_path: Path) -> None:
    cloud, person = _cloud({"h100": 6}), FakePerson([True])
    assert deployment(cloud, OTHER, person, tmp_path).run()
    said = "Sets h100 from 6 back to 2: 4 nodes are terminated; HyperPod chooses which."
    assert person.shown[0].takes == (said,)
    assert pages.text(person.shown[0]).splitlines()[1] == f"removes nodes that no deployment created: {said}"
    assert f"**removes nodes that no deployment created**: {said}" in pages.markdown(person.shown[0])


def test_a_pipeline_takes_none(tmp_path: Path) -> None:
    cloud, person = _cloud({"h100": 6}), FakePerson(is_there=False)
    assert not deployment(cloud, OTHER, person, tmp_path).run()
    assert cloud.ran == []
    assert person.told == [
        (
            "the plan removes nodes that no deployment created; nothing was changed. Write what AWS has into the file,"
            " or deploy it from a terminal."
        )
    ]


def test_groups_that_are_scaled_while_a_plan_is_agreed_to_keep_their_nodes(tmp_path: Path) -> None:
    cloud = _cloud({"h100": 2})
    person = FakePerson([True], meanwhile=lambda: cloud.groups.update(h100=6))
    assert not deployment(cloud, OTHER, person, tmp_path).run()
    assert cloud.ran == []
    assert person.told[-1].startswith("instance groups were scaled since the plan was shown; nothing was changed.")
