"""The sections of extensions on finished templates in a review: written next to the assembly, read from both sides."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperpod_cdk.file_reading import read_text
from hyperpod_cdk.templates.assembly import Assembly, read_assembly
from hyperpod_cdk.templates.assets import MOST_BYTES

if TYPE_CHECKING:
    from hyperpod_cdk.config.extensions import Extension
    from hyperpod_cdk.templates.rules import Context

FILE = "hyperpod-cdk.review.json"
"""Next to manifest.json: environment -> extension -> the rows of its section."""

MOST_ROWS = 500
LONGEST = 500
"""Limits of one section's rows, and of one text's characters: people read the page."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,60}")


def write_sections(folder: Path, environments: list[str]) -> None:
    """Get the section of each environment in the cloud assembly ``folder`` from every extension with a ``review``.

    Raises ExtensionError if one raises, or returns something other than texts.
    """
    from hyperpod_cdk.config.extensions import active  # noqa: PLC0415 - reading sections needs no extension
    from hyperpod_cdk.templates.rules import Context  # noqa: PLC0415 - as above

    asked = [extension for extension in active() if extension.review is not None]
    if not asked:
        return
    found = {}
    for environment in environments:
        context = Context(read_assembly(folder, environment))
        found[environment] = {extension.name: _section(extension, context) for extension in asked}
    (folder / FILE).write_text(json.dumps(found, indent=1), encoding="utf-8")


def read_sections(assembly: Assembly) -> Mapping[str, tuple[str, Mapping[str, str]]] | None:
    """Return extension -> the docstring and the rows of its section; None if the side has no assembly or it cannot be
    read.

    The code of that side wrote it: everything except texts of limited length is omitted.
    """
    if assembly.folder is None or not (assembly.folder / "manifest.json").is_file():
        return None
    try:
        written = json.loads(read_text(assembly.folder / FILE, most=MOST_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    own = written.get(assembly.environment) if isinstance(written, dict) else None
    if not isinstance(own, dict):
        return {}
    return {
        str(name): (str(section.get("says", ""))[:LONGEST], _texts(section.get("rows")))
        for name, section in own.items()
        if isinstance(section, dict) and _NAME.fullmatch(str(name))
    }


def _section(extension: Extension, context: Context) -> dict[str, Any]:
    from hyperpod_cdk.config.extensions import ExtensionError  # noqa: PLC0415 - as above

    assert extension.review is not None  # noqa: S101 - asked for those alone
    with extension.blamed():
        rows = dict(extension.review(context))
    wrong = [what for what, value in rows.items() if not (_is_text(what) and _is_text(value))]
    if wrong or len(rows) > MOST_ROWS:
        got = f"{wrong[0]!r}: {rows[wrong[0]]!r}"[:LONGEST] if wrong else f"{len(rows)} rows"
        raise ExtensionError(
            f"the extension {extension.name}: review must return at most {MOST_ROWS} rows, each with two texts of at "
            f"most {LONGEST} characters, got {got}; shorten it, or convert numbers with str()"
        )
    says = (inspect.getdoc(extension.review) or "").partition("\n")[0]
    return {"says": says, "rows": rows}


def _texts(rows: object) -> dict[str, str]:
    if not isinstance(rows, dict):
        return {}
    return {what: value for what, value in list(rows.items())[:MOST_ROWS] if _is_text(what) and _is_text(value)}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST
