"""A report holds for what it compared: the deployed stacks and the assembly, each by its template."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hyperpod_cdk.review.standing import digest_of, fingerprints, outdated
from hyperpod_cdk.templates.assembly import Assembly, AssemblyError, Stack

NETWORK = Stack(name="dev-network", template={"Resources": {"A": {"Type": "T"}}}, account="1", region="r")
STORAGE = replace(NETWORK, name="dev-storage")
BOTH = Assembly(environment="dev", stacks=(NETWORK, STORAGE))
CHANGED = replace(NETWORK, template={"Resources": {"A": {"Type": "T", "Properties": {"P": 1}}}})


def report(folder: Path, base: Assembly, head: Assembly, label: str = "deployed") -> Path:
    file = folder / "report.json"
    sides = {"base": {"label": label, "stacks": fingerprints(base)}, "head": {"stacks": fingerprints(head)}}
    file.write_text(json.dumps(sides), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("base", "head", "said"),
    [
        (BOTH, BOTH, []),
        # the order of keys is none of CloudFormation's business
        (replace(BOTH, stacks=(STORAGE, NETWORK)), BOTH, []),
        (
            replace(BOTH, stacks=(CHANGED, STORAGE)),
            BOTH,
            ["dev-network: the deployed environment differs from the review"],
        ),
        (
            replace(BOTH, stacks=(NETWORK,)),
            BOTH,
            ["dev-storage: the deployed environment had this stack at the review, but does not have it now"],
        ),
        (
            replace(BOTH, stacks=(NETWORK, STORAGE, replace(NETWORK, name="dev-x"))),
            BOTH,
            ["dev-x: the deployed environment has this stack now, but did not have it at the review"],
        ),
        (
            BOTH,
            replace(BOTH, stacks=(CHANGED, replace(STORAGE, region="s"))),
            [
                "dev-network: the environment to deploy differs from the review",
                "dev-storage: the environment to deploy differs from the review",
            ],
        ),
    ],
)
def test_what_is_another_is_named(tmp_path: Path, base: Assembly, head: Assembly, said: list[str]) -> None:
    assert outdated(report(tmp_path, BOTH, BOTH), base, head) == said


def test_what_is_no_report_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(AssemblyError, match=r"report\.json: compares with main, not with the deployed stacks$"):
        outdated(report(tmp_path, BOTH, BOTH, "main"), BOTH, BOTH)
    for text in ("{}", "[]", "{", '{"base": {"label": "deployed"}, "head": {}}'):
        (tmp_path / "report.json").write_text(text, encoding="utf-8")
        with pytest.raises(
            AssemblyError, match=r"report\.json: not a report of 'hyperpod-cdk review --out report\.json'"
        ):
            outdated(tmp_path / "report.json", BOTH, BOTH)


def test_the_digest_of_an_assembly_is_of_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "asset.a").mkdir()
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    (tmp_path / "asset.a" / "index.py").write_text("a", encoding="utf-8")
    first = digest_of(tmp_path)
    assert digest_of(tmp_path) == first
    (tmp_path / "asset.a" / "index.py").write_text("b", encoding="utf-8")
    second = digest_of(tmp_path)
    (tmp_path / "asset.a" / "index.py").rename(tmp_path / "asset.a" / "main.py")
    third = digest_of(tmp_path)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "a.zip").touch()
    assert len({first, second, third, digest_of(tmp_path)}) == 4
