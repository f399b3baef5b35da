"""What constructs hand on to a service as text or a number, at the service's own limits and beside them.

Of most arguments the field of the environment file is the rule, and other tests show it; here stands what no field has,
and what several constructs take.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct

import hyperpod_cdk as hp
from hyperpod_cdk.catalog import hyperpod, operators
from hyperpod_cdk.catalog.arns import KEY_ALIAS, KEY_DESCRIPTION
from hyperpod_cdk.catalog.network import GROUP_DESCRIPTION
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.common.log_settings import RETENTION_DAYS
from hyperpod_cdk.eks.node_addons import ROLE_DESCRIPTION
from tests.strangers_app import vpcs
from tests.support.schemas import resource_schema
from tests.support.tables import row_by_row
from tests.support.templates import app

ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefabcdef"
NO_ARN = (
    'cluster_arn: must be the ARN of a HyperPod cluster, got "training"; correct cluster_arn, which must look like'
    " arn:<partition>:sagemaker:<region>:<account>:cluster/<id>"
)
NO_EKS_NAME = (
    "eks_cluster_name: must be the name of an EKS cluster: 1 to 100 letters, digits, hyphens and underscores, got"
    ' "a b"; correct eks_cluster_name, which must look like platform'
)
NO_NAME = (
    "cluster_name: must be 1 to 63 letters, digits and hyphens, beginning and ending with a letter or digit, got"
    ' "a b"; set cluster_name="a-b"'
)
NO_VERSION = (
    'addon_version: must be an add-on version as EKS writes it, got "1.2"; correct addon_version, which must look'
    " like v1.20.4-eksbuild.1"
)
DAYS = "1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653 days"
EVENTS = {"cluster_name": "training", "cluster_arn": ARN}
TOLD = {**EVENTS, "emails": ["a@b.example"]}
TOPIC = "arn:aws:sns:us-east-1:111122223333:on-call"
GRAFANA = {
    "cluster_name": "training",
    "grafana_workspace_arn": operators.GRAFANA_WORKSPACE_ARN.example,
    "prometheus_workspace_arn": operators.PROMETHEUS_WORKSPACE_ARN.example,
}
NO_GRAFANA_NAME = (
    'name: must be a name of 1 to 255 letters, digits, "-", ".", "_" and "~", got "Grafana of '
    'ours"; set name="Grafana-of-ours"'
)
POD_ROLE = {
    "eks_cluster_name": "training",
    "namespace": "ours",
    "service_account": "ours",
    "managed_policies": (),
    "reason": "none",
}
GROUP_WORDS = "1 to 255 letters without accents, digits, blanks and ._-:/()#,@[]+=&;{}!$*"
ALIAS_WORDS = 'alias/ and letters, digits, ":", "/", "_" and "-", 256 characters at most, and not alias/aws/'


def _scripts(scope: Construct, construct_id: str, *, bucket: str) -> hp.LifecycleScripts:
    return hp.LifecycleScripts(scope, construct_id, bucket=s3.Bucket.from_bucket_name(scope, "Theirs", bucket))


def _efa(scope: Construct, construct_id: str, **given: Any) -> hp.EfaSecurityGroup:
    vpc = ec2.Vpc.from_vpc_attributes(scope, "Vpc", vpc_id="vpc-1", availability_zones=["us-east-1a"])
    return hp.EfaSecurityGroup(scope, construct_id, vpc=vpc, **given)


WRONG: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (hp.PrometheusWorkspace, {"alias": ""}, 'alias: must be an alias of 1 to 100 characters, got ""'),
    (
        hp.PrometheusWorkspace,
        {"alias": "a" * 101},
        f'alias: must be an alias of 1 to 100 characters, got "{"a" * 101}"',
    ),
    (hp.GrafanaWorkspace, {"name": "Grafana of ours"}, NO_GRAFANA_NAME),
    (hp.GrafanaWorkspace, {"name": "a" * 256}, 'name: must be a name of 1 to 255 letters, digits, "-", "."'),
    (_efa, {"description": "Knoten für alle"}, f'description: must be {GROUP_WORDS}, got "Knoten für alle"'),
    (_efa, {"description": ""}, f'description: must be {GROUP_WORDS}, got ""'),
    (_efa, {"description": "a" * 256}, f'description: must be {GROUP_WORDS}, got "{"a" * 256}"'),
    (hp.EncryptionKey, {"alias": "ours"}, f'alias: must be {ALIAS_WORDS}, got "ours"'),
    (hp.EncryptionKey, {"alias": "alias/aws/ours"}, f'alias: must be {ALIAS_WORDS}, got "alias/aws/ours"'),
    (hp.EncryptionKey, {"description": "a" * 8193}, "description: must be at most 8192 characters, got"),
    (hp.NodeAddon, {"eks_cluster_name": "a b", "addon_name": "ours"}, NO_EKS_NAME),
    (hp.NodeAddon, {"eks_cluster_name": "a", "addon_name": "ours", "addon_version": "1.2"}, NO_VERSION),
    (hp.CoreDns, {"eks_cluster_name": "a b"}, NO_EKS_NAME),
    (hp.EbsCsiDriver, {"eks_cluster_name": "a b"}, NO_EKS_NAME),
    (hp.EbsCsiDriver, {"eks_cluster_name": "a", "addon_version": "1.2"}, NO_VERSION),
    (hp.PodRole, {**POD_ROLE, "description": "a", "eks_cluster_name": "a b"}, NO_EKS_NAME),
    (
        hp.PodRole,
        {**POD_ROLE, "description": "a" * 1001},
        "description: must be at most 1000 characters of Latin-1, got",
    ),
    (
        hp.PodRole,
        {**POD_ROLE, "description": "日本"},
        'description: must be at most 1000 characters of Latin-1, got "日本"',
    ),
    (hp.NodeEvents, {**EVENTS, "cluster_name": "a b"}, NO_NAME),
    (hp.NodeEvents, {**EVENTS, "cluster_arn": "training"}, NO_ARN),
    (
        hp.NodeEvents,
        {**EVENTS, "retention_days": 100},
        f"retention_days: must be one of {DAYS}, got 100; set retention_days=120",
    ),
    (hp.NodeEvents, {**EVENTS, "retention_days": 0}, f"retention_days: must be one of {DAYS}, got 0; set"),
    (hp.NodeEvents, {**EVENTS, "retention_days": 4000}, f"retention_days: must be one of {DAYS}, got 4000; set"),
    (hp.Notifications, {**EVENTS, "emails": ["a@b.example"], "cluster_name": "a b"}, NO_NAME),
    (hp.Notifications, {**EVENTS, "emails": ["a@b.example"], "cluster_arn": "training"}, NO_ARN),
    (
        hp.Notifications,
        {**EVENTS, "emails": ["a@b.example"], "instance_groups": ["a b"]},
        "instance_groups[0]: must be 1 to 63 letters, digits and hyphens, beginning",
    ),
    (
        hp.Notifications,
        {**EVENTS, "emails": ["a@b.example"], "training_plan_arns": ["april"]},
        'training_plan_arns[0]: must be the ARN of a training plan, got "april"',
    ),
    (hp.Notifications, {**TOLD, "instance_types": ["p5"]}, "instance_types: must be a HyperPod instance type known on"),
    (
        hp.Notifications,
        {**TOLD, "file_systems": {"a b": "fs-0a1b2c3d4e5f67890"}},
        "file_systems['a b']: must be",
    ),
    (
        hp.Notifications,
        {**TOLD, "file_systems": {"scratch": "fs-1"}},
        (
            "file_systems['scratch']: must be the ID of an FSx file system, got \"fs-1\"; correct"
            " file_systems['scratch'], which must"
        ),
    ),
    (
        hp.NodeEvents,
        {**EVENTS, "alarm_actions": ["on-call"]},
        (
            'alarm_actions[0]: must be the ARN of an alarm action, such as an SNS topic, got "on-call"; correct'
            " alarm_actions[0], which must look like arn:aws:sns:us-east-1:111122223333:on-call"
        ),
    ),
    (
        hp.NodeEvents,
        {**EVENTS, "alarm_actions": [TOPIC] * 6},
        "alarm_actions: must hold at most 5 ARNs, got 6; remove 1",
    ),
    (hp.NodeWaiter, {"stack_names": ["1st"]}, "stack_names[0]: must be the name of a stack: 1 to 128 letters, digits"),
    (hp.DeletionProtectionFunction, {"stack_names": ["a_b"]}, "stack_names[0]: must be the name of a stack: 1 to 128"),
    (hp.DeletionProtectionFunction, {"stack_names": ["a"], "eks_cluster_name": "a b"}, NO_EKS_NAME),
    (hp.KarpenterAutoscaling, {"kms_key_arns": ["alias/ours"]}, "kms_key_arns[0]: must be the ARN of a KMS key, with"),
    (
        hp.LifecycleScripts,
        {"lustre_over_efa": {"ml.p5.48xlarg": 1}},
        "lustre_over_efa: must be a HyperPod",
    ),
    (
        hp.LifecycleScripts,
        {"lustre": ["p5"]},
        "lustre: must be a HyperPod instance type known on",
    ),
    (
        hp.LifecycleScripts,
        {"lustre_over_efa": {"ml.p5.48xlarge": -1}},
        "lustre_over_efa['ml.p5.48xlarge']: must be at least 0, got -1; set 0 for none",
    ),
    (
        hp.LifecycleScripts,
        {"lustre_over_efa": {"ml.p5.48xlarge": 33}},
        "lustre_over_efa['ml.p5.48xlarge']: must be at most 32, one for each network card, got 33; set 8",
    ),
    (
        hp.PodRole,
        {**POD_ROLE, "description": "a", "namespace": "Ours"},
        (
            "namespace: must be 1 to 63 lower-case letters, digits and hyphens, beginning and ending with a letter or"
            ' digit, got "Ours"; set namespace="ours"'
        ),
    ),
    (
        hp.PodRole,
        {**POD_ROLE, "description": "a", "service_account": "Ours"},
        "service_account: must be the name of a service account: lower-case letters, digits, hyphens and dots, got",
    ),
    (
        hp.PodRole,
        {**POD_ROLE, "description": "a", "managed_policies": ["a b"]},
        "managed_policies[0]: must be the name of a managed policy of AWS, with its path, got",
    ),
    (
        hp.PodRole,
        {**POD_ROLE, "description": "a", "managed_policies": ["arn:aws:iam::aws:policy/ReadOnlyAccess"]},
        "managed_policies[0]: must be the name of a managed policy of AWS, with its path, got",
    ),
    (
        hp.PodRole,
        {**POD_ROLE, "description": "a", "managed_policies": ["ReadOnlyAccess"], "reason": " "},
        "reason: must say why the managed policies are right, got nothing; state it for reviewers",
    ),
    (
        hp.NodeAddon,
        {"eks_cluster_name": "a", "addon_name": ""},
        "addon_name: must be the name of an add-on as EKS spells it, got nothing; name one",
    ),
    (
        hp.QuotaGate,
        {"requirements": [vpcs()], "environment_name": "a b"},
        "environment_name: must be",
    ),
    (
        hp.GrafanaDashboards,
        {**GRAFANA, "prometheus_endpoint": "aps"},
        'prometheus_endpoint: must be the address of an Amazon Managed Service for Prometheus workspace, got "aps"',
    ),
    # the field is called name: the argument's own name stands where the key does, and nowhere else
    (
        _scripts,
        {"bucket": "my-scripts"},
        (
            "bucket: must be a bucket whose name begins with sagemaker-, the only ones that HyperPod reads scripts"
            " from, of at most 63 lower-case letters, digits, hyphens and dots between letters or digits, got"
            ' "my-scripts"; correct bucket,'
        ),
    ),
    (hp.NodesReady, {"cluster_arn": "training", "groups": [hp.AwaitedGroup(name="a", count=1)]}, NO_ARN),
]
"""A construct, its arguments, and how the sentence begins."""


@row_by_row("make, given, said", WRONG)
def test_what_a_service_refuses_is_refused_at_synthesis(
    make: Callable[..., object], given: dict[str, Any], said: str
) -> None:
    stack = cdk.Stack(app(), "foreign", env=cdk.Environment(account="111122223333", region="us-east-1"))
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        make(stack, "Wrong", **given)
    assert str(refused.value).startswith(said)


RIGHT: list[tuple[Callable[..., object], dict[str, Any]]] = [
    (hp.PrometheusWorkspace, {"alias": "Prometheus of ours"}),
    (hp.PrometheusWorkspace, {"alias": "a" * 100}),
    (hp.PrometheusWorkspace, {"alias": cdk.Aws.STACK_NAME}),
    (hp.GrafanaWorkspace, {"name": "a-._~" * 51}),
    (hp.GrafanaWorkspace, {"name": cdk.Aws.STACK_NAME}),
    (_efa, {"description": "a"}),
    (_efa, {"description": "a" * 255}),
    (hp.EncryptionKey, {"alias": "alias/ours", "description": "a" * 8192}),
    (hp.PodRole, {**POD_ROLE, "description": "ä" * 1000}),
    *((hp.NodeEvents, {**EVENTS, "retention_days": days}) for days in (1, 3653)),
    (hp.NodeEvents, {"cluster_name": cdk.Aws.STACK_NAME, "cluster_arn": cdk.Aws.STACK_ID}),
    (hp.NodeEvents, {**EVENTS, "alarm_actions": [TOPIC, cdk.Aws.STACK_ID, "arn:aws:automate:us-east-1:ec2:stop"]}),
    (hp.NodeWaiter, {"stack_names": ["a" * 128, cdk.Aws.STACK_NAME]}),
    (hp.PodRole, {**POD_ROLE, "description": "a", "managed_policies": ["service-role/AmazonEBSCSIDriverPolicy"]}),
    (
        hp.GrafanaDashboards,
        {**GRAFANA, "prometheus_endpoint": "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1a/"},
    ),
    (hp.CoreDns, {"eks_cluster_name": cdk.Aws.STACK_NAME, "addon_version": "v1.12.4-eksbuild.1"}),
]


@row_by_row("make, given", RIGHT)
def test_what_a_service_takes_is_taken(make: Callable[..., object], given: dict[str, Any]) -> None:
    stack = cdk.Stack(app(), "foreign", env=cdk.Environment(account="111122223333", region="us-east-1"))
    assert make(stack, "Right", **given)


@pytest.mark.parametrize(
    ("pattern", "resource_type", "name"),
    [
        (operators.GRAFANA_WORKSPACE_NAME, "AWS::Grafana::Workspace", "Name"),
        (operators.PROMETHEUS_WORKSPACE_ALIAS, "AWS::APS::Workspace", "Alias"),
        (GROUP_DESCRIPTION, "AWS::EC2::SecurityGroup", "GroupDescription"),
        (KEY_ALIAS, "AWS::KMS::Alias", "AliasName"),
        (KEY_DESCRIPTION, "AWS::KMS::Key", "Description"),
        (ROLE_DESCRIPTION, "AWS::IAM::Role", "Description"),
        (hyperpod.CLUSTER_ARN, "AWS::SageMaker::ClusterSchedulerConfig", "ClusterArn"),
    ],
)
def test_limits_are_those_of_the_schema(pattern: Pattern, resource_type: str, name: str) -> None:
    found = resource_schema(resource_type)["properties"][name]
    if "maxLength" in found:
        assert pattern.maximum == found["maxLength"]
    else:
        assert found["pattern"].endswith(f"{{1,{pattern.maximum}}}$")
    # one that is built of its placeholders takes none of them
    base = pattern.example if pattern.matches(pattern.example) else ARN
    letters = [chr(code) for code in range(0x20, 0x250)]
    theirs = [each for each in letters if re.search(found.get("pattern", ""), base + each)]
    assert [each for each in letters if pattern.matches(base + each)] == theirs


def test_days_are_those_of_the_schema() -> None:
    assert list(RETENTION_DAYS) == resource_schema("AWS::Logs::LogGroup")["properties"]["RetentionInDays"]["enum"]
