"""``review.yaml``: what it may say, what is refused with its line, and whose file decides."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import date
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
import yaml

from hyperpod_cdk.catalog.prices import PricesError, parse_prices
from hyperpod_cdk.config import judged_by
from hyperpod_cdk.config.documents import DocumentError
from hyperpod_cdk.review.model import Reason, ReasonKind
from hyperpod_cdk.review.review_file import (
    NO_RULES,
    Approvers,
    Exception_,
    Kind,
    decided,
    read_rules,
    rules_schema,
    rules_schema_text,
)
from tests.support.tables import row_by_row

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
    sentence: Role * can access EKS cluster prod-eks.
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


@row_by_row(
    "text, line, said",
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


OWNED = ENTRY.replace("owner: d", "owner: {owner}").replace("reason: c", "reason: {reason}").replace("{}", "2027-03-31")


@row_by_row(
    "text, said",
    [
        (
            "thresholds: {monthly_increase_usd: -1}\n",
            (
                "1 thresholds.monthly_increase_usd: must be from 0 to 1000000000 US dollars, got -1; set "
                "monthly_increase_usd: 1000"
            ),
        ),
        (
            "thresholds: {monthly_increase_usd: 1000000001}\n",
            (
                "1 thresholds.monthly_increase_usd: must be from 0 to 1000000000 US dollars, got 1000000001; set "
                "monthly_increase_usd: 1000"
            ),
        ),
        (
            # no dollar and no cent is meant by it
            "thresholds: {monthly_increase_usd: true}\n",
            "1 thresholds.monthly_increase_usd: must be a number, got true; write digits after monthly_increase_usd:",
        ),
        (
            'thresholds: {monthly_increase_usd: "1000"}\n',
            (
                '1 thresholds.monthly_increase_usd: must be a number, got the text "1000"; write '
                "monthly_increase_usd: 1000 without quotes"
            ),
        ),
        (
            OWNED.format(owner="d", reason="'  '"),
            "5 exceptions[0].reason: must not be empty, got blanks; write reason",
        ),
        (
            OWNED.format(owner="d", reason="''"),
            "5 exceptions[0].reason: must not be empty, got nothing; write reason",
        ),
        (
            OWNED.format(owner="d", reason="x" * 501),
            "5 exceptions[0].reason: must have at most 500 characters, got 501; shorten reason",
        ),
        (
            OWNED.format(owner='"se\u202ecurity"', reason="c"),
            (
                "6 exceptions[0].owner: must be at most 64 letters, digits, blanks and _ . / @ -, a letter or a digit "
                'first, no blank last, got "se\\u202ecurity"; set owner: se-curity'
            ),
        ),
        (
            'approvers: {access: ["security "]}\n',
            (
                "1 approvers.access[0]: must be at most 64 letters, digits, blanks and _ . / @ -, a letter or a digit "
                'first, no blank last, got "security "; set access[0]: security'
            ),
        ),
        (
            "thresholds: {monthly_increase_usd: 1e9}\n",
            "1 thresholds.monthly_increase_usd: must be a number, got 1e9; write digits after monthly_increase_usd:",
        ),
        (
            # a number to YAML 1.1, of minutes and seconds
            "thresholds: {monthly_increase_usd: 1:30}\n",
            "1 thresholds.monthly_increase_usd: must be a number, got 1:30; write digits after monthly_increase_usd:",
        ),
        (
            "thresholds: {monthly_increase_usd: $1000}\n",
            (
                '1 thresholds.monthly_increase_usd: must be a number, without a unit, got "$1000"; write '
                "monthly_increase_usd: 1000"
            ),
        ),
        (
            "thresholds: {monthly_increase_usd: 1000 USD}\n",
            (
                '1 thresholds.monthly_increase_usd: must be a number, without a unit, got "1000 USD"; write '
                "monthly_increase_usd: 1000"
            ),
        ),
        (
            "thresholds: {monthly_increase_usd: 1000000000.0001}\n",
            (
                "1 thresholds.monthly_increase_usd: must be from 0 to 1000000000 US dollars, got 1000000000.0001; set "
                "monthly_increase_usd: 1000"
            ),
        ),
        (
            'approvers: {access: ["a\\nb"]}\n',
            (
                "1 approvers.access[0]: must be at most 64 letters, digits, blanks and _ . / @ -, a letter or a digit "
                'first, no blank last, got "a\\x0ab"; set access[0]: a-b'
            ),
        ),
    ],
)
def test_what_is_refused_is_reported_with_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_rules(Path("review.yaml"), text=text)
    assert [each.render() for each in refused.value.findings] == [f"review.yaml:{said}"]


@pytest.mark.parametrize("dollars", ["0", "0.5", "1000000000"])
def test_thresholds_at_their_bounds(dollars: str) -> None:
    rules = read_rules(Path("review.yaml"), text=f"thresholds: {{monthly_increase_usd: {dollars}}}\n")
    assert rules.thresholds.monthly_increase_usd == float(dollars)


@row_by_row(
    "pattern, text, answers",
    [
        ("Role a may b.", "Role a may b.", True),
        ("Role a may b.", "Role a may bx", False),
        ("role a may b.", "Role a may b.", False),
        # a name that the resource has
        ("Role * may b.", "Role a may b.", True),
        ("* may b.", "Role a may b.", True),
        ("Role a (*) may b.", "Role a (prod) may b.", True),
        ("*-eks: * may b.", "prod-eks: Role a may b.", True),
        # and nothing that happens to it, nor a number
        ("Role a *.", "Role a may b.", False),
        ("Role * b.", "Role a may b.", False),
        ("Role * may b.", "Role c may b.", False),
        ("*ole a may b.", "Role a may b.", False),
        ("Costs $* more per month.", "Costs $2,000 more per month.", False),
        ("a?c.", "abc.", False),
        # no number of stars makes it slow
        ("*e" * 200 + "!", "every e " * 60, False),
        ("* " * 200 + "!", "a " * 200, False),
    ],
)
def test_a_star_of_a_sentence_is_a_name_that_the_resource_has(pattern: str, text: str, *, answers: bool) -> None:
    exception = Exception_(
        kind="access", resource="prod / role a", sentence=pattern, reason="c", owner="d", expires="2027-03-31"
    )
    reason = Reason(kind=ReasonKind.ACCESS, resource="prod / role a", sentence=text)
    assert exception.answers(reason, "prod / role a") is answers


@row_by_row(
    "pattern, resource, answers",
    [
        ("prod / Cluster", "prod / Cluster", True),
        ("*-hyperpod / Cluster", "prod-hyperpod / Cluster", True),
        ("prod / FnVersion*", "prod / FnVersion5EE1D7B8", True),
        # the stack's star ends with the stack
        ("prod*er", "prod / Cluster", False),
        ("*od / Cluster", "dev / Pod / Cluster", False),
        ("*", "prod / Cluster", False),
        ("cost per month", "cost per month", True),
        ("aba*aba", "ababa", False),
        ("a*b*a", "abba", True),
        ("*e" * 200 + "!", "every e " * 60, False),
    ],
)
def test_a_star_of_a_resource_is_any_text_of_the_stack_or_the_name(
    pattern: str, resource: str, *, answers: bool
) -> None:
    exception = Exception_(
        kind="access", resource=pattern, sentence="It goes.", reason="c", owner="d", expires="2027-03-31"
    )
    reason = Reason(kind=ReasonKind.ACCESS, resource=resource, sentence="It goes.")
    assert exception.answers(reason, resource) is answers


@pytest.mark.parametrize(
    ("stated", "found", "answers"),
    [
        (None, None, True),
        ("Groups[a].Count", "Groups[a].Count", True),
        ("Groups[a].Count", "Groups[b].Count", False),
        ("Groups[*].Count", "Groups[b].Count", False),
        (None, "Groups[a].Count", False),
        ("Groups[a].Count", None, False),
    ],
)
def test_an_exception_is_about_one_property(stated: str | None, found: str | None, *, answers: bool) -> None:
    exception = Exception_(
        kind="interruption",
        resource="prod / C",
        property=stated,
        sentence="Nodes go.",
        reason="c",
        owner="d",
        expires="2027-03-31",
    )
    reason = Reason(kind=ReasonKind.INTERRUPTION, resource="prod / C", property=found, sentence="Nodes go.")
    assert exception.answers(reason, "prod / C") is answers


def test_every_kind_of_reason_has_its_word() -> None:
    assert get_args(Kind) == tuple(each.value for each in ReasonKind) == tuple(Approvers.model_fields)


def test_who_is_named_twice_approves_once() -> None:
    rules = read_rules(Path("review.yaml"), text="approvers: {access: [a, b, a]}\ndefault_approvers: [c, c]\n")
    assert [rules.approvers_of(kind) for kind in (ReasonKind.ACCESS, ReasonKind.COST)] == [("a", "b"), ("c",)]


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


FILES = {
    "review.yaml": STRICT,
    "prices.json": (Path(judged_by.__file__).parents[1] / "catalog" / "data" / "prices.json").read_text("utf-8"),
}


def with_files(project: Path, files: dict[str, str]) -> dict[str, str]:
    """Write the files and give what a deployment of them states."""
    for name, text in files.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    template = {"Outputs": {judged_by.OUTPUT: {"Value": judged_by.said_of(project, "dev")}}}
    return judged_by.recorded(template)


def test_without_a_revision_only_what_is_deployed_counts(project: Path) -> None:
    nothing = decided(project, base=None, head=None)
    assert (nothing.rules, nothing.prices, nothing.reasons) == (NO_RULES, None, ())
    stated = with_files(project, FILES)
    assert list(stated) == ["review.yaml", "prices.json"]
    until = "and it applies once it is deployed with approval"
    # never deployed, so nobody has approved them: whoever brings them along would write the verdict
    new = decided(project, base=None, head=None, deployed={}, stated=stated)
    assert (new.rules, new.prices) == (NO_RULES, None)
    assert [(each.kind, each.resource, each.sentence) for each in new.reasons] == [
        (
            ReasonKind.REVIEW_FILE,
            name,
            f"{name} is not the one of the last deployment: this review is judged by the built-in values, {until}.",
        )
        for name in ("review.yaml", "prices.json")
    ]
    known = decided(project, base=None, head=None, deployed=stated, stated=stated)
    assert (known.rules.thresholds.monthly_increase_usd, known.reasons) == (1, ())
    assert known.prices is not None


@pytest.mark.parametrize("name", ["review.yaml", "prices.json"])
def test_a_file_that_is_deleted_since_the_deployment_is_a_reason(project: Path, name: str) -> None:
    deployed = with_files(project, FILES)
    (project / name).unlink()
    stated = {key: each for key, each in deployed.items() if key != name}
    found = decided(project, base=None, head=None, deployed=deployed, stated=stated)
    assert [each.resource for each in found.reasons] == [name]


def test_templates_that_state_what_the_project_does_not_hold_are_a_reason(project: Path) -> None:
    deployed = with_files(project, FILES)
    planted = {**deployed, "review.yaml": judged_by.digest(LOOSE.encode())}
    found = decided(project, base=None, head=None, deployed=deployed, stated=planted)
    assert [each.resource for each in found.reasons] == ["ReviewedBy"]
    assert found.rules is NO_RULES


def test_only_the_foundation_states_by_what_reviews_are_judged(project: Path) -> None:
    deployed = with_files(project, FILES)
    said = {judged_by.OUTPUT: {"Value": f"review.yaml={judged_by.digest(LOOSE.encode())}"}}
    honest = {judged_by.OUTPUT: {"Value": judged_by.said_of(project, "dev")}}
    stacks = [("dev-foundation", {"Outputs": honest}), ("dev-observability", {"Outputs": said})]
    for order in (stacks, stacks[::-1]):
        assert judged_by.recorded_by(order, "dev") == deployed
        assert judged_by.strays(order, "dev") == ["dev-observability"]
    # two of one name, in two regions: neither counts
    assert judged_by.recorded_by([stacks[0], stacks[0]], "dev") == {}
    assert judged_by.strays([stacks[0], stacks[0]], "dev") == ["dev-foundation"]
    found = decided(project, base=None, head=None, deployed=deployed, stated=deployed, strays=["dev-observability"])
    assert [each.resource for each in found.reasons] == ["dev-observability/ReviewedBy"]
    assert found.rules is NO_RULES


def test_a_changed_record_that_the_templates_state_otherwise_is_a_reason(project: Path) -> None:
    deployed = with_files(project, {"environments/dev.quotas.json": "{}"})
    stated = with_files(project, {"environments/dev.quotas.json": "[]"})
    planted = {**stated, "environments/dev.quotas.json": judged_by.digest(b"never seen")}
    found = decided(project, base=None, head=None, environment="dev", deployed=deployed, stated=planted)
    assert [each.resource for each in found.reasons] == ["ReviewedBy"]


def test_a_changed_record_is_named(project: Path) -> None:
    deployed = with_files(project, {"environments/dev.quotas.json": "{}", "environments/dev.plans.json": "{}"})
    assert len(deployed) == 2
    stated = with_files(project, {"environments/dev.quotas.json": "[]"})
    found = decided(project, base=None, head=None, environment="dev", deployed=deployed, stated=stated)
    assert (found.records, found.reasons) == (("environments/dev.quotas.json",), ())


def test_the_bases_prices_decide(project: Path) -> None:
    with_files(project, FILES)
    first = committed(project, STRICT)
    (project / "prices.json").write_text("{", encoding="utf-8")
    # one that cannot be read is refused, whichever side would count
    with pytest.raises(PricesError):
        decided(project, base=first, head=None)
    (project / "prices.json").unlink()
    found = decided(project, base=first, head=None)
    assert found.prices == parse_prices(FILES["prices.json"], where="prices.json")
    (reason,) = found.reasons
    until = "the head's file applies once it is merged"
    assert reason.sentence == f"prices.json is deleted: this review is judged by the base's, and {until}."


DAY = date(2026, 11, 22)


@pytest.mark.parametrize(
    ("last", "is_refused"), [("2027-11-22", False), ("2027-11-23", False), ("2027-11-24", True), ("9999-12-31", True)]
)
def test_an_exception_lasts_a_year_at_most(last: str, *, is_refused: bool) -> None:
    text = ENTRY.format(last)
    assert read_rules(Path("review.yaml"), text=text).exceptions
    if not is_refused:
        assert read_rules(Path("review.yaml"), text=text, on=DAY).exceptions
        return
    with pytest.raises(DocumentError) as refused:
        read_rules(Path("review.yaml"), text=text, on=DAY)
    (finding,) = refused.value.findings
    assert finding.line == 7
    assert finding.message == f"must be at most 366 days away, 2027-11-23 or before, got {last}"


OF_OTHERS = (
    "3 exceptions[0].resource: would except unseen changes of other resources: its name must have 8 characters or "
    "more besides *, its stack 4, got {!r}; write the resource as in the report"
)
WHATEVER = (
    "4 exceptions[0].sentence: would except any change of the resource: it must have 8 characters or more besides *, "
    "and its end, got {!r}; write the sentence as in the report"
)


@pytest.mark.parametrize("kind", [each for each in get_args(Kind) if each != "review"])
@pytest.mark.parametrize(
    ("resource", "sentence", "said"),
    [
        ("*", "*", [OF_OTHERS, WHATEVER]),
        ("**", "* ", [OF_OTHERS, WHATEVER]),
        ("*a*", "*e*", [OF_OTHERS, WHATEVER]),
        ("x / role on-call", "*", [WHATEVER]),
        ("x / role on-call", "Role on-call *", [WHATEVER]),
        ("x / role on-call", "Role on-call may *", [WHATEVER]),
        ("x / role on-call", "Role * goes.", []),
        ("x / role on-call", "* goes.", [WHATEVER]),
        ("prod-foundation / *", "The file system is replaced.", [OF_OTHERS]),
        ("prod-*", "The file system is replaced.", [OF_OTHERS]),
        ("* / Cluster", "The file system is replaced.", [OF_OTHERS]),
        ("*-f / Cluster", "The file system is replaced.", [OF_OTHERS]),
        ("prod* / Cluster", "The file system is replaced.", []),
        ("prod / Version*", "The version is replaced.", [OF_OTHERS]),
        ("prod / FVersion*", "The version is replaced.", []),
        ("x", "b", []),
    ],
)
def test_an_exception_lists_what_was_reviewed(kind: str, resource: str, sentence: str, said: list[str]) -> None:
    text = ENTRY.replace("resource: a", f"resource: '{resource}'").replace("sentence: b", f"sentence: '{sentence}'")
    text = text.replace("kind: access", f"kind: {kind}").format("2027-03-31")
    if not said:
        assert read_rules(Path("review.yaml"), text=text).exceptions
        return
    with pytest.raises(DocumentError) as refused:
        read_rules(Path("review.yaml"), text=text)
    shown = [each.format(resource if each is OF_OTHERS else sentence) for each in said]
    assert [each.render() for each in refused.value.findings] == [f"review.yaml:{each}" for each in shown]


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
