"""Zones and instance types of the file, compared with those of the account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import NotAnswered, SubnetAnswer, Zone
from hyperpod_cdk.checks.model import Case, Result, Status
from hyperpod_cdk.checks.run import offline
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

ZONES = "zones_exist_and_are_available"
CONTROL_PLANE = "control_plane_stands_where_eks_does"
OFFERED = "instance_types_are_offered_in_their_zones"
SCARCE = "scarce_types_do_not_rely_on_demand"
GROUP = "hyperpod.instance_groups[1]"
ON_DEMAND: Mapping[str, Any] = {f"{GROUP}.capacity": "on_demand", f"{GROUP}.training_plan_arn": ...}
NODES_5, CONTROL_1, CONTROL_2 = "subnet-00000000000000005", "subnet-00000000000000001", "subnet-00000000000000002"
EXISTING: Mapping[str, Any] = {
    "network": {
        "existing": {
            "vpc_id": "vpc-0a1b2c3d4e5f67890",
            "node_subnet_ids": {"use1-az5": NODES_5, "use1-az4": CONTROL_1},
            "control_plane_subnet_ids": [CONTROL_1, CONTROL_2],
        }
    }
}
DENIED = NotAnswered("no permission", action="ec2:DescribeAvailabilityZones")


def messages(result: Result) -> list[str]:
    """What a check found, each with its place."""
    return [finding.render() for finding in result.findings]


def zone(zone_id: str, **changes: Any) -> Zone:
    """An available zone; its name follows from its number, which is not so in every real account."""
    name = "us-east-1" + "abcdef"[int(zone_id[-1]) - 1]
    made = Zone(zone_id=zone_id, name=name, state="available", kind="availability-zone", opted_in=True)
    return replace(made, **changes)


def local_zone(*, opted_in: bool = True) -> Zone:
    """The Dallas zone."""
    return zone("use1-dfw2-az1", name="us-east-1-dfw-2a", kind="local-zone", opted_in=opted_in)


def subnet(subnet_id: str, zone_id: str) -> SubnetAnswer:
    """A subnet in a zone."""
    return SubnetAnswer(
        subnet_id=subnet_id,
        vpc_id="vpc-0a1b2c3d4e5f67890",
        availability_zone_id=zone_id,
        cidr="10.0.0.0/24",
        free=251,
        assigns_public_addresses=False,
    )


@pytest.fixture
def account(fake_aws: FakeAws) -> FakeAws:
    """An account with four zones, and the types of prod.yaml in both of its zones."""
    fake_aws.answers.zones = tuple(zone(f"use1-az{n}") for n in (1, 2, 4, 5))
    fake_aws.answers.instance_type_zones = {
        "m5.2xlarge": frozenset({"use1-az1", "use1-az2", "use1-az4", "use1-az5"}),
        "p5.48xlarge": frozenset({"use1-az2", "use1-az5"}),
    }
    fake_aws.answers.subnets = {
        CONTROL_1: subnet(CONTROL_1, "use1-az4"),
        CONTROL_2: subnet(CONTROL_2, "use1-az1"),
    }
    return fake_aws


@pytest.mark.check("zones_exist_and_are_available", "passes")
@pytest.mark.parametrize("changes", [{}, EXISTING])
def test_zones_of_the_account(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, changes: Mapping[str, Any]
) -> None:
    result = run_check(ZONES, case_of(changes), account)
    assert (result.status, messages(result)) == (Status.PASSED, [])


@pytest.mark.check("zones_exist_and_are_available", "fails")
def test_a_zone_that_the_account_does_not_have(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    account.answers.zones = (*(zone(f"use1-az{n}") for n in (6, 2, 4)), local_zone(), zone("use1-az1", opted_in=False))
    result = run_check(ZONES, case_of(), account)
    assert messages(result) == [
        (
            "network.availability_zones.use1-az5: must be a zone of account 111122223333 in us-east-1, got use1-az5;"
            " its zones are use1-az2, use1-az4, use1-az6: replace use1-az5 by one of these, also in the groups and file"
            " systems that name it"
        )
    ]
    # an existing subnet cannot stand there, which the checks of existing networks say
    assert run_check(ZONES, case_of(EXISTING), account).status is Status.PASSED


@pytest.mark.parametrize(
    ("state", "status", "says"),
    [
        ("available", Status.PASSED, []),
        ("information", Status.PASSED, []),
        (
            "impaired",
            Status.WARNED,
            [
                (
                    "network.availability_zones.use1-az5: AWS reports use1-az5 as impaired now; wait until it is"
                    " available, or use another zone"
                )
            ],
        ),
        (
            "constrained",
            Status.WARNED,
            [
                (
                    "network.availability_zones.use1-az5: AWS reports use1-az5 as constrained now; wait until it is"
                    " available, or use another zone"
                )
            ],
        ),
        (
            "unavailable",
            Status.FAILED,
            [
                (
                    "network.availability_zones.use1-az5: must be available, got use1-az5, which AWS reports as"
                    " unavailable; use another zone"
                )
            ],
        ),
    ],
)
def test_the_state_of_a_zone(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, state: str, status: Status, says: list[str]
) -> None:
    account.answers.zones = (zone("use1-az4"), zone("use1-az5", state=state))
    result = run_check(ZONES, case_of(), account)
    assert (result.status, messages(result)) == (status, says)


def test_a_local_zone_must_be_opted_in(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    account.answers.zones = (zone("use1-az4"), zone("use1-az5"), local_zone(opted_in=False))
    case = case_of({"network.availability_zones.use1-dfw2-az1": {"node_cidr": "10.9.0.0/16"}})
    assert messages(run_check(ZONES, case, account)) == [
        (
            "network.availability_zones.use1-dfw2-az1: must be opted in by account 111122223333, got use1-dfw2-az1"
            " (us-east-1-dfw-2a), which is not opted in; run 'aws ec2 modify-availability-zone-group --region"
            " us-east-1 --group-name us-east-1-dfw-2 --opt-in-status opted-in'"
        )
    ]


@pytest.mark.check("zones_exist_and_are_available", "skips")
@pytest.mark.check("control_plane_stands_where_eks_does", "skips")
@pytest.mark.parametrize("name", [ZONES, CONTROL_PLANE])
def test_zones_that_could_not_be_asked(case_of: CaseOf, run_check: RunCheck, account: FakeAws, name: str) -> None:
    account.answers.zones = DENIED
    result = run_check(name, case_of(), account)
    assert [(each.reason, each.action) for each in result.skipped] == [
        ("no permission", "ec2:DescribeAvailabilityZones")
    ]


@pytest.mark.check("control_plane_stands_where_eks_does", "passes")
@pytest.mark.parametrize("changes", [{}, EXISTING])
def test_zones_that_carry_eks(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, changes: Mapping[str, Any]
) -> None:
    result = run_check(CONTROL_PLANE, case_of(changes), account)
    assert (result.status, messages(result)) == (Status.PASSED, [])


@pytest.mark.check("control_plane_stands_where_eks_does", "fails")
def test_a_control_plane_in_a_local_zone(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    account.answers.zones = (zone("use1-az4"), zone("use1-az5"), local_zone())
    third = case_of({"network.availability_zones.use1-dfw2-az1": {"node_cidr": "10.9.0.0/16"}})
    assert run_check(CONTROL_PLANE, third, account).status is Status.PASSED
    # what AWS says of a zone, whatever form its ID has: validate refuses the IDs of Local Zones there
    account.answers.zones = (replace(zone("use1-az4"), kind="local-zone"), zone("use1-az5"))
    assert messages(run_check(CONTROL_PLANE, case_of(), account)) == [
        (
            "network.availability_zones.use1-az4: EKS does not support a control plane in a local zone, got use1-az4"
            " among the first 2, which are for it; list it after two availability zones"
        )
    ]


@pytest.mark.check("control_plane_stands_where_eks_does", "fails")
def test_existing_subnets_where_eks_takes_no_control_plane(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws
) -> None:
    account.answers.zones = (zone("use1-az3"), local_zone())
    account.answers.subnets = {
        CONTROL_1: subnet(CONTROL_1, "use1-az3"),
        CONTROL_2: subnet(CONTROL_2, "use1-dfw2-az1"),
    }
    assert messages(run_check(CONTROL_PLANE, case_of(EXISTING), account)) == [
        (
            "network.existing.control_plane_subnet_ids[0]: EKS does not support a control plane in use1-az3 "
            "(as of 2026-11-20),"
            f" where {CONTROL_1} is; name one in another zone"
        ),
        (
            "network.existing.control_plane_subnet_ids[1]: EKS does not support a control plane in "
            "use1-dfw2-az1 (a local zone),"
            f" where {CONTROL_2} is; name one in another zone"
        ),
    ]
    account.answers.subnets = {}
    assert run_check(CONTROL_PLANE, case_of(EXISTING), account).status is Status.SKIPPED


def test_what_is_known_without_the_zones_is_still_reported(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws
) -> None:
    account.answers.zones = DENIED
    account.answers.subnets = {CONTROL_1: subnet(CONTROL_1, "use1-az3")}
    result = run_check(CONTROL_PLANE, case_of(EXISTING), account)
    assert len(result.findings) == len(result.skipped) == 1
    account.answers.subnets = NotAnswered("throttled")
    result = run_check(CONTROL_PLANE, case_of(EXISTING), account)
    assert [each.reason for each in result.skipped] == ["throttled"]


def test_an_existing_cluster_has_its_control_plane(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    joined = {
        **EXISTING,
        "eks": {
            "kubernetes_version": "1.35",
            "existing": {"cluster_name": "platform", "security_group_id": "sg-0a1b2c3d4e5f67890"},
        },
    }
    assert run_check(CONTROL_PLANE, case_of(joined), fake_aws).status is Status.NOT_NEEDED
    assert fake_aws.asked == []


@pytest.mark.check("instance_types_are_offered_in_their_zones", "passes")
@pytest.mark.parametrize("changes", [{}, ON_DEMAND])
def test_types_that_are_offered(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, changes: Mapping[str, Any]
) -> None:
    result = run_check(OFFERED, case_of(changes), account)
    assert (result.status, messages(result)) == (Status.PASSED, [])


@pytest.mark.check("instance_types_are_offered_in_their_zones", "fails")
@pytest.mark.parametrize(
    ("zones", "fix"),
    [
        ({"use1-az4"}, "set availability_zone_id: use1-az4"),
        ({"use1-az4", "use1-az1"}, "set availability_zone_id: use1-az4"),
        (
            {"use1-az6", "use1-az1"},
            "add use1-az1 or use1-az6 to network.availability_zones and set availability_zone_id to it",
        ),
    ],
)
def test_a_type_that_is_offered_in_other_zones(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, zones: set[str], fix: str
) -> None:
    account.answers.instance_type_zones = {"m5.2xlarge": frozenset({"use1-az4"}), "p5.48xlarge": frozenset(zones)}
    result = run_check(OFFERED, case_of(ON_DEMAND), account)
    assert (result.status, messages(result)) == (
        Status.FAILED,
        [f"{GROUP}.availability_zone_id: must be a zone where EC2 offers ml.p5.48xlarge, got use1-az5; {fix}"],
    )
    # the plan says where its capacity is
    assert run_check(OFFERED, case_of(), account).status is Status.PASSED


def test_a_group_without_nodes_is_only_warned(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    account.answers.instance_type_zones = {
        "m5.2xlarge": frozenset({"use1-az4"}),
        "p5.48xlarge": frozenset({"use1-az4"}),
    }
    empty = {**ON_DEMAND, f"{GROUP}.count": 0, "task_governance": ..., "storage.lustre[0].claim": ...}
    result = run_check(OFFERED, case_of(empty), account)
    assert (result.status, messages(result)) == (
        Status.WARNED,
        [
            (
                f"{GROUP}.availability_zone_id: should be a zone where EC2 offers ml.p5.48xlarge, got use1-az5;"
                " set availability_zone_id: use1-az4"
            )
        ],
    )


def test_a_type_that_ec2_lists_nowhere_is_a_warning(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    account.answers.instance_type_zones = {"m5.2xlarge": frozenset({"use1-az4"})}
    result = run_check(OFFERED, case_of(ON_DEMAND), account)
    assert (result.status, messages(result)) == (
        Status.WARNED,
        [
            (
                f"{GROUP}.instance_type: EC2 lists ml.p5.48xlarge nowhere in us-east-1; HyperPod may have types that"
                " EC2 does not list: look for a training plan with 'hyperpod-cdk plans search prod', or use another"
                " type or region"
            )
        ],
    )


@pytest.mark.parametrize(
    ("offered", "status", "says"),
    [
        ({"g6e.12xlarge": {"use1-az5"}, "g5.12xlarge": {"use1-az5"}}, Status.PASSED, []),
        (
            {"g6e.12xlarge": {"use1-az4"}, "g5.12xlarge": {"use1-az5"}},
            Status.WARNED,
            [
                (
                    f"{GROUP}.instance_types: EC2 does not offer ml.g6e.12xlarge in use1-az5, so no node will have"
                    " that type; remove it, or move the group"
                )
            ],
        ),
        (
            {"g6e.12xlarge": {"use1-az4"}, "g5.12xlarge": {"use1-az1"}},
            Status.FAILED,
            [
                (
                    f"{GROUP}.availability_zone_id: must be a zone where EC2 offers ml.g6e.12xlarge or ml.g5.12xlarge,"
                    " got use1-az5; set availability_zone_id: use1-az4"
                )
            ],
        ),
        (
            {},
            Status.WARNED,
            [
                (
                    f"{GROUP}.instance_types: EC2 lists ml.g6e.12xlarge and ml.g5.12xlarge nowhere in us-east-1;"
                    " HyperPod may have types that EC2 does not list: look for a training plan with 'hyperpod-cdk plans"
                    " search prod', or use another type or region"
                )
            ],
        ),
    ],
)
def test_the_types_of_a_flexible_group(
    case_of: CaseOf,
    run_check: RunCheck,
    account: FakeAws,
    *,
    offered: Mapping[str, set[str]],
    status: Status,
    says: list[str],
) -> None:
    flexible = {
        f"{GROUP}.instance_type": ...,
        f"{GROUP}.instance_types": ["ml.g6e.12xlarge", "ml.g5.12xlarge"],
        "task_governance": ...,
        "storage": ...,
    }
    there = {name: frozenset(zones) for name, zones in offered.items()}
    account.answers.instance_type_zones = {"m5.2xlarge": frozenset({"use1-az4"}), **there}
    result = run_check(OFFERED, case_of({**ON_DEMAND, **flexible}), account)
    assert (result.status, messages(result)) == (status, says)


def test_a_zone_that_the_account_does_not_have_is_reported_once(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws
) -> None:
    account.answers.zones = tuple(zone(f"use1-az{n}") for n in (1, 2, 4))
    account.answers.instance_type_zones = {
        "m5.2xlarge": frozenset({"use1-az4"}),
        "p5.48xlarge": frozenset({"use1-az2"}),
    }
    assert len(run_check(ZONES, case_of(ON_DEMAND), account).findings) == 1
    assert run_check(OFFERED, case_of(ON_DEMAND), account).status is Status.PASSED
    # without the list of zones the offerings alone decide
    account.answers.zones = DENIED
    assert run_check(OFFERED, case_of(ON_DEMAND), account).status is Status.FAILED


@pytest.mark.check("instance_types_are_offered_in_their_zones", "skips")
def test_offerings_that_could_not_be_asked(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    account.answers.instance_type_zones = NotAnswered("no permission", action="ec2:DescribeInstanceTypeOfferings")
    result = run_check(OFFERED, case_of(), account)
    assert [(each.reason, each.action) for each in result.skipped] == [
        ("no permission", "ec2:DescribeInstanceTypeOfferings")
    ]


@pytest.mark.check("scarce_types_do_not_rely_on_demand", "passes")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {**ON_DEMAND, f"{GROUP}.instance_type": "ml.g5.12xlarge", "task_governance": ..., "storage": ...},
    ],
)
def test_types_that_do_not_rely_on_demand(case_of: CaseOf, run_check: RunCheck, changes: Mapping[str, Any]) -> None:
    result = run_check(SCARCE, case_of(changes), offline())
    assert (result.status, messages(result)) == (Status.PASSED, [])


SYSTEM = "hyperpod.instance_groups[0]"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({f"{SYSTEM}.capacity": "spot", f"{SYSTEM}.count": 1, f"{GROUP}.capacity": "spot"}, Status.NOT_NEEDED),
        ({f"{SYSTEM}.count": 1, f"{GROUP}.capacity": "spot"}, Status.PASSED),
        ({f"{SYSTEM}.count": 0, f"{GROUP}.capacity": "spot"}, Status.NOT_NEEDED),
        ({f"{SYSTEM}.capacity": "spot", f"{GROUP}.count": 0}, Status.NOT_NEEDED),
        ({f"{SYSTEM}.capacity": "spot", f"{GROUP}.count": 1}, Status.WARNED),
    ],
)
def test_without_on_demand_nodes_nothing_is_compared(
    case_of: CaseOf, run_check: RunCheck, changes: Mapping[str, Any], status: Status
) -> None:
    of_all = {**ON_DEMAND, "operators": ..., "task_governance": ..., "storage": ...}
    assert run_check(SCARCE, case_of({**of_all, **changes}), offline()).status is status


def test_a_group_that_karpenter_scales_relies_on_demand_too(case_of: CaseOf, run_check: RunCheck) -> None:
    scaled = {**ON_DEMAND, f"{GROUP}.count": 0, f"{GROUP}.deep_health_checks": ..., "hyperpod.autoscaling": "karpenter"}
    result = run_check(SCARCE, case_of({**scaled, "task_governance": ..., "storage": ...}), offline())
    assert messages(result) == [
        (
            f"{GROUP}.capacity: On-Demand capacity is not guaranteed for ml.p5.48xlarge, which Karpenter requests as"
            " pods need it: without capacity it adds no node, and pods stay pending; find a training plan with"
            " 'hyperpod-cdk plans search prod' and set capacity: training_plan and a count"
        )
    ]


@pytest.mark.check("scarce_types_do_not_rely_on_demand", "fails")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "2 nodes are requested: nodes without capacity join later or never"),
        (
            {f"{GROUP}.count": 1, "task_governance": ..., "storage": ...},
            "1 node is requested: nodes without capacity join later or never",
        ),
        (
            {"hyperpod.provisioning": "all_or_nothing"},
            (
                "2 nodes are requested: one node without capacity rolls the whole cluster back (provisioning:"
                " all_or_nothing)"
            ),
        ),
    ],
)
def test_types_that_rely_on_demand(case_of: CaseOf, run_check: RunCheck, changes: Mapping[str, Any], says: str) -> None:
    result = run_check(SCARCE, case_of({**ON_DEMAND, **changes}), offline())
    assert (result.status, messages(result)) == (
        Status.WARNED,
        [
            (
                f"{GROUP}.capacity: On-Demand capacity is not guaranteed for ml.p5.48xlarge, of which {says}; find a"
                " training plan with 'hyperpod-cdk plans search prod' and set capacity: training_plan"
            )
        ],
    )
