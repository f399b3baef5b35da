"""The quota gate's Lambda, run for real: a stack that the account cannot hold ends before it has made anything."""

from __future__ import annotations

import copy
import io
import json
import re
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import networkx as nx
import pytest
from aws_cdk import aws_ssm as ssm

from hyperpod_cdk import QuotaGate
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.quotas.gate import Requirement
from hyperpod_cdk_rehearsal.account_files import load_document
from hyperpod_cdk_stacks.app import new_app
from tests.support.assembly import ENVIRONMENTS, Synthesized, shipped, synthesize_unchecked
from tests.support.embedded import ACCOUNT, REGION, Embedded, embedded, template_url

Template = dict[str, Any]

BOOTSTRAP_VERSION = "/cdk-bootstrap/hnb659fds/version"
ASSETS = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
SECONDS = 120
SLOW_OR_EXPENSIVE = {"AWS::EKS::Cluster", "AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::S3::Bucket"}
"""Types in the foundation of environments/prod.yaml that have to wait for the gate."""
GATE = "Custom::HyperPodQuotaGate"
P5_FINDING = (
    "hyperpod.instance_groups[1].count: needs 2 ml.p5.48xlarge for cluster usage, quota is 1 in us-east-1; "
    "lower the count to 1 or run 'hyperpod-cdk quotas request prod'"
)


class Account:
    """An account with the assets of a cloud assembly in it."""

    def __init__(self, there: Embedded, assembly: Path) -> None:
        self._there = there
        self.cloudformation = self.client("cloudformation")
        self.client("ssm").put_parameter(Name=BOOTSTRAP_VERSION, Value="30", Type="String")
        s3 = self.client("s3")
        s3.create_bucket(Bucket=ASSETS)
        for asset in sorted(assembly.glob("asset.*")):
            name = asset.name.removeprefix("asset.")
            if asset.is_dir():
                s3.put_object(Bucket=ASSETS, Key=f"{name}.zip", Body=_zipped(asset))
            else:
                s3.put_object(Bucket=ASSETS, Key=name, Body=asset.read_bytes())

    def client(self, service: str) -> Any:
        return self._there.client(service)

    def _request(self, template: Template) -> dict[str, Any]:
        asked = "HyperPodChart" in template.get("Parameters", {})
        return {
            "TemplateURL": template_url(self.client("s3"), template),
            "Capabilities": ["CAPABILITY_NAMED_IAM"],
            "Parameters": [{"ParameterKey": "HyperPodChart", "ParameterValue": "rehearsal"}] if asked else [],
        }

    def create(self, name: str, template: Template) -> str:
        self.cloudformation.create_stack(StackName=name, **self._request(template))
        return self._settled(name)

    def update(self, name: str, template: Template) -> str:
        self.cloudformation.update_stack(StackName=name, **self._request(template))
        return self._settled(name)

    def delete(self, name: str) -> str:
        stack = self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.cloudformation.delete_stack(StackName=name)
        return self._settled(stack)

    def events(self, name: str) -> list[dict[str, Any]]:
        """What happened to a stack, the last first."""
        events: list[dict[str, Any]] = self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        return events

    def reason(self, name: str) -> str:
        """Why the gate failed last, without the request's id."""
        failed = [e for e in self.events(name) if e["ResourceType"] == GATE and e["ResourceStatus"].endswith("_FAILED")]
        return re.sub(r" \(RequestId: [0-9a-f-]{36}\)$", "", str(failed[0]["ResourceStatusReason"]))

    def outputs(self, name: str) -> dict[str, str]:
        stack = self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}

    def log(self, gate: str) -> str:
        """What a gate wrote, in whichever stack it stands or stood."""
        logs = self.client("logs")
        names = [each["logGroupName"] for each in logs.describe_log_groups()["logGroups"]]
        (group,) = [name for name in names if f"-{gate}Logs" in name]
        return "\n".join(event["message"] for event in logs.filter_log_events(logGroupName=group)["events"])

    def _settled(self, name: str) -> str:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            status = str(self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
            if not status.endswith("_IN_PROGRESS"):
                if status in {"ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED", "DELETE_FAILED"}:
                    # pytest shows it beside an assertion that fails
                    print(
                        *(
                            f"{e['LogicalResourceId']} {e['ResourceStatus']} {e.get('ResourceStatusReason')}"
                            for e in self.events(name)
                        ),
                        sep="\n",
                    )
                return status
            time.sleep(0.03)
        raise AssertionError(f"{name} did not come to rest in {SECONDS} s")


@pytest.fixture(scope="module")
def foundation(project: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Synthesized]:
    """The cloud assembly of environments/prod.yaml."""
    environment = load_environment(project / ENVIRONMENTS["prod"]).environment
    assembly = tmp_path_factory.mktemp("foundation")
    # with its assets, since it is deployed
    return assembly, synthesize_unchecked(environment, project=project, app=new_app(outdir=assembly))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Template]:
    """A gate in somebody else's stack, before a parameter."""
    assembly = tmp_path_factory.mktemp("bare")
    app = cdk.App(outdir=str(assembly), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "bare", env=cdk.Environment(account=ACCOUNT, region=REGION))
    vpcs = Requirement(
        key="vpcs", service="vpc", name="VPCs per Region", code="L-F678F1CE", default=5, needed=3, usage="vpcs"
    )
    clusters = Requirement(key="eks", service="eks", name="Clusters", code="L-1194D53C", default=100, needed=1)
    ssm.CfnParameter(stack, "Parameter", type="String", value="made", name="made")
    gate = QuotaGate(stack, "Gate", requirements=[vpcs, clusters])
    cdk.CfnOutput(stack, "Findings", value=gate.findings)
    cdk.CfnOutput(stack, "Skipped", value=gate.skipped)
    gate.before(stack)
    app.synth()
    return assembly, json.loads((assembly / "bare.template.json").read_text(encoding="utf-8"))


@pytest.fixture
def others(bare: tuple[Path, Template]) -> Iterator[Account]:
    """An account with AWS's defaults, for the bare stack."""
    with embedded({}) as aws:
        yield Account(aws, bare[0])


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return buffer.getvalue()


def needing(template: Template, changes: Mapping[str, str], *, mode: str = "enforce") -> Template:
    """The bare template, with other numbers by the requirement's key."""
    edited = copy.deepcopy(template)
    (gate,) = [each for each in edited["Resources"].values() if each["Type"] == GATE]
    gate["Properties"]["Mode"] = mode
    for requirement in gate["Properties"]["Requirements"]:
        requirement["Needed"] = changes.get(requirement["Key"], requirement["Needed"])
    return edited


def test_what_is_slow_or_expensive_waits_for_the_gate(assemblies: Path) -> None:
    synthesized = shipped(assemblies, "prod")
    resources = synthesized.templates["prod-foundation"]["Resources"]
    assert {resources[name]["Type"] for name in waiting_for_the_gate(synthesized)[1]} >= SLOW_OR_EXPENSIVE


# that the gate ends a deployment is test_examples's too, which 'make test' runs
@pytest.mark.examples
def test_a_foundation_that_the_quotas_cannot_hold_ends_before_anything_slow_or_expensive(
    project: Path, foundation: tuple[Path, Synthesized]
) -> None:
    assembly, synthesized = foundation
    template = synthesized.templates["prod-foundation"]
    gate, waiting = waiting_for_the_gate(synthesized)
    document = load_document(None, project / ENVIRONMENTS["prod"])
    document["quotas"]["sagemaker"]["ml.p5.48xlarge for cluster usage"] = 1
    with embedded(document) as aws:
        account = Account(aws, assembly)
        assert account.create("prod-foundation", template) == "ROLLBACK_COMPLETE"
        assert account.reason("prod-foundation") == (
            "Received response status [FAILED] from custom resource. Message returned: "
            f"1 of 17 quotas does not suffice in us-east-1\n{P5_FINDING}"
        )
        touched = {event["LogicalResourceId"] for event in account.events("prod-foundation")}
        assert gate in touched
        assert touched & waiting == set()
        assert not SLOW_OR_EXPENSIVE & {event["ResourceType"] for event in account.events("prod-foundation")}
        assert len(account.client("ec2").describe_vpcs()["Vpcs"]) == 1, "the account's default VPC"
        log = account.log("QuotaGate")
        assert P5_FINDING in log
        (vpcs,) = [line for line in log.splitlines() if "passed network: needs 1 VPC" in line]
        assert " needs 1 VPC while others use 1, quota " in vpcs


def waiting_for_the_gate(synthesized: Synthesized) -> tuple[str, set[str]]:
    """Return the gate of environments/prod.yaml, and what of its stack CloudFormation makes only after it."""
    resources = synthesized.templates["prod-foundation"]["Resources"]
    (gate,) = [name for name, each in resources.items() if each["Type"] == GATE]
    ancestors = nx.ancestors(synthesized.graph, ("prod-foundation", gate))
    return gate, {name for stack, name in ancestors if stack == "prod-foundation"}


@pytest.mark.examples
def test_a_foundation_that_the_quotas_hold_is_made(project: Path, foundation: tuple[Path, Synthesized]) -> None:
    assembly, synthesized = foundation
    with embedded(load_document(None, project / ENVIRONMENTS["prod"]), is_hurried=True) as aws:
        account = Account(aws, assembly)
        status = account.create("prod-foundation", synthesized.templates["prod-foundation"])
        failed = [e for e in account.events("prod-foundation") if e["ResourceStatus"].endswith("_FAILED")]
        assert [(e["LogicalResourceId"], e["ResourceStatusReason"]) for e in failed] == []
        assert status == "CREATE_COMPLETE"
        outputs = account.outputs("prod-foundation")
        assert (outputs["QuotaFindings"], outputs["QuotasSkipped"]) == ("none", "none")


VPC_FINDING = (
    "needs 6 VPCs per Region while others use 1, quota is at its default of 5 in us-east-1; ask Service Quotas for more"
)


def test_it_is_asked_again_when_more_is_needed(others: Account, bare: tuple[Path, Template]) -> None:
    assert others.create("bare", bare[1]) == "CREATE_COMPLETE"
    assert others.update("bare", needing(bare[1], {"vpcs": "6"})) == "UPDATE_ROLLBACK_COMPLETE"
    assert others.reason("bare") == (
        "Received response status [FAILED] from custom resource. Message returned: "
        f"1 of 2 quotas does not suffice in us-east-1\n{VPC_FINDING}"
    )
    assert others.update("bare", needing(bare[1], {"vpcs": "6"}, mode="warn")) == "UPDATE_COMPLETE"
    assert others.outputs("bare") == {"Findings": VPC_FINDING, "Skipped": "none"}
    assert others.delete("bare") == "DELETE_COMPLETE"


@pytest.mark.examples
def test_taking_an_update_back_is_never_refused(others: Account, bare: tuple[Path, Template]) -> None:
    assert others.create("bare", bare[1]) == "CREATE_COMPLETE"
    # by now the three VPCs that were granted at first would not fit any more
    for _ in range(2):
        others.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")
    assert others.update("bare", needing(bare[1], {"vpcs": "1", "eks": "101"})) == "UPDATE_ROLLBACK_COMPLETE"
    assert "needs 101 Clusters, quota is at its default of 100 in us-east-1" in others.reason("bare")
    assert "skipped the stack is rolling back: nothing was compared" in others.log("Gate")
