"""What a project adds to its environments; named in its pyproject.toml, which the app and every command read.

    [tool.hyperpod-cdk.extensions]
    results = "ours:RESULTS"

``results`` is the extension's name and its section in environment files. ``ours:RESULTS`` is a module next to app.py
(or an installed one) and the name of its ``Extension``. A command that judges files of strangers takes the names only
and runs none of their code: ``activate(project, runs=False)``.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
import threading
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, ValidationError, WrapValidator, create_model

from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.section import Section
from hyperpod_cdk.config.source import MAX_BYTES
from hyperpod_cdk.file_reading import read_text, reason_of, resolved

FILE = "pyproject.toml"
"""The file in which a project names its extensions."""

_TABLE = "tool.hyperpod-cdk.extensions"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

OwnSection = TypeVar("OwnSection", bound=Section)


class ExtensionError(RuntimeError):
    """An extension cannot be used, or raised an exception; the text names it, with its own traceback."""


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What a project adds.

    ``section``: the model of its section of environment files; an environment has it by stating the section.
    ``constructs``: called with the stage (``HyperPodEnvironment``) and the section of each environment that states it,
    without a ``section`` with None and for every environment. Import aws_cdk within it: 'validate' starts no Node.js.
    ``checks``: of preflight, each a function of the case and of AWS that gives findings (``checks.model.error``,
    ``warning``), named for its rule, or a whole ``checks.model.Check``. ``rules``: ``templates.rules.Rule``, judged
    over the templates of every environment.
    ``review``: a section of the report of 'hyperpod-cdk review', by the extension's name: called in synthesis with the
    finished templates (``templates.rules.Context``), gives what -> its value as text; the review shows what differs
    between its two sides. The first line of its docstring says what the section shows.
    ``job_kinds``: ``kind`` of job files -> the function that writes the manifests, called with ``workloads.plan.Plan``;
    such a job states name and image as training does. ``lifecycle_steps``: scripts that nodes run with the library's,
    named like those (``60_ours.sh``); all run in the order of their names.
    ``name`` is that of pyproject.toml, which the loader fills in.
    """

    section: type[Section] | None = None
    constructs: Callable[[Any, Any], object] | None = None
    checks: Sequence[Callable[[Any, Any], Iterable[Any]] | Any] = ()
    rules: Sequence[Any] = ()
    review: Callable[[Any], Mapping[str, str]] | None = None
    job_kinds: Mapping[str, Callable[[Any], Sequence[Mapping[str, Any]]]] = field(default_factory=dict)
    lifecycle_steps: Sequence[Path] = ()
    name: str = ""

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Raise what the extension's code raises as an ExtensionError with its traceback."""
        with _blamed(self.name):
            yield


@dataclass
class _Active:
    """The extensions of this process's project; None for one whose code is not run."""

    found: Mapping[str, Extension | None] = field(default_factory=dict)
    model: type[Environment] = Environment


_ACTIVE = _Active()


def activate(project: Path, *, runs: bool = True) -> None:
    """Load the extensions of ``project`` in place of earlier ones; with ``runs`` False, only their names.

    Raises ExtensionError where pyproject.toml names one that cannot be loaded.
    """
    found = {name: _loaded(project, name, target) if runs else None for name, target in _named(project).items()}
    _ACTIVE.found = MappingProxyType(found)
    _ACTIVE.model = _model(found)


def active() -> tuple[Extension, ...]:
    """Return the extensions whose code runs here, in the order of pyproject.toml."""
    return tuple(each for each in _ACTIVE.found.values() if each is not None)


def environment_model() -> type[Environment]:
    """Return the model of environment files, with the section of each extension."""
    return _ACTIVE.model


def lifecycle_steps() -> tuple[Path, ...]:
    """Return the lifecycle scripts of every extension, in the order of their names."""
    return tuple(sorted((Path(step) for each in active() for step in each.lifecycle_steps), key=lambda step: step.name))


def section_of(environment: Environment, kind: type[OwnSection]) -> OwnSection | None:
    """Return an extension's section of an environment, None where the file does not state it."""
    found = (getattr(environment, each.name, None) for each in active() if each.section is kind)
    return next((each for each in found if isinstance(each, kind)), None)


def builders(environment: Environment) -> Iterator[tuple[Extension, Callable[[Any], object]]]:
    """Yield the extensions whose constructs an environment gets, each with the function that creates them in a
    stage."""
    for each in active():
        section = None if each.section is None else getattr(environment, each.name)
        if each.constructs is not None and (each.section is None or section is not None):
            yield each, _given(each.constructs, section)


def _given(constructs: Callable[[Any, Any], object], section: Section | None) -> Callable[[Any], object]:
    return lambda stage: constructs(stage, section)


def _named(project: Path) -> Mapping[str, str]:
    path = project / FILE
    try:
        text = read_text(path, most=MAX_BYTES)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise ExtensionError(f"{FILE}: cannot be read, so its extensions are unknown: {told}") from None
    # most files name none, and reading TOML takes as long as everything else here
    if "hyperpod-cdk.extensions" not in text:
        return {}
    try:
        table = tomllib.loads(text)["tool"]["hyperpod-cdk"]["extensions"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise ExtensionError(f"{FILE}: [{_TABLE}] cannot be read: {reason_of(error)}") from None
    if not isinstance(table, dict):
        raise ExtensionError(f"{FILE}: [{_TABLE}]: must be a table of names and targets, got {table!r}")
    for name, target in table.items():
        if not _NAME.fullmatch(name) or name in Environment.model_fields:
            taken = "a section of hyperpod-cdk's own" if name in Environment.model_fields else repr(name)
            raise ExtensionError(
                f"{FILE}: [{_TABLE}] {name}: must be lower-case letters, digits and _, the name of a section that"
                f" environment files do not have yet, got {taken}; rename it"
            )
        if not isinstance(target, str) or not _TARGET.fullmatch(target):
            raise ExtensionError(
                f"{FILE}: [{_TABLE}] {name}: must be a module and the name of an Extension in it, got {target!r};"
                f' write {name} = "ours:{name.upper()}"'
            )
    return {str(name): str(target) for name, target in table.items()}


def _loaded(project: Path, name: str, target: str) -> Extension:
    module, _, attribute = target.partition(":")
    place = f"{FILE}: [{_TABLE}] {name}: {target}"
    with _blamed(name):
        try:
            own = _module(resolved(project), module)
        except ModuleNotFoundError as error:
            # a failed import inside their module is their own error, with its traceback
            if not f"{module}.".startswith(f"{error.name}."):
                raise
            raise ExtensionError(
                f"{place}: no module {error.name} in {project} and none is installed{_near(error.name, project)}"
            ) from None
    found = getattr(own, attribute, None)
    if not isinstance(found, Extension):
        got = f"{module} has no such name" if found is None else f"got {type(found).__name__}"
        there = [each for each, value in vars(own).items() if isinstance(value, Extension)]
        fix = f'write {name} = "{module}:{there[0]}"' if there else f"write {attribute} = Extension(...) in {module}"
        raise ExtensionError(f"{place}: must be an Extension, {got}; {fix}")
    if found.section is not None and not (inspect.isclass(found.section) and issubclass(found.section, Section)):
        raise ExtensionError(
            f"the extension {name}: section must be a subclass of hyperpod_cdk.config.Section, which refuses keys"
            f" that it does not know, got {found.section!r}"
        )
    for part, (wanted, fix, is_one) in _PARTS.items():
        if not is_one(given := getattr(found, part)):
            got = f"{given!r}"[:_LONGEST]
            raise ExtensionError(f"the extension {name}: {part} must be {wanted}, got {got}; write {part}={fix}")
    steps = tuple(resolved(project) / step for step in found.lifecycle_steps)
    return replace(found, name=name, lifecycle_steps=steps)


def _is_list(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, list | tuple) and all(map(of, given))


_LONGEST: Final = 80
_PARTS: Final[Mapping[str, tuple[str, str, Callable[[Any], bool]]]] = {
    "constructs": (
        "a function of the stage and of the section",
        "NAME",
        lambda given: given is None or callable(given),
    ),
    "checks": (
        "a list of functions of the case and of AWS, or of checks.model.Check",
        "[NAME]",
        _is_list(lambda each: callable(getattr(each, "run", each)) and _is_named(each)),
    ),
    "rules": (
        "a list of templates.rules.Rule",
        "[NAME]",
        _is_list(lambda each: isinstance(getattr(each, "id", None), str) and callable(getattr(each, "check", None))),
    ),
    "review": (
        "a function of the finished templates",
        "NAME",
        lambda given: given is None or callable(given),
    ),
    "job_kinds": (
        "a map from the kind to a function of the plan",
        '{"evaluation": NAME}',
        lambda given: (
            isinstance(given, Mapping)
            and all(isinstance(kind, str) and callable(build) for kind, build in given.items())
        ),
    ),
    "lifecycle_steps": (
        "a list of files",
        '[Path(__file__).parent / "60_ours.sh"]',
        _is_list(lambda each: isinstance(each, str | Path)),
    ),
}
"""What each part must be, its fix, and its test: code that uses a part need not check it again."""


def _is_named(each: Any) -> bool:
    return isinstance(getattr(each, "name", None) or getattr(each, "__name__", None), str)


def _near(module: str | None, project: Path) -> str:
    names = [each.stem for each in project.glob("*.py")]
    near = difflib.get_close_matches(module or "", names, n=1)
    return f"; did you mean {near[0]}?" if near else f"; write {module}.py there, or correct the name"


def _module(project: Path, name: str) -> Any:
    top = name.partition(".")[0]
    own = [path for path in (project / f"{top}.py", project / top) if path.exists()]
    there = getattr(sys.modules.get(top), "__file__", None)
    if own and there is not None and not Path(there).is_relative_to(project):
        # a process that worked on another project before
        for each in [each for each in sys.modules if each == top or each.startswith(f"{top}.")]:
            del sys.modules[each]
    if str(project) not in sys.path:
        sys.path.insert(0, str(project))
    elif own:
        sys.path.remove(str(project))
        sys.path.insert(0, str(project))
    return importlib.import_module(name)


def _model(found: Mapping[str, Extension | None]) -> type[Environment]:
    fields: dict[str, Any] = {}
    for name, extension in found.items():
        if extension is None:
            fields[name] = (Any, None)
        elif extension.section is not None:
            told = inspect.getdoc(extension.section) or f"The section of the extension {name}."
            own: Any = Annotated[extension.section, WrapValidator(_judging(name))]
            fields[name] = (own | None, Field(default=None, description=told))
    if not fields:
        return Environment
    return create_model("Environment", __base__=Environment, __doc__=Environment.__doc__, **fields)


def _judging(name: str) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """Raise a validator's exception as the extension's; what the validator refuses becomes a finding as usual."""

    def judged(value: Any, validate: Callable[[Any], Any]) -> Any:
        refused: ValidationError | None = None
        with _blamed(name):
            try:
                return validate(value)
            except ValidationError as error:
                refused = error
        raise refused

    return judged


class _Aside:
    """Standard output while an extension runs: what the extension prints goes to standard error, apart from the answer.

    Other threads may run meanwhile; their output is not redirected.
    """

    runs: Final[ContextVar[bool]] = ContextVar("runs", default=False)
    _lock: Final = threading.Lock()
    _count = 0
    _before: Any = None

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if self.runs.get() else self._stream, name)

    @classmethod
    @contextmanager
    def printed(cls) -> Iterator[None]:
        """Print to standard error inside the block."""
        with cls._lock:
            cls._count += 1
            if cls._count == 1:
                cls._before, sys.stdout = sys.stdout, cls(sys.stdout)
        token = cls.runs.set(True)
        try:
            yield
        finally:
            cls.runs.reset(token)
            with cls._lock:
                cls._count -= 1
                if not cls._count:
                    sys.stdout = cls._before


@contextmanager
def _blamed(name: str) -> Iterator[None]:
    try:
        with _Aside.printed():
            yield
    except ExtensionError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and isinstance(error.__context__, ExtensionError):
            # an app.py that is named for an extension ran on its own, and has printed why it ends
            raise
        # the frames of this module say nothing about what is wrong in theirs
        own = error.__traceback__
        while own is not None and _is_no_extension(own.tb_frame.f_code.co_filename):
            own = own.tb_next
        told = "".join(traceback.format_exception(type(error), error, own))
        raise ExtensionError(f"{told}the extension {name} of {FILE} raised this, not hyperpod-cdk") from None


def _is_no_extension(file: str) -> bool:
    return file in (__file__, _CONTEXT_FILE, importlib.__file__) or file.startswith("<frozen importlib")


_CONTEXT_FILE = inspect.getsourcefile(contextmanager) or ""
