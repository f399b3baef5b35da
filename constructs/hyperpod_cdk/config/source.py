"""Reads YAML text into plain data with the line of every value, and reports errors of the text."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import yaml
from yaml.resolver import Resolver

from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.findings import Finding, Severity

MAX_BYTES = 1_000_000
MAX_DEPTH = 32

DataPath = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STEP = re.compile(r'\[(?P<index>\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]|\.?(?P<key>[A-Za-z0-9_-]+)')
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]+")
_MAX_DIGITS = 40
_TRUTH = {"true": True, "false": False}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# libyaml and editors disagree whether NEL (85), LS and PS end a line: with one of them, line numbers are uncertain
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
# what YAML 1.2 (editors) reads as a number and YAML 1.1 (PyYAML) reads as text
_NUMBER_IN_YAML_1_2 = re.compile(r"[-+]?[0-9]+|0o[0-7]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+")
_SYNTAX_HINTS = (
    ("could not find expected ':'", "write a colon and a space after the key"),
    ("did not find expected node content", "close the brackets that open before"),
    ("unexpected end of stream", "close the quote that opens in this line"),
    ("cannot start any token", "put the value in quotes"),
    ("expected <document start>", "remove what is after the end of the mapping"),
    ("hexdecimal number", "put the value in single quotes, in which a backslash is text"),
    ("unknown escape character", "put the value in single quotes, in which a backslash is text"),
)
_OPENS_BEFORE = (("',' or '}'", "{}"), ("',' or ']'", "[]"))
_KEY_IN_ROW = re.compile(r"(?P<dashes>(?: *- +)*)(?P<blanks> *)(?P<key>[^\s#:-][^:#]*):(?= |$)")
_BESIDE_KEYS = re.compile(
    r"[ \-]*(?P<strange>[^\S ]|[\u200b\u200c\u200d\u2060\ufeff])|[^:#'\"]*:(?P<after>[^\S \t\r\n])"
)
_NO_PLAIN_SPACE = re.compile(r"[^\S \t\r\n]|[\u200b\u200c\u200d\u2060\ufeff]")
_AFTER_A_QUOTE = re.compile(r""": +(?:"[^"]*"|'[^']*') *[^\s#,}\]]""")
_LOOKS_LIKE = re.compile(r" *(?P<dash>[\u2010-\u2015\u2212\uff0d]) ?\w|[ \-\w.]*(?P<colon>[\uff1a\ufe55\u2236])")


@dataclass(frozen=True)
class Ambiguous:
    """A scalar that YAML versions read differently, or not as intended; no field accepts it."""

    text: str
    reading: str


@dataclass(frozen=True)
class Refused:
    """Replaces a value that is reported already, so that nothing is reported about it twice."""


@dataclass(frozen=True, kw_only=True)
class Wording:
    """What messages call a kind of file: ``noun`` is what it describes, ``a_file`` the file with its article.

    ``example`` is its first line; ``when_empty`` and ``when_missing`` say what to do about such a file.
    """

    noun: str
    a_file: str
    example: str
    when_empty: str
    when_missing: str


ENVIRONMENT = Wording(
    noun="environment",
    a_file="an environment file",
    example="name: prod",
    when_empty="write at least name, account, region, network and hyperpod, or create a new file with"
    " 'hyperpod-cdk init NAME'",
    when_missing="create it with 'hyperpod-cdk init NAME'",
)


@dataclass
class Source:
    """A file as plain data (dict, list, str, int, float, bool, None) with the line of every value."""

    file: str
    data: object = None
    lines: dict[DataPath, int] = field(default_factory=dict)
    texts: dict[DataPath, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    incomplete: set[DataPath] = field(default_factory=set)

    def line_of(self, path: DataPath) -> int:
        """Return the line of ``path``; for a key that is absent, the line of the nearest parent that is present."""
        for length in range(len(path), -1, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return line
        return 1

    def written(self, path: DataPath) -> str | None:
        """Return the text of an unquoted scalar exactly as in the file."""
        return self.texts.get(path)

    def error(self, message: str, *, path: DataPath = (), line: int | None = None, rule: str) -> None:
        """Note an error about the text itself."""
        self.findings.append(
            Finding(
                severity=Severity.ERROR,
                message=message,
                path=render_path(path),
                file=self.file,
                line=line or self.line_of(path),
                rule=rule,
            )
        )


def render_path(path: DataPath) -> str:
    """Write a path as users read it: ``hyperpod.instance_groups[1].labels["example.com/team"]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def parse_path(text: str) -> DataPath | None:
    """Read what `render_path` wrote; None if the text is not a path."""
    path: list[str | int] = []
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            return None
        try:
            if step["index"] is not None:
                path.append(int(step["index"]))
            else:
                path.append(json.loads(step["quoted"]) if step["quoted"] is not None else step["key"])
        except ValueError:
            # a finding shows control characters and very long keys differently from JSON
            return None
        position = step.end()
    return tuple(path)


def read_source(text: str, file: str, wording: Wording = ENVIRONMENT) -> Source:
    """Read the text of one file; errors are in ``findings`` of the result.

    ``wording`` is how messages name the file. If the text cannot be read at all, ``data`` is a `Refused`. Aliases,
    merge keys and tags are refused: these files do not need them, and without them every value has one line and no file
    can expand to gigabytes.
    """
    source = Source(file=file, data=Refused())
    unreadable = _UNREADABLE.search(text)
    if unreadable:
        line = len(re.findall(r"\r\n|\r|\n", text[: unreadable.start()])) + 1
        source.error(
            f"holds the character U+{ord(unreadable.group()):04X}, which YAML does not allow; remove it",
            line=line,
            rule="unreadable_character",
        )
        return source
    try:
        _Reader(source, yaml.parse(text, Loader=yaml.CSafeLoader), wording).read()
    except _TooDeepError as error:
        source.data = Refused()
        source.error(
            f"is nested deeper than {MAX_DEPTH} levels; {wording.a_file} needs fewer than 10",
            line=error.line,
            rule="nesting_depth",
        )
    except yaml.MarkedYAMLError as error:
        source.data = Refused()
        last_line = len(re.findall(r"\r\n|\r|\n", text.rstrip("\r\n"))) + 1
        found = _syntax_finding(error, file=file, text=text, last_line=last_line)
        source.findings = [*(each for each in source.findings if each.line != found.line), found]
    return source


class _TooDeepError(Exception):
    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Reader:
    """Builds data from the parser's events; they carry the line of aliases, which composed nodes lose."""

    def __init__(self, source: Source, events: Iterator[yaml.Event], wording: Wording) -> None:
        self._source = source
        self._wording = wording
        self._events = events
        self._resolver = Resolver()

    def read(self) -> None:
        event = self._next()
        while isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            self._refuse_empty()
            return
        self._source.lines[()] = _line(event)
        data = self._value(event, ())
        self._next()
        after = self._next()
        if isinstance(after, yaml.DocumentStartEvent):
            self._source.error(
                f"holds a second YAML document; keep one {self._wording.noun} per file: move what follows"
                " the '---' line to a file of its own, and remove that line",
                line=_line(after),
                rule="one_document",
            )
        if data is None:
            self._refuse_empty()
            return
        if not isinstance(data, dict | Refused):
            self._source.error(
                f"must be a mapping of keys such as '{self._wording.example}', got {describe(data)}; start with the key"
                f" '{self._wording.example.partition(':')[0]}'",
                rule="mapping",
            )
            return
        self._source.data = data

    def _refuse_empty(self) -> None:
        self._source.error(f"is empty; {self._wording.when_empty}", line=1, rule="empty_file")

    def _next(self) -> yaml.Event:
        return next(self._events)

    def _value(self, event: yaml.Event, path: DataPath) -> object:
        if len(path) > MAX_DEPTH:
            raise _TooDeepError(_line(event))
        if isinstance(event, yaml.AliasEvent):
            self._source.error(
                f"aliases are not supported, got *{event.anchor}; write the value here",
                path=path,
                rule="no_aliases",
            )
            return Refused()
        tag: str | None = getattr(event, "tag", None)
        if tag is not None and tag != "!":
            self._skip(event)
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            self._source.error(
                f"tags are not supported, got {shown}; remove the tag, and put text in quotes",
                path=path,
                rule="no_tags",
            )
            return Refused()
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return self._scalar(event, path)

    def _mapping(self, path: DataPath) -> dict[str, object]:
        data: dict[str, object] = {}
        while not isinstance(key_event := self._next(), yaml.MappingEndEvent):
            line = _line(key_event)
            if not isinstance(key_event, yaml.ScalarEvent):
                self._skip(key_event)
                self._skip(self._next())
                self._source.error(
                    "a key must be plain text, got a list, a mapping or an alias; write 'key: value'",
                    path=path,
                    line=line,
                    rule="plain_keys",
                )
                continue
            value_event = self._next()
            key = key_event.value
            problem = self._key_problem(key_event, key, path, data)
            if problem is not None:
                message, rule = problem
                self._source.error(message, path=(*path, key) if key else path, line=line, rule=rule)
                self._skip(value_event)
                continue
            self._source.lines[(*path, key)] = line
            data[key] = self._value(value_event, (*path, key))
        return data

    def _key_problem(
        self, event: yaml.ScalarEvent, key: str, path: DataPath, data: dict[str, object]
    ) -> tuple[str, str] | None:
        if key == "<<" and event.implicit[0]:
            self._source.incomplete.add(path)
            return "merge keys are not supported; write the merged keys here", "no_aliases"
        if not key:
            return "a key is empty; write 'key: value'", "plain_keys"
        if strange := _NO_PLAIN_SPACE.search(key):
            return f"a key holds the {_named(strange.group())}; write plain spaces, or remove it", "plain_keys"
        if key in data:
            first = self._source.lines[(*path, key)]
            begins = path and isinstance(path[-1], int) and key == next(iter(data))
            fix = "write '- ' before it if another item begins here, else keep" if begins else "keep"
            return f"is written twice, first on line {first}; {fix} one of the two", "no_duplicate_keys"
        return None

    def _sequence(self, path: DataPath) -> list[object]:
        data: list[object] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            item_path = (*path, len(data))
            self._source.lines[item_path] = _line(event)
            data.append(self._value(event, item_path))
        return data

    def _scalar(self, event: yaml.Event, path: DataPath) -> object:
        assert isinstance(event, yaml.ScalarEvent)  # noqa: S101 - the only event left; narrows the type
        text = event.value
        if not event.implicit[0]:
            return text
        self._source.texts[path] = text
        return self._plain(text)

    def _plain(self, text: str) -> object:
        if text in _NULLS:
            return None
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        if len(text) <= _MAX_DIGITS:
            if _DECIMAL.fullmatch(text):
                return int(text)
            if _FRACTION.fullmatch(text):
                return float(text)
        tag = self._tag(text)
        reading = _reading(tag, text)
        return text if reading is None else Ambiguous(text, reading)

    def _tag(self, text: str) -> str:
        """Return YAML 1.1's name for what an unquoted scalar is: int, timestamp ..."""
        tag = self._resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # no hints
        return str(tag).rpartition(":")[2]

    def _skip(self, event: yaml.Event) -> None:
        """Skip one value with its contents, without recursion: the contents may be nested without limit."""
        depth = 0
        while True:
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth == 0:
                return
            event = self._next()


def describe(value: object) -> str:
    """Name a value in an error message: its kind, and its text if that is short."""
    if value is None:
        return "nothing"
    if isinstance(value, Ambiguous):
        return value.text
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _reading(tag: str, text: str) -> str | None:
    if tag == "bool":
        return "true or false"
    if tag == "timestamp":
        return "a date"
    if tag in {"int", "float"}:
        if ":" in text:
            return "a number to base 60"
        if text.lstrip("+-").startswith("0") and tag == "int":
            return {"x": "a hexadecimal number", "b": "a binary number"}.get(text.lstrip("+-")[1:2], "an octal number")
        return "a number"
    return "a number" if _NUMBER_IN_YAML_1_2.fullmatch(text) else None


def _syntax_finding(error: yaml.MarkedYAMLError, *, file: str, text: str, last_line: int) -> Finding:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or str(error)
    about = error.context or ""
    opened = next((pair for words, pair in _OPENS_BEFORE if words in problem), None)
    if error.context_mark and (opened or "quoted scalar" in about or "simple key" in about):
        # the parser notices it later, at the end of the file for a quote
        mark = error.context_mark
    line = min(mark.line + 1, last_line) if mark else 1
    rows = re.split(r"\r\n|\r|\n", text)
    line, hint = (
        _strange_character(rows[:line]) or _repair(rows, line) or (line, _syntax_hint(problem, rows[line - 1], opened))
    )
    return Finding(
        severity=Severity.ERROR, message=f"is not YAML: {problem}; {hint}", file=file, line=line, rule="yaml_syntax"
    )


def _strange_character(rows: Sequence[str]) -> tuple[int, str] | None:
    """Find the last row with a character next to its key that looks like one of YAML's; return its line and the fix."""
    for line in range(len(rows), 0, -1):
        row = rows[line - 1]
        beside, alike = _BESIDE_KEYS.match(row), _LOOKS_LIKE.match(row)
        if beside and (found := beside["strange"] or beside["after"]):
            if found == "\t":
                return line, "indent with spaces, not with a tab"
            instead = "a space" if found.isspace() else "nothing"
        elif alike:
            found = alike["dash"] or alike["colon"]
            instead = "'-' and a space" if alike["dash"] else "':' and a space"
        else:
            continue
        return line, f"write {instead} in place of the {_named(found)}"
    return None


def _named(character: str) -> str:
    return f"{unicodedata.name(character, 'character').lower()} (U+{ord(character):04X})"


def _repair(rows: Sequence[str], line: int) -> tuple[int, str] | None:
    """Return the line and the fix of the smallest change of one row after which the whole text is YAML; None if no such
    change is found.

    The mistake is in the row that the parser names or, if that is the first one after it that cannot follow, before it.
    """
    written = [n for n in range(line, 0, -1) if rows[n - 1].strip() and rows[n - 1].lstrip()[0] != "#"]
    named, around = written[:2], [_key_column(rows[n - 1]) for n in written[:3]]
    for at in named:
        row = rows[at - 1]
        for words, changed in _spaced(row):
            if changed != row and _is_yaml([*rows[: at - 1], changed, *rows[at:]]):
                return at, words
    is_one_between = len(around) == 3 and around[0] == around[2] != around[1]
    for at in reversed(named) if is_one_between else named:
        row = rows[at - 1].lstrip(" ")
        stands = len(rows[at - 1]) - len(row)
        columns = _columns(rows[: at - 1], row) | {len(each) - len(each.lstrip(" ")) for each in rows[line - 1 : line]}
        fits = [
            column
            for column in sorted(columns - {stands})
            if _is_yaml([*rows[: at - 1], " " * column + row, *rows[at:]])
        ]
        least = min((abs(column - stands) for column in fits), default=0)
        if near := [column for column in fits if abs(column - stands) == least]:
            return at, f"indent this line with {listing(near)} spaces"
    return None


def _key_column(row: str) -> int:
    return len(row) - len(row.lstrip(" -"))


def _spaced(row: str) -> Iterator[tuple[str, str]]:
    """Yield fixes of a row, and the row after each: what is missing between a key and its value, or after a dash."""
    yield "write a space after '-'", re.sub(r"^( *-)(?=[\w\"'])", r"\1 ", row)
    yield "write a colon and a space after the key", re.sub(r"^([ -]*[\w.-]+)(?: *[:=] *)(?=\S)", r"\1: ", row)
    yield "write a colon after the key", re.sub(r"^([ -]*[\w.-]+) *$", r"\1:", row)


def _is_yaml(rows: Sequence[str]) -> bool:
    try:
        for _ in yaml.parse("\n".join(rows), Loader=yaml.CSafeLoader):
            pass
    except yaml.YAMLError:
        return False
    return True


def _syntax_hint(problem: str, row: str, opened: str | None) -> str:
    if _AFTER_A_QUOTE.search(row):
        return "put the whole value in one pair of double quotes"
    if opened:
        if row.count(opened[0]) == row.count(opened[1]):
            return "put text that holds ': ', ',' or '#' in quotes"
        return f"close the {opened[0]}...{opened[1]} that opens in this line"
    if "mapping values are not allowed" in problem and re.search(r": .*: ", row):
        return "put text that holds ': ' in quotes"
    return next(
        (hint for part, hint in _SYNTAX_HINTS if part in problem),
        "check the indentation of this line and the line before",
    )


def _columns(rows: Sequence[str], row: str) -> set[int]:
    """Return the columns at which ``row`` can begin after other rows: of the keys, or of the dashes, that are open."""
    is_item = row.lstrip().startswith("- ")
    open_keys: list[tuple[int, bool]] = []
    for each in rows:
        if (key := _KEY_IN_ROW.match(each)) is None:
            continue
        dashes = [n for n, character in enumerate(key["dashes"]) if character == "-"]
        begins = dashes[0] if dashes else key.start("key")
        open_keys = [
            (column, is_dash)
            for column, is_dash in open_keys
            if column < begins or (dashes and column == begins and is_dash)
        ]
        open_keys += [(column, True) for column in dashes] + [(key.start("key"), False)]
    return {column for column, is_dash in open_keys if is_dash == is_item}
