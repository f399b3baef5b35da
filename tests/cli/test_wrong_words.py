"""Wrong values for all arguments and options of all commands: one sentence with its name, exit code 1 or 2."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hyperpod_cdk import cli
from hyperpod_cdk._cli.extending import Buying
from hyperpod_cdk.catalog import regions
from tests.cli.conftest import Run
from tests.cli.test_words import VERBS
from tests.support.tables import row_by_row

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

WRONG = ("a b 😀", "-1", "9" * 23, "folder")
NO_FOLDERS = ("a b 😀", "-1", "9" * 23)

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
    "schema --out": {"a b 😀", "-1", "9" * 23},
    "image render --out": {"a b 😀", "-1", "9" * 23, "folder"},
    "job render --out": {"a b 😀", "-1", "9" * 23},
    "image render --project": set(NO_FOLDERS),
    # a cost that is not known is told as such
    "fleet sums --heads": {"folder"},
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


@row_by_row("verb", [verb for verb in VERBS if verb != "cdk"])
def test_no_verb_takes_what_is_no_word(verb: str) -> None:
    for words, said in (
        ([""], "an argument is empty; omit it"),
        (["--project", ""], "--project: is empty; specify a value or omit it"),
        (["--project="], "--project: is empty; specify a value or omit it"),
        (["a\nb"], r"'a\nb': must not contain a line break or another control character; omit it"),
        (
            ["--name=a\u2028b"],
            r"'--name=a\u2028b': must not contain a line break or another control character; omit it",
        ),
        # a byte that is not UTF-8
        (["\udcff"], r"'\udcff': must not contain a line break or another control character; omit it"),
    ):
        done = CliRunner().invoke(cli.app, [*verb.split(), *words], prog_name="hyperpod-cdk", catch_exceptions=False)
        assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"{said}\n"), words


def test_words_for_cdk_are_its_own(workspace: Path, run_process: Run) -> None:
    own = workspace / "node_modules" / "aws-cdk" / "bin" / "cdk"
    own.parent.mkdir(parents=True)
    own.write_text("console.log(JSON.stringify(process.argv.slice(2)))", encoding="utf-8")
    done = run_process("cdk", "--version", "")
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, ["--version", ""], "")


_NODE = (
    "NODE: must be an instance ID (i-...), the name of a node in Kubernetes (hyperpod-i-...) or HyperPod's logical ID,"
    ' 1 to 128 letters, digits and hyphens, got "{0}"; correct NODE, which must look like i-0a1b2c3d4e5f67890'
)
_GROUP = (
    "--group: must be 1 to 63 letters, digits and hyphens, beginning and ending with a letter or digit, got"
    ' "{0}"; correct --group, which must look like workers'
)
_PLAN = (
    "{1}: must be the name of a training plan, 1 to 64 letters, digits and hyphens, or its ARN, got"
    ' "{0}"; correct {1}, which must look like h100-april'
)
_PLAN_ARN = (
    '{1}: must be the ARN of a training plan, got "{0}"; correct {1}, which must look like'
    " arn:<partition>:sagemaker:<region>:<account>:training-plan/<name>"
)
_CLUSTER = (
    '--cluster: must be the name of a HyperPod cluster, letters, digits and hyphens, or its ARN, got "{0}"; correct'
    " --cluster, which must look like ml-cluster"
)
_IMPORT = "import --name lab --cluster theirs --region us-east-1"
BEFORE_AWS = [
    *((f"node {verb} gpu 'a b'", _NODE.format("a b")) for verb in ("describe", "logs", "replace", "reboot", "check")),
    *((f"node {verb} gpu {'a' * 129}", _NODE.format("a" * 129)) for verb in ("cordon", "uncordon")),
    ("node reboot gpu -- -1", _NODE.format("-1")),
    ("node describe gpu h100-ä", _NODE.format("h100-ä")),
    (
        "node reboot gpu i-0a1b2c3d4e5f67890 hyperpod-i-0a1b2c3d4e5f67890",
        "node i-0a1b2c3d4e5f67890 is named more than once; name it once",
    ),
    ("node list gpu --group 'a b'", _GROUP.format("a b")),
    (f"node check gpu --group h100 --group {'g' * 64}", _GROUP.format("g" * 64)),
    ("plans attach gpu h200 h100-may", "GROUP: the environment has no group h200; it has system, h100"),
    ("plans attach gpu h100 'a b'", _PLAN.format("a b", "PLAN")),
    ("plans attach gpu h100 arn:aws:sagemaker", _PLAN_ARN.format("arn:aws:sagemaker", "PLAN")),
    (
        "plans attach gpu h100 arn:aws:sagemaker:us-west-2:111122223333:training-plan/h100-may",
        "PLAN: must be a plan in us-east-1, got one in us-west-2; name a plan of us-east-1, or set region: us-west-2",
    ),
    ("plans extend gpu --plan 'a b'", _PLAN.format("a b", "--plan")),
    ("plans extend gpu --plan h100-may", '--plan: the environment has no plan "h100-may"; it has h100-april'),
    ("plans extend dev", "dev: the environment names no plan"),
    ("plans extend gpu --buy tpeo-1 --confirm 'a b'", _PLAN.format("a b", "--confirm")),
    (
        "plans extend gpu --buy ' '",
        "--buy: must be the ID of an extension, which 'plans extend' shows in the column offer, got no ID",
    ),
    ("import --name lab --region us-east-1 --cluster 'a b'", _CLUSTER.format("a b")),
    (
        f"{_IMPORT} --account 1234",
        (
            '--account: must be the 12 digits of an AWS account, got "1234"; correct --account, which must look like'
            ' "111122223333"'
        ),
    ),
    (
        "import --name lab --cluster theirs --region us-east-11",
        '--region: must be an AWS region known on 2026-11-20, got "us-east-11"; did you mean us-east-1?',
    ),
    (
        f"{_IMPORT} --vpc-id vpc",
        (
            '--vpc-id: must be the ID of a VPC such as vpc-0a1b2c3d4e5f67890, got "vpc"; set --vpc-id to the one that'
            " 'aws ec2 describe-vpcs' shows"
        ),
    ),
    (
        f"{_IMPORT} --eks-security-group sg",
        (
            '--eks-security-group: must be the ID of a security group such as sg-0a1b2c3d4e5f67890, got "sg"; set'
            " --eks-security-group to the one that 'aws ec2 describe-security-groups' shows"
        ),
    ),
    (
        f"{_IMPORT} --kubernetes-version 1",
        (
            "--kubernetes-version: must be a Kubernetes version that HyperPod accepts (1.30 to 1.35 on 2026-11-20), got"
            ' "1"; give --kubernetes-version 1.35'
        ),
    ),
    (
        f"{_IMPORT} --zone us-east-1a",
        (
            '--zone: must be an availability zone ID such as use1-az1, got the name "us-east-1a", which means another'
            " zone in each account; find its ID with 'aws ec2 describe-availability-zones --region us-east-1' and set"
            " --zone to it"
        ),
    ),
    (
        f"{_IMPORT} --subnet subnet-0a1b2c3d4e5f67890=use1",
        (
            '--subnet subnet-0a1b2c3d4e5f67890: must be an availability zone ID such as use1-az1, got "use1"; correct'
            " --subnet"
        ),
    ),
    ("status gpu --every 30", "--every is for --watch"),
]


@row_by_row("words, said", BEFORE_AWS)
def test_words_are_judged_before_aws_is_asked(
    words: str, said: str, workspace: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(region: str, account: str) -> Any:
        raise AssertionError(f"asks AWS in {region} {account}")

    text = (project / "examples" / "training-plan.yaml").read_text(encoding="utf-8")
    (workspace / "environments" / "gpu.yaml").write_text(
        text.replace("name: h100\n", "name: gpu\n", 1), encoding="utf-8"
    )
    monkeypatch.chdir(workspace)
    done = CliRunner().invoke(
        cli.app,
        shlex.split(words),
        prog_name="hyperpod-cdk",
        obj=Buying(open=never, once=never),
        catch_exceptions=False,
    )
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"{said}\n")


BEFORE_REGION = {
    "init": "init lab --account 111122223333",
    "new": "new demo --account 111122223333 --instance-type ml.p5.48xlarge --capacity spot",
    "import": "import --name lab --cluster theirs",
    "plans search": "plans search --instance-type ml.p5.48xlarge --count 1",
    "prices refresh": "prices refresh",
    "prices show": "prices show",
    "review": "review --template template.json",
    "diagram": "diagram --template template.json",
}
"""The words with which each verb that has ``--region`` looks at it."""


def test_every_verb_refuses_a_region_that_is_none(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    (workspace / "template.json").write_text('{"Resources": {}}', encoding="utf-8")
    assert {verb for verb in VERBS if any("--region" in each.opts for each in VERBS[verb].params)} == {*BEFORE_REGION}
    said = f'must be an AWS region known on {regions.AS_OF}, got "us-est-1"; did you mean us-east-1?'
    for words in BEFORE_REGION.values():
        done = CliRunner().invoke(
            cli.app, [*words.split(), "--region", "us-est-1"], prog_name="hyperpod-cdk", catch_exceptions=False
        )
        assert (done.exit_code, done.stdout) == (2, ""), words
        assert done.stderr in (f"--region: {said}\n", f"--region (region): {said}\n"), words


def rows(verb: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each argument and option of a verb with a wrong value, and the words of the command line."""
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
