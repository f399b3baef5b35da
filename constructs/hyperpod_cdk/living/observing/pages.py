"""Bundles as text and JSON, their JSON Schema, and the reading of a bundle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from hyperpod_cdk.file_reading import read_text
from hyperpod_cdk.living.observing.model import VERSION, Bundle
from hyperpod_cdk.review.pages.wording import visible, wrapped

LARGEST: Final = 8_000_000
"""The largest bundle in bytes: that of prod has about 60 KB."""


class BundleError(ValueError):
    """A sentence: a file is not a bundle, or is one of another version."""


def text(bundle: Bundle) -> str:
    """Return the deviations for a terminal of 80 columns; the caller adds what was not read."""
    lines = wrapped(bundle.verdict)
    for each in bundle.deviations:
        lines += ["", *wrapped(f"{each.table}: {each.row}")]
        lines += wrapped(f"assumed   {each.assumed}", indent="  ", hanging="            ")
        lines += wrapped(f"observed  {each.observed}", indent="  ", hanging="            ")
    return "\n".join(visible(line) for line in lines) + "\n"


def read_bundle(path: Path) -> Bundle:
    """Read a bundle of a user. Raises BundleError with one sentence that names the file."""
    try:
        document = json.loads(read_text(path, most=LARGEST), parse_constant=_no_number)
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {_line(error.strerror or error)}") from None
    except UnicodeDecodeError as error:
        raise BundleError(f"{path}: cannot be read: {_line(error)}") from None
    except RecursionError:
        raise BundleError(f"{path}: is not a bundle: it is nested too deeply") from None
    except ValueError as error:
        raise BundleError(f"{path}: is not complete JSON: {_line(error)}") from None
    if not isinstance(document, dict) or "version" not in document:
        raise BundleError(f"{path}: is not a bundle of 'hyperpod-cdk observe'")
    if document["version"] != VERSION or isinstance(document["version"], bool):
        raise BundleError(
            f"{path}: is a bundle of version {visible(str(document['version']))[:40]}, and this command reads"
            f" {VERSION}; "
            "use the hyperpod-cdk that wrote it, or run observe again"
        )
    try:
        return Bundle.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BundleError(f"{path}: is not a bundle: {visible(where)[:120]}: {_line(first['msg'])}") from None


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _line(error: object) -> str:
    return visible(" ".join(str(error).split()))[:200]
