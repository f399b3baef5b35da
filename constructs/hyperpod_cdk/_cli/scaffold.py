"""Creates an environment file from a few answers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from hyperpod_cdk.catalog import governance, hyperpod, instance_types, kubernetes, regions
from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import (
    Advice,
    Correction,
    Example,
    OnlyInFiles,
    Setting,
    Truth,
    by_option,
    in_words_of,
)
from hyperpod_cdk.config import EnvironmentFileError, arguments, environment_files, load_environment
from hyperpod_cdk.config.eks import Eks
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.loading import FOLDER, SUFFIX
from hyperpod_cdk.config.network import DEFAULT_VPC_CIDR
from hyperpod_cdk.config.problems import THE_KEY
from hyperpod_cdk.config.section import Section
from hyperpod_cdk.config.several import free_blocks
from hyperpod_cdk.findings import Finding, Severity

SCHEMA = Path("schemas/environment.schema.json")
"""The path of the schema in the first line of an environment file."""

SYSTEM_TYPE = "ml.m5.2xlarge"
_SYSTEM_COUNT = 2
_LUSTRE_GIB = 4800


class ScaffoldError(Exception):
    """The answers would result in an invalid file; the message contains each wrong answer."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers to the questions of `hyperpod-cdk init`.

    ``zones``: AZ IDs, the workers' first; if empty, the Region's first two, after the zone of UltraServers.
    ``admin_role_arns``: IAM roles that administer the cluster; if empty, no role does.
    """

    name: str
    account: str
    region: str
    zones: tuple[str, ...] = ()
    instance_type: str | None = None
    count: int = 2
    capacity: str | None = None
    training_plan_arn: str | None = None
    team: str | None = None
    lustre: bool = False
    admin_role_arns: tuple[str, ...] = ()


def write_environment(answers: Answers, root: Path) -> Path:
    """Write ``environments/<name>.yaml`` below ``root`` and return its path.

    Raises ScaffoldError, and writes nothing, if the file exists or the answers would result in a refused file.
    """
    path = _path(answers, root)
    refuse_existing(path, shown=f"{FOLDER}/{path.name}")
    write_new(path, checked_text(answers, root), root)
    return path


def refuse_existing(path: Path, *, shown: str, fix: str = "choose another name or edit the file") -> None:
    """Raise ScaffoldError if ``path`` exists; ``shown`` is its name in the message."""
    if os.path.lexists(path):
        raise ScaffoldError(f"{shown} exists and is never overwritten; {fix}")


def write_new(path: Path, text: str, root: Path) -> None:
    """Write a file that does not exist yet and, unless it exists, the schema that its first line refers to."""
    texts = {path: text}
    if not (root / SCHEMA).exists():
        from hyperpod_cdk.config.schema import schema_text  # noqa: PLC0415 - only where it is not there

        texts[root / SCHEMA] = schema_text()
    write_all(texts)


def write_all(texts: Mapping[Path, str]) -> None:
    """Write files that do not exist yet, with their folders: all of them or none, even if it is interrupted."""
    made: list[Path] = []
    try:
        for path, text in texts.items():
            for folder in reversed((path.parent, *path.parent.parents)):
                if not folder.exists():
                    folder.mkdir()
                    made.append(folder)
            with path.open("x", encoding="utf-8", newline="\n") as stream:
                made.append(path)
                stream.write(text)
    except BaseException:
        for each in reversed(made):
            with suppress(OSError):
                each.rmdir() if each.is_dir() else each.unlink()
        raise


def checked_text(answers: Answers, root: Path, *, text: str | None = None, name_is: str = "NAME") -> str:
    """Return the text of the file for a project; raises ScaffoldError if the file would be refused.

    ``text`` is the text. Default: ``environment_text``, with CIDR blocks that no other environment has. ``name_is``
    is the argument or option that contains the name.
    """
    path = _path(answers, root, name_is)
    _check_workers(answers)
    text = environment_text(answers, chosen=_free_blocks(answers, root)) if text is None else text
    try:
        load_environment(path, text=text)
    except EnvironmentFileError as error:
        errors = [each for each in error.findings if each.severity is Severity.ERROR]
        raise ScaffoldError("\n".join(_by_option(each, name_is) for each in _of_answers(errors, answers))) from error
    return text


@dataclass(frozen=True, kw_only=True)
class _Follows:
    """Places in the file whose values follow from the answer for another place; only that answer is reported.

    ``without_zones``: only if no zones are given, so that they are those of the Region.
    """

    place: re.Pattern[str]
    answer: re.Pattern[str]
    without_zones: bool = False

    def explains(self, path: str, refused: Sequence[str], answers: Answers) -> bool:
        """Return whether a place is only refused because an answer in ``refused`` is wrong."""
        holds = not (self.without_zones and answers.zones) and self.place.fullmatch(path) is not None
        return holds and any(self.answer.fullmatch(each) for each in refused)


_FOLLOWING = (
    _Follows(place=re.compile(r"network\..*"), answer=re.compile(r"region"), without_zones=True),
    _Follows(place=re.compile(r".*\.availability_zone_id"), answer=re.compile(r"network\.availability_zones\..*")),
    _Follows(
        place=re.compile(r"storage\.lustre\[\d+\]\.claim\..*"),
        answer=re.compile(r"task_governance\.teams\[\d+\]\.name"),
    ),
    _Follows(
        place=re.compile(r"task_governance\.teams\[\d+\]\.quota\[\d+\]\.count"),
        answer=re.compile(r"hyperpod\.instance_groups\[\d+\]\.count"),
    ),
)


def _of_answers(errors: Sequence[Finding], answers: Answers) -> list[Finding]:
    """Return the findings without those that only follow from another refused answer."""
    refused = [each.path for each in errors]
    return [each for each in errors if not any(row.explains(each.path, refused, answers) for row in _FOLLOWING)]


_OPTIONS = (
    (re.compile(r"account"), "--account"),
    (re.compile(r"region"), "--region"),
    (re.compile(r"network\.availability_zones.*|.*\.availability_zone_id"), "--zone"),
    (re.compile(r".*\.instance_types?"), "--instance-type"),
    (re.compile(r"hyperpod\.instance_groups\[1\]\.count|task_governance\.teams\[0\]\.quota\[0\]\.count"), "--count"),
    (re.compile(r"(.*\.)?capacity"), "--capacity"),
    (re.compile(r"(.*\.)?training_plan_arn"), "--training-plan-arn"),
    (re.compile(r"eks\.admin_role_arns.*"), "--admin-role"),
    (re.compile(r"task_governance\.teams.*\.name"), "--team"),
)
"""Return the option for a place in the file, or for a key in a message about another place."""


def _deciding(place: str) -> str | None:
    return next((option for places, option in _OPTIONS if places.fullmatch(place)), None)


def _by_option(error: Finding, name_is: str) -> str:
    """Return the problem of a place in the file by its option, because there is no file to edit yet."""
    option = name_is if error.path == "name" else _deciding(error.path)
    if option is None:
        return f"{error.path}: {error.message}"

    def said(advice: Advice) -> str:
        key = "" if isinstance(advice, OnlyInFiles | Example | Truth) else advice.key
        decides = option if key == THE_KEY or error.path.endswith(key) else _deciding(key)
        return by_option(decides)(advice) if decides else str(advice)

    message = in_words_of(error.message, said)
    return f"{option}: {message}" if option == name_is else f"{option} ({error.path}): {message}"


def answer_problem(
    field: str, answer: str, *, section: type[Section] | None = None, option: str | None = None
) -> str | None:
    """Return why the file would refuse the answer for one of its fields, or None if it is valid.

    The field is in ``section``. Default: in ``eks``, or at the top level. ``option`` is the option that contained the
    answer. Default: it was typed.
    """
    section = section or (Eks if field in Eks.model_fields else Environment)
    found = arguments.field_problems(section, field, [answer] if field.endswith("s") else answer)
    words = by_option(option) if option else _as_an_answer
    return in_words_of(found[0].message, words) if found else None


def _as_an_answer(advice: Advice) -> str:
    match advice:
        case Setting():
            return f"write {advice.value}"
        case Correction():
            return f"an example is {advice.example}"
        case _:
            return by_option("it")(advice)


def _check_workers(answers: Answers) -> None:
    """Refuse options for workers without an instance type, because they would be ignored silently."""
    said = {
        "--count": answers.count != Answers.count,
        "--capacity": answers.capacity is not None,
        "--training-plan-arn": answers.training_plan_arn is not None,
    }
    if answers.instance_type is None and any(said.values()):
        options = joined(option for option, is_there in said.items() if is_there)
        raise ScaffoldError(
            f"{options}: only for a worker group, which is not requested; add --instance-type, such as ml.p5.48xlarge"
        )


def _path(answers: Answers, root: Path, name_is: str = "NAME") -> Path:
    path = root / FOLDER / f"{answers.name}{SUFFIX}"
    if path.parent != root / FOLDER:
        raise ScaffoldError(f"{name_is}: must be a plain name such as prod, got {answers.name!r}")
    return path


def environment_text(answers: Answers, *, chosen: tuple[str, Mapping[str, str]] | None = None) -> str:
    """Return the text of the file, with the same comments as in the examples.

    ``chosen``: the VPC's CIDR block and the node CIDR block of each zone. Default: those that follow from the zones.
    """
    zones = answers.zones or default_zones(answers.region, answers.instance_type)
    # the first two zones are for the control plane, which cannot be in a Local Zone
    listed = sorted(zones, key=regions.is_local_zone)
    system = next((zone for zone in reversed(listed) if not regions.is_local_zone(zone)), "")
    lines = [
        f"# yaml-language-server: $schema=../{SCHEMA.as_posix()}",
        "",
        f"name: {scalar(answers.name)}",
        f"account: {quoted(answers.account)} # in quotes, for without them YAML reads a number",
        f"region: {scalar(answers.region)}",
        "",
        "network:",
        *_network(listed, chosen),
        "",
        "eks:",
        f'  kubernetes_version: "{kubernetes.hyperpod_versions()[-1]}"',
        *_administrators(answers),
        "",
        "hyperpod:",
        "  instance_groups:",
        "    - name: system # add-ons and controllers live here",
        f"      instance_type: {SYSTEM_TYPE}",
        f"      count: {_SYSTEM_COUNT}",
        f"      availability_zone_id: {scalar(system)}",
        *_group(answers, zones),
        *_storage(answers, zones),
        *_governance(answers),
    ]
    return "\n".join(lines) + "\n"


def home_of_plan(arn: str | None) -> tuple[str, str] | None:
    """Return the account and the Region in a training plan's ARN; None if there is no ARN or it is invalid."""
    if arn is None or not hyperpod.TRAINING_PLAN_ARN.matches(arn):
        return None
    of = arn_parts(arn)
    return of.account, of.region


def _network(zones: Sequence[str], chosen: tuple[str, Mapping[str, str]] | None) -> list[str]:
    if chosen is None:
        return [
            "  availability_zones: # IDs, never names; the node blocks follow from them",
            *(f"    {scalar(zone)}:" for zone in zones),
        ]
    vpc_cidr, node_cidrs = chosen
    return [
        f"  vpc_cidr: {vpc_cidr} # like the node blocks, of no other environment here",
        "  availability_zones: # IDs, never names",
        *(f"    {scalar(zone)}: {{ node_cidr: {node_cidrs[zone]} }}" for zone in zones),
    ]


def _free_blocks(answers: Answers, root: Path) -> tuple[str, dict[str, str]] | None:
    """Return CIDR blocks that no other environment here has; None if there is no other one or no free block."""
    taken: list[IPv4Network] = []
    for file in environment_files(root):
        try:
            taken += load_environment(file, with_record=False).environment.network.blocks().values()
        except EnvironmentFileError:
            # validate reports its errors; its CIDR blocks are uncertain
            continue
    zones = tuple(dict.fromkeys(answers.zones or default_zones(answers.region, answers.instance_type)))
    return free_blocks(taken, vpc=DEFAULT_VPC_CIDR, zones=zones) if taken else None


def default_zones(region: str, instance_type: str | None = None) -> tuple[str, ...]:
    """Return the first two zones of a Region that support the EKS control plane, after the zone of UltraServers.

    The workers are in the first zone.
    """
    refused = regions.eks_control_plane_unsupported_az_ids()
    known = hyperpod.ultraserver(instance_type) if instance_type else None
    own = (known.zone_id,) if known and known.region == region else ()
    return (*own, *[zone for zone in regions.known_az_ids(region) if zone not in refused][:2])


def _administrators(answers: Answers) -> list[str]:
    if not answers.admin_role_arns:
        return []
    roles = [f"    - {scalar(arn)}" for arn in answers.admin_role_arns]
    return ["  admin_role_arns: # EKS admits only these roles, not even the one that deploys", *roles]


def _group(answers: Answers, zones: tuple[str, ...]) -> list[str]:
    if answers.instance_type is None:
        return []
    row = instance_types.get(answers.instance_type)
    lines = [
        "",
        "    - name: workers",
        f"      instance_type: {scalar(answers.instance_type)}",
        f"      count: {answers.count}",
        f"      availability_zone_id: {scalar(zones[0] if zones else '')}",
    ]
    if answers.capacity is not None:
        lines.append(f"      capacity: {scalar(answers.capacity)}")
    if answers.training_plan_arn is not None:
        lines.append(f"      training_plan_arn: {scalar(answers.training_plan_arn)}")
    if row is not None and row.deep_health_check:
        lines.append(
            "      deep_health_checks: [instance_stress, instance_connectivity] # about two hours for a new node"
        )
    return lines


def _storage(answers: Answers, zones: tuple[str, ...]) -> list[str]:
    if not answers.lustre:
        return []
    lines = [
        "",
        "storage:",
        "  lustre:",
        "    - name: scratch",
        f"      availability_zone_id: {scalar(zones[0] if zones else '')} # the zone of the nodes that use it",
        f"      capacity_gib: {_LUSTRE_GIB}",
    ]
    if answers.team is not None:
        lines += ["      claim:", f"        namespaces: [{scalar(governance.namespace(answers.team))}]"]
    return lines


def _governance(answers: Answers) -> list[str]:
    if answers.team is None:
        return []
    quota_type, quota_count = (
        answers.instance_type or SYSTEM_TYPE,
        answers.count if answers.instance_type else _SYSTEM_COUNT,
    )
    return [
        "",
        "task_governance:",
        "  teams:",
        f"    - name: {scalar(answers.team)}",
        "      quota:",
        f"        - {{ instance_type: {scalar(quota_type)}, count: {quota_count} }}",
    ]


def scalar(text: str) -> str:
    """Return a text as a YAML scalar, in quotes if YAML would read it as another value."""
    plain = text.replace("-", "").replace("_", "").replace(".", "").replace("/", "").replace(":", "")
    is_plain = plain.isascii() and plain.isalnum() and plain[0].isalpha() and not text.endswith(":")
    return text if is_plain and text.lower() not in _YAML_WORDS else quoted(text)


_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def quoted(text: str) -> str:
    """Return a text in double quotes, in which YAML can contain every character."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in escaped) + '"'
