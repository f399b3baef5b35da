"""Properties of all templates: AWS's validators pass, and nothing depends on the machine, account or time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hyperpod_cdk.config import EnvironmentFileError, load_environment
from hyperpod_cdk.packaged_node import use_packaged_node
from hyperpod_cdk.templates.cdk_plugin import check_templates
from hyperpod_cdk_stacks.app import read_environments, synthesize
from tests.support.assembly import ENVIRONMENTS, Synthesized, shipped

if TYPE_CHECKING:
    from cfnlint.rules import RulesCollection

LINTED = ("prod", "closed")
"""cfn-lint takes more than a second for each environment; `make examples` has it look at all others."""

OFFLINE_PYTHON = """
import os, socket

def refuse(*arguments, **options):
    open(os.environ["CONNECTED"], "a").write(f"python {arguments[1:]}\\n")
    raise OSError("no network here")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = lambda *arguments, **options: refuse(None, *arguments)
"""
OFFLINE_NODE = """
const { appendFileSync } = require("node:fs");
const refuse = (...args) => {
  appendFileSync(process.env.CONNECTED, "node " + JSON.stringify(args[0]) + "\\n");
  throw new Error("no network here");
};
require("node:net").Socket.prototype.connect = refuse;
require("node:dns").lookup = refuse;
"""


def texts(value: Any) -> Iterator[str]:
    """Every key and text in a template."""
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from texts(each)
        case dict():
            for key, each in value.items():
                yield key
                yield from texts(each)


@pytest.mark.parametrize("word", ["Fn::GetAZs", "dummy1"])
def test_nothing_is_looked_up_or_made_up(synthesized: Synthesized, word: str) -> None:
    found = [
        (stack, text) for stack, template in synthesized.templates.items() for text in texts(template) if word in text
    ]
    assert found == []


def test_every_arn_takes_its_partition_from_a_token(synthesized: Synthesized, project: Path) -> None:
    own = (project / ENVIRONMENTS[synthesized.environment.name]).read_text(encoding="utf-8")
    arns = {
        arn
        for template in synthesized.templates.values()
        for text in texts(template)
        for arn in re.findall(r"arn:aws[a-z-]*:[^\s\"',]*", text)
    }

    assert sorted(arn for arn in arns if arn not in own) == []


@pytest.fixture(scope="module")
def lint_rules() -> RulesCollection:
    """cfn-lint's rules, which take half a second to load, and cfn-lint itself as long: one worker needs it."""
    from cfnlint.core import get_rules  # noqa: PLC0415 - see above

    # E3644's list of types per region comes from price data, and lacks some that HyperPod offers
    return get_rules([], ["E3644"], [])


def lint_of(text: str, region: str, rules: RulesCollection) -> list[str]:
    from cfnlint.api import lint  # noqa: PLC0415 - as above
    from cfnlint.config import ManualArgs  # noqa: PLC0415 - as above

    found = lint(text, rules=rules, config=ManualArgs(regions=[region]))
    return [f"{match.rule.id} line {match.linenumber}: {match.message}" for match in found]


@pytest.mark.parametrize(
    "name", [name if name in LINTED else pytest.param(name, marks=pytest.mark.examples) for name in ENVIRONMENTS]
)
def test_cfn_lint_finds_nothing(name: str, assemblies: Path, lint_rules: RulesCollection) -> None:
    synthesized = shipped(assemblies, name)
    found = {
        stack: lint_of(file.read_text(encoding="utf-8"), synthesized.environment.region, lint_rules)
        for stack, file in synthesized.template_files.items()
    }
    assert {stack: matches for stack, matches in found.items() if matches} == {}


def test_cloudformation_validate_finds_nothing(synthesized: Synthesized) -> None:
    findings = check_templates(synthesized.template_files.values(), region=synthesized.environment.region)
    section = synthesized.environment.eks
    # what is shipped names no callers: no address would be right
    is_open = not section.is_existing and section.endpoint_access != "private"
    assert [finding.rule for finding in findings] == (["eks-public-endpoint"] if is_open else [])


def test_the_validators_do_look(prod: Synthesized, lint_rules: RulesCollection, tmp_path: Path) -> None:
    (node,) = prod.of_type("AWS::SageMaker::Cluster")
    template = json.loads(prod.template_files[node[0]].read_text(encoding="utf-8"))
    template["Resources"][node[1]]["Properties"]["NodeRecovery"] = "Sometimes"
    broken = tmp_path / "broken.template.json"
    broken.write_text(json.dumps(template), encoding="utf-8")

    (by_lint,) = lint_of(broken.read_text(encoding="utf-8"), prod.environment.region, lint_rules)
    assert re.match(r"E3030 line \d+: 'Sometimes' is not one of", by_lint)
    findings = check_templates([broken], region=prod.environment.region)
    assert [finding.rule for finding in findings] == ["W3030", "node-recovery"]


@dataclass(frozen=True)
class Run:
    """What ``python app.py`` left behind."""

    code: int
    stderr: str
    outdir: Path
    connected: Path

    def files(self) -> dict[str, str]:
        """Digest of every file of the assembly."""
        return {
            path.relative_to(self.outdir).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.outdir.rglob("*"))
            if path.is_file()
        }

    def stages(self) -> list[str]:
        """Names of the environments in the assembly."""
        return sorted(path.name.removeprefix("assembly-") for path in self.outdir.glob("assembly-*"))


@dataclass(frozen=True)
class Project:
    """A clone with environments of its own, whose app runs without credentials and without a network."""

    root: Path
    environment: Mapping[str, str]

    def start(self, name: str, *, seed: int, env: str | None = None) -> subprocess.Popen[str]:
        context = json.dumps({} if env is None else {"env": env})
        return subprocess.Popen(
            [sys.executable, str(self.root / "app.py")],
            cwd=self.root,
            env={
                **self.environment,
                "CDK_CONTEXT_JSON": context,
                "CDK_OUTDIR": str(self.root / name),
                "CONNECTED": str(self.root / f"{name}.connected"),
                "PYTHONHASHSEED": str(seed),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, name: str, process: subprocess.Popen[str]) -> Run:
        _, stderr = process.communicate(timeout=100)
        return Run(process.returncode, stderr, self.root / name, self.root / f"{name}.connected")


def make_project(project: Path, root: Path, environments: Mapping[str, str]) -> Project:
    root.mkdir()
    shutil.copy(project / "app.py", root)
    (root / "stacks").symlink_to(project / "stacks")
    (root / "environments").mkdir()
    for file, text in environments.items():
        (root / "environments" / file).write_text(text, encoding="utf-8")
    (root / "offline").mkdir()
    (root / "offline" / "sitecustomize.py").write_text(OFFLINE_PYTHON, encoding="utf-8")
    (root / "offline" / "offline.cjs").write_text(OFFLINE_NODE, encoding="utf-8")
    use_packaged_node()
    scrubbed = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "CDK_"))}
    return Project(
        root,
        {
            **scrubbed,
            "NODE_OPTIONS": f"--require={root}/offline/offline.cjs",
            "PYTHONPATH": str(root / "offline"),
        },
    )


@pytest.fixture(scope="module")
def both(project: Path) -> dict[str, str]:
    files = {
        f"{name}.yaml": (project / ENVIRONMENTS[name]).read_text(encoding="utf-8") for name in ("prod", "two-teams")
    }
    # a version out of standard support: a warning, which ends up in the assembly as well
    return {**files, "two-teams.yaml": files["two-teams.yaml"].replace('version: "1.35"', 'version: "1.32"')}


@pytest.fixture(scope="module")
def runs(project: Path, both: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """The same two environments twice: another folder for the assembly, another order of Python's sets."""
    clone = make_project(project, tmp_path_factory.mktemp("runs") / "clone", both)
    first, second = clone.start("cdk.out", seed=1), clone.start("elsewhere", seed=4242)
    return clone.finish("cdk.out", first), clone.finish("elsewhere", second)


def test_synthesis_needs_neither_credentials_nor_network(runs: tuple[Run, Run]) -> None:
    for run in runs:
        assert run.code == 0, run.stderr
        assert not run.connected.exists(), run.connected.read_text(encoding="utf-8")
        assert run.stages() == ["prod", "two-teams"]


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ([sys.executable, "-c", "import socket; socket.create_connection(('127.0.0.1', 9))"], "python"),
        ([os.environ.get("JSII_NODE", "node"), "-e", "require('net').connect(9, '127.0.0.1')"], "node"),
    ],
    ids=["python", "node"],
)
def test_a_connection_would_be_noticed(project: Path, tmp_path: Path, command: list[str], word: str) -> None:
    clone = make_project(project, tmp_path / "clone", {})
    note = tmp_path / "connected"

    done = subprocess.run(
        command, env={**clone.environment, "CONNECTED": str(note)}, capture_output=True, check=False, timeout=60
    )

    assert done.returncode != 0
    assert note.read_text(encoding="utf-8").startswith(word)


def test_synthesis_is_the_same_byte_for_byte(runs: tuple[Run, Run]) -> None:
    first, second = (run.files() for run in runs)

    assert len(first) > 50
    # the report names the folder that it validated; it is printed, never deployed
    report = "validation-report.json"
    assert {k: v for k, v in first.items() if k != report} == {k: v for k, v in second.items() if k != report}


def test_no_path_of_this_machine_is_in_the_assembly(runs: tuple[Run, Run], project: Path) -> None:
    (run, _) = runs
    places = [str(each).encode() for each in (project, run.outdir, Path.home(), Path(sys.prefix))]

    found = [
        path.relative_to(run.outdir).as_posix()
        for path in run.outdir.rglob("*.json")
        if path.name != "validation-report.json" and any(place in path.read_bytes() for place in places)
    ]
    assert found == []


def test_warnings_of_the_file_reach_the_cdk_cli(runs: tuple[Run, Run]) -> None:
    (run, _) = runs
    (metadata,) = run.outdir.glob("assembly-two-teams/*foundation*.metadata.json")
    entries = [entry for each in json.loads(metadata.read_text(encoding="utf-8")).values() for entry in each]

    warnings = [entry["data"] for entry in entries if entry["type"] == "aws:cdk:warning"]
    places = [re.search(r"two-teams\.yaml:\d+ ([a-z_.]+): ", each) for each in warnings]
    assert [each and each[1] for each in places] == ["eks.public_access_cidrs", "eks.kubernetes_version"]


@dataclass(frozen=True)
class Others:
    """Runs that start together, since each waits a second for Node.js."""

    narrowed: Run
    wrong: Run
    wrong_file: Path


@pytest.fixture(scope="module")
def others(project: Path, both: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Others:
    folder = tmp_path_factory.mktemp("others")
    wrong = (
        both["prod.yaml"]
        .replace("count: 2\n", "count: -1\n", 1)
        .replace("nat_gateways: 1", "nat_gateways: 9")
        .replace("endpoint_access: public_and_private", "endpoint_access: private")
    )
    clone = make_project(project, folder / "clone", both)
    with_error = make_project(project, folder / "wrong", {**both, "prod.yaml": wrong})
    narrowed = clone.start("narrowed", seed=0, env="two-teams")
    refused = with_error.start("cdk.out", seed=0)
    return Others(
        narrowed=clone.finish("narrowed", narrowed),
        wrong=with_error.finish("cdk.out", refused),
        wrong_file=with_error.root / "environments" / "prod.yaml",
    )


def test_context_narrows_to_one_environment(others: Others, runs: tuple[Run, Run]) -> None:
    run = others.narrowed

    assert (run.code, run.stages()) == (0, ["two-teams"]), run.stderr
    everything = runs[0].files()
    alone = {name: digest for name, digest in run.files().items() if name.startswith("assembly-")}
    assert alone
    assert alone.items() <= everything.items(), "the other environments have no say in this one's templates"


def test_a_wrong_file_is_refused_with_every_finding_on_its_own_line(others: Others) -> None:
    with pytest.raises(EnvironmentFileError) as refused:
        load_environment(others.wrong_file)

    # the app runs in the project's folder and shows files as one finds them from there
    folder = f"{others.wrong_file.parents[1]}/"
    expected = [finding.render().removeprefix(folder) for finding in refused.value.findings]
    assert len(expected) == 2
    assert (others.wrong.code, others.wrong.stderr.splitlines()) == (1, expected)
    assert others.wrong.stages() == []


def test_two_files_with_one_name_are_refused(project: Path, both: dict[str, str], tmp_path: Path) -> None:
    clone = make_project(project, tmp_path / "clone", {**both, "second.yaml": both["prod.yaml"]})

    with pytest.raises(SystemExit) as refused:
        synthesize(clone.root)

    # Python prints the text and exits with 1
    (line,) = str(refused.value.code).splitlines()
    assert "second.yaml:6 name: must be unique" in line
    assert "prod.yaml" in line


def test_an_unknown_environment_is_refused_in_one_line(project: Path, both: dict[str, str], tmp_path: Path) -> None:
    clone = make_project(project, tmp_path / "clone", both)

    with pytest.raises(SystemExit) as refused:
        read_environments(clone.root, "prud")

    (line,) = str(refused.value.code).splitlines()
    assert line.endswith("did you mean prod?")
