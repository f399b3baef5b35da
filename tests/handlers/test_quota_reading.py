"""Reading quotas and the use of others: wrong codes, missing values, pages, and what is the environment's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_cdk.handlers.quota_gate import reading
from hyperpod_cdk.handlers.quota_gate.comparison import Unread, Usage
from hyperpod_cdk.handlers.quota_gate.reading import (
    Listed,
    NoSuchQuota,
    NotAnswered,
    NotFound,
    NotTold,
    Own,
    calls_of,
    is_gone,
    read_quota,
    used,
)
from tests.support.tables import row_by_row

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

P5 = "ml.p5.48xlarge for cluster usage"
OWN = Own(stacks=("prod-foundation", "prod-storage"), hyperpod_cluster="prod", eks_cluster="prod-eks")


def row(name: str, code: str, value: float | None = 1.0, **more: Any) -> dict[str, Any]:
    given = {"QuotaName": name, "QuotaCode": code, "Adjustable": True, **more}
    return given if value is None else {**given, "Value": value}


def tagged(stack: str, **more: Any) -> dict[str, Any]:
    return {**more, "Tags": [{"Key": "aws:cloudformation:stack-name", "Value": stack}]}


@dataclass
class FakeApi:
    """Service Quotas with applied values and defaults, and lists of things by operation; remembers what was asked."""

    applied: list[dict[str, Any]] = field(default_factory=list)
    defaults: list[dict[str, Any]] = field(default_factory=list)
    lists: Mapping[str, list[Any]] = field(default_factory=dict)
    clusters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        self._note(f"{service}:{operation}")
        if operation == "describe_cluster":
            return self.clusters[params["ClusterName"]]
        rows = {"get_service_quota": self.applied, "get_aws_default_service_quota": self.defaults}[operation]
        for each in rows:
            if each["QuotaCode"] == params["QuotaCode"]:
                return {"Quota": each}
        raise NoSuchQuota(params["QuotaCode"])

    def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
        self._note(f"{service}:{operation}")
        if service == "service-quotas":
            assert (key, params) == ("Quotas", {"ServiceCode": "sagemaker"})
            rows = {"list_service_quotas": self.applied, "list_aws_default_service_quotas": self.defaults}[operation]
            return Listed(items=rows)
        return Listed(items=self.lists[operation])

    def each(self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> list[ResultT]:
        return [function(item) for item in items]

    def _note(self, what: str) -> None:
        with self._lock:
            self.asked.append(what)


def test_the_code_leads_to_the_applied_value_in_one_call() -> None:
    api = FakeApi(applied=[row(P5, "L-1", 8.0)], defaults=[row(P5, "L-1", 0.0)])
    found = read_quota(api, "sagemaker", P5, "L-1")
    assert (found.name, found.code, found.value, found.is_default, found.is_adjustable) == (P5, "L-1", 8.0, False, True)
    assert api.asked == ["service-quotas:get_service_quota"]


def test_without_an_applied_value_the_default_is_read() -> None:
    api = FakeApi(defaults=[row(P5, "L-1", 2.0, Adjustable=False)])
    found = read_quota(api, "sagemaker", P5, "L-1")
    assert (found.value, found.is_default, found.is_adjustable) == (2.0, True, False)
    assert api.asked == ["service-quotas:get_service_quota", "service-quotas:get_aws_default_service_quota"]


@pytest.mark.parametrize("code", [None, "", "L-GONE"])
def test_without_a_code_that_leads_anywhere_all_pages_are_read(code: str | None) -> None:
    others = [row(f"ml.m5.{n}xlarge for cluster usage", f"L-{n}") for n in range(2, 300)]
    api = FakeApi(applied=[*others, row(P5, "L-1", 8.0)], defaults=[*others, row(P5, "L-1", 0.0)])
    found = read_quota(api, "sagemaker", P5, code)
    assert (found.code, found.value, found.is_default) == ("L-1", 8.0, False)
    assert api.asked[-2:] == ["service-quotas:list_service_quotas", "service-quotas:list_aws_default_service_quotas"]


def test_a_default_is_found_in_the_pages_too() -> None:
    api = FakeApi(applied=[row("another", "L-2")], defaults=[row("another", "L-2"), row(P5, "L-1", 3.0)])
    assert (read_quota(api, "sagemaker", P5).value, read_quota(api, "sagemaker", P5).is_default) == (3.0, True)


def test_a_code_that_is_another_quotas_is_not_believed() -> None:
    api = FakeApi(applied=[row("ml.p4d.24xlarge for cluster usage", "L-1", 99.0)], defaults=[row(P5, "L-7", 4.0)])
    found = read_quota(api, "sagemaker", P5, "L-1")
    assert (found.code, found.value, found.is_default) == ("L-7", 4.0, True)


def test_a_default_under_a_wrong_code_is_not_believed() -> None:
    api = FakeApi(defaults=[row("ml.p4d.24xlarge for cluster usage", "L-1", 99.0), row(P5, "L-7", 4.0)])
    assert read_quota(api, "sagemaker", P5, "L-1").value == 4.0


@pytest.mark.parametrize("code", ["L-1", None])
def test_a_value_that_aws_could_not_fetch_is_not_the_default(code: str | None) -> None:
    broken = row(P5, "L-1", None, ErrorReason={"ErrorCode": "DEPENDENCY_SERVICE_ERROR"})
    with pytest.raises(NotTold) as told:
        read_quota(FakeApi(applied=[broken], defaults=[row(P5, "L-1", 0.0)]), "sagemaker", P5, code)
    assert str(told.value) == (f'Service Quotas could not find out the value of "{P5}" (DEPENDENCY_SERVICE_ERROR)')


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("ml.r7i.12xlarge for cluster usage", "cluster-ml-r7i-12xlarge for cluster usage"),
        ("cluster-ml-r7i-12xlarge for cluster usage", "ml.r7i.12xlarge for cluster usage"),
        (
            "Maximum number of instances allowed per SageMaker HyperPod cluster",
            "Maximum number instances allowed per SageMaker HyperPod cluster",
        ),
    ],
)
def test_quirks_of_names(ours: str, theirs: str) -> None:
    assert read_quota(FakeApi(applied=[row(theirs, "L-1", 5.0)]), "sagemaker", ours, "L-1").value == 5.0
    assert read_quota(FakeApi(applied=[row(theirs, "L-1", 5.0)]), "sagemaker", ours).value == 5.0


def test_a_quota_that_does_not_exist() -> None:
    with pytest.raises(NoSuchQuota, match=r'^Service Quotas has no quota "ml\.p5\.48xlarge for cluster usage" of sage'):
        read_quota(FakeApi(applied=[row("another", "L-1")]), "sagemaker", P5, "L-1")


def group(instance_type: str, current: int, target: int, **more: Any) -> dict[str, Any]:
    return {"InstanceType": instance_type, "CurrentCount": current, "TargetCount": target, **more}


SPOT: Mapping[str, Any] = {"CapacityRequirements": {"Spot": {}}}
CLUSTERS = FakeApi(
    lists={"list_clusters": [{"ClusterName": name} for name in ("prod", "lab", "old")]},
    clusters={
        "prod": {"InstanceGroups": [group("ml.p5.48xlarge", 100, 100)]},
        "lab": {
            "InstanceGroups": [
                group("ml.p5.48xlarge", 2, 4),
                group("ml.g5.12xlarge", 3, 1),
                group("ml.g5.12xlarge", 5, 5, **SPOT),
                {
                    "CurrentCount": 3,
                    "TargetCount": 6,
                    "InstanceRequirements": {"DesiredInstanceTypes": ["ml.c5.large", "ml.m5.large"]},
                    "InstanceTypeDetails": [
                        {"InstanceType": "ml.c5.large", "CurrentCount": 1},
                        {"InstanceType": "ml.m5.large", "CurrentCount": 2},
                    ],
                },
            ],
            "RestrictedInstanceGroups": [group("ml.p5.48xlarge", 1, 1)],
        },
        "old": {"InstanceGroups": []},
    },
)


@row_by_row(
    "kind, count",
    [
        ("hyperpod_instances:ml.p5.48xlarge", 4 + 1),
        ("hyperpod_instances:ml.g5.12xlarge", 3),
        ("hyperpod_spot_instances:ml.g5.12xlarge", 5),
        ("hyperpod_spot_instances:ml.p5.48xlarge", 0),
        ("hyperpod_instances:ml.c5.large", 1 + 3),
        ("hyperpod_instances:ml.m5.large", 2),
        ("hyperpod_instances", 4 + 1 + 3 + 5 + 6),
        ("hyperpod_spot_instances", 5),
    ],
)
def test_instances_in_other_clusters(kind: str, count: int) -> None:
    assert used(CLUSTERS, kind, OWN) == Usage(at_least=count)


@pytest.mark.parametrize(("status", "count"), [("Failed", 2), ("Deleting", 2), ("InService", 16), ("Creating", 16)])
def test_no_instance_comes_to_a_cluster_that_ends(status: str, count: int) -> None:
    cluster = {"ClusterStatus": status, "InstanceGroups": [group("ml.p5.48xlarge", 2, 16)]}
    api = FakeApi(lists={"list_clusters": [{"ClusterName": "lab"}]}, clusters={"lab": cluster})
    assert used(api, "hyperpod_instances:ml.p5.48xlarge", OWN) == Usage(at_least=count)
    assert used(api, "hyperpod_instances", OWN) == Usage(at_least=count)


@row_by_row(
    "more, missing",
    [
        ({}, "'InstanceRequirements'"),
        ({"InstanceTypeDetails": [{"InstanceType": "ml.c5.large", "CurrentCount": 1}]}, "'InstanceRequirements'"),
        ({"InstanceRequirements": {}}, "'DesiredInstanceTypes'"),
        ({"InstanceRequirements": {"DesiredInstanceTypes": []}}, "list index out of range"),
    ],
)
def test_instances_of_which_aws_names_no_type_are_of_none_that_is_known(more: dict[str, Any], missing: str) -> None:
    cluster = {"InstanceGroups": [group("ml.p5.48xlarge", 2, 2), {"CurrentCount": 2, "TargetCount": 2, **more}]}
    api = FakeApi(lists={"list_clusters": [{"ClusterName": "lab"}]}, clusters={"lab": cluster})
    found = used(api, "hyperpod_instances:ml.p5.48xlarge", OWN)
    assert (found.at_least, len(found.unread)) == (2, 1)
    assert missing in found.unread[0].reason
    assert used(api, "hyperpod_instances", OWN) == Usage(at_least=4)


NODES_STAND_IN = {"Subnets": ["subnet-5", "subnet-4"], "SecurityGroupIds": ["sg-nodes", "sg-eks"]}
INTERFACES = [
    {"SubnetId": "subnet-5", "Groups": [{"GroupId": "sg-nodes"}, {"GroupId": "sg-eks"}]},
    {"SubnetId": "subnet-6", "Groups": [{"GroupId": "sg-eks"}, {"GroupId": "sg-nodes"}]},
    {"SubnetId": "subnet-5", "Groups": [{"GroupId": "sg-eks"}]},
    {"SubnetId": "subnet-7", "Groups": [{"GroupId": "sg-nodes"}, {"GroupId": "sg-eks"}]},
    {"SubnetId": "subnet-5"},
]


@pytest.mark.parametrize(("own_cluster", "count"), [("prod", 3), ("not-made-yet", 5)])
def test_the_nodes_of_the_environment_in_a_vpc_of_others_are_its_own(own_cluster: str, count: int) -> None:
    groups = [
        group("ml.p5.48xlarge", 1, 1),
        group("ml.p5.48xlarge", 1, 1, OverrideVpcConfig={**NODES_STAND_IN, "Subnets": ["subnet-6"]}),
    ]
    api = FakeApi(
        lists={
            "list_clusters": [{"ClusterName": "prod"}],
            "describe_network_interfaces": INTERFACES,
            "describe_vpcs": [],
            "describe_subnets": [],
        },
        clusters={"prod": {"VpcConfig": NODES_STAND_IN, "InstanceGroups": groups}},
    )
    own = Own(stacks=("prod-foundation",), hyperpod_cluster=own_cluster)
    assert used(api, "network_interfaces_beside_nodes", own) == Usage(at_least=count)
    made = {"sagemaker:describe_cluster"} & set(api.asked)
    assert made == ({"sagemaker:describe_cluster"} if own_cluster == "prod" else set())


def test_a_vpc_that_another_account_shares_takes_nothing_of_the_quota() -> None:
    vpcs = [{"OwnerId": "111122223333"}, {"OwnerId": "444455556666"}, tagged("prod-foundation", OwnerId="111122223333")]
    api = FakeApi(lists={"describe_vpcs": vpcs})
    assert used(api, "vpcs", Own(stacks=("prod-foundation",), account="111122223333")) == Usage(at_least=1)
    assert used(api, "vpcs", Own(stacks=("prod-foundation",))) == Usage(at_least=2)


def test_the_group_that_eks_makes_for_the_environments_cluster_is_its_own() -> None:
    groups = [
        {"VpcId": "vpc-a", "Tags": [{"Key": "aws:eks:cluster-name", "Value": name}]} for name in ("prod-eks", "lab")
    ]
    api = FakeApi(lists={"describe_security_groups": groups, "describe_vpcs": []})
    assert used(api, "security_groups", OWN) == Usage(at_least=1)


def test_the_environments_own_cluster_is_not_even_described() -> None:
    CLUSTERS.asked.clear()
    used(CLUSTERS, "hyperpod_instances", OWN)
    assert CLUSTERS.asked.count("sagemaker:describe_cluster") == 2


SUBNETS = [
    {"SubnetId": "subnet-5", "AvailabilityZoneId": "use1-az5", "VpcId": "vpc-a"},
    {"SubnetId": "subnet-4", "AvailabilityZoneId": "use1-az4", "VpcId": "vpc-a"},
    tagged("prod-foundation", SubnetId="subnet-own", AvailabilityZoneId="use1-az5", VpcId="vpc-own"),
]
BLOCK = {"CidrBlockState": {"State": "associated"}}
THINGS: Mapping[str, list[Any]] = {
    "describe_vpcs": [
        {"VpcId": "vpc-a", "CidrBlockAssociationSet": [BLOCK, BLOCK, {"CidrBlockState": {"State": "disassociated"}}]},
        {"VpcId": "vpc-b", "Tags": [{"Key": "Name", "Value": "prod-foundation"}]},
        tagged("prod-foundation", VpcId="vpc-own", CidrBlockAssociationSet=[BLOCK]),
        tagged("prod-foundation-2", VpcId="vpc-c"),
    ],
    "describe_subnets": SUBNETS,
    "describe_addresses": [{"PublicIp": "192.0.2.1"}, tagged("prod-foundation", PublicIp="192.0.2.2")],
    "describe_internet_gateways": [{}, tagged("prod-foundation"), tagged("lab-network")],
    "describe_nat_gateways": [
        {"SubnetId": "subnet-5", "State": "available"},
        {"SubnetId": "subnet-5", "State": "deleting"},
        {"SubnetId": "subnet-5", "State": "deleted"},
        {"SubnetId": "subnet-5", "State": "failed"},
        {"SubnetId": "subnet-4", "State": "pending"},
        tagged("prod-foundation", SubnetId="subnet-own", State="available"),
        {"State": "available", "AvailabilityMode": "regional"},
    ],
    "describe_network_interfaces": [
        {"VpcId": "vpc-a", "SubnetId": "subnet-5"},
        {"VpcId": "vpc-a", "SubnetId": "subnet-4"},
        {"VpcId": "vpc-own", "SubnetId": "subnet-own"},
        {"VpcId": "vpc-a", "SubnetId": "subnet-5", "TagSet": tagged("prod-storage")["Tags"]},
    ],
    "describe_security_groups": [{"VpcId": "vpc-a"}, {"VpcId": "vpc-own"}, tagged("prod-storage", VpcId="vpc-b")],
    "describe_vpc_endpoints": [
        {"VpcEndpointType": "Gateway", "VpcId": "vpc-a"},
        {"VpcEndpointType": "Interface", "VpcId": "vpc-a"},
        {"VpcEndpointType": "Interface", "VpcId": "vpc-b"},
        tagged("prod-foundation", VpcEndpointType="Gateway", VpcId="vpc-own"),
    ],
    "list_clusters": ["prod-eks", "lab", "old"],
    "describe_file_systems": [
        {"FileSystemType": "LUSTRE", "StorageCapacity": 1200, "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}},
        {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 2400,
            "LustreConfiguration": {"DeploymentType": "PERSISTENT_2"},
        },
        {
            "FileSystemType": "LUSTRE",
            "LustreConfiguration": {
                "DeploymentType": "PERSISTENT_2",
                "ThroughputCapacity": 8000,
                "DataReadCacheConfiguration": {"SizingMode": "USER_PROVISIONED", "SizeGiB": 64},
            },
        },
        {"FileSystemType": "WINDOWS", "StorageCapacity": 300},
        tagged(
            "prod-storage",
            FileSystemType="LUSTRE",
            StorageCapacity=4800,
            LustreConfiguration={"DeploymentType": "PERSISTENT_2"},
        ),
    ],
    "list_training_plans": [
        {
            "Status": "Active",
            "ReservedCapacitySummaries": [{"InstanceType": "ml.p5.48xlarge", "TotalInstanceCount": 4}],
        },
        {
            "Status": "Scheduled",
            "ReservedCapacitySummaries": [
                {"InstanceType": "ml.p5.48xlarge", "TotalInstanceCount": 8},
                {"InstanceType": "ml.p5.48xlarge", "TotalInstanceCount": 8},
            ],
        },
        {
            "Status": "Expired",
            "ReservedCapacitySummaries": [{"InstanceType": "ml.p5.48xlarge", "TotalInstanceCount": 64}],
        },
        {"Status": "Pending", "ReservedCapacitySummaries": []},
    ],
}
KINDS: Mapping[str, float] = {
    "vpcs": 3,
    "elastic_ips": 1,
    "internet_gateways": 2,
    "nat_gateways:use1-az5": 2,
    "nat_gateways:use1-az4": 1,
    "nat_gateways:use1-az6": 0,
    "network_interfaces": 2,
    "network_interfaces:use1-az5": 1,
    "security_groups": 1,
    "gateway_endpoints": 1,
    "interface_endpoints:vpc-a": 1,
    "subnets:vpc-a": 2,
    "subnets:vpc-own": 0,
    "cidrs:vpc-a": 2,
    "cidrs:vpc-own": 0,
    "eks_clusters": 2,
    "lustre_file_systems": 3,
    "lustre_file_systems:PERSISTENT_2": 2,
    "lustre_capacity_gib": 3600,
    "lustre_capacity_gib:PERSISTENT_2": 2400,
    "lustre_tiering_mbps": 8000,
    "lustre_read_cache_gib": 64,
    "training_plans": 3,
    "reserved_instances:ml.p5.48xlarge": 12,
    "reserved_instances:ml.trn2.48xlarge": 0,
}


@row_by_row("kind, count", KINDS.items())
def test_use_of_others(kind: str, count: float) -> None:
    api = FakeApi(lists=THINGS)
    assert used(api, kind, OWN) == Usage(at_least=count)


def test_file_systems_of_restricted_groups() -> None:
    def system(gib: int) -> dict[str, Any]:
        return {"SizeInGiB": gib, "PerUnitStorageThroughput": 250}

    def cluster(gib: int, shared: Mapping[str, Any]) -> dict[str, Any]:
        groups = [{"EnvironmentConfig": {"FSxLustreConfig": system(gib)}}, {"EnvironmentConfig": {}}, {}]
        return {
            "InstanceGroups": [],
            "RestrictedInstanceGroups": groups,
            "RestrictedInstanceGroupsConfig": {"SharedEnvironmentConfig": shared},
        }

    growing = {"CurrentFSxLustreConfig": system(1200), "DesiredFSxLustreConfig": system(2400)}
    clusters = {"prod": cluster(9600, {}), "nova": cluster(1200, growing), "plain": {"InstanceGroups": []}}
    api = FakeApi(lists={"list_clusters": [{"ClusterName": name} for name in clusters]}, clusters=clusters)
    assert used(api, "restricted_lustre_tib", OWN) == Usage(at_least=3600 / 1024)
    assert set(calls_of("restricted_lustre_tib")) == {"sagemaker:ListClusters", "sagemaker:DescribeCluster"}


@row_by_row("kind", [*KINDS, "hyperpod_instances", "hyperpod_spot_instances:ml.p5.48xlarge"])
def test_the_actions_of_a_kind_are_the_calls_it_makes(kind: str) -> None:
    api = FakeApi(lists=CLUSTERS.lists, clusters=CLUSTERS.clusters) if "hyperpod" in kind else FakeApi(lists=THINGS)
    used(api, kind, OWN)
    made = {f"{service}:{_camel(name)}" for service, _, name in (each.partition(":") for each in api.asked)}
    assert made == set(calls_of(kind))


def test_every_kind_has_its_actions() -> None:
    assert reading._COUNTS.keys() == reading._ACTIONS.keys()


def test_an_unknown_kind() -> None:
    with pytest.raises(ValueError, match=r'^no such kind of use: "gpus"; the kinds are hyperpod_instances, '):
        used(FakeApi(), "gpus", OWN)


def test_without_own_things_everything_counts() -> None:
    assert used(FakeApi(lists=THINGS), "vpcs", Own()) == Usage(at_least=4)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


NOT_READ = NotAnswered("throttled")
RICH_CLUSTERS: Mapping[str, Mapping[str, Any]] = {
    **CLUSTERS.clusters,
    "prod": {"VpcConfig": NODES_STAND_IN, "InstanceGroups": [group("ml.p5.48xlarge", 2, 2)]},
    "restricted": {
        "InstanceGroups": [],
        "RestrictedInstanceGroups": [
            group("ml.p5.48xlarge", 2, 2, EnvironmentConfig={"FSxLustreConfig": {"SizeInGiB": 1200}})
        ],
    },
}


def whole_account() -> dict[str, list[Any]]:
    """Some of everything, of the environment and of others."""
    block = {"InstanceType": "ml.p5.48xlarge", "TotalInstanceCount": 4}
    lustre = {"FileSystemType": "LUSTRE", "StorageCapacity": 1200}
    return {
        "list_clusters": [{"ClusterName": name} for name in RICH_CLUSTERS],
        "list_training_plans": [{"Status": "Active", "ReservedCapacitySummaries": [block]}, {"Status": "Expired"}],
        "describe_vpcs": [
            {"VpcId": "vpc-a", "CidrBlockAssociationSet": [BLOCK, BLOCK]},
            tagged("prod-foundation", VpcId="vpc-own"),
            {"VpcId": "vpc-b", "CidrBlockAssociationSet": []},
        ],
        "describe_subnets": SUBNETS,
        "describe_addresses": [{}, tagged("prod-foundation"), {}],
        "describe_internet_gateways": [{}, tagged("prod-foundation")],
        "describe_nat_gateways": [
            {"State": "available", "SubnetId": name} for name in ("subnet-5", "subnet-4", "subnet-own", "subnet-5")
        ],
        "describe_network_interfaces": [
            *INTERFACES,
            *({"VpcId": vpc, "SubnetId": "subnet-5"} for vpc in ("vpc-a", "vpc-own", "vpc-b")),
        ],
        "describe_security_groups": [{"VpcId": vpc} for vpc in ("vpc-a", "vpc-own", "vpc-b")],
        "describe_vpc_endpoints": [
            {"VpcEndpointType": kind, "VpcId": vpc} for kind in ("Gateway", "Interface") for vpc in ("vpc-a", "vpc-b")
        ],
        "eks_list_clusters": ["prod-eks", "lab", "shared"],
        "describe_file_systems": [
            {
                "FileSystemType": "LUSTRE",
                "StorageType": "INTELLIGENT_TIERING",
                "LustreConfiguration": {
                    "DeploymentType": "PERSISTENT_2",
                    "ThroughputCapacity": 4000,
                    "DataReadCacheConfiguration": {"SizingMode": "USER_PROVISIONED", "SizeGiB": 64},
                },
            },
            {**lustre, "LustreConfiguration": {"DeploymentType": "PERSISTENT_2"}},
            tagged("prod-storage", **lustre, LustreConfiguration={"DeploymentType": "PERSISTENT_2"}),
            {**lustre, "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}},
            {"FileSystemType": "ONTAP"},
        ],
    }


@dataclass
class FailingApi:
    """The account above, of which some calls fail: whole lists, lists after some items, single clusters, garbled items.

    ``cut`` is after how many items a list breaks off, by operation; ``clusters`` what becomes of describing one.
    """

    cut: Mapping[str, int] = field(default_factory=dict)
    clusters: Mapping[str, Exception | None] = field(default_factory=dict)
    garbled: frozenset[str] = frozenset()
    lists: Mapping[str, list[Any]] = field(default_factory=dict)
    """Lists that are others than in that account, by operation."""
    described: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def call(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        assert (service, operation) == ("sagemaker", "describe_cluster")
        name = params["ClusterName"]
        error = self.clusters.get(name)
        if error is not None:
            raise error
        return (
            {"InstanceGroups": [None], "RestrictedInstanceGroups": [None]}
            if name in self.garbled
            else {**RICH_CLUSTERS, **self.described}[name]
        )

    def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
        assert key
        assert not params
        name = "eks_list_clusters" if service == "eks" else operation
        items = {**whole_account(), **self.lists}[name]
        if name not in self.cut:
            return Listed(items=items)
        return Listed(items=items[: self.cut[name]], missing=NOT_READ)

    def each(self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> list[ResultT]:
        return [function(item) for item in items]


EVERY_KIND = [
    "hyperpod_instances",
    "hyperpod_instances:ml.p5.48xlarge",
    "hyperpod_instances:ml.c5.large",
    "hyperpod_spot_instances:ml.g5.12xlarge",
    "reserved_instances:ml.p5.48xlarge",
    "training_plans",
    "vpcs",
    "elastic_ips",
    "internet_gateways",
    "nat_gateways:use1-az5",
    "network_interfaces",
    "network_interfaces:use1-az5",
    "network_interfaces_beside_nodes",
    "security_groups",
    "gateway_endpoints",
    "interface_endpoints:vpc-a",
    "subnets:vpc-a",
    "cidrs:vpc-a",
    "eks_clusters",
    "lustre_file_systems:PERSISTENT_2",
    "lustre_capacity_gib:PERSISTENT_2",
    "lustre_tiering_mbps",
    "lustre_read_cache_gib",
    "restricted_lustre_tib",
]
FAILURES = st.builds(
    FailingApi,
    cut=st.dictionaries(st.sampled_from(sorted(whole_account())), st.integers(0, 3), max_size=6),
    clusters=st.dictionaries(st.sampled_from(sorted(RICH_CLUSTERS)), st.sampled_from([NOT_READ, None]), max_size=4),
    garbled=st.frozensets(st.sampled_from(sorted(RICH_CLUSTERS)), max_size=2),
)


def test_the_table_has_every_kind() -> None:
    assert {kind.partition(":")[0] for kind in EVERY_KIND} == set(reading._COUNTS)
    assert all(used(FailingApi(), kind, OWN).is_whole for kind in EVERY_KIND)
    # what no test of failures could notice
    empty = {"hyperpod_spot_instances:ml.p5.48xlarge", "lustre_read_cache_gib"}
    assert {kind for kind in EVERY_KIND if not used(FailingApi(), kind, OWN).at_least} <= empty


@settings(deadline=None, max_examples=150)
@given(api=FAILURES, kind=st.sampled_from(EVERY_KIND))
def test_whatever_fails_the_count_is_a_lower_bound_that_says_so(api: FailingApi, kind: str) -> None:
    truth = used(FailingApi(), kind, OWN).at_least
    found = used(api, kind, OWN)
    assert found.at_least <= truth
    assert found.at_least == truth or not found.is_whole


@settings(deadline=None, max_examples=60)
@given(kind=st.sampled_from(EVERY_KIND), gone=st.sampled_from(sorted(RICH_CLUSTERS)))
def test_what_is_gone_since_it_was_listed_is_not_there(kind: str, gone: str) -> None:
    found = used(FailingApi(clusters={gone: NotFound(gone)}), kind, OWN)
    assert found.is_whole
    # the interfaces of the environment's own nodes are told by its cluster
    assert found.at_least <= used(FailingApi(), kind, OWN).at_least or gone == OWN.hyperpod_cluster


@pytest.mark.parametrize(
    ("code", "message", "is_absent"),
    [
        # botocore's model of DescribeCluster and DescribeTrainingPlan
        ("ResourceNotFound", "Cluster with name lab not found", True),
        ("ValidationException", 'Could not find cluster "lab".', True),
        ("ValidationException", "1 validation error detected: Value at 'clusterName' failed", False),
        ("AccessDeniedException", "User is not authorized; the cluster may not exist", False),
        ("ThrottlingException", "Rate exceeded", False),
    ],
)
def test_what_sagemaker_says_of_what_is_not_there(code: str, message: str, is_absent: bool) -> None:  # noqa: FBT001 - a parameter of the table
    assert is_gone(code, message) is is_absent


def test_one_cluster_that_cannot_be_described_leaves_the_others_counted() -> None:
    api = FailingApi(
        clusters={"restricted": NotAnswered("no permission", action="sagemaker:DescribeCluster", said="X")}
    )
    found = used(api, "hyperpod_instances:ml.p5.48xlarge", OWN)
    assert found == Usage(
        at_least=5,
        unread=(
            Unread(
                kind="HyperPod cluster",
                name="restricted",
                reason="no permission",
                action="sagemaker:DescribeCluster",
                said="X",
            ),
        ),
    )
    assert found.what_is_unread == "HyperPod cluster restricted could not be read"


def test_a_list_that_does_not_matter_is_not_missed() -> None:
    nothing_there = FailingApi(cut={"describe_subnets": 0, "describe_nat_gateways": 0})
    assert used(nothing_there, "nat_gateways:use1-az5", OWN).what_is_unread == (
        "the list of NAT gateways could not be read"
    )
    assert used(FailingApi(cut={"describe_subnets": 0}), "network_interfaces", OWN).is_whole


def test_an_applied_value_behind_a_page_that_did_not_come_is_not_the_default() -> None:
    class Cut(FakeApi):
        def listed(self, service: str, operation: str, key: str, **params: Any) -> Listed:
            whole = super().listed(service, operation, key, **params)
            return Listed(items=whole.items, missing=NOT_READ) if operation == "list_service_quotas" else whole

    with pytest.raises(NotAnswered, match=r"^throttled$"):
        read_quota(Cut(applied=[row("another", "L-2")], defaults=[row(P5, "L-1", 9.0)]), "sagemaker", P5)
    found = read_quota(Cut(applied=[row(P5, "L-1", 8.0)], defaults=[row(P5, "L-1", 9.0)]), "sagemaker", P5)
    assert (found.value, found.is_default) == (8.0, False)


MAY_BE_LEFT_OUT = {
    # of groups: On-Demand; without an environment of their own
    *("CapacityRequirements", "EnvironmentConfig", "RestrictedInstanceGroups", "FSxLustreConfig", "Spot"),
    # whose share of a flexible group is known by the count of the whole group
    "InstanceTypeDetails",
    # only whether they are of another account is asked
    "VpcId",
}
"""Members that an answer of AWS lacks where there is no such thing, as botocore's models and the guides say."""


def _lost(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every member of an answer by its name, and the answer without it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name, {key: each for key, each in value.items() if key != name}
            yield from ((lost, {**value, name: less}) for lost, less in _lost(inner))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from ((lost, [*value[:index], less, *value[index + 1 :]]) for lost, less in _lost(inner))


@row_by_row("kind", EVERY_KIND)
def test_an_answer_that_lost_a_member_never_lowers_a_count_unsaid(kind: str) -> None:
    truth = used(FailingApi(), kind, OWN).at_least
    lists = whole_account()
    for operation, rows in lists.items():
        for name, less in _lost(rows):
            found = used(FailingApi(lists={operation: less}), kind, OWN)
            assert found.at_least >= truth or not found.is_whole or name in MAY_BE_LEFT_OUT, (operation, name)
    for cluster, answer in RICH_CLUSTERS.items():
        for name, less in _lost(answer):
            found = used(FailingApi(described={cluster: less}), kind, OWN)
            assert found.at_least >= truth or not found.is_whole or name in MAY_BE_LEFT_OUT, (cluster, name)
