"""The simple commands of a bash script with their lines, as far as the text shows them.

It parses words, quotes, comments, here-documents, command substitutions, operators between commands and the text
after ``bash -c``. It expands nothing: a command in a variable, in a here-document, or built from text by ``xargs``,
``trap`` or ``eval`` is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

_SEPARATORS = frozenset(";&|()\n")
_BLANKS = frozenset(" \t")
_BEFORE_A_COMMAND = frozenset(
    {"if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "time", "fi", "done"}
)
_RUNNERS = frozenset({"sudo", "env", "exec", "command", "builtin", "nohup", "nice", "timeout", "retry", "chronic"})
_SHELLS = frozenset({"bash", "sh", "su"})
_MOST_NESTED = 100
# options of these runners that use the next word
_VALUE_OPTIONS = frozenset({"-u", "--user", "-g", "--group", "-n", "-s", "--signal", "-k", "--kill-after", "-a", "-C"})


@dataclass(frozen=True, kw_only=True)
class Command:
    """One simple command: its words without the quotes around them, and the line on which it begins."""

    line: int
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """The program without its folder: ``curl`` for ``/usr/bin/curl``."""
        return self.words[0].rsplit("/", 1)[-1]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the program."""
        return self.words[1:]


def commands(text: str) -> tuple[Command, ...]:
    """Return the simple commands of a script, in the order in which they begin.

    ``if``, ``sudo``, ``env A=b``, ``timeout 60`` and the like are removed from the front, and assignments too.
    """
    return tuple(sorted(_commands(text, first_line=1, nested=0), key=lambda command: command.line))


def assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of every assignment at the front of a command, the value without the quotes around it."""
    for _, words in _read(text, first_line=1, nested=0):
        rest = words[1:] if words and words[0] in {"export", "local", "declare", "readonly", "typeset"} else words
        for word in rest:
            name, equals, value = word.partition("=")
            if name.isidentifier() and equals:
                yield name, value


def _commands(text: str, *, first_line: int, nested: int) -> Iterator[Command]:
    for line, raw in _read(text, first_line=first_line, nested=nested):
        words = _bare(raw)
        if not words:
            continue
        command = Command(line=line, words=tuple(words))
        yield command
        inner = _behind_c(command)
        if inner is not None and nested < _MOST_NESTED:
            yield from _commands(inner, first_line=line, nested=nested + 1)


# several checks look at the same scripts
@lru_cache(maxsize=256)
def _read(text: str, *, first_line: int, nested: int) -> tuple[tuple[int, tuple[str, ...]], ...]:
    reader = _Reader(text=text, line=first_line, nested=nested)
    reader.read(closing="")
    return tuple((line, tuple(words)) for line, words in reader.found)


def _behind_c(command: Command) -> str | None:
    if command.name not in _SHELLS:
        return None
    for option, text in zip(command.arguments, command.arguments[1:], strict=False):
        if option.startswith("-") and not option.startswith("--") and option.endswith("c"):
            return text
    return None


def _bare(words: Sequence[str]) -> Sequence[str]:
    rest = list(words)
    while rest:
        first = rest[0]
        if first in _BEFORE_A_COMMAND or _is_assignment(first):
            rest.pop(0)
        elif first in _RUNNERS:
            rest.pop(0)
            _drop_options(rest, takes_number=first == "timeout")
        else:
            return rest
    return rest


def _drop_options(rest: list[str], *, takes_number: bool) -> None:
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _VALUE_OPTIONS and rest:
            rest.pop(0)
    if takes_number and rest:
        rest.pop(0)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.rstrip("+").isidentifier()


@dataclass
class _Reader:
    """Reads the text once; the content of a substitution is read by the same rules, as separate commands."""

    text: str
    line: int = 1
    nested: int = 0
    at: int = 0
    found: list[tuple[int, list[str]]] = field(default_factory=list)
    here_documents: list[tuple[str, bool]] = field(default_factory=list)

    def read(self, *, closing: str, as_commands: bool = True) -> None:
        self.nested += 1
        self.read_commands(closing, as_commands=as_commands)
        self.nested -= 1

    def read_commands(self, closing: str, *, as_commands: bool) -> None:
        words: list[str] = []
        start = self.line
        while self.at < len(self.text):
            mark = self.text[self.at]
            if closing and mark == closing:
                self.step()
                break
            if mark in _BLANKS or self.text.startswith("\\\n", self.at):
                self.step(1 if mark in _BLANKS else 2)
            elif mark == "#":
                self.skip_to("\n")
            elif self.text.startswith(("<(", ">("), self.at) and self.may_nest:
                self.step(2)
                self.read(closing=")")
            elif mark in "<>":
                self.redirection()
            elif self.text.startswith("((", self.at) and _BEFORE_A_COMMAND.issuperset(words):
                self.skip_past("))")
            elif mark in _SEPARATORS:
                words = self.ended(words, start, as_commands=as_commands)
                self.step()
                if mark == "\n":
                    self.skip_here_documents()
            else:
                if not words:
                    start = self.line
                words.append(self.word(closing))
                if words[-1] == "[[":
                    # inside a test, && and | are not operators between commands
                    begin = self.at
                    self.skip_past(" ]]")
                    words.append(self.text[begin : self.at].strip())
        self.ended(words, start, as_commands=as_commands)

    def ended(self, words: list[str], line: int, *, as_commands: bool) -> list[str]:
        if words and as_commands:
            self.found.append((line, words))
        return []

    def word(self, closing: str) -> str:
        parts: list[str] = []
        while self.at < len(self.text):
            mark = self.text[self.at]
            if mark == "(" and parts and parts[-1] == "=" and self.may_nest:
                # an array: its words are not commands, but substitutions in them are
                self.step()
                self.read(closing=")", as_commands=False)
                break
            if mark in _BLANKS or mark in _SEPARATORS or mark in "<>" or (closing and mark == closing):
                break
            parts.append(self.piece(mark))
        return "".join(parts)

    def piece(self, mark: str) -> str:
        if mark == "'":
            return self.single_quoted()
        if mark == '"':
            return self.double_quoted()
        if mark == "\\":
            return self.escaped()
        if mark == "`":
            return self.backquoted()
        if mark == "$":
            return self.expansion()
        self.step()
        return mark

    @property
    def may_nest(self) -> bool:
        return self.nested < _MOST_NESTED

    def single_quoted(self) -> str:
        begin = self.at + 1
        end = self.text.find("'", begin)
        end = len(self.text) if end < 0 else end
        self.move_to(min(end + 1, len(self.text)))
        return self.text[begin:end]

    def double_quoted(self) -> str:
        self.step()
        parts: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != '"':
            mark = self.text[self.at]
            parts.append(self.piece(mark) if mark in "\\`$" else mark)
            if mark not in "\\`$":
                self.step()
        self.step()
        return "".join(parts)

    def escaped(self) -> str:
        kept = self.text[self.at + 1 : self.at + 2]
        self.step(2)
        return "" if kept == "\n" else kept

    def backquoted(self) -> str:
        begin = self.at
        self.step()
        if self.may_nest:
            self.read(closing="`")
        return self.text[begin : self.at]

    def expansion(self) -> str:
        begin = self.at
        if self.text.startswith("$((", begin):
            self.skip_past("))")
        elif self.text.startswith("$(", begin) and self.may_nest:
            self.step(2)
            self.read(closing=")")
        elif self.text.startswith("${", begin):
            self.skip_past("}")
        elif self.text.startswith("$'", begin):
            self.step()
            return self.single_quoted()
        else:
            self.step()
        return self.text[begin : self.at]

    def redirection(self) -> None:
        if self.text.startswith("<<<", self.at):
            self.step(3)
            return
        if not self.text.startswith("<<", self.at):
            self.step()
            if self.at < len(self.text) and self.text[self.at] in ">&|":
                self.step()
            return
        self.step(2)
        strips_tabs = self.at < len(self.text) and self.text[self.at] == "-"
        if strips_tabs:
            self.step()
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.step()
        self.here_documents.append((self.word(""), strips_tabs))

    def skip_here_documents(self) -> None:
        for delimiter, strips_tabs in self.here_documents:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                body = self.text[self.at : end]
                self.move_to(min(end + 1, len(self.text)))
                if (body.lstrip("\t") if strips_tabs else body) == delimiter:
                    break
        self.here_documents.clear()

    def skip_to(self, mark: str) -> None:
        end = self.text.find(mark, self.at)
        self.move_to(len(self.text) if end < 0 else end)

    def skip_past(self, mark: str) -> None:
        end = self.text.find(mark, self.at)
        self.move_to(len(self.text) if end < 0 else end + len(mark))

    def step(self, count: int = 1) -> None:
        self.move_to(min(self.at + count, len(self.text)))

    def move_to(self, target: int) -> None:
        self.line += self.text.count("\n", self.at, target)
        self.at = target
