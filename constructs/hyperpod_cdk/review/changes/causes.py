"""Which line of the environment file caused a change.

The environment file decides properties in known places: those of SageMaker's and FSx's types one by one
(``property_paths.json``, which the tests hold against the schemas), all others by the construct that they belong to. A
line that differs between the two files, and stands in such a place, is a cause. Where no line fits there is none: the
library, a lifecycle script or a chart changed, or somebody changed the account by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hyperpod_cdk.review.assembly import Assembly
from hyperpod_cdk.review.difference import MISSING
from hyperpod_cdk.review.model import BlastRadius, Cause, PropertyEffect, ResourceEffect
from hyperpod_cdk.review.values import resolve
from hyperpod_cdk.script_files import ENVIRONMENT

if TYPE_CHECKING:
    from hyperpod_cdk.config import LoadedEnvironment

_PATHS = Path(__file__).parent / "property_paths.json"
_LONGEST = 80

_GROUPS: Final = ("hyperpod.instance_groups", "hyperpod.restricted_instance_groups")
_CLAIMS: Final = ("task_governance.teams",)

_PLACES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    # what a construct is made from, by its path below the stack; the first that fits counts; `item` names a list's item
    ("QuotaGate", (*_GROUPS, "storage.lustre", "network", "eks", "operators", "quota_check", "instance_types")),
    ("Network/(Nat|Public|InternetGateway)", ("network.nat_gateways", "network.egress", "network.availability_zones")),
    ("Network/FlowLog", ("encryption.logs", "network.vpc_cidr")),
    ("Network|Efa", ("network", "eks.endpoint_access")),
    ("Endpoints", ("network.egress", "network.endpoints", "network.availability_zones", "operators", "storage")),
    ("LogsKey", ("encryption.logs",)),
    ("ControlPlane/(.*Access|AdminAccess)", ("eks.admin_role_arns", "task_governance.teams.member_role_arns")),
    ("ControlPlane/(OidcProvider)", ("eks.oidc_provider",)),
    ("ControlPlane/SecretsKey", ("encryption.eks_secrets",)),
    ("ControlPlane/LogGroup", ("encryption.logs",)),
    ("ControlPlane/(VpcCni|KubeProxy|EksPodIdentityAgent)", ("eks.addon_versions", "eks.kubernetes_version")),
    ("ControlPlane", ("eks", "encryption.eks_secrets", "encryption.logs", "network.availability_zones")),
    ("HyperPodDependencies", ("eks.image_registry", "hyperpod", "operators")),
    ("FileSystemsKey", ("encryption.file_systems",)),
    ("Lustre-(?P<item>[^/]+)/LogGroup", ("storage.lustre", "encryption.logs")),
    ("Lustre-(?P<item>[^/]+)", ("storage.lustre", "encryption.file_systems")),
    ("LifecycleBucketKey", ("encryption.lifecycle_bucket",)),
    ("LifecycleScripts", ("hyperpod.lifecycle", "encryption.lifecycle_bucket", "encryption.logs")),
    ("NodeVolumesKey", ("encryption.node_volumes",)),
    ("ExecutionRole", ("hyperpod", "storage", "encryption", "permissions_boundary")),
    ("Restricted(Node)?Role-(?P<item>[^/]+)", ("hyperpod.restricted_instance_groups",)),
    ("Autoscaling", ("hyperpod.autoscaling", "hyperpod.karpenter_pools", *_GROUPS)),
    ("KarpenterPools/Pool-(?P<item>[^/]+)", ("hyperpod.karpenter_pools",)),
    ("Cluster", ("hyperpod", "encryption.node_volumes", "network.availability_zones")),
    ("TaskGovernance/(Quota|DefaultQueue)-(?P<item>[^/]+)", ("task_governance.teams",)),
    ("TaskGovernance", ("task_governance",)),
    ("S3?Claims-(?P<item>[^/]+)", ("storage.s3", *_CLAIMS)),
    ("(Own)?Claims-(?P<item>[^/]+)", ("storage.lustre", *_CLAIMS)),
    ("OwnS3Claims-(?P<item>[^/]+)", ("storage.s3",)),
    ("S3CsiDriver", ("storage.s3", "eks.addon_versions")),
    ("(Fsx|Ebs)CsiDriver", ("storage", "operators", "eks.addon_versions")),
    ("TrainingOperator|CertManager|MetricsServer", ("operators", "eks.addon_versions", "eks.kubernetes_version")),
    ("InferenceOperator", ("operators.inference",)),
    ("Spaces", ("operators.spaces",)),
    ("Checkpoint", ("hyperpod.tiered_checkpointing",)),
    ("Addon|Prometheus|Grafana", ("operators.observability",)),
    ("NodeEvents", ("encryption.logs", "hyperpod.cluster_name")),
    ("CoreDns", ("eks.addon_versions", "eks.kubernetes_version")),
    ("Team|Namespace|Role", ("task_governance.teams",)),
)

_EVERYWHERE: Final = ("tags", "permissions_boundary", "deletion_protection", "name", "account", "region")
"""Fields that reach into resources of every kind; they count where nothing nearer fits."""


@dataclass(frozen=True, kw_only=True)
class LineChange:
    """One place of the environment file that differs: ``place`` without list items, ``items`` the names of those."""

    place: str
    items: tuple[str, ...]
    before: Any
    after: Any
    cause: Cause


@cache
def property_paths() -> dict[str, dict[str, dict[str, str]]]:
    """Give, by type, where the environment file decides each property (``from``), or why it never does."""
    types: dict[str, dict[str, dict[str, str]]] = json.loads(_PATHS.read_text(encoding="utf-8"))["types"]
    return types


def line_changes(base: LoadedEnvironment | None, head: LoadedEnvironment | None) -> list[LineChange]:
    """Give what differs between two environment files as they are written, nothing where one is missing."""
    if base is None or head is None:
        return []
    return [
        LineChange(
            place=".".join(str(step) for step in _keys(where)),
            items=tuple(name for name, _, _ in _items(where)),
            before=before,
            after=after,
            cause=_cause(base, head, where, before, after),
        )
        for where, before, after in _differences((), base.as_written, head.as_written)
    ]


def with_causes(
    radius: BlastRadius,
    base: Assembly,
    head: Assembly,
    *,
    base_environment: LoadedEnvironment | None,
    head_environment: LoadedEnvironment | None,
) -> BlastRadius:
    """Give the blast radius with the cause of every change, as far as a line or a file of the project fits."""
    lines = line_changes(base_environment, head_environment)
    scripts = changed_scripts(base, head)
    if not lines and not scripts:
        return radius
    return radius.model_copy(
        update={"resources": tuple(_explained(resource, lines, scripts) for resource in radius.resources)}
    )


def changed_scripts(base: Assembly, head: Assembly) -> tuple[Cause, ...]:
    """Give the lifecycle scripts that differ between two assemblies, as far as both still hold them."""
    before, after = (_script_folders(assembly) for assembly in (base, head))
    if len(before) != 1 or len(after) != 1 or before == after:
        return ()
    old, new = _texts(before.pop()), _texts(after.pop())
    return tuple(
        Cause(file=f"lifecycle_scripts/{name}", path="")
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _explained(resource: ResourceEffect, lines: list[LineChange], scripts: tuple[Cause, ...]) -> ResourceEffect:
    properties = tuple(
        each.model_copy(update={"causes": _causes_of(resource, each, lines, scripts)}) for each in resource.properties
    )
    causes = dict.fromkeys(cause for each in properties for cause in each.causes)
    if not causes:
        causes = dict.fromkeys(_from_lines(resource, "", lines))
    return resource.model_copy(update={"properties": properties, "causes": tuple(causes)})


def _causes_of(
    resource: ResourceEffect, changed: PropertyEffect, lines: list[LineChange], scripts: tuple[Cause, ...]
) -> tuple[Cause, ...]:
    if scripts and (changed.path.endswith("SourceS3Uri") or resource.type == "Custom::CDKBucketDeployment"):
        return scripts
    return tuple(_from_lines(resource, changed.path, lines))


def _from_lines(resource: ResourceEffect, path: str, lines: list[LineChange]) -> Iterable[Cause]:
    for candidates in _candidates(resource, path, lines):
        if candidates:
            return [line.cause for line in candidates]
    return ()


def _candidates(resource: ResourceEffect, path: str, lines: list[LineChange]) -> Iterator[list[LineChange]]:
    """Give the lines that may have caused a change, nearest places first."""
    item = next(iter(re.findall(r"\[([^\]]+)\]", path)), "")
    exact = property_paths().get(resource.type, {}).get("from", {}).get(re.sub(r"\[[^\]]*\]", "", path))
    construct, own_item = _construct_places(resource.name)
    item = item or own_item
    if exact and "." in exact:
        yield [line for line in lines if _touches(line, exact) and _is_about(line, item)]
    within = [line for line in lines if any(_touches(line, place) for place in construct)]
    if item:
        yield [line for line in within if item in line.items]
    yield [line for line in within if _is_about(line, item)]
    yield [line for line in lines if any(_touches(line, place) for place in _EVERYWHERE)]
    # all that the two files differ in is one thing, and nothing nearer explains this change
    yield lines if len(lines) == 1 else []


def _construct_places(name: str) -> tuple[tuple[str, ...], str]:
    for pattern, places in _PLACES:
        found = re.match(pattern, name)
        if found:
            return places, found.groupdict().get("item") or ""
    return (), ""


def _touches(line: LineChange, place: str) -> bool:
    """Whether a changed place is ``place``, stands in it or holds it."""
    return line.place == place or line.place.startswith(f"{place}.") or place.startswith(f"{line.place}.")


def _is_about(line: LineChange, item: str) -> bool:
    """Whether a changed place belongs to the item, or to none at all."""
    return not item or not line.items or item in line.items


def _differences(
    where: tuple[Any, ...], before: object, after: object
) -> Iterator[tuple[tuple[Any, ...], object, object]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            yield from _differences((*where, key), before.get(key, MISSING), after.get(key, MISSING))
    elif isinstance(before, list) and isinstance(after, list):
        old, new = _by_name(before), _by_name(after)
        if old is None or new is None:
            if before != after:
                yield where, before, after
            return
        for name in (*old, *(name for name in new if name not in old)):
            old_index, old_item = old.get(name, (None, MISSING))
            new_index, new_item = new.get(name, (None, MISSING))
            yield from _differences((*where, (name, old_index, new_index)), old_item, new_item)
    elif before != after or type(before) is not type(after):
        yield where, before, after


def _by_name(items: list[Any]) -> dict[str, tuple[int, Any]] | None:
    """Give (index, item) of each item by its name, None where they have none or share one."""
    if not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items):
        return None
    named = {item["name"]: (index, item) for index, item in enumerate(items)}
    return named if len(named) == len(items) else None


def _keys(where: tuple[Any, ...]) -> list[object]:
    return [step for step in where if not isinstance(step, tuple)]


def _items(where: tuple[Any, ...]) -> list[tuple[str, int | None, int | None]]:
    return [step for step in where if isinstance(step, tuple)]


def _cause(
    base: LoadedEnvironment, head: LoadedEnvironment, where: tuple[Any, ...], before: object, after: object
) -> Cause:
    from hyperpod_cdk.config.source import render_path  # noqa: PLC0415 - a template alone needs no environment's models

    gone = after is MISSING
    path = render_path(tuple((step[1] if gone else step[2]) if isinstance(step, tuple) else step for step in where))
    loaded = base if gone else head
    return Cause(file=loaded.file, line=loaded.line_of(path), path=path, before=_shown(before), after=_shown(after))


def _shown(value: object) -> str | None:
    if value is MISSING:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _script_folders(assembly: Assembly) -> set[Path]:
    """Give the asset folders that are uploaded as lifecycle scripts, without what the environment file writes there."""
    if assembly.folder is None:
        return set()
    keys = {
        str(key)
        for resource in assembly.of_type("Custom::CDKBucketDeployment")
        for key in _listed(resolve(assembly, resource.stack, resource.properties.get("SourceObjectKeys")))
    }
    folders = (assembly.folder / f"asset.{key.removesuffix('.zip')}" for key in sorted(keys))
    return {folder for folder in folders if folder.is_dir() and _texts(folder).keys() != {ENVIRONMENT}}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(folder: Path) -> Mapping[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
