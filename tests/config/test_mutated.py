"""Broken files of every kind that the command reads are refused in lines; `make fuzz` tries many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import mutated

FOUND: dict[str, tuple[str, bytes]] = {
    "a path of a key that findings show escaped": ("environment", b'name: prod\ntags: {"\\x85": a}\n'),
    "a number of thousands of digits": ("environment", b"name: prod\nnetwork: {nat_gateways: " + b"9" * 5000 + b"}\n"),
    "a word of 70 kB": ("environment", b"name: prod\n" + b"a" * 70_000 + b": 1\n"),
    "zones of endpoints in a network that lost its own": (
        "environment",
        b"name: prod\nnetwork: {egress: closed, availability_zones: {}, endpoints: {zones: [use1-az4]}}\n",
    ),
    "brackets nested so deeply that PyYAML takes seconds": ("template", b"Resources: " + b"[" * 3000 + b"\n"),
    "brackets of an account file": ("account", b"quotas: " + b"[" * 3000 + b"\n"),
    "a template with keys that stand twice, over which the engine took 20 s": (
        "template",
        b"Resources:\n  A:\n    Type: AWS::S3::Bucket\n    Properties: {}\n    Properties: {}\n",
    ),
    "an exception of a review that is no exception": (
        "review",
        b"exceptions: [{kind: access, resource: !!python/object:os.system x, sentence: s, reason: r, owner: o}]\n",
    ),
    "a lock whose YAML takes three lines to refuse": ("charts", b"repository: a: b\n"),
    "manifests nested without end": ("manifests", b"apiVersion: v1\nkind: List\nitems: " + b"[" * 3000 + b"\n"),
    "manifests of a number of thousands of digits": (
        "manifests",
        b"apiVersion: batch/v1\nkind: Job\nspec: {parallelism: " + b"9" * 5000 + b"}\n",
    ),
    "manifests whose alias stands inside of itself": ("manifests", b"apiVersion: v1\nkind: Job\nspec: &x {a: *x}\n"),
    "an account file that is not UTF-8": ("account", b"quotas: \xff\xfe\n"),
}
"""Files that were met with an exception, or with minutes of silence, once."""


def test_broken_files(tmp_path: Path) -> None:
    seed = 15
    print(f"seed {seed}")
    for name, text, kind in mutated.cases(tmp_path / "project", count=500, seed=seed):
        try:
            mutated.looked_at(tmp_path, text, kind)
        except Exception as error:
            error.add_note(f"{name}, seed {seed}: {text[:2000]!r}")
            raise


@pytest.mark.parametrize("found", FOUND)
def test_what_was_found(tmp_path: Path, found: str) -> None:
    name, text = FOUND[found]
    kind = mutated.kinds(tmp_path / "project")[name]
    mutated.looked_at(tmp_path, text, kind)
