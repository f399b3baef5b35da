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

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.rehearsal.embedded.satisfied import satisfying
from tests.support.embedded import Embedded, embedded

Run = Callable[..., subprocess.CompletedProcess[str]]
SERVICES = ("cloudformation", "ec2", "eks", "fsx", "iam", "logs", "s3", "sagemaker", "servicequotas", "ssm")
VERBS = (("quotas", "show"), ("quotas", "request"), ("plans", "search"), ("plans", "record"))
FILE = "environments/prod.yaml"


@pytest.fixture
def prod(workspace: Path, project: Path) -> Path:
    """The project's own environment and lifecycle scripts, beside dev."""
    shutil.copy(project / FILE, workspace / FILE)
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


def test_every_permission_is_missing(run: Run, aws: Callable[..., Any]) -> None:
    with aws(*({"service": service, "kind": "access_denied"} for service in SERVICES)) as account:
        done = answer(run, account, "preflight", "prod")
        quotas = answer(run, account, "quotas", "show", "prod")
        report = json.loads(answer(run, account, "preflight", "prod", "--format", "json").stdout)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    skipped = [line for line in lines if line.startswith("skipped ")]
    assert (
        "skipped 6 checks of quotas: no permission for servicequotas:GetServiceQuota (no identity-based policy)"
        in skipped
    )
    named = [line.partition(" no permission for ")[2] for line in skipped]
    assert len(named) == len(set(named))
    count = report["counts"]["skipped"]
    assert lines[-1].startswith(
        f"{FILE}: nothing failed, but {count} of {len(report['checks'])} checks could not be made"
    )
    assert lines[-1].endswith("; 'hyperpod-cdk preflight prod --iam-policy' prints the policy for all")
    assert quotas.stdout.count("skipped 17 quotas could not be compared: ") == 1


def test_the_credentials_expire_on_the_way(run: Run, aws: Callable[..., Any]) -> None:
    with aws({"service": "*", "kind": "expired_token", "after": 10}) as account:
        done = answer(run, account, "preflight", "prod")
    (skipped,) = (line for line in done.stdout.splitlines() if line.startswith("skipped "))
    assert skipped.endswith(": the credentials expired during the run; renew them and run it again")


def test_what_answers_is_no_aws(run: Run, aws: Callable[..., Any]) -> None:
    with aws({"service": "*", "kind": "garbage"}) as account:
        for verb in (("preflight",), *VERBS):
            done = answer(run, account, *verb, "prod")
            assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
            assert done.stderr.startswith("AWS is out of reach: the answer to sts:GetCallerIdentity cannot be read: ")


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
    with aws(latency_ms=10_000) as account:
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
        said = process.communicate(timeout=8)
    assert (process.returncode, *said) == (130, "", "interrupted\n")
