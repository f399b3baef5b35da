"""Creates the schemas in ``tests/workloads/crds`` from clones of their repositories; ``--check`` only compares.

    python scripts/refresh_crds.py aws/sagemaker-hyperpod-cli=../sagemaker-hyperpod-cli kubernetes-sigs/kueue=../kueue

``sources.json`` next to the schemas contains the file and commit of each; ``--head`` first updates it to the newest
commit of the clones. A clone can be bare.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "workloads" / "crds"
SOURCES = "sources.json"

Schema = dict[str, Any]

_DROPPED = (
    "default",
    "description",
    "example",
    "x-kubernetes-int-or-string",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    # rules in Kubernetes' own expression language: no library here evaluates them
    "x-kubernetes-validations",
)
_RANGES = {"int32": 2**31, "int64": 2**63}
_PLAIN = {"str": "string", "int": "integer", "bool": "boolean", "float": "number"}


def main(arguments: list[str] | None = None, *, folder: Path = FOLDER) -> int:
    """Write the schemas, or with ``--check`` compare them; returns 1 if one is stale or has no clone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", nargs="+", metavar="OWNER/NAME=FOLDER", help="a clone of a repository")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when a schema is stale")
    parser.add_argument("--head", action="store_true", help="use the newest commit of each clone")
    options = parser.parse_args(arguments)
    clones = {name: Path(path) for name, _, path in (clone.partition("=") for clone in options.clones)}
    sources: list[Schema] = json.loads((folder / SOURCES).read_text(encoding="utf-8"))
    missing = sorted({source["repository"] for source in sources} - set(clones))
    if missing:
        print(f"needs a clone of {', '.join(missing)}", file=sys.stderr)
        return 1
    wanted = {}
    for source in sources:
        clone = clones[source["repository"]]
        if options.head:
            source["commit"] = _git(clone, "rev-parse", "HEAD").strip()
        wanted[source["file"]] = dumped(schema(source, _git(clone, "show", f"{source['commit']}:{source['path']}")))
    wanted[SOURCES] = json.dumps(sources, indent=2, ensure_ascii=False) + "\n"
    stale = [name for name, text in wanted.items() if not _is_same(folder / name, text)]
    for name in stale:
        print(f"{name} is stale" if options.check else f"{name} was written")
        if not options.check:
            (folder / name).write_text(wanted[name], encoding="utf-8")
    return 1 if stale and options.check else 0


def schema(source: Schema, text: str) -> Schema:
    """Return the JSON schema of one kind: from a custom resource definition, or from AWS's own Python model of it."""
    if source["path"].endswith(".py"):
        spec = model_schema(text, source["class"])
        for path, addition in source.get("documented", {}).items():
            _property(spec, path.split(".")).update(addition)
        for path in source.get("open", ()):
            found = _property(spec, path.split("."))
            found.clear()
            found.update({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
        body: Schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec}}
    else:
        definitions = [each for each in yaml.safe_load_all(text) if each]
        version = source["api_version"].rpartition("/")[2]
        body = next(
            each["schema"]["openAPIV3Schema"]
            for definition in definitions
            for each in definition["spec"]["versions"]
            if each["name"] == version
        )
    whole = strict({**body, "properties": {**body["properties"]}})
    whole["properties"].pop("status", None)
    whole["properties"].update(
        apiVersion={"const": source["api_version"]}, kind={"const": source["kind"]}, metadata={"type": "object"}
    )
    whole["required"] = sorted({*whole.get("required", ()), "apiVersion", "kind", "metadata"})
    return whole


def strict(node: Schema) -> Schema:
    """Return a structural schema as a JSON schema that refuses fields that an API server would silently drop."""
    result: Schema = {name: value for name, value in node.items() if name not in _DROPPED}
    if "properties" in node:
        result["properties"] = {name: strict(value) for name, value in node["properties"].items()}
    for name in ("items", "additionalProperties", "not"):
        if isinstance(node.get(name), dict):
            result[name] = strict(node[name])
    for name in ("anyOf", "allOf", "oneOf"):
        if name in node:
            # branches only restrict the schema that contains them, and have only a part of its properties
            result[name] = [_without_closing(strict(branch)) for branch in node[name]]
    is_open = "additionalProperties" in node or node.get("x-kubernetes-preserve-unknown-fields", False)
    if node.get("type") == "object" and not is_open:
        result["additionalProperties"] = False
    bound = _RANGES.get(result.pop("format", ""))
    if bound and node.get("type") == "integer":
        result["minimum"] = max(-bound, node.get("minimum", -bound))
        result["maximum"] = min(bound - 1, node.get("maximum", bound - 1))
    if result.pop("nullable", False) and "type" in result:
        result["type"] = [result["type"], "null"]
    if result.get("x-kubernetes-list-type") == "atomic":
        del result["x-kubernetes-list-type"]
    return result


def model_schema(text: str, name: str) -> Schema:
    """Return the structural schema of class ``name`` in a module of pydantic models, which is parsed and never run."""
    classes = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}

    def of_class(name: str) -> Schema:
        fields = [node for node in classes[name].body if isinstance(node, ast.AnnAssign)]
        properties = {_name(field.target): of_annotation(field.annotation) for field in fields}
        required = sorted(_name(field.target) for field in fields if not _has_default(field.value))
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    def of_annotation(node: ast.expr) -> Schema:
        if isinstance(node, ast.Name):
            return {"type": _PLAIN[node.id]} if node.id in _PLAIN else of_class(node.id)
        if not isinstance(node, ast.Subscript):
            raise TypeError(f"must be a name or Optional[...] and the like, got {ast.unparse(node)}")
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        match _name(node.value):
            case "Optional":
                return of_annotation(inside[0])
            case "List":
                return {"type": "array", "items": of_annotation(inside[0])}
            case "Dict":
                return {"type": "object", "additionalProperties": of_annotation(inside[1])}
            case "Union":
                return {"anyOf": [of_annotation(each) for each in inside]}
            case other:
                raise ValueError(f"must be Optional, List, Dict or Union, got {other}")

    return of_class(name)


def dumped(schema: Schema) -> str:
    """Return a schema in canonical form: sorted, without spaces, on one line."""
    return json.dumps(schema, sort_keys=True, separators=(",", ":")) + "\n"


def _without_closing(branch: Schema) -> Schema:
    return {name: value for name, value in branch.items() if (name, value) != ("additionalProperties", False)}


def _property(schema: Schema, path: list[str]) -> Schema:
    *parents, last = path
    for name in parents:
        schema = schema["items"] if name == "[]" else schema["properties"][name]
    found: Schema = schema["properties"].setdefault(last, {})
    return found


def _name(node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        raise TypeError(f"must be a name, got {ast.unparse(node)}")
    return node.id


def _has_default(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return any(keyword.arg in {"default", "default_factory"} for keyword in value.keywords)
    return value is not None


def _is_same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def _git(clone: Path, *arguments: str) -> str:
    git = shutil.which("git") or "git"
    return subprocess.run([git, "-C", str(clone), *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
