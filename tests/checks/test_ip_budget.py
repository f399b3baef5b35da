"""The address budget of an environment's subnets, at and next to the limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import (
    EksClusterAnswer,
    HyperPodClusterAnswer,
    InstancesInCluster,
    LustreAnswer,
    NotAnswered,
    SubnetAnswer,
)
from hyperpod_cdk.checks.model import Case, Result, Status
from hyperpod_cdk.checks.run import offline
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

NEW = "new_subnets_hold_their_addresses"
STANDING = "existing_subnets_have_enough_free_addresses"
BLOCK = "network.availability_zones.use1-az5.node_cidr"
COUNT = "hyperpod.instance_groups[1].count"
NODES_5, NODES_4, CONTROL = "subnet-00000000000000005", "subnet-00000000000000004", "subnet-0000000000000000c"
EXISTING: Mapping[str, Any] = {
    "network": {
        "existing": {
            "vpc_id": "vpc-0a1b2c3d4e5f67890",
            "node_subnet_ids": {"use1-az5": NODES_5, "use1-az4": NODES_4},
            "control_plane_subnet_ids": [NODES_4, CONTROL],
        }
    }
}
DENIED = NotAnswered("no permission", action="fsx:DescribeFileSystems")


def messages(result: Result) -> list[str]:
    """What a check found, each with its place."""
    return [finding.render() for finding in result.findings]


def subnet(subnet_id: str, free: int, *, zone: str = "use1-az5", cidr: str = "10.0.0.0/23") -> SubnetAnswer:
    """A subnet with so many free addresses."""
    return SubnetAnswer(
        subnet_id=subnet_id,
        vpc_id="vpc-0a1b2c3d4e5f67890",
        availability_zone_id=zone,
        cidr=cidr,
        free=free,
        assigns_public_addresses=False,
    )


@pytest.fixture
def account(fake_aws: FakeAws) -> FakeAws:
    """An account with large subnets without resources of the environment."""
    fake_aws.answers.subnets = {
        NODES_5: subnet(NODES_5, 507),
        NODES_4: subnet(NODES_4, 507, zone="use1-az4"),
        CONTROL: subnet(CONTROL, 27, zone="use1-az1", cidr="10.0.9.0/27"),
    }
    fake_aws.answers.hyperpod_clusters = ()
    fake_aws.answers.eks_cluster = {"prod-eks": None}
    fake_aws.answers.lustre_file_systems = ()
    return fake_aws


@pytest.mark.check("new_subnets_hold_their_addresses", "passes")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {BLOCK: "10.1.0.0/24"},
        {BLOCK: "10.1.0.0/24", "storage.lustre[0].capacity_gib": 2400 * 7},
        {BLOCK: "10.1.0.0/24", COUNT: 3, "hyperpod.node_recovery": "none"},
        {"network.vpc_cidr": "10.192.0.0/23"},
    ],
)
def test_blocks_that_hold_everything(case_of: CaseOf, run_check: RunCheck, changes: Mapping[str, Any]) -> None:
    result = run_check(NEW, case_of(changes), offline())
    assert (result.status, messages(result)) == (Status.PASSED, [])


@pytest.mark.check("new_subnets_hold_their_addresses", "fails")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {BLOCK: "10.1.0.0/24", COUNT: 3},
            (
                f"{BLOCK}: must hold 327 addresses (h100: 3 nodes and 1 spare of ml.p5.48xlarge, 81 each; file systems:"
                f" 3), got 10.1.0.0/24 with 251; the smallest block that fits is a /23: set node_cidr: 10.1.0.0/23, or"
                f" lower {COUNT} to 2"
            ),
        ),
        (
            {BLOCK: "10.1.0.0/24", "storage.lustre[0].capacity_gib": 2400 * 8},
            (
                f"{BLOCK}: must hold 252 addresses (h100: 2 nodes and 1 spare of ml.p5.48xlarge, 81 each; file systems:"
                f" 9), got 10.1.0.0/24 with 251; the smallest block that fits is a /23: set node_cidr: 10.1.0.0/23, or"
                f" lower {COUNT} to 1"
            ),
        ),
    ],
)
def test_blocks_without_room_for_a_replacement(
    case_of: CaseOf, run_check: RunCheck, changes: Mapping[str, Any], says: str
) -> None:
    result = run_check(NEW, case_of(changes), offline())
    assert (result.status, messages(result)) == (Status.FAILED, [says])


def test_a_shortage_by_an_estimate_is_a_warning(case_of: CaseOf, run_check: RunCheck) -> None:
    changes = {
        BLOCK: "10.1.0.0/24",
        "hyperpod.instance_groups[1].instance_type": "ml.p4d.24xlarge",
        COUNT: 4,
        "task_governance": ...,
        "storage": ...,
    }
    result = run_check(NEW, case_of(changes), offline())
    assert (result.status, messages(result)) == (
        Status.WARNED,
        [
            (
                f"{BLOCK}: must hold 265 addresses (h100: 4 nodes and 1 spare of ml.p4d.24xlarge, 53 each), got"
                f" 10.1.0.0/24 with 251; the smallest block that fits is a /23: set node_cidr: 10.1.0.0/23, or lower"
                f" {COUNT} to 3 (the addresses of ml.p4d.24xlarge are an estimate)"
            )
        ],
    )


@pytest.mark.parametrize(
    ("vpc_cidr", "fix"),
    [
        ("10.192.0.0/24", "set vpc_cidr: 10.192.0.0/23"),
        ("10.0.2.0/24", "set vpc_cidr: 10.0.2.0/23"),
        ("10.3.1.0/24", "set vpc_cidr: 10.3.0.0/23"),
        ("10.2.1.0/24", "set vpc_cidr to a free /23"),
    ],
)
def test_a_tight_control_plane_is_a_warning(case_of: CaseOf, run_check: RunCheck, vpc_cidr: str, fix: str) -> None:
    changes = {
        "network.vpc_cidr": vpc_cidr,
        "network.availability_zones.use1-az4.node_cidr": "10.2.0.0/24",
    }
    slot = vpc_cidr.replace("/24", "/28")
    result = run_check(NEW, case_of(changes), offline())
    assert (result.status, messages(result)) == (
        Status.WARNED,
        [
            (
                f"network.vpc_cidr: {vpc_cidr} leaves each control-plane subnet 11 addresses ({slot}); 17 are better,"
                f" because EKS recommends 16 for itself and the function that runs kubectl uses 1; {fix}"
            )
        ],
    )


@pytest.mark.check("new_subnets_hold_their_addresses", "skips")
def test_a_type_without_a_number_is_skipped(case_of: CaseOf, run_check: RunCheck) -> None:
    changes = {
        "instance_types": {"ml.p9.48xlarge": {"vcpu": 192, "memory_gib": 2048}},
        "hyperpod.instance_groups[0].instance_type": "ml.p9.48xlarge",
    }
    result = run_check(NEW, case_of(changes), offline())
    assert (result.status, messages(result)) == (Status.SKIPPED, [])
    assert [(each.reason, each.path) for each in result.skipped] == [
        (
            (
                "the number of IP addresses per node of ml.p9.48xlarge is unknown (catalog of 2026-11-20); set"
                " ips_per_node under instance_types"
            ),
            "hyperpod.instance_groups[0]",
        )
    ]


def test_the_map_is_drawn_and_its_numbers_given(case_of: CaseOf, run_check: RunCheck) -> None:
    (detail,) = run_check(NEW, case_of(), offline()).details
    assert detail.text.splitlines()[0].startswith("10.192.0.0/16     VPC ")
    assert detail.data["vpc_cidr"] == "10.192.0.0/16"
    assert [each["needed"] for each in detail.data["subnets"]] == [7, 7, 1, 246, 45]


def test_an_existing_network_has_no_blocks_to_check(case_of: CaseOf, run_check: RunCheck) -> None:
    result = run_check(NEW, case_of(EXISTING), offline())
    assert (result.status, result.details) == (Status.NOT_NEEDED, ())
    nobody = run_check(STANDING, case_of(), offline())
    assert (nobody.status, nobody.details) == (Status.NOT_NEEDED, ())


@pytest.mark.check("existing_subnets_have_enough_free_addresses", "passes")
def test_existing_subnets_at_the_bound(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    """246 for the p5 and the file system, 62 for the system group and what EKS recommends beside them, 17 for EKS."""
    account.answers.subnets = {
        NODES_5: subnet(NODES_5, 246),
        NODES_4: subnet(NODES_4, 62, zone="use1-az4"),
        CONTROL: subnet(CONTROL, 17, zone="use1-az1", cidr="10.0.9.0/27"),
    }
    result = run_check(STANDING, case_of(EXISTING), account)
    assert (result.status, messages(result)) == (Status.PASSED, [])
    (detail,) = result.details
    assert [(each["subnet_id"], each["available"], each["needed"]) for each in detail.data["subnets"]] == [
        (NODES_5, 246, 246),
        (NODES_4, 62, 52),
        (CONTROL, 17, 7),
    ]


@pytest.mark.check("existing_subnets_have_enough_free_addresses", "fails")
@pytest.mark.parametrize(
    ("subnet_id", "free", "status", "says"),
    [
        (
            NODES_5,
            245,
            Status.WARNED,
            (
                "network.existing.node_subnet_ids.use1-az5: should have 246 free addresses (h100: 2 nodes and 1 spare"
                f" of ml.p5.48xlarge, 81 each; file systems: 3), got 245 in {NODES_5} (10.0.0.0/23); use a subnet with"
                f" 246 free addresses (an empty /24), or lower {COUNT} to 1"
            ),
        ),
        (
            NODES_5,
            0,
            Status.FAILED,
            (
                "network.existing.node_subnet_ids.use1-az5: must have 246 free addresses (h100: 2 nodes and 1 spare of"
                f" ml.p5.48xlarge, 81 each; file systems: 3), got 0 in {NODES_5} (10.0.0.0/23); use a subnet with 246"
                " free addresses (an empty /24)"
            ),
        ),
        (
            NODES_4,
            61,
            Status.WARNED,
            (
                f"network.existing.node_subnet_ids.use1-az4: {NODES_4} has 61 free addresses; 62 are better (system: 2"
                " nodes and 1 spare of ml.m5.2xlarge, 15 each; EKS: 6; kubectl: 1), because EKS recommends 16 for"
                " itself; use a subnet with 62 free addresses"
            ),
        ),
        (
            CONTROL,
            16,
            Status.WARNED,
            (
                f"network.existing.control_plane_subnet_ids[1]: {CONTROL} has 16 free addresses; 17 are better (EKS: 6;"
                " kubectl: 1), because EKS recommends 16 for itself; use a subnet with 17 free addresses"
            ),
        ),
        (
            CONTROL,
            6,
            Status.FAILED,
            (
                "network.existing.control_plane_subnet_ids[1]: must have 7 free addresses (EKS: 6; kubectl: 1), got 6"
                f" in {CONTROL} (10.0.0.0/23); use a subnet with 7 free addresses (an empty /28)"
            ),
        ),
    ],
)
def test_existing_subnets_beside_the_bound(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, subnet_id: str, free: int, status: Status, says: str
) -> None:
    assert isinstance(account.answers.subnets, dict)
    account.answers.subnets[subnet_id] = subnet(subnet_id, free)
    result = run_check(STANDING, case_of(EXISTING), account)
    assert (result.status, messages(result)) == (status, [says])


def test_existing_entries_are_not_added_twice(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    """After a deployment only the spare node has yet to find room, and a node that is to be added."""
    account.answers.hyperpod_clusters = (
        HyperPodClusterAnswer(
            name="prod",
            arn="",
            status="InService",
            eks_cluster_arn="",
            groups=tuple(
                InstancesInCluster(group=name, types=(), current=2, target=2, spot=False, training_plan_arn="")
                for name in ("system", "h100")
            ),
        ),
    )
    account.answers.eks_cluster = {"prod-eks": eks_cluster()}
    account.answers.lustre_file_systems = (
        LustreAnswer(
            file_system_id="fs-0a",
            deployment_type="PERSISTENT_2",
            capacity_gib=4800,
            subnet_ids=(NODES_5,),
            lifecycle="AVAILABLE",
            tags={"aws:cloudformation:stack-name": "prod-storage"},
        ),
    )
    account.answers.subnets = {
        NODES_5: subnet(NODES_5, 81),
        NODES_4: subnet(NODES_4, 15, zone="use1-az4"),
        CONTROL: subnet(CONTROL, 3, zone="use1-az1"),
    }
    assert run_check(STANDING, case_of(EXISTING), account).status is Status.PASSED
    for count in (0, 1, 2):
        # nothing more is to come: a deployment that changes nothing, or takes nodes away, is not refused for a spare
        account.answers.subnets[NODES_5] = subnet(NODES_5, 0)
        fewer = run_check(
            STANDING,
            case_of({**EXISTING, COUNT: count, "task_governance": ..., "storage.lustre[0].claim": ...}),
            account,
        )
        assert fewer.status is (Status.WARNED if count else Status.PASSED)
    assert messages(fewer) == [
        (
            "network.existing.node_subnet_ids.use1-az5: should have 81 free addresses (h100: 1 spare of"
            f" ml.p5.48xlarge, 81 each), got 0 in {NODES_5} (10.0.0.0/23); use a subnet with 81 free addresses (an"
            f" empty /25), or lower {COUNT} to 1"
        )
    ]
    account.answers.subnets[NODES_5] = subnet(NODES_5, 80)
    more = run_check(STANDING, case_of({**EXISTING, COUNT: 3}), account)
    assert more.status is Status.FAILED
    account.answers.subnets[NODES_5] = subnet(NODES_5, 81)
    more = run_check(STANDING, case_of({**EXISTING, COUNT: 3}), account)
    assert more.status is Status.WARNED
    assert messages(more) == [
        (
            "network.existing.node_subnet_ids.use1-az5: should have 162 free addresses (h100: 1 node and 1 spare of"
            f" ml.p5.48xlarge, 81 each), got 81 in {NODES_5} (10.0.0.0/23); use a subnet with 162 free addresses (an"
            f" empty /24), or lower {COUNT} to 2"
        )
    ]


def test_nodes_that_leave_may_make_room(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    """A group with a new name is created next to the old one, whose addresses are not counted."""
    old = InstancesInCluster(group="h100-old", types=(), current=2, target=2, spot=False, training_plan_arn="")
    account.answers.hyperpod_clusters = (
        HyperPodClusterAnswer(name="prod", arn="", status="InService", eks_cluster_arn="", groups=(old,)),
    )
    assert isinstance(account.answers.subnets, dict)
    account.answers.subnets[NODES_5] = subnet(NODES_5, 100)
    (finding,) = run_check(STANDING, case_of(EXISTING), account).findings
    assert finding.severity.value == "warning"
    assert finding.message.endswith(f", or lower {COUNT} to 1, unless nodes of h100-old leave first") or (
        finding.message.endswith("(an empty /24), unless nodes of h100-old leave first")
    )


def test_an_existing_file_system_adds_no_quota_for_another(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws
) -> None:
    """Of two file systems with three servers each, one exists: three addresses are still needed."""
    account.answers.lustre_file_systems = (
        LustreAnswer(
            file_system_id="fs-0a",
            deployment_type="PERSISTENT_2",
            capacity_gib=4800,
            subnet_ids=(NODES_5,),
            lifecycle="AVAILABLE",
            tags={"aws:cloudformation:stack-name": "prod-storage"},
        ),
    )
    second = {"name": "models", "availability_zone_id": "use1-az5", "capacity_gib": 4800}
    case = case_of({**EXISTING, "storage.lustre[1]": second})
    assert isinstance(account.answers.subnets, dict)
    for free, status in ((246, Status.PASSED), (245, Status.WARNED), (164, Status.FAILED)):
        account.answers.subnets[NODES_5] = subnet(NODES_5, free)
        assert run_check(STANDING, case, account).status is status


@pytest.mark.check("existing_subnets_have_enough_free_addresses", "skips")
def test_subnets_that_could_not_be_asked(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    account.answers.subnets = NotAnswered("no permission", action="ec2:DescribeSubnets")
    result = run_check(STANDING, case_of(EXISTING), account)
    assert [(each.reason, each.action) for each in result.skipped] == [("no permission", "ec2:DescribeSubnets")]
    assert not result.findings


@pytest.mark.check("existing_subnets_have_enough_free_addresses", "skips")
def test_a_shortage_that_may_be_our_own_is_skipped(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    account.answers.lustre_file_systems = DENIED
    assert run_check(STANDING, case_of(EXISTING), account).status is Status.PASSED
    assert isinstance(account.answers.subnets, dict)
    account.answers.subnets[NODES_5] = subnet(NODES_5, 245)
    result = run_check(STANDING, case_of(EXISTING), account)
    assert [(each.reason, each.action, each.path) for each in result.skipped] == [
        ("no permission", "fsx:DescribeFileSystems", "network.existing.node_subnet_ids.use1-az5")
    ]
    assert not result.findings


def test_the_addresses_of_a_subnet_that_does_not_exist_are_not_known(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws
) -> None:
    account.answers.subnets = {}
    result = run_check(STANDING, case_of(EXISTING), account)
    assert (result.status, result.details) == (Status.SKIPPED, ())
    assert f"there is no subnet {NODES_4}" in [each.reason for each in result.skipped]


def eks_cluster() -> EksClusterAnswer:
    """The environment's own EKS cluster."""
    return EksClusterAnswer(
        name="prod-eks",
        arn="",
        status="ACTIVE",
        kubernetes_version="1.35",
        authentication_mode="API",
        vpc_id="vpc-0a1b2c3d4e5f67890",
        subnet_ids=(NODES_4, CONTROL),
        security_group_ids=(),
        cluster_security_group_id="",
        endpoint="",
        endpoint_public=True,
        endpoint_private=True,
        public_access_cidrs=(),
        certificate_authority="",
        oidc_issuer="",
    )
