"""Reads what is deployed: the stacks of one environment in a cloud assembly, or one CloudFormation template."""

from __future__ import annotations

import json
import math
import operator
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.file_reading import NoFileError, TooLargeError, read_bytes, resolved
from hyperpod_cdk.templates import deployment
from hyperpod_cdk.templates.assets import MOST_BYTES
from hyperpod_cdk.templates.loops import LOOP, TooManyError, expanded
from hyperpod_cdk.templates.values import alone, export_name, holds, imported
from hyperpod_cdk.yaml_reading import ShallowLoader, values_with_aliases

STACK = "aws:cloudformation:stack"
NESTED = "cdk:cloud-assembly"

MOST_TEMPLATE_BYTES = 2**20
MOST_DEPTH = 200
"""A template nested deeper is refused: CloudFormation accepts far less, and reading it takes time."""

MOST_RESOURCES = 500
"""CloudFormation's limits for one template (CloudFormation user guide, quotas: 1 MB, 500 resources)."""

MOST_VALUES = 1_000_000
"""No template can have this number of values, but YAML's aliases can represent them in a few lines."""

_LONGEST_KEY = 200

_MOST_DIGITS = 308
_NO_NUMBER = "not a template: a number in it is infinite, none, or of too many digits"
_TEXT = "tag:yaml.org,2002:str"
_TAGS_OF_PLAIN_KEYS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int", "null"))
_POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")
_NEEDED = {STACK: "templateFile", NESTED: "directoryName"}


class AssemblyError(Exception):
    """The input cannot be reviewed; the text is one line that states what it is and what is expected."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of a template; ``stack`` is the name of its stack.

    ``path`` is the construct's if the assembly, but not the template, has it.
    """

    stack: str
    logical_id: str
    type: str
    body: Mapping[str, Any] = field(repr=False)
    path: str = field(default="", repr=False)

    @property
    def properties(self) -> Mapping[str, Any]:
        """The properties as the template states them, references unresolved."""
        properties = self.body.get("Properties")
        return properties if isinstance(properties, dict) else {}

    @property
    def construct_path(self) -> str:
        """The path of the construct that created it (``prod/hyperpod/Cluster/Resource``), empty without metadata."""
        metadata = self.body.get("Metadata")
        path = metadata.get("aws:cdk:path") if isinstance(metadata, dict) else None
        return path if isinstance(path, str) else self.path

    @property
    def name(self) -> str:
        """Its readable name: the construct path without the environment and ``Resource``, else the logical ID."""
        steps = self.construct_path.split("/")[2:]
        if steps and steps[-1] in ("Resource", "Default"):
            steps.pop()
        return "/".join(steps) or self.logical_id

    @property
    def deletion_policy(self) -> str:
        """What happens to it when it is removed from its stack, by its DeletionPolicy or by CloudFormation's
        default."""
        stated = self.body.get("DeletionPolicy")
        if isinstance(stated, str):
            return stated
        # CloudFormation template reference, DeletionPolicy attribute: the default for these is Snapshot
        is_snapshot = self.type == "AWS::RDS::DBCluster" or (
            self.type == "AWS::RDS::DBInstance" and "DBClusterIdentifier" not in self.properties
        )
        return "Snapshot" if is_snapshot and stated is None else "Delete"

    @property
    def is_kept_on_delete(self) -> bool:
        """Whether it stays in the account when it is removed from its stack."""
        return self.deletion_policy in ("Retain", "RetainExceptOnCreate")

    @property
    def is_kept_on_replacement(self) -> bool:
        """Whether the old one stays in the account when CloudFormation replaces it."""
        return self.body.get("UpdateReplacePolicy") == "Retain"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One stack: ``template`` as written, ``dependencies`` the names of the stacks that are deployed before it.

    ``account`` and ``region`` are empty if the assembly leaves them to the deployment. ``paths`` are the construct
    paths by logical ID, if the template's own metadata has none. ``settings`` are what 'cdk deploy' uses in addition to
    the template (``templates.deployment``); a deployed stack shows some of them, and then ``settings_are_whole`` is
    False. ``shown`` is the name by which the CDK CLI selects it, empty if it is in no assembly. ``exported`` are the
    names of exports by output, if CloudFormation has returned them. ``is_named`` is False for a template alone, whose
    stack can have any name. ``unlike`` are the meanings of conditions that the other side of a comparison defines
    differently (``difference.by_meaning``).
    """

    name: str
    template: Mapping[str, Any] = field(repr=False)
    account: str = ""
    region: str = ""
    dependencies: tuple[str, ...] = ()
    termination_protection: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None
    paths: Mapping[str, str] = field(default_factory=dict, repr=False)
    settings: Mapping[str, deployment.Setting] = field(default_factory=dict, repr=False)
    settings_are_whole: bool = True
    told: frozenset[str] = frozenset()
    shown: str = ""
    exported: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_named: bool = True
    unlike: Mapping[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def held(self) -> dict[str, bool | None]:
        """The values of its conditions by name, as far as they were asked for (``values.holds``)."""
        return {}

    @cached_property
    def meant(self) -> dict[str, str]:
        """The meanings of its conditions by name, as far as they were asked for (``values.meaning``)."""
        return {}

    @cached_property
    def export_names(self) -> dict[str, str | None]:
        """The names of its exports by output, None if only the deployment knows one.

        An output whose condition is false exports nothing; one whose condition only the deployment knows is included.
        """
        return {
            key: self.exported.get(key) or export_name(self, export.get("Name"))
            for key, output in self.outputs.items()
            if isinstance(output, dict)
            and isinstance(export := output.get("Export"), dict)
            and holds(self, output.get("Condition")) is not False
        }

    @cached_property
    def imported(self) -> tuple[str | None, ...]:
        """The names of the exports that it imports, None for each that only the deployment knows."""
        return imported(self)

    @cached_property
    def logical_ids(self) -> frozenset[str]:
        """The logical IDs of the resources, by which a function distinguishes references to resources and to
        parameters."""
        return frozenset(key for key, body in self._section("Resources").items() if isinstance(body, dict))

    @cached_property
    def resources(self) -> dict[str, Resource]:
        """The resources by logical id, in the template's order."""
        return {
            logical_id: Resource(
                stack=self.name,
                logical_id=logical_id,
                type=str(body.get("Type", "")),
                body=self._with_policies(body),
                path=self.paths.get(logical_id, ""),
            )
            for logical_id, body in self._section("Resources").items()
            if isinstance(body, dict)
        }

    def _with_policies(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a resource with the policies that its functions name, as AWS::LanguageExtensions allows.

        CloudFormation user guide, "AWS::LanguageExtensions transform", DeletionPolicy and UpdateReplacePolicy.
        """
        told = {name: alone(self, body[name]) for name in _POLICIES if isinstance(body.get(name), dict)}
        told = {name: each for name, each in told.items() if isinstance(each, str)}
        return {**body, **told} if told else body

    @property
    def parameters(self) -> dict[str, Any]:
        """The template's parameters."""
        return self._section("Parameters")

    @property
    def conditions(self) -> dict[str, Any]:
        """The template's conditions."""
        return self._section("Conditions")

    @property
    def mappings(self) -> dict[str, Any]:
        """The template's mappings."""
        return self._section("Mappings")

    @property
    def outputs(self) -> dict[str, Any]:
        """The template's outputs."""
        return self._section("Outputs")

    def _section(self, name: str) -> dict[str, Any]:
        section = self.template.get(name)
        return section if isinstance(section, dict) else {}


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """The stacks of one environment in the order of their deployment; ``environment`` is empty for a single template.

    ``called`` is the environment's argument in commands of messages, if its file is known.
    """

    environment: str
    stacks: tuple[Stack, ...]
    folder: Path | None = None
    called: str = ""

    @property
    def word(self) -> str:
        """The environment's argument in commands of messages: its file's name or path, else its name."""
        return self.called or self.environment

    @cached_property
    def by_name(self) -> dict[str, Stack]:
        """The stacks by name."""
        return {stack.name: stack for stack in self.stacks}

    @cached_property
    def exports(self) -> dict[str, tuple[Stack, Any]]:
        """What other stacks may import: the exporting stack and the value, by the export's name."""
        return {
            name: (stack, stack.outputs[key].get("Value"))
            for stack in self.stacks
            for key, name in stack.export_names.items()
            if name is not None
        }

    @cached_property
    def read(self) -> dict[object, Any]:
        """Results that are computed once and used often, by their type; they are not changed."""
        return {}

    def is_made_of(self, stacks: Sequence[Stack]) -> bool:
        """Whether these very stacks are its own, in this order: then its stored results are valid for them."""
        return len(self.stacks) == len(stacks) and all(map(operator.is_, self.stacks, stacks))

    @property
    def region(self) -> str:
        """The Region of its stacks, empty if no stack states one."""
        return next((stack.region for stack in self.stacks if stack.region), "")

    @property
    def account(self) -> str:
        """The account of its stacks, empty if no stack states one."""
        return next((stack.account for stack in self.stacks if stack.account), "")

    def resources(self) -> Iterator[Resource]:
        """Yield every resource of every stack."""
        for stack in self.stacks:
            yield from stack.resources.values()

    def of_type(self, *types: str) -> Iterator[Resource]:
        """Yield every resource of these types."""
        return (resource for resource in self.resources() if resource.type in types)

    def find(self, stack: str, logical_id: str) -> Resource | None:
        """Return one resource, None if it does not exist."""
        found = self.by_name.get(stack)
        return found.resources.get(logical_id) if found else None


EMPTY = Assembly(environment="", stacks=())
"""The state before the first deployment."""


def read_assembly(folder: Path, environment: str | None = None) -> Assembly:
    """Read one environment from a cloud assembly (``cdk.out``): the stage named ``environment``, or the only one.

    An app without stages is read as one environment without a name. Raises AssemblyError.
    """
    if not folder.is_dir():
        raise AssemblyError(f"{folder}: no such folder; give a cloud assembly as 'cdk synth --output' writes it")
    artifacts = _artifacts(folder)
    stages = [
        (str(properties.get("displayName") or properties["directoryName"]), properties["directoryName"])
        for artifact in artifacts.values()
        if artifact.get("type") == NESTED and isinstance(properties := artifact.get("properties"), dict)
    ]
    nested = {name: _inside(folder, inner) for name, inner in stages}
    if len(nested) < len(stages):
        raise AssemblyError(f"{folder}: contains two environments with one name; 'cdk deploy' would deploy both")
    if not nested:
        stacks = _stacks(folder, artifacts)
        if not stacks:
            raise AssemblyError(f"{folder}: the cloud assembly contains no stack")
        if environment and {stack.name for stack in stacks} and not _belongs(stacks, environment):
            names = ", ".join(stack.name for stack in stacks)
            raise AssemblyError(f"{folder}: contains no environment {environment!r}; there are the stacks {names}")
        return Assembly(environment=environment or "", stacks=stacks, folder=folder)
    if environment is None and len(nested) > 1:
        raise AssemblyError(f"{folder}: contains {len(nested)} environments ({', '.join(sorted(nested))}); name one")
    name = environment or next(iter(nested))
    if name not in nested:
        there = f"there {plural(len(nested), 'is', 'are')} {', '.join(sorted(nested))}"
        raise AssemblyError(f"{folder}: contains no environment {name!r}; {there}")
    inner = nested[name]
    _refuse_unread(folder, name, inner)
    return Assembly(environment=name, stacks=_stacks(inner, _artifacts(inner), top=folder), folder=folder)


def word_of(base: Assembly, head: Assembly) -> str:
    """Return the environment's argument in commands of messages; ENV if only templates are known."""
    return head.word or base.word or "ENV"


def placed(name: str, account: str, region: str) -> str:
    """Return what distinguishes a stack from others with its name: CloudFormation identifies it by account, Region and
    name."""
    return f"{name} in {account or 'its account'} {region}".rstrip()


def read_template(file: Path, *, region: str = "", account: str = "") -> Assembly:
    """Read one CloudFormation template, JSON or YAML with its short forms (``!Ref``). Raises AssemblyError."""
    template = parse_template(_template_text(file), str(file))
    name = re.sub(r"(\.template)?\.(json|ya?ml|template)$", "", file.name)
    stack = Stack(name=name, template=template, region=region, account=account, file=file, is_named=False)
    return Assembly(environment="", stacks=(stack,))


def parse_template(text: str, where: str) -> dict[str, Any]:
    """Parse a template's text; ``where`` is its name in messages. Raises AssemblyError."""
    is_json = text.lstrip().startswith("{")
    try:
        document = _json_of(text) if is_json else yaml.load(text, Loader=_TemplateLoader)  # noqa: S506 - a SafeLoader
    except _NumberError:
        raise AssemblyError(f"{where}: {_NO_NUMBER}") from None
    except _TwiceError as twice:
        raise AssemblyError(f"{where}{f':{twice.line}' if twice.line else ''}: {twice}") from None
    except json.JSONDecodeError as error:
        raise AssemblyError(f"{where}:{error.lineno}: not JSON: {error.msg}; is the file half-written?") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
        raise AssemblyError(f"{where}{line}: not YAML: {problem}") from None
    except (AttributeError, TypeError, ValueError):
        # PyYAML's errors for an explicit tag, such as !!float, before another kind of value
        raise AssemblyError(f"{where}: not YAML: a value does not match its tag") from None
    except RecursionError:
        raise AssemblyError(f"{where}: nested too deeply for a template") from None
    if not is_json:
        _refuse_endless(document, where)
    elif _is_deep(document):
        raise AssemblyError(f"{where}: nested too deeply for a template")
    # an escape can produce a character that no text may contain
    if isinstance(document, dict) and (not is_json or LOOP in text or "\\u" in text):
        document = with_loops(document, where)
    _refuse_no_template(document, where)
    return dict(document)


def _json_of(text: str) -> Any:
    """Parse JSON, which has no aliases, and check every number as it is read."""
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_fraction, parse_int=_whole)


class _NumberError(Exception):
    """A number that cannot be compared with another one: JSON's are decimal, and no property needs 308 digits."""


def _no_number(text: str) -> float:
    raise _NumberError(text)


def _fraction(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else _no_number(text)


def _whole(text: str) -> int:
    return int(text) if len(text) <= _MOST_DIGITS else int(_no_number(text))


def _is_deep(document: Any) -> bool:
    """Whether values are nested deeper than any reader needs."""
    level: list[Any] = [document]
    for _ in range(MOST_DEPTH):
        level = [
            each
            for item in level
            for each in (item.values() if isinstance(item, dict) else item)
            if isinstance(each, (dict, list))
        ]
        if not level:
            return False
    return True


def _refuse_no_template(document: Any, where: str) -> None:
    resources = document.get("Resources") if isinstance(document, dict) else None
    none = f"{where}: not a CloudFormation template"
    if not isinstance(resources, dict) or not resources:
        raise AssemblyError(f"{none}: it has no Resources")
    if len(resources) > MOST_RESOURCES:
        raise AssemblyError(f"{where}: has {len(resources)} resources; CloudFormation accepts at most {MOST_RESOURCES}")
    for logical_id, body in resources.items():
        if not isinstance(body, dict) or not isinstance(body.get("Type"), str):
            raise AssemblyError(f"{none}: Resources.{logical_id} has no Type")
        if not isinstance(body.get("Properties"), dict | None):
            raise AssemblyError(f"{none}: Resources.{logical_id}.Properties is not an object")
        if not isinstance(body.get("Condition"), str | None):
            # YAML reads words such as Yes as booleans, and which condition is meant is lost
            raise AssemblyError(f"{none}: Resources.{logical_id}.Condition is not a text; quote the name")
    for section in _SECTIONS:
        if not isinstance(document.get(section), dict | None):
            raise AssemblyError(f"{none}: {section} is not an object")


def with_loops(template: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a template with its ``Fn::ForEach`` expanded (``templates.loops``). Raises AssemblyError."""
    try:
        return expanded(template, most=MOST_VALUES)
    except TooManyError as error:
        raise AssemblyError(f"{where}: {error}; CloudFormation accepts no template with so many") from None
    except RecursionError:
        raise AssemblyError(f"{where}: nested too deeply for a template") from None


def _inside(folder: Path, name: object) -> Path:
    """Return a file that a manifest names; one outside of its folder could be any file of the user's."""
    file = folder / str(name)
    if not resolved(file).is_relative_to(resolved(folder)):
        raise AssemblyError(f"{folder / 'manifest.json'}: names a file outside of its folder: {name}")
    return file


def _artifacts(folder: Path) -> dict[str, dict[str, Any]]:
    file = folder / "manifest.json"
    if not file.is_file():
        raise AssemblyError(f"{folder}: not a cloud assembly: it has no manifest.json; write one with 'cdk synth'")
    artifacts = _json(file).get("artifacts")
    if not isinstance(artifacts, dict):
        raise AssemblyError(f"{file}: not the manifest of a cloud assembly: it has no artifacts")
    for name, artifact in artifacts.items():
        properties = artifact.get("properties", {}) if isinstance(artifact, dict) else None
        needed = isinstance(artifact, dict) and _NEEDED.get(str(artifact.get("type")))
        if not isinstance(properties, dict) or (needed and not isinstance(properties.get(needed), str)):
            raise AssemblyError(f"{file}: not the manifest of a cloud assembly: artifact {name} is incomplete")
    return dict(artifacts)


_SECTIONS = ("Parameters", "Mappings", "Conditions", "Outputs", "Metadata", "Rules")


class _TwiceError(Exception):
    """A key occurs twice: readers of the first and of the last one would deploy different things."""

    def __init__(self, key: object, *, line: int | None = None) -> None:
        super().__init__(
            f"has the key {str(key)[:_LONGEST_KEY]!r} twice in one object; it is uncertain which one counts"
        )
        self.line = line


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        key = next(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
        raise _TwiceError(key)
    return found


def _json(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(_text(file), object_pairs_hook=_once)
    except _TwiceError as twice:
        raise AssemblyError(f"{file}: {twice}") from None
    except json.JSONDecodeError as error:
        raise AssemblyError(f"{file}:{error.lineno}: not JSON: {error.msg}; is the file half-written?") from None
    except RecursionError:
        raise AssemblyError(f"{file}: nested too deeply for a manifest") from None
    if not isinstance(document, dict):
        raise AssemblyError(f"{file}: not a JSON object")
    return document


def _refuse_unread(top: Path, environment: str, read: Path) -> None:
    """Refuse stacks elsewhere in the assembly that 'cdk deploy "ENV/*"' deploys together with those that are read.

    It selects stacks by their display names, and then, by their display names again, those that share one with any
    dependency of a selected stack, of whatever type that is (aws-cdk 2.1148, ``includeUpstreamStacks``).
    """
    elsewhere: set[str] = set()
    pending, seen = [top], set[Path]()
    while pending:
        folder = pending.pop()
        if resolved(folder) in seen:
            continue
        seen.add(resolved(folder))
        for key, artifact in _artifacts(folder).items():
            if artifact.get("type") == NESTED:
                pending.append(_inside(folder, artifact["properties"]["directoryName"]))
            if artifact.get("type") != STACK or resolved(folder) == resolved(read):
                continue
            shown = _shown(key, artifact)
            elsewhere |= {shown, key}
            if shown.startswith(f"{environment}/"):
                said = f"{shown} would be deployed with {environment}, and is not one of its stacks"
                raise AssemblyError(f"{folder / 'manifest.json'}: {said}")
    _refuse_leaving(read, environment, elsewhere)


def _refuse_leaving(read: Path, environment: str, elsewhere: set[str]) -> None:
    artifacts, where = _artifacts(read), read / "manifest.json"
    for key, artifact in artifacts.items():
        for each in _listed(artifact.get("dependencies")):
            needed = artifacts.get(each) if isinstance(each, str) else None
            if needed is None:
                raise AssemblyError(f"{where}: {key} depends on {each!r}, which is not one of the artifacts next to it")
            shown = _shown(each, needed)
            if elsewhere & {shown, each}:
                said = f"{shown} would be deployed with {environment} because {key} depends on {each}"
                raise AssemblyError(f"{where}: {said}, and is not one of its stacks")
            if needed.get("type") != STACK and needed.get("displayName") is not None:
                raise AssemblyError(
                    f"{where}: {key} depends on {each}, which is shown as {shown} and is not a stack: 'cdk deploy' "
                    "confuses it with one of that name; omit its displayName"
                )
    stacks = {key: each for key, each in artifacts.items() if each.get("type") == STACK}
    names = Counter(_shown(key, each) for key, each in stacks.items())
    if twice := [name for name, number in names.items() if number > 1]:
        raise AssemblyError(f"{where}: two stacks are shown as {twice[0]}; 'cdk deploy' confuses them")
    for key, each in stacks.items():
        if each.get("displayName") is not None and not _shown(key, each).startswith(f"{environment}/"):
            said = f"{_shown(key, each)} is a stack of {environment}, and would not be deployed with it"
            raise AssemblyError(f"{where}: {said}; its displayName must begin with {environment}/")


def _shown(key: str, artifact: Mapping[str, Any]) -> str:
    """Return the name by which the CDK CLI selects an artifact: its display name, else its own."""
    shown = artifact.get("displayName")
    return key if shown is None else str(shown)


def _stacks(folder: Path, artifacts: Mapping[str, dict[str, Any]], *, top: Path | None = None) -> tuple[Stack, ...]:
    of_stacks = {key: each for key, each in artifacts.items() if each.get("type") == STACK}
    properties = {key: each.get("properties") or {} for key, each in of_stacks.items()}
    names = {key: str(properties[key].get("stackName") or key) for key in of_stacks}
    targets = {key: _target(str(each.get("environment", ""))) for key, each in of_stacks.items()}
    stacks = []
    places = Counter((names[key], str(each.get("environment", ""))) for key, each in of_stacks.items())
    if twice := [name for (name, _), number in places.items() if number > 1]:
        raise AssemblyError(f"{folder / 'manifest.json'}: contains the stack {twice[0]} twice; one would not be read")
    several = {name for name, number in Counter(names.values()).items() if number > 1}
    # a name in several Regions or accounts means several stacks
    names = {key: placed(name, *targets[key]) if name in several else name for key, name in names.items()}
    needed = {
        key: [each for each in _listed(stack.get("dependencies")) if each in names] for key, stack in of_stacks.items()
    }
    for key in _ordered(needed):
        file = _inside(folder, properties[key].get("templateFile", ""))
        template = parse_template(_template_text(file), str(file))
        account, region = targets[key]
        try:
            settings = deployment.settings(folder, top or folder, artifacts, key, template)
        except deployment.DeploymentError as error:
            raise AssemblyError(str(error)) from None
        stacks.append(
            Stack(
                name=names[key],
                template=template,
                account=account,
                region=region,
                dependencies=tuple(names[each] for each in needed[key]),
                termination_protection=bool(properties[key].get("terminationProtection")),
                tags={str(k): str(v) for k, v in _mapped(properties[key].get("tags")).items()},
                file=file,
                paths=_construct_paths(folder, of_stacks[key], template),
                settings=settings,
                shown=_shown(key, of_stacks[key]),
            )
        )
    return tuple(stacks)


def _construct_paths(folder: Path, artifact: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, str]:
    """Return the construct paths of a template that was synthesized without them, from the stack's metadata."""
    if any("aws:cdk:path" in _mapped(body.get("Metadata")) for body in template["Resources"].values()):
        return {}
    metadata = artifact.get("metadata")
    file = _inside(folder, artifact.get("additionalMetadataFile") or "")
    if not isinstance(metadata, dict):
        metadata = _json(file) if file.is_file() else {}
    return {
        str(entry["data"]): path.lstrip("/")
        for path, entries in metadata.items()
        for entry in _listed(entries)
        if isinstance(entry, dict) and entry.get("type") == "aws:cdk:logicalId" and "data" in entry
    }


def _template_text(file: Path) -> str:
    """Read a template; one that CloudFormation would not accept is refused before it takes time."""
    try:
        size = file.stat().st_size if file.is_file() else 0
    except OSError:
        size = 0
    if size > MOST_TEMPLATE_BYTES:
        raise AssemblyError(
            f"{file}: has {size:,} bytes; CloudFormation accepts at most {MOST_TEMPLATE_BYTES:,} (1 MB)"
        )
    return _text(file)


def _text(file: Path) -> str:
    try:
        raw = read_bytes(file, most=MOST_BYTES)
    except (IsADirectoryError, NoFileError):
        raise AssemblyError(f"{file}: not a file") from None
    except TooLargeError:
        raise AssemblyError(f"{file}: larger than {MOST_BYTES // 2**20} MiB, which no template is") from None
    except OSError as error:
        raise AssemblyError(f"{file}: cannot be read: {error.strerror or error}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise AssemblyError(f"{file}:{line}: not text in UTF-8: byte 0x{raw[error.start]:02x}") from None


def _refuse_endless(document: object, where: str) -> None:
    """Refuse YAML aliases that are endless, or larger than any template when they are expanded."""
    try:
        total = values_with_aliases(document)
    except RecursionError:
        raise AssemblyError(f"{where}: nested too deeply for a template") from None
    if total is None:
        raise AssemblyError(f"{where}: not a template: an alias is inside of the value that it refers to")
    if total > MOST_VALUES:
        raise AssemblyError(f"{where}: not a template: its aliases represent more than {MOST_VALUES:,} values")
    if not _is_finite(document):
        raise AssemblyError(f"{where}: {_NO_NUMBER}")


def _is_finite(document: object) -> bool:
    """Whether every number can be compared with another one: JSON's are decimal, and no property needs 308 digits."""
    seen: set[int] = set()
    pending = [document]
    while pending:
        item = pending.pop()
        if isinstance(item, dict | list):
            if id(item) not in seen:
                seen.add(id(item))
                pending += item.values() if isinstance(item, dict) else item
        elif isinstance(item, int | float):
            try:
                if not math.isfinite(item):
                    return False
            except OverflowError:
                return False
    return True


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapped(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _ordered(dependencies: Mapping[str, list[str]]) -> list[str]:
    ordered: list[str] = []
    pending = dict(dependencies)
    while pending:
        ready = [key for key, needed in pending.items() if all(each in ordered for each in needed)]
        # the deployment refuses a cycle; the report still shows the stacks
        for key in ready or list(pending):
            ordered.append(key)
            del pending[key]
    return ordered


def _target(environment: str) -> tuple[str, str]:
    found = re.fullmatch(r"aws://([^/]*)/([^/]*)", environment)
    account, region = found.groups() if found else ("", "")
    return ("" if account.startswith("unknown") else account), ("" if region.startswith("unknown") else region)


def _belongs(stacks: tuple[Stack, ...], environment: str) -> bool:
    return all(stack.name.startswith(f"{environment}-") for stack in stacks)


class _TemplateLoader(ShallowLoader):
    """YAML with CloudFormation's short forms; dates stay text, every key is text and occurs once."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise RecursionError
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise _TwiceError(key.value, line=key.start_mark.line + 1)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else "")
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        for key, _ in node.value:
            if key.tag in _TAGS_OF_PLAIN_KEYS:
                key.tag = _TEXT
        return super().construct_mapping(node, deep)


def _short_form(loader: _TemplateLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = str(value).split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else None
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_TemplateLoader.add_multi_constructor("!", _short_form)
_TemplateLoader.yaml_constructors = {
    tag: constructor
    for tag, constructor in _TemplateLoader.yaml_constructors.items()
    # JSON cannot represent these values, and CloudFormation's templates are JSON
    if tag not in tuple(f"tag:yaml.org,2002:{each}" for each in ("binary", "set", "omap", "pairs", "timestamp"))
}
_TemplateLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
