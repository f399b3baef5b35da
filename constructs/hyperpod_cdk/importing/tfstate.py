"""State of Terraform, ``terraform.tfstate``: the cluster of AWS's module, with the IDs of the resources around it.

The format is internal to Terraform; that of version 4, from Terraform 0.12 on and of OpenTofu, has
``resources`` with ``module``, ``mode``, ``type``, ``name`` and ``instances``, each with the ``attributes`` of its
provider. Types as in AWS's module hyperpod-eks-tf, awslabs/awsome-distributed-ai, commit 0edaf152.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from hyperpod_cdk.config.eks import OWN_ADDONS
from hyperpod_cdk.config.source import DataPath, Source
from hyperpod_cdk.importing.create_cluster import read_cluster
from hyperpod_cdk.importing.document import Node
from hyperpod_cdk.importing.draft import Draft, name_in_file

_VERSION: Final = 4
_CLUSTER: Final = "awscc_sagemaker_cluster"
_READ_ONLY: Final = frozenset({"id", "cluster_arn", "cluster_status", "creation_time", "failure_message"})
_READ_ONLY_OF_GROUPS: Final = frozenset({"current_count"})
_VERBATIM: Final = frozenset({"labels"})
"""Mappings whose keys users choose."""

_WORDS: Final = {
    "fsx_lustre_config": "FSxLustreConfig",
    "size_in_gi_b": "SizeInGiB",
    "volume_size_in_gb": "VolumeSizeInGB",
}
"""Names that do not follow from those of the provider awscc, which has CloudFormation's names in lower case."""


def is_state(node: Node) -> bool:
    """Return whether a document is a state of Terraform or OpenTofu, of any version, or an encrypted one."""
    keys = set(node.value)
    return {"terraform_version", "lineage"} <= keys or "encrypted_data" in keys or {"lineage", "serial"} <= keys


def read_state(node: Node, draft: Draft) -> None:
    """Fill a draft from the one cluster of a state."""
    cluster = _cluster_of(node)
    if cluster is None:
        return
    draft.network["existing"] = {}
    _know(node, draft)
    read_cluster(_as_request(cluster, node), draft)
    if draft.log.errors:
        return
    _read_add_ons(node, draft)
    _read_lustre(node, draft)
    draft.log.note(
        "unsafe",
        "Terraform manages this cluster and what is around it: a deployment of this file takes nothing over, and"
        " fails because of the cluster's name; write another one. The next 'terraform apply' changes back what both"
        " describe",
        path="hyperpod.cluster_name",
    )


def _cluster_of(node: Node) -> Node | None:
    log = node.log
    if "encrypted_data" in node.value:
        log.refuse(node.place("encrypted_data"), "is encrypted; give what 'tofu state pull' prints")
        return None
    version = node.value.get("version")
    if version != _VERSION:
        log.refuse(
            node.place("version"),
            f"must be {_VERSION}, the version of state from Terraform 0.12 on, got {version}; 'terraform state pull' of"
            " a newer Terraform writes it, or import the file of variables",
        )
        return None
    found = [each for _, each in _attributes(node, _CLUSTER)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(sorted(str(each.value.get("cluster_name")) for each in found))
    log.refuse(
        node.place("resources"),
        f"must hold one HyperPod cluster ({_CLUSTER}), got {names}; import each with --cluster"
        if found
        else f"must hold a HyperPod cluster ({_CLUSTER}), got none; name the state of AWS's module that created it",
    )
    return None


def _attributes(node: Node, kind: str, *, modes: tuple[str, ...] = ("managed",)) -> Iterator[tuple[str, Node]]:
    """Yield the attributes of every resource of a type, with the name that it has in its module."""
    for row in node.rows("resources"):
        if row.value.get("type") != kind or row.value.get("mode") not in modes:
            continue
        for instance in row.rows("instances"):
            # one that is to be destroyed is listed together with its successor
            if "deposed" in instance.value:
                continue
            if (found := instance.section("attributes")) is not None:
                yield str(row.value.get("name")), found


def _know(node: Node, draft: Draft) -> None:
    """Read from the state what a request does not show; the user's options come first."""
    known, both = draft.known, ("managed", "data")
    zones: dict[str, str] = {}
    vpc_ids: list[str] = []
    for _, each in _attributes(node, "aws_subnet", modes=both):
        subnet, zone, vpc = each.text("id"), each.text("availability_zone_id"), each.text("vpc_id")
        if subnet and zone:
            zones[subnet] = zone
        vpc_ids += [vpc] if vpc else []
    vpc_ids = [vpc for _, each in _attributes(node, "aws_vpc") if (vpc := each.text("id"))] or vpc_ids
    version = security_group = None
    for _, each in _attributes(node, "aws_eks_cluster", modes=both):
        version = each.text("version") or version
        for config in each.rows("vpc_config"):
            security_group = config.text("cluster_security_group_id") or security_group
    draft.known = replace(
        known,
        vpc_id=known.vpc_id or (vpc_ids[0] if len(set(vpc_ids)) == 1 else None),
        eks_security_group_id=known.eks_security_group_id or security_group,
        kubernetes_version=known.kubernetes_version or version,
        subnet_zones={**zones, **known.subnet_zones},
    )


def _as_request(cluster: Node, node: Node) -> Node:
    """Return the cluster as a request of CreateCluster, each value with its line in the state."""
    source = Source(file=node.source.file)
    value = {key: each for key, each in cluster.value.items() if key not in _READ_ONLY}
    data = _converted(value, (), cluster.path, source, node.source)
    source.data = data
    source.lines[()] = cluster.line()
    return Node(source, data, (), node.log)


def _converted(value: Any, path: DataPath, old: DataPath, to: Source, of: Source) -> Any:
    to.lines[path] = of.line_of(old)
    if isinstance(value, list):
        return [_converted(each, (*path, index), (*old, index), to, of) for index, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    is_verbatim = bool(old) and old[-1] in _VERBATIM
    found = {}
    for key, each in value.items():
        if each is None or key in _READ_ONLY_OF_GROUPS:
            continue
        name = key if is_verbatim else _WORDS.get(key) or "".join(part.capitalize() for part in key.split("_"))
        found[name] = _converted(each, (*path, name), (*old, key), to, of)
    return found


def _read_add_ons(node: Node, draft: Draft) -> None:
    names = {each.text("addon_name") for _, each in _attributes(node, "aws_eks_addon")}
    names |= {each.text("addon_name") for _, each in _attributes(node, "awscc_eks_addon")}
    installed = [name for name in OWN_ADDONS if name in names]
    if installed:
        draft.eks["existing"]["installed_addons"] = installed
    providers = [each.text("arn") for _, each in _attributes(node, "aws_iam_openid_connect_provider")]
    if len(providers) == 1:
        draft.eks["existing"]["oidc_provider_arn"] = providers[0]
    draft.log.note(
        "lost",
        "scripts and Helm created operators, quotas of teams and claims, and the state does not show enough of them:"
        " write operators and task_governance into the file",
        path="operators",
    )


def _read_lustre(node: Node, draft: Draft) -> None:
    entries: list[dict[str, Any]] = []
    for name, each in _attributes(node, "aws_fsx_lustre_file_system"):
        subnets = each.texts("subnet_ids")
        zone = draft.known.subnet_zones.get(subnets[0]) if subnets else None
        path = f"storage.lustre[{len(entries)}]"
        existing = {
            "file_system_id": each.text("id"),
            "mount_name": each.text("mount_name"),
            "dns_name": each.text("dns_name"),
            "capacity_gib": each.number("storage_capacity"),
        }
        # count and for_each create several with one name
        called = name_in_file(name, otherwise=str(existing["file_system_id"]), taken=[row["name"] for row in entries])
        entry: dict[str, Any] = {"name": called, "availability_zone_id": zone, "existing": existing}
        entries.append({key: value for key, value in entry.items() if value})
        if zone is None:
            draft.log.note("missing", "where it is, which the state does not say", path=f"{path}.availability_zone_id")
        draft.log.note(
            "missing",
            f"which namespaces mount {existing['file_system_id']}; write claim: {{namespaces: [...]}}, or remove the"
            " file system, which stays as it is",
            at=each.place(),
            path=f"{path}.claim",
        )
    if entries:
        draft.sections["storage"] = {"lustre": entries}
