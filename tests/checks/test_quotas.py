"""The quota checks: each one fails, passes and is skipped, with the right place in the file and the full message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import Aws, NotAnswered, QuotaValue
from hyperpod_cdk.checks.model import REGISTER, Case, Result, Status
from hyperpod_cdk.checks.quotas import as_dict, compare
from hyperpod_cdk.quotas.needs import required_quotas
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[[str, Case, Aws], Result]

PLENTY = 1_000_000.0
P5 = "ml.p5.48xlarge for cluster usage"
SPOT_G5 = "ml.g5.12xlarge for cluster spot instance usage"
TOTAL = "Total number of instances allowed across SageMaker HyperPod clusters"
PER_CLUSTER = "Maximum number instances allowed per SageMaker HyperPod cluster"
SPOT_TOTAL = "Total number of Spot instances allowed across SageMaker HyperPod clusters"
VOLUME = "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance"
DENIED = NotAnswered("not allowed", action="servicequotas:GetServiceQuota")
REQUEST = "run 'hyperpod-cdk quotas request prod'"
TYPES = "instance_type_quotas_cover_the_groups"
SIZE = "cluster_size_quotas_cover_the_cluster"
VOLUMES = "volume_quota_covers_the_largest_volume"
NETWORK = "network_quotas_cover_the_network"
EKS = "eks_quota_leaves_room_for_the_cluster"
LUSTRE = "lustre_quotas_cover_the_file_systems"
RESTRICTED = "restricted_lustre_quota_covers_the_file_systems"
NOVA: Mapping[str, Any] = {
    "hyperpod.restricted_dependencies": "installed",
    "hyperpod.restricted_instance_groups": [
        {
            "name": "nova",
            "instance_type": "ml.p5.48xlarge",
            "count": 0,
            "availability_zone_id": "use1-az5",
            "capacity": "on_demand",
            "lustre": {"capacity_gib": 9600},
        }
    ],
    "hyperpod.restricted_environment": {"lustre": {"capacity_gib": 1200}},
}
SPOT: Mapping[str, Any] = {
    "hyperpod.instance_groups[2]": {
        "name": "spot",
        "instance_type": "ml.g5.12xlarge",
        "count": 3,
        "availability_zone_id": "use1-az4",
        "capacity": "spot",
    }
}


def rich(aws: FakeAws, case: Case, **quotas: float | QuotaValue | NotAnswered | None) -> FakeAws:
    """Set large unused quotas for the account, except for the quotas given by name."""
    for each in required_quotas(case.environment):
        aws.answers.quota[each.name] = QuotaValue(name=each.name, code=each.code, value=PLENTY)  # type: ignore[index]
        if each.usage:
            aws.answers.usage[each.usage] = 0.0  # type: ignore[index]
    for name, value in quotas.items():
        given = QuotaValue(name=name, code="L-1", value=value) if isinstance(value, float | int) else value
        aws.answers.quota[name] = given  # type: ignore[index]
    return aws


def using(aws: FakeAws, **used: float | NotAnswered) -> FakeAws:
    """Set the usage by others."""
    for kind, value in used.items():
        aws.answers.usage[kind] = value  # type: ignore[index]
    return aws


def said(result: Result) -> list[tuple[str, str, str]]:
    return [(each.severity.value, each.path, each.message) for each in result.findings]


@pytest.mark.check("instance_type_quotas_cover_the_groups", "fails")
def test_too_few_of_a_type(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of({"hyperpod.instance_groups[1].count": 16})
    result = run_check(TYPES, case, rich(fake_aws, case, **{P5: 8}))
    assert result.status is Status.FAILED
    assert said(result) == [
        (
            "error",
            "hyperpod.instance_groups[1].count",
            (f"needs 16 ml.p5.48xlarge for cluster usage, quota is 8 in us-east-1; lower the count to 8 or {REQUEST}"),
        )
    ]


@pytest.mark.check("instance_type_quotas_cover_the_groups", "passes")
@pytest.mark.parametrize(
    ("quota", "others", "status"),
    [
        (1, 0, Status.FAILED),
        (2, 0, Status.WARNED),
        (3, 0, Status.PASSED),
        (3, 1, Status.WARNED),
        (3, 2, Status.FAILED),
        (4, 1, Status.PASSED),
    ],
)
def test_beside_the_bounds_of_a_type(
    case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck, *, quota: float, others: float, status: Status
) -> None:
    case = case_of()
    aws = using(rich(fake_aws, case, **{P5: quota}), **{"hyperpod_instances:ml.p5.48xlarge": others})
    assert run_check(TYPES, case, aws).status is status


def test_no_room_for_a_replacement(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    assert said(run_check(TYPES, case, rich(fake_aws, case, **{P5: 2}))) == [
        (
            "warning",
            "hyperpod.instance_groups[1].count",
            (
                "needs 2 ml.p5.48xlarge for cluster usage, quota is 2 in us-east-1, which leaves 0 of 1 more for "
                f"replacing a faulty node; lower the count to 1 or {REQUEST}"
            ),
        )
    ]


def test_the_default_counts_where_nothing_was_applied(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    default = QuotaValue(name=P5, code="L-8762A75F", value=0, is_default=True)
    assert said(run_check(TYPES, case, rich(fake_aws, case, **{P5: default}))) == [
        (
            "error",
            "hyperpod.instance_groups[1].count",
            f"needs 2 ml.p5.48xlarge for cluster usage, quota is at its default of 0 in us-east-1; {REQUEST}",
        )
    ]


def test_spot_instances_by_type(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of(SPOT)
    assert said(run_check(TYPES, case, rich(fake_aws, case, **{SPOT_G5: 2}))) == [
        (
            "error",
            "hyperpod.instance_groups[2].count",
            (
                "needs 3 ml.g5.12xlarge for cluster spot instance usage, quota is 2 in us-east-1; "
                f"lower the count to 2 or {REQUEST}"
            ),
        )
    ]


@pytest.mark.check("instance_type_quotas_cover_the_groups", "skips")
def test_one_type_that_cannot_be_read_hides_no_other(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    quotas: dict[str, float | NotAnswered] = {"ml.m5.2xlarge for cluster usage": DENIED, P5: 1}
    result = run_check(TYPES, case, rich(fake_aws, case, **quotas))
    assert [each.as_dict() for each in result.skipped] == [
        {
            "reason": 'the quota "ml.m5.2xlarge for cluster usage" could not be read in us-east-1: not allowed',
            "action": "servicequotas:GetServiceQuota",
            "path": "hyperpod.instance_groups[0].count",
            "aws_said": "",
        }
    ]
    assert result.status is Status.FAILED
    result = run_check(TYPES, case, rich(fake_aws, case, **{P5: None}))
    assert result.status is Status.SKIPPED
    assert result.skipped[0].reason == (
        'the quota "ml.p5.48xlarge for cluster usage" could not be read in us-east-1: '
        "sagemaker has no quota of this name here"
    )


def test_use_that_cannot_be_read_skips_only_what_could_pass(
    case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck
) -> None:
    case = case_of()
    unread = {"hyperpod_instances:ml.p5.48xlarge": NotAnswered("throttled", action="")}
    aws = using(rich(fake_aws, case), **unread)
    assert run_check(TYPES, case, aws).status is Status.SKIPPED
    aws = using(rich(fake_aws, case, **{P5: 1}), **unread)
    assert run_check(TYPES, case, aws).status is Status.FAILED


@pytest.mark.check("cluster_size_quotas_cover_the_cluster", "fails")
@pytest.mark.check("cluster_size_quotas_cover_the_cluster", "passes")
@pytest.mark.parametrize(
    ("name", "quota", "others", "status"),
    [
        (TOTAL, 3, 0, Status.FAILED),
        (TOTAL, 4, 0, Status.WARNED),
        (TOTAL, 5, 0, Status.PASSED),
        (TOTAL, 9, 6, Status.FAILED),
        (TOTAL, 11, 6, Status.PASSED),
        (PER_CLUSTER, 3, 0, Status.FAILED),
        (PER_CLUSTER, 5, 100, Status.PASSED),
    ],
)
def test_beside_the_bounds_of_the_cluster(
    case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck, *, name: str, quota: float, others: float, status: Status
) -> None:
    case = case_of()
    aws = using(rich(fake_aws, case, **{name: quota}), hyperpod_instances=others)
    assert run_check(SIZE, case, aws).status is status


def test_too_large_a_cluster(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of(SPOT)
    aws = using(rich(fake_aws, case, **{TOTAL: 10, SPOT_TOTAL: 0}), hyperpod_instances=4)
    assert said(run_check(SIZE, case, aws)) == [
        (
            "error",
            "hyperpod.instance_groups",
            (
                f'needs 7 instances while others use 4, quota "{TOTAL}" is 10 in us-east-1; '
                f"lower the counts together to 6 or {REQUEST}"
            ),
        ),
        (
            "error",
            "hyperpod.instance_groups[2].count",
            f'needs 3 Spot instances, quota "{SPOT_TOTAL}" is 0 in us-east-1; {REQUEST}',
        ),
    ]


@pytest.mark.check("cluster_size_quotas_cover_the_cluster", "skips")
def test_clusters_of_others_cannot_be_read(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    denied = NotAnswered("not allowed", action="sagemaker:ListClusters")
    result = run_check(SIZE, case, using(rich(fake_aws, case), hyperpod_instances=denied))
    assert [each.as_dict() for each in result.skipped] == [
        {
            "reason": f'what others use of the quota "{TOTAL}" could not be read in us-east-1: not allowed',
            "action": "sagemaker:ListClusters",
            "path": "hyperpod.instance_groups",
            "aws_said": "",
        }
    ]


@pytest.mark.check("volume_quota_covers_the_largest_volume", "fails")
def test_too_large_a_volume(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    assert said(run_check(VOLUMES, case, rich(fake_aws, case, **{VOLUME: 999}))) == [
        (
            "error",
            "hyperpod.instance_groups[1].volume_gib",
            (
                f'needs 1000 GB of EBS volume, quota "{VOLUME}" is 999 in us-east-1; '
                f"lower volume_gib to 999 or {REQUEST}"
            ),
        )
    ]


@pytest.mark.check("volume_quota_covers_the_largest_volume", "passes")
def test_a_volume_that_just_fits(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    assert run_check(VOLUMES, case, rich(fake_aws, case, **{VOLUME: 1000})).status is Status.PASSED


def test_the_doubtful_default_of_volumes_warns(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    default = QuotaValue(name=VOLUME, code="L-E13DF72A", value=0, is_default=True)
    assert said(run_check(VOLUMES, case, rich(fake_aws, case, **{VOLUME: default}))) == [
        (
            "warning",
            "hyperpod.instance_groups[1].volume_gib",
            (
                f'needs 1000 GB of EBS volume, quota "{VOLUME}" is at its default of 0 in us-east-1 '
                f"(accounts that asked for nothing have been seen with 1024); {REQUEST}"
            ),
        )
    ]


@pytest.mark.check("volume_quota_covers_the_largest_volume", "skips")
def test_the_volume_quota_cannot_be_read(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    result = run_check(VOLUMES, case, rich(fake_aws, case, **{VOLUME: DENIED}))
    assert (result.status, result.skipped[0].action) == (Status.SKIPPED, "servicequotas:GetServiceQuota")


@pytest.mark.check("network_quotas_cover_the_network", "fails")
@pytest.mark.parametrize(
    ("name", "quota", "kind", "others", "finding"),
    [
        (
            "VPCs per Region",
            5,
            "vpcs",
            5,
            (
                "network",
                (f'needs 1 VPC while others use 5, quota "VPCs per Region" is 5 in us-east-1; {REQUEST}'),
            ),
        ),
        (
            "EC2-VPC Elastic IPs",
            5,
            "elastic_ips",
            5,
            (
                "network.nat_gateways",
                (
                    'needs 1 Elastic IP address while others use 5, quota "EC2-VPC Elastic IPs" is 5 in us-east-1; '
                    f"{REQUEST}"
                ),
            ),
        ),
        (
            "NAT gateways per Availability Zone",
            5,
            "nat_gateways:use1-az5",
            5,
            (
                "network.nat_gateways",
                (
                    'needs 1 NAT gateway in use1-az5 while others use 5, quota "NAT gateways per Availability Zone" '
                    f"is 5 in us-east-1; {REQUEST}"
                ),
            ),
        ),
        (
            "Internet gateways per Region",
            5,
            "internet_gateways",
            5,
            (
                "network",
                (
                    'needs 1 internet gateway while others use 5, quota "Internet gateways per Region" is 5 in '
                    f"us-east-1; {REQUEST}"
                ),
            ),
        ),
        (
            "Network interfaces per Region",
            5000,
            "network_interfaces",
            4917,
            (
                "hyperpod.instance_groups[1].count",
                (
                    'needs 84 network interfaces while others use 4917, quota "Network interfaces per Region" is '
                    f"5000 in us-east-1; {REQUEST}"
                ),
            ),
        ),
        (
            "IPv4 CIDR blocks per VPC",
            2,
            "vpcs",
            0,
            (
                "network.availability_zones",
                f'needs 3 IPv4 blocks, quota "IPv4 CIDR blocks per VPC" is 2 in us-east-1; {REQUEST}',
            ),
        ),
        (
            "Subnets per VPC",
            4,
            "vpcs",
            0,
            (
                "network.availability_zones",
                f'needs 5 subnets, quota "Subnets per VPC" is 4 in us-east-1; {REQUEST}',
            ),
        ),
        (
            "Gateway VPC endpoints per Region",
            20,
            "gateway_endpoints",
            20,
            (
                "network",
                (
                    'needs 1 gateway endpoint while others use 20, quota "Gateway VPC endpoints per Region" is 20 in '
                    f"us-east-1; {REQUEST}"
                ),
            ),
        ),
        (
            "VPC security groups per Region",
            2500,
            "security_groups",
            2498,
            (
                "network",
                (
                    'needs 4 security groups while others use 2498, quota "VPC security groups per Region" is 2500 in '
                    f"us-east-1; {REQUEST}"
                ),
            ),
        ),
    ],
)
def test_no_room_in_the_network(
    case_of: CaseOf,
    fake_aws: FakeAws,
    run_check: RunCheck,
    *,
    name: str,
    quota: float,
    kind: str,
    others: float,
    finding: tuple[str, str],
) -> None:
    case = case_of()
    aws = using(rich(fake_aws, case, **{name: quota}), **{kind: others})
    assert said(run_check(NETWORK, case, aws)) == [("error", *finding)]


@pytest.mark.check("network_quotas_cover_the_network", "passes")
def test_defaults_hold_a_network_in_a_new_account(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    aws = rich(fake_aws, case)
    for each in required_quotas(case.environment):
        default = QuotaValue(name=each.name, code=each.code, value=each.default, is_default=True)
        aws.answers.quota[each.name] = default  # type: ignore[index]
    result = run_check(NETWORK, case, using(aws, vpcs=1, internet_gateways=1))
    assert (result.status, said(result)) == (Status.PASSED, [])
    assert len(result.details) == 9


@pytest.mark.check("network_quotas_cover_the_network", "skips")
def test_each_unread_part_of_the_network_is_reported(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    denied = {
        "vpcs": NotAnswered("not allowed", action="ec2:DescribeVpcs"),
        "elastic_ips": NotAnswered("not allowed", action="ec2:DescribeAddresses"),
    }
    result = run_check(NETWORK, case, using(rich(fake_aws, case), **denied))
    assert {each.action for each in result.skipped} == {"ec2:DescribeVpcs", "ec2:DescribeAddresses"}
    assert said(result) == []


@pytest.mark.check("eks_quota_leaves_room_for_the_cluster", "fails")
@pytest.mark.check("eks_quota_leaves_room_for_the_cluster", "passes")
@pytest.mark.parametrize(
    ("others", "finding"),
    [
        (99, []),
        (
            100,
            [
                (
                    "error",
                    "eks",
                    (f'needs 1 EKS cluster while others use 100, quota "Clusters" is 100 in us-east-1; {REQUEST}'),
                )
            ],
        ),
    ],
)
def test_eks_clusters(
    case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck, others: float, finding: list[tuple[str, str, str]]
) -> None:
    case = case_of()
    aws = using(rich(fake_aws, case, Clusters=100), eks_clusters=others)
    assert said(run_check(EKS, case, aws)) == finding


@pytest.mark.check("eks_quota_leaves_room_for_the_cluster", "skips")
def test_eks_clusters_cannot_be_listed(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    denied = NotAnswered("not allowed", action="eks:ListClusters")
    assert run_check(EKS, case, using(rich(fake_aws, case), eks_clusters=denied)).status is Status.SKIPPED


@pytest.mark.check("lustre_quotas_cover_the_file_systems", "fails")
@pytest.mark.check("lustre_quotas_cover_the_file_systems", "passes")
@pytest.mark.parametrize(
    ("kind", "others", "finding"),
    [
        ("lustre_capacity_gib:PERSISTENT_2", 96000, []),
        (
            "lustre_capacity_gib:PERSISTENT_2",
            97200,
            [
                (
                    "error",
                    "storage.lustre[0].capacity_gib",
                    (
                        'needs 4800 GiB of PERSISTENT_2 storage while others use 97200, quota "Lustre Persistent_2 '
                        f'storage capacity" is 100800 in us-east-1; lower capacity_gib to 2400 or {REQUEST}'
                    ),
                )
            ],
        ),
        ("lustre_file_systems:PERSISTENT_2", 99, []),
        (
            "lustre_file_systems:PERSISTENT_2",
            100,
            [
                (
                    "error",
                    "storage.lustre",
                    (
                        'needs 1 PERSISTENT_2 file system while others use 100, quota "Lustre Persistent_2 file '
                        f'systems" is 100 in us-east-1; {REQUEST}'
                    ),
                )
            ],
        ),
    ],
)
def test_file_systems(
    case_of: CaseOf,
    fake_aws: FakeAws,
    run_check: RunCheck,
    *,
    kind: str,
    others: float,
    finding: list[tuple[str, str, str]],
) -> None:
    case = case_of()
    limits = {"Lustre Persistent_2 storage capacity": 100800, "Lustre Persistent_2 file systems": 100}
    aws = using(rich(fake_aws, case, **limits), **{kind: others})
    assert said(run_check(LUSTRE, case, aws)) == finding


@pytest.mark.check("lustre_quotas_cover_the_file_systems", "skips")
def test_file_systems_cannot_be_listed(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    denied = NotAnswered("not allowed", action="fsx:DescribeFileSystems")
    aws = using(rich(fake_aws, case), **{"lustre_capacity_gib:PERSISTENT_2": denied})
    result = run_check(LUSTRE, case, aws)
    assert (result.status, result.skipped[0].action) == (Status.SKIPPED, "fsx:DescribeFileSystems")


@pytest.mark.check("restricted_lustre_quota_covers_the_file_systems", "fails")
@pytest.mark.check("restricted_lustre_quota_covers_the_file_systems", "passes")
@pytest.mark.check("restricted_lustre_quota_covers_the_file_systems", "skips")
def test_file_systems_of_restricted_groups(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of(NOVA)
    quota = "Maximum total FSx Lustre capacity in TiB across SageMaker HyperPod restricted instance groups"
    # its own 9600 GiB and the shared 1200 are 10.546875 TiB
    for others, value, finding in (
        (0, 10.546875, []),
        (
            1.5,
            12,
            [
                (
                    "error",
                    "hyperpod.restricted_instance_groups[0].lustre.capacity_gib",
                    (
                        "needs 10.546875 TiB of file systems of restricted instance groups while others use 1.5, quota"
                        f' "{quota}" is 12 in us-east-1; {REQUEST}'
                    ),
                )
            ],
        ),
    ):
        aws = using(rich(fake_aws, case, **{quota: float(value)}), restricted_lustre_tib=others)
        assert said(run_check(RESTRICTED, case, aws)) == finding
    denied = NotAnswered("not allowed", action="sagemaker:ListClusters")
    aws = using(rich(fake_aws, case), restricted_lustre_tib=denied)
    assert run_check(RESTRICTED, case, aws).status is Status.SKIPPED


@pytest.mark.parametrize("name", [LUSTRE, EKS, NETWORK])
def test_what_the_file_has_not_is_not_asked(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck, name: str) -> None:
    case = case_of({"storage": ...})
    expected = Status.NOT_NEEDED if name == LUSTRE else Status.PASSED
    assert run_check(name, case, rich(fake_aws, case)).status is expected
    assert not [each for each in fake_aws.asked if "Lustre" in str(each)]


def test_checks_share_the_quotas_among_them(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of(SPOT)
    aws = rich(fake_aws, case)
    for each in REGISTER:
        if each.area == "quotas":
            expected = Status.NOT_NEEDED if each.name == RESTRICTED else Status.PASSED  # the file has no such groups
            assert run_check(each.name, case, aws).status is expected
    asked = [each[2] for each in aws.asked if each[0] == "quota"]
    assert sorted(map(str, asked)) == sorted(each.name for each in required_quotas(case.environment))


def test_every_quota_is_a_detail(case_of: CaseOf, fake_aws: FakeAws, run_check: RunCheck) -> None:
    case = case_of()
    aws = using(rich(fake_aws, case, **{P5: 8}), **{"hyperpod_instances:ml.p5.48xlarge": 3})
    details = run_check(TYPES, case, aws).details
    assert [each.text for each in details] == [
        "ml.m5.2xlarge for cluster usage: needed 2, used by others 0, quota 1000000: passed",
        "ml.p5.48xlarge for cluster usage: needed 2, spare 1, used by others 3, quota 8: passed",
    ]
    assert details[1].data == {
        "quota": P5,
        "service": "sagemaker",
        "code": "L-1",
        "needed": 2,
        "spare": 1,
        "used_by_others": 3,
        "used_by_others_at_least": 3,
        "value": 8,
        "is_default": False,
        "verdict": "passed",
        "message": "needs 2 ml.p5.48xlarge for cluster usage while others use 3, quota is 8 in us-east-1",
        "unread": "",
        "aws_said": "",
        "path": "hyperpod.instance_groups[1].count",
    }


def test_comparisons_keep_what_could_not_be_read(case_of: CaseOf, fake_aws: FakeAws) -> None:
    case = case_of()
    first = required_quotas(case.environment)[0]
    (compared,) = compare(case.environment, fake_aws, [first], called=case.called)
    assert (compared.code, compared.request, compared.reading.value) == ("", None, None)
    assert not compared.reading.used.is_whole
    data = as_dict(compared)
    assert (data["code"], data["value"], data["used_by_others"], data["verdict"]) == (first.code, None, None, "skipped")
    (compared,) = compare(case.environment, fake_aws, [replace(first, usage="")], called=case.called)
    assert as_dict(compared)["used_by_others"] is None
