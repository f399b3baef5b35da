"""The rehearsal as a user runs it: the real CDK CLI, the embedded AWS in a child process (see test_examples.py)."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from hyperpod_cdk._cli.answers import Rehearsal, print_answer
from hyperpod_cdk.config import load_environment
from hyperpod_cdk_rehearsal.driver import RehearsalError, _Rehearsal, rehearse
from hyperpod_cdk_rehearsal.inventory import MissingNodes
from hyperpod_cdk_rehearsal.report import Report, Step, print_report
from tests.support.answers import answered

STEPS = ["synthesize", "bootstrap", "deploy", "read back", "deploy again", "update", "destroy", "judge rights"]

KEPT = {
    "FSx file system",
    # what it needs
    "VPC",
    "subnet",
    "security group",
    "network interface",
    # data, and the key of EKS's secrets
    "bucket",
    "log group",
    "KMS key",
}
"""Kinds of what stays of environments/prod.yaml after a destroy."""


def printed(report: Report) -> str:
    output = io.StringIO()
    print_report(report, Console(width=160, file=output))
    return output.getvalue()


def test_the_end_of_what_is_typed_is_as_good_as_enter(project: Path) -> None:
    def ended(_: str) -> str:
        raise EOFError

    output = io.StringIO()
    kept: Any = SimpleNamespace(
        console=Console(file=output),
        environment=load_environment(project / "environments" / "prod.yaml").environment,
        aws=SimpleNamespace(environment=lambda: {"AWS_REGION": "us-east-1", "NO_PROXY": "*.corp,127.0.0.1"}),
    )
    _Rehearsal._hold(kept, ended)
    assert output.getvalue().endswith("export AWS_REGION=us-east-1\n  export NO_PROXY='*.corp,127.0.0.1'\n\n")


@pytest.fixture(scope="module")
def prod(project: Path) -> Report:
    return rehearse(project / "environments" / "prod.yaml", project=project)


@pytest.mark.examples
@pytest.mark.timeout(900)
class TestProd:
    def test_every_step_passes(self, prod: Report) -> None:
        assert prod.problem == ""
        assert [step.name for step in prod.steps] == STEPS
        results = {step.name: step.result for step in prod.steps}
        assert results["deploy"] == "every stack CREATE_COMPLETE"
        assert (results["read back"], prod.missing_nodes) == ("4 nodes Running", [])
        assert results["deploy again"] == "no changes"
        assert results["update"] == "group system: 2 -> 3 nodes, in place"
        assert results["destroy"] == f"5 stacks deleted, {len(prod.kept)} resources retained"
        assert results["judge rights"].endswith(" compared with the policy of 'bootstrap-policy', all allowed")

    def test_json_follows_its_schema(self, prod: Report, capsys: pytest.CaptureFixture[str]) -> None:
        print_answer(Rehearsal, prod.as_dict())
        told = answered("rehearsal", capsys.readouterr().out)
        assert [each["name"] for each in told["exists"]["groups"]] == ["h100", "system"]
        assert all(told[each] for each in ("custom_resources", "kubernetes", "retained", "kept"))

    def test_what_exists_is_what_the_file_asks_for(self, prod: Report) -> None:
        found = prod.inventory
        assert found.vpc_cidrs == ["10.192.0.0/16", "10.1.0.0/16", "10.2.0.0/16"]
        assert {(s.availability_zone_id, s.cidr) for s in found.subnets if "nodes" in s.name} == {
            ("use1-az5", "10.1.0.0/16"),
            ("use1-az4", "10.2.0.0/16"),
        }
        assert (found.eks, found.eks_status) == ("prod-eks", "ACTIVE")
        assert [version.rsplit(" ", 1)[-1] for version in found.addons.values()] == ["ACTIVE"] * 8
        assert [(g.name, g.current, g.availability_zone_ids, g.training_plan) for g in found.groups] == [
            ("h100", 2, "use1-az5", "h100-april"),
            ("system", 2, "use1-az4", ""),
        ]
        assert [Path(script).name for script in found.scripts].count("on_create.sh") == 1
        assert " 4800 GiB, 250 MB/s/TiB, use1-az5, AVAILABLE" in found.file_systems[0]
        assert [(q.team, q.resources, q.sharing) for q in found.quotas] == [
            ("research", "2 x ml.p5.48xlarge", "LendAndBorrow 50 %")
        ]

    def test_it_says_what_ran_what_was_played_and_what_stays(self, prod: Report) -> None:
        how = {(each["how"], each["type"]) for each in prod.executions}
        assert how == {
            ("ran", "Custom::HyperPodDeletionProtection"),
            ("ran", "Custom::HyperPodLogSettings"),
            ("ran", "Custom::HyperPodNodesReady"),
            ("ran", "Custom::HyperPodQuotaGate"),
            ("ran", "Custom::CDKBucketDeployment"),
            ("played", "Custom::AWSCDK-EKS-HelmChart"),
            ("played", "Custom::AWSCDK-EKS-KubernetesObjectValue"),
            ("played", "Custom::AWSCDK-EKS-KubernetesResource"),
        }
        assert "Helm release kube-system/hyperpod-dependencies" in prod.kubernetes
        assert "PersistentVolumeClaim hyperpod-ns-research/scratch" in prod.kubernetes
        assert prod.recorded == []
        assert {"AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::Logs::LogGroup"} <= set(prod.retained)
        assert not {"AWS::EKS::Cluster", "AWS::SageMaker::Cluster"} & set(prod.retained)
        assert {each.kind for each in prod.kept} == KEPT
        text = printed(prod)
        assert "group h100" in text
        assert "2/2 x ml.p5.48xlarge  use1-az5  InService  plan h100-april" in text
        assert "Helm is not run and no pod starts" in text
        assert "the account is not yours" in text
        assert "the HyperPod chart is a placeholder" in text


def test_nodes_that_fail_make_a_rehearsal_fail_and_those_of_the_account_file_do_not() -> None:
    report = Report(environment="prod", file="environments/prod.yaml", account="111122223333", region="us-east-1")
    late = MissingNodes(group="h100", count=2, reason="the training plan h100-april is Scheduled", is_failure=False)
    failed = MissingNodes(group="system", count=1, reason="Insufficient free IP addresses.", is_failure=True)
    run: Any = SimpleNamespace(report=report)
    report.missing_nodes = [late]
    _Rehearsal._expect_nodes(run)
    report.missing_nodes = [late, failed]
    with pytest.raises(RehearsalError) as refused:
        _Rehearsal._expect_nodes(run)
    assert str(refused.value) == "instance group system: 1 node not Running: Insufficient free IP addresses."
    text = printed(report)
    assert "instance group h100: 2 nodes not Running: the training plan h100-april is Scheduled (as expected in" in text
    assert "  instance group system: 1 node not Running: Insufficient free IP addresses." in text


@pytest.mark.parametrize("text", ["012345678901", "111122223333", "0042", "no", "1e3"])
def test_an_edited_file_says_the_rest_as_before(project: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "prod.yaml"
    prod = (project / "environments" / "prod.yaml").read_text(encoding="utf-8")
    account = text if len(text) == 12 else "111122223333"
    file.write_text(
        prod.replace("111122223333", account).replace("cost-center: ml-platform", f'cost-center: "{text}"'),
        encoding="utf-8",
    )
    edited = _Rehearsal._edited(SimpleNamespace(scratch=tmp_path), file, "update", lambda _: None)  # type: ignore[arg-type]  # uses nothing else
    assert load_environment(edited).environment == load_environment(file).environment


def test_the_report_says_why_it_failed(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(environment="prod", file="environments/prod.yaml", account="111122223333", region="us-east-1")
    report.steps.append(Step(name="deploy", result="failed", seconds=12.4))
    report.missing_nodes = [MissingNodes(group="h100", count=2, reason="not launched yet", is_failure=False)]
    report.problem = "08:00:00 | CREATE_FAILED | AWS::EC2::VPC"
    text = printed(report)
    assert "failed after 12 s\n08:00:00 | CREATE_FAILED | AWS::EC2::VPC" in text
    print_answer(Rehearsal, report.as_dict())
    assert answered("rehearsal", capsys.readouterr().out)["passed"] is False
