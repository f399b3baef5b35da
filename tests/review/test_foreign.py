"""Templates of others, written after the shapes of public ones: the report finds what is wrong with each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hyperpod_cdk.review.figures.capacity import capacity
from hyperpod_cdk.review.model import Policy
from hyperpod_cdk.review.network.fabric import fabric
from hyperpod_cdk.review.policy import policy
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, read_template

FOLDER = Path(__file__).parent / "foreign"
REGIONS = {
    "official-setup": "us-east-2",
    "distributed-training": "us-west-2",
    "cdk-construct": "us-west-2",
    "cdk-stack": "us-west-2",
    "blog-blueprint": "ap-northeast-1",
    "eks-only": "us-west-2",
}
NO_EGRESS = (
    "must have a security group with egress of all traffic from and to itself by its ID (EFA health checks fail "
    "without it), got {}; add the self-referencing egress rule"
)


def read(name: str) -> Assembly:
    return read_template(FOLDER / f"{name}.yaml", region=REGIONS[name])


def judged(name: str) -> Policy:
    return policy(EMPTY, read(name), nag=lambda _: [])


def messages(name: str, rule: str) -> list[str]:
    return [each.message for each in judged(name).findings if each.rule == rule]


def broken(name: str) -> list[tuple[str, str]]:
    return [
        (subject.subject, proof.name)
        for subject in fabric(EMPTY, read(name)).subjects
        for proof in subject.proofs
        if proof.result == "broken"
    ]


def test_every_template_has_an_expectation() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(REGIONS)


@pytest.mark.parametrize(
    ("name", "rules", "not_proven"),
    [
        (
            "official-setup",
            {
                "cluster-tag": 1,
                "deep-health-checks": 1,
                "eks-public-endpoint": 1,
                "group-in-one-zone": 1,
                "instance-group-complete": 2,
                "kept-on-delete": 2,
                "kubernetes-version": 1,
                "partition-from-token": 4,
                "provisioning-mode": 1,
            },
            [("accelerated", "one availability zone")],
        ),
        (
            "distributed-training",
            {
                "cluster-tag": 1,
                "eks-public-endpoint": 1,
                "instance-group-complete": 2,
                "kept-on-delete": 2,
                "kubernetes-version": 1,
                "no-get-azs": 4,
                "subnet-zone-by-id": 4,
            },
            [],
        ),
        (
            "cdk-construct",
            {
                "cluster-tag": 1,
                "deep-health-checks": 1,
                "efa-security-group": 1,
                "eks-audit-log": 1,
                "instance-group-complete": 2,
                "kept-on-delete": 2,
                # 1.34 leaves standard support within 60 days of the table's day
                "kubernetes-version": 1,
            },
            [("gpu", "EFA traffic to itself")],
        ),
        (
            "cdk-stack",
            {
                "W3005": 1,
                "cluster-tag": 1,
                "deep-health-checks": 1,
                "efa-security-group": 1,
                "eks-public-endpoint": 1,
                "instance-group-complete": 2,
                "kept-on-delete": 3,
                "kubernetes-version": 1,
                "no-get-azs": 3,
                "node-role": 2,
                "subnet-zone-by-id": 3,
            },
            [("accelerated", "EFA traffic to itself")],
        ),
        (
            "blog-blueprint",
            {
                "W3010": 3,
                "cluster-tag": 1,
                "deep-health-checks": 1,
                "efa-security-group": 2,
                "eks-audit-log": 1,
                "eks-public-endpoint": 1,
                "instance-group-complete": 2,
                "kept-on-delete": 2,
                "kubernetes-version": 1,
                "node-subnet-size": 1,
                "provisioning-mode": 1,
                "s3-gateway-endpoint": 1,
                "subnet-zone-by-id": 3,
            },
            [("workers", "EFA traffic from itself"), ("workers", "EFA traffic to itself")],
        ),
        (
            "eks-only",
            {
                "W2508": 2,
                "W3010": 2,
                "eks-audit-log": 1,
                "eks-public-endpoint": 1,
                "kept-on-delete": 1,
                "kubernetes-version": 1,
                "subnet-zone-by-id": 2,
                "world-ingress": 2,
            },
            [],
        ),
    ],
)
def test_what_the_report_finds(name: str, rules: dict[str, int], not_proven: list[tuple[str, str]]) -> None:
    found = judged(name)

    assert Counter(each.rule for each in found.findings) == rules
    assert {(each.status, each.suppressed) for each in found.findings} == {("new", None)}
    assert broken(name) == not_proven


def test_the_official_template_spreads_a_group_over_two_zones() -> None:
    (message,) = messages("official-setup", "group-in-one-zone")
    assert message == (
        "InstanceGroups[accelerated].OverrideVpcConfig.Subnets: instance group accelerated must be in one "
        "Availability Zone, because EFA does not cross zones, got subnets in use2-az1, use2-az2; set "
        "OverrideVpcConfig with the subnets of one zone"
    )
    (message,) = messages("official-setup", "kubernetes-version")
    assert message == (
        "Version: EKS bills extended support for Kubernetes 1.31 since 2025-11-26, until 2026-11-26 (dates as of "
        '2026-11-20); set Version: "1.35" for a new cluster; an existing one is updated by one minor version at a'
        ' time, "1.32" first'
    )


def test_the_samples_choose_zones_of_eks_by_the_order_of_their_names() -> None:
    assert set(messages("distributed-training", "no-get-azs")) == {
        (
            "AvailabilityZone.Fn::Select.1: must not use Fn::GetAZs, whose zones differ from account to account; "
            "name Availability Zone IDs"
        )
    }


@pytest.mark.parametrize(
    ("name", "groups", "group", "detail"),
    [
        (
            "cdk-construct",
            "ControlPlaneSecurityGroup25C1A9F2, EfaGroup91D0C6B8",
            "gpu",
            "no rule lets ControlPlaneSecurityGroup (cdk-construct) or EfaGroup (cdk-construct) send to itself",
        ),
        (
            "cdk-stack",
            "SharedGroup4E5F6A7B",
            "accelerated",
            "no rule lets SharedGroup4E5F6A7B (cdk-stack) send to itself",
        ),
    ],
)
def test_the_egress_rule_that_cdk_dropped_is_missed_twice(name: str, groups: str, group: str, detail: str) -> None:
    assert messages(name, "efa-security-group") == [f"VpcConfig.SecurityGroupIds: {NO_EGRESS.format(groups)}"]

    (proof,) = [
        proof
        for subject in fabric(EMPTY, read(name)).subjects
        if subject.subject == group
        for proof in subject.proofs
        if proof.result == "broken"
    ]
    assert proof.name == "EFA traffic to itself"
    assert proof.detail == f"{detail}: 0.0.0.0/0 does not replace it; EFA health checks fail"


def test_the_workshop_gives_its_nodes_whole_services_and_loses_its_files() -> None:
    broad = (
        "ManagedPolicyArns.{}: must give the nodes only the permissions that they use, because every pod on the "
        "host network has them, too, got {}; name actions and resources"
    )
    assert messages("cdk-stack", "node-role") == [
        broad.format(1, "AmazonS3FullAccess"),
        broad.format(2, "AmazonFSxFullAccess"),
    ]
    assert (
        "DeletionPolicy: must be retained when its stack is deleted or replaces it, to keep its files, got "
        "DeletionPolicy Delete, UpdateReplacePolicy Delete; set DeletionPolicy: Retain and UpdateReplacePolicy: Retain"
    ) in messages("cdk-stack", "kept-on-delete")


def test_the_blueprint_has_too_few_addresses() -> None:
    assert messages("blog-blueprint", "node-subnet-size") == [
        (
            "CidrBlock: must have addresses for its nodes, 324 (workers 324), got 10.0.1.0/24 with 251, and AWS "
            "cannot resize a subnet; set CidrBlock to a /23"
        )
    ]
    (block,) = [each for each in capacity(EMPTY, read("blog-blueprint")).blocks if each.subnet == "PrivateA"]
    assert block.usable is not None
    assert block.used.after is not None
    assert block.used.after > block.usable


@pytest.mark.parametrize(
    ("name", "nodes", "accelerators"),
    [("official-setup", 4, 32), ("cdk-construct", 4, 32), ("cdk-stack", 2, 16), ("blog-blueprint", 4, 32)],
)
def test_accelerators_are_counted(name: str, nodes: int, accelerators: int) -> None:
    (group,) = capacity(EMPTY, read(name)).groups
    assert (group.nodes.after, group.accelerators.after) == (nodes, accelerators)
