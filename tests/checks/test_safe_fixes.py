"""No message of a check or the gate suggests to delete, empty or import resources that may belong to others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

import hyperpod_cdk
from tests.support.tables import row_by_row

PACKAGE = Path(hyperpod_cdk.__file__).parent
SOURCES = sorted([*(PACKAGE / "checks").glob("*.py"), *(PACKAGE / "handlers" / "quota_gate").glob("*.py")])
CARDS = {"inputs", "passes", "fails", "skips"}
"""Descriptive texts of a card; its other texts, and all findings, can instruct a user."""

DESTROYS = re.compile(
    r"\b(delete|remove|empty the|purge|overwrite|take it over|take over|terminate|detach|uninstall"
    r"|destroy|drop|release (?:the|an)|deregister|revoke|disassociate)\b|--force|OVERWRITE|--import-existing-resources"
    r"|\bfree (?:the |\d|\{)|\b(?:delete|remove|terminate|detach|deregister|release|revoke|disassociate)-[a-z]",
    re.IGNORECASE,
)
PROVEN = {
    "--import-existing-resources": "offered only where the cluster's tag aws:cloudformation:stack-name is our stack",
    " to delete it before it deploys again": "says what the CDK CLI does to the environment's own stack",
    "remove it from the list": "a line of the environment file",
    "remove the taints": "a line of the environment file",
    ", or move the group": "types that a group of the environment file names",
    "remove it": "a line of the environment file",
    "remove kms_key_arn": "a line of the environment file",
    "every node; remove": "a secret in the project's own script",
    "add the file or remove the call": "a line of the project's own script",
}
"""Every text that suggests a removal, with the proof of ownership. A new text needs a proof."""


def instructions(file: Path) -> Iterator[str]:
    """Yield every text of a module that is neither a docstring nor a description on a card."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(id(node.value))
        if isinstance(node, ast.keyword) and node.arg in CARDS:
            left_out |= {id(each) for each in ast.walk(node.value)}
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(each) for each in ast.walk(node)}
            yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@row_by_row("file", SOURCES, ids=lambda file: file.stem)
def test_no_text_offers_to_destroy_what_is_not_proven_to_be_ours(file: Path) -> None:
    unproven = [
        text
        for text in instructions(file)
        # what is told to somebody is no single word
        if " " in text and DESTROYS.search(text) and not any(proven in text for proven in PROVEN)
    ]
    assert unproven == []


def test_everything_proven_is_still_offered() -> None:
    offered = [text for file in SOURCES for text in instructions(file) if DESTROYS.search(text)]
    assert [proven for proven in PROVEN if not any(proven in text for text in offered)] == []


BROKEN = yaml.load((Path(__file__).parent / "broken_accounts.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


@row_by_row("message", [row["finds"]["message"] for row in BROKEN])
def test_no_finding_about_an_account_does(message: str) -> None:
    fix = message.partition(";")[2]
    assert not DESTROYS.search(fix) or any(proven in fix for proven in PROVEN)


def test_the_pattern_sees_what_was_offered_once() -> None:
    for text in (
        "run 'aws sagemaker delete-cluster --cluster-name prod'",
        "or remove it from the cluster",
        "free 16 of those in use",
        "create-addon --resolve-conflicts OVERWRITE",
        "remove Kueue with its custom resource definitions",
    ):
        assert DESTROYS.search(text), text
