"""What stands in an embedded account, told so that two accounts can be compared: without ids, times and random names.

Services are asked, and what CloudFormation gave each resource is read beside it: nothing here trusts a template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from tests.support.in_process_cdk import Aws

Place = tuple[str, str]
"""A stack and a logical id."""

_GENERATED: Final = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?:[a-z]{2,12}-)?[0-9a-f]{17}\b|\b[0-9a-f]{8}\b"
    r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{12}\b|(?<=-)[A-Z0-9]{12}\b|\b(?=[A-Z0-9]*\d)[A-Z0-9]{12,32}\b"
)
"""Ids that services make up: ``eni-0123456789abcdef0``, UUIDs, and the ends of names."""

_OBJECTS: Final = " objects"
_STAYS: Final = ": Namespace "
"""A namespace leaves its stack and stays, with what people made in it, which plans say."""

_SETTLED: Final = frozenset({"Created", "Updated"})
"""Statuses of what task governance made: each says that it is in force."""

_ACCESS_LOG: Final = re.compile(r"\d{4}(-\d\d){5}-[0-9A-F]+$")
"""How S3 names the objects in which it logs requests (S3 user guide, "Log object key format")."""

_MADE_UP: Final = frozenset(
    {
        *("ResponseMetadata", "createdAt", "modifiedAt", "CreationTime", "LastModifiedTime", "RoleLastUsed", "ETag"),
        *("storedBytes", "CreateDate", "UpdateDate", "RevisionId", "LastModified", "CodeSha256", "lastUpdatedAt"),
        *("PhysicalResourceId", "NetworkInterfaceIds", "DNSName", "MountName", "certificateAuthority", "endpoint"),
        *("platformVersion", "IpAddress", "PrivateIp", "PublicIp", "AllocationId", "OwnerId", "creationTime"),
        *("DefaultVersionId", "SourceCodeHash", "StateUpdatedTimestamp", "StateReason", "StateReasonData"),
        *("AlarmConfigurationUpdatedTimestamp", "StateTransitionedTimestamp", "EventTimestamp", "Version"),
        *("SchedulerConfigVersion", "ComputeQuotaVersion", "ClusterSchedulerConfigVersion", "FailureDetails"),
        *("StateValue", "AvailableIpAddressCount", "PendingModifiedValues", "AdministrativeActions", "health"),
        # moto gives it to a subnet by the order in which they are made
        "DefaultForAz",
    }
)
"""Members whose values say when, how often or under which number something was made."""


@dataclass(frozen=True)
class Standing:
    """What stands: resources of stacks by their place, what services tell of them, and what is of no stack."""

    resources: Mapping[Place, Any]
    told: Mapping[str, Any]
    ids: Mapping[Place, tuple[str, str]]
    """The type and the physical id of each resource of a stack."""
    kept: frozenset[str]
    """Physical ids of what a stack made and has no more, which may still be there."""


def differences(got: Standing, wanted: Standing) -> list[str]:
    """Say what stands in ``got`` and not, or in another way, in ``wanted``; what was retained is left out."""
    resources = {str(place): each for place, each in got.resources.items()}
    fresh = {str(place): each for place, each in wanted.resources.items()}
    return [*_between("resource", resources, fresh), *_between("service", got.told, wanted.told)]


def _between(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*one, *other}):
        if key not in other:
            if _STAYS not in key:
                yield f"{name} {key} is there and in no fresh deployment: {_short(one[key])}"
        elif key not in one:
            yield f"{name} {key} is missing: {_short(other[key])}"
        elif key.endswith(_OBJECTS):
            # what nothing prunes stays: nodes that were made before may still read it
            yield from (f"{key}: {each} is missing" for each in sorted(other[key].keys() - one[key].keys()))
        elif one[key] != other[key]:
            yield from (f"{name} {key}: {each}" for each in _apart(one[key], other[key], ""))


def read(aws: Aws, stacks: Iterable[str]) -> Standing:
    """Read what stands of stacks."""
    ids = dict(_ids(aws, stacks))
    steps = aws.steps()
    kept = {str(each["physical_id"]) for each in steps if each["physical_id"] and each["phase"] == "create"}
    owned = {physical for _, physical in ids.values()}
    # a rule and a dashboard may have one name: which resource was made last is not as deployed
    masks = _Masks({ids[place][1]: f"<{'/'.join(place)}>" for place in sorted(ids, reverse=True)})
    last = {(each["stack"], each["logical_id"]): each["properties"] for each in steps if each["phase"] != "delete"}
    resources = {place: {"Type": kind, "Properties": masks.of(last.get(place, {}))} for place, (kind, _) in ids.items()}
    told = dict(_told(aws, ids, masks))
    for place, (kind, vpc) in ids.items():
        if kind == "AWS::EC2::VPC":
            _without_kept_blocks(told, place, vpc, kept - owned, aws)
    return Standing(resources=resources, told=told, ids=ids, kept=frozenset(kept - owned))


def _without_kept_blocks(told: dict[str, Any], place: Place, vpc: str, kept: Collection[str], aws: Aws) -> None:
    """Tell of each block that a stack made and has no more as of one that stays, not as of one of the VPC's."""
    owners = {str(each["physical_id"]): each["logical_id"] for each in aws.steps() if each["phase"] == "create"}
    whole = told[f"{'/'.join(place)} described"]
    stays = [each for each in _vpc(aws, vpc)["Blocks"] if each["AssociationId"] in kept]
    blocks = {each["CidrBlock"] for each in stays}
    whole["Blocks"] = [each for each in whole["Blocks"] if each["CidrBlock"] not in blocks]
    for each in stays:
        told[f"{'/'.join(place)} block that stays: {owners[each['AssociationId']]}"] = each["CidrBlock"]


def _ids(aws: Aws, stacks: Iterable[str]) -> Iterator[tuple[Place, tuple[str, str]]]:
    pages = aws.cloudformation.get_paginator("list_stack_resources")
    for stack in stacks:
        for page in pages.paginate(StackName=stack):
            for each in page["StackResourceSummaries"]:
                if not each["ResourceStatus"].startswith("DELETE"):
                    yield (
                        (stack, each["LogicalResourceId"]),
                        (each["ResourceType"], str(each.get("PhysicalResourceId", ""))),
                    )


class _Masks:
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = {physical: name for physical, name in names.items() if len(physical) > 11}
        self.pattern = re.compile(
            "|".join(re.escape(each) for each in sorted(self.names, key=len, reverse=True)) or r"(?!)"
        )

    def of(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.of(each) for key, each in value.items() if key not in _MADE_UP}
        if isinstance(value, list | tuple):
            return sorted((self.of(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
        if isinstance(value, datetime):
            return "<time>"
        if isinstance(value, str) and value[:1] in "{[":
            try:
                return self.of(json.loads(value))
            except ValueError:
                return self.text(value)
        return self.text(value) if isinstance(value, str) else value

    def text(self, value: str) -> str:
        if value in _SETTLED:
            return "<settled>"
        return _GENERATED.sub("<id>", self.pattern.sub(lambda found: self.names[found[0]], value))


def _told(aws: Aws, ids: Mapping[Place, tuple[str, str]], masks: _Masks) -> Iterator[tuple[str, Any]]:
    for (stack, logical), (kind, physical) in ids.items():
        for name, ask in _QUESTIONS.get(kind, {}).items():
            try:
                answer = ask(aws, physical)
            except ClientError as error:
                answer = {"error": str(error.response.get("Error", {}).get("Code"))}
            yield f"{stack}/{logical} {name}", masks.of(answer)
    state = aws.state()
    for part in ("manifests", "releases"):
        for cluster, rows in state[part].items():
            for row in rows:
                metadata = row.get("metadata") or row
                key = f"{cluster}: {row.get('kind', part)} {metadata.get('namespace', '')}/{metadata.get('name')}"
                yield masks.text(key), masks.of(row)


Question = Callable[[Aws, str], Any]


def _asks(service: str, operation: str, argument: str, *, many: bool = False, last: str = "") -> Question:
    def ask(aws: Aws, physical: str) -> Any:
        given = physical.rsplit(last, 1)[-1] if last else physical
        return getattr(aws.client(service), operation)(**{argument: [given] if many else given})

    return ask


def _filtered(operation: str, name: str) -> Question:
    def ask(aws: Aws, physical: str) -> Any:
        return getattr(aws.client("ec2"), operation)(Filters=[{"Name": name, "Values": [physical]}])

    return ask


def _vpc(aws: Aws, physical: str) -> Any:
    (found,) = aws.client("ec2").describe_vpcs(VpcIds=[physical])["Vpcs"]
    # a block that was taken away is told for a while
    blocks = found.pop("CidrBlockAssociationSet", [])
    return {**found, "Blocks": [each for each in blocks if each["CidrBlockState"]["State"] != "disassociated"]}


def _routes(aws: Aws, subnet: str) -> Any:
    here = [{"Name": "association.subnet-id", "Values": [subnet]}]
    tables = aws.client("ec2").describe_route_tables(Filters=here)["RouteTables"]
    # moto gives a table the local routes of the blocks that its VPC has when the table is made, and those of a gateway
    # endpoint when that is made, neither when one is changed; which tables an endpoint has it tells itself
    return [
        [each for each in table["Routes"] if each.get("GatewayId") != "local" and "DestinationPrefixListId" not in each]
        for table in tables
    ]


def _control_plane(aws: Aws, cluster: str) -> Any:
    found = aws.client("eks").describe_cluster(name=cluster)["cluster"]
    if not found["resourcesVpcConfig"]["endpointPublicAccess"]:
        # EKS keeps the callers of an endpoint that is closed, and nobody calls it
        del found["resourcesVpcConfig"]["publicAccessCidrs"]
    return found


def _inside(operation: str, key: str, describe: str, argument: str) -> Question:
    """Describe everything of one kind in an EKS cluster."""

    def ask(aws: Aws, cluster: str) -> Any:
        eks = aws.client("eks")
        return {
            each: getattr(eks, describe)(clusterName=cluster, **{argument: each})
            for each in getattr(eks, operation)(clusterName=cluster)[key]
        }

    return ask


def _policies(aws: Aws, cluster: str) -> Any:
    eks = aws.client("eks")
    return {
        each: eks.list_associated_access_policies(clusterName=cluster, principalArn=each)["associatedAccessPolicies"]
        for each in eks.list_access_entries(clusterName=cluster)["accessEntries"]
    }


def _inline(aws: Aws, role: str) -> Any:
    iam = aws.client("iam")
    return {
        each: iam.get_role_policy(RoleName=role, PolicyName=each)["PolicyDocument"]
        for each in iam.list_role_policies(RoleName=role)["PolicyNames"]
    }


def _objects(aws: Aws, bucket: str) -> Any:
    rows = aws.client("s3").list_objects_v2(Bucket=bucket).get("Contents", [])
    return {each["Key"]: (each["Size"], each["ETag"]) for each in rows if not _ACCESS_LOG.search(each["Key"])}


def _nodes(aws: Aws, cluster: str) -> Any:
    rows = aws.client("sagemaker").list_cluster_nodes(ClusterName=cluster)["ClusterNodeSummaries"]
    return [(each["InstanceGroupName"], each["InstanceType"], each["InstanceStatus"]) for each in rows]


def _group(aws: Aws, name: str) -> Any:
    rows = aws.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return [each for each in rows if each["logGroupName"] == name]


_QUESTIONS: Final[Mapping[str, Mapping[str, Question]]] = {
    "AWS::EC2::VPC": {"described": _vpc},
    "AWS::EC2::Subnet": {
        "described": _asks("ec2", "describe_subnets", "SubnetIds", many=True),
        "routes": _routes,
    },
    "AWS::EC2::SecurityGroup": {
        "described": _asks("ec2", "describe_security_groups", "GroupIds", many=True),
        "rules": _filtered("describe_security_group_rules", "group-id"),
    },
    "AWS::EC2::VPCEndpoint": {"described": _asks("ec2", "describe_vpc_endpoints", "VpcEndpointIds", many=True)},
    "AWS::EKS::Cluster": {
        "described": _control_plane,
        "add-ons": _inside("list_addons", "addons", "describe_addon", "addonName"),
        "access": _inside("list_access_entries", "accessEntries", "describe_access_entry", "principalArn"),
        "policies": _policies,
    },
    "AWS::SageMaker::Cluster": {
        "described": _asks("sagemaker", "describe_cluster", "ClusterName"),
        "nodes": _nodes,
        "scheduler": _asks("sagemaker", "list_cluster_scheduler_configs", "ClusterArn"),
        "quotas": _asks("sagemaker", "list_compute_quotas", "ClusterArn"),
    },
    "AWS::SageMaker::ComputeQuota": {
        "described": _asks("sagemaker", "describe_compute_quota", "ComputeQuotaId", last="/"),
    },
    "AWS::FSx::FileSystem": {"described": _asks("fsx", "describe_file_systems", "FileSystemIds", many=True)},
    "AWS::FSx::DataRepositoryAssociation": {
        "described": _asks("fsx", "describe_data_repository_associations", "AssociationIds", many=True),
    },
    "AWS::IAM::Role": {
        "described": _asks("iam", "get_role", "RoleName"),
        "attached": _asks("iam", "list_attached_role_policies", "RoleName"),
        "inline": _inline,
    },
    "AWS::KMS::Key": {
        "described": _asks("kms", "describe_key", "KeyId"),
        "policy": lambda aws, key: aws.client("kms").get_key_policy(KeyId=key, PolicyName="default"),
    },
    "AWS::Logs::LogGroup": {"described": _group},
    "AWS::S3::Bucket": {
        "objects": _objects,
        "policy": _asks("s3", "get_bucket_policy", "Bucket"),
        "encryption": _asks("s3", "get_bucket_encryption", "Bucket"),
        "lifecycle": _asks("s3", "get_bucket_lifecycle_configuration", "Bucket"),
    },
    "AWS::Lambda::Function": {"described": _asks("lambda", "get_function_configuration", "FunctionName")},
    "AWS::Events::Rule": {"targets": _asks("events", "list_targets_by_rule", "Rule")},
}


def _apart(one: Any, other: Any, path: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if one.get(key) != other.get(key):
                yield from _apart(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            if left != right:
                yield from _apart(left, right, f"{path}[{number}]")
    else:
        yield f"{path}: {_short(one)} in place of {_short(other)}"


def _short(value: Any) -> str:
    said = json.dumps(value, sort_keys=True, default=str)
    return said if len(said) < 400 else f"{said[:400]}..."
