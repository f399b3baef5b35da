"""Wrong words for every argument and option of every verb: a sentence that names it, exit code 1 or 2, no traceback."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.test_words import VERBS

NOBODY = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
}
RIGHT = {
    "name": "lab",
    "directory": "demo",
    "environment": "dev",
    "group": "a10g",
    "plan": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p",
    "nodes": "i-0123456789abcdef0",
    "node": "i-0123456789abcdef0",
    "jobs": "job.yaml",
    "heads": "heads",
}
BESIDE = {
    "init": {"--region": "us-east-1", "--account": "111122223333"},
    "new": {
        "--region": "us-east-1",
        "--account": "111122223333",
        "--instance-type": "ml.p5.48xlarge",
        "--capacity": "spot",
    },
    "import": {"--name": "lab", "--cluster": "theirs", "--region": "us-east-1", "--account": "111122223333"},
    "job render": {"--group": "a10g", "--kind": "nccl"},
    "plans search": {"--instance-type": "ml.p5.48xlarge", "--count": "1", "--region": "us-east-1", "--hours": "24"},
    "plans extend": {"--plan": "p"},
}
"""What a verb needs beside the wrong word, so that it comes to look at it."""

WRONG = ("", "a\nb 😀", "-1", "9" * 23, "folder")
NO_FOLDERS = ("a\nb 😀", "-1", "9" * 23)

_LINE = 2_000
# what is written or looked at may be called so, or there is no such thing
MAY_BE = {
    "new DIRECTORY": {"9" * 23, "folder"},
    "new --name": {"folder"},
    "new --team": {"9" * 23, "folder"},
    "init NAME": {"folder"},
    "init --team": {"9" * 23, "folder"},
    "job render --name": {"folder"},
    "job render --namespace": {"9" * 23, "folder"},
    "job render --image": {"9" * 23, "folder"},
    "schema --out": {"a\nb 😀", "-1", "9" * 23},
    "image render --out": {"a\nb 😀", "-1", "9" * 23, "folder"},
    "job render --out": {"a\nb 😀", "-1", "9" * 23},
    "image render --program": {""},
    "image render --project": set(NO_FOLDERS),
    # a cost that is not known is told as such
    "fleet sums --heads": {"", "folder"},
}


@pytest.mark.examples
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "cdk"])
def test_wrong_words_are_one_sentence(run: Run, workspace: Path, verb: str) -> None:
    (workspace / "cdk.json").write_text("{}", encoding="utf-8")
    accepted: dict[str, set[str]] = {}
    for shown, value, words in rows(verb):
        # each finds the project as the first one did
        for there in (each for each in workspace.iterdir() if each.name not in {"environments", "cdk.json"}):
            shutil.rmtree(there) if there.is_dir() else there.unlink()
        for name in ("folder", "heads"):
            (workspace / name).mkdir()
        (workspace / "environments" / "lab.yaml").unlink(missing_ok=True)
        done = run(*words, **NOBODY)
        assert done.returncode in {0, 1, 2}, words
        assert all(len(line) < _LINE for line in done.stderr.splitlines()), words
        if done.returncode == 0:
            accepted.setdefault(f"{verb} {shown}", set()).add(value)
        else:
            assert done.stdout + done.stderr, words
    surprising = {place: values - MAY_BE.get(place, set()) for place, values in accepted.items()}
    assert {place: values for place, values in surprising.items() if values} == {}


def rows(verb: str) -> Iterator[tuple[str, str, list[str]]]:
    """Give each argument and option of a verb with a wrong value, and the words of the command line."""
    parameters = VERBS[verb].params
    for wrong in parameters:
        if wrong.name == "help" or getattr(wrong, "is_flag", False):
            continue
        shown = wrong.name.upper() if wrong.param_type_name == "argument" else wrong.opts[-1]
        for value in WRONG if shown != "--project" else NO_FOLDERS:
            options = {each.opts[-1]: RIGHT[each.name] for each in parameters if _is_needed(each, "option")}
            options |= BESIDE.get(verb, {})
            if shown == "SOURCE":
                del options["--cluster"]
            if wrong.param_type_name == "option":
                options[shown] = value
            words = [
                value if each is wrong else RIGHT[each.name]
                for each in parameters
                if each.param_type_name == "argument" and (each.required or each is wrong)
            ]
            yield shown, value, [*verb.split(), *(f"{each}={given}" for each, given in options.items()), "--", *words]


def _is_needed(parameter: Any, kind: str) -> bool:
    return bool(parameter.param_type_name == kind and parameter.required)
