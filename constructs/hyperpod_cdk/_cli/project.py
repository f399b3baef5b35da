"""A new project: about a dozen files that a team maintains; everything else comes with the installed package."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from hyperpod_cdk._cli.scaffold import SCHEMA, Answers, ScaffoldError, checked_text, scalar, write_all
from hyperpod_cdk.config.loading import FOLDER, SUFFIX
from hyperpod_cdk.config.schema import schema_text
from hyperpod_cdk.packaged_node import shipped

SAMPLE = Answers(name="prod", account="111122223333", region="us-east-1")
"""The environment of the README, which is also the default."""

_TEMPLATES = Path(__file__).parent / "project"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_OURS = ("hyperpod-cdk", "hyperpod-cdk-rehearsal")
SET_UP = "python3 -m venv .venv && .venv/bin/pip install --quiet --disable-pip-version-check ."
_OF_A_CLONE = {
    "make setup": SET_UP,
    "-e Makefile": "-e pyproject.toml",
    ".venv/bin/cdk": ".venv/bin/hyperpod-cdk cdk",
    # templates are only updated if the project already has them
    ".venv/bin/hyperpod-cdk templates": "test ! -d synthesized || .venv/bin/hyperpod-cdk templates",
    "docs/pull-requests.md lists": "hyperpod-cdk's docs/pull-requests.md lists",
}
"""Replacements in this repository's pipelines for a project without a Makefile."""


_PIPELINES: Mapping[str, Sequence[str]] = {
    "github": (
        ".github/workflows/review.yaml",
        ".github/workflows/deploy.yaml",
        ".github/workflows/deploy-environment.yaml",
        ".ci/post_review.py",
        ".ci/deployed_tool.py",
    ),
    "gitlab": (".gitlab-ci.yml", ".ci/post_review.py", ".ci/deployed_tool.py"),
}


def check_folder(folder: Path) -> str:
    """Return the project's name, which is its folder's; raises ScaffoldError if the folder cannot become a project."""
    name = Path(os.path.abspath(folder)).name  # noqa: PTH100 - a link is not followed: its name is what was given
    if not _NAME.fullmatch(name):
        raise ScaffoldError(
            f"DIR: the last part is the project's name: letters, digits and single . _ - between them, got {name!r};"
            " choose a name such as demo"
        )
    if re.sub(r"[-_.]+", "-", name).lower() in _OURS:
        raise ScaffoldError(f"DIR: {name!r} is a package that the project needs; choose a name such as demo")
    try:
        if not os.path.lexists(folder):
            return name
        if not folder.is_dir():
            raise ScaffoldError(f"DIR: {folder} is a file and is never overwritten; choose a new folder")
        # a cloned repository without a commit is also accepted
        there = sorted(each.name for each in folder.iterdir() if each.name != ".git")
    except OSError as error:
        raise ScaffoldError(f"DIR: {folder} cannot be read: {error.strerror or error}; choose another folder") from None
    if there:
        raise ScaffoldError(
            f"DIR: {folder} is not empty (it contains {there[0]}), and nothing is overwritten; choose a folder that is"
            " empty or does not exist, or add an environment to a project with 'hyperpod-cdk init NAME'"
        )
    return name


def write_project(folder: Path, answers: Answers, *, forge: str | None) -> list[str]:
    """Write a project into ``folder`` and return its files, sorted, relative to it.

    Raises ScaffoldError, before anything is written, if the folder or the answers are invalid.
    """
    texts = project_files(check_folder(folder), answers, folder, forge=forge)
    write_all({folder / name: text for name, text in texts.items()})
    return sorted(texts)


def project_files(project: str, answers: Answers, folder: Path, *, forge: str | None) -> dict[str, str]:
    """Return the text of each file of a project, by path."""
    words = {"project": project, "name": answers.name, "version": metadata.version("hyperpod-cdk")}
    environment = f"{FOLDER}/{answers.name}{SUFFIX}"
    settings = json.loads(shipped("cdk.json").read_text(encoding="utf-8"))
    files = {
        environment: _environment(answers, folder),
        SCHEMA.as_posix(): schema_text(),
        "app.py": shipped("app.py").read_text(encoding="utf-8"),
        "cdk.json": json.dumps({**settings, "app": "python app.py"}, indent=2) + "\n",
        "pyproject.toml": _template("pyproject", words),
        "review.yaml": _template("review.yaml"),
        ".gitignore": _template("gitignore"),
        "README.md": _template("README.md", words),
    }
    if forge is not None:
        files |= {name: _pipeline(name, answers.name) for name in _PIPELINES[forge]}
    return files


def _environment(answers: Answers, folder: Path) -> str:
    if replace(answers, name=SAMPLE.name) != SAMPLE:
        return checked_text(answers, folder, name_is="--name")
    text = _template("environment.yaml").replace(f"name: {SAMPLE.name}", f"name: {scalar(answers.name)}")
    return checked_text(answers, folder, text=text, name_is="--name")


def _template(name: str, words: Mapping[str, str] | None = None) -> str:
    text = (_TEMPLATES / name).read_text(encoding="utf-8")
    for word, value in (words or {}).items():
        text = text.replace(f"{{{{ {word} }}}}", value)
    return text


def _pipeline(name: str, environment: str) -> str:
    text = shipped(name).read_text(encoding="utf-8")
    for clone, project in _OF_A_CLONE.items():
        text = text.replace(clone, project)
    return text.replace("ENVIRONMENT: [prod]", f"ENVIRONMENT: [{environment}]")
