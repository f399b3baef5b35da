"""Sentences with the keys of a file, and with the options of a command."""

from __future__ import annotations

import copy
import pickle

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hyperpod_cdk.catalog.rules import Bound, Pattern
from hyperpod_cdk.catalog.sentences import (
    Advice,
    Choosing,
    Companion,
    Correction,
    Example,
    OnlyInFiles,
    Removal,
    Sentence,
    Setting,
    Stated,
    Truth,
    as_text,
    by_option,
    in_python,
    in_words_of,
    plural,
)

ACCOUNT = Pattern(
    regex="[0-9]{12}", maximum=12, describes="12 digits", in_files=", in quotes", example='"111122223333"'
)


@pytest.mark.parametrize(
    ("sentence", "in_a_file", "by_an_option"),
    [
        (
            Bound(minimum=2).problem(1, key="count"),
            "must be at least 2, got 1; set count: 2 or more",
            "must be at least 2, got 1; give --n 2 or more",
        ),
        (
            Bound(maximum=2).problem(3, key="count"),
            "must be at most 2, got 3; set count: 2 or less",
            "must be at most 2, got 3; give --n 2 or less",
        ),
        (
            ACCOUNT.problem("1", key="account"),
            'must be 12 digits, in quotes, got "1"; correct account, which must look like "111122223333"',
            'must be 12 digits, got "1"; correct --n, which must look like "111122223333"',
        ),
        (
            ACCOUNT.problem(" 111122223333", key="account"),
            'must be 12 digits, in quotes, got " 111122223333"; set account: "111122223333"',
            'must be 12 digits, got " 111122223333"; give --n 111122223333',
        ),
        (
            Sentence("is missing; ", Setting("nodes", 2, verb="add")),
            "is missing; add nodes: 2",
            "is missing; give --n 2",
        ),
        (
            Sentence("write another", Setting("zone", "use1-az1", or_in_files=", or ")),
            "write another, or set zone: use1-az1",
            "write another, or give --n use1-az1",
        ),
        (Sentence("find it and ", Choosing("zone"), " it"), "find it and set zone to it", "find it and set --n to it"),
        (Sentence(Correction("zone")), "correct zone", "correct --n"),
        (Sentence(Removal("zone")), "remove zone", "leave out --n"),
        (Sentence("plan with ", Companion("zone")), "plan with its zone", "plan with --n"),
    ],
)
def test_each_door_has_its_words(sentence: str | None, in_a_file: str, by_an_option: str) -> None:
    assert sentence is not None
    assert (sentence, in_words_of(sentence, by_option("--n"))) == (in_a_file, by_an_option)


@pytest.mark.parametrize(
    ("advice", "in_a_file", "by_an_argument"),
    [
        (Setting("count", 2), "set count: 2", "set count=2"),
        (Setting("count", "2 or more"), "set count: 2 or more", "set count to 2 or more"),
        (Setting("capacity", "on_demand", verb="add"), "add capacity: on_demand", 'add capacity="on_demand"'),
        (Setting("version", '"1.34"'), 'set version: "1.34"', 'set version="1.34"'),
        (Setting("name", "1234"), "set name: 1234", 'set name="1234"'),
        (Setting("efa", "false"), "set efa: false", "set efa=False"),
        (Setting("zones[0]", "use1-az1"), "set zones[0]: use1-az1", 'set zones[0]="use1-az1"'),
        (Setting("the key", "team"), "set the key: team", 'set the key to "team"'),
        (Setting("a/b", '"16"', verb="write"), 'write a/b: "16"', 'write a/b as "16"'),
        (
            Setting("max_batch", "{instances: 1}", python="Batch(instances=1)"),
            "set max_batch: {instances: 1}",
            "set max_batch=Batch(instances=1)",
        ),
        (Stated("capacity", "spot"), "capacity: spot", 'capacity="spot"'),
        (Stated("count", 0), "count: 0", "count=0"),
        (Setting("region", "us-west-2", or_in_files=", or "), ", or set region: us-west-2", ""),
        (Removal("zone"), "remove zone", "remove zone"),
        (Choosing("zone"), "set zone to", "set zone to"),
        (OnlyInFiles(", in quotes"), ", in quotes", ""),
        (OnlyInFiles(", or a key", python=", or an argument"), ", or a key", ", or an argument"),
        (Truth(value=True), "true", "True"),
    ],
)
def test_a_caller_of_constructs_reads_python(advice: Advice, in_a_file: str, by_an_argument: str) -> None:
    sentence = Sentence("no; ", advice)
    assert (sentence, in_python(sentence)) == (f"no; {in_a_file}", f"no; {by_an_argument}")


def test_numbers_are_not_changed_with_the_text() -> None:
    assert in_python(Sentence("a", Setting("count", 2)).with_text(str.upper)) == "Aset count=2"


def test_a_sentence_takes_over_the_parts_of_another() -> None:
    inner = Sentence("no; ", Setting("a", 1))
    assert Sentence("group: ", inner, ", or ", Setting("b", 2)).parts == (
        *("group: ", "no; ", Setting("a", 1), ", or "),
        Setting("b", 2),
    )


def test_text_changes_in_every_part() -> None:
    said = Sentence("x ", Setting("x", "x"), Correction("x", "x"), Choosing("x"), OnlyInFiles(" x"))
    assert said.with_text(str.upper) == "X set x: Xcorrect x, which must look like Xset x to x"


def test_only_examples_become_those_of_the_file() -> None:
    said = Sentence("x of x, such as ", Example("x"), "; ", Setting("x", "x"), ", or ", Correction("x", "x"))
    assert said.with_examples(str.upper) == "x of x, such as X; set x: x, or correct x, which must look like X"
    option = "x of x, such as x; give --n x, or correct --n, which must look like x"
    assert in_words_of(said, by_option("--n")) == option


def test_plain_text_is_shown_as_it_is() -> None:
    assert in_words_of("set count: 2", by_option("--n")) == "set count: 2"


def test_copies_are_whole() -> None:
    said = Sentence("no; ", Setting("a", 1))
    for each in (copy.deepcopy(said), pickle.loads(pickle.dumps(said))):  # noqa: S301 - its own
        assert (each, each.parts) == (said, said.parts)


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "nodes"), (1, "node"), (2, "nodes"), (0.5, "nodes")],
)
def test_plural(count: float, said: str) -> None:
    assert plural(count, "node") == said
    assert plural(count, "address", "addresses") == ("address" if said == "node" else "addresses")


@given(st.text(max_size=12) | st.from_regex(r"[-+.0-9:_eExXo]{1,8}", fullmatch=True))
@example("no")
@example("1e3")
@example("012345678901")
@example("2026-11-30")
@example("1:30")
@example("a: b")
@example("a #b")
def test_text_is_read_as_text(text: str) -> None:
    assume(text.isprintable())
    assert yaml.safe_load(f"key: {as_text(text)}") == {"key": text}


def test_text_is_in_quotes_only_where_it_must_be() -> None:
    plain = ("prod", "cron(0 3 ? * SUN *)", "arn:aws:iam::111122223333:role/x", "222233334444.dkr.ecr.amazonaws.com")
    assert [as_text(each) for each in plain] == [*plain]
