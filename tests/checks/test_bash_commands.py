"""The commands that are found in a script, and text that is ignored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.checks.bash_commands import assignments, commands
from tests.support.tables import row_by_row


@row_by_row(
    "text, found",
    [
        ("", []),
        ("curl -O x", [(1, "curl -O x")]),
        ("#!/usr/bin/env bash\n# curl x\n\ncurl x # fetch", [(4, "curl x")]),
        ("a && b || c | d & e; f", [(1, "a"), (1, "b"), (1, "c"), (1, "d"), (1, "e"), (1, "f")]),
        ("curl \\\n  -O \\\n  x\ny", [(1, "curl -O x"), (4, "y")]),
        ("if curl x; then wget y; fi", [(1, "curl x"), (1, "wget y")]),
        ("if ((wget != 0)); then a; fi", [(1, "a")]),
        ("while ! curl x; do sleep 1; done", [(1, "curl x"), (1, "sleep 1")]),
        ("A=1 B='x y' sudo -E -u root env C=2 timeout -k 5 60 curl x", [(1, "curl x")]),
        ('x="$(curl y)"', [(1, "curl y")]),
        ("x=`curl y`", [(1, "curl y")]),
        ('echo "a $(b "$(c)") d"', [(1, "b $(c)"), (1, "c"), (1, 'echo a $(b "$(c)") d')]),
        ("source <(curl y)", [(1, "curl y"), (1, "source")]),
        ("echo 'curl x; wget y'", [(1, "echo curl x; wget y")]),
        ('echo "curl x; wget y"', [(1, "echo curl x; wget y")]),
        ("tools=(curl wget)\na", [(2, "a")]),
        ("tools+=(curl $(which wget))", [(1, "which wget")]),
        ("[[ -f x && $y == curl || $y =~ a|b ]] && c", [(1, "[[ -f x && $y == curl || $y =~ a|b ]]"), (1, "c")]),
        ("cat >f <<EOF\ncurl x\nEOF\na", [(1, "cat f"), (4, "a")]),
        ("cat <<-'EOF' | b\n\tcurl x\n\tEOF\na", [(1, "cat"), (1, "b"), (4, "a")]),
        ("cat <<A <<B\n1\nA\n2\nB\nc", [(1, "cat"), (6, "c")]),
        ("read -r x <<<$y\nz", [(1, "read -r x $y"), (2, "z")]),
        ("f() {\n  curl x\n}\nf", [(1, "f"), (2, "curl x"), (4, "f")]),
        ("bash -c 'set -e; curl x'", [(1, "bash -c set -e; curl x"), (1, "set -e"), (1, "curl x")]),
        ("su ubuntu -lc 'curl x'", [(1, "curl x"), (1, "su ubuntu -lc curl x")]),
        ("bash -e run.sh", [(1, "bash -e run.sh")]),
        ("echo a#b $# ${#x}", [(1, "echo a#b $# ${#x}")]),
        ("echo 'open", [(1, "echo open")]),
        ("echo $(open", [(1, "echo $(open"), (1, "open")]),
    ],
)
def test_commands_are_found_with_their_lines(text: str, found: list[tuple[int, str]]) -> None:
    assert sorted((each.line, " ".join(each.words)) for each in commands(text)) == sorted(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1", [("a", "1")]),
        ('here="$(cd "$(dirname "$0")" && pwd)"', [("here", '$(cd "$(dirname "$0")" && pwd)')]),
        ("export a=1 b=2", [("a", "1"), ("b", "2")]),
        ("readonly a='x y'", [("a", "x y")]),
        ("echo a-b=1 --c=2", []),
    ],
)
def test_assignments(text: str, found: list[tuple[str, str]]) -> None:
    assert list(assignments(text)) == found


@given(st.text(alphabet="ab \t\n\\\"'`$(){}[]<>|&;#=-c!", max_size=80))
def test_any_text_is_read_to_its_end(text: str) -> None:
    for command in commands(text):
        assert 1 <= command.line <= text.count("\n") + 1
        assert command.words


@pytest.mark.parametrize("opening", ["$(", '"$(', "`", "<(", "a=(", "bash -c '", "("])
def test_deep_nesting_ends(opening: str) -> None:
    assert len(commands(opening * 3000)) <= 3000


def test_name_is_without_its_folder() -> None:
    (command,) = commands("/usr/bin/curl -s x")
    assert (command.name, command.arguments) == ("curl", ("-s", "x"))
