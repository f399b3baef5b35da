"""The files of a project that its reviews use, and what a deployment records about them.

A change of one of these files changes what a review says. So the foundation's template records which files there were
when it was deployed: what is deployed was approved, and a file that has changed since then does not count on its own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from hyperpod_cdk.config.loading import FOLDER, PLANS_SUFFIX, QUOTAS_SUFFIX

REVIEW: Final = "review.yaml"
PRICES: Final = "prices.json"

OUTPUT: Final = "ReviewedBy"
"""The foundation's output with the SHA-256 of each file. CloudFormation updates a stack if only an output changes."""

_ONE: Final = re.compile(r"(\S+)=([0-9a-f]{64})")


def names(environment: str) -> tuple[str, ...]:
    """Return the files, relative to the project's root: review.yaml, prices.json, the environment's records."""
    records = [f"{FOLDER}/{environment}{suffix}" for suffix in (PLANS_SUFFIX, QUOTAS_SUFFIX)] if environment else []
    return (REVIEW, PRICES, *records)


def _digest_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def said_of(project: Path, environment: str) -> str:
    """Return the output's value: ``name=sha256`` of each existing file, separated by spaces; empty without any."""
    files = ((name, project / name) for name in names(environment))
    return " ".join(f"{name}={_digest_of(file)}" for name, file in files if file.is_file())


def recorded(template: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of each file that a template records, by name; empty if it records none."""
    outputs = template.get("Outputs")
    output = outputs.get(OUTPUT) if isinstance(outputs, dict) else None
    value = output.get("Value") if isinstance(output, dict) else None
    found = [_ONE.fullmatch(each) for each in value.split()] if isinstance(value, str) else []
    return {each[1]: each[2] for each in found if each}


def recorded_by(templates: Iterable[tuple[str, Mapping[str, Any]]], environment: str) -> dict[str, str]:
    """Return what the foundation records, from all stacks by name; empty if there is no foundation, or several."""
    own = [template for name, template in templates if name == foundation(environment)]
    return recorded(own[0]) if len(own) == 1 else {}


def strays(templates: Iterable[tuple[str, Mapping[str, Any]]], environment: str) -> list[str]:
    """Return the names of the stacks that have the output and are not the foundation, or a second one of its name."""
    names = [name for name, template in templates if OUTPUT in (template.get("Outputs") or {})]
    if foundation(environment) in names:
        names.remove(foundation(environment))
    return names


def foundation(environment: str) -> str:
    """Return the name of the stack whose record counts."""
    from hyperpod_cdk.config.environment import FOUNDATION, stack_name  # noqa: PLC0415 - slow, for its models

    return stack_name(environment, FOUNDATION)


def without(template: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a template without that output, for comparing templates: a new price is not a change of a template."""
    outputs = template.get("Outputs")
    if not isinstance(outputs, dict) or OUTPUT not in outputs:
        return template
    rest = {name: output for name, output in outputs.items() if name != OUTPUT}
    return {**template, "Outputs": rest} if rest else {key: each for key, each in template.items() if key != "Outputs"}
