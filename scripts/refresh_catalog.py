"""Updates the parts of the catalog that follow from botocore, cfn-lint and moto; ``--check`` only prints changes.

Everything else in ``catalog/data`` is maintained by hand and stays unchanged, in a format with readable diffs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "constructs" / "hyperpod_cdk" / "catalog" / "data"
ROW_WIDTH = 110
SCHEMA_REGION = "us-east-1"
# json.dumps would create an encoder for each of thousands of rows
_written = json.JSONEncoder(ensure_ascii=False).encode

Document = dict[str, Any]


class MissingNumbersError(Exception):
    """A package contains something without a row in the file, such as a new instance type, whose values are unknown."""


def main(
    arguments: list[str] | None = None,
    *,
    data: Path = DATA,
    today: date | None = None,
    packages: Packages | None = None,
) -> int:
    """Refresh the catalog, or with ``--check`` compare it; returns 1 if it is stale or a type needs values by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when the files are stale")
    options = parser.parse_args(arguments)
    packages = packages or Packages()
    stale = False
    for path in sorted(data.glob("*.json")):
        text = path.read_text(encoding="utf-8")
        old = json.loads(text)
        try:
            new = refreshed(path.stem, old, packages, today=today or datetime.now(UTC).date())
        except MissingNumbersError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            return 1
        fresh = dump(new)
        if fresh == text:
            continue
        stale = True
        for line in list(differences(old, new)) or ["not in its stable form"]:
            print(f"{path.name}: {line}")
        if not options.check:
            path.write_text(fresh, encoding="utf-8")
    if stale and options.check:
        print("the catalog is stale; run python scripts/refresh_catalog.py and review the diff")
    return 1 if stale and options.check else 0


class Packages:
    """The data of the installed botocore, cfn-lint and moto."""

    def __init__(self) -> None:
        model = _read_gzip(_package("botocore") / "data" / "sagemaker" / "2017-07-24" / "service-2.json.gz")
        self.cluster_types: list[str] = model["shapes"]["ClusterInstanceType"]["enum"]
        self.training_plan_types: list[str] = model["shapes"]["ReservedCapacityInstanceType"]["enum"]
        self.partitions: list[Document] = json.loads(
            (_package("botocore") / "data" / "partitions.json").read_text(encoding="utf-8")
        )["partitions"]
        schemas = _package("cfnlint") / "data" / "schemas"
        self._schemas = schemas
        self.registry: dict[str, frozenset[str]] = {
            path.stem: frozenset(json.loads(path.read_text(encoding="utf-8")))
            for path in sorted((schemas / "providers").glob("*-*.json"))
        }
        dated = json.loads((schemas / "version.json").read_text(encoding="utf-8"))
        self.registry_date: str = dated["schema_date"][:10]
        self.ec2_types: dict[str, Document] = _read_gzip(
            _package("moto") / "ec2" / "resources" / "instance_types.json.gz"
        )

    def deployer_actions(self, resource_type: str) -> frozenset[str]:
        """Return the IAM actions that the handlers of a resource type need to create, read, update and delete it."""
        home = json.loads((self._schemas / "providers" / f"{SCHEMA_REGION}.json").read_text(encoding="utf-8"))
        path = self._schemas / "resources" / f"{home[resource_type]}.json"
        handlers = json.loads(path.read_text(encoding="utf-8")).get("handlers", {})
        phases = (handlers.get(phase, {}).get("permissions", []) for phase in ("create", "read", "update", "delete"))
        return frozenset(action for actions in phases for action in actions)

    def resource_types(self, action: str) -> frozenset[str]:
        """Return the resource types, in lower case, to which a policy can limit an action; empty if it cannot."""
        service, _, name = action.partition(":")
        named = self._service_reference[service]["Actions"][name.lower()]
        return frozenset(each.lower() for each in named.get("Resources", []))

    @cached_property
    def _service_reference(self) -> Document:
        path = _package("cfnlint") / "data" / "AdditionalSpecs" / "Policies.json"
        reference: Document = json.loads(path.read_text(encoding="utf-8"))
        return reference

    @cached_property
    def update_rules(self) -> dict[str, str]:
        """Return the registry's update data of each resource type, in the format of ``create_only.json``."""
        home = json.loads((self._schemas / "providers" / f"{SCHEMA_REGION}.json").read_text(encoding="utf-8"))
        folder = self._schemas / "resources"
        return {
            name: _update_rule(json.loads((folder / f"{digest}.json").read_text(encoding="utf-8")))
            for name, digest in sorted(home.items())
        }

    def az_ids(self) -> dict[str, list[str]]:
        """Return the sorted availability zone IDs of each region that moto knows."""
        # moto takes a second to import, and only this table needs it
        from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend  # noqa: PLC0415

        return {
            region: sorted(str(zone.zone_id) for zone in zones)
            for region, zones in RegionsAndZonesBackend.zones.items()
        }


def refreshed(name: str, old: Document, packages: Packages, *, today: date) -> Document:
    """Return the document ``name`` with the packages' data; dates and versions only change if a value has changed."""
    refresh = REFRESHERS.get(name)
    if refresh is None:
        return old
    new = refresh(old, packages)
    if new == old:
        return old
    versions = {f"{package} ": version(package) for package in ("botocore", "cfn-lint", "moto")}
    sources = {key: _with_versions(text, versions) for key, text in old["sources"].items()}
    dates = {"registry_as_of": packages.registry_date} if "registry_as_of" in old else {}
    return {**new, "as_of": today.isoformat(), "sources": sources, **dates}


def refresh_instance_types(old: Document, packages: Packages) -> Document:
    """Update names, order, training plan support and EC2's values."""
    rows = {row["name"]: row for row in old["types"]}
    types = []
    for name in packages.cluster_types:
        ec2 = packages.ec2_types.get(name.removeprefix("ml."))
        row = rows.get(name) or _new_type(name, ec2)
        facts = _ec2_facts(ec2) if ec2 else {}
        types.append({**row, **facts, "training_plan_supported": name in packages.training_plan_types})
    return {**old, "types": types}


def refresh_regions(old: Document, packages: Packages) -> Document:
    """Update Regions, partitions, AZ IDs and the registry's lists; prefixes that were added by hand are kept."""
    rows = {row["name"]: row for row in old["regions"]}
    az_ids = packages.az_ids()
    regions = [
        _region(name, partition["id"], region["description"], rows.get(name, {}), az_ids.get(name))
        for partition in packages.partitions
        for name, region in sorted(partition["regions"].items())
        if not name.endswith("-global")
    ]
    partitions = {
        partition["id"]: {
            "dns_suffix": partition["outputs"]["dnsSuffix"],
            "region_regex": partition["regionRegex"],
        }
        for partition in packages.partitions
    }
    registry = {
        resource_type: [region for region, types in packages.registry.items() if resource_type in types]
        for resource_type in old["registry"]
    }
    return {
        **old,
        "registry_regions": list(packages.registry),
        "registry": registry,
        "partitions": partitions,
        "regions": regions,
    }


def refresh_deployer_actions(old: Document, packages: Packages) -> Document:
    """Update the actions of each resource type; a type without actions in its schema keeps those added by hand."""
    rows = []
    for row in old["types"]:
        named = packages.deployer_actions(row["name"])
        left_out = [re.compile(each["actions"]) for each in old["left_out"] if row["name"] in each["types"]]
        actions = sorted(action for action in named if not any(each.fullmatch(action) for each in left_out))
        rows.append({**row, "actions": actions or row["actions"]})
    features = []
    for row in old["features"]:
        named = packages.deployer_actions(row["name"])
        features.append({**row, "actions": [action for action in row["actions"] if action in named]})
    asked = {action for row in (*rows, *features) for action in row["actions"]} | set(old["beside_handlers"])
    made: dict[str, set[str]] = {}
    for row in old["resources"]:
        made.setdefault(row["service"], set()).add(row["type"])
    limits = {action: packages.resource_types(action) for action in sorted(asked)}
    limited_to = {}
    for action, types in limits.items():
        ours = sorted(types & made.get(action.partition(":")[0], set()))
        if types and not ours:
            raise MissingNumbersError(
                f"{action} can be limited to {', '.join(sorted(types))}: resources has none of them"
            )
        limited_to[action] = ours
    return {**old, "types": rows, "features": features, "limited_to": limited_to}


def refresh_create_only(old: Document, packages: Packages) -> Document:
    """Update the create-only properties of every resource type."""
    return {**old, "types": packages.update_rules}


REFRESHERS: dict[str, Callable[[Document, Packages], Document]] = {
    "create_only": refresh_create_only,
    "deployer_actions": refresh_deployer_actions,
    "instance_types": refresh_instance_types,
    "regions": refresh_regions,
}


def dump(document: Document) -> str:
    """Return a document with one top-level key per line or, if the line would be long, one row per line."""
    entries = []
    for key, value in document.items():
        line = f"  {_written(key)}: {_written(value)}"
        entries.append(line if len(line) <= ROW_WIDTH or not _is_rows(value) else _rows(key, value))
    return "{\n" + ",\n".join(entries) + "\n}\n"


def differences(old: Document, new: Document) -> Iterator[str]:
    """Yield one line per difference between two documents."""
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, list) and isinstance(after, list):
            yield from _row_differences(key, _by_name(before), _by_name(after))
        elif isinstance(before, dict) and isinstance(after, dict):
            yield from _row_differences(key, before, after)
        else:
            yield f"{key}: {before} -> {after}"


def _row_differences(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*before, *after]):
        if name not in after:
            yield f"{key}: {name} is gone"
        elif name not in before:
            yield f"{key}: {name} is new"
        elif before[name] != after[name]:
            yield f"{key}: {name} {_change(before[name], after[name])}"
    if list(before) != list(after) and set(before) == set(after):
        yield f"{key}: the order has changed"


def _change(before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        fields = [field for field in dict.fromkeys([*before, *after]) if before.get(field) != after.get(field)]
        return ", ".join(f"{field} {before.get(field)} -> {after.get(field)}" for field in fields)
    if isinstance(before, list) and isinstance(after, list):
        gains = [f"+{item}" for item in after if item not in before]
        return " ".join([*gains, *(f"-{item}" for item in before if item not in after)])
    return f"{before} -> {after}"


def _by_name(rows: Iterable[Any]) -> dict[str, Any]:
    return {str(row["name"] if isinstance(row, dict) else row): row for row in rows}


def _is_rows(value: Any) -> bool:
    return isinstance(value, list | dict) and bool(value)


def _rows(key: str, value: Any) -> str:
    if isinstance(value, list):
        lines, opening, closing = [_written(item) for item in value], "[", "]"
    else:
        lines = [f"{_written(name)}: {_written(item)}" for name, item in value.items()]
        opening, closing = "{", "}"
    body = ",\n".join(f"    {line}" for line in lines)
    return f"  {_written(key)}: {opening}\n{body}\n  {closing}"


def _new_type(name: str, ec2: Document | None) -> Document:
    if ec2 is None:
        raise MissingNumbersError(f"{name} is new and no package states its numbers; add its row by hand")
    gpus = [gpu for gpu in ec2.get("GpuInfo", {}).get("Gpus", []) if gpu.get("Manufacturer") == "NVIDIA"]
    neuron = ec2.get("NeuronInfo", {}).get("NeuronDevices", [])
    devices = gpus or neuron
    vendor = "nvidia" if gpus else "aws"
    kind = f"{vendor}-{devices[0]['Name'].lower().replace(' ', '-')}" if devices else None
    memory = round(devices[0]["MemoryInfo"]["SizeInMiB"] / 1024) if devices else None
    return {
        "name": name,
        "ec2_name": name.removeprefix("ml."),
        "family": name.split(".")[1],
        "accelerator_kind": kind,
        "accelerator_count": sum(device["Count"] for device in devices),
        "accelerator_memory_gib": memory,
        "deep_health_check": bool(devices),
        "cluster_quota_name": f"{name} for cluster usage",
        "sources": ["botocore", "moto-ec2"],
        "unsure": ["new in the API: RDMA, MIG, max pods, FSx client and quota codes were not read"],
    }


def _ec2_facts(ec2: Document) -> Document:
    network, cpu = ec2["NetworkInfo"], ec2["VCpuInfo"]
    gib = ec2["MemoryInfo"]["SizeInMiB"] / 1024
    return {
        "architecture": next(a for a in ec2["ProcessorInfo"]["SupportedArchitectures"] if a != "i386"),
        "vcpu": cpu["DefaultVCpus"],
        "memory_gib": int(gib) if gib.is_integer() else gib,
        "efa_supported": network.get("EfaSupported", False),
        "efa_count": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "network_cards": network["MaximumNetworkCards"],
        "max_enis": network["MaximumNetworkInterfaces"],
        "ips_per_eni": network["Ipv4AddressesPerInterface"],
        "default_threads_per_core": cpu["DefaultThreadsPerCore"],
        "valid_threads_per_core": cpu.get("ValidThreadsPerCore", []),
    }


def _update_rule(schema: Document) -> str:
    read_only = set(schema.get("readOnlyProperties", []))
    identifiers = [schema.get("primaryIdentifier", []), *schema.get("additionalIdentifiers", [])]
    # the first one that a template sets completely must be unique
    name: list[str] = next((each for each in identifiers if each and not read_only & set(each)), [])
    words = [
        *(_short(pointer) for pointer in sorted(schema.get("createOnlyProperties", []))),
        *(f"{_short(pointer)}?" for pointer in sorted(schema.get("conditionalCreateOnlyProperties", []))),
        *(f"={_short(pointer)}" for pointer in name),
        *(["!"] if schema.get("replacementStrategy") == "delete_then_create" else []),
    ]
    return " ".join(words)


def _short(pointer: str) -> str:
    return pointer.removeprefix("/properties/")


def _region(name: str, partition: str, description: str, row: Document, az_ids: list[str] | None) -> Document:
    base = {"name": name, "partition": partition, "description": description}
    if az_ids:
        return {**base, "az_id_prefix": az_ids[0].rpartition("-az")[0], "az_ids": az_ids}
    prefix = row.get("az_id_prefix")
    unsure = {} if prefix else {"unsure": "az_id_prefix: no source read"}
    return {**base, "az_id_prefix": prefix, **unsure, "az_ids": row.get("az_ids", [])}


def _with_versions(text: str, versions: Mapping[str, str]) -> str:
    words = text.split(" ")
    for index, word in enumerate(words[:-1]):
        if f"{word} " in versions and words[index + 1][:1].isdecimal():
            trailing = words[index + 1][len(words[index + 1].rstrip(",;:")) :]
            words[index + 1] = versions[f"{word} "] + trailing
    return " ".join(words)


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name} is not installed; install the project's development dependencies")
    return Path(spec.origin).parent


def _read_gzip(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    sys.exit(main())
