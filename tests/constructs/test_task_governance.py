"""Task governance: order, properties of native and custom resources, rights, members."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_eks_v2 as eks_v2
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks

from hyperpod_cdk.catalog import instance_types, regions
from hyperpod_cdk.catalog.governance import NATIVE_REGIONS, is_native
from hyperpod_cdk.governance.task_governance import TaskGovernance
from hyperpod_cdk.governance.teams import PriorityClass, QuotaRow, Team
from hyperpod_cdk.templates.cdk_plugin import check_templates
from tests.support.tables import row_by_row

CLUSTER_ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef012345"
ALICE = "arn:aws:iam::111122223333:role/alice"
BOB = "arn:aws:iam::111122223333:role/team/bob"


def team(name: str = "research", **rest: Any) -> Team:
    quota = rest.pop("quota", [QuotaRow(instance_type="ml.p5.48xlarge", count=2)])
    return Team(name=name, quota=quota, **rest)


# two teams that share four nodes, three to one, as in the walk-through of the feature's first blog post
JOHN = Team(
    name="john",
    quota=[QuotaRow(instance_type="ml.g5.12xlarge", count=3)],
    fair_share_weight=0,
    borrow_limit_percent=50,
)
SMITH = Team(
    name="smith",
    quota=[QuotaRow(instance_type="ml.g5.12xlarge", count=1)],
    fair_share_weight=100,
    borrow_limit_percent=100,
)


def governance(scope: cdk.Stack, *, native: bool = True, **rest: Any) -> TaskGovernance:
    arguments: dict[str, Any] = {
        "name_prefix": "prod",
        "teams": [team()],
        "native_scheduler_config": native,
        "native_compute_quota": native,
        **rest,
    }
    return TaskGovernance(scope, "Governance", eks_cluster_name="prod-eks", cluster_arn=CLUSTER_ARN, **arguments)


def template(*, native: bool = True, **rest: Any) -> dict[str, Any]:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    governance(stack, native=native, **rest)
    found: dict[str, Any] = Template.from_stack(stack).to_json()["Resources"]
    return found


def of_type(resources: dict[str, Any], resource_type: str) -> dict[str, dict[str, Any]]:
    return {key: each for key, each in resources.items() if each["Type"] == resource_type}


def properties(resources: dict[str, Any], resource_type: str) -> dict[str, Any]:
    (found,) = of_type(resources, resource_type).values()
    return dict(found["Properties"])


def test_two_teams_of_the_blog_post_natively() -> None:
    resources = template(teams=[JOHN, SMITH], ordering="first_come_first_served", idle_compute="fair_share")

    policy = properties(resources, "AWS::SageMaker::ClusterSchedulerConfig")
    john, smith = (each["Properties"] for each in of_type(resources, "AWS::SageMaker::ComputeQuota").values())
    assert policy == {
        "ClusterArn": CLUSTER_ARN,
        "Name": "prod-policy",
        "Description": "",
        "SchedulerConfig": {"PriorityClasses": [], "FairShare": "Enabled"},
    }
    assert john == {
        "ClusterArn": CLUSTER_ARN,
        "Name": "prod-john",
        "Description": "",
        "ActivationState": "Enabled",
        "ComputeQuotaTarget": {"TeamName": "john", "FairShareWeight": 0},
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": [{"InstanceType": "ml.g5.12xlarge", "Count": 3}],
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
            "PreemptTeamTasks": "LowerPriority",
        },
    }
    assert smith["ComputeQuotaTarget"] == {"TeamName": "smith", "FairShareWeight": 100}
    assert smith["ComputeQuotaConfig"]["ResourceSharingConfig"] == {"Strategy": "LendAndBorrow", "BorrowLimit": 100}
    assert not of_type(resources, "AWS::Lambda::Function"), "nothing to serve"


@pytest.mark.parametrize("native_scheduler", [True, False])
@pytest.mark.parametrize("native_quota", [True, False])
def test_add_on_then_policy_then_quotas(native_scheduler: bool, native_quota: bool) -> None:  # noqa: FBT001 - parameters
    resources = template(
        teams=[team("a"), team("b")], native_scheduler_config=native_scheduler, native_compute_quota=native_quota
    )

    scheduler = "AWS::SageMaker" if native_scheduler else "Custom"
    quota = "AWS::SageMaker" if native_quota else "Custom"
    (addon_id,) = of_type(resources, "AWS::EKS::Addon")
    ((policy_id, policy),) = of_type(resources, f"{scheduler}::ClusterSchedulerConfig").items()
    quotas = of_type(resources, f"{quota}::ComputeQuota")
    assert policy["DependsOn"] == [addon_id]
    assert len(quotas) == 2
    assert [each["DependsOn"] for each in quotas.values()] == [[policy_id], [policy_id]]


def test_the_add_on_has_neither_role_nor_version_of_ours() -> None:
    assert properties(template(), "AWS::EKS::Addon") == {
        "AddonName": "amazon-sagemaker-hyperpod-taskgovernance",
        "ClusterName": "prod-eks",
        "ResolveConflicts": "OVERWRITE",
    }
    assert properties(template(addon_version="v1.6.0-eksbuild.1"), "AWS::EKS::Addon")["AddonVersion"] == (
        "v1.6.0-eksbuild.1"
    )


def test_custom_resources_carry_the_native_properties() -> None:
    native, custom = template(tags={"b": "2", "a": "1"}), template(native=False, tags={"b": "2", "a": "1"})

    for noun in ("ClusterSchedulerConfig", "ComputeQuota"):
        served = properties(custom, f"Custom::{noun}")
        assert served.pop("ServiceTimeout") == 960
        assert served.pop("ServiceToken") == {
            "Fn::GetAtt": [next(iter(of_type(custom, "AWS::Lambda::Function"))), "Arn"]
        }
        assert served == properties(native, f"AWS::SageMaker::{noun}")
        assert served["Tags"] == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]


def test_logical_ids_stay() -> None:
    resources = template(native=False, teams=[team("b"), team("a")], native_scheduler_config=True)

    assert list(of_type(resources, "AWS::SageMaker::ClusterSchedulerConfig")) == ["GovernanceSchedulerConfigCFF9C519"]
    assert list(of_type(resources, "Custom::ComputeQuota")) == ["GovernanceQuotab3E3253E1", "GovernanceQuotaa0CEC06C2"]
    assert list(of_type(resources, "AWS::Logs::LogGroup")) == ["GovernanceHandlerLogs07F8AC87"]


def test_one_lambda_serves_all() -> None:
    resources = template(native=False, teams=[team("a"), team("b")])

    function = properties(resources, "AWS::Lambda::Function")
    handler = "handlers.governance.index.handler"
    assert (function["Runtime"], function["Handler"], function["Timeout"]) == ("python3.14", handler, 900)
    assert function["LoggingConfig"] == {"LogGroup": {"Ref": "GovernanceHandlerLogs07F8AC87"}}
    group = resources["GovernanceHandlerLogs07F8AC87"]
    assert group["DeletionPolicy"] == group["UpdateReplacePolicy"] == "Retain"
    assert group["Properties"] == {"RetentionInDays": 365}


def test_the_lambda_may_do_what_the_native_types_may_and_no_more() -> None:
    resources = template(native=False)
    (inline,) = properties(resources, "AWS::IAM::Role")["Policies"]
    statements = inline["PolicyDocument"]["Statement"]

    actions = {action: each for each in statements for action in each["Action"]}
    wide = [each["Action"] for each in statements if each["Resource"] == ["*"]]
    assert wide == [["sagemaker:ListClusterSchedulerConfigs", "sagemaker:ListComputeQuotas"]]
    assert actions["sagemaker:DescribeCluster"]["Resource"] == [CLUSTER_ARN]
    allowed = actions["eks:AssociateAccessPolicy"]["Condition"]["ArnLike"]["eks:policyArn"]["Fn::Join"][1]
    assert allowed == ["arn:", {"Ref": "AWS::Partition"}, ":eks::aws:cluster-access-policy/AmazonSagemakerHyperpod*"]
    assert actions["logs:PutLogEvents"]["Resource"] == [{"Fn::GetAtt": ["GovernanceHandlerLogs07F8AC87", "Arn"]}]
    assert not [action for action in actions if action.endswith("*")]


def test_the_asset_holds_the_handler_alone(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    governance(cdk.Stack(app, "foreign"), native=False)
    app.synth()

    (asset,) = [path for path in tmp_path.iterdir() if path.is_dir() and path.name.startswith("asset.")]
    assert {str(path.relative_to(asset)) for path in asset.rglob("*") if path.is_file()} == {
        "handlers/__init__.py",
        "handlers/answering.py",
        "handlers/governance/__init__.py",
        "handlers/governance/index.py",
    }


@pytest.mark.parametrize(
    ("arguments", "scheduler"),
    [
        (
            {"ordering": "priority"},
            {
                "PriorityClasses": [{"Name": "inference", "Weight": 100}, {"Name": "training", "Weight": 80}],
                "FairShare": "Enabled",
            },
        ),
        (
            {"ordering": "priority", "priority_classes": [PriorityClass(name="urgent", weight=7)]},
            {"PriorityClasses": [{"Name": "urgent", "Weight": 7}], "FairShare": "Enabled"},
        ),
        (
            {"ordering": "first_come_first_served", "idle_compute": "first_come_first_served"},
            {"PriorityClasses": [], "FairShare": "Disabled"},
        ),
        (
            {"ordering": "first_come_first_served", "share_unallocated": True},
            {"PriorityClasses": [], "FairShare": "Enabled", "IdleResourceSharing": "Enabled"},
        ),
        (
            {"ordering": "first_come_first_served", "share_unallocated": False},
            {"PriorityClasses": [], "FairShare": "Enabled", "IdleResourceSharing": "Disabled"},
        ),
    ],
    ids=["default classes", "own classes", "first come", "unallocated too", "unallocated not"],
)
def test_the_policys_words(arguments: dict[str, Any], scheduler: dict[str, Any]) -> None:
    assert properties(template(**arguments), "AWS::SageMaker::ClusterSchedulerConfig")["SchedulerConfig"] == scheduler


@pytest.mark.parametrize(
    ("arguments", "config"),
    [
        ({}, {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50}}),
        ({"sharing": "lend"}, {"ResourceSharingConfig": {"Strategy": "Lend"}}),
        ({"sharing": "dont_lend"}, {"ResourceSharingConfig": {"Strategy": "DontLend"}}),
        ({"preemption": "never"}, {"PreemptTeamTasks": "Never"}),
        (
            {"quota": [QuotaRow(instance_type="ml.p5.48xlarge", accelerators=4, vcpu=96, memory_gib=1024.5)]},
            {
                "ComputeQuotaResources": [
                    {"InstanceType": "ml.p5.48xlarge", "Accelerators": 4, "VCpu": 96, "MemoryInGiB": 1024.5}
                ]
            },
        ),
    ],
    ids=["default", "lend", "keep", "never", "shares of an instance"],
)
def test_a_teams_words(arguments: dict[str, Any], config: dict[str, Any]) -> None:
    quota = properties(template(teams=[team(**arguments)]), "AWS::SageMaker::ComputeQuota")

    assert config.items() <= quota["ComputeQuotaConfig"].items()


def test_descriptions_and_a_quota_out_of_force() -> None:
    resources = template(teams=[team(description="for the paper", active=False)], description="ours")

    quota = properties(resources, "AWS::SageMaker::ComputeQuota")
    assert (quota["Description"], quota["ActivationState"]) == ("for the paper", "Disabled")
    assert properties(resources, "AWS::SageMaker::ClusterSchedulerConfig")["Description"] == "ours"


def test_what_is_not_given_is_sent_as_its_default() -> None:
    resources = template(teams=[team()])

    quota = properties(resources, "AWS::SageMaker::ComputeQuota")
    assert (quota["Description"], quota["ActivationState"]) == ("", "Enabled")
    assert properties(resources, "AWS::SageMaker::ClusterSchedulerConfig")["Description"] == ""


@pytest.mark.parametrize(
    ("wish", "arguments"),
    [
        ("access: rbac", {"access": "rbac", "member_role_arns": [ALICE]}),
        ("default_queue", {"default_queue": True}),
        ("resource_quota", {"resource_quota": {"requests.nvidia.com/gpu": "8"}}),
    ],
)
def test_kubernetes_objects_need_the_cluster(wish: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared below
        template(teams=[team(**arguments)])

    assert str(error.value) == (
        f"team research: needs the EKS cluster, whose kubectl applies the objects for {wish}; pass cluster"
    )


def test_no_teams_is_a_policy_alone() -> None:
    resources = template(teams=[], native_scheduler_config=True, native_compute_quota=False)

    assert sorted(each["Type"] for each in resources.values()) == [
        "AWS::EKS::Addon",
        "AWS::SageMaker::ClusterSchedulerConfig",
    ]


@row_by_row(
    "make, message",
    [
        (
            lambda: PriorityClass(name="Urgent", weight=1),
            (
                "priority class Urgent: name: must be 1 to 54 lower-case letters, digits and hyphens, "
                'beginning and ending with a letter or digit, got "Urgent"; set name="urgent"'
            ),
        ),
        (
            lambda: PriorityClass(name="urgent", weight=101),
            "priority class urgent: weight: must be at most 100, got 101; set weight to 100 or less",
        ),
        (
            lambda: PriorityClass(name="urgent", weight=-1),
            "priority class urgent: weight: must be at least 0, got -1; set weight to 0 or more",
        ),
        (
            lambda: QuotaRow(instance_type="ml.p5.48xlarge"),
            (
                "quota of ml.p5.48xlarge: must state an amount, got none; "
                "add count=1, accelerators, vcpu, memory_gib or accelerator_partition"
            ),
        ),
        (
            lambda: QuotaRow(instance_type="ml.p5.48xlarge", count=-1),
            "quota of ml.p5.48xlarge: count: must be at least 1, got -1; set count to 1 or more",
        ),
        (
            lambda: team("Research"),
            (
                "team Research: name: must be 1 to 40 lower-case letters, digits and hyphens, "
                'beginning and ending with a letter or digit, got "Research"; set name="research"'
            ),
        ),
        (
            lambda: team(fair_share_weight=101),
            "team research: fair_share_weight: must be at most 100, got 101; set fair_share_weight to 100 or less",
        ),
        (
            lambda: team(preemption="always"),
            'team research: preemption: must be lower_priority or never, got "always"; set preemption to one of these',
        ),
        (
            lambda: team(sharing="borrow"),
            (
                'team research: sharing: must be lend_and_borrow, lend or dont_lend, got "borrow"; set sharing to one'
                " of these"
            ),
        ),
        (
            lambda: team(borrow_limit_percent=0),
            "team research: borrow_limit_percent: must be at least 1, got 0; set borrow_limit_percent to 1 or more",
        ),
        (
            lambda: team(borrow_limit_percent=501),
            (
                "team research: borrow_limit_percent: must be at most 500, got 501; set borrow_limit_percent to 500 or"
                " less"
            ),
        ),
        (
            lambda: team(sharing="lend", borrow_limit_percent=50),
            (
                'team research: borrow_limit_percent: needs sharing="lend_and_borrow", got sharing="lend"; '
                'remove borrow_limit_percent or set sharing="lend_and_borrow"'
            ),
        ),
        (
            lambda: team(quota=[QuotaRow(instance_type=name, count=1) for name in instance_types.names()[:16]]),
            "team research: must hold at most 15 quota rows, got 16; remove 1",
        ),
        (
            lambda: team(quota=[QuotaRow(instance_type="ml.p5.48xlarge", count=1)] * 2),
            (
                "team research: quota[1].instance_type: must be unique, got ml.p5.48xlarge as in quota[0]; add the"
                " counts up in one of the two"
            ),
        ),
        (
            lambda: team(member_role_arns=["arn:aws:sts::111122223333:assumed-role/alice/laptop"]),
            (
                "team research: member_role_arns[0]: must be the ARN of an IAM role, got the session "
                "arn:aws:sts::111122223333:assumed-role/alice/laptop, which ends with its login; set "
                'member_role_arns[0]="arn:aws:iam::111122223333:role/alice" (with the role\'s path, if it has '
                "one)"
            ),
        ),
        (
            lambda: team(member_role_arns=["alice"]),
            (
                'team research: member_role_arns[0]: must be the ARN of an IAM role, got "alice"; name the role that '
                "people assume, such as arn:aws:iam::111122223333:role/platform-admin"
            ),
        ),
        (
            lambda: template(ordering="fifo"),
            (
                'task governance: ordering: must be first_come_first_served or priority, got "fifo"; '
                "set ordering to one of these"
            ),
        ),
        (
            lambda: template(
                ordering="first_come_first_served", priority_classes=[PriorityClass(name="urgent", weight=1)]
            ),
            (
                'task governance: priority_classes: must be left out with ordering="first_come_first_served"; '
                'set ordering="priority" or remove priority_classes'
            ),
        ),
        (
            lambda: template(priority_classes=[PriorityClass(name=f"c{i}", weight=1) for i in range(11)]),
            "task governance: must hold at most 10 priority classes, got 11; remove 1",
        ),
        (
            lambda: template(priority_classes=[PriorityClass(name="urgent", weight=1)] * 2),
            (
                'task governance: priority_classes[1].name: must be unique, got "urgent" as in priority_classes[0];'
                " rename one of the two"
            ),
        ),
        (
            lambda: template(idle_compute="lottery"),
            (
                'task governance: idle_compute: must be fair_share or first_come_first_served, got "lottery"; '
                "set idle_compute to one of these"
            ),
        ),
        (
            lambda: template(teams=[team(), team()]),
            'task governance: teams[1].name: must be unique, got "research" as in teams[0]; rename one of the two',
        ),
        (
            lambda: template(name_prefix="a" * 55),
            (
                "task governance: names made of name_prefix and the team must be 1 to 63 letters, digits and hyphens, "
                f'beginning and ending with a letter or digit, got "{"a" * 55}-research"; '
                "shorten or change name_prefix"
            ),
        ),
    ],
)
def test_what_aws_would_refuse_is_refused_at_once(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared below
        make()

    assert str(error.value) == message


@row_by_row(
    "make",
    [
        lambda: PriorityClass(name="urgent", weight=0),
        lambda: PriorityClass(name="urgent", weight=100),
        lambda: team(fair_share_weight=100),
        lambda: team(borrow_limit_percent=1),
        lambda: team(borrow_limit_percent=500),
        lambda: team(quota=[QuotaRow(instance_type=name, count=1) for name in instance_types.names()[:15]]),
        lambda: team(member_role_arns=[BOB, "arn:aws-us-gov:iam::111122223333:role/a", cdk.Fn.import_value("role")]),
        lambda: template(name_prefix="a" * 54),
        lambda: template(priority_classes=[PriorityClass(name=f"c{i}", weight=1) for i in range(10)]),
    ],
)
def test_what_stands_on_the_bound_is_taken(make: Callable[[], object]) -> None:
    make()


def test_a_member_of_two_teams_gets_one_entry_with_awss_own_policies() -> None:
    teams = [team("a", member_role_arns=[ALICE]), team("b", member_role_arns=[BOB, ALICE])]
    resources = template(teams=teams)

    entries = {
        each["Properties"]["PrincipalArn"]: each["Properties"]
        for each in resources.values()
        if "AccessEntry" in each["Type"]
    }
    assert set(entries) == {ALICE, BOB}
    alice = entries[ALICE]
    assert (alice["Type"], alice["ClusterName"]) == ("STANDARD", "prod-eks")
    assert "KubernetesGroups" not in alice
    assert policies(alice) == {
        "AmazonEKSEditPolicy": {"Type": "namespace", "Namespaces": ["hyperpod-ns-a", "hyperpod-ns-b"]},
        "AmazonSagemakerHyperpodTrainingPolicy": {
            "Type": "namespace",
            "Namespaces": ["hyperpod-ns-a", "hyperpod-ns-b"],
        },
        "AmazonSagemakerHyperpodUserClusterPolicy": {"Type": "cluster"},
    }


def test_an_administrator_is_no_member_too() -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared below
        template(teams=[team("a", member_role_arns=[BOB, ALICE])], admin_role_arns=[ALICE])

    assert str(error.value) == (
        f"team a: member_role_arns[1]: must not be an administrator of the cluster, got {ALICE} as in"
        " admin_role_arns[0]: EKS allows one access entry per role; remove it here, because administrators can do what"
        " members can"
    )


@pytest.mark.parametrize("resource_type", NATIVE_REGIONS)
def test_the_choice_of_native_types_stands_while_the_catalog_grows(resource_type: str) -> None:
    today = {region for region in regions.names() if regions.has_type(region, resource_type)}

    lost = NATIVE_REGIONS[resource_type] - today
    assert not lost, (
        f"the catalog no longer has {resource_type} in {', '.join(sorted(lost))}, where stacks are deployed with it: "
        "find out whether the catalog errs before anything else; NATIVE_REGIONS must not change"
    )
    assert {region for region in regions.names() if is_native(resource_type, region)} == NATIVE_REGIONS[resource_type]


def test_policy_and_quota_keep_the_names_that_they_had() -> None:
    teams = [team("a", quota_name="quota-of-a"), team("b")]
    resources = template(teams=teams, policy_name="the-policy")
    names = {each["Properties"]["Name"] for each in resources.values() if "Name" in each.get("Properties", {})}
    assert names == {"the-policy", "quota-of-a", "prod-b"}
    # the policy's own name leaves that of a quota alone
    assert template(teams=[team("policy")], policy_name="the-policy")
    with pytest.raises(ValueError, match="quota_name") as refused:
        template(teams=[team("a", quota_name="prod-b"), team("b")])
    assert str(refused.value) == (
        'team a: quota_name: must be unique, got "prod-b", which is the name of another team\'s quota; rename one of'
        " the two"
    )


def policies(entry: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for policy in entry["AccessPolicies"]:
        before, partition, name = policy["PolicyArn"]["Fn::Join"][1]
        assert (before, partition) == ("arn:", {"Ref": "AWS::Partition"})
        found[name.removeprefix(":eks::aws:cluster-access-policy/")] = policy["AccessScope"]
    return found


def with_cluster(**rest: Any) -> dict[str, Any]:
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "foreign")
    provider = eks_v2.KubectlProvider.from_kubectl_provider_attributes(stack, "Kubectl", service_token="arn")
    cluster = eks_v2.Cluster.from_cluster_attributes(
        stack,
        "Eks",
        cluster_name="prod-eks",
        kubectl_provider=provider,
    )
    governance(stack, cluster=cluster, **rest)
    found: dict[str, Any] = Template.from_stack(stack).to_json()["Resources"]
    return found


def test_a_member_of_teams_of_both_kinds_gets_one_entry_with_both() -> None:
    teams = [team("a", member_role_arns=[ALICE], access="rbac"), team("b", member_role_arns=[ALICE])]

    entry = properties(with_cluster(teams=teams), "AWS::EKS::AccessEntry")

    assert entry["KubernetesGroups"] == ["hyperpod-members", "hyperpod-ns-a"]
    assert policies(entry) == {
        "AmazonEKSEditPolicy": {"Type": "namespace", "Namespaces": ["hyperpod-ns-a", "hyperpod-ns-b"]},
        "AmazonSagemakerHyperpodTrainingPolicy": {"Type": "namespace", "Namespaces": ["hyperpod-ns-b"]},
        "AmazonSagemakerHyperpodUserClusterPolicy": {"Type": "cluster"},
    }


@pytest.mark.parametrize(
    ("version", "api"), [(None, "v1beta2"), ("v1.4.0-eksbuild.1", "v1beta1"), ("v1.6.0-eksbuild.1", "v1beta2")]
)
def test_the_default_queue_comes_after_the_quota_in_the_words_of_the_versions_kueue(
    version: str | None, api: str
) -> None:
    resources = with_cluster(teams=[team(default_queue=True), team("b")], addon_version=version)

    manifests = of_type(resources, "Custom::AWSCDK-EKS-KubernetesResource")
    (applied,) = [each for each in manifests.values() if "LocalQueue" in each["Properties"]["Manifest"]]
    (queue,) = json.loads(applied["Properties"]["Manifest"])
    assert (queue["apiVersion"], queue["metadata"]["name"]) == (f"kueue.x-k8s.io/{api}", "default")
    quota_ids = of_type(resources, "AWS::SageMaker::ComputeQuota")
    assert applied["DependsOn"] == [next(key for key in quota_ids if "research" in key)]


def test_each_team_s_namespace_is_labelled_after_its_quota_beside_the_others_and_never_deleted() -> None:
    resources = with_cluster(teams=[team(pod_security="privileged"), team("b")])

    manifests = of_type(resources, "Custom::AWSCDK-EKS-KubernetesResource").values()
    quotas = of_type(resources, "AWS::SageMaker::ComputeQuota")
    levels = {}
    for each in manifests:
        (namespace,) = json.loads(each["Properties"]["Manifest"])
        levels[namespace["metadata"]["name"]] = namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        assert [name in quotas for name in each["DependsOn"]] == [True]
        assert (each["DeletionPolicy"], each["UpdateReplacePolicy"]) == ("Retain", "Retain"), "it is SageMaker's"
    assert levels == {"hyperpod-ns-research": "privileged", "hyperpod-ns-b": "baseline"}


def test_each_wish_has_a_manifest_of_its_own_so_that_it_goes_when_it_is_dropped() -> None:
    limits = {"requests.nvidia.com/gpu": "8"}
    every = team(access="rbac", member_role_arns=[ALICE], default_queue=True, resource_quota=limits)

    applied = of_type(with_cluster(teams=[every]), "Custom::AWSCDK-EKS-KubernetesResource").values()

    kinds = [[each["kind"] for each in json.loads(one["Properties"]["Manifest"])] for one in applied]
    assert sorted(kinds) == [
        ["ClusterRole", "ClusterRoleBinding"],
        ["LocalQueue"],
        ["Namespace"],
        ["ResourceQuota"],
        ["Role", "RoleBinding"],
    ]


def test_with_the_cluster_at_hand_members_get_kubernetes_roles() -> None:
    resources = with_cluster(teams=[team("a", member_role_arns=[ALICE], access="rbac"), team("b")])

    entry = properties(resources, "AWS::EKS::AccessEntry")
    assert entry["KubernetesGroups"] == ["hyperpod-members", "hyperpod-ns-a"]
    assert list(policies(entry)) == ["AmazonEKSEditPolicy"]
    manifests = of_type(resources, "Custom::AWSCDK-EKS-KubernetesResource")
    objects = {
        (each["kind"], each["metadata"].get("namespace")): each
        for manifest in manifests.values()
        for each in json.loads(manifest["Properties"]["Manifest"])
    }
    assert set(objects) == {
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Namespace", None),
        ("Role", "hyperpod-ns-a"),
        ("RoleBinding", "hyperpod-ns-a"),
    }
    binding = objects["RoleBinding", "hyperpod-ns-a"]
    assert [subject["name"] for subject in binding["subjects"]] == ["hyperpod-ns-a"]
    assert binding["roleRef"]["name"] == objects["Role", "hyperpod-ns-a"]["metadata"]["name"]
    groups = {group for rule in objects["Role", "hyperpod-ns-a"]["rules"] for group in rule["apiGroups"]}
    assert {"kubeflow.org", "sagemaker.amazonaws.com", "kueue.x-k8s.io"} <= groups
    (quota_id, _) = of_type(resources, "AWS::SageMaker::ComputeQuota")
    team_manifest = next(each for each in manifests.values() if "hyperpod-ns-a" in each["Properties"]["Manifest"])
    assert quota_id in team_manifest["DependsOn"], "the namespace comes with the quota"


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2", "ap-northeast-1", "eu-west-1"])
def test_the_template_passes_the_checks_in_each_mix_of_native_and_custom(tmp_path: Path, region: str) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    governance(
        cdk.Stack(app, "foreign", env=cdk.Environment(region=region)),
        native_scheduler_config=is_native("AWS::SageMaker::ClusterSchedulerConfig", region),
        native_compute_quota=is_native("AWS::SageMaker::ComputeQuota", region),
        teams=[team("a", member_role_arns=[ALICE]), team("b")],
        ordering="first_come_first_served",
    )
    app.synth()

    assert check_templates(tmp_path.glob("*.template.json"), region=region) == []


def test_cdk_nag_has_nothing_left_to_say(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    governance(cdk.Stack(app, "foreign"), native=False)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))

    app.synth()
