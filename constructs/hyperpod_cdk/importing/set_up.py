"""Parameters of the main stack of AWS's set-up templates, aws/sagemaker-hyperpod-cluster-setup, for EKS.

Read at commit b920fcf: eks/cloudformation/main-stack-eks-based-template.yaml, and the function that creates the
cluster from them, resources/hyperpod-cluster-creator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.config.source import Source
from hyperpod_cdk.importing.create_cluster import read_group
from hyperpod_cdk.importing.document import Node, items, opened
from hyperpod_cdk.importing.draft import Draft, tags_of

_GROUPS: Final = tuple(f"InstanceGroupSettings{number}" for number in range(1, 21))
_RESTRICTED: Final = tuple(f"RigSettings{number}" for number in range(1, 21))
_DEFAULTS: Final[Mapping[str, str]] = {
    "HyperPodClusterName": "hp-cluster",
    "EKSClusterName": "eks",
    "KubernetesVersion": "1.31",
    "VpcCIDR": "10.192.0.0/16",
    "NodeRecovery": "Automatic",
    "OnCreatePath": "on_create.sh",
    "PerUnitStorageThroughput": "250",
    "DataCompressionType": "NONE",
    "StorageCapacity": "1200",
    "DeploymentType": "PERSISTENT_2",
    "EnableHPInferenceFeature": "true",
    **{
        f"Create{name}Stack": "true"
        for name in ("VPC", "SecurityGroup", "EKSCluster", "Fsx", "SageMakerIAMRole", "HyperPodCluster")
    },
}
_EXAMPLES: Final = frozenset(
    {"vpc-1234567890abcdef0", "subnet-1234567890abcdef0", "sg-1234567890abcdef0", "s3-bucket", "iam-role"}
)
"""The template's defaults that mean no value."""

_OF_THE_TEMPLATE: Final = (
    *("Stage", "CustomBucketName", "ResourceNamePrefix", "CreateS3BucketStack", "CreateS3EndpointStack"),
    *("CreateLifeCycleScriptStack", "CreateHelmChartStack", "CreatePrivateSubnetStack"),
    *("NatGatewayIds", "PrivateRouteTableIds", "EksPrivateRouteTableIds"),
)
"""Parameters for what this library creates in its own way, or what an existing network has."""

_OF_THE_CHART: Final = ("HelmRepoUrl", "HelmRepoPath", "HelmRelease", "Namespace", "HelmOperators")


def parameters_of(node: Node, *, is_certain: bool = False) -> Node | None:
    """Return the parameters of a document as one mapping; None if it has none of the main stack's, unless certain.

    As 'create-stack --parameters' takes them, as 'describe-stacks' answers, in a mapping of their own, or alone.
    """
    rows, value = items(node), node
    stacks = node.rows("Stacks") if isinstance(node.value.get("Stacks"), list) else []
    if len(stacks) == 1:
        rows, value = stacks[0].rows("Parameters"), stacks[0]
    elif isinstance(node.value.get("Parameters"), list):
        rows = node.rows("Parameters")
    elif isinstance(node.value.get("Parameters"), dict):
        value = node.section("Parameters") or node
    if rows is None:
        return value if is_certain or _is_ours(value.value) else None
    found: dict[str, object] = {}
    source = Source(node.source.file, found, {(): 1})
    if stacks and isinstance(stack_id := stacks[0].value.get("StackId"), str):
        found["StackId"] = stack_id
    for row in rows:
        key = row.value.get("ParameterKey")
        if isinstance(key, str) and not row.value.get("UsePreviousValue"):
            found[key] = row.value.get("ParameterValue")
            source.lines[key,] = row.line("ParameterValue")
    return Node(source, found, (), node.log) if is_certain or _is_ours(found) else None


def _is_ours(value: Mapping[str, object]) -> bool:
    return bool({*_GROUPS, *_RESTRICTED, "CreateHyperPodClusterStack", "HyperPodClusterName"} & set(value))


class _Parameters:
    """Texts of parameters, with the template's defaults."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def stated(self, key: str) -> str | None:
        """Return what the source says, None for nothing and for the template's examples of IDs."""
        value = self.node.value.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.node.asked.add(key)
            return f"{value}"
        if isinstance(value, bool):
            self.node.asked.add(key)
            return str(value).lower()
        text = self.node.text(key)
        return None if text in _EXAMPLES else text

    def text(self, key: str) -> str:
        """Return what the source says, else the template's default."""
        return self.stated(key) or _DEFAULTS[key]

    def is_on(self, key: str) -> bool:
        return self.text(key) == "true"

    def list(self, key: str) -> list[str]:
        text = self.stated(key) or ""
        return [each for part in text.split(",") if (each := part.strip()) and each not in _EXAMPLES]

    def number(self, key: str) -> int | None:
        text = self.text(key)
        if text.isdecimal() and len(text) < 10:
            return int(text)
        self.node.log.refuse(self.node.place(key), f"must be a whole number, got {text}")
        return None


def read_parameters(node: Node, draft: Draft) -> None:
    """Fill a draft from the parameters of the main stack."""
    said, log = _Parameters(node), draft.log
    if not said.is_on("CreateHyperPodClusterStack"):
        log.refuse(node.place("CreateHyperPodClusterStack"), "is false: there is no HyperPod cluster to import")
    if stack_id := node.text("StackId"):
        draft.home(stack_id, node.place("StackId"))
    zones = said.list("AvailabilityZoneIds")
    _read_network(said, draft, zones)
    _read_eks(said, draft)
    draft.hyperpod["cluster_name"] = said.text("HyperPodClusterName")
    if said.text("NodeRecovery") == "None":
        draft.no_recovery(node.place("NodeRecovery"))
    if said.stated("NodeProvisioningMode") != hyperpod.PROVISIONING["continuous"]:
        draft.all_or_nothing(node.place("NodeProvisioningMode"))
    _read_groups(said, draft, zones)
    _read_scripts(said, draft)
    _read_lustre(said, draft, zones)
    if said.is_on("EnableHPInferenceFeature"):
        draft.sections["operators"] = {"inference": {"enabled": True}}
        if said.is_on("CreateEKSClusterStack"):
            draft.eks["oidc_provider"] = True
    _read_tags(said, draft)
    for key in _OF_THE_TEMPLATE:
        node.asked.add(key)
    for key in _OF_THE_CHART:
        if said.stated(key):
            log.note(
                "changed",
                "is not imported: the environment installs HyperPod's chart at the commit of charts/charts.lock.yaml",
                at=node.place(key),
            )
    node.rest()


def _read_network(said: _Parameters, draft: Draft, zones: list[str]) -> None:
    node = said.node
    groups = said.list("SecurityGroupIds")
    subnets, for_eks, vpc_id = said.list("PrivateSubnetIds"), said.list("EksPrivateSubnetIds"), said.stated("VpcId")
    if said.is_on("CreateVPCStack"):
        draft.network["availability_zones"] = zones
        if said.text("VpcCIDR") != _DEFAULTS["VpcCIDR"]:
            draft.network = {"vpc_cidr": said.text("VpcCIDR"), **draft.network}
        return
    node.asked.add("VpcCIDR")
    existing: dict[str, Any] = {"vpc_id": vpc_id}
    draft.network["existing"] = existing
    for each in subnets:
        draft.subnet(each, node.place("PrivateSubnetIds"))
    if said.is_on("CreateEKSClusterStack"):
        existing["control_plane_subnet_ids"] = for_eks
    if groups and not said.is_on("CreateSecurityGroupStack"):
        draft.security_groups(groups, node.place("SecurityGroupIds"))


def _read_eks(said: _Parameters, draft: Draft) -> None:
    node = said.node
    name, group = said.text("EKSClusterName"), said.stated("SecurityGroupId")
    if said.is_on("CreateEKSClusterStack"):
        draft.eks["kubernetes_version"] = said.text("KubernetesVersion")
        if said.stated("EKSClusterName"):
            draft.log.note(
                "changed",
                f"the EKS cluster {name} gets another name: the environment's own is {draft.known.name}-eks",
                at=node.place("EKSClusterName"),
            )
        return
    draft.eks["existing"] = {"cluster_name": name, "security_group_id": group}
    if version := said.stated("KubernetesVersion"):
        draft.eks["kubernetes_version"] = version


def _read_groups(said: _Parameters, draft: Draft, zones: list[str]) -> None:
    subnets = said.list("PrivateSubnetIds")
    is_made = said.is_on("CreateVPCStack")
    script = said.text("OnCreatePath").rpartition("/")[2]
    for keys, is_restricted in ((_GROUPS, False), (_RESTRICTED, True)):
        for key in keys:
            for row in _rows(said, draft, key):
                zone = row.text("TargetAvailabilityZoneId")
                if row.text("InstanceGroupType") in ("Controller", "Login"):
                    draft.log.refuse(
                        row.place("InstanceGroupType"), "is for Slurm; this library is for HyperPod on EKS"
                    )
                at = row.place("TargetAvailabilityZoneId")
                group = read_group(
                    row, draft, subnets=() if is_made else subnets, script=script, is_restricted=is_restricted
                )
                if group is None:
                    continue
                group.zone = zone or (zones[0] if is_made and len(zones) == 1 else None)
                if zone and is_made and zones and zone not in zones:
                    draft.log.note(
                        "changed",
                        f"that template creates no subnet in {zone}, and then silently drops the pin of group"
                        f" {group.name}: its nodes can be in any zone. Here the network gets a subnet in {zone}, and"
                        " the group stays in it",
                        at=at,
                    )


def _rows(said: _Parameters, draft: Draft, key: str) -> Iterator[Node]:
    value = said.node.value.get(key)
    said.node.asked.add(key)
    if value in (None, "", "[]"):
        return
    text = value if isinstance(value, str) else json.dumps(value)
    place = said.node.place(key)
    inner = opened(text, f"{place.file} {place.path}", draft.log)
    inner.source.file = place.file
    line = said.node.line(key)
    inner.source.lines = {(): line}
    found = items(inner)
    if found is None:
        draft.log.refuse(place, "must be a list of groups as text")
        return
    for row in found:
        row.source.lines = {(): line}
        row.label = key
        yield row


def _read_scripts(said: _Parameters, draft: Draft) -> None:
    node = said.node
    bucket, url, role = said.stated("S3BucketName"), said.stated("GithubRawUrl"), said.stated("SageMakerIAMRoleName")
    stated = "GithubRawUrl" if url else "S3BucketName"
    draft.log.note(
        "changed",
        f"the script of {url or bucket or 'the template, which takes it from a branch on GitHub,'} is not used:"
        " nodes get those of lifecycle_scripts/, or without that folder the library's own",
        at=node.place(stated),
        path="hyperpod.lifecycle",
    )
    if role and not said.is_on("CreateSageMakerIAMRoleStack"):
        draft.log.note(
            "changed",
            f"{role} is not used: the environment creates the execution role of its nodes; other permissions of its"
            " policies are lost",
            at=node.place("SageMakerIAMRoleName"),
        )
    if said.stated("RigS3BucketName"):
        draft.log.note(
            "lost",
            "name it as input_buckets or output_buckets of the restricted groups that use it",
            at=node.place("RigS3BucketName"),
        )


def _read_lustre(said: _Parameters, draft: Draft, zones: list[str]) -> None:
    node = said.node
    existing, subnet, zone = (
        said.stated("FsxFileSystemId"),
        said.stated("FsxSubnetId"),
        said.stated("FsxAvailabilityZoneId"),
    )
    kind = said.text("DeploymentType")
    node.asked.add("FileSystemTypeVersion")
    sizes = {
        "capacity_gib": said.number("StorageCapacity"),
        "throughput_mbps_per_tib": said.number("PerUnitStorageThroughput"),
    }
    compression = said.text("DataCompressionType").lower()
    if not said.is_on("CreateFsxStack"):
        return
    zone = zone or draft.known.subnet_zones.get(subnet or "") or (zones[0] if len(zones) == 1 else None)
    entry: dict[str, Any] = {"name": "fsx"}
    if zone:
        entry["availability_zone_id"] = zone
    else:
        draft.log.note(
            "missing",
            "where the file system is, which the source does not say",
            at=node.place("FsxAvailabilityZoneId"),
            path="storage.lustre[0].availability_zone_id",
        )
    if existing:
        entry["existing"] = {"file_system_id": existing}
        draft.log.note(
            "missing",
            f"its mount name, which the source does not state ('aws fsx describe-file-systems --file-system-ids"
            f" {existing}' shows it as MountName)",
            at=node.place("FsxFileSystemId"),
            path="storage.lustre[0].existing.mount_name",
        )
    elif kind in ("PERSISTENT_2", "SCRATCH_2"):
        entry |= (
            sizes if kind == "PERSISTENT_2" else {"deployment_type": "scratch_2", "capacity_gib": sizes["capacity_gib"]}
        )
        if compression == "none":
            entry["compression"] = "none"
    else:
        draft.log.note(
            "lost", f"the file has no word for {kind}", at=node.place("DeploymentType"), path="storage.lustre"
        )
        return
    draft.sections["storage"] = {"lustre": [entry]}


def _read_tags(said: _Parameters, draft: Draft) -> None:
    text, at = said.stated("Tags") or "", said.node.place("Tags")
    pairs: list[tuple[str, str]] = []
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        pairs = [
            (key.strip(), value.strip())
            for key, mark, value in (each.partition("=") for each in text.split(","))
            if mark
        ]
    else:
        if isinstance(found, dict):
            pairs = [(str(key), str(value)) for key, value in found.items()]
        elif isinstance(found, list):
            pairs = [(str(each.get("Key")), str(each.get("Value") or "")) for each in found if isinstance(each, dict)]
    tags_of([(key, value, at) for key, value in pairs], draft)
