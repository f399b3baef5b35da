"""A VPC and an EKS cluster of others: used by ID, never changed, and no AZ names in templates."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from hyperpod_cdk.eks.control_plane import ControlPlane, ExistingControlPlane
from hyperpod_cdk.eks.dependencies import HyperPodChart, HyperPodDependencies
from hyperpod_cdk.governance.task_governance import TaskGovernance
from hyperpod_cdk.governance.teams import QuotaRow, Team
from hyperpod_cdk.network.vpc import EfaSecurityGroup, ExistingNetwork
from hyperpod_cdk.storage.lustre import LustreFileSystem
from hyperpod_cdk.storage.lustre_claims import LustreClaims
from tests.support.templates import of_type, stack, template_of

VPC = "vpc-0a1b2c3d4e5f67890"
NODES = {"use1-az5": "subnet-0a1b2c3d4e5f67890", "use1-az4": "subnet-0b1b2c3d4e5f67890"}
CONTROL_PLANE = ["subnet-0c1b2c3d4e5f67890", "subnet-0d1b2c3d4e5f67890"]
EKS_GROUP = "sg-0e1b2c3d4e5f67890"
KUBECTL = "arn:aws:iam::111122223333:role/team/kubectl"
ADMIN = "arn:aws:iam::111122223333:role/Admin"
OIDC = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF"
TOKEN_MARK = "${Token["


def network(own: cdk.Stack, **options: Any) -> ExistingNetwork:
    given: dict[str, Any] = {"vpc_id": VPC, "node_subnet_ids": NODES, **options}
    return ExistingNetwork(own, "Network", **given)


def group(own: cdk.Stack, group_id: str = EKS_GROUP) -> ec2.ISecurityGroup:
    return ec2.SecurityGroup.from_security_group_id(own, f"Group-{group_id}", group_id, mutable=False)


def joined(own: cdk.Stack, **options: Any) -> ExistingControlPlane:
    place = network(own, control_plane_subnet_ids=CONTROL_PLANE)
    given: dict[str, Any] = {
        "vpc": place.vpc,
        "subnets": place.control_plane_subnets,
        "eks_cluster_name": "platform",
        "kubernetes_version": "1.34",
        "security_group": group(own),
        **options,
    }
    return ExistingControlPlane(own, "ControlPlane", **given)


def with_chart(**options: Any) -> dict[str, Any]:
    own = stack()
    plane = joined(own, **options)
    dependencies = HyperPodDependencies(
        own,
        "Dependencies",
        cluster=plane.cluster,
        instance_types=["ml.g6e.12xlarge"],
        chart=HyperPodChart.placeholder(),
    )
    dependencies.node.add_dependency(plane.ready)
    return template_of(own)


def test_a_network_makes_nothing() -> None:
    own = stack()
    place = network(own, vpc_cidr="10.40.0.0/16")
    assert "Resources" not in Template.from_stack(own).to_json()
    assert place.vpc.vpc_id == VPC
    assert place.vpc.vpc_cidr_block == "10.40.0.0/16"
    assert {zone: subnet.subnet_id for zone, subnet in place.node_subnets.items()} == NODES


@pytest.mark.parametrize(
    ("named", "found"),
    [((), list(NODES.values())), (CONTROL_PLANE, CONTROL_PLANE)],
)
def test_control_plane_subnets_are_the_named_or_the_nodes_own(named: list[str], found: list[str]) -> None:
    place = network(stack(), control_plane_subnet_ids=named)
    assert [subnet.subnet_id for subnet in place.control_plane_subnets] == found
    assert [subnet.subnet_id for subnet in place.vpc.private_subnets] == found


@pytest.mark.parametrize(
    ("subnets", "message"),
    [
        ({}, "node_subnet_ids: must hold at least one node subnet, got none; add one below node_subnet_ids"),
        (
            {"us-east-1a": "subnet-0a1b2c3d4e5f67890"},
            (
                "node_subnet_ids['us-east-1a']: must be an availability zone ID such as use1-az1, got the name"
                ' "us-east-1a", which means another zone in each account; find its ID with \'aws ec2'
                " describe-availability-zones --region us-east-1' and set the key to it"
            ),
        ),
        (
            {"usw2-az1": "subnet-0a1b2c3d4e5f67890"},
            (
                "node_subnet_ids['usw2-az1']: must be an availability zone ID of us-east-1 (use1-az...), got usw2-az1"
                " of us-west-2; write one of us-east-1"
            ),
        ),
    ],
)
def test_node_subnets_that_are_refused(subnets: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared whole
        network(stack(), node_subnet_ids=subnets)
    assert str(caught.value) == message


def test_an_az_name_in_a_template_fails_at_synthesis() -> None:
    own = stack()
    place = network(own)
    cdk.CfnOutput(own, "Zone", value=place.node_subnets["use1-az5"].availability_zone)
    with pytest.raises(RuntimeError, match=r"the availability zone name of subnet-0a1b2c3d4e5f67890 is unknown"):
        Template.from_stack(own)


def test_a_control_plane_is_made_in_the_named_subnets() -> None:
    own = stack()
    place = network(own, control_plane_subnet_ids=CONTROL_PLANE)
    efa = EfaSecurityGroup(own, "Efa", vpc=place.vpc)
    ControlPlane(
        own,
        "ControlPlane",
        vpc=place.vpc,
        subnets=place.control_plane_subnets,
        eks_cluster_name="prod-eks",
        security_group=efa.security_group,
    )
    template = template_of(own)
    (cluster,) = of_type(template, "AWS::EKS::Cluster").values()
    assert cluster["Properties"]["ResourcesVpcConfig"]["SubnetIds"] == CONTROL_PLANE
    handlers = [
        function["Properties"]["VpcConfig"]["SubnetIds"]
        for name, function in of_type(template, "AWS::Lambda::Function").items()
        if "KubectlProvider" in name
    ]
    assert handlers == [CONTROL_PLANE] * 2
    (made,) = of_type(template, "AWS::EC2::SecurityGroup").values()
    assert made["Properties"]["VpcId"] == VPC
    for kind in ("AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::Route", "AWS::EC2::NatGateway"):
        assert of_type(template, kind) == {}
    assert TOKEN_MARK not in json.dumps(template)
    assert "us-east-1a" not in json.dumps(template)


def test_a_joined_cluster_is_not_made_nor_are_its_owners_addons() -> None:
    template = with_chart()
    for kind in ("AWS::EKS::Cluster", "AWS::EKS::Addon", "AWS::KMS::Key", "AWS::EC2::SecurityGroup"):
        assert of_type(template, kind) == {}
    assert "AWS::EC2::SecurityGroupIngress" not in json.dumps(template)
    assert TOKEN_MARK not in json.dumps(template)


def test_kubectl_is_in_the_vpc_with_the_clusters_group() -> None:
    functions = of_type(with_chart(), "AWS::Lambda::Function").values()
    assert len(functions) == 2
    for function in functions:
        assert function["Properties"]["VpcConfig"] == {"SubnetIds": CONTROL_PLANE, "SecurityGroupIds": [EKS_GROUP]}


def test_kubectl_gets_a_role_with_an_access_entry_before_the_chart() -> None:
    template = with_chart()
    ((entry_id, entry),) = of_type(template, "AWS::EKS::AccessEntry").items()
    (chart,) = of_type(template, "Custom::AWSCDK-EKS-HelmChart").values()
    handler = next(
        row
        for name, row in of_type(template, "AWS::Lambda::Function").items()
        if row["Properties"]["Handler"] == "index.handler"
    )
    assert entry["Properties"]["ClusterName"] == "platform"
    assert entry["Properties"]["PrincipalArn"] == handler["Properties"]["Role"]
    assert entry["Properties"]["AccessPolicies"][0]["AccessScope"] == {"Type": "cluster"}
    assert chart["Properties"]["ClusterName"] == "platform"
    assert entry_id in chart["DependsOn"]


def test_a_named_kubectl_role_gets_a_policy_and_no_entry() -> None:
    template = with_chart(kubectl_role_arn=KUBECTL, oidc_provider_arn=OIDC)
    assert of_type(template, "AWS::EKS::AccessEntry") == {}
    policies = [
        row for row in of_type(template, "AWS::IAM::Policy").values() if row["Properties"]["Roles"] == ["kubectl"]
    ]
    actions = [each["Action"] for row in policies for each in row["Properties"]["PolicyDocument"]["Statement"]]
    assert actions == ["eks:DescribeCluster", ["s3:GetObject*", "s3:GetBucket*", "s3:List*"]]
    handlers = [
        row["Properties"]["Role"]
        for row in of_type(template, "AWS::Lambda::Function").values()
        if row["Properties"]["Handler"] == "index.handler"
    ]
    assert handlers == [KUBECTL]


def test_administrators_get_access_entries() -> None:
    template = with_chart(admin_role_arns=[ADMIN])
    entries = of_type(template, "AWS::EKS::AccessEntry").values()
    assert [row["Properties"]["PrincipalArn"] for row in entries if isinstance(row["Properties"]["PrincipalArn"], str)]
    assert len(entries) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kubectl_role_arn": "arn:aws:sts::111122223333:assumed-role/kubectl/me"},
            (
                "kubectl_role_arn: must be the ARN of an IAM role, got the session "
                "arn:aws:sts::111122223333:assumed-role/kubectl/me, which ends with its login; set "
                'kubectl_role_arn="arn:aws:iam::111122223333:role/kubectl" (with the role\'s path, if it has one)'
            ),
        ),
        (
            {"kubernetes_version": "1.12"},
            (
                'kubernetes_version: needs the kubectl layer of the same minor, got "1.12" and no package '
                "aws-cdk.lambda-layer-kubectl-v12; set "
                'kubernetes_version="1.30"'
            ),
        ),
    ],
)
def test_a_joined_cluster_that_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared whole
        joined(stack(), **options)
    assert str(caught.value) == message


def test_claims_of_another_stack_use_the_joined_cluster() -> None:
    app = cdk.App(builtin_cloud_formation_validation=False)
    plane = joined(stack("control-plane", app))
    own = stack("platform", app)
    LustreClaims(
        own,
        "Claims",
        cluster=plane.cluster,
        file_system_id="fs-0123456789abcdef0",
        dns_name="fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
        mount_name="abcdefgh",
        capacity_gib=1200,
        claim_name="scratch",
        namespaces=["research"],
    )
    (manifest,) = of_type(template_of(own), "Custom::AWSCDK-EKS-KubernetesResource").values()
    assert manifest["Properties"]["ClusterName"] == "platform"
    assert "Fn::ImportValue" in manifest["Properties"]["ServiceToken"]


@pytest.mark.parametrize("efa", [False, True])
def test_a_file_system_that_joins_its_clients_group_adds_no_rule(efa: bool) -> None:  # noqa: FBT001 - a case
    own = stack()
    place = network(own)
    clients = group(own)
    system = LustreFileSystem(
        own,
        "Scratch",
        vpc=place.vpc,
        subnet=place.node_subnets["use1-az5"],
        availability_zone_id="use1-az5",
        client_security_group=clients,
        join_client_group=True,
        capacity_gib=19200 if efa else 1200,
        efa=efa,
    )
    template = template_of(own)
    rows = {row["Type"]: row["Properties"] for row in template["Resources"].values()}
    assert rows.keys() == {"AWS::FSx::FileSystem", "AWS::Logs::LogGroup"}
    properties = rows["AWS::FSx::FileSystem"]
    assert properties["SecurityGroupIds"] == [EKS_GROUP]
    assert properties["SubnetIds"] == [NODES["use1-az5"]]
    assert system.security_group.security_group_id == EKS_GROUP


def test_governance_without_its_addon_starts_with_the_policy() -> None:
    own = stack()
    governance = TaskGovernance(
        own,
        "Governance",
        eks_cluster_name="platform",
        cluster_arn=cdk.Fn.sub("arn:${AWS::Partition}:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"),
        name_prefix="shared",
        teams=[Team(name="research", quota=[QuotaRow(instance_type="ml.g6e.12xlarge", count=1)])],
        native_scheduler_config=True,
        native_compute_quota=True,
        install_addon=False,
    )
    template = template_of(own)
    assert governance.addon is None
    assert of_type(template, "AWS::EKS::Addon") == {}
    (policy,) = of_type(template, "AWS::SageMaker::ClusterSchedulerConfig").values()
    assert "DependsOn" not in policy


def test_the_named_oidc_provider_shows_its_issuer() -> None:
    provider = joined(stack(), oidc_provider_arn=OIDC).oidc_provider
    assert provider is not None
    assert (provider.arn, provider.issuer) == (OIDC, "oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF")
    assert joined(stack()).oidc_provider is None


def test_an_oidc_provider_that_is_not_known_yet_is_taken_apart_in_the_template() -> None:
    own = stack()
    provider = joined(own, oidc_provider_arn=cdk.Fn.import_value("provider")).oidc_provider
    assert provider is not None
    issuer = own.resolve(provider.issuer)["Fn::Select"][1]["Fn::Split"][1]
    assert {"Fn::Select": [1, {"Fn::Split": [":oidc-provider/", {"Fn::ImportValue": "provider"}]}]} in issuer[
        "Fn::Join"
    ][1]
