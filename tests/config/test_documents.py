"""Common behavior of all files: their names in messages, one line per finding, in the order of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_cdk.config import documents
from hyperpod_cdk.config.checkpointing import CheckpointAccount
from hyperpod_cdk.config.documents import DocumentError, Said
from hyperpod_cdk.config.source import Wording
from hyperpod_cdk.findings import Finding, Severity
from tests.support.tables import row_by_row

FILE = Path("accounts/trainer.yaml")
WORDING = Wording(
    noun="account",
    a_file="an account file",
    example="namespace: research",
    when_empty="write namespace, name and buckets",
    when_missing="ask for one",
)
RIGHT = "namespace: research\nname: trainer\nbuckets: [my-checkpoints]\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "accounts/trainer.yaml:1: is empty; write namespace, name and buckets"),
        (
            "- research\n",
            (
                "accounts/trainer.yaml:1: must be a mapping of keys such as 'namespace: research', got a list; start"
                " with the key 'namespace'"
            ),
        ),
        (
            "a: " + "[" * 33 + "]" * 33,
            "accounts/trainer.yaml:1: is nested deeper than 32 levels; an account file needs fewer than 10",
        ),
        (
            "#" * 1_000_001,
            (
                "accounts/trainer.yaml: must have at most 1000000 bytes, got 1000001; an account file is much smaller:"
                " name the right file"
            ),
        ),
    ],
)
def test_messages_name_the_kind_of_file(text: str, line: str) -> None:
    with pytest.raises(DocumentError) as caught:
        documents.open_source(FILE, WORDING, text=text)
    assert str(caught.value) == line
    assert caught.value.file == str(FILE)


def test_a_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocumentError, match=r"^accounts/trainer\.yaml: does not exist; ask for one$"):
        documents.open_source(FILE, WORDING)


def test_a_second_document_is_listed_next_to_the_first() -> None:
    source = documents.open_source(FILE, WORDING, text=f"{RIGHT}---\n{RIGHT}")
    (finding,) = source.findings
    assert finding.render() == (
        "accounts/trainer.yaml:4: holds a second YAML document; keep one account per file: move what follows the '---'"
        " line to a file of its own, and remove that line"
    )
    assert source.data == {"namespace": "research", "name": "trainer", "buckets": ["my-checkpoints"]}


def test_a_right_file_is_its_model() -> None:
    account, said = documents.validated(CheckpointAccount, documents.open_source(FILE, WORDING, text=RIGHT))
    assert (account.name, account.buckets, said) == ("trainer", ("my-checkpoints",), [])


def test_a_wrong_file_is_a_draft_of_its_model() -> None:
    source = documents.open_source(FILE, WORDING, text=RIGHT.replace("trainer", "Trainer"))
    account, said = documents.validated(CheckpointAccount, source)
    assert account.namespace == "research"
    assert [each.found_in(source).render() for each in said] == [
        (
            "accounts/trainer.yaml:2 name: must be the name of a service account: lower-case letters, digits, hyphens"
            ' and dots, got "Trainer"; set name: trainer'
        )
    ]


def test_findings_are_put_in_order_once_each_on_one_line() -> None:
    source = documents.open_source(FILE, WORDING, text=RIGHT)
    said = [
        Said(Severity.ERROR, ("name",), "must be\nshort; shorten it", "one"),
        Said(Severity.ERROR, ("namespace",), "must be known; name another", "two"),
        Said(Severity.WARNING, ("name",), "must be\nshort; shorten it", "three"),
        Said(Severity.ERROR, ("buckets",), "x" * 2000, "four"),
    ]
    found = documents.in_order(each.found_in(source) for each in said)
    assert [(each.line, each.rule, len(each.message)) for each in found] == [
        (1, "two", 27),
        (2, "one", 28),
        (3, "four", 1005),
    ]
    assert found[1] == Finding(
        severity=Severity.ERROR,
        message="must be\\x0ashort; shorten it",
        path="name",
        file=str(FILE),
        line=2,
        rule="one",
    )


@row_by_row(
    "text, line",
    [
        ("one\ttwo", "one\\x09two"),
        ("one\x85two", "one\\x85two"),
        ("one\u2028two", "one\\u2028two"),
        # marks by which a terminal shows what follows in another direction
        *((f"one{mark}two", f"one\\u{ord(mark):04x}two") for mark in "\u061c\u200e\u200f\u202a\u202e\u2066\u2069"),
        ("gr\u00f6\u00dfe", "gr\u00f6\u00dfe"),
    ],
)
def test_a_line_shows_its_marks(text: str, line: str) -> None:
    assert documents.tidy(text) == line
