"""`hyperpod-cdk preflight`, `quotas` and `plans` over real HTTP against the embedded AWS."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from hyperpod_cdk import cli
from hyperpod_cdk.checks import policy
from hyperpod_cdk.config import load_environment
from hyperpod_cdk_rehearsal.account_files import satisfying
from tests.support.callers import with_callers
from tests.support.embedded import Embedded, embedded

Run = Callable[..., subprocess.CompletedProcess[str]]
SERVICES = ("cloudformation", "ec2", "eks", "fsx", "iam", "logs", "s3", "sagemaker", "servicequotas", "ssm")
VERBS = (("quotas", "show"), ("quotas", "request"), ("plans", "search"), ("plans", "record"))
FILE = "environments/prod.yaml"
NO_ANSWER = False
"""In the table: nothing at all is printed, since there is nothing to say."""


@pytest.fixture
def prod(workspace: Path, project: Path) -> Path:
    """The project's own environment and lifecycle scripts, beside dev."""
    (workspace / FILE).write_text(with_callers((project / FILE).read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copytree(project / "lifecycle_scripts", workspace / "lifecycle_scripts")
    return workspace / FILE


@pytest.fixture
def aws(prod: Path) -> Callable[..., Any]:
    """Opens an account that satisfies prod, but for its faults."""
    document = satisfying(load_environment(prod).environment)

    def account(*faults: dict[str, object], **more: Any) -> Any:
        return embedded({**document, "faults": list(faults)}, **more)

    return account


def answer(run: Run, aws: Embedded, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(*arguments, **{**aws.environment(), **environment})


@pytest.mark.parametrize(
    ("verb", "passed", "codes"),
    [
        ("preflight prod", None, (0, 1)),
        ("quotas show prod", None, (0, 1)),
        ("quotas request prod", None, (1, None)),
        # nothing found while nothing was answered is no answer
        ("plans search prod", None, (1, 1)),
        ("plans record prod", NO_ANSWER, (1, None)),
    ],
)
def test_what_no_verb_could_see_it_does_not_call_passed(
    verb: str,
    passed: bool | None,  # noqa: FBT001 - a parameter of the table
    codes: tuple[int, int | None],
    run: Run,
    aws: Callable[..., Any],
) -> None:
    """``codes`` without and with --strict; None where the verb has no --strict, since it always is."""
    words = [*verb.split(), "--format", "json"]
    with aws(*({"service": service, "kind": "access_denied"} for service in SERVICES)) as account:
        done = answer(run, account, *words)
        assert done.returncode == codes[0], done.stdout + done.stderr
        if codes[1] is not None:
            assert answer(run, account, *words, "--strict").returncode == codes[1]
    if passed is NO_ANSWER:
        assert done.stdout == ""
        assert "nothing was written" in done.stderr
    else:
        assert json.loads(done.stdout)["passed"] is passed


def test_every_verb_that_asks_aws_is_in_the_tables() -> None:
    """Those beside VERBS have tests of their own, in files named for them."""
    of_stacks = {"review --deployed", "drift", "observe", "status", "plan", "deploy", "destroy", "upgrade", "recover"}
    of_nodes = {
        f"node {each}" for each in ("list", "describe", "logs", "replace", "reboot", "check", "cordon", "uncordon")
    }
    of_plans = {"plans attach", "plans extend"}
    others = {"preflight", "import", "import --takeover", "prices refresh", *of_plans, *of_stacks, *of_nodes}
    tested = {*(" ".join(verb) for verb in VERBS), *others}
    assert {verb.name for verb in policy.VERBS} | {"preflight"} == tested
    strict = {
        "preflight",
        "quotas show",
        "plans search",
        "prices refresh",
        "drift",
        "import",
        "observe",
        "status",
        "node list",
        "node describe",
        "plans attach",
        "plans extend",
    }
    # a fleet asks what the verbs of one environment ask
    fleet = {"fleet drift", "fleet preflight", "fleet status", "fleet sums"}
    # a job's report is strict about logs, what a team costs about use and prices
    assert {name for name, options in options_of(get_command(cli.app)) if "--strict" in options} == {
        *strict,
        *fleet,
        "job report",
        "teams cost",
    }
    for verb in policy.VERBS:
        assert all(action.partition(":")[2][0].isupper() for action in verb.actions)
        assert ("--strict" in verb.when_unseen) is (verb.name in strict)


def options_of(command: Any, name: str = "") -> list[tuple[str, set[str]]]:
    """Return every verb below a command with its options."""
    if hasattr(command, "commands"):
        return [row for word, each in command.commands.items() for row in options_of(each, f"{name} {word}".strip())]
    return [(name, {option for each in command.params for option in each.opts})]


def test_every_permission_is_missing(run: Run, aws: Callable[..., Any]) -> None:
    with aws(*({"service": service, "kind": "access_denied"} for service in SERVICES)) as account:
        done = answer(run, account, "preflight", "prod")
        quotas = answer(run, account, "quotas", "show", "prod")
        report = json.loads(answer(run, account, "preflight", "prod", "--format", "json").stdout)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    skipped = [line for line in lines if line.startswith("skipped ")]
    (quota_line,) = [line for line in skipped if line.startswith("skipped 6 checks of quotas: ")]
    ours, separator, awss = quota_line.partition('; AWS says: "')
    assert (ours, separator) == (
        "skipped 6 checks of quotas: no permission for servicequotas:GetServiceQuota (no identity-based policy)",
        '; AWS says: "',
    )
    assert awss.endswith('because no identity-based policy allows the servicequotas:GetServiceQuota action"')
    named = [line.partition(" no permission for ")[2] for line in skipped]
    assert len(named) == len(set(named))
    count = report["counts"]["skipped"]
    assert lines[-1].startswith(
        f"{FILE}: nothing failed, but {count} of {len(report['checks'])} checks could not be completed"
    )
    assert lines[-1].endswith("; 'hyperpod-cdk preflight prod --iam-policy' prints the policy that all checks need")
    assert quotas.stdout.count("skipped 17 quotas could not be compared: ") == 1


def test_the_credentials_expire_on_the_way(run: Run, aws: Callable[..., Any]) -> None:
    with aws({"service": "*", "kind": "expired_token", "after": 10}) as account:
        done = answer(run, account, "preflight", "prod")
    (skipped,) = (line for line in done.stdout.splitlines() if line.startswith("skipped "))
    assert ": the credentials expired during the run; renew them and run it again; AWS says: " in skipped


def test_what_answers_is_no_aws(run: Run, aws: Callable[..., Any]) -> None:
    with aws({"service": "*", "kind": "garbage"}) as account:
        for verb in (("preflight",), *VERBS):
            done = answer(run, account, *verb, "prod")
            assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
            assert done.stderr.startswith("AWS cannot be reached: the answer to sts:GetCallerIdentity cannot be read: ")


def test_credentials_of_another_account(run: Run, aws: Callable[..., Any], prod: Path) -> None:
    prod.write_text(prod.read_text(encoding="utf-8").replace("111122223333", "999988887777"), encoding="utf-8")
    with aws() as account:
        checked = answer(run, account, "preflight", "prod")
        for verb in VERBS:
            done = answer(run, account, *verb, "prod")
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr == (
                "the credentials belong to account 111122223333, the environment to 999988887777; set AWS_PROFILE to a"
                " profile of 999988887777\n"
            )
    assert checked.returncode == 1
    assert [line.split()[0] for line in checked.stdout.splitlines()[-3:]] == [f"{FILE}:7", "skipped", f"{FILE}:"]


def test_ctrl_c_is_one_line(aws: Callable[..., Any], prod: Path) -> None:
    with aws(latency_ms=100_000) as account:
        process = subprocess.Popen(
            [sys.executable, "-c", "from hyperpod_cdk.cli import main; main()", "preflight", "prod"],
            cwd=prod.parent.parent,
            env={**account.environment(), "AWS_EC2_METADATA_DISABLED": "true", "PATH": "/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not account.calls()["total"]:
            assert process.poll() is None, "it ended before it asked anything"
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        # less than the answer would have taken
        said = process.communicate(timeout=80)
    assert (process.returncode, *said) == (130, "", "interrupted\n")


@pytest.mark.examples
def test_what_environments_need_together_is_compared_with_the_account(run: Run, workspace: Path) -> None:
    """AWS's own numbers count where it is asked, and without them those that are known without it."""
    dev = workspace / "environments" / "dev.yaml"
    text = dev.read_text(encoding="utf-8").replace("name: dev", "name: twin", 1)
    for old, new in (("network:\n", "network:\n  vpc_cidr: 10.201.0.0/16\n"), ("10.1.0.0", "10.11.0.0")):
        text = text.replace(old, new, 1)
    (workspace / "environments" / "twin.yaml").write_text(text.replace("10.2.0.0", "10.12.0.0"), encoding="utf-8")
    document = satisfying(load_environment(dev).environment)
    words = ("fleet", "preflight", "--only", "quotas", "--format", "json")

    def seen(vpcs: float, *faults: dict[str, object]) -> tuple[int, dict[str, tuple[bool | None, list[str], int]]]:
        quotas = {**document["quotas"], "vpc": {**document["quotas"]["vpc"], "VPCs per Region": vpcs}}
        with embedded({**document, "quotas": quotas, "faults": list(faults)}) as account:
            done = answer(run, account, *words)
        rows = json.loads(done.stdout)["environments"]
        together = "quotas_suffice_for_all_environments"
        return done.returncode, {
            row["environment"]: (
                row["passed"],
                [f"{each['severity']}: {each['message']}" for each in row["findings"] if each["rule"] == together],
                len(row["skipped"]),
            )
            for row in rows
        }

    # by AWS's defaults instances would be too few, and the account has them
    offline = json.loads(run(*words, "--offline").stdout)["environments"]
    assert any("for cluster usage" in each["message"] for row in offline for each in row["findings"])
    # an account has a default VPC
    assert seen(3) == (0, {"dev": (True, [], 0), "twin": (True, [], 0)})
    code, rows = seen(2)
    (said,) = rows["twin"][1]
    assert (code, rows["dev"], rows["twin"][0]) == (1, (True, [], 0), False)
    assert said.startswith("error: the environments of 111122223333 in ")
    assert said.endswith(
        "environments/dev.yaml, 1 of environments/twin.yaml), others use 1, and the quota is 2; request 3"
    )
    code, rows = seen(3, {"service": "servicequotas", "kind": "access_denied"})
    assert code == 0
    assert all(passed is None and skipped for passed, _, skipped in rows.values())
    assert any("is AWS's default" in each for each in rows["twin"][1])
    code, rows = seen(3, {"service": "ec2", "operation": "DescribeVpcs", "kind": "access_denied"})
    assert (code, {name: row[0] for name, row in rows.items()}) == (0, {"dev": None, "twin": None})
