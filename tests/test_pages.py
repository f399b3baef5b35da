"""Every code block on a page is run or checked by a test, or is listed here with the reason why it cannot be."""

from __future__ import annotations

import re
import subprocess
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_sagemaker as sagemaker
from pydantic import Field
from pydantic.fields import FieldInfo

import hyperpod_cdk
from hyperpod_cdk._cli.words import EXAMPLES
from hyperpod_cdk.checks.model import Case, warning
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.fleet import read_fleet
from hyperpod_cdk.review.review_file import read_rules
from hyperpod_cdk.templates.assembly import read_template
from hyperpod_cdk.templates.rules.suppressions import Suppression, Suppressions
from hyperpod_cdk.workloads.loading import load_job
from tests.support.command_lines import NEEDS, PROJECT, Block, blocks, problems, tools
from tests.support.tables import row_by_row

PAGES = [
    *(
        PROJECT / name
        for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "rehearsal/README.md")
    ),
    *sorted((PROJECT / "docs").rglob("*.md")),
    PROJECT / "constructs" / "hyperpod_cdk" / "_cli" / "project" / "README.md",
]
BLOCKS = [replace(each, text=each.text.replace("{{ name }}", "prod")) for page in PAGES for each in blocks(page)]

COMMANDS = ("console", "sh", "shell")
ELSEWHERE: Mapping[tuple[str, str], str] = {
    ("README.md", "yaml"): "tests/cli/test_new.py",
    ("docs/environment-file.md", "yaml"): "tests/config/test_reference.py",
    ("docs/extending.md", "yaml"): "tests/cli/test_extensions.py",
    ("docs/extending.md", "toml"): "tests/cli/test_extensions.py",
    ("docs/extending.md", "python"): "tests/cli/test_extensions.py",
    ("docs/extending.md", "bash"): "tests/cli/test_extensions.py",
    ("docs/library.md", "python"): "tests/stacks/test_library_page.py",
}
"""Page and language -> the test that runs these blocks, which reads them from the page."""

SHOWN: Mapping[str, str] = {
    "docs/faults.md": "what 'make faults' printed on its date; an account of it, not a promise",
    "docs/day-two.md": "an answer of 'drift', whose sentences tests/living/test_drift.py compares",
    "docs/coming-from.md": "an answer of 'import', cut at the margin; tests/cli/test_import.py compares its sentences",
    "docs/fleet.md": "an answer of 'fleet status', whose form tests/cli/test_fleet.py compares",
    "docs/lifecycle-scripts.md": "what the scripts are given; tests/stacks compare the text itself",
}
"""Page -> why its blocks without commands, which show what something prints, are not run."""


def _in_prod(block: Block, folder: Path) -> None:
    """Load a part of an environment file in place of that part of environments/prod.yaml."""
    stated = yaml.safe_load((PROJECT / "environments" / "prod.yaml").read_text(encoding="utf-8"))
    for name, part in yaml.safe_load(block.text).items():
        stated[name] = {**stated.get(name, {}), **part}
    load_environment(folder / "prod.yaml", text=yaml.safe_dump(stated))


def _fleet(block: Block, folder: Path) -> None:
    fleet = read_fleet(folder / "fleet.yaml", ["staging", "prod-us", "prod-eu"], text=block.text)
    assert [wave.name for wave in fleet.waves] == ["staging", "prod"]


def _review(block: Block, folder: Path) -> None:
    assert read_rules(folder / "review.yaml", text=block.text, on=date(2027, 3, 31)).exceptions


def _job(block: Block, folder: Path) -> None:
    environment = load_environment(PROJECT / "environments" / "prod.yaml")
    assert load_job(folder / "llama.yaml", environment=environment, text=block.text).job.nodes == 2


def _suppression(block: Block, folder: Path) -> None:
    file = folder / "cluster.yaml"
    resource = {"Type": "AWS::SageMaker::Cluster", **yaml.safe_load(block.text), "Properties": {"NodeRecovery": "None"}}
    file.write_text(yaml.safe_dump({"Resources": {"Cluster": resource}}), encoding="utf-8")
    (stack,) = read_template(file, region="us-east-1").stacks
    (found,) = stack.resources.values()
    assert Suppressions().of(stack, found, "node-recovery") == Suppression("a test bed: nodes are replaced by hand")


def _two_constructs(block: Block, _folder: Path) -> None:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "stranger")
    made: dict[str, Any] = {"stack": stack}
    exec(compile(block.text, block.page, "exec"), made)  # noqa: S102 - the page's own code
    assert isinstance(made["network"], hyperpod_cdk.Network)
    assert isinstance(made["efa"], hyperpod_cdk.EfaSecurityGroup)


def _validations(block: Block, _folder: Path) -> None:
    app = cdk.App(builtin_cloud_formation_validation=False)
    cluster = sagemaker.CfnCluster(cdk.Stack(app, "stranger"), "Cluster")
    exec(compile(block.text, block.page, "exec"), {"cdk": cdk, "cluster": cluster})  # noqa: S102 - as above


def _contributed(block: Block, _folder: Path) -> None:
    """Run the check on an environment that it warns of; look at the field as pydantic does."""
    made: dict[str, Any] = {}
    if block.text.startswith("@check("):
        names = {
            "check": lambda **card: lambda function: function if {"area", "inputs", "by_hand"} <= set(card) else None,
            "AREA": "eks",
            "warning": warning,
        }
        exec(compile(f"from __future__ import annotations\n{block.text}", block.page, "exec"), names, made)  # noqa: S102 - as above
        loaded = load_environment(PROJECT / "environments" / "prod.yaml")
        eks = loaded.environment.eks.model_copy(update={"public_access_cidrs": ("0.0.0.0/0",)})
        environment = loaded.environment.model_copy(update={"eks": eks})
        case = Case(environment=environment, now=datetime(2026, 11, 23, tzinfo=UTC), project=PROJECT, called="prod")
        (found,) = made["endpoint_names_its_callers"](case, None)
        assert found.path == "eks.public_access_cidrs"
    else:
        exec(compile(block.text, block.page, "exec"), {"Field": Field}, made)  # noqa: S102 - as above
        assert isinstance(made["flow_logs"], FieldInfo)


JUDGES: Mapping[tuple[str, str], Callable[[Block, Path], None]] = {
    ("README.md", "python"): _two_constructs,
    ("CONTRIBUTING.md", "python"): _contributed,
    ("docs/closed-network.md", "yaml"): _in_prod,
    ("docs/day-two.md", "yaml"): _in_prod,
    ("docs/fleet.md", "yaml"): _fleet,
    ("docs/review.md", "yaml"): _review,
    ("docs/workloads.md", "yaml"): _job,
    ("docs/policy-pack.md", "yaml"): _suppression,
    ("docs/policy-pack.md", "python"): _validations,
}
"""Page and language -> what runs or loads such a block."""


def _kind(block: Block) -> str:
    """Say how a block is judged: ``commands``, ``here``, ``elsewhere`` or ``shown``; empty where nothing judges it."""
    place = (block.page, block.language)
    if block.language in COMMANDS:
        return "commands"
    kinds = {"here": place in JUDGES, "elsewhere": place in ELSEWHERE}
    if block.language in ("", "text"):
        kinds["shown"] = block.page in SHOWN
    return "".join(kind for kind, holds in kinds.items() if holds)


def _name(block: Block) -> str:
    return f"{block.page}:{block.line}"


def test_every_block_is_judged_in_one_way() -> None:
    kinds = Counter(map(_kind, BLOCKS))
    unjudged = [_name(block) for block in BLOCKS if _kind(block) not in {"commands", "here", "elsewhere", "shown"}]
    assert unjudged == []
    assert sum(kinds.values()) == len(BLOCKS)
    # what only shows something stays the exception
    assert kinds["shown"] <= 14


def test_no_reason_is_older_than_its_block() -> None:
    there = {(block.page, block.language) for block in BLOCKS}
    assert sorted({*ELSEWHERE, *JUDGES} - there) == []
    assert sorted(set(SHOWN) - {block.page for block in BLOCKS if block.language in ("", "text")}) == []
    used = {tool for block in BLOCKS if block.language in COMMANDS for line in block.commands for tool in tools(line)}
    assert sorted(set(NEEDS) - used) == []


@pytest.mark.parametrize("place", ELSEWHERE, ids=" ".join)
def test_the_other_test_reads_the_page(place: tuple[str, str]) -> None:
    page, _ = place
    text = (PROJECT / ELSEWHERE[place]).read_text(encoding="utf-8")
    assert Path(page).name in text


@row_by_row("block", [each for each in BLOCKS if _kind(each) == "commands"], ids=_name)
def test_commands_are_those_of_their_tools(block: Block) -> None:
    if block.page == "docs/cli.md":
        # made from the help, with words in place of arguments, and held to it by tests/cli
        assert re.fullmatch(r"(\$ )?hyperpod-cdk [a-z -]*\[OPTIONS\].*\n", block.text)
        return
    assert block.commands
    assert [problem for line in block.commands for problem in problems(line)] == []
    # a shell reads it: angle brackets around what is to be filled in would be redirections
    subprocess.run(["/bin/bash", "-n", "-c", "\n".join(block.commands)], check=True, capture_output=True)


@row_by_row("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_commands_within_sentences_have_their_verbs_and_options(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("{{ name }}", "prod")
    spans = re.findall(r"(?<!`)`((?:hyperpod-cdk|aws|cdk|make) [a-z][^`]*)`(?!`)", text)
    spans += re.findall(r"'(hyperpod-cdk [a-z][^'`]*)'", text)
    lines = [" ".join(span.replace("\\|", "|").split()) for span in spans if "..." not in span]
    # a sentence may leave out what comes behind a verb, but not what comes between it and an option
    said = [(line, each) for line in lines for each in problems(line)]
    assert [each for line, each in said if " -" in line or not re.search(r": (Missing|lacks) ", each)] == []


DEPLOYED_BY_THE_CDK: Mapping[str, str] = {
    "docs/decisions/0019-plans.md": "says what the CDK CLI does with a whole environment",
}
"""Pages that give a whole environment to the CDK CLI itself -> why."""


def test_one_command_deploys_an_environment() -> None:
    """``cdk deploy 'ENV/*'`` knows no steps: a page, a message or an example that names it tells another story."""
    whole = re.compile(r"cdk (?:deploy|destroy) +['\"]?[\w{} .-]+/\*")
    sources = sorted((PROJECT / "constructs" / "hyperpod_cdk" / "_cli").rglob("*.py"))
    texts = [
        *PAGES,
        PROJECT / "constructs" / "hyperpod_cdk" / "cli.py",
        *sources,
        *sorted((PROJECT / "examples").rglob("*.yaml")),
    ]
    found = [each for each in texts if whole.search(each.read_text(encoding="utf-8"))]
    assert sorted(each.relative_to(PROJECT).as_posix() for each in found) == sorted(DEPLOYED_BY_THE_CDK)


def test_the_decision_says_of_each_service_of_the_rehearsal_why_it_is_not_motos() -> None:
    page = (PROJECT / "docs" / "decisions" / "0004-own-cloudformation-engine.md").read_text("utf-8")
    services = PROJECT / "rehearsal" / "hyperpod_cdk_rehearsal" / "embedded" / "services"
    listed = re.findall(r"^\| `(\w+)` \| \d+ \| \S", page, flags=re.MULTILINE)
    assert listed == sorted(each.stem for each in services.glob("*.py") if each.stem != "__init__")


def test_the_three_values_go_through_code_that_is_there() -> None:
    page = (PROJECT / "docs" / "decisions" / "0018-rooms.md").read_text("utf-8")
    walks = page.partition("## Three values\n")[2].partition("\n## ")[0]
    named = [name for name in re.findall(r"`([\w./]+)`", walks) if name not in {"prod", "InstanceCount"}]
    assert len(named) > 40
    sources = [file for root in ("constructs", "stacks") for file in sorted((PROJECT / root).rglob("*.py"))]
    defined = {
        name
        for file in sources
        for name in re.findall(r"^ *(?:def|class) (\w+)", file.read_text("utf-8"), re.MULTILINE)
    }
    rooms = {part for file in sources for part in (file.stem, file.parent.name)}
    lost = [name for name in named if re.split(r"[./]", name)[-1] not in defined | rooms]
    assert lost == []


def test_the_threat_model_names_every_verb() -> None:
    verbs = re.findall(
        r"^##+ `hyperpod-cdk ([a-z -]+)`$", (PROJECT / "docs" / "cli.md").read_text("utf-8"), re.MULTILINE
    )
    leaves = [verb for verb in verbs if not any(other.startswith(f"{verb} ") for other in verbs)]
    assert len(leaves) > 50
    text = (PROJECT / "SECURITY.md").read_text("utf-8")
    assert [verb for verb in leaves if not re.search(rf"`{verb}[` ]", text)] == []


@row_by_row("verb", EXAMPLES)
def test_examples_of_the_help_are_commands(verb: str) -> None:
    assert [problem for words in EXAMPLES[verb] for problem in problems(f"hyperpod-cdk {words}")] == []


@pytest.mark.parametrize("block", [each for each in BLOCKS if _kind(each) == "here"], ids=_name)
def test_code_does_what_its_page_says(block: Block, tmp_path: Path) -> None:
    JUDGES[block.page, block.language](replace(block, text=textwrap.dedent(block.text)), tmp_path)


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language == "toml"], ids=_name)
def test_tables_are_toml(block: Block) -> None:
    assert tomllib.loads(block.text)


@row_by_row(
    "line, said",
    [
        ("hyperpod-cdk validate prod --format json | xargs", []),
        ("hyperpod-cdk charts pull # once", []),
        ("hyperpod-cdk cdk deploy --concurrency 3", []),
        ("hyperpod-cdk review ENV --base a && make test", []),
        ("hyperpod-cdk valdiate prod", ["hyperpod-cdk valdiate prod: no verb valdiate"]),
        ("hyperpod-cdk charts push", ["hyperpod-cdk charts push: no verb push"]),
        (
            "hyperpod-cdk validate --fast",
            ["hyperpod-cdk validate --fast: No such option: --fast (Possible options: --format)"],
        ),
        (
            "hyperpod-cdk status",
            ["hyperpod-cdk status: Missing argument 'ENV'. Name or file of the environment; there is prod"],
        ),
        ("hyperpod-cdk cdk deploy --concurency 3", ["hyperpod-cdk cdk deploy --concurency 3: no option --concurency"]),
        ("aws fsx delete-file-system", []),
        ("aws fsx delete-file-system --name x", ["aws fsx delete-file-system --name x: no option name"]),
        (
            "aws fsx delete-file-system --region us-east-1",
            ["aws fsx delete-file-system --region us-east-1: lacks file-system-id"],
        ),
        ("aws fsx drop", ["aws fsx drop: no operation drop of fsx"]),
        ("aws cloudformation wait stack-create-complete --stack-name a", []),
        (
            "aws cloudformation wait stack-made",
            ["aws cloudformation wait stack-made: no waiter stack-made of cloudformation"],
        ),
        (
            "aws cloudformation wait stack-create-complete --stack a",
            ["aws cloudformation wait stack-create-complete --stack a: no option stack"],
        ),
        ("make tset", ["make tset: no target tset"]),
        ("pip install 'hyperpod-cdk[rehersal]'", ["pip install hyperpod-cdk[rehersal]: no extra rehersal"]),
        ("A=1 hyper | cat", ["hyper: no tool hyper that a test reads", "cat: no tool cat that a test reads"]),
    ],
)
def test_what_is_no_command(line: str, said: list[str]) -> None:
    assert problems(line) == said
