"""Words that a test expects to be missing are words that something says.

``assert "was replaced" not in text`` passes for ever once the message is in other words. So prose that a test looks for
only to find it missing, or by which it picks what it then compares, must stand in the sources of what is tested.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
TESTED = ("constructs", "stacks", "rehearsal/hyperpod_cdk_rehearsal", "workloads", "scripts", "lifecycle_scripts")
TESTS = ("tests", "rehearsal/tests")
ENDINGS = {".py", ".sh", ".js", ".json", ".yaml", ".css", ".html"}
PROSE = re.compile(r"[A-Za-z,;:.)]+ [A-Za-z(]")

OF_OTHERS: Mapping[str, str] = {
    "nodes use1-az5": "the test's own file names the zone, and the product puts it behind the word",
    "git archive": "how pipelines took the tool once; git says it",
    "/cdk synth": "pipelines and the Makefile call the CDK CLI so",
    '/cdk synth "**" ': "as above",
    "or add the zone there": "a rule of the file, of a zone or a subnet",
    "<default subnet>": "the test itself, in place of an ID",
    "skipped 6 checks of quotas: ": "the answer of preflight, with its number",
    "takes over arn": "the note of importing, with the beginning of the ARN",
    "- name: f": "the environment file, with the beginning of a name",
    "passed network: needs 1 VPC": "the log of the quota gate, with its number",
    "ml.x9.metal is not": "the note of figures, with the test's own type",
    "Needs approval by": "the test draws the line itself",
    "is in UPDATE_ROLLBACK_FAILED state and can not be updated.": "CloudFormation, with the status",
    "lab-hyperpod is ": "the refusal of takeover, with the test's own stack",
}
"""Words that stand so in no source -> who says them."""


def looked_for(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and each text that is looked for where nothing fails if nobody says it any more."""
    of_loops = {
        node.target.id: node.iter
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name)
    }
    asserted = {id(each) for node in ast.walk(tree) if isinstance(node, ast.Assert) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            found = [each for condition in node.ifs for each in _searched(condition)]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found = list(_searched(node.operand))
        elif isinstance(node, ast.Compare) and isinstance(
            node.ops[0], ast.NotIn if id(node) in asserted else ast.In | ast.NotIn
        ):
            found = [node.left]
        else:
            continue
        for each in found:
            words = of_loops.get(each.id, each) if isinstance(each, ast.Name) else each
            for text in ast.walk(words):
                if isinstance(text, ast.Constant) and isinstance(text.value, str) and PROSE.search(text.value):
                    yield text.lineno, text.value


def _searched(condition: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(condition):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
            yield node.left
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"startswith", "endswith"}
        ):
            yield node.args[0]


@cache
def written() -> str:
    """Return what the sources say; texts of several lines are joined, and what an f-string holds stays as written."""
    return "\n".join(
        re.sub(r'"\s*\n\s*f?"', "", file.read_text(encoding="utf-8"))
        for folder in TESTED
        for file in sorted((PROJECT / folder).rglob("*"))
        if file.suffix in ENDINGS
    )


def test_what_is_expected_to_be_missing_is_written_somewhere() -> None:
    files = [file for folder in TESTS for file in sorted((PROJECT / folder).rglob("*.py"))]
    assert len(files) > 300
    looked = {
        words: f"{file.relative_to(PROJECT)}:{line}"
        for file in files
        if file != Path(__file__)
        for line, words in looked_for(ast.parse(file.read_text(encoding="utf-8")))
    }
    unwritten = {words: place for words, place in looked.items() if words not in written()}
    assert unwritten.keys() == OF_OTHERS.keys(), {
        words: place for words, place in unwritten.items() if words not in OF_OTHERS
    }


@pytest.mark.parametrize(
    "line",
    [
        'assert "it is gone" not in text',
        'assert not any("it is gone" in each for each in found)',
        'assert [each for each in found if "it is gone" in each] == []',
        'assert [each for each in found if each.startswith("it is gone")] == []',
        'assert [each for each in found if each.kind == 1 and not each.endswith("it is gone")] == []',
        'for each in ("it is gone", "b"):\n    assert each not in text',
        'assert not any(each in text for each in ("it is gone", "b"))',
        'return any("it is gone" in each for each in found)',
    ],
)
def test_ways_of_looking_for_what_is_missing(line: str) -> None:
    assert [words for _, words in looked_for(ast.parse(line))][-1:] == ["it is gone"]


@pytest.mark.parametrize(
    "line",
    ['assert "it is gone" in text', 'assert any("it is gone" in each for each in found)', 'assert "gone" not in text'],
)
def test_what_fails_by_itself_is_not_judged(line: str) -> None:
    assert list(looked_for(ast.parse(line))) == []
