"""Makes environment files that `validate` accepts, from the schema of the file and the rules over it.

A file is drawn field by field from the JSON Schema, which the models write; what one field takes from another (zones,
groups, ARNs of the account) is drawn from what stands there. Then the loader is asked, and what it refuses is taken out
or drawn anew, until nothing is left to refuse: so every rule has its say, and none is repeated here.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from hyperpod_cdk.catalog import kubernetes, regions
from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment, environment_schema, load_environment
from hyperpod_cdk.config.rules import eks, hyperpod, instance_groups, notify, task_governance
from hyperpod_cdk.config.source import parse_path
from hyperpod_cdk.findings import Finding, Severity

ACCOUNT = "111122223333"
FILE = Path("drawn/environments/legal.yaml")  # not beside those of this project, whose names it may draw
_ROUNDS = 30
_LAST_RESORTS: Mapping[int, Sequence[str]] = {18: (), 24: ("task_governance", "storage", "operators", "instance_types")}
"""Round -> the sections that go with all groups but a safe one, where nothing else has helped."""
_SAFE_GROUP = {"name": "system", "instance_type": "ml.m5.2xlarge", "count": 2}
_PATIENCE = 8
"""The number of rounds in which a required value is drawn again, before its parent is removed."""
_SELDOM, _OFTEN = 12, 55
"""In how many of a hundred files an optional field stands: anywhere, and beside the field that the file is about."""

HOSTILE = (
    *"[](){}<>'\"`\\%$&*?#:;,|^~!=+@_-./ ",
    "${AWS::Region}",
    "${Token[TOKEN.1]}",
    "{{resolve:ssm:/x}}",
    "{{",
    "\u00e9",
    "e\u0301",
    "\u202e",
    "\u200b",
    "\U0001f600",
    "\u0131",
    "\t",
    "\n",
    "\r",
    "\x00",
    "\x1b[2J",
    "\x85",
    "\u2028",
    "../",
    "./",
    "//",
    "%2F",
    "a" * 70,
    "a" * 300,
)
"""Parts of a text that later tools could interpret as more than text."""

_TYPES = (
    "ml.m5.2xlarge",
    "ml.c6i.2xlarge",
    "ml.g5.12xlarge",
    "ml.g6e.12xlarge",
    "ml.p4d.24xlarge",
    "ml.p5.48xlarge",
    "ml.p5en.48xlarge",
    "ml.trn1.32xlarge",
    "ml.trn2.48xlarge",
)
_STATED = ("ml.p9.48xlarge", "ml.m7i.2xlarge")
_REGIONS = ("us-east-1", "us-west-2", "eu-central-1", "ap-southeast-3")
_NAMES = ("a", "a-b", "ab", "default", "system", "x1")
_SUBNETS = tuple(f"subnet-0a1b2c3d4e5f6789{digit}" for digit in "0123")

Steps = tuple[str | int, ...]
File = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """Common properties of the fields of one file: its location and its kind."""

    region: str
    zones: tuple[str, ...]
    is_existing: bool
    has_eks: bool
    is_closed: bool
    focus: str

    def arn(self, service: str, resource: str) -> str:
        """Return an ARN of the file's account and region."""
        return f"arn:aws:{service}:{self.region}:{ACCOUNT}:{resource}"


Choice = Callable[[Shape], st.SearchStrategy[Any]]


_KINDS = {
    "hyperpod.instance_groups[].existing": "existing with eks",
    "network.endpoints": "closed",
    "network.existing": "existing",
    "eks.existing": "existing with eks",
}
"""The kind of file in which a field is valid."""


def _key_arn(shape: Shape) -> st.SearchStrategy[str]:
    return st.just(shape.arn("kms", "key/1234abcd-12ab-34cd-56ef-1234567890ab"))


def _role_arn(path: str = "") -> st.SearchStrategy[str]:
    return st.sampled_from(_NAMES).map(lambda name: f"arn:aws:iam::{ACCOUNT}:role/{path}{name}")


_CALLERS = ("54.240.193.128/26", "54.240.193.130/32")
"""AWS's examples of publicAccessCidrs (re:Post, "lock down API access"); EKS refuses reserved blocks."""

_LIMITED = ("pods", "requests.memory", "persistentvolumeclaims", "count/jobs.batch")
"""What a ResourceQuota may limit."""

_BY_PLACE: dict[str, Choice] = {
    "account": lambda _: st.just(ACCOUNT),
    "region": lambda shape: st.just(shape.region),
    "permissions_boundary": lambda _: st.sampled_from(["Boundary", f"arn:aws:iam::{ACCOUNT}:policy/p/Boundary"]),
    "network.vpc_cidr": lambda _: st.sampled_from(["10.192.0.0/16", "172.16.0.0/24", "100.64.0.0/20"]),
    "network.nat_gateways": lambda _: st.integers(1, 2),
    "network.egress": lambda shape: st.just("closed" if shape.is_closed else "nat"),
    "network.endpoints.zones[]": lambda shape: st.sampled_from(shape.zones),
    "network.existing.vpc_cidrs[]": lambda _: st.sampled_from(["10.0.0.0/16", "100.64.0.0/16"]),
    "eks.existing.oidc_provider_arn": lambda shape: st.just(
        f"arn:aws:iam::{ACCOUNT}:oidc-provider/oidc.eks.{shape.region}.amazonaws.com/id/0123456789ABCDEF"
    ),
    "eks.existing.kubectl_role_arn": lambda _: _role_arn("kubectl/"),
    "eks.admin_role_arns[]": lambda _: _role_arn("admins/"),
    "eks.public_access_cidrs[]": lambda _: st.sampled_from(["0.0.0.0/0", *_CALLERS]),
    "eks.service_ipv4_cidr": lambda _: st.sampled_from(["172.20.0.0/16", "192.168.64.0/20"]),
    "eks.image_registry": lambda shape: st.just(f"{ACCOUNT}.dkr.ecr.{shape.region}.amazonaws.com/mirror"),
    "hyperpod.instance_groups[].name": lambda _: st.sampled_from(_NAMES),
    "hyperpod.karpenter_pools[].instance_groups[]": lambda _: st.sampled_from(_NAMES),
    "notify.emails[]": lambda _: st.sampled_from(["on-call@example.com", "a.b+c@example.org"]),
    "notify.event_bus_arn": lambda shape: st.just(shape.arn("events", "event-bus/ml-platform")),
    "notify.sns_topic_arn": lambda shape: st.just(shape.arn("sns", "on-call")),
    "task_governance.teams[].name": lambda _: st.sampled_from(_NAMES),
    "operators.observability.prometheus_workspace": lambda shape: st.sampled_from(
        ["create", shape.arn("aps", "workspace/ws-1234abcd")]
    ),
    "operators.observability.grafana_workspace": lambda shape: st.sampled_from(
        ["create", shape.arn("grafana", "/workspaces/g-0123456789")]
    ),
}
"""Values of a field by its place in the file."""

_BY_KEY: dict[str, Choice] = {
    "availability_zone_id": lambda shape: st.sampled_from(shape.zones),
    "instance_type": lambda _: st.sampled_from([*_TYPES, *_STATED]),
    "instance_types[]": lambda _: st.sampled_from([*_TYPES, *_STATED]),
    "execution_role_arn": lambda _: _role_arn("nodes/"),
    "training_plan_arn": lambda shape: st.just(shape.arn("sagemaker", "training-plan/p")),
    "kms_key_arn": _key_arn,
    "kms_key_arns[]": _key_arn,
    "member_role_arns[]": lambda _: _role_arn("members/"),
    "namespaces[]": lambda _: st.sampled_from(["default", "notebooks", *(f"hyperpod-ns-{name}" for name in _NAMES)]),
    "namespace": lambda _: st.sampled_from(["default", *(f"hyperpod-ns-{name}" for name in _NAMES)]),
    # numbers that somebody would write: what a plan or a quota has of them is another check's
    "count": lambda _: st.integers(0, 6),
    "min_count": lambda _: st.integers(0, 3),
    "capacity_gib": lambda _: st.sampled_from([1200, 2400, 4800, 9600, 38400]),
    "throughput_capacity_mbps": lambda _: st.sampled_from([4000, 8000, 12000]),
    "throughput_mbps_per_tib": lambda _: st.sampled_from([125, 250, 500, 1000]),
    "metadata_iops": lambda _: st.sampled_from([1500, 6000, 12000]),
    "ips_per_node": lambda _: st.integers(1, 90),
    "ami_id": lambda _: st.sampled_from(["ami-0123456789abcdef0", "default"]),
    "on_create": lambda _: st.sampled_from(["on_create.sh", "on_create_noop.sh"]),
    "on_init_complete": lambda _: st.just("on_create_noop.sh"),
}
"""Values of a field by its name, in any place."""


@cache
def schema() -> Mapping[str, Any]:
    """The JSON Schema of the environment file."""
    return environment_schema()


def resolved(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a reference of the schema means, and of a value or nothing the value."""
    while True:
        if "$ref" in part:
            part = schema()["$defs"][part["$ref"].rsplit("/", 1)[-1]]
            continue
        others = [each for each in part.get("anyOf", ()) if each.get("type") not in {None, "null"} or "$ref" in each]
        if "properties" not in part and len(others) == 1:
            part = others[0]
            continue
        return part


@cache
def fields() -> frozenset[str]:
    """Every field of the environment file: ``hyperpod.instance_groups[].count``, ``tags.*``."""
    return frozenset(_fields(schema(), ""))


def _fields(part: Mapping[str, Any], place: str) -> Iterator[str]:
    part = resolved(part)
    for name, inner in part.get("properties", {}).items():
        at = f"{place}.{name}".lstrip(".")
        yield at
        yield from _fields(inner, at)
    if isinstance(part.get("additionalProperties"), Mapping):
        yield f"{place}.*"
        yield from _fields(part["additionalProperties"], f"{place}.*")
    if "items" in part:
        yield f"{place}[]"
        yield from _fields(part["items"], f"{place}[]")


def fields_of(value: Any, part: Mapping[str, Any] | None = None, place: str = "") -> Iterator[str]:
    """Return every field of the schema that is in a file."""
    part = resolved(schema() if part is None else part)
    if isinstance(value, list):
        for each in value:
            yield f"{place}[]"
            yield from fields_of(each, part["items"], f"{place}[]")
    elif isinstance(value, dict):
        names = part.get("properties", {})
        for key, each in value.items():
            at = f"{place}.{key if key in names else '*'}".lstrip(".")
            yield at
            yield from fields_of(each, names.get(key, part.get("additionalProperties") or {}), at)


@st.composite
def files(draw: st.DrawFn, focus: st.SearchStrategy[str] | None = None, *, region: str | None = None) -> File:
    """A file that is accepted, and tries to hold one field, that of ``focus``, with what stands beside it."""
    region = region or draw(st.sampled_from(_REGIONS))
    refused = regions.eks_control_plane_unsupported_az_ids()
    zones = draw(st.permutations([zone for zone in regions.known_az_ids(region) if zone not in refused]))
    about = draw(st.sampled_from(sorted(fields())) if focus is None else focus)
    kind = next(
        (kind for place, kind in _KINDS.items() if _leads_to(place, about)),
        draw(st.sampled_from(["made", "made", "made", "closed", "existing", "existing with eks"])),
    )
    shape = Shape(
        region=region,
        zones=tuple(zones[: draw(st.integers(2, 3))]),
        is_existing=kind.startswith("existing"),
        has_eks=kind == "existing with eks",
        is_closed=kind == "closed",
        focus=about,
    )
    pen = _Pen(draw, shape)
    file = pen.section(schema(), "")
    pen.found(file)
    return pen.accepted(file)


def accepted(file: File) -> LoadedEnvironment | None:
    """Return the environment of a file, None for one that is refused."""
    answer = asked(as_text(file))
    return answer if isinstance(answer, LoadedEnvironment) else None


_WARN_OF_A_FAILURE = {
    rule.__name__
    for rule in (
        instance_groups.a_plan_is_of_one_type,
        eks.scaling_tier_is_listed,
        notify.budgets_are_in_the_region,
        task_governance.region_has_the_native_types,
    )
}


def is_warned_to_fail(loaded: LoadedEnvironment) -> bool:
    """Return whether its warnings state that a first deployment fails.

    Without a node, webhooks of add-ons answer nobody; a plan of the embedded account is of one type in one zone; a
    type that the catalog lacks is in no model of SageMaker's API yet, nor is a control plane's size that EKS's lacks;
    and a region's CloudFormation refuses the types that it does not have.
    """
    rules = {each.rule for each in loaded.warnings}
    if rules & _WARN_OF_A_FAILURE or any("is not in the catalog" in each.message for each in loaded.warnings):
        return True
    environment = loaded.environment
    asks = environment.task_governance is not None or environment.operators.need_cert_manager
    return asks and hyperpod.addons_find_a_node.__name__ in rules


def as_text(file: File) -> str:
    """Write a file as YAML."""
    text: str = yaml.dump(file, Dumper=_Dumper, sort_keys=False)
    return text


def shrunk(file: File, *, still: Callable[[File], bool], most: int = 60) -> File:
    """Remove from a file what is not needed for it to be valid and ``still`` a case of what it was found for."""
    tries = 0
    smaller = True
    while smaller and tries < most:
        smaller = False
        for steps in sorted(_places(file), key=len):
            candidate = copy.deepcopy(file)
            if not _removed(candidate, steps) or accepted(candidate) is None:
                continue
            tries += 1
            if still(candidate):
                file, smaller = candidate, True
                break
            if tries >= most:
                break
    return file


class _Dumper(yaml.SafeDumper):
    """Without anchors, which the loader refuses."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the shape of a dumper
        return True


@lru_cache(maxsize=64)
def asked(text: str) -> LoadedEnvironment | tuple[Finding, ...]:
    """Return the environment of a text, or the errors for which it is refused."""
    try:
        return load_environment(FILE, text=text, today=kubernetes.AS_OF, with_record=False)
    except EnvironmentFileError as error:
        return tuple(each for each in error.findings if each.severity is Severity.ERROR)


@dataclass
class _Pen:
    """Writes one file, with what hypothesis draws."""

    draw: st.DrawFn
    shape: Shape

    def section(self, part: Mapping[str, Any], place: str) -> File:
        """Draw a mapping: what is required, and some of the rest."""
        required = part.get("required", ())
        focus = self.shape.focus
        if place.endswith("_batch"):
            keys = [key for key in sorted(part["properties"]) if _leads_to(f"{place}.{key}", focus)]
            key = self.draw(st.sampled_from(keys or sorted(part["properties"])))
            return {key: self.value(part["properties"][key], f"{place}.{key}")}
        percent = _OFTEN if f"{place}.".lstrip(".") and focus.startswith(f"{place}.") else _SELDOM
        names = [
            name
            for name in part.get("properties", {})
            if name in required
            or name == "instance_groups"
            or _leads_to(f"{place}.{name}".lstrip("."), focus)
            or self._chance(percent)
        ]
        return {
            name: self.value(part["properties"][name], f"{place}.{name}".lstrip("."))
            for name in names
            if f"{place}.{name}".lstrip(".") not in {"network.existing", "eks.existing", "network.availability_zones"}
        }

    def value(self, part: Mapping[str, Any], place: str) -> Any:
        """Draw the value of a field."""
        if place.endswith(("quota[]", "absolute_borrow_limits[]")):
            return self._quota(part, place)
        chosen = _BY_PLACE.get(place) or _BY_KEY.get(place.rsplit(".", 1)[-1])
        if chosen is not None:
            return self.draw(chosen(self.shape))
        part = resolved(part)
        if "properties" in part:
            return self.section(part, place)
        if part.get("type") in {"array", "object"}:
            return self._several(part, place)
        return self.scalar(part)

    def _several(self, part: Mapping[str, Any], place: str) -> Any:
        if part["type"] == "array":
            least = part.get("minItems", 1)
            return [self.value(part["items"], f"{place}[]") for _ in range(self._upto(least, max(least, 3)))]
        if place == "instance_types":
            keys = list(_STATED)
        elif place.endswith(".resource_quota"):
            keys = self.draw(st.lists(st.sampled_from(_LIMITED), min_size=1, max_size=3, unique=True))
        else:
            names = part.get("propertyNames", {"type": "string"})
            keys = [self.scalar(names) for _ in range(self._upto(max(1, part.get("minProperties", 1)), 3))]
        return {key: self.value(part["additionalProperties"], f"{place}.*") for key in keys}

    def scalar(self, part: Mapping[str, Any]) -> Any:
        """Draw a number, a truth value or a text."""
        if "const" in part:
            return part["const"]
        if "enum" in part:
            return self.draw(st.sampled_from(part["enum"]))
        if part.get("type") == "boolean":
            return self.draw(st.booleans())
        if part.get("type") in {"integer", "number"}:
            least, most = part.get("minimum", 0), part.get("maximum", 10**12)
            near = st.sampled_from([least, most, min(most, least + 1)])
            number = self.draw(st.one_of(near, st.integers(least, min(most, least + 1000))))
            return float(number) if part["type"] == "number" else number
        return self.text(part)

    def text(self, part: Mapping[str, Any]) -> str:
        """Draw a text that matches the pattern, as hostile as the pattern allows."""
        pattern = part.get("pattern", r"^[\s\S]{1,40}$")
        examples = [each for each in part.get("examples", ()) if isinstance(each, str)]
        regex = st.from_regex(pattern, fullmatch=True, alphabet=st.characters(max_codepoint=0x24F, codec="utf-8"))
        said = self.draw(st.one_of(st.sampled_from(examples), regex) if examples else regex)
        fragments = st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=8) if self._chance(_OFTEN) else st.just([])
        for fragment in self.draw(fragments):
            at = self._upto(0, len(said))
            longer = said[:at] + fragment + said[at:]
            if re.search(pattern, longer) and len(longer) <= part.get("maxLength", len(longer)):
                said = longer
        return said

    def found(self, file: File) -> None:
        """Write the network and the cluster of the kind that the file is of."""
        network, existing = file["network"], self._existing()
        if self.shape.is_existing:
            network["existing"] = existing
        else:
            network["availability_zones"] = {
                zone: self.section(schema()["$defs"]["AvailabilityZone"], "network.availability_zones.*")
                if self._chance(_OFTEN)
                else None
                for zone in self.shape.zones
            }
            for number, zone in enumerate(network["availability_zones"].values()):
                if zone:
                    zone["node_cidr"] = f"10.{number + 1}.0.0/{self.draw(st.sampled_from([16, 18, 20]))}"
        if self.shape.has_eks:
            file.setdefault("eks", {})["existing"] = self.value(
                schema()["$defs"]["Eks"]["properties"]["existing"], "eks.existing"
            )
        if self.shape.is_closed:
            network["egress"] = "closed"
        for name, operator in file.get("operators", {}).items():
            if _leads_to(f"operators.{name}", self.shape.focus):
                operator["enabled"] = True
        self._something_to_encrypt(file)
        if _leads_to("storage.lustre[].read_cache", self.shape.focus):
            tiering = {"storage_type": "intelligent_tiering", "throughput_capacity_mbps": 4000}
            cache = {"read_cache": {"sizing": "provisioned", "size_gib": self._upto(32, 131072)}}
            file["storage"]["lustre"] = [
                {"name": "tiering", "availability_zone_id": self.shape.zones[0], **tiering, **cache}
            ]
        if _leads_to("task_governance.teams", self.shape.focus):
            self._shared(file)
        if "karpenter_pools" in file["hyperpod"]:
            self._autoscaled(file["hyperpod"])

    def _something_to_encrypt(self, file: File) -> None:
        if self.shape.focus == "encryption.notifications":
            file["notify"] = {"emails": ["on-call@example.com"]}
        if self.shape.focus == "encryption.file_systems":
            system = {"name": "scratch", "availability_zone_id": self.shape.zones[0], "capacity_gib": 1200}
            file["storage"] = {"lustre": [system]}

    def _shared(self, file: File) -> None:
        """Let the first team's quotas be of a group that there is, whose GPUs are in parts where a quota is."""
        group: dict[str, Any] = dict(
            _SAFE_GROUP, name="shared", instance_type="ml.p5.48xlarge", count=4, capacity="on_demand"
        )
        group["availability_zone_id"] = self.shape.zones[0]
        team = file["task_governance"]["teams"][0]
        del file["task_governance"]["teams"][1:]
        team.get("sharing", {})["strategy"] = "lend_and_borrow"
        for rows in (team["quota"], team.get("sharing", {}).get("absolute_borrow_limits", [])):
            del rows[1:]
            for row in rows:
                row["instance_type"] = group["instance_type"]
                row.update(dict.fromkeys(row.keys() & {"count", "accelerators"}, 1))
                row.update(dict.fromkeys(row.keys() & {"vcpu", "memory_gib"}, 8.0))
                if "accelerator_partition" in row:
                    row["accelerator_partition"] = {"profile": "mig-1g.10gb", "count": 1}
                    group["labels"] = {"nvidia.com/mig.config": "all-1g.10gb"}
        file["hyperpod"] = {"instance_groups": [group]}

    def _autoscaled(self, hyperpod: File) -> None:
        """Let Karpenter scale every group but a small one, and let the pools name what there is."""
        names = [group["name"] for group in hyperpod["instance_groups"]]
        for group in hyperpod["instance_groups"]:
            group.update(count=0, capacity="on_demand", instance_type="ml.g5.12xlarge")
            for key in ("min_count", "instance_types", "deep_health_checks", "training_plan_arn"):
                group.pop(key, None)
        system = dict(_SAFE_GROUP, name="always", availability_zone_id=self.shape.zones[0])
        hyperpod["instance_groups"].append(system)
        hyperpod.update(autoscaling="karpenter", provisioning="continuous")
        hyperpod["karpenter_pools"][0]["instance_groups"] = names
        del hyperpod["karpenter_pools"][1:]

    def _quota(self, part: Mapping[str, Any], place: str) -> File:
        """A row has one kind of amount, or several that go together."""
        kinds = [("count",), ("accelerators",), ("accelerators", "vcpu", "memory_gib"), ("accelerator_partition",)]
        rows = resolved(part)["properties"]
        wanted = [kind for kind in kinds if any(_leads_to(f"{place}.{name}", self.shape.focus) for name in kind)]
        kind = self.draw(st.sampled_from(wanted or kinds))
        return {name: self.value(rows[name], f"{place}.{name}") for name in ("instance_type", *kind)}

    def _existing(self) -> File:
        part = schema()["$defs"]["ExistingNetwork"]
        drawn = self.section(part, "network.existing")
        if _leads_to("hyperpod.instance_groups[].existing", self.shape.focus):
            # a group of a cluster that exists may stand where that cluster does
            drawn["cluster_subnet_ids"] = [_SUBNETS[0]]
        return {
            **drawn,
            "node_subnet_ids": dict(zip(self.shape.zones, _SUBNETS, strict=False)),
            "control_plane_subnet_ids": [_SUBNETS[3], "subnet-0b2c3d4e5f678901a"],
        }

    def accepted(self, file: File) -> File:
        """Remove from a file, or draw again, what the loader refuses, until the file is valid."""
        answer: LoadedEnvironment | tuple[Finding, ...] = ()
        for turn in range(_ROUNDS):
            answer = asked(as_text(file))
            if isinstance(answer, LoadedEnvironment):
                return file
            if turn in _LAST_RESORTS:
                file["hyperpod"] = {"instance_groups": [dict(_SAFE_GROUP, availability_zone_id=self.shape.zones[0])]}
                for section in _LAST_RESORTS[turn]:
                    file.pop(section, None)
                continue
            # the last first: what goes before moves nothing that is still to be answered
            for finding in reversed(answer):
                self._answer(file, finding, turn)
        assert not isinstance(answer, LoadedEnvironment)
        raise AssertionError(f"nothing makes this file legal: {[each.render() for each in answer]}\n{as_text(file)}")

    def _answer(self, file: File, finding: Finding, turn: int) -> None:
        # a key that findings show in another way goes with what holds it
        steps = parse_path(finding.path) or parse_path(finding.path.partition('["')[0])
        assert steps is not None, f"no place in the file: {finding.render()}"
        if turn < _PATIENCE and not _stands(file, steps):
            self._add(file, steps)
            return
        if "must hold at least" in finding.message:
            self._add(file, steps)
            return
        while steps:
            if _removed(file, steps):
                return
            if turn < _PATIENCE and _stands(file, steps, kinds=(str, int, float)):
                self._add(file, steps)
                return
            steps = steps[:-1]

    def _add(self, file: File, steps: Steps) -> None:
        parent: Any = file
        for step in steps[:-1]:
            if isinstance(parent, dict):
                parent = parent.setdefault(step, {})
            elif isinstance(parent, list) and isinstance(step, int) and step < len(parent):
                parent = parent[step]
            else:
                return
        place = _place_of(steps)
        if isinstance(parent, dict):
            parent[steps[-1]] = self.value(_part_of(steps), place)

    def _chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def _upto(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))


def _leads_to(place: str, focus: str) -> bool:
    return focus == place or focus.startswith((f"{place}.", f"{place}["))


def _place_of(steps: Steps) -> str:
    return "".join("[]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _part_of(steps: Steps) -> Mapping[str, Any]:
    part = schema()
    for step in steps:
        part = resolved(part)
        named = {} if isinstance(step, int) else part.get("properties", {})
        part = part["items"] if isinstance(step, int) else named.get(step) or part["additionalProperties"]
    return part


def _places(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    inner: Sequence[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for step, each in inner:
        yield (*steps, step)
        yield from _places(each, (*steps, step))


def _stands(file: File, steps: Steps, *, kinds: tuple[type, ...] = (object,)) -> bool:
    value: Any = file
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(value, kinds)


def _removed(file: File, steps: Steps) -> bool:
    """Remove a value, and return whether it was possible."""
    parent: Any = file
    try:
        for step in steps[:-1]:
            parent = parent[step]
        required = isinstance(parent, dict) and steps[-1] in resolved(_part_of(steps[:-1])).get("required", ())
        if required:
            return False
        del parent[steps[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    return True
