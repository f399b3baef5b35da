"""Drifts planted in shipped examples that differ most; each is found once, and the next deployment does what was said.

What is expected was written down from AWS's material first, as in ``test_planted``. Beside that: UpdateFunctionCode and
UpdateFunctionConfiguration are calls of their own, and no page tells whether CloudFormation sends what has not changed
(Lambda API reference): "unknown". A permission, a subscription and a policy of a key are taken by their own calls.
PutDashboard replaces the whole dashboard (CloudWatch API reference).
"""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.living.test_life import look
from tests.living.test_planted import Account, _compared, _row, _values
from tests.support.assembly import ENVIRONMENTS, PROJECT
from tests.support.callers import as_it_ships
from tests.transitions.test_lives import ACCOUNT, living

Plant = Callable[[Account], object]

FUNCTION, ROLE, LOGS = "AWS::Lambda::Function", "AWS::IAM::Role", "AWS::Logs::LogGroup"
OBJECT = "Custom::AWSCDK-EKS-KubernetesResource"
TOLD = "NotificationsFunction"
ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def _configured(account: Account, name: str, **more: Any) -> None:
    account.of("lambda").update_function_configuration(FunctionName=account.id(FUNCTION, name), **more)


def _variable(account: Account) -> None:
    found = account.of("lambda").get_function_configuration(FunctionName=account.id(FUNCTION, TOLD))
    variables = {**found["Environment"]["Variables"], "TOKEN": "hush"}
    _configured(account, TOLD, Environment={"Variables": variables})


def _other_code(account: Account) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("index.py", "print('by hand')")
    # of a function that no deployment calls: one that serves a stack would end it
    account.of("lambda").update_function_code(FunctionName=account.id(FUNCTION, TOLD), ZipFile=archive.getvalue())


def _one_at_once(account: Account) -> None:
    account.of("lambda").put_function_concurrency(
        FunctionName=account.id(FUNCTION, TOLD), ReservedConcurrentExecutions=1
    )


def _may_invoke(account: Account) -> None:
    account.of("lambda").add_permission(
        FunctionName=account.id(FUNCTION, TOLD), StatementId="spy", Action="lambda:InvokeFunction", Principal=ACCOUNT
    )


def _unsubscribed(account: Account) -> None:
    sns = account.of("sns")
    topic = account.id("AWS::SNS::Topic")
    (one, *_) = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    sns.unsubscribe(SubscriptionArn=one["SubscriptionArn"])


def _other_widgets(account: Account) -> None:
    name = account.id("AWS::CloudWatch::Dashboard")
    account.of("cloudwatch").put_dashboard(DashboardName=name, DashboardBody='{"widgets": []}')


def _rule_off(account: Account) -> None:
    account.of("events").disable_rule(Name=account.id("AWS::Events::Rule", "Watch").rpartition("|")[2])


def _kept_a_day(account: Account) -> None:
    account.of("logs").put_retention_policy(logGroupName=account.id(LOGS, "QuotaGate"), retentionInDays=1)


def _no_rotation(account: Account) -> None:
    account.of("kms").disable_key_rotation(KeyId=account.id("AWS::KMS::Key", "NodeVolumes"))


def _alias_elsewhere(account: Account) -> None:
    kms = account.of("kms")
    other = kms.create_key()["KeyMetadata"]["KeyId"]
    kms.update_alias(AliasName=account.id("AWS::KMS::Alias", "LifecycleBucket"), TargetKeyId=other)


def _endpoint_closed(account: Account) -> None:
    deny = {"Statement": [{"Sid": "No", "Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}]}
    account.of("ec2").modify_vpc_endpoint(
        VpcEndpointId=account.id("AWS::EC2::VPCEndpoint", "S3"), PolicyDocument=json.dumps(deny)
    )


def _way_out(account: Account) -> None:
    ec2 = account.of("ec2")
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=account.id("AWS::EC2::VPC"))
    table = account.id("AWS::EC2::RouteTable")
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)


def _expires(account: Account) -> None:
    rule = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
    account.of("s3").put_bucket_lifecycle_configuration(
        Bucket=account.id("AWS::S3::Bucket", "LifecycleScriptsBucket"), LifecycleConfiguration={"Rules": [rule]}
    )


def _may_do_anything(account: Account) -> None:
    account.of("iam").put_role_policy(
        RoleName=account.id(ROLE, "QuotaGate"), PolicyName="by-hand", PolicyDocument=json.dumps(ANYTHING)
    )


def _owned(account: Account) -> None:
    account.of("sagemaker").add_tags(
        ResourceArn=account.id("AWS::SageMaker::Cluster"), Tags=[{"Key": "o", "Value": "d"}]
    )


def _one_more(group: str) -> Plant:
    def plant(account: Account) -> None:
        added = {"InstanceGroupName": group, "IncrementTargetCountBy": 1}
        name = account.id("AWS::SageMaker::Cluster")
        account.of("sagemaker").batch_add_cluster_nodes(ClusterName=name, NodesToAdd=[added])

    return plant


def _add_on(account: Account) -> None:
    account.of("eks").create_addon(clusterName=account.id("AWS::EKS::Cluster"), addonName="metrics-server")


def _ssh(account: Account) -> None:
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "203.0.113.0/24"}]}
    group = account.id("AWS::EC2::SecurityGroup")
    account.of("ec2").authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])


def _public(account: Account) -> None:
    account.of("s3").put_public_access_block(
        Bucket=account.id("AWS::S3::Bucket", "LifecycleScriptsBucket"),
        PublicAccessBlockConfiguration={
            "BlockPublicAcls": True,
            "BlockPublicPolicy": False,
            "IgnorePublicAcls": True,
            "RestrictPublicBuckets": True,
        },
    )


def _exports(account: Account) -> None:
    account.of("fsx").update_data_repository_association(
        AssociationId=account.id("AWS::FSx::DataRepositoryAssociation"),
        S3={"AutoExportPolicy": {"Events": ["NEW"]}, "AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}},
    )


def _grown(account: Account) -> None:
    account.of("fsx").update_file_system(
        FileSystemId=account.id("AWS::FSx::FileSystem", "campaign"), StorageCapacity=4800
    )


def _volumes_go(account: Account) -> None:
    account.live().kubernetes_patch(
        account.id("AWS::EKS::Cluster"),
        "/api/v1/persistentvolumes/hyperpod-ns-research.runs",
        {"spec": {"persistentVolumeReclaimPolicy": "Delete"}},
    )


def _pool_patched(account: Account) -> None:
    account.live().kubernetes_patch(
        account.id("AWS::EKS::Cluster"),
        "/apis/karpenter.sh/v1/nodepools/gpu",
        {"spec": {"disruption": {"consolidateAfter": "10s"}}},
    )


def _by_karpenter(account: Account) -> None:
    """Karpenter's own counts are no drift."""
    _one_more("spot-1")(account)


def _data_sources(account: Account) -> None:
    account.of("grafana").update_workspace(
        workspaceId=account.id("AWS::Grafana::Workspace"), workspaceDataSources=["CLOUDWATCH"]
    )


def _alias_of_metrics(account: Account) -> None:
    workspace = account.id("AWS::APS::Workspace").rpartition("/")[2]
    account.of("amp").update_workspace_alias(workspaceId=workspace, alias="mine")


def _client(account: Account) -> None:
    account.of("iam").add_client_id_to_open_id_connect_provider(
        OpenIDConnectProviderArn=account.id("AWS::IAM::OIDCProvider"), ClientID="mine"
    )


def _other_role_of_pods(account: Account) -> None:
    eks, cluster = account.of("eks"), account.id("AWS::EKS::Cluster")
    (one, *_) = eks.list_pod_identity_associations(clusterName=cluster)["associations"]
    role = f"arn:aws:iam::{ACCOUNT}:role/{account.id(ROLE, 'QuotaGate')}"
    trust = {"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}}
    trust |= {"Action": ["sts:AssumeRole", "sts:TagSession"]}
    made = account.of("iam").create_role(
        RoleName="by-hand", AssumeRolePolicyDocument=json.dumps({"Statement": [trust]})
    )
    role = made["Role"]["Arn"]
    eks.update_pod_identity_association(clusterName=cluster, associationId=one["associationId"], roleArn=role)


def _logs_elsewhere(account: Account) -> None:
    _configured(account, TOLD, LoggingConfig={"LogGroup": "/by/hand"})


def _alarm(account: Account, word: str) -> dict[str, Any]:
    """Return an alarm as PutMetricAlarm takes it."""
    name = next(each for kind, _, each in account.ids if kind == "AWS::CloudWatch::Alarm" and word in each)
    (row,) = account.of("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    taken = account.of("cloudwatch").meta.service_model.operation_model("PutMetricAlarm").input_shape.members
    return {key: each for key, each in row.items() if key in taken}


def _other_query(account: Account) -> None:
    names = [each for kind, _, each in account.ids if kind == "AWS::CloudWatch::Alarm"]
    rows = account.of("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"]
    alarm = _alarm(account, next(row["AlarmName"] for row in rows if row.get("Metrics")))
    first = {**alarm["Metrics"][0]}
    assert "Expression" in first
    account.of("cloudwatch").put_metric_alarm(
        **{**alarm, "Metrics": [{**first, "Expression": "0"}, *alarm["Metrics"][1:]]}
    )


def _tells_others(account: Account) -> None:
    alarm = _alarm(account, "")
    account.of("cloudwatch").put_metric_alarm(**{**alarm, "AlarmActions": [f"arn:aws:sns:us-east-1:{ACCOUNT}:spy"]})


def _tagged_dashboard(account: Account) -> None:
    cloudwatch = account.of("cloudwatch")
    arn = cloudwatch.get_dashboard(DashboardName=account.id("AWS::CloudWatch::Dashboard"))["DashboardArn"]
    cloudwatch.tag_resource(ResourceARN=arn, Tags=[{"Key": "o", "Value": "d"}])


def _untagged_rule(account: Account) -> None:
    events = account.of("events")
    rule = events.describe_rule(Name=account.id("AWS::Events::Rule", "Watch").rpartition("|")[2])
    events.untag_resource(ResourceARN=rule["Arn"], TagKeys=["owner"])


def _tagged_logs(account: Account) -> None:
    account.of("logs").tag_log_group(logGroupName=account.id(LOGS, "QuotaGate"), tags={"o": "d"})


def _other_metric(account: Account) -> None:
    logs = account.of("logs")
    name = account.id("AWS::Logs::MetricFilter")
    found = next(row for row in logs.describe_metric_filters()["metricFilters"] if row["filterName"] == name)
    made = [{**found["metricTransformations"][0], "metricName": "by-hand"}]
    logs.put_metric_filter(
        logGroupName=found["logGroupName"],
        filterName=name,
        filterPattern=found["filterPattern"],
        metricTransformations=made,
    )


def _described_key(account: Account) -> None:
    account.of("kms").update_key_description(KeyId=account.id("AWS::KMS::Key", "NodeVolumes"), Description="by hand")


def _tagged_key(account: Account) -> None:
    key = account.id("AWS::KMS::Key", "NodeVolumes")
    account.of("kms").tag_resource(KeyId=key, Tags=[{"TagKey": "o", "TagValue": "d"}])


def _no_access_logs(account: Account) -> None:
    account.of("s3").put_bucket_logging(
        Bucket=account.id("AWS::S3::Bucket", "LifecycleScriptsBucket"), BucketLoggingStatus={}
    )


def _tagged_bucket(account: Account) -> None:
    s3, name = account.of("s3"), account.id("AWS::S3::Bucket", "LifecycleScriptsBucket")
    tags = s3.get_bucket_tagging(Bucket=name)["TagSet"]
    s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": [*tags, {"Key": "o", "Value": "d"}]})


def _control_plane(**more: Any) -> Plant:
    def plant(account: Account) -> None:
        eks, name = account.of("eks"), account.id("AWS::EKS::Cluster")
        eks.update_cluster_config(name=name, **more)
        eks.get_waiter("cluster_active").wait(name=name, WaiterConfig={"Delay": 1})

    return plant


def _masters(account: Account) -> None:
    entry = next(each for kind, _, each in account.ids if kind == "AWS::EKS::AccessEntry")
    principal, _, cluster = entry.partition("|")
    account.of("eks").update_access_entry(clusterName=cluster, principalArn=principal, kubernetesGroups=["by-hand"])


def _other_group_of_files(account: Account) -> None:
    fsx, ec2 = account.of("fsx"), account.of("ec2")
    (one,) = fsx.describe_file_systems(FileSystemIds=[account.id("AWS::FSx::FileSystem")])["FileSystems"]
    group = ec2.create_security_group(GroupName="by-hand", Description="by hand", VpcId=one["VpcId"])
    ec2.modify_network_interface_attribute(NetworkInterfaceId=one["NetworkInterfaceIds"][-1], Groups=[group["GroupId"]])


def _tagged_files(account: Account) -> None:
    fsx = account.of("fsx")
    (one,) = fsx.describe_file_systems(FileSystemIds=[account.id("AWS::FSx::FileSystem")])["FileSystems"]
    fsx.tag_resource(ResourceARN=one["ResourceARN"], Tags=[{"Key": "o", "Value": "d"}])


def _no_plugins(account: Account) -> None:
    account.of("grafana").update_workspace_configuration(
        workspaceId=account.id("AWS::Grafana::Workspace"),
        configuration='{"plugins": {"pluginAdminEnabled": false}}',
    )


def _tagged_add_on(account: Account) -> None:
    eks, cluster = account.of("eks"), account.id("AWS::EKS::Cluster")
    name = account.id("AWS::EKS::Addon").partition("|")[2]
    arn = eks.describe_addon(clusterName=cluster, addonName=name)["addon"]["addonArn"]
    eks.tag_resource(resourceArn=arn, tags={"o": "d"})


def _described_role(account: Account) -> None:
    iam = account.of("iam")
    name = next(
        each for kind, _, each in account.ids if kind == ROLE and iam.get_role(RoleName=each)["Role"].get("Description")
    )
    iam.update_role(RoleName=name, Description="by hand")


TABLE: dict[str, tuple[tuple[Plant, str], ...]] = {
    "on-call": (
        (lambda account: _configured(account, TOLD, MemorySize=2048), f"{FUNCTION} MemorySize: unknown"),
        (_variable, f"{FUNCTION} Environment.Variables[TOKEN]: unknown"),
        (_other_code, f"{FUNCTION} Code: unknown"),
        (_one_at_once, f"{FUNCTION} ReservedConcurrentExecutions: unknown"),
        (_may_invoke, f"{FUNCTION} Permissions[spy]: nothing"),
        (_unsubscribed, "AWS::SNS::Topic Subscriptions[email to ml-on-call@example.com]: unknown"),
        (_other_widgets, "AWS::CloudWatch::Dashboard DashboardBody: sets"),
        (_rule_off, "AWS::Events::Rule State: sets"),
        (_kept_a_day, f"{LOGS} RetentionInDays: unknown"),
        (_logs_elsewhere, f"{FUNCTION} LoggingConfig.LogGroup: unknown"),
        (_other_query, "AWS::CloudWatch::Alarm Metrics[used].Expression: sets"),
        (_tagged_dashboard, "AWS::CloudWatch::Dashboard Tags[o]: nothing"),
        (_untagged_rule, "AWS::Events::Rule Tags[owner]: unknown"),
        (_tagged_logs, f"{LOGS} Tags[o]: nothing"),
        (_other_metric, "AWS::Logs::MetricFilter MetricTransformations: nothing"),
    ),
    "closed": (
        (_no_rotation, "AWS::KMS::Key EnableKeyRotation: unknown"),
        (_alias_elsewhere, "AWS::KMS::Alias TargetKeyId: nothing"),
        (_endpoint_closed, "AWS::EC2::VPCEndpoint PolicyDocument: unknown"),
        (_way_out, "AWS::EC2::RouteTable Routes[0.0.0.0/0]: nothing"),
        (_expires, "AWS::S3::Bucket LifecycleRules[old]: nothing"),
        (_may_do_anything, f"{ROLE} Inline[by-hand]: unknown"),
        (_described_key, "AWS::KMS::Key Description: unknown"),
        (_tagged_key, "AWS::KMS::Key Tags[o]: nothing"),
        (_no_access_logs, "AWS::S3::Bucket LoggingConfiguration.DestinationBucketName: unknown"),
        (
            _control_plane(logging={"clusterLogging": [{"types": ["audit"], "enabled": False}]}),
            "AWS::EKS::Cluster Logging.ClusterLogging.EnabledTypes: unknown",
        ),
    ),
    "nova": (
        (_owned, "AWS::SageMaker::Cluster Tags[o]: nothing"),
        (_expires, "AWS::S3::Bucket LifecycleRules[old]: nothing"),
        (_add_on, "AWS::EKS::Cluster Addons[metrics-server]: nothing"),
        (_ssh, "AWS::EC2::SecurityGroup Ingress[tcp 22 from 203.0.113.0/24]: nothing"),
        (_public, "AWS::S3::Bucket PublicAccessBlockConfiguration.BlockPublicPolicy: unknown"),
        (_kept_a_day, f"{LOGS} RetentionInDays: unknown"),
        (
            _control_plane(zonalShiftConfig={"enabled": True}),
            "AWS::EKS::Cluster ZonalShiftConfig.Enabled: unknown",
        ),
        (
            _control_plane(controlPlaneScalingConfig={"tier": "tier-xl"}),
            "AWS::EKS::Cluster ControlPlaneScalingConfig.Tier: unknown",
        ),
        (_masters, "AWS::EKS::AccessEntry KubernetesGroups: unknown"),
    ),
    "data": (
        (_exports, "AWS::FSx::DataRepositoryAssociation S3.AutoExportPolicy.Events: unknown"),
        (_grown, "AWS::FSx::FileSystem StorageCapacity: unknown"),
        (
            _volumes_go,
            f"{OBJECT} Objects[PersistentVolume hyperpod-ns-research.runs].spec.persistentVolumeReclaimPolicy: nothing",
        ),
        (_one_more("gpu"), "AWS::SageMaker::Cluster InstanceGroups[gpu].InstanceCount: sets"),
        (_may_do_anything, f"{ROLE} Inline[by-hand]: unknown"),
        (_expires, "AWS::S3::Bucket LifecycleRules[old]: nothing"),
        (_other_group_of_files, "AWS::FSx::FileSystem SecurityGroupIds: unknown"),
        (_tagged_files, "AWS::FSx::FileSystem Tags[o]: nothing"),
        (_tagged_bucket, "AWS::S3::Bucket Tags[o]: unknown"),
    ),
    "spot": (
        (_by_karpenter, ""),
        (_one_more("system"), "AWS::SageMaker::Cluster InstanceGroups[system].InstanceCount: sets"),
        (
            _pool_patched,
            f"{OBJECT} Objects[NodePool gpu].spec.disruption.consolidateAfter: nothing",
        ),
        (_add_on, "AWS::EKS::Cluster Addons[metrics-server]: nothing"),
        (_ssh, "AWS::EC2::SecurityGroup Ingress[tcp 22 from 203.0.113.0/24]: nothing"),
        (_kept_a_day, f"{LOGS} RetentionInDays: unknown"),
        (_other_widgets, "AWS::CloudWatch::Dashboard DashboardBody: sets"),
        (_other_metric, "AWS::Logs::MetricFilter MetricTransformations: nothing"),
        (_tells_others, "AWS::CloudWatch::Alarm AlarmActions: sets"),
    ),
    "serving": (
        (_data_sources, "AWS::Grafana::Workspace DataSources: unknown"),
        (_alias_of_metrics, "AWS::APS::Workspace Alias: unknown"),
        (_client, "AWS::IAM::OIDCProvider ClientIdList: unknown"),
        (_other_role_of_pods, "AWS::EKS::PodIdentityAssociation RoleArn: unknown"),
        (_ssh, "AWS::EC2::SecurityGroup Ingress[tcp 22 from 203.0.113.0/24]: nothing"),
        (_owned, "AWS::SageMaker::Cluster Tags[o]: nothing"),
        (_no_plugins, "AWS::Grafana::Workspace PluginAdminEnabled: unknown"),
        (_tagged_add_on, "AWS::EKS::Addon Tags[o]: nothing"),
        (_described_role, f"{ROLE} Description: unknown"),
    ),
}
"""By the example: what is planted, and what is said of it where all that has tags, and the cluster, is in a change.

Of the file as it was deployed it is "nothing", of all.
"""


@pytest.mark.examples
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TABLE)
def test_each_is_found_once_and_becomes_what_was_announced(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with living(tmp_path, monkeypatch, text=as_it_ships(PROJECT / ENVIRONMENTS[name])) as life:
        account = Account(life)
        for plant, _ in TABLE[name]:
            plant(account)
        expected = sorted(said for _, said in TABLE[name] if said)
        found = look(life)
        places = [each.rpartition(": ")[0] for each in expected]
        assert sorted(f"{_row(each)}: {each.next.effect}" for each in found.differences) == [
            f"{each}: nothing" for each in places
        ]
        assert "hush" not in found.model_dump_json()

        data = copy.deepcopy(life.data)
        data.setdefault("tags", {})["cost-center"] = "44"
        # a tag alone may go another way than UpdateCluster, which takes whole groups
        data["hyperpod"]["instance_groups"][0]["labels"] = {"use": "system"}
        said = look(life, data)
        assert sorted(f"{_row(each)}: {each.next.effect}" for each in said.differences) == expected
        life.change(lambda of: of.update(data))
        after = look(life)
        _compared(said, after)
        # what was left stands there still: nothing was taken for gone
        kept = {key for key, each in zip(_values(said), said.differences, strict=True) if each.next.effect == "nothing"}
        assert kept <= set(_values(after))
