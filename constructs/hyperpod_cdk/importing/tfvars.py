"""Reads Terraform's files of variables, ``*.tfvars``: literal values only, which is all that Terraform takes there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from hyperpod_cdk.config.documents import DocumentError, in_order
from hyperpod_cdk.config.source import MAX_DEPTH, DataPath, Source
from hyperpod_cdk.findings import Finding, Severity

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\#[^\n]*|//[^\n]*|/\*.*?\*/)
    |(?P<line>\n)
    |(?P<text>"(?:[^"\\\n]|\\.)*")
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![A-Za-z0-9_.-]))
    |(?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    |(?P<mark>[=:,\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"(?:\s|#[^\n]*\n|//[^\n]*\n|/\*.*?\*/)*[A-Za-z_][A-Za-z0-9_-]*[ \t]*=", re.DOTALL)
_ESCAPE = re.compile(r"\\(n|r|t|\"|\\|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|(\\.)")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}
_MAX_DIGITS = 40


def is_tfvars(text: str) -> bool:
    """Return whether a text begins with an assignment of Terraform's language."""
    return _ASSIGNMENT.match(text) is not None


def read_tfvars(text: str, file: str) -> Source:
    """Return the values with the line of each. Raises DocumentError for values that are not literal, and duplicates."""
    return _Reader(text, file).read()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self._source = Source(file=file)
        self._tokens = self._tokenized(text)
        self._at = 0

    def read(self) -> Source:
        data: dict[str, object] = {}
        self._source.data = data
        self._source.lines[()] = 1
        while (token := self._next(skip_lines=True)).kind != "end":
            self._entry(data, token, (), marks="=")
            if self._peek().kind not in ("line", "end"):
                self._refuse("needs a new line after a value", self._peek())
        return self._source

    def _entry(self, data: dict[str, object], token: _Token, path: DataPath, *, marks: str) -> None:
        if token.kind not in ("name", "text"):
            self._refuse("needs a name", token)
        name = token.text if token.kind == "name" else self._string(token)
        if name in data:
            self._refuse(
                f"{name} is written twice, first on line {self._source.lines[*path, name]}; keep one of the two", token
            )
        mark = self._next()
        if mark.text not in marks or mark.kind != "mark":
            self._refuse("needs = after a name", mark)
        self._source.lines[*path, name] = token.line
        data[name] = self._value(self._next(), (*path, name))

    def _value(self, token: _Token, path: DataPath) -> object:
        if len(path) > MAX_DEPTH:
            self._refuse(f"nests deeper than {MAX_DEPTH} levels", token)
        if token.kind == "text":
            return self._string(token)
        if token.kind == "number":
            return self._number(token)
        if token.kind == "name" and token.text in _WORDS:
            return _WORDS[token.text]
        if token.text == "[" and token.kind == "mark":
            return self._list(path)
        if token.text != "{" or token.kind != "mark":
            self._refuse("needs a literal value: text in quotes, a number, true, false, null, [...] or {...}", token)
        return self._object(path)

    def _list(self, path: DataPath) -> list[object]:
        found: list[object] = []
        while (token := self._next(skip_lines=True)).text != "]" or token.kind != "mark":
            at = (*path, len(found))
            self._source.lines[at] = token.line
            found.append(self._value(token, at))
            after = self._peek(skip_lines=True)
            if after.text == "," and after.kind == "mark":
                self._next(skip_lines=True)
            elif after.text != "]" or after.kind != "mark":
                self._refuse("needs , or ] after an item", after)
        return found

    def _object(self, path: DataPath) -> dict[str, object]:
        found: dict[str, object] = {}
        while (token := self._next(skip_lines=True)).text != "}" or token.kind != "mark":
            self._entry(found, token, path, marks="=:")
            after = self._peek()
            if after.kind == "mark" and after.text == ",":
                self._next()
            elif after.kind != "line" and (after.text != "}" or after.kind != "mark"):
                self._refuse("needs a new line, , or } after a value", after)
        return found

    def _string(self, token: _Token) -> str:
        body = token.text[1:-1]
        if re.search(r"(?<!\$)\$\{|(?<!%)%\{", body):
            self._refuse("needs literal text, without ${...} and %{...}", token)

        def plain(match: re.Match[str]) -> str:
            if match[2]:
                self._refuse(f"has the unknown escape {match[2]}", token)
            code = match[1]
            return _PLAIN[code] if code in _PLAIN else chr(int(code[1:], 16))

        try:
            found = _ESCAPE.sub(plain, body).replace("$${", "${").replace("%%{", "%{")
            found.encode("utf-8")
        except (ValueError, OverflowError):
            self._refuse("has an escape that is not a character", token)
        return found

    def _number(self, token: _Token) -> object:
        if len(token.text) > _MAX_DIGITS:
            self._refuse(f"needs a number of at most {_MAX_DIGITS} characters", token)
        number = float(token.text)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number

    def _peek(self, *, skip_lines: bool = False) -> _Token:
        at = self._at
        while skip_lines and self._tokens[at].kind == "line":
            at += 1
        return self._tokens[at]

    def _next(self, *, skip_lines: bool = False) -> _Token:
        while skip_lines and self._tokens[self._at].kind == "line":
            self._at += 1
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _tokenized(self, text: str) -> list[_Token]:
        found: list[_Token] = []
        at, line = 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self._refuse("needs literal values; heredocs and expressions are not read", _Token("", text[at], line))
            kind = str(match.lastgroup)
            if kind != "blank":
                found.append(_Token(kind, match.group(), line))
            line += match.group().count("\n")
            at = match.end()
        found.append(_Token("end", "the end of the file", line))
        return found

    def _refuse(self, message: str, token: _Token) -> NoReturn:
        got = "a new line" if token.kind == "line" else token.text
        finding = Finding(
            severity=Severity.ERROR,
            message=f"{message}, got {got[:60]}",
            file=self._source.file,
            line=token.line,
            rule="import",
        )
        raise DocumentError(in_order([finding]), file=self._source.file)
