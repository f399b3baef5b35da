"""AWS's names for values of an environment file: all of them, each with an existing place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import botocore
import pytest

from hyperpod_cdk.catalog import aws_words
from hyperpod_cdk.config import Environment
from tests.support.legal import fields
from tests.support.tables import row_by_row

OPERATIONS = {
    "sagemaker": ("CreateCluster", "CreateComputeQuota", "CreateClusterSchedulerConfig"),
    "fsx": ("CreateFileSystem",),
    "eks": ("CreateCluster", "CreateAddon", "CreateNodegroup"),
}
NO_COUNTERPART: Mapping[str, str] = {
    "belongs to something else: a file system that is not Lustre": (
        "FileSystemType FsxOpenZfsConfig WindowsConfiguration ActiveDirectoryId SelfManagedActiveDirectoryConfiguration"
        " DomainName OrganizationalUnitDistinguishedName FileSystemAdministratorsGroup UserName Password DnsIps"
        " DomainJoinServiceAccountSecret PreferredSubnetId Aliases AuditLogConfiguration FileAccessAuditLogLevel"
        " FileShareAccessAuditLogLevel AuditLogDestination DiskIopsConfiguration FsrmConfiguration FsrmServiceEnabled"
        " EventLogDestination OntapConfiguration EndpointIpAddressRange FsxAdminPassword RouteTableIds HAPairs"
        " ThroughputCapacityPerHAPair EndpointIpv6AddressRange OpenZFSConfiguration CopyTagsToVolumes"
        " RootVolumeConfiguration RecordSizeKiB NfsExports ClientConfigurations Clients UserAndGroupQuotas"
        " StorageCapacityQuotaGiB CopyTagsToSnapshots NetworkType Options Id DriveCacheType"
    ),
    "belongs to Slurm, which no environment here runs": (
        "SlurmConfig NodeType PartitionNames Slurm SlurmConfigStrategy AccountingDatabase Endpoint Port SecretArn"
        " MountPath"
    ),
    "made by the stacks, which need no choice": (
        "ClusterRole Mode ClientRequestToken roleArn nodeRole nodeRoleArn serviceAccountRoleArn"
        " clientRequestToken authenticationMode bootstrapSelfManagedAddons Destination resources resolveConflicts"
    ),
    "not offered: nodes are drained as HyperPod does by itself": (
        "NextPatchDate IdleWaitWindowInSeconds DrainPolicy DrainTimeoutInSeconds OnDrainTimeout"
    ),
    "not offered by this library, on a cluster that it makes": (
        "FileSystemTypeVersion RootSquashConfiguration RootSquash NoSquashNids controlPlaneEgressMode"
        " ipFamily elasticLoadBalancing gatewayApi crds logging clusterLogging"
        " outpostConfig outpostArns controlPlaneInstanceType controlPlanePlacement groupName spreadLevel"
        " etcdInstanceType etcdPlacement remoteNetworkConfig"
        " remoteNodeNetworks cidrs remotePodNetworks storageConfig blockStorage tier"
        " kubeApiServerConfig eventTtl serviceNodePortRange minPort maxPort kubeSchedulerConfig nodeResourcesFit"
        " scoringStrategy kubeControllerManagerConfig podGcControllerConfig terminatedPodGcThreshold"
        " horizontalPodAutoscalerControllerConfig horizontalPodAutoscalerSyncPeriod configurationValues namespaceConfig"
    ),
    "of EC2 nodes of a managed node group, which HyperPod's are not": (
        "id remoteAccess ec2SshKey sourceSecurityGroups launchTemplate maxUnhealthyNodeThresholdCount"
        " maxUnhealthyNodeThresholdPercentage maxParallelNodesRepairedCount maxParallelNodesRepairedPercentage"
        " nodeRepairConfigOverrides nodeMonitoringCondition nodeUnhealthyReason minRepairWaitTimeMins repairAction"
        " warmPoolConfig maxGroupPreparedCapacity poolState reuseOnScaleIn"
    ),
    "means something else in each structure that has it": "Type Value Eks types type managed ReadOnly",
}


def plain(text: str) -> str:
    return text.lower().replace("_", "").replace("-", "")


OURS = frozenset(plain(place.removesuffix("[]").rpartition(".")[2]) for place in fields())


@cache
def model(service: str) -> Mapping[str, Any]:
    folder = Path(botocore.__file__).parent / "data" / service
    newest = max(folder.iterdir()) / "service-2.json.gz"
    found: Mapping[str, Any] = json.loads(gzip.decompress(newest.read_bytes()))
    return found


def members(service: str, shape: str, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """Every name below a shape of a service's model."""
    if shape in above:
        return
    found = model(service)["shapes"][shape]
    inner = {"list": ("member",), "map": ("key", "value")}.get(found["type"], ())
    for name in inner:
        yield from members(service, found[name]["shape"], above | {shape})
    for name, member in found.get("members", {}).items():
        yield name
        yield from members(service, member["shape"], above | {shape})


@pytest.mark.parametrize(("service", "operation"), [(key, each) for key, names in OPERATIONS.items() for each in names])
def test_every_name_is_known_or_has_no_counterpart(service: str, operation: str) -> None:
    without = {name for names in NO_COUNTERPART.values() for name in names.split()}
    shape = model(service)["operations"][operation]["input"]["shape"]
    unknown = [
        name
        for name in dict.fromkeys(members(service, shape))
        if aws_words.counterpart(name) is None and plain(name) not in OURS and name not in without
    ]
    assert unknown == []


def test_what_has_no_counterpart_is_a_name_without_one() -> None:
    known = {
        name
        for service, operations in OPERATIONS.items()
        for operation in operations
        for name in members(service, model(service)["operations"][operation]["input"]["shape"])
    }
    listed = [name for names in NO_COUNTERPART.values() for name in names.split()]
    assert sorted(set(listed) - known) == []
    assert [name for name in listed if aws_words.counterpart(name) is not None] == []
    assert len(listed) == len(set(listed))


@row_by_row("word", aws_words.words(), ids=lambda word: word.aws)
def test_every_place_exists(word: aws_words.Word) -> None:
    assert word.here in fields()
    assert plain(word.aws) != plain(word.key), "it is no other word"


def test_no_name_is_listed_twice() -> None:
    spelt = [plain(word.aws) for word in aws_words.words()]
    places: dict[str, set[str]] = {}
    for word, text in zip(aws_words.words(), spelt, strict=True):
        places.setdefault(text, set()).add(word.here)
    assert {text: found for text, found in places.items() if len(found) > 1} == {}


def test_the_first_words_of_a_place_are_sections() -> None:
    assert {word.here.partition(".")[0].removesuffix("[]") for word in aws_words.words()} <= set(
        Environment.model_fields
    )
