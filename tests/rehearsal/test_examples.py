"""Every environment that ships lives a whole life in the embedded AWS, without the CDK CLI (see test_rehearse.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from rich.console import Console

from hyperpod_cdk.bootstrap_policy import statements
from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk.config.source import parse_path
from hyperpod_cdk.quotas.needs import required_quotas
from hyperpod_cdk.templates.assembly import read_assembly
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.cdk_cli import CdkCli, CdkFailedError
from hyperpod_cdk_rehearsal.driver import _Rehearsal
from hyperpod_cdk_rehearsal.execution_role import needs, refused
from hyperpod_cdk_rehearsal.inventory import Inventory
from hyperpod_cdk_rehearsal.left_over import snapshot
from hyperpod_cdk_rehearsal.process import EmbeddedAws
from hyperpod_cdk_rehearsal.report import Report
from tests.living.test_first_contact import only_what_is_planted_is_listed
from tests.support.assembly import ENVIRONMENTS, PROJECT, Synthesized, shipped
from tests.support.embedded import HURRIED_SCALE, embedded
from tests.support.in_process_cdk import Aws, InProcessCdk

LIVED = [name for name in ENVIRONMENTS if name != "prod"]
"""Every environment but prod, which the real CDK CLI takes through the same (test_rehearse.py)."""

IN_MAKE_TEST = "two-teams"
"""What `make test` deploys and destroys, the smallest; `make examples` leads the whole lives, minutes of them."""

UPDATES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "example_updates.yaml").read_text(encoding="utf-8")
)
LOGS_KEYS_AND_BUCKETS = {
    "log group",
    "KMS key",
    "bucket",
    # metrics and dashboards, with the role that the latter read with
    "Prometheus workspace",
    "Grafana workspace",
    "IAM role",
}
RETAINED = {
    "AWS::APS::Workspace",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::Subnet",
    "AWS::EC2::VPC",
    "AWS::EC2::VPCCidrBlock",
    "AWS::FSx::DataRepositoryAssociation",
    "AWS::FSx::FileSystem",
    "AWS::Grafana::Workspace",
    "AWS::IAM::Role",
    "AWS::KMS::Key",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "Custom::AWSCDK-EKS-HelmChart",
    "Custom::AWSCDK-EKS-KubernetesResource",
}
"""What a destroyed environment may leave: data and its keys, what a file system or a workspace that stays cannot do
without, and what was inside an EKS cluster that is gone."""


@dataclass(frozen=True)
class Life:
    """A rehearsal whose CDK CLI is played."""

    run: _Rehearsal
    cdk: InProcessCdk
    aws: Aws
    file: Path

    def deploy(self, assembly: Path) -> dict[str, list[str]]:
        """Deploy, and give what the change sets did."""
        try:
            self.run._deploy(assembly)
        except CdkFailedError as failed:
            failed.add_note(self.run.explain(failed))
            raise
        return self.cdk.changes

    def update(self, edited: Path) -> dict[str, list[str]]:
        """Deploy the edited file, and give what the change sets did."""
        assembly = self.run.scratch / "update"
        self.cdk.synth(edited, assembly)
        changes = self.deploy(assembly)
        self.run._expect_counts(load_environment(edited).environment, self.run._inventory())
        return changes


def test_every_environment_has_a_row_of_updates() -> None:
    missing = sorted(set(LIVED) - set(UPDATES))
    assert not missing, f"example_updates.yaml: {', '.join(missing)}: no row; write what changes while it stands"
    unknown = sorted(set(UPDATES) - set(LIVED))
    assert not unknown, f"example_updates.yaml: {', '.join(unknown)}: no environment that ships has this name"


def test_it_is_deployed_and_destroyed(assemblies: Path, tmp_path: Path) -> None:
    synthesized = shipped(assemblies, IN_MAKE_TEST)
    with living(synthesized, satisfying_both(IN_MAKE_TEST, synthesized.environment), tmp_path) as life:
        deployed_as_wanted(life, synthesized, assemblies / IN_MAKE_TEST)
        life.run._destroy(life.file)
        assert set(life.run.report.retained) <= RETAINED


@pytest.mark.examples
@pytest.mark.parametrize("name", LIVED)
def test_it_is_made_stays_changes_and_goes(
    name: str, assemblies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert name in UPDATES, f"example_updates.yaml: {name}: no row; write what changes while it stands"
    synthesized, assembly = shipped(assemblies, name), assemblies / name
    environment = synthesized.environment
    with living(synthesized, satisfying_both(name, environment), tmp_path) as life:
        run, report = life.run, life.run.report
        deployed_as_wanted(life, synthesized, assembly)

        assert life.deploy(assembly) == {}

        edited = run._edited(life.file, "update", lambda data: _edit(data, UPDATES[name]["edit"]))
        assert life.update(edited) == UPDATES[name]["changes"]

        for variable, value in life.aws.there.environment().items():
            monkeypatch.setenv(variable, value)
        only_what_is_planted_is_listed(life.aws.there, run.scratch / "update", environment)

        run._destroy(edited)
        assert set(report.retained) <= RETAINED
        # a role stays for a Grafana that stays, and for nothing else
        assert ("AWS::IAM::Role" in report.retained) == ("AWS::Grafana::Workspace" in report.retained)
        assert {each.kind for each in report.kept} - LOGS_KEYS_AND_BUCKETS == kept_for_files(environment)

        # the second life needs no step in between
        life.deploy(assembly)
        run._expect_counts(environment, run._inventory())
        the_execution_policy_suffices_and_nothing_of_it_is_too_much(life, environment, assembly)


def deployed_as_wanted(life: Life, synthesized: Synthesized, assembly: Path) -> None:
    """Deploy an environment for the first time, and check what is there."""
    run = life.run
    assert set(life.deploy(assembly)) == set(synthesized.templates)
    run.report.inventory = run._inventory()
    run._expect_counts(synthesized.environment)
    state = life.aws.state()
    assert state["recorded"] == []
    if synthesized.environment.name == "two-teams":
        ran = {each["type"] for each in state["executions"] if each["how"] == "ran"}
        the_lambda_made_the_scheduler_policy(run.report.inventory, ran)


def kept_for_files(environment: Environment) -> set[str]:
    """Return the kinds of what stays with the file systems of an environment: none where it makes none."""
    if not environment.storage.made_lustre:
        return set()
    existing = environment.network.existing
    group = set() if existing and existing.security_group_id else {"security group"}
    return {"FSx file system", "network interface", *group, *([] if existing else ["VPC", "subnet"])}


def the_execution_policy_suffices_and_nothing_of_it_is_too_much(
    life: Life, environment: Environment, assembly: Path
) -> None:
    """Check the policy of 'bootstrap-policy' against all that CloudFormation did, and the same without a statement."""
    written = [each.document() for each in statements(read_assembly(assembly, environment.name), environment)]
    wanted = needs(life.aws.steps(), environment, parameters=["/cdk-bootstrap/hnb659fds/version"])
    assert len(wanted) > len(written)
    assert [str(need) for need in refused(written, wanted)] == []
    superfluous = [
        statement["Sid"] for statement in written if not refused([s for s in written if s is not statement], wanted)
    ]
    assert superfluous == []


def test_a_quota_that_does_not_reach_fails_in_the_gate_before_anything_is_made(
    assemblies: Path, tmp_path: Path
) -> None:
    synthesized = shipped(assemblies, "prod")
    document = satisfying(synthesized.environment)
    document["quotas"]["sagemaker"]["ml.p5.48xlarge for cluster usage"] = 1
    with living(synthesized, document, tmp_path) as life:
        with pytest.raises(CdkFailedError) as failed:
            life.deploy(assemblies / "prod")
        problem = life.run.explain(failed.value)
    assert "CREATE_FAILED        | Custom::HyperPodQuotaGate | prod-foundation/QuotaGate" in problem
    assert (
        "hyperpod.instance_groups[1].count: needs 2 ml.p5.48xlarge for cluster usage, quota is 1 in us-east-1; "
        "lower the count to 1 or run 'hyperpod-cdk quotas request prod'" in problem
    )
    assert "AWS::EC2::VPC" not in problem


def the_lambda_made_the_scheduler_policy(found: Inventory, ran: set[str]) -> None:
    """Check what stands for a scheduler policy that the native type cannot say."""
    assert found.policy.startswith("two-teams-policy Created: priority classes none; fair share Enabled")
    assert [(q.team, q.resources, q.weight, q.sharing) for q in found.quotas] == [
        ("john", "3 x ml.g5.12xlarge", 0, "LendAndBorrow 50 %"),
        ("smith", "1 x ml.g5.12xlarge", 100, "LendAndBorrow 100 %"),
    ]
    assert ran == {
        "Custom::ClusterSchedulerConfig",
        "Custom::HyperPodDeletionProtection",
        "Custom::HyperPodLogSettings",
        "Custom::HyperPodNodesReady",
        "Custom::HyperPodQuotaGate",
    }


@contextmanager
def living(
    synthesized: Synthesized, document: Mapping[str, Any], scratch: Path, *, clock_scale: float = HURRIED_SCALE
) -> Iterator[Life]:
    """Yield the driver of an environment in an account before its deployment; ``clock_scale`` as in ``embedded``."""
    environment = synthesized.environment
    file = PROJECT / ENVIRONMENTS[environment.name]
    with embedded(
        document, region=environment.region, account=environment.account, is_hurried=True, clock_scale=clock_scale
    ) as there:
        aws = Aws(there, scratch / "log")
        cdk = InProcessCdk(aws)
        run = _Rehearsal(
            loaded=load_environment(file),
            aws=cast("EmbeddedAws", aws),
            cdk=cast("CdkCli", cdk),
            scratch=scratch,
            console=Console(quiet=True),
            report=Report(
                environment=environment.name, file=str(file), account=environment.account, region=environment.region
            ),
            stacks=list(synthesized.templates),
            before=snapshot(aws),
        )
        yield Life(run, cdk, aws, file)


def satisfying_both(name: str, before: Environment) -> dict[str, Any]:
    """Return the account that satisfies an environment, with the training plans that it names once it is edited."""
    data = yaml.safe_load((PROJECT / ENVIRONMENTS[name]).read_text(encoding="utf-8"))
    _edit(data, UPDATES[name]["edit"])
    after = load_environment(PROJECT / ENVIRONMENTS[name], text=yaml.safe_dump(data)).environment
    wanted = [satisfying(each) for each in (before, after)]
    listed = [plan for each in wanted for plan in each["training_plans"]["plans"]]
    # of a plan that both name, the larger one stays
    plans = {plan["name"]: plan for plan in sorted(listed, key=lambda plan: plan["instance_count"])}
    document = {**wanted[0], "training_plans": {"plans": list(plans.values())}}
    # a file system that stays goes on using its quota up, beside that of the second life
    lustre = {each.name: 4 * each.needed for each in required_quotas(before) if each.service == "fsx"}
    document["quotas"] = {**document["quotas"], "fsx": {**document["quotas"].get("fsx", {}), **lustre}}
    return document


def _edit(data: dict[str, Any], edits: dict[str, Any]) -> None:
    for path, value in edits.items():
        *steps, last = parse_path(path) or ("",)
        place: Any = data
        for step in steps:
            place = place[step]
        if last == len(place):
            place.append(value)
        else:
            place[last] = value
