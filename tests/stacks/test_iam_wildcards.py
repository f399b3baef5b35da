"""Every IAM statement with a wildcard, with the reason that its construct recorded: docs/iam-wildcards.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.assembly import ENVIRONMENTS, PROJECT, Synthesized, shipped

PAGE = PROJECT / "docs" / "iam-wildcards.md"
POLICIES = {
    "AWS::IAM::ManagedPolicy": "",
    "AWS::IAM::Policy": "",
    "AWS::IAM::Role": "Policies",
    "AWS::IAM::RolePolicy": "",
}
"""The types that give rights to principals, and the property that holds their policies where it is a list."""

FINDING = "Annotation::AwsSolutions-IAM5[{}::{}]"
"""How cdk-nag's finding about a wildcard is acknowledged."""

HEADING = """# IAM statements with a wildcard

This page is for security reviews. It lists each statement in the policies of the roles of the environments and examples
whose action or resource contains `*`, with the reason that its construct recorded (`acknowledge`); cdk-nag refuses a
statement without a reason. `ENV` is the name of the environment. In a resource policy (buckets, keys), `*` means the
bucket or key itself, so these statements are not listed. `hyperpod-cdk bootstrap-policy ENV` lists the permissions of
CloudFormation itself. This page is generated with `pytest tests/stacks/test_iam_wildcards.py --update-golden`.

| role | actions | wildcard | reason | environments |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """One wildcard of a statement; ``reason`` is empty where none was recorded."""

    role: str
    actions: str
    wildcard: str
    reason: str


def test_the_page_lists_every_wildcard_with_its_reason(assemblies: Path, pytestconfig: pytest.Config) -> None:
    found: dict[Row, list[str]] = {}
    for name in ENVIRONMENTS:
        for row in rows(shipped(assemblies, name)):
            found.setdefault(row, []).append(name)
    without = sorted({f"{row.role}: {row.wildcard}" for row in found if not row.reason})
    assert not without, f"no reason is recorded for {'; '.join(without)}; acknowledge it beside its construct"
    text = HEADING + "".join(line(row, names) for row, names in sorted(found.items(), key=lambda each: str(each[0])))
    if pytestconfig.getoption("--update-golden", default=False):
        PAGE.write_text(text, encoding="utf-8")
    written = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    if written != text:
        pytest.fail(
            "docs/iam-wildcards.md is out of date; run 'pytest tests/stacks/test_iam_wildcards.py --update-golden'",
            pytrace=False,
        )


def line(row: Row, names: list[str]) -> str:
    """Return one line of the table."""
    where = "all" if len(set(names)) == len(ENVIRONMENTS) else ", ".join(sorted(set(names)))
    return f"| {row.role} | {row.actions} | `{row.wildcard}` | {row.reason} | {where} |\n"


def rows(synthesized: Synthesized) -> Iterator[Row]:
    """Yield the wildcards of one environment."""
    environment = synthesized.environment

    def general(text: str) -> str:
        for own, word in ((environment.account, "ACCOUNT"), (environment.region, "REGION"), (environment.name, "ENV")):
            text = text.replace(own, word)
        return text

    for stack, template in synthesized.templates.items():
        reasons = recorded(synthesized.template_files[stack])
        for resource in template["Resources"].values():
            path = resource.get("Metadata", {}).get("aws:cdk:path") or reasons.path_of(resource, template)
            for statement in statements(resource):
                actions = [str(each) for each in as_list(statement.get("Action"))]
                shown = f"{actions[0]} and {len(actions) - 1} more" if len(actions) > 2 else ", ".join(actions)
                role = general("/".join(path.strip("/").split("/")[1:])).removesuffix("/Resource")
                for kind, items in (("Action", actions), ("Resource", as_list(statement.get("Resource")))):
                    for item in map(flat, items):
                        if "*" in item:
                            reason = reasons.of(path, FINDING.format(kind, item))
                            yield Row(role, shown, general(item), reason)


class Recorded:
    """What the constructs of a stack acknowledged, by path."""

    def __init__(self, metadata: Mapping[str, list[dict[str, Any]]]) -> None:
        self._acknowledged: dict[str, dict[str, str]] = {}
        self._paths: dict[str, str] = {}
        for path, entries in metadata.items():
            for entry in entries:
                if entry["type"] == "aws:cdk:acknowledged-rules":
                    self._acknowledged.setdefault(path, {}).update(entry["data"])
                elif entry["type"] == "aws:cdk:logicalId":
                    self._paths[entry["data"]] = path

    def path_of(self, resource: Mapping[str, Any], template: Mapping[str, Any]) -> str:
        """Return the construct path of a resource."""
        logical_id = next(key for key, each in template["Resources"].items() if each is resource)
        return self._paths[logical_id]

    def of(self, path: str, finding: str) -> str:
        """Return the reason that the construct, or one above it, recorded for a finding."""
        steps = path.split("/")
        above = ("/".join(steps[:count]) for count in range(len(steps), 0, -1))
        return next((said for each in above if (said := self._acknowledged.get(each, {}).get(finding))), "")


def recorded(template_file: Path) -> Recorded:
    """Read what stands beside a template."""
    file = template_file.with_name(template_file.name.replace(".template.json", ".metadata.json"))
    return Recorded(json.loads(file.read_text(encoding="utf-8")))


def statements(resource: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the statements that allow something in a resource that gives rights to principals."""
    if resource["Type"] not in POLICIES:
        return
    properties = resource.get("Properties", {})
    listed = POLICIES[resource["Type"]]
    for policy in properties.get(listed, []) if listed else [properties]:
        document = policy.get("PolicyDocument") or {}
        for statement in as_list(document.get("Statement")):
            if statement.get("Effect") == "Allow":
                yield statement


def flat(value: Any) -> str:
    """Write a template's value as cdk-nag does: ``<AWS::Region>`` for a reference, ``<X.Arn>`` for an attribute.

    What another stack exports it knows by the export's name.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        if "Ref" in value:
            return f"<{value['Ref']}>"
        if "Fn::GetAtt" in value:
            return f"<{'.'.join(value['Fn::GetAtt'])}>"
        if "Fn::ImportValue" in value:
            return str(value["Fn::ImportValue"])
        if "Fn::Join" in value:
            separator, parts = value["Fn::Join"]
            return str(separator).join(map(flat, parts))
    return json.dumps(value, separators=(",", ":"))


def as_list(value: Any) -> list[Any]:
    """Return an element of a policy as a list."""
    return list(value) if isinstance(value, list) else [] if value is None else [value]
