"""Edits of an environment file as users make them: each one results in a valid file, or is skipped."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from hyperpod_cdk.catalog import kubernetes
from tests.support import legal

File = dict[str, Any]
Edit = Callable[[random.Random, File], bool]
"""Edits a file, and returns whether there was anything to edit."""

_TRIES = 60
_OF_ORDER = 0.6
"""The share of edits that need an order of stacks, or that services refuse."""

_REFUSED = frozenset({"VPC swapped", "EKS cluster swapped", "security group swapped"})
_SELDOM = 0.75
"""The share of such edits that are skipped, because a plan always refuses them with all other edits."""


def drawing(number: int) -> random.Random:
    """Return a random generator with this seed."""
    return random.Random(number)  # noqa: S311 - a sample, no secret


def one(rng: random.Random, file: File) -> tuple[str, File]:
    """Edit a file once; return the edit's name and the file. Raises AssertionError if no edit is valid."""
    before = legal.as_text(file)
    for _ in range(_TRIES):
        name = rng.choice(sorted(ORDERED) if rng.random() < _OF_ORDER else sorted(EDITS))
        if name in _REFUSED and rng.random() < _SELDOM:
            continue
        edited = copy.deepcopy(file)
        if not EDITS[name](rng, edited) or legal.as_text(edited) == before:
            continue
        loaded = legal.accepted(edited)
        if loaded is not None and not legal.is_warned_to_fail(loaded):
            return name, edited
    raise AssertionError(f"no edit of this file is accepted:\n{before}")


def several(rng: random.Random, file: File, number: int) -> tuple[str, File]:
    """Edit a file several times."""
    names: list[str] = []
    for _ in range(number):
        name, file = one(rng, file)
        names.append(name)
    return ", ".join(names), file


def furnished(rng: random.Random, file: File) -> File:
    """Add to a file what deployments must remove in an order, as far as it stays valid."""
    for edit in rng.sample(_FURNITURE, k=rng.randint(2, len(_FURNITURE))):
        fuller = copy.deepcopy(file)
        if edit(rng, fuller):
            loaded = legal.accepted(fuller)
            if loaded is not None and not legal.is_warned_to_fail(loaded):
                file = fuller
    return file


def _groups(file: File) -> list[File]:
    found: list[File] = file["hyperpod"]["instance_groups"]
    return found


def _zones(file: File) -> list[str]:
    network = file["network"]
    return list(network.get("availability_zones") or network["existing"]["node_subnet_ids"])


def _systems(file: File, *, own: bool = False) -> list[File]:
    found = (file.get("storage") or {}).get("lustre") or []
    return [each for each in found if not own or "existing" not in each]


def _teams(file: File) -> list[File]:
    return (file.get("task_governance") or {}).get("teams") or []


def _fresh(taken: list[str], beginning: str) -> str:
    return next(name for name in (f"{beginning}-{number}" for number in range(2, 99)) if name not in taken)


def _group_count(rng: random.Random, file: File) -> bool:
    group = rng.choice(_groups(file))
    group["count"] = max(0, group["count"] + rng.choice([-1, 1, 2]))
    return True


def _group_added(rng: random.Random, file: File) -> bool:
    names = [each["name"] for each in _groups(file)]
    group = {"name": _fresh(names, "more"), "instance_type": "ml.c6i.2xlarge", "count": rng.randint(0, 2)}
    _groups(file).insert(rng.randint(0, len(names)), {**group, "availability_zone_id": rng.choice(_zones(file))})
    return True


def _group_removed(rng: random.Random, file: File) -> bool:
    if len(_groups(file)) < 2:
        return False
    _groups(file).pop(rng.randrange(len(_groups(file))))
    return True


def _group_renamed(rng: random.Random, file: File) -> bool:
    group = rng.choice(_groups(file))
    old, group["name"] = group["name"], _fresh([each["name"] for each in _groups(file)], group["name"])
    for pool in file["hyperpod"].get("karpenter_pools", []):
        pool["instance_groups"] = [group["name"] if each == old else each for each in pool["instance_groups"]]
    return True


def _group_type(rng: random.Random, file: File) -> bool:
    group = rng.choice([each for each in _groups(file) if "instance_type" in each] or [{}])
    group["instance_type"] = rng.choice(["ml.m5.4xlarge", "ml.c6i.2xlarge", "ml.g5.12xlarge", "ml.m5.2xlarge"])
    return "name" in group


def _group_volume(rng: random.Random, file: File) -> bool:
    rng.choice(_groups(file))["volume_gib"] = rng.choice([200, 500, 1500])
    return True


def _group_moved(rng: random.Random, file: File) -> bool:
    rng.choice(_groups(file))["availability_zone_id"] = rng.choice(_zones(file))
    return True


def _group_labels(rng: random.Random, file: File) -> bool:
    rng.choice(_groups(file))["labels"] = {"job-domain": rng.choice(["a", "b"])}
    return True


def _zone_in(rng: random.Random, file: File) -> bool:
    zones = file["network"].get("availability_zones")
    others = {"us-east-1": ["use1-az1", "use1-az2", "use1-az6"], "us-west-2": ["usw2-az3", "usw2-az4"]}
    new = [each for each in others.get(file["region"], []) if zones is not None and each not in zones]
    if zones is None or not new:
        return False
    zones[rng.choice(new)] = None
    return True


def _zone_out(rng: random.Random, file: File) -> bool:
    zones = file["network"].get("availability_zones") or {}
    if len(zones) < 3:
        return False
    gone = rng.choice(sorted(zones))
    del zones[gone]
    left = [each for each in _groups(file) if each.get("availability_zone_id") != gone]
    if not left:
        return False
    file["hyperpod"]["instance_groups"] = left
    if file.get("storage"):
        file["storage"]["lustre"] = [each for each in _systems(file) if each.get("availability_zone_id") != gone]
        return _without_empty(file, "storage")
    return True


def _without_empty(file: File, section: str) -> bool:
    file[section] = {key: each for key, each in file[section].items() if each}
    if not file[section]:
        del file[section]
    return True


def _system_in(rng: random.Random, file: File) -> bool:
    name = _fresh([each["name"] for each in _systems(file)], "data")
    new: File = {"name": name, "availability_zone_id": rng.choice(_zones(file)), "capacity_gib": 1200}
    if rng.random() < 0.7:
        new["claim"] = {"name": name, "namespaces": ["default"]}
    file.setdefault("storage", {}).setdefault("lustre", []).append(new)
    return True


def _system_out(rng: random.Random, file: File) -> bool:
    if not _systems(file):
        return False
    file["storage"]["lustre"].pop(rng.randrange(len(_systems(file))))
    return _without_empty(file, "storage")


def _system_replaced(rng: random.Random, file: File) -> bool:
    found = [each for each in _systems(file, own=True) if not each.get("storage_type")]
    if not found:
        return False
    system = rng.choice(found)
    change = rng.choice(["zone", "name", "kind"])
    if change == "zone":
        system["availability_zone_id"] = rng.choice(_zones(file))
    elif change == "name":
        system["name"] = _fresh([each["name"] for each in _systems(file)], system["name"])
    else:
        for key in ("throughput_mbps_per_tib", "backups", "metadata_iops", "efa"):
            system.pop(key, None)
        system["deployment_type"] = "scratch_2"
    return True


def _system_grown(rng: random.Random, file: File) -> bool:
    found = [each for each in _systems(file, own=True) if "capacity_gib" in each]
    if not found:
        return False
    system = rng.choice(found)
    system["capacity_gib"] = system["capacity_gib"] * 2
    return True


def _system_shrunk(rng: random.Random, file: File) -> bool:
    found = [each for each in _systems(file, own=True) if each.get("capacity_gib", 0) > 1200]
    if not found:
        return False
    rng.choice(found)["capacity_gib"] = 1200
    return True


def _system_throughput(rng: random.Random, file: File) -> bool:
    found = [each for each in _systems(file, own=True) if each.get("deployment_type") != "scratch_2"]
    if not found:
        return False
    rng.choice(found)["throughput_mbps_per_tib"] = rng.choice([125, 250, 500])
    return True


def _claim(rng: random.Random, file: File) -> bool:
    if not _systems(file):
        return False
    system = rng.choice(_systems(file))
    if system.get("claim") and rng.random() < 0.4:
        system["claim"] = None
    else:
        namespaces = rng.choice([["default"], ["default", "notebooks"], ["notebooks"]])
        system["claim"] = {"name": rng.choice([system["name"], f"{system['name']}-claim"]), "namespaces": namespaces}
    return True


def _claim_elsewhere(rng: random.Random, file: File) -> bool:
    """Change the target of a claim, under its name or under another."""
    named = [each for each in _systems(file) if each.get("claim")]
    volumes = (file.get("storage") or {}).get("s3") or []
    if volumes and (len(named) < 2 or rng.random() < 0.5):
        volume = rng.choice(volumes)
        volume["bucket"] = "my-corpus" if volume["bucket"] != "my-corpus" else "my-checkpoints"
        claim = volume.get("claim")
    elif len(named) > 1:
        one, other = rng.sample(named, 2)
        one["claim"], other["claim"] = other["claim"], one["claim"]
        claim = one["claim"]
    else:
        return False
    if claim and rng.random() < 0.7:
        claim["name"] = f"{claim.get('name', 'claim')}-2"
    return True


def _claims_out(_: random.Random, file: File) -> bool:
    named = [each for each in _systems(file) if each.get("claim")]
    for each in named:
        each["claim"] = None
    return bool(named)


def _storage_out(_: random.Random, file: File) -> bool:
    return file.pop("storage", None) is not None


def _key_out(rng: random.Random, file: File) -> bool:
    keys = file.get("encryption") or {}
    if not keys:
        return False
    del keys[rng.choice(sorted(keys))]
    return _without_empty(file, "encryption")


def _log_key_in(_: random.Random, file: File) -> bool:
    file.setdefault("encryption", {})["logs"] = "create"
    return True


def _group_capacity(rng: random.Random, file: File) -> bool:
    found = [each for each in _groups(file) if each.get("capacity") in {"spot", "on_demand"}]
    if not found:
        return False
    group = rng.choice(found)
    group["capacity"] = "spot" if group["capacity"] == "on_demand" else "on_demand"
    return True


def _lifecycle_bucket(_: random.Random, file: File) -> bool:
    lifecycle = file["hyperpod"].setdefault("lifecycle", {})
    if lifecycle.pop("existing_bucket", None) is None:
        lifecycle["existing_bucket"] = {"name": "sagemaker-my-lifecycle"}
    return True


def _provider_out(_: random.Random, file: File) -> bool:
    eks = file.get("eks") or {}
    if not eks.pop("oidc_provider", False):
        return False
    (file.get("operators") or {}).pop("inference", None)
    return True


def _zone_furnished(rng: random.Random, file: File) -> bool:
    """Add a zone with a group and a file system."""
    before = set(_zones(file))
    if not _zone_in(rng, file):
        return False
    (zone,) = set(_zones(file)) - before
    name = _fresh([each["name"] for each in _groups(file)], "far")
    _groups(file).append({"name": name, "instance_type": "ml.m5.2xlarge", "count": 1, "availability_zone_id": zone})
    if rng.random() < 0.7:
        _system_in(rng, file)
        _systems(file)[-1]["availability_zone_id"] = zone
    return True


def _network_swapped(rng: random.Random, file: File) -> bool:
    """Change the VPC: an existing one instead of a new one, the reverse, or another existing one."""
    zones, network = _zones(file), file["network"]
    existing = network.get("existing")
    if existing and rng.random() < 0.5:
        existing["vpc_id"] = "vpc-0fedcba9876543210"
        return True
    if existing:
        file["network"] = {"availability_zones": dict.fromkeys(zones)}
        return True
    subnets = {zone: f"subnet-0c1d2e3f4a5b6789{number}" for number, zone in enumerate(zones)}
    control = ["subnet-0c1d2e3f4a5b678a1", "subnet-0c1d2e3f4a5b678a2"]
    blocks = ["10.0.0.0/16", "100.64.0.0/16"]
    file["network"] = {
        "existing": {
            "vpc_id": "vpc-0123456789abcdef0",
            "node_subnet_ids": subnets,
            "control_plane_subnet_ids": control,
            "vpc_cidrs": blocks,
        }
    }
    return True


def _cluster_swapped(_: random.Random, file: File) -> bool:
    """Change the EKS cluster: an existing one instead of a new one, the reverse, or another existing one."""
    eks = file.setdefault("eks", {})
    if "existing" in eks:
        del eks["existing"]
        return True
    provider = f"oidc-provider/oidc.eks.{file['region']}.amazonaws.com/id/0123456789ABCDEF"
    kept = {key: eks[key] for key in ("kubernetes_version", "admin_role_arns") if key in eks}
    file["eks"] = {
        **kept,
        "existing": {
            "cluster_name": "platform",
            "security_group_id": "sg-03e9b5d7f1a8c2646",
            "oidc_provider_arn": f"arn:aws:iam::{file['account']}:{provider}",
            "kubectl_role_arn": f"arn:aws:iam::{file['account']}:role/platform/kubectl",
        },
    }
    return True


def _security_group(rng: random.Random, file: File) -> bool:
    existing = file["network"].get("existing")
    if existing is None:
        return False
    if existing.pop("security_group_id", None) is None or rng.random() < 0.5:
        existing["security_group_id"] = "sg-0a1b2c3d4e5f60718"
    return True


def _key(rng: random.Random, file: File) -> bool:
    keys = file.setdefault("encryption", {})
    place = rng.choice(["logs", "node_volumes", "lifecycle_bucket", "file_systems", "eks_secrets"])
    if keys.pop(place, None) is None:
        keys[place] = "create"
    return _without_empty(file, "encryption")


def _karpenter_off(_: random.Random, file: File) -> bool:
    hyperpod = file["hyperpod"]
    if hyperpod.get("autoscaling") != "karpenter":
        return False
    hyperpod["autoscaling"] = "disabled"
    hyperpod.pop("karpenter_pools", None)
    hyperpod["instance_groups"] = [each for each in _groups(file) if each["count"]]
    return bool(_groups(file))


def _karpenter_on(rng: random.Random, file: File) -> bool:
    hyperpod = file["hyperpod"]
    if hyperpod.get("autoscaling") == "karpenter":
        return False
    names = [each["name"] for each in _groups(file)]
    group = {"name": _fresh(names, "scaled"), "instance_type": "ml.g5.12xlarge", "count": 0, "capacity": "on_demand"}
    _groups(file).append({**group, "availability_zone_id": rng.choice(_zones(file))})
    hyperpod.update(autoscaling="karpenter", provisioning="continuous")
    hyperpod["karpenter_pools"] = [{"name": "gpu", "instance_groups": [group["name"]]}]
    return True


def _tiered(rng: random.Random, file: File) -> bool:
    hyperpod = file["hyperpod"]
    if "tiered_checkpointing" in hyperpod:
        if rng.random() < 0.5:
            hyperpod["tiered_checkpointing"] = {"enabled": False}
        else:
            del hyperpod["tiered_checkpointing"]
    else:
        hyperpod["tiered_checkpointing"] = {"memory_percent": rng.choice([20, 40])}
    return True


def _tiered_off(rng: random.Random, file: File) -> bool:
    return "tiered_checkpointing" in file["hyperpod"] and _tiered(rng, file)


def _quota_check(rng: random.Random, file: File) -> bool:
    file["quota_check"] = rng.choice(["enforce", "warn", "off"])
    return True


def _governance(rng: random.Random, file: File) -> bool:
    if "task_governance" in file:
        del file["task_governance"]
        return True
    kind = rng.choice([each.get("instance_type", "") for each in _groups(file)])
    file["task_governance"] = {"teams": [{"name": "research", "quota": [{"instance_type": kind, "count": 1}]}]}
    return True


def _team_in(rng: random.Random, file: File) -> bool:
    if not _teams(file):
        return False
    team = copy.deepcopy(rng.choice(_teams(file)))
    team["name"] = _fresh([each["name"] for each in _teams(file)], "team")
    others = [row for each in _teams(file) for row in each.get("quota", []) if row.get("count", 0) > 1]
    for row in others:
        row["count"] -= 1
    team["quota"] = [{"instance_type": each["instance_type"], "count": 1} for each in others[:1]] or team["quota"]
    _teams(file).append(team)
    return True


def _team_out(rng: random.Random, file: File) -> bool:
    if len(_teams(file)) < 2:
        return False
    _teams(file).pop(rng.randrange(len(_teams(file))))
    return True


def _team_changed(rng: random.Random, file: File) -> bool:
    if not _teams(file):
        return False
    rng.choice(_teams(file)).update(
        rng.choice([{"fair_share_weight": 40}, {"default_queue": True}, {"preemption": "never"}, {"description": "x"}])
    )
    return True


def _priorities(rng: random.Random, file: File) -> bool:
    if "task_governance" not in file:
        return False
    classes = [{"name": "training", "weight": rng.choice([10, 80])}, {"name": "inference", "weight": 100}]
    file["task_governance"].update(ordering="priority", priority_classes=classes)
    return True


def _addon(rng: random.Random, file: File) -> bool:
    versions = file.setdefault("eks", {}).setdefault("addon_versions", {})
    versions["vpc-cni"] = rng.choice(["v1.20.4-eksbuild.1", "v1.20.5-eksbuild.1"])
    return True


def _minor(_: random.Random, file: File) -> bool:
    return _newer(file, 1)


def _two_minors(_: random.Random, file: File) -> bool:
    return _newer(file, 2)


def _newer(file: File, minors: int) -> bool:
    eks = file.setdefault("eks", {})
    major, minor = str(eks.get("kubernetes_version", kubernetes.DEFAULT)).split(".")
    eks["kubernetes_version"] = f"{major}.{int(minor) + minors}"
    return True


def _access(rng: random.Random, file: File) -> bool:
    eks = file.setdefault("eks", {})
    change = rng.choice(["endpoint", "admins", "oidc", "support", "shift"])
    if change == "endpoint":
        eks["endpoint_access"] = rng.choice(["public_and_private", "private"])
        if eks["endpoint_access"] == "private":
            eks.pop("public_access_cidrs", None)
        else:
            eks["public_access_cidrs"] = ["54.240.193.128/26"]
    elif change == "admins":
        role = f"arn:aws:iam::{file['account']}:role/{rng.choice(['second', 'third'])}"
        admins = eks.setdefault("admin_role_arns", [])
        if role in admins:
            admins.remove(role)
        else:
            admins.append(role)
    elif change == "oidc":
        eks["oidc_provider"] = not eks.get("oidc_provider", False)
    elif change == "support":
        eks["support_type"] = rng.choice(["standard", "extended"])
    else:
        eks["zonal_shift"] = not eks.get("zonal_shift", False)
    return True


def _network(rng: random.Random, file: File) -> bool:
    network = file["network"]
    change = rng.choice(["retain", "gateways", "endpoints", "egress"])
    if change == "retain":
        network["retain"] = not network.get("retain", False)
    elif change == "gateways":
        network["nat_gateways"] = 1 + network.get("nat_gateways", 1) % 2
    elif change == "endpoints" and network.get("egress") == "closed":
        network["endpoints"] = {"additional": rng.choice([["bedrock-runtime"], ["ssm"], []])}
    elif change == "egress":
        network["egress"] = "nat" if network.get("egress") == "closed" else "closed"
    return True


def _protection(_: random.Random, file: File) -> bool:
    file["deletion_protection"] = not file.get("deletion_protection", True)
    return True


def _tags(rng: random.Random, file: File) -> bool:
    tags = file.setdefault("tags", None) or {}
    file["tags"] = {**tags, "owner": rng.choice(["research", "platform"])}
    return True


def _operator(rng: random.Random, file: File) -> bool:
    operators = file.setdefault("operators", {})
    name = rng.choice(["training", "observability", "inference", "spaces"])
    if operators.pop(name, None) is None:
        operators[name] = {"enabled": True}
        if name == "inference":
            file.setdefault("eks", {})["oidc_provider"] = True
    return _without_empty(file, "operators")


def _workspace(rng: random.Random, file: File) -> bool:
    observability = (file.get("operators") or {}).get("observability")
    if not observability:
        return False
    place = rng.choice(["prometheus_workspace", "grafana_workspace"])
    if observability.pop(place, None) is None:
        observability[place] = "create"
    return True


def _volume(rng: random.Random, file: File) -> bool:
    volumes = file.setdefault("storage", {}).setdefault("s3", [])
    if volumes and rng.random() < 0.5:
        volumes.pop(rng.randrange(len(volumes)))
        return _without_empty(file, "storage")
    name = _fresh([each["name"] for each in volumes], "corpus")
    volumes.append({"name": name, "bucket": "my-corpus", "read_only": True, "claim": {"namespaces": ["default"]}})
    return True


def _repository(rng: random.Random, file: File) -> bool:
    found = [each for each in _systems(file, own=True) if not each.get("storage_type")]
    if not found:
        return False
    system = rng.choice(found)
    if system.pop("data_repositories", None) is None:
        system["data_repositories"] = [{"path": "/datasets", "s3_uri": "s3://my-datasets/curated/"}]
    return True


def _recovery(rng: random.Random, file: File) -> bool:
    file["hyperpod"]["node_recovery"] = rng.choice(["automatic", "none"])
    return True


ORDERED: dict[str, Edit] = {
    "group renamed": _group_renamed,
    "group's type": _group_type,
    "group's zone": _group_moved,
    "group's capacity": _group_capacity,
    "zone out": _zone_out,
    "file system out": _system_out,
    "file system replaced": _system_replaced,
    "all storage out": _storage_out,
    "claims out": _claims_out,
    "claim elsewhere": _claim_elsewhere,
    "key": _key,
    "key out": _key_out,
    "Karpenter off": _karpenter_off,
    "tiered checkpointing off": _tiered_off,
    "quota check": _quota_check,
    "lifecycle bucket": _lifecycle_bucket,
    "OIDC provider out": _provider_out,
    "VPC swapped": _network_swapped,
    "EKS cluster swapped": _cluster_swapped,
    "security group swapped": _security_group,
    "deletion protection": _protection,
}
"""Edits that need an order of stacks, or that a service refuses."""

EDITS: dict[str, Edit] = {
    **ORDERED,
    "group's count": _group_count,
    "group in": _group_added,
    "group out": _group_removed,
    "group's volume": _group_volume,
    "group's labels": _group_labels,
    "zone in": _zone_in,
    "file system in": _system_in,
    "file system grown": _system_grown,
    "file system shrunk": _system_shrunk,
    "file system's throughput": _system_throughput,
    "data repository": _repository,
    "claim": _claim,
    "Karpenter on": _karpenter_on,
    "tiered checkpointing": _tiered,
    "task governance": _governance,
    "team in": _team_in,
    "team out": _team_out,
    "team changed": _team_changed,
    "priorities": _priorities,
    "add-on's version": _addon,
    "Kubernetes' next minor": _minor,
    "two minors of Kubernetes": _two_minors,
    "access to EKS": _access,
    "network": _network,
    "tags": _tags,
    "operator": _operator,
    "workspace": _workspace,
    "volume of a bucket": _volume,
    "node recovery": _recovery,
}

_FURNITURE: tuple[Edit, ...] = (
    *(_zone_furnished, _system_in, _system_in, _log_key_in),
    *(_key, _karpenter_on, _tiered, _volume),
)
"""Edits that add what a deployment must remove in an order."""
