"""Numbers that cost money, read from the properties of any type: machines, sizes, rates, modes.

AWS's price lists charge for machines by their type and number, for storage by its size, for provisioned IOPS,
throughput, capacity and concurrency, and for some modes in addition. CloudFormation's types use the same names for
them, so they are found by name on any type; types that another reader counts, or for which such a number costs nothing,
are excluded. Source: the product attributes of the AWS Price List Query API (``aws pricing get-attribute-values``) and
the pricing page of each service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from hyperpod_cdk.catalog import prices as catalog
from hyperpod_cdk.catalog.prices import Kind
from hyperpod_cdk.catalog.rules import joined

_MACHINE: Final = re.compile(
    r"(Db|DB|Cache|Instance|Node|Broker|Host|Replication|Dedicated\w*|Warm|Worker)*(InstanceType|InstanceClass|NodeType"
    r"|WorkerType|AcceleratorType)"
)
_NUMBER: Final = re.compile(
    r"(Initial|Desired|Total|On|Max)?(InstanceCount|NumberOf\w*Nodes|NumCacheClusters|NumCacheNodes|NodeCount"
    r"|NumberOfWorkers|DesiredCount|TotalTargetCapacity|ReplicationFactor|NumberOfInstances|Size)"
)
_BESIDE: Final[Mapping[str, str]] = {"DedicatedMasterType": "DedicatedMasterCount", "WarmType": "WarmCount"}
"""Machines of a second kind in addition to those of a domain, with the property that states their number."""
_SIZE: Final = re.compile(
    r"StorageCapacity|AllocatedStorage|DiskSize|MaxAllocatedStorage|VolumeSize|VolumeSizeInGB|EBSVolumeSizeGB"
    r"|SizeInGiBs?|ThroughputCapacity(PerHAPair)?|ProvisionedThroughputInMibps|Iops|(Storage|Volume)?Throughput"
    r"|ReadCapacityUnits|WriteCapacityUnits|MaxReadRequestUnits|MaxWriteRequestUnits|ShardCount|ModelUnits"
    r"|ProvisionedConcurrentExecutions|NumNodeGroups|NumShards|ReplicasPerNodeGroup|NumReplicasPerShard|HAPairs"
    r"|MinvCpus|MaxvCpus|DesiredvCpus|MaxCapacity|MinCapacity|DPUs?|MinACU|MaxACU|BaseCapacity|MaxCapacityUnits"
    r"|PerformanceInsightsRetentionPeriod|MaxSize|MaxConcurrency|ProvisionedMemory|ProvisionedCapacity|CapacityUnits|MaxClusterCount|MaxInstances"
    r"|DesiredCount|ReadUnitsPerSecond|WriteUnitsPerSecond"
)
_WITH_STORAGE: Final = re.compile(r"StorageCapacity|AllocatedStorage|Volume|EBS|SizeInGiB|Iops|Throughput")
_COUNTED_ELSEWHERE: Final = frozenset({"AWS::SageMaker::Cluster"})
_MACHINES_ELSEWHERE: Final = frozenset(
    {
        *("AWS::EC2::Host", "AWS::EC2::Instance", "AWS::EKS::Nodegroup", "AWS::SageMaker::NotebookInstance"),
        # a template of machines costs nothing until something starts them, which has its own row
        "AWS::EC2::LaunchTemplate",
    }
)
_DEARER: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = {
    ("AWS::EC2::Instance", "CreditSpecification", "CPUCredits"): ("standard", "unlimited"),
    ("AWS::RDS::DBCluster", "DatabaseInsightsMode"): ("standard", "advanced"),
    ("AWS::RDS::DBCluster", "StorageType"): ("aurora", "aurora-iopt1"),
    ("AWS::RDS::DBInstance", "DatabaseInsightsMode"): ("standard", "advanced"),
    ("AWS::RDS::DBInstance", "LicenseModel"): ("bring-your-own-license", "license-included"),
    ("AWS::RDS::DBInstance", "MultiAZ"): ("false", "true"),
    ("AWS::DMS::ReplicationInstance", "MultiAZ"): ("false", "true"),
    ("AWS::AmazonMQ::Broker", "DeploymentMode"): ("SINGLE_INSTANCE", "ACTIVE_STANDBY_MULTI_AZ", "CLUSTER_MULTI_AZ"),
    ("AWS::EC2::Instance", "Tenancy"): ("default", "dedicated", "host"),
    ("AWS::DynamoDB::Table", "BillingMode"): ("PAY_PER_REQUEST", "PROVISIONED"),
    ("AWS::Shield::ProactiveEngagement", "ProactiveEngagementStatus"): ("DISABLED", "ENABLED"),
}
"""Modes, the most expensive last; a default is the mode that is not stated, and counts as none."""

_FREE_UP_TO: Final[Mapping[str, int]] = {"Throughput": 125, "PerformanceInsightsRetentionPeriod": 7}
"""The highest number that costs nothing in addition to the resource.

Source: EBS pricing, gp3: 125 MB/s are included; RDS Performance Insights pricing: 7 days are free.
"""


class Quantity(NamedTuple):
    """A quantity that is paid for; ``number`` is None if only the deployment shows it."""

    path: str
    what: str
    number: Decimal | None
    kind: Kind


def of(type_: str, properties: Any) -> Iterator[Quantity]:
    """Return the quantities of a resource's resolved properties that are paid for and that no price here covers."""
    if type_ in _COUNTED_ELSEWHERE or type_.startswith("Custom::") or not isinstance(properties, dict):
        return
    if type_ == "AWS::FSx::FileSystem" and properties.get("FileSystemType") == "LUSTRE":
        # its own reader counts all of it
        return
    yield from _modes(type_, properties)
    if type_ == "AWS::EC2::Volume" and properties.get("VolumeType") != "gp3":
        yield Quantity("Size", "Size", _number(properties.get("Size")), "volumes")
    billing = catalog.billing_of(type_)
    is_free = billing is not None and billing.billing == "free"
    for path, item in _objects(properties):
        if not is_free and type_ not in _MACHINES_ELSEWHERE:
            yield from _machines(path, item)
        for key, value in item.items():
            is_size = _SIZE.fullmatch(str(key)) and not isinstance(value, (dict, list))
            number = _number(value) if is_size else None
            if number is not None and number <= _FREE_UP_TO.get(str(key), -1):
                continue
            if is_size and (not is_free or "Provisioned" in str(key)):
                kind: Kind = "storage" if _WITH_STORAGE.match(str(key)) else "other"
                yield Quantity(".".join((*path, str(key))), str(key), number, kind)


def _modes(type_: str, properties: Mapping[str, Any]) -> Iterator[Quantity]:
    for (named, *path), modes in _DEARER.items():
        value: Any = properties if named == type_ else None
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        text = str(value).lower() if isinstance(value, bool) else value
        if isinstance(text, str) and text in modes[1:]:
            yield Quantity(".".join(path), f"{path[-1]} {text}", Decimal(modes.index(text)), "other")


def _objects(properties: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    pending: list[tuple[tuple[str, ...], Any]] = [((), properties)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, list):
            pending += [((*path, str(index)), each) for index, each in enumerate(item)]
        elif isinstance(item, dict):
            yield path, item
            pending += [((*path, str(key)), value) for key, value in item.items() if isinstance(value, (dict, list))]


def _machines(path: tuple[str, ...], item: Mapping[str, Any]) -> Iterator[Quantity]:
    for named, counted in _BESIDE.items():
        if named in item:
            shown = item[named] if isinstance(item[named], str) else named
            yield Quantity(".".join((*path, named)), shown, _number(item.get(counted, 1)), "nodes")
    names = [value for key, value in item.items() if _MACHINE.fullmatch(str(key))]
    if not names:
        return
    numbers = [_number(value) for key, value in item.items() if _NUMBER.fullmatch(str(key))]
    shown = joined((str(each) for each in names if isinstance(each, str)), last="or") or "machines"
    yield Quantity(".".join((*path, "machines")), shown, numbers[0] if numbers else Decimal(1), "nodes")


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None
