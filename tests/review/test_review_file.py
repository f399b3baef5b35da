"""``review.yaml``: what it may say, what is refused with its line, and whose file decides."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
import yaml

from hyperpod_cdk.config.documents import DocumentError
from hyperpod_cdk.review.model import ReasonKind
from hyperpod_cdk.review.review_file import (
    NO_RULES,
    Approvers,
    Kind,
    decided,
    read_rules,
    rules_schema,
    rules_schema_text,
)

GIT = shutil.which("git") or "git"

WHOLE = """\
thresholds: { monthly_increase_usd: 250.5 }
approvers:
  access: [security]
  review: [security, "team/leads"]
default_approvers: [platform]
exceptions:
  - kind: access
    resource: prod-foundation / role on-call
    sentence: Role on-call may enter EKS cluster *
    reason: the rota
    owner: security
    expires: 2027-03-31
"""
ENTRY = (
    "exceptions:\n  - kind: access\n    resource: a\n    sentence: b\n    reason: c\n    owner: d\n    expires: {}\n"
)


def test_a_whole_file() -> None:
    rules = read_rules(Path("review.yaml"), text=WHOLE)
    assert rules.thresholds.monthly_increase_usd == 250.5
    assert rules.approvers_of(ReasonKind.REVIEW_FILE) == ("security", "team/leads")
    assert rules.approvers_of(ReasonKind.COST) == ("platform",)
    assert rules.exceptions[0].last_day.isoformat() == "2027-03-31"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("thresholds:\n  monthly: 5\n", 2, "monthly"),
        ("approver: {}\n", 1, "approver"),
        ("approvers:\n  acces: [a]\n", 2, "acces"),
        ("thresholds: {}\nthresholds: {}\n", 2, "thresholds"),
        ("thresholds:\n  monthly_increase_usd: -1\n", 2, "monthly_increase_usd"),
        ("thresholds:\n  monthly_increase_usd: .inf\n", 2, "monthly_increase_usd"),
        (ENTRY.format("2027-02-30"), 7, "2027-03-31"),
        (ENTRY.format("31.03.2027"), 7, "expires"),
        (ENTRY.format("1806451200"), 7, "expires"),
        (ENTRY.format("2027-03-31T00:00:00"), 7, "expires"),
        (ENTRY.format("never"), 7, "expires"),
        (
            "exceptions:\n  - kind: access\n    resource: a\n    sentence: b\n    owner: d\n    expires: 2027-03-31\n",
            2,
            "reason",
        ),
        ("exceptions:\n  - kind: everything\n", 2, "everything"),
        (ENTRY.replace("access", "review").format("2027-03-31"), 2, "cannot be excepted"),
        ("default_approvers: ['<script>']\n", 1, "default_approvers"),
        ("- a\n", 1, "mapping"),
        ("", 1, "thresholds"),
        ("a: &x 1\nb: *x\n", 2, "b"),
        ("a: [\n", 1, ""),
    ],
)
def test_what_is_refused(text: str, line: int, said: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_rules(Path("review.yaml"), text=text)
    findings = refused.value.findings
    assert any(said in f"{each.path} {each.message}" for each in findings)
    assert {each.file for each in findings} == {"review.yaml"}
    assert line in {each.line for each in findings}


def test_every_kind_of_reason_has_its_word() -> None:
    assert get_args(Kind) == tuple(each.value for each in ReasonKind) == tuple(Approvers.model_fields)


def test_the_schema_takes_what_the_reader_takes() -> None:
    jsonschema.Draft202012Validator.check_schema(rules_schema())
    jsonschema.validate(yaml.safe_load(WHOLE.replace("2027-03-31", "'2027-03-31'")), rules_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"approver": {}}, rules_schema())
    committed = Path(__file__).parents[2] / "schemas" / "review.schema.json"
    assert committed.read_text(encoding="utf-8") == rules_schema_text()
    assert json.loads(rules_schema_text())["additionalProperties"] is False


def committed(project: Path, text: str | None) -> str:
    """Commit ``review.yaml`` with this content, without it for None, and give the commit."""
    file = project / "review.yaml"
    if text is None:
        file.unlink(missing_ok=True)
    else:
        file.write_text(text, encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["add", "-A"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([GIT, "-C", str(project), *arguments], check=True, capture_output=True)
    done = subprocess.run([GIT, "-C", str(project), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    subprocess.run([GIT, "init", "-q", str(tmp_path)], check=True, capture_output=True)
    return tmp_path


LOOSE = "thresholds: { monthly_increase_usd: 1000000 }\n"
STRICT = "thresholds: { monthly_increase_usd: 1 }\n"


@pytest.mark.parametrize(
    ("base", "head", "threshold", "said"),
    [
        (None, None, 1000, []),
        (STRICT, STRICT, 1, []),
        (STRICT, LOOSE, 1, ["review.yaml changes"]),
        (None, LOOSE, 1000, ["review.yaml is new"]),
        (STRICT, None, 1, ["review.yaml is deleted"]),
        ("nonsense: true\n", LOOSE, 1000, ["review.yaml changes"]),
    ],
)
def test_the_base_decides(project: Path, base: str | None, head: str | None, threshold: float, said: list[str]) -> None:
    first, second = committed(project, base), committed(project, head)
    for after in (second, None):
        found = decided(project, base=first, head=after)
        assert found.rules.thresholds.monthly_increase_usd == threshold
        assert [each.sentence.partition(":")[0] for each in found.reasons] == said
        assert {each.kind for each in found.reasons} <= {ReasonKind.REVIEW_FILE}
        assert bool(found.notes) == (base == "nonsense: true\n")


def test_without_a_revision_the_project_decides(project: Path) -> None:
    assert decided(project, base=None, head=None).rules is NO_RULES
    (project / "review.yaml").write_text(STRICT, encoding="utf-8")
    assert decided(project, base=None, head=None).rules.thresholds.monthly_increase_usd == 1


def test_a_file_of_the_head_that_is_wrong_is_refused(project: Path) -> None:
    first = committed(project, STRICT)
    (project / "review.yaml").write_bytes(b"thresholds: {}\n# \xff\n")
    with pytest.raises(DocumentError) as refused:
        decided(project, base=first, head=None)
    (finding,) = refused.value.findings
    assert (finding.line, finding.rule) == (2, "encoding")
    (project / "review.yaml").unlink()
    (project / "review.yaml").mkdir()
    with pytest.raises(DocumentError, match="is a folder"):
        decided(project, base=first, head=None)
