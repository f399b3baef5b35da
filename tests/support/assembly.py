"""Reads synthesized environments and their dependency graph."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import networkx as nx
import pytest
import yaml

from hyperpod_cdk import HyperPodChart
from hyperpod_cdk.config import Environment, LoadedEnvironment, load_environment
from hyperpod_cdk.templates.values import is_function
from hyperpod_cdk_stacks.app import build, new_app
from hyperpod_cdk_stacks.environment import HyperPodEnvironment

PROJECT = Path(__file__).parents[2]
FOLDERS = ("environments", "examples")


def _files() -> dict[str, dict[str, Any]]:
    return {
        path.relative_to(PROJECT).as_posix(): yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        for folder in FOLDERS
        for path in sorted((PROJECT / folder).glob("*.yaml"))
    }


def _is_of_its_own(values: dict[str, Any]) -> bool:
    return not any("existing" in (values.get(section) or {}) for section in ("network", "eks"))


_FOUND = _files()
ENVIRONMENTS: dict[str, str] = {values["name"]: file for file, values in _FOUND.items()}
"""The file of every shipped environment, by name; new files are found automatically."""

OF_THEIR_OWN = tuple(values["name"] for values in _FOUND.values() if _is_of_its_own(values))
"""The environments that create their network and their EKS cluster."""

FEW = ("prod", "two-teams", "closed", "three-zones")
"""The environments of slow tests in `make test`; `make examples` runs them with all others."""


def few_and_others() -> list[Any]:
    """Return the names of ENVIRONMENTS as parameters of a test of which only FEW run in `make test`."""
    others = pytest.mark.examples
    return [name if name in FEW else pytest.param(name, marks=others) for name in ENVIRONMENTS]


Node = tuple[str, str]

_read: dict[tuple[Path, str], Synthesized] = {}


@dataclass(frozen=True)
class Synthesized:
    """One environment's templates with the dependency graph, including dependencies between stacks."""

    environment: Environment
    templates: dict[str, dict[str, Any]]
    stack_dependencies: dict[str, list[str]]
    template_files: dict[str, Path]
    termination_protection: dict[str, bool]

    @cached_property
    def graph(self) -> nx.DiGraph[Node]:
        """Edges lead from a resource to those that it waits for."""
        graph: nx.DiGraph[Node] = nx.DiGraph()
        for stack, template in self.templates.items():
            for logical_id, resource in template["Resources"].items():
                graph.add_node((stack, logical_id))
                for other in _references(resource) & template["Resources"].keys():
                    graph.add_edge((stack, logical_id), (stack, other))
        for stack, needed in self.stack_dependencies.items():
            for other in needed:
                graph.add_edges_from(
                    ((stack, a), (other, b))
                    for a in self.templates[stack]["Resources"]
                    for b in self.templates[other]["Resources"]
                )
        return graph

    def of_type(self, *types: str) -> list[Node]:
        """Every resource of these types, in any stack."""
        return [
            (stack, logical_id)
            for stack, template in self.templates.items()
            for logical_id, resource in template["Resources"].items()
            if resource["Type"] in types
        ]

    def resource(self, node: Node) -> dict[str, Any]:
        """The resource behind a node of the graph."""
        found: dict[str, Any] = self.templates[node[0]]["Resources"][node[1]]
        return found

    def addon(self, name: str) -> Node:
        """The one EKS add-on of this name."""
        (found,) = [
            node for node in self.of_type("AWS::EKS::Addon") if self.resource(node)["Properties"]["AddonName"] == name
        ]
        return found

    def waits_for(self, later: Node, earlier: Node) -> bool:
        """Whether CloudFormation creates ``earlier`` first and deletes it last."""
        return bool(nx.has_path(self.graph, later, earlier))


def synthesized_once(folder: Path, key: str, loaded: LoadedEnvironment) -> Synthesized:
    """Return an environment with its templates checked, synthesized by the first worker of the session that asks.

    ``folder`` is the fixture ``assemblies``, which all workers share; one ``key`` must always mean one environment.
    The HyperPod chart is the placeholder, whatever lies in the developer's own folder.
    """
    target = folder / key
    if (target, key) not in _read:
        with _locked(folder / f"{key}.lock"):
            done = folder / f"{key}.done"
            if not done.exists():
                root = folder / "root"
                root.mkdir(exist_ok=True)
                app = new_app(outdir=target)
                build(app, [loaded], root=root)
                app.synth()
                done.touch()
        _read[target, key] = read_assembly(target, loaded.environment)
    return _read[target, key]


def shipped(folder: Path, name: str) -> Synthesized:
    """Return one of ENVIRONMENTS; ``folder`` as in ``synthesized_once``."""
    return synthesized_once(folder, name, load_environment(PROJECT / ENVIRONMENTS[name]))


def light_app(outdir: Path | None) -> cdk.App:
    """Return an app as ``new_app`` does that copies no assets, 57 MB for each environment: their hashes are the same.

    Not for assemblies that are reviewed or deployed: both read assets, and only those that lie in the assembly.
    """
    app = new_app(outdir=outdir)
    app.node.set_context("aws:cdk:disable-asset-staging", value=True)
    return app


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def synthesize_unchecked(
    environment: Environment, *, project: Path, outdir: Path | None = None, app: cdk.App | None = None
) -> Synthesized:
    """Synthesize one environment without the chart and without the checks of templates, which other tests make.

    Without ``app`` into a light one, whose assembly is neither reviewed nor deployed.
    """
    app = app or light_app(outdir)
    HyperPodEnvironment(
        app,
        environment.name,
        environment=environment,
        chart=HyperPodChart.placeholder(),
        lifecycle_scripts=project / "lifecycle_scripts",
    )
    app.synth()
    return read_assembly(Path(app.outdir), environment)


def read_assembly(assembly: Path, environment: Environment) -> Synthesized:
    """Read one environment's stacks out of a cloud assembly."""
    folder = assembly / f"assembly-{environment.name}"
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    stacks = {key: each for key, each in manifest.items() if each["type"] == "aws:cloudformation:stack"}
    names = {key: stack["properties"]["stackName"] for key, stack in stacks.items()}
    files = {names[key]: folder / stack["properties"]["templateFile"] for key, stack in stacks.items()}
    return Synthesized(
        environment=environment,
        templates={name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items()},
        stack_dependencies={
            names[key]: [names[each] for each in stack.get("dependencies", []) if each in names]
            for key, stack in stacks.items()
        },
        template_files=files,
        termination_protection={
            names[key]: bool(stack["properties"].get("terminationProtection")) for key, stack in stacks.items()
        },
    )


def _references(resource: dict[str, Any]) -> set[str]:
    depends_on = resource.get("DependsOn", [])
    found = set(depends_on if isinstance(depends_on, list) else [depends_on])
    pending: list[Any] = [resource.get("Properties", {})]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            if isinstance(value.get("Ref"), str):
                found.add(value["Ref"])
            attribute = value.get("Fn::GetAtt")
            if attribute is not None:
                found.add(attribute[0] if isinstance(attribute, list) else attribute.partition(".")[0])
            pending += value.values()
        elif isinstance(value, str):
            found |= {name.partition(".")[0] for name in re.findall(r"\$\{([^!}]+)\}", value)}
    return found


def by_mapping(value: Any, stated: dict[str, Any]) -> Any:
    """State each value below by a mapping, which ``stated`` gets."""
    if isinstance(value, list):
        return [by_mapping(each, stated) for each in value]
    if isinstance(value, dict):
        return value if is_function(value) else {key: by_mapping(each, stated) for key, each in value.items()}
    key = f"Value{len(stated)}"
    stated[key] = {"Is": value}
    return {"Fn::FindInMap": ["Stated", key, "Is"]}
