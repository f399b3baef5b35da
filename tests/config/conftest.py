"""A valid environment file, and functions that make it invalid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import EnvironmentFileError, LoadedEnvironment, load_environment
from hyperpod_cdk.findings import Finding

HERE = Path(__file__).parent
FILE = Path("environments/prod.yaml")
TODAY = date(2026, 11, 20)

Load = Callable[[str], LoadedEnvironment]
Refuse = Callable[[str], tuple[Finding, ...]]


@pytest.fixture(scope="session")
def base() -> str:
    """Return the text of a valid file with every section."""
    return (HERE / "base.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def changed(base: str) -> Callable[[Mapping[str, str]], str]:
    """Return the valid file with replaced texts, each of which must be in it once."""

    def change(texts: Mapping[str, str]) -> str:
        text = base
        for old, new in texts.items():
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
            text = text.replace(old, new)
        return text

    return change


@pytest.fixture(scope="session")
def load() -> Load:
    """Loads text as environments/prod.yaml on a fixed day."""

    @cache
    def answer(text: str) -> LoadedEnvironment | EnvironmentFileError:
        try:
            return load_environment(FILE, text=text, today=TODAY)
        except EnvironmentFileError as error:
            return error

    def load_text(text: str) -> LoadedEnvironment:
        answered = answer(text)
        if isinstance(answered, EnvironmentFileError):
            raise answered
        return answered

    return load_text


@pytest.fixture(scope="session")
def refuse(load: Load) -> Refuse:
    """Returns the findings for which a text is refused."""

    def refuse_text(text: str) -> tuple[Finding, ...]:
        with pytest.raises(EnvironmentFileError) as caught:
            load(text)
        return caught.value.findings

    return refuse_text


@cache
def rows_of(name: str) -> Mapping[str, Any]:
    """Return a table as section -> case -> row."""
    table: Mapping[str, Any] = yaml.load((HERE / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return table
