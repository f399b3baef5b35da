"""Clusters that were created with API calls are imported into the stacks, and the environment continues."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.session import get_session
from typer.testing import CliRunner

from hyperpod_cdk import cli
from hyperpod_cdk.checks.answers import NotAnswered
from hyperpod_cdk.checks.aws import LiveAws
from hyperpod_cdk.checks.policy import policy_of
from hyperpod_cdk.handlers.quota_gate.reading import Own
from hyperpod_cdk.importing.draft import Known
from hyperpod_cdk.importing.run import Place, imported_living
from hyperpod_cdk.living.drift import drift
from hyperpod_cdk.living.standing import read_living
from hyperpod_cdk.review.changes.blast_radius import blast_radius
from hyperpod_cdk.review.deployed import read_deployed
from hyperpod_cdk.review.model import Effect, Side
from hyperpod_cdk.review.sources import Source
from hyperpod_cdk.templates.assembly import Assembly, Stack, read_assembly
from hyperpod_cdk.templates.difference import compare
from hyperpod_cdk.transitions.run import Deployment, Destruction
from hyperpod_cdk.transitions.takeover import Import, Takeover, lines, planned
from tests.importing import standing_cluster as scripted
from tests.importing.test_built import EKS, NODES, SUBNETS, Builder, builder
from tests.support.assembly import PROJECT
from tests.support.embedded import ACCOUNT, REGION
from tests.support.in_process_cdk import Aws, InProcessCdk, a_moment
from tests.support.pairs import Person
from tests.support.scripted_aws import Fails
from tests.support.tables import row_by_row
from tests.transitions.test_lives import WithPlaceholder

assert builder  # a fixture


def reading() -> LiveAws:
    return LiveAws.open(region=REGION, account="", own=Own(stacks=(), hyperpod_cluster="", eks_cluster=""))


def nodes(builder: Builder) -> dict[str, str]:
    rows = builder.client("sagemaker").list_cluster_nodes(ClusterName="ml-cluster")["ClusterNodeSummaries"]
    return {row["InstanceId"]: row["InstanceGroupName"] for row in rows}


def described(builder: Builder) -> Any:
    """Return what AWS has, as far as an import must not change it."""
    cluster = builder.client("sagemaker").describe_cluster(ClusterName="ml-cluster")
    iam = builder.client("iam")
    role = iam.get_role(RoleName="hyperpod-nodes")["Role"]
    policies = iam.list_attached_role_policies(RoleName="hyperpod-nodes")["AttachedPolicies"]
    inline = iam.list_role_policies(RoleName="hyperpod-nodes")["PolicyNames"]
    del cluster["ResponseMetadata"]
    return cluster, role, policies, inline


def beside(builder: Builder) -> dict[str, Any]:
    """Return what AWS has beside the cluster: add-ons, who enters, roles of pods, policy and quotas, with their ids."""
    eks, sagemaker = builder.client("eks"), builder.client("sagemaker")
    found: dict[str, Any] = {}
    for name in eks.list_addons(clusterName=EKS)["addons"]:
        found[name] = eks.describe_addon(clusterName=EKS, addonName=name)["addon"]
    for arn in eks.list_access_entries(clusterName=EKS)["accessEntries"]:
        asked = {"clusterName": EKS, "principalArn": arn}
        found[arn] = eks.describe_access_entry(**asked)["accessEntry"]
        found[arn]["policies"] = eks.list_associated_access_policies(**asked)["associatedAccessPolicies"]
    for row in eks.list_pod_identity_associations(clusterName=EKS)["associations"]:
        asked = {"clusterName": EKS, "associationId": row["associationId"]}
        found[row["associationArn"]] = eks.describe_pod_identity_association(**asked)["association"]
    for row in sagemaker.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"]:
        asked = {"ClusterSchedulerConfigId": row["ClusterSchedulerConfigId"]}
        found["policy"] = sagemaker.describe_cluster_scheduler_config(**asked)
    for row in sagemaker.list_compute_quotas()["ComputeQuotaSummaries"]:
        answer = sagemaker.describe_compute_quota(ComputeQuotaId=row["ComputeQuotaId"])
        found[row["ComputeQuotaTarget"]["TeamName"]] = answer
    for each in found.values():
        each.pop("ResponseMetadata", None)
    return found


def ids(told: dict[str, Any]) -> dict[str, str]:
    """Return by which ids AWS knows policy and quotas, and what each team is called in SageMaker."""
    keys = ("ClusterSchedulerConfigId", "ComputeQuotaId", "Name")
    return {f"{name}.{key}": each[key] for name, each in told.items() for key in keys if key in each}


OTHERS = ("CDKToolkit", "files")


def stacks(builder: Builder) -> dict[str, str]:
    """Return the status of each stack but those that are somebody else's."""
    found = builder.client("cloudformation").describe_stacks()["Stacks"]
    return {each["StackName"]: each["StackStatus"] for each in found if each["StackName"] not in OTHERS}


def written(folder: Path, edit: Callable[[str], str] = str) -> Assembly:
    """Write the file of a takeover, and synthesize it."""
    (folder / "environments").mkdir(exist_ok=True)
    file = folder / "environments" / "lab.yaml"
    known = Known(name="lab", is_takeover=True)
    found, text = imported_living(reading(), "ml-cluster", known, to=Place(target=file, root=PROJECT, schema=None))
    # where Karpenter has nodes in every group that it scales, the file is not whole yet
    assert found.passed is True or edit is not str, found.notes
    file.write_text(edit(text), encoding="utf-8")
    InProcessCdk.synth(file, folder / "assembly")
    return read_assembly(folder / "assembly", "lab")


def nothing_goes_on(_: float) -> None:
    """Stand for the pause where every answer is of something that has ended."""
    pytest.fail("waits for what has ended")


def done(found: Takeover) -> tuple[bool, list[str]]:
    told: list[str] = []
    return Import(aws=reading(), say=told.append, pause=a_moment).run(found), told


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_a_takeover(builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the plan to a deployment that finds nothing to do, with every node that there was, and back in between."""
    builder.cluster(builder.group("far", 1, "use1-az5"), builder.group("system", 2, "use1-az4"))
    before, running = described(builder), nodes(builder)
    head = written(tmp_path)
    line = ["import", "--cluster", "ml-cluster", "--name", "lab", "--takeover", "--project", str(tmp_path)]
    line += ["--head", str(tmp_path / "assembly")]

    def run(*words: str, typed: str = "") -> tuple[int, str]:
        answer = CliRunner().invoke(cli.app, [*line, *words], input=f"{typed}\n", catch_exceptions=False)
        return answer.exit_code, answer.stdout

    # the plan, a name that is not the cluster's, and nobody at the terminal change nothing
    code, text = run("--plan")
    assert (code, "is imported as it is (IMPORT)" in text) == (0, True)
    assert run(typed="ml-cluster")[0] == 1
    monkeypatch.setattr("hyperpod_cdk._cli.transitions.is_terminal", lambda: True)
    assert run(typed="ml-clusters")[0] == 1
    assert (stacks(builder), described(builder)) == ({}, before)

    # interrupted after the first import: the same command goes on
    found = planned(reading(), head, "ml-cluster")
    assert found.refusals == ()
    first = Takeover(cluster="ml-cluster", taken=found.taken[:1])
    assert done(first)[0]
    assert [each.id for each in planned(reading(), head, "ml-cluster").open] == [found.taken[1].id]
    code, text = run(typed="ml-cluster")
    assert (code, text.splitlines()[-1]) == (
        0,
        "next: 'hyperpod-cdk plan lab' shows what a deployment changes, then 'hyperpod-cdk deploy lab'",
    )
    assert stacks(builder) == {"lab-foundation": "UPDATE_COMPLETE", "lab-hyperpod": "IMPORT_COMPLETE"}
    assert (described(builder), nodes(builder)) == (before, running)

    # the way back: the stacks go, and what they held stays as it was
    cloudformation = builder.client("cloudformation")
    for name in ("lab-hyperpod", "lab-foundation"):
        cloudformation.delete_stack(StackName=name)
        builder.until(lambda name=name: name not in stacks(builder))
    assert (described(builder), nodes(builder)) == (before, running)
    assert done(planned(reading(), head, "ml-cluster"))[0]

    # what is imported already is said to be
    code, text = run("--plan")
    assert (code, text.count("is already imported")) == (0, 2)
    assert done(planned(reading(), head, "ml-cluster")) == (True, [])

    goes_on(builder, tmp_path, head, running)
    assert described(builder)[0]["ClusterArn"] == before[0]["ClusterArn"]


@dataclass
class LosingAnswers:
    """Sends everything, and loses the answer to the change of a number."""

    aws: Any
    lost: int
    changes: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.aws, name)

    def send(self, service: str, operation: str, **params: Any) -> Any:
        answer = self.aws.send(service, operation, **params)
        self.changes += not operation.startswith("describe")
        if self.changes == self.lost and not operation.startswith("describe"):
            raise NotAnswered("the answer was lost")
        return answer


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_whichever_answer_is_lost_the_same_command_goes_on(builder: Builder, tmp_path: Path) -> None:
    """Each change set that is made, executed or deleted; then the way back, from which the next one begins."""
    builder.cluster(builder.group("far", 1, "use1-az5"), builder.group("system", 1, "use1-az4"))
    before, running, head = described(builder), nodes(builder), written(tmp_path)
    cloudformation = builder.client("cloudformation")
    whole = {"lab-foundation": "UPDATE_COMPLETE", "lab-hyperpod": "IMPORT_COMPLETE"}
    # two imports and what the first stack gives to the second, and one time without a loss
    changes = 7
    for number in range(1, changes + 2):
        losing: Any = LosingAnswers(reading(), number)
        with contextlib.suppress(NotAnswered):
            Import(aws=losing, say=lambda _: None, pause=a_moment).run(planned(reading(), head, "ml-cluster"))
        # one that has nothing but a change set goes nowhere by itself
        going = {"IMPORT_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"}
        builder.until(lambda going=going: going.isdisjoint(stacks(builder).values()))
        assert done(planned(reading(), head, "ml-cluster"))[0], number
        assert (stacks(builder), described(builder), nodes(builder)) == (whole, before, running), number
        assert losing.changes == min(number, changes)
        for name in ("lab-hyperpod", "lab-foundation"):
            cloudformation.delete_stack(StackName=name)
            builder.until(lambda name=name: name not in stacks(builder))
        assert (described(builder), nodes(builder)) == (before, running), number


def goes_on(builder: Builder, folder: Path, head: Assembly, running: dict[str, str]) -> None:
    """The next deployment changes what was taken over in place, another one nothing, and nothing is drift."""
    cdk: Any = WithPlaceholder(InProcessCdk(Aws(builder.there, folder)), "lab")
    # a review before it names what changes, and nothing of it is replaced, deleted or unknown
    reviewed = read_deployed(reading(), head)
    radius = blast_radius(reviewed.base, reviewed.head, compare(reviewed.base, reviewed.head))
    effects = {each.effect for each in radius.resources}
    assert effects <= {Effect.ADDED, Effect.IN_PLACE}, radius.resources
    people = [Person(), Person()]
    for person in people:
        source = Source(assembly=head, side=Side(label="working tree"))
        deployment = Deployment(aws=reading, head=source, cdk=cdk, person=person, pause=a_moment)
        assert deployment.run(), (person.told, person.shown[0].refusals)
    assert people[0].shown[0].takes == ()
    assert people[1].shown[0].steps == ()
    assert nodes(builder) == running
    reviewed = read_deployed(reading(), head)
    radius = blast_radius(reviewed.base, reviewed.head, compare(reviewed.base, reviewed.head))
    assert [(each.logical_id, each.summary) for each in radius.resources] == []
    compared = drift(reading(), read_living(reading(), head))
    assert [(each.resource, each.path, each.deployed, each.actual) for each in compared.differences] == []
    assert [(each.what, each.reason) for each in compared.skipped] == []


def as_the_set_up_stack_makes_it(builder: Builder) -> None:
    """With a file system of the VPC and its driver, and the training operator as AWS's guide installs it."""
    eks, fsx = builder.client("eks"), builder.client("fsx")
    builder.cluster(
        builder.group("far", 1, "use1-az5", ThreadsPerCore=2),
        builder.group("system", 2, "use1-az4"),
        Tags=[{"Key": "SageMaker", "Value": "true"}],
    )
    builder.operator()
    eks.create_addon(clusterName=EKS, addonName="aws-fsx-csi-driver", resolveConflicts="OVERWRITE")
    fsx.create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[SUBNETS["use1-az4"]],
        SecurityGroupIds=[NODES],
        LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
    )


def by_the_command_line(builder: Builder) -> None:
    """No recovery, all or nothing, labels and taints, and a person who administers the EKS cluster."""
    builder.entry("platform-admin", "AmazonEKSClusterAdminPolicy")
    config = {
        "Labels": {"example.com/team": "research"},
        "Taints": [{"Key": "dedicated", "Value": "training", "Effect": "NoSchedule"}],
    }
    builder.cluster(
        builder.group("labelled", 1, "use1-az4", KubernetesConfig=config),
        builder.group("plain", 1, "use1-az5"),
        NodeRecovery="None",
        NodeProvisioningMode=None,
        Tags=[{"Key": "team", "Value": "research"}],
    )


def with_teams(builder: Builder) -> None:
    """A policy and the quotas of two teams, as the console makes them: with amounts that SageMaker fills in."""
    builder.cluster(builder.group("system", 2, "use1-az4"))
    builder.governance(PriorityClasses=[{"Name": "training", "Weight": 80}, {"Name": "idle", "Weight": 5}])
    sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": 50}
    rows = [{"InstanceType": "ml.m5.2xlarge", "Count": 1}]
    config = {"ComputeQuotaResources": rows, "ResourceSharingConfig": sharing, "PreemptTeamTasks": "LowerPriority"}
    builder.quota("quota-research", "research", config, FairShareWeight=10)
    rows = [{"InstanceType": "ml.m5.2xlarge", "VCpu": 4.0}]
    config = {"ComputeQuotaResources": rows, "ResourceSharingConfig": {"Strategy": "DontLend"}}
    config["PreemptTeamTasks"] = "Never"
    builder.quota("serving-2", "serving", config, FairShareWeight=90, Description="what customers wait for")


def with_several_roles(builder: Builder, **more: Any) -> None:
    """A role for each kind of group, one of them below a path."""
    trust = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": ["sts:AssumeRole"]}
    iam = builder.client("iam")
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    made = iam.create_role(RoleName="training-nodes", Path="/ml/", AssumeRolePolicyDocument=document)
    policy = iam.get_role_policy(RoleName="hyperpod-nodes", PolicyName="eks")["PolicyDocument"]
    iam.put_role_policy(RoleName="training-nodes", PolicyName="own", PolicyDocument=json.dumps(policy))
    other = made["Role"]["Arn"]
    builder.cluster(
        builder.group("far", 1, "use1-az5", ExecutionRole=other),
        builder.group("more", 1, "use1-az4", **more),
        builder.group("system", 1, "use1-az4"),
    )


def with_files_of_another_stack(builder: Builder) -> None:
    """A file system that somebody's stack owns, two roles, and a group with an AMI of its own."""
    properties = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [SUBNETS["use1-az4"]],
        "SecurityGroupIds": [NODES],
        "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
    }
    template = {"Resources": {"Files": {"Type": "AWS::FSx::FileSystem", "Properties": properties}}}
    cloudformation = builder.client("cloudformation")
    cloudformation.create_stack(StackName="files", TemplateBody=json.dumps(template))
    cloudformation.get_waiter("stack_create_complete").wait(StackName="files", WaiterConfig={"Delay": 1})
    with_several_roles(builder, ImageId="ami-0123456789abcdef0")


def with_checks_and_tiers(builder: Builder) -> None:
    """Accelerators with deep health checks, a schedule for updates of the software, checkpoints in memory."""
    builder.cluster(
        builder.group(
            "gpu",
            1,
            "use1-az5",
            InstanceType="ml.g6e.12xlarge",
            OnStartDeepHealthChecks=["InstanceStress", "InstanceConnectivity"],
        ),
        builder.group(
            "system",
            1,
            "use1-az4",
            ScheduledUpdateConfig={"ScheduleExpression": "cron(0 3 ? * SUN *)"},
            InstanceStorageConfigs=None,
        ),
        NodeRecovery="None",
        TieredStorageConfig={"Mode": "Enable", "InstanceMemoryAllocationPercentage": 30},
    )


def as_the_set_up_stack_drops_pins(builder: Builder) -> None:
    """Groups in the cluster's own subnets: that stack's template gives none to a group whose zone it does not find."""
    builder.cluster(builder.group("free", 2), builder.group("none", 0), builder.group("system", 1, "use1-az4"))


def as_terraform_makes_it(builder: Builder) -> None:
    """Karpenter with a role of its own, and two nodes that it has added to a group of count 0.

    The operator's cert-manager has values of its own, and there are quotas and no policy.
    """
    role = builder.role("karpenter", "hyperpod.sagemaker.amazonaws.com")
    actions = ["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"]
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    builder.client("iam").put_role_policy(RoleName="karpenter", PolicyName="nodes", PolicyDocument=document)
    builder.cluster(
        builder.group("scaled", 0, "use1-az5"),
        builder.group("system", 2, "use1-az4"),
        AutoScaling={"Mode": "Enable", "AutoScalerType": "Karpenter"},
        ClusterRole=role,
        Tags=[{"Key": "SageMaker", "Value": "true"}, {"Key": "team", "Value": "research"}],
    )
    wanted = [{"InstanceGroupName": "scaled", "IncrementTargetCountBy": 2}]
    builder.client("sagemaker").batch_add_cluster_nodes(ClusterName="ml-cluster", NodesToAdd=wanted)
    builder.until(lambda: sum(name == "scaled" for name in nodes(builder).values()) == 2)
    builder.operator(json.dumps({"replicaCount": 1, "webhook": {"replicaCount": 1}}))
    builder.governance()
    rows = [{"InstanceType": "ml.m5.2xlarge", "Count": 1}]
    config = {"ComputeQuotaResources": rows, "ResourceSharingConfig": {"Strategy": "LendAndBorrow"}}
    builder.quota("research", "research", {**config, "PreemptTeamTasks": "LowerPriority"})


def edited(text: str, edit: Callable[[Any], Any]) -> str:
    """Change a file as its data."""
    data = yaml.safe_load(text)
    edit(data)
    changed: str = yaml.safe_dump(data, sort_keys=False)
    return changed


def group(name: str, **more: Any) -> Callable[[Any], None]:
    """Write something into a group."""

    def edit(data: Any) -> None:
        for each in data["hyperpod"]["instance_groups"]:
            if each["name"] == name:
                each.update(more)

    return edit


def scaled_by_karpenter(text: str) -> str:
    """Do what the import says about the groups that Karpenter scales."""
    return edited(text, group("scaled", count=0))


def with_its_administrator(text: str) -> str:
    """Name who administers the cluster already, as the import says."""
    admins = [f"arn:aws:iam::{ACCOUNT}:role/platform-admin"]
    return edited(text, lambda data: data["eks"].update(admin_role_arns=admins))


EDITS: dict[Any, Callable[[str], str]] = {
    as_terraform_makes_it: scaled_by_karpenter,
    by_the_command_line: with_its_administrator,
}
"""What a person does with the file before the takeover."""

ALWAYS = ("AWS::IAM::Role", "AWS::SageMaker::Cluster")
ADD_ON, ASSOCIATION = "AWS::EKS::Addon", "AWS::EKS::PodIdentityAssociation"
POLICY, QUOTA = "AWS::SageMaker::ClusterSchedulerConfig", "AWS::SageMaker::ComputeQuota"
TAKEN: dict[Any, tuple[str, ...]] = {
    # the driver of the file systems stays, which no claim of the file asks for
    as_the_set_up_stack_makes_it: (*ALWAYS, ADD_ON, ADD_ON, ASSOCIATION),
    by_the_command_line: (*ALWAYS, "AWS::EKS::AccessEntry"),
    with_teams: (*ALWAYS, POLICY, QUOTA, QUOTA, ADD_ON),
    with_several_roles: ALWAYS,
    with_files_of_another_stack: ALWAYS,
    with_checks_and_tiers: ALWAYS,
    as_the_set_up_stack_drops_pins: ALWAYS,
    # with the role of Karpenter; cert-manager has values of its own and stays
    as_terraform_makes_it: (*ALWAYS, "AWS::IAM::Role", QUOTA, ADD_ON, ADD_ON, ASSOCIATION),
}


@pytest.mark.examples
@pytest.mark.timeout(600)
@pytest.mark.parametrize("build", TAKEN)
def test_takeovers_of_other_clusters(build: Callable[[Builder], None], builder: Builder, tmp_path: Path) -> None:
    build(builder)
    before, running = (described(builder), beside(builder)), nodes(builder)
    head = written(tmp_path, EDITS.get(build, str))
    found = planned(reading(), head, "ml-cluster")
    assert found.refusals == ()
    assert Counter(each.type for each in found.taken) == Counter(TAKEN[build])
    # interrupted after each step, and taken up again
    for at in range(len(found.steps)):
        again = planned(reading(), head, "ml-cluster")
        assert [[each.id for each in rows] for rows in again.steps] == [
            [each.id for each in rows] for rows in found.steps[at:]
        ]
        is_done, told = done(
            replace(again, taken=tuple(each for each in again.taken if each.is_there or each in again.steps[0]))
        )
        assert is_done, told
    assert (described(builder), beside(builder)) == before
    assert planned(reading(), head, "ml-cluster").open == ()
    # the way back
    go_back(builder, found)
    assert ((described(builder), beside(builder)), nodes(builder)) == (before, running)
    is_done, told = done(planned(reading(), head, "ml-cluster"))
    assert is_done, told
    goes_on(builder, tmp_path, head, running)
    assert groups_of(described(builder)) == groups_of(before[0])
    assert ids(beside(builder)).items() >= ids(before[1]).items()
    assert planned(reading(), head, "ml-cluster").open == ()


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_a_quota_is_the_file_s_from_then_on(builder: Builder, tmp_path: Path) -> None:
    """Another amount in the file is another version of the same quota, and its team keeps what it has otherwise."""
    with_teams(builder)
    before = beside(builder)
    head = written(tmp_path)
    assert done(planned(reading(), head, "ml-cluster"))[0]
    deployed(builder, tmp_path, head)
    assert beside(builder)["research"]["ComputeQuotaVersion"] == before["research"]["ComputeQuotaVersion"]

    def more(data: Any) -> None:
        data["task_governance"]["teams"][0]["fair_share_weight"] = 40

    (tmp_path / "more").mkdir()
    deployed(builder, tmp_path / "more", written(tmp_path / "more", lambda text: edited(text, more)))
    after = beside(builder)
    assert ids(after) == ids(before)
    assert after["research"]["ComputeQuotaTarget"] == {"TeamName": "research", "FairShareWeight": 40}
    assert after["research"]["ComputeQuotaConfig"] == before["research"]["ComputeQuotaConfig"]
    assert after["research"]["ComputeQuotaVersion"] == before["research"]["ComputeQuotaVersion"] + 1
    assert after["serving"] == before["serving"]
    assert after["policy"] == before["policy"]

    # and it goes with the environment, in an order that SageMaker takes
    unprotected = written(tmp_path / "more", lambda text: f"{text}deletion_protection: false\n")
    deployed(builder, tmp_path / "more", unprotected)
    person, source = Person(), Source(assembly=unprotected, side=Side(label="working tree"))
    assert Destruction(aws=reading, head=source, person=person, pause=a_moment).run(), person.told
    assert stacks(builder) == {}
    assert {"policy", "research", "serving", "amazon-sagemaker-hyperpod-taskgovernance"} & set(beside(builder)) == set()


def deployed(builder: Builder, folder: Path, head: Assembly) -> None:
    cdk: Any = WithPlaceholder(InProcessCdk(Aws(builder.there, folder)), "lab")
    person, source = Person(), Source(assembly=head, side=Side(label="working tree"))
    deployment = Deployment(aws=reading, head=source, cdk=cdk, person=person, pause=a_moment)
    assert deployment.run(), (person.told, person.shown[0].refusals)


def go_back(builder: Builder, found: Takeover) -> None:
    """Delete the stacks of a takeover in the order that its plan names."""
    mark = "  aws cloudformation delete-stack --stack-name "
    names = [line.removeprefix(mark) for line in lines(found) if line.startswith(mark)]
    for name in names:
        builder.client("cloudformation").delete_stack(StackName=name)
        builder.until(lambda name=name: name not in stacks(builder))
    assert stacks(builder) == {}


def groups_of(told: Any) -> dict[str, Any]:
    """Return what HyperPod never changes of groups, and their counts."""
    fixed = ("ExecutionRole", "OverrideVpcConfig", "ThreadsPerCore", "InstanceType", "TargetCount")
    return {row["InstanceGroupName"]: {key: row.get(key) for key in fixed} for row in told[0]["InstanceGroups"]}


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_what_would_be_replaced_is_refused(builder: Builder, tmp_path: Path) -> None:
    """A file that says of the cluster what HyperPod never changes, and groups without a zone of their own."""
    builder.cluster(builder.group("far", 1, "use1-az5"), builder.group("free", 1))

    def refused(edit: Callable[[str], str]) -> str:
        head = written(tmp_path, edit)
        found = planned(reading(), head, "ml-cluster")
        assert done(Takeover(cluster="ml-cluster"))[0]
        return "\n".join(lines(found))

    pinned_now = refused(lambda text: edited(text, group("free", existing=None)))
    assert pinned_now.startswith("ml-cluster cannot be taken over:")
    assert "free: no subnets of its own (OverrideVpcConfig)" in pinned_now
    subnet = SUBNETS["use1-az4"]
    other = refused(
        lambda text: edited(text, lambda data: data["network"]["existing"].update(cluster_subnet_ids=[subnet]))
    )
    assert "replace" in other
    role = {"execution_role_arn": f"arn:aws:iam::{ACCOUNT}:role/other"}
    assert "ExecutionRole" in refused(lambda text: edited(text, group("far", existing=role)))
    assert "OverrideVpcConfig" in refused(lambda text: edited(text, group("far", existing={"cluster_network": True})))
    smaller = refused(lambda text: text.replace("threads_per_core: 1", "threads_per_core: 2"))
    assert "ThreadsPerCore" in smaller
    assert stacks(builder) == {}


@pytest.mark.examples
@pytest.mark.timeout(600)
def test_what_another_stack_owns(builder: Builder, tmp_path: Path) -> None:
    """As after AWS's set-up: its stack has to let the cluster go first."""
    builder.cluster(builder.group("far", 1, "use1-az5"))
    head = written(tmp_path)
    found = planned(reading(), head, "ml-cluster")
    theirs = found.taken[0]
    template = {"Resources": {"Theirs": theirs.body}}
    cloudformation = builder.client("cloudformation")
    cloudformation.create_change_set(
        StackName="main",
        ChangeSetName="a",
        ChangeSetType="IMPORT",
        TemplateBody=json.dumps(template),
        Capabilities=["CAPABILITY_IAM"],
        ResourcesToImport=[
            {
                "ResourceType": theirs.type,
                "LogicalResourceId": "Theirs",
                "ResourceIdentifier": {"RoleName": "hyperpod-nodes"},
            }
        ],
    )
    cloudformation.execute_change_set(StackName="main", ChangeSetName="a")
    builder.until(lambda: stacks(builder).get("main") == "IMPORT_COMPLETE")
    assert planned(reading(), head, "ml-cluster").refusals == (
        (
            "hyperpod-nodes already belongs to the CloudFormation stack main, which has to release it first:"
            " set DeletionPolicy: Retain there, then remove it from that template"
        ),
    )


GROUPS = [
    {
        "InstanceGroupName": name,
        "ExecutionRole": {"Fn::GetAtt": ["Role", "Arn"]},
        "OverrideVpcConfig": {"Subnets": ["subnet-0a1b2c3d4e5f67890"], "SecurityGroupIds": [scripted.NODES]},
    }
    for name in ("h100", "system")
]
HEAD = Assembly(
    environment="lab",
    stacks=(
        Stack(
            name="lab-hyperpod",
            region=REGION,
            account=ACCOUNT,
            template={
                "Resources": {
                    "Role": {"Type": "AWS::IAM::Role", "Properties": {}},
                    "Cluster": {
                        "Type": "AWS::SageMaker::Cluster",
                        "Properties": {"ClusterName": "ml-cluster", "InstanceGroups": GROUPS},
                    },
                }
            },
        ),
    ),
)


def pinned() -> dict[str, Any]:
    """Return a cluster of which each group has a subnet of its own."""
    cluster = scripted.cluster()
    first, second = cluster["InstanceGroups"]
    second["OverrideVpcConfig"] = first["OverrideVpcConfig"]
    return cluster


def with_cluster(**more: Any) -> dict[str, Any]:
    return {"sagemaker_DescribeCluster": {**pinned(), **more}}


def other_role() -> dict[str, Any]:
    cluster = pinned()
    cluster["InstanceGroups"][1]["ExecutionRole"] = "arn:aws:iam::111122223333:role/other"
    return {"sagemaker_DescribeCluster": cluster}


UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "on Slurm": (
        with_cluster(Orchestrator={"Slurm": {}}),
        "ml-cluster runs on Slurm; this library is for HyperPod on EKS",
    ),
    "not there": (
        {"sagemaker_DescribeCluster": Fails("ResourceNotFound", "not found")},
        "SageMaker has no cluster ml-cluster in this account and region",
    ),
    "while it changes": (
        with_cluster(ClusterStatus="Updating"),
        "ml-cluster is Updating, not InService: wait, or fix it first",
    ),
    "restricted groups": (
        with_cluster(RestrictedInstanceGroups=[{"InstanceGroupName": "nova"}]),
        (
            "ml-cluster has restricted instance groups, whose roles and file systems are not taken over; deploy"
            " a second one: another hyperpod.cluster_name and EKS cluster, then move the work"
        ),
    ),
    "Karpenter": (
        with_cluster(AutoScaling={"Mode": "Enable", "Status": "InService"}, ClusterRole=scripted.ROLE_ARN),
        "Karpenter scales it, and the file does not say so: set hyperpod.autoscaling: karpenter",
    ),
    "two roles": (
        other_role(),
        (
            "its groups use 2 execution roles (arn:aws:iam::111122223333:role/other: system;"
            " arn:aws:iam::111122223333:role/sagemaker-nodes: h100), and the file gives them one. HyperPod never"
            " changes the role of a group: add existing.execution_role_arn to the groups of all roles except one"
        ),
    ),
    "another name": (
        with_cluster(ClusterName="other"),
        "the file says hyperpod.cluster_name: ml-cluster, the cluster is other",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_is_not_taken_over(name: str) -> None:
    answers, said = UNFIT[name]
    aws, _ = scripted.asked(**answers)
    found = planned(aws, HEAD, "ml-cluster")
    assert (found.refusals, found.taken) == ((said,), ())
    assert list(lines(found)) == ["ml-cluster cannot be taken over:", f"  {said}"]


SCALED = {"AutoScaling": {"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "InService"}}


def head_with(*, manifests: Sequence[str] = (), **more: Any) -> Assembly:
    """Return stacks whose cluster has ``more``, with manifests of Kubernetes objects."""
    (stack,) = HEAD.stacks
    resources = json.loads(json.dumps(stack.template["Resources"]))
    resources["Cluster"]["Properties"].update(more)
    for number, text in enumerate(manifests):
        resources[f"Pool{number}"] = {"Type": "Custom::AWSCDK-EKS-KubernetesResource", "Properties": {"Manifest": text}}
    return replace(HEAD, stacks=(replace(stack, template={"Resources": resources}),))


KARPENTER = "arn:aws:iam::111122223333:role/karpenter"


def test_one_role_for_nodes_and_karpenter() -> None:
    aws, _ = scripted.asked(**{**ANSWERS, **with_cluster(**SCALED, ClusterRole=scripted.ROLE_ARN)})
    assert planned(aws, head_with(AutoScaling={"Mode": "Enable"}), "ml-cluster").refusals == (
        (
            f"{scripted.ROLE_ARN} is the role of Karpenter and of the nodes of h100, system. The environment has two"
            " roles, and each trusts one service. HyperPod changes the role of Karpenter only while autoscaling is off:"
            " disable it, set another role, enable it, and import again"
        ),
    )


def test_a_role_is_imported_or_kept() -> None:
    groups = [GROUPS[0], {**GROUPS[1], "ExecutionRole": scripted.ROLE_ARN}]
    aws, _ = scripted.asked(**ANSWERS)
    assert planned(aws, head_with(InstanceGroups=groups), "ml-cluster").refusals == (
        (
            f"the environment takes over {scripted.ROLE_ARN}, and the file says that system keeps it: remove"
            " existing.execution_role_arn there, or add it to every group"
        ),
    )


def test_karpenter_without_a_role_of_its_own() -> None:
    aws, _ = scripted.asked(**{**ANSWERS, **with_cluster(**SCALED)})
    assert planned(aws, head_with(AutoScaling={"Mode": "Enable"}), "ml-cluster").refusals == (
        (
            "Karpenter scales it, and DescribeCluster shows no ClusterRole; deploy a second one: another"
            " hyperpod.cluster_name and EKS cluster, then move the work"
        ),
    )


def test_a_second_set_of_node_pools_is_refused() -> None:
    aws, _ = scripted.asked(**{**ANSWERS, **with_cluster(**SCALED, ClusterRole=KARPENTER)})
    objects = ['[{"kind":"Namespace"}]', '[{"kind":"HyperpodNodeClass"},{"kind":"NodePool"}]']
    head = head_with(manifests=objects, AutoScaling={"Mode": "Enable"})
    assert planned(aws, head, "ml-cluster").refusals == (
        (
            "Karpenter's node pools are in Kubernetes, and the file creates others for the same groups, or"
            " changes them, so Karpenter would replace their nodes: set hyperpod.existing_karpenter_pools: true,"
            " and remove karpenter_pools"
        ),
    )


def test_counts_beside_karpenter_are_named() -> None:
    groups = [{**each, "InstanceCount": count} for each, count in zip(GROUPS, (0, 2), strict=True)]
    head = head_with(AutoScaling={"Mode": "Enable"}, InstanceGroups=groups)
    aws, _ = scripted.asked(**{**ANSWERS, **with_cluster(**SCALED, ClusterRole=KARPENTER)})
    found = planned(aws, head, "ml-cluster")
    assert found.counted == ("system",)
    assert (
        "Karpenter: system keep the count of the file. If a HyperpodNodeClass names one of them, set count: 0"
        " before you deploy; its nodes stay."
    ) in list(lines(replace(found, refusals=())))
    aws, _ = scripted.asked(**ANSWERS)
    assert planned(aws, HEAD, "ml-cluster").counted == ()


def test_roles_that_stay_are_not_taken() -> None:
    """Where the file names the role of every group, the cluster comes alone."""
    groups = [{**each, "ExecutionRole": scripted.ROLE_ARN} for each in GROUPS]
    aws, session = scripted.asked(**ANSWERS)
    found = planned(aws, head_with(InstanceGroups=groups), "ml-cluster")
    assert [each.type for each in found.taken] == ["AWS::SageMaker::Cluster"]
    assert "iam:GetRole" not in [call for call, _ in session.asked]


def test_a_role_that_another_group_has_is_no_other_role() -> None:
    """One group of two brings its own: the role of the other one is the environment's."""
    groups = [GROUPS[0], {**GROUPS[1], "ExecutionRole": "arn:aws:iam::111122223333:role/other"}]
    aws, _ = scripted.asked(**{**ANSWERS, **other_role()})
    found = planned(aws, head_with(InstanceGroups=groups), "ml-cluster")
    assert [each.id for each in found.taken] == ["sagemaker-nodes", scripted.CLUSTER_ARN]


ROLE = {
    "RoleName": "sagemaker-nodes",
    "RoleId": "AROA",
    "Path": "/",
    "Arn": scripted.ROLE_ARN,
    "AssumeRolePolicyDocument": '{"Statement": []}',
}
GONE = Fails("ValidationError", "Stack with id lab-hyperpod does not exist")
ANSWERS: dict[str, Any] = {
    "sagemaker_DescribeCluster": pinned(),
    "iam_GetRole": {"Role": ROLE},
    "iam_ListAttachedRolePolicies": {"AttachedPolicies": []},
    "iam_ListRolePolicies": {"PolicyNames": []},
    "cloudformation_ListStackResources": GONE,
    "cloudformation_DescribeStackResources": GONE,
    "cloudformation_DescribeStacks": GONE,
    "cloudformation_CreateChangeSet": {"Id": "a"},
    "cloudformation_DescribeChangeSet": {"Status": "CREATE_COMPLETE"},
    "cloudformation_ExecuteChangeSet": {},
}


@pytest.mark.parametrize("code", ["AccessDenied", "Throttling", "InternalFailure"])
@pytest.mark.parametrize("call", list(ANSWERS)[1:6])
def test_no_plan_is_returned_without_an_answer(call: str, code: str) -> None:
    aws, _ = scripted.asked(**{**ANSWERS, call: Fails(code, "no", 403)})
    with pytest.raises(NotAnswered, match=call.replace("_", ":")):
        planned(aws, HEAD, "ml-cluster")


EKS_PLACE = {"ClusterName": scripted.EKS}
OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
CONFIG = {
    "ComputeQuotaResources": [{"InstanceType": "ml.p5.48xlarge", "Count": 2}],
    "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 60},
    "PreemptTeamTasks": "Never",
}
GOVERNED: dict[str, Any] = {
    "Policy": {
        "Type": POLICY,
        "Properties": {
            "ClusterArn": {"Fn::GetAtt": ["Cluster", "ClusterArn"]},
            "Name": "policy",
            "Description": "",
            "SchedulerConfig": {"PriorityClasses": [{"Name": "training", "Weight": 80}], "FairShare": "Enabled"},
        },
    },
    "Quota": {
        "Type": QUOTA,
        "Properties": {
            "ClusterArn": {"Fn::GetAtt": ["Cluster", "ClusterArn"]},
            "Name": "research-quota",
            "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 50},
            "ComputeQuotaConfig": CONFIG,
        },
    },
}
BESIDE: dict[str, Any] = {
    **GOVERNED,
    "Operator": {"Type": ADD_ON, "Properties": {**EKS_PLACE, "AddonName": OPERATOR, "ResolveConflicts": "OVERWRITE"}},
    "Pods": {
        "Type": ASSOCIATION,
        "Properties": {
            **EKS_PLACE,
            "Namespace": "aws-hyperpod",
            "ServiceAccount": "controller",
            "RoleArn": {"Fn::GetAtt": ["Other", "Arn"]},
        },
    },
    "Entry": {"Type": "AWS::EKS::AccessEntry", "Properties": {**EKS_PLACE, "PrincipalArn": scripted.ADMIN}},
    # of a role that is still to be made, which nobody let in
    "Kubectl": {
        "Type": "AWS::EKS::AccessEntry",
        "Properties": {**EKS_PLACE, "PrincipalArn": {"Fn::GetAtt": ["Other", "Arn"]}},
    },
    "Other": {"Type": "AWS::IAM::Role", "Properties": {}},
}
POLICY_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:cluster-scheduler-config/abc123abc123"
QUOTA_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:compute-quota/def456def456"
POD_ARN = f"arn:aws:eks:{REGION}:{ACCOUNT}:podidentityassociation/{scripted.EKS}/a-1"


def policy_row(**more: Any) -> dict[str, Any]:
    row = {"ClusterSchedulerConfigArn": POLICY_ARN, "Name": "policy", "Status": "Created", **more}
    return {"ClusterSchedulerConfigSummaries": [row]}


def quota_row(**more: Any) -> dict[str, Any]:
    row = {"ComputeQuotaArn": QUOTA_ARN, "Name": "research-quota", "Status": "Updated", **more}
    return {"ComputeQuotaSummaries": [{**row, "ComputeQuotaTarget": {"TeamName": "research"}}]}


def add_on(**more: Any) -> dict[str, Any]:
    found = {
        "clusterName": scripted.EKS,
        "addonName": OPERATOR,
        "addonVersion": "v1.2.0-eksbuild.1",
        "status": "ACTIVE",
    }
    return {"eks_DescribeAddon": {"addon": {**found, **more}}}


STAND: dict[str, Any] = {
    "cloudformation_ListStackResources": GONE,
    "cloudformation_DescribeStackResources": GONE,
    "sagemaker_ListClusterSchedulerConfigs": policy_row(),
    "sagemaker_ListComputeQuotas": quota_row(),
    "sagemaker_DescribeClusterSchedulerConfig": {
        "ClusterSchedulerConfigArn": POLICY_ARN,
        "Name": "policy",
        "SchedulerConfig": {
            "PriorityClasses": [{"Name": "training", "Weight": 80}],
            "FairShare": "Enabled",
            "IdleResourceSharing": "Disabled",
        },
    },
    "sagemaker_DescribeComputeQuota": {
        "ComputeQuotaArn": QUOTA_ARN,
        "Name": "research-quota",
        "ActivationState": "Enabled",
        "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 50},
        "ComputeQuotaConfig": CONFIG,
    },
    "sagemaker_ListTags": {"Tags": [{"Key": "aws:cloudformation:stack-id", "Value": "a"}]},
    **add_on(),
    "eks_ListPodIdentityAssociations": {"associations": [{"associationArn": POD_ARN, "associationId": "a-1"}]},
    "eks_DescribePodIdentityAssociation": {
        "association": {
            "clusterName": scripted.EKS,
            "namespace": "aws-hyperpod",
            "serviceAccount": "controller",
            "roleArn": "arn:aws:iam::111122223333:role/hpto",
        }
    },
    "eks_DescribeAccessEntry": {
        "accessEntry": {
            "clusterName": scripted.EKS,
            "principalArn": scripted.ADMIN,
            "type": "STANDARD",
            "kubernetesGroups": ["on-call"],
            "tags": {"team": "ml"},
        }
    },
    "eks_ListAssociatedAccessPolicies": {"associatedAccessPolicies": []},
}


def head_beside(resources: dict[str, Any]) -> Assembly:
    """Return stacks that put the cluster and ``resources`` into one, its groups under a role of their own."""
    (stack,) = HEAD.stacks
    groups = [{**each, "ExecutionRole": scripted.ROLE_ARN} for each in GROUPS]
    properties = {"ClusterName": "ml-cluster", "InstanceGroups": groups}
    found = {"Cluster": {"Type": "AWS::SageMaker::Cluster", "Properties": properties}, **resources}
    return replace(HEAD, stacks=(replace(stack, template={"Resources": found}),))


def planned_beside(resources: dict[str, Any], **more: Any) -> Takeover:
    aws, _ = scripted.asked(**{**ANSWERS, **STAND, **more})
    return planned(aws, head_beside(resources), "ml-cluster")


def test_all_that_is_asked_is_in_the_policy_of_the_verb() -> None:
    aws, session = scripted.asked(**{**ANSWERS, **STAND})
    assert planned(aws, head_beside(BESIDE), "ml-cluster").taken
    allowed = {action for each in policy_of("import --takeover")["Statement"] for action in each["Action"]}
    assert {call for call, _ in session.asked} - allowed <= {"sts:GetCallerIdentity"}


def test_what_stands_is_taken_in_the_words_of_the_template() -> None:
    """And without what AWS adds to it; what only a person makes comes along, so that it is seen to go."""
    found = planned_beside(BESIDE)
    assert [[each.id for each in step] for step in found.steps] == [
        [scripted.CLUSTER_ARN],
        [POLICY_ARN, QUOTA_ARN],
        [f"{scripted.EKS}|{OPERATOR}", f"{scripted.ADMIN}|{scripted.EKS}", POD_ARN],
    ]
    bodies = {each.logical_id: each.body["Properties"] for each in found.taken}
    assert {name: bodies[name] for name in GOVERNED} == {name: each["Properties"] for name, each in GOVERNED.items()}
    assert bodies["Operator"] == BESIDE["Operator"]["Properties"]
    assert bodies["Pods"] == {
        **BESIDE["Pods"]["Properties"],
        "RoleArn": "arn:aws:iam::111122223333:role/hpto",
    }
    assert bodies["Entry"] == {
        **BESIDE["Entry"]["Properties"],
        "KubernetesGroups": ["on-call"],
        "Tags": [{"Key": "team", "Value": "ml"}],
    }
    assert {each.body["DeletionPolicy"] for each in found.taken} == {"Retain"}
    # the stack of this test says too little of the cluster itself
    assert [each for each in found.refusals if not each.startswith("AWS::SageMaker::Cluster ")] == []


def test_what_does_not_stand_is_left_to_the_deployment() -> None:
    gone = Fails("ResourceNotFoundException", "none", 404)
    found = planned_beside(
        BESIDE,
        eks_DescribeAddon=gone,
        eks_DescribeAccessEntry=gone,
        eks_ListPodIdentityAssociations={"associations": []},
        sagemaker_ListClusterSchedulerConfigs={"ClusterSchedulerConfigSummaries": []},
        sagemaker_ListComputeQuotas={"ComputeQuotaSummaries": []},
    )
    assert [each.type for each in found.taken] == ["AWS::SageMaker::Cluster"]


VANISHED = {
    "sagemaker_DescribeClusterSchedulerConfig": (Fails("ResourceNotFound", "none"), POLICY),
    "sagemaker_DescribeComputeQuota": (Fails("ValidationException", "ComputeQuota not found"), QUOTA),
    "eks_DescribePodIdentityAssociation": (Fails("ResourceNotFoundException", "none", 404), ASSOCIATION),
    "eks_ListPodIdentityAssociations": (Fails("ResourceNotFoundException", "none", 404), ASSOCIATION),
    "eks_ListAssociatedAccessPolicies": (Fails("ResourceNotFoundException", "none", 404), "AWS::EKS::AccessEntry"),
}


@pytest.mark.parametrize("call", VANISHED)
def test_what_goes_between_two_calls_is_left_to_the_deployment(call: str) -> None:
    gone, kind = VANISHED[call]
    found = planned_beside(BESIDE, **{call: gone})
    assert {each.type for each in planned_beside(BESIDE).taken} - {each.type for each in found.taken} == {kind}


_ADD_ON_HERE = f"the add-on {OPERATOR} of {scripted.EKS}"
_KEEP = "add it to eks.existing.installed_addons to use it as it is, or remove that from it first"
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a role of the add-on": (
        BESIDE,
        add_on(serviceAccountRoleArn="arn:aws:iam::111122223333:role/irsa"),
        (
            f"{_ADD_ON_HERE}: ServiceAccountRoleArn is arn:aws:iam::111122223333:role/irsa, and the environment's is"
            " none;"
            f" it is unknown how its pods react to another one: {_KEEP}"
        ),
    ),
    "values of the add-on": (
        BESIDE,
        add_on(configurationValues='{"replicaCount": 2}'),
        (
            f'{_ADD_ON_HERE}: ConfigurationValues is {{"replicaCount": "2"}}, and the environment\'s is none; it is'
            f" unknown how its pods react to another one: {_KEEP}"
        ),
    ),
    "associations of the add-on": (
        BESIDE,
        add_on(podIdentityAssociations=[POD_ARN]),
        (
            f"{_ADD_ON_HERE}: it owns PodIdentityAssociations ({POD_ARN}). An environment has them as resources of"
            " their own, and"
            f" EKS accepts each service account once: {_KEEP}"
        ),
    ),
    "an add-on that does not work": (
        BESIDE,
        add_on(status="DEGRADED", health={"issues": [{"code": "AccessDenied", "message": "no role"}]}),
        (
            f"{_ADD_ON_HERE}: Status is DEGRADED (AccessDenied: no role): wait until it is ACTIVE, or repair it; or"
            f" {_KEEP}"
        ),
    ),
    "an add-on that is updated": (
        BESIDE,
        add_on(status="UPDATING"),
        f"{_ADD_ON_HERE}: Status is UPDATING: wait until it is ACTIVE, or repair it; or {_KEEP}",
    ),
    "an add-on in another namespace": (
        BESIDE,
        add_on(namespaceConfig={"namespace": "operators"}),
        (
            f"{_ADD_ON_HERE}: NamespaceConfig is operators, and the environment's is aws-hyperpod, which EKS never"
            f" changes: {_KEEP}"
        ),
    ),
    "an entry of nodes": (
        BESIDE,
        {
            "eks_DescribeAccessEntry": {
                "accessEntry": {
                    "clusterName": scripted.EKS,
                    "principalArn": scripted.ADMIN,
                    "type": "HYPERPOD_LINUX",
                }
            }
        },
        (
            f"the access entry of {scripted.ADMIN} in {scripted.EKS}: Type is HYPERPOD_LINUX, and the environment's is"
            " STANDARD, which EKS never changes: remove the role from eks.admin_role_arns or member_role_arns"
        ),
    ),
    "an association that goes on to another role": (
        BESIDE,
        {
            "eks_DescribePodIdentityAssociation": {
                "association": {
                    **STAND["eks_DescribePodIdentityAssociation"]["association"],
                    "targetRoleArn": "arn:aws:iam::444455556666:role/theirs",
                }
            }
        },
        (
            f"the pod identity association {POD_ARN} of aws-hyperpod/controller: it has TargetRoleArn, and the"
            " environment's has none; it is unknown how its pods react to that: add its add-on to"
            " eks.existing.installed_addons"
        ),
    ),
    "an association that an add-on owns": (
        BESIDE,
        {
            "eks_ListPodIdentityAssociations": {
                "associations": [{"associationArn": POD_ARN, "associationId": "a-1", "ownerArn": "arn:aws:eks:a"}]
            }
        },
        (
            f"the pod identity association {POD_ARN} of aws-hyperpod/controller: OwnerArn is arn:aws:eks:a, and EKS"
            " deletes it with that add-on: add the add-on to eks.existing.installed_addons"
        ),
    ),
    "another name of the policy": (
        BESIDE,
        {"sagemaker_ListClusterSchedulerConfigs": policy_row(Name="theirs")},
        (
            f"the cluster policy {POLICY_ARN}: Name is theirs, and the file has policy. SageMaker never changes the"
            " name: set task_governance.policy_name to theirs"
        ),
    ),
    "another name of a quota": (
        BESIDE,
        {"sagemaker_ListComputeQuotas": quota_row(Name="theirs")},
        (
            f"the compute quota {QUOTA_ARN}: Name is theirs, and the file has research-quota. SageMaker never changes"
            " the name: set quota_name of the team in task_governance.teams to theirs"
        ),
    ),
    "a quota that failed": (
        BESIDE,
        {"sagemaker_ListComputeQuotas": quota_row(Status="UpdateFailed")},
        (
            f"the compute quota research-quota ({QUOTA_ARN}): Status is UpdateFailed: wait until it is Created or"
            " Updated, or repair it"
        ),
    ),
    "a region without the type": (
        {**BESIDE, "Policy": {**GOVERNED["Policy"], "Type": "Custom::ClusterSchedulerConfig"}},
        {},
        (
            f"the cluster policy policy ({POLICY_ARN}): the environment creates it with Custom::ClusterSchedulerConfig,"
            " which CloudFormation does not import, and SageMaker refuses a second one: remove task_governance,"
            " and it stays as it is; in a Region whose CloudFormation has the type, provider: native may work"
        ),
    ),
}


@row_by_row("name", REFUSED)
def test_what_a_deployment_would_do_without_knowing(name: str) -> None:
    resources, answers, said = REFUSED[name]
    found = planned_beside(resources, **answers)
    assert (found.refusals, found.taken) == ((said,), ())


_THEIRS = (
    " already belongs to the CloudFormation stack theirs, which has to release it first: set DeletionPolicy: Retain"
    " there, then remove it from that template"
)


def test_what_another_stack_owns_may_stay_there() -> None:
    """The cluster has to go; for all else there is a field of the file that leaves it."""
    row = {"StackName": "theirs", "ResourceStatus": "CREATE_COMPLETE", "LogicalResourceId": "A", "ResourceType": "A"}
    owned = {"StackResources": [{**row, "Timestamp": datetime(2026, 11, 1, tzinfo=UTC)}]}
    found = planned_beside(BESIDE, cloudformation_DescribeStackResources=owned)
    assert [each for each in found.refusals if _THEIRS in each] == [
        f"{scripted.CLUSTER_ARN}{_THEIRS}",
        f"{POLICY_ARN}{_THEIRS}. To leave it there: remove task_governance from the file",
        f"{QUOTA_ARN}{_THEIRS}. To leave it there: remove task_governance from the file",
        f"{scripted.EKS}|{OPERATOR}{_THEIRS}. To leave it there: add the add-on to eks.existing.installed_addons",
        (
            f"{scripted.ADMIN}|{scripted.EKS}{_THEIRS}. To leave it there: remove the role from eks.admin_role_arns or"
            " member_role_arns"
        ),
        f"{POD_ARN}{_THEIRS}. To leave it there: add its add-on to eks.existing.installed_addons",
    ]


def test_everything_that_refuses_is_reported_at_once() -> None:
    answers = {**REFUSED["another name of a quota"][1], **REFUSED["values of the add-on"][1]}
    assert len(planned_beside(BESIDE, **answers).refusals) == 2


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
@pytest.mark.parametrize("call", [each for each in STAND if not each.startswith("cloudformation")])
def test_no_plan_is_returned_if_deployed_stacks_could_not_be_read(call: str, code: str) -> None:
    with pytest.raises(NotAnswered, match=call.replace("_", ":")):
        planned_beside(BESIDE, **{call: Fails(code, "no", 403)})


RECOVER = "'hyperpod-cdk recover lab' names the cause and what works"
TAKES_IMPORTS = {
    *("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"),
    *("REVIEW_IN_PROGRESS", "DELETE_COMPLETE"),
}


@row_by_row(
    "status",
    [
        *get_session().get_service_model("cloudformation").shape_for("StackStatus").enum,  # type: ignore[attr-defined]  # botocore: an enum of strings
        "HALTED",
    ],
)
def test_a_takeover_begins_where_a_stack_takes_a_change_set(status: str) -> None:
    """CloudFormation user guide, "Stack status codes"."""
    stack = {"StackName": "lab-hyperpod", "StackStatus": status}
    found = planned_beside({}, cloudformation_DescribeStacks={"Stacks": [stack]})
    said = [each for each in found.refusals if each.startswith("lab-hyperpod is ")]
    if status in TAKES_IMPORTS:
        assert said == []
    elif status.endswith("_IN_PROGRESS"):
        assert said == [f"lab-hyperpod is {status}: CloudFormation works on it; wait until it has ended"]
    elif status == "ROLLBACK_COMPLETE":
        delete = "'aws cloudformation delete-stack --stack-name lab-hyperpod'"
        assert said == [f"lab-hyperpod is ROLLBACK_COMPLETE, holds nothing and can only be deleted: {delete}"]
    else:
        assert said == [f"lab-hyperpod is {status}, which allows no import: {RECOVER}"]


@pytest.mark.parametrize("is_deployed", [True, False])
def test_a_stack_that_is_deployed_gives_nothing_on(is_deployed: bool) -> None:  # noqa: FBT001 - a case
    """Its template would leave out all that the deployment has made there, and CloudFormation would delete it."""
    arn = {"Fn::GetAtt": ["Cluster", "ClusterArn"]}
    (first,) = head_beside({}).stacks
    exported = {"Outputs": {"Arn": {"Value": arn, "Export": {"Name": "lab-hyperpod:Arn"}}}}
    quota = {**GOVERNED["Quota"]["Properties"], "ClusterArn": {"Fn::ImportValue": "lab-hyperpod:Arn"}}
    governed = {"Resources": {"Quota": {"Type": QUOTA, "Properties": quota}}}
    head = replace(
        HEAD,
        stacks=(
            replace(first, template={**first.template, **exported}),
            replace(first, name="lab-platform", template=governed),
        ),
    )
    others = [("Cluster", scripted.CLUSTER_ARN), *([("Waiter", "waiter")] if is_deployed else [])]
    summaries = [
        {
            "LogicalResourceId": name,
            "PhysicalResourceId": physical,
            "ResourceType": "A",
            "ResourceStatus": "CREATE_COMPLETE",
            "LastUpdatedTimestamp": datetime(2026, 11, 1, tzinfo=UTC),
        }
        for name, physical in others
    ]

    def listed(params: Any) -> Any:
        return {"StackResourceSummaries": summaries} if params["StackName"] == "lab-hyperpod" else GONE

    stack = {"StackName": "lab-hyperpod", "StackStatus": "IMPORT_COMPLETE"}
    answers = {**ANSWERS, **STAND, "cloudformation_ListStackResources": listed}
    aws, _ = scripted.asked(**{**answers, "cloudformation_DescribeStacks": {"Stacks": [stack]}})
    if not is_deployed:
        found = planned(aws, head, "ml-cluster")
        assert [(each.id, each.is_there, each.is_given) for each in found.open] == [
            (scripted.CLUSTER_ARN, True, False),
            (QUOTA_ARN, False, False),
        ]
        return
    with pytest.raises(NotAnswered) as refused:
        planned(aws, head, "ml-cluster")
    assert refused.value.sentence == (
        f"the stack lab-hyperpod already exists without the outputs of {scripted.CLUSTER_ARN}: a takeover starts before"
        " the first deployment of the environment"
    )


def test_a_type_that_cloudformation_does_not_import() -> None:
    """The cluster stays imported, and nothing of the policy has changed: there is a way on without it."""
    says = "ResourceTypes [AWS::SageMaker::ComputeQuota] are not supported for Import"
    found = planned_beside(GOVERNED)
    made: list[str] = []

    def create(params: Any) -> Any:
        made.append(params["ResourcesToImport"][0]["ResourceType"])
        return Fails("ValidationError", says) if made[-1] == POLICY else {"Id": "a"}

    aws, _ = scripted.asked(
        **{
            **ANSWERS,
            "cloudformation_CreateChangeSet": create,
            "cloudformation_DescribeStacks": {"Stacks": [{"StackName": "lab", "StackStatus": "IMPORT_COMPLETE"}]},
            "cloudformation_DeleteChangeSet": {},
        }
    )
    told: list[str] = []
    assert not Import(aws=aws, say=told.append, pause=nothing_goes_on).run(found)
    assert made == ["AWS::SageMaker::Cluster", POLICY]
    assert told[2:4] == [
        f"lab-hyperpod: imports {POLICY} {POLICY_ARN} (policy)",
        f"lab-hyperpod: imports {QUOTA} {QUOTA_ARN} (research-quota)",
    ]
    assert says in told[4]
    assert told[5:] == [
        (
            "lab-hyperpod: AWS::SageMaker::ClusterSchedulerConfig and AWS::SageMaker::ComputeQuota are not in"
            " CloudFormation's list of types that it imports, and nothing was changed. To continue without them:"
            " remove task_governance from the file, and run the same command again"
        )
    ]


def test_no_plan_is_returned_from_a_partial_answer() -> None:
    role = {key: value for key, value in ROLE.items() if key != "Path"}
    aws, _ = scripted.asked(**{**ANSWERS, "iam_GetRole": {"Role": role}})
    with pytest.raises(
        NotAnswered, match=("the answer to the existing resources of ml-cluster cannot be read: 'Path' is missing")
    ):
        planned(aws, HEAD, "ml-cluster")


def test_a_group_of_no_zone_is_named_with_the_way_out() -> None:
    aws, _ = scripted.asked(**{**ANSWERS, "sagemaker_DescribeCluster": scripted.cluster()})
    assert planned(aws, HEAD, "ml-cluster").refusals == (
        (
            "system: no subnets of its own (OverrideVpcConfig). The file puts every group into the subnet of its"
            " zone, and HyperPod never changes that: add existing: {cluster_network: true} to the group"
        ),
    )


FAILS: dict[str, tuple[dict[str, Any], str]] = {
    "nobody may": (
        {"cloudformation_CreateChangeSet": Fails("AccessDenied", "no", 403)},
        'no permission for cloudformation:CreateChangeSet; allow cloudformation:CreateChangeSet; AWS says: "no"',
    ),
    "a change set that fails": (
        {"cloudformation_DescribeChangeSet": {"Status": "FAILED", "StatusReason": "the role is gone"}},
        "CloudFormation refuses: the role is gone",
    ),
}


@pytest.mark.parametrize("name", FAILS)
def test_what_cloudformation_refuses_ends_it(name: str) -> None:
    answers, said = FAILS[name]
    aws, session = scripted.asked(**{**ANSWERS, **answers})
    found = replace(planned(aws, HEAD, "ml-cluster"), refusals=())
    told: list[str] = []
    assert not Import(aws=aws, say=told.append, pause=nothing_goes_on).run(found)
    assert told == [
        "lab-hyperpod: imports AWS::IAM::Role sagemaker-nodes",
        f"lab-hyperpod: {said}",
    ]
    assert "cloudformation:ExecuteChangeSet" not in [call for call, _ in session.asked]


def test_the_reason_of_an_import_that_fails_is_its_first_failure_on_whatever_page() -> None:
    stack = {"StackName": "lab", "StackId": "arn:stack/lab/1", "StackStatus": "IMPORT_ROLLBACK_COMPLETE"}
    ids = {"StackId": "arn", "PhysicalResourceId": "arn"}
    begun = {"LogicalResourceId": "lab", "ResourceType": "AWS::CloudFormation::Stack", **ids}
    role = {"LogicalResourceId": "Role", "ResourceType": "AWS::IAM::Role", "ResourceStatus": "IMPORT_FAILED"}

    def page(params: Any) -> dict[str, Any]:
        if params.get("NextToken"):
            rows = [
                {**role, "ResourceStatusReason": "the role has another path"},
                {**begun, "ResourceStatus": "IMPORT_IN_PROGRESS"},
                # of an attempt before
                {**role, "ResourceStatusReason": "the role is gone"},
            ]
            return {"StackEvents": rows}
        cancelled = {**role, "LogicalResourceId": "Other", "ResourceStatusReason": "Resource import cancelled"}
        back = {**begun, "ResourceStatus": "IMPORT_ROLLBACK_IN_PROGRESS", "ResourceStatusReason": "failed to import"}
        return {"StackEvents": [back, cancelled], "NextToken": "1"}

    told: list[str] = []
    answers = {
        "cloudformation_DescribeStacks": {"Stacks": [stack]},
        "cloudformation_DescribeStackEvents": page,
        "cloudformation_DeleteChangeSet": {},
    }
    found = replace(planned_beside({}), refusals=())
    aws, _ = scripted.asked(**{**ANSWERS, "cloudformation_CreateChangeSet": {"Id": "a"}, **answers})
    assert not Import(aws=aws, say=told.append, pause=nothing_goes_on).run(found)
    assert told[-1] == "lab-hyperpod: the role has another path; the resources to import were not changed"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cluster.json", "--takeover"), "--takeover is for --cluster\n"),
        (("--cluster", "a", "--plan"), "--plan and --head are for --takeover\n"),
        (("--cluster", "a", "--head", "x"), "--plan and --head are for --takeover\n"),
    ],
)
def test_words_that_do_not_go_together(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    answer = CliRunner().invoke(cli.app, ["import", "--name", "lab", "--project", str(tmp_path), *words])
    assert (answer.exit_code, answer.stderr) == (2, said)


def test_only_the_change_set_that_was_made_is_executed() -> None:
    """Under its name another takeover, which runs at the same time, may have put its own there."""
    mine = "arn:aws:cloudformation:us-east-1:111122223333:changeSet/hyperpod-cdk-takeover/mine"
    aws, session = scripted.asked(
        **{
            **ANSWERS,
            "cloudformation_CreateChangeSet": {"Id": mine},
            "cloudformation_DescribeStacks": {"Stacks": [{"StackName": "lab", "StackStatus": "IMPORT_COMPLETE"}]},
            "cloudformation_DeleteChangeSet": {},
        }
    )
    found = replace(planned(aws, HEAD, "ml-cluster"), refusals=())
    Import(aws=aws, say=lambda _: None, pause=nothing_goes_on).run(found)
    named = {
        (call, params["ChangeSetName"])
        for call, params in session.asked
        if call in ("cloudformation:DescribeChangeSet", "cloudformation:ExecuteChangeSet")
    }
    assert named == {("cloudformation:DescribeChangeSet", mine), ("cloudformation:ExecuteChangeSet", mine)}
