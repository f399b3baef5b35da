"""The EKS control plane: who gets in, what is logged and kept, and that it has no nodes."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Annotations, Match, Template

from hyperpod_cdk.catalog import addons, kubernetes
from hyperpod_cdk.eks.control_plane import NODE_INDEPENDENT_ADDONS, ControlPlane, _warn_about_version
from hyperpod_cdk.network.vpc import EfaSecurityGroup, Network
from tests.support.templates import app, of_type, stack, template_of

ADMIN = "arn:aws:iam::111122223333:role/Admin"
OTHER_ADMIN = "arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/Other"


def foreign_vpc(own: cdk.Stack) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        own,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["a", "b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )


def control_plane(own: cdk.Stack, **options: Any) -> ControlPlane:
    vpc = foreign_vpc(own)
    given: dict[str, Any] = {"vpc": vpc, "subnets": vpc.private_subnets, "eks_cluster_name": "prod-eks", **options}
    return ControlPlane(own, "ControlPlane", **given)


def made(**options: Any) -> dict[str, Any]:
    own = stack()
    control_plane(own, **options)
    return template_of(own)


def cluster_of(template: dict[str, Any]) -> dict[str, Any]:
    (row,) = of_type(template, "AWS::EKS::Cluster").values()
    found: dict[str, Any] = row["Properties"]
    return found


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return made()


def test_the_cluster(plain: dict[str, Any]) -> None:
    cluster = cluster_of(plain)

    assert cluster["Name"] == "prod-eks"
    assert cluster["Version"] == kubernetes.DEFAULT
    assert cluster["AccessConfig"] == {
        "AuthenticationMode": "API",
        "BootstrapClusterCreatorAdminPermissions": False,
    }
    assert {row["Type"] for row in cluster["Logging"]["ClusterLogging"]["EnabledTypes"]} == {
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    }


def test_there_are_no_nodes_and_no_auto_mode(plain: dict[str, Any]) -> None:
    assert cluster_of(plain)["ComputeConfig"] == {"Enabled": False}
    for kind in ("AWS::EKS::Nodegroup", "AWS::AutoScaling::AutoScalingGroup", "AWS::EKS::FargateProfile"):
        assert of_type(plain, kind) == {}


def test_no_stack_owns_the_log_group_of_eks_and_nothing_waits_for_it(plain: dict[str, Any]) -> None:
    named = [row["Properties"].get("LogGroupName") for row in of_type(plain, "AWS::Logs::LogGroup").values()]
    assert set(named) == {None}
    ((settings_id, settings),) = of_type(plain, "Custom::HyperPodLogSettings").items()
    properties = {key: value for key, value in settings["Properties"].items() if key != "ServiceToken"}
    assert properties == {
        "ServiceTimeout": 600,
        "LogGroupName": "/aws/eks/prod-eks/cluster",
        "RetentionInDays": 90,
    }
    assert "DependsOn" not in settings
    others = {name: row for name, row in plain["Resources"].items() if name != settings_id}
    assert settings_id not in str(others)


def test_secrets_are_encrypted_with_a_key_that_rotates_and_stays(plain: dict[str, Any]) -> None:
    (key_id,) = of_type(plain, "AWS::KMS::Key")
    key = plain["Resources"][key_id]

    assert key["Properties"]["EnableKeyRotation"] is True
    assert key["DeletionPolicy"] == "RetainExceptOnCreate"
    assert cluster_of(plain)["EncryptionConfig"] == [
        {"Provider": {"KeyArn": {"Fn::GetAtt": [key_id, "Arn"]}}, "Resources": ["secrets"]}
    ]


def test_logical_ids_that_must_not_change(plain: dict[str, Any]) -> None:
    # EKS refuses a second cluster of the same name, so a new id is an update that cannot succeed
    kinds = ("AWS::EKS::Cluster", "AWS::KMS::Key", "AWS::EKS::Addon")
    assert sorted(name for kind in kinds for name in of_type(plain, kind)) == [
        "ControlPlaneCluster8AFA2E51",
        "ControlPlaneEksPodIdentityAgent46FEC91D",
        "ControlPlaneKubeProxyF2CFAA08",
        "ControlPlaneSecretsKey72FED211",
        "ControlPlaneVpcCni0A213BA8",
    ]


def test_the_cluster_goes_with_its_stack(plain: dict[str, Any]) -> None:
    (cluster,) = of_type(plain, "AWS::EKS::Cluster").values()
    role = plain["Resources"]["ControlPlaneRoleC1F9F2DA"]

    # switched when the cluster stands: a creation that fails must be able to delete it
    assert "DeletionProtection" not in cluster["Properties"]
    policies = [(row["DeletionPolicy"], row["UpdateReplacePolicy"]) for row in (cluster, role)]
    assert policies == [("Delete", "Retain"), ("Delete", "Retain")]
    parts = [*of_type(plain, "AWS::EKS::Addon").values(), *of_type(plain, "AWS::EKS::AccessEntry").values()]
    assert {row.get("DeletionPolicy") for row in parts} == {None}


def test_the_addons_are_those_that_need_no_node(plain: dict[str, Any]) -> None:
    rows = [row["Properties"] for row in of_type(plain, "AWS::EKS::Addon").values()]

    assert sorted(row["AddonName"] for row in rows) == ["eks-pod-identity-agent", "kube-proxy", "vpc-cni"]
    assert {row["ResolveConflicts"] for row in rows} == {"OVERWRITE"}
    assert all("AddonVersion" not in row for row in rows)
    assert not any(addons.row(name).needs_nodes for name in NODE_INDEPENDENT_ADDONS)


def test_addons_are_pinned_on_demand() -> None:
    template = Template.from_json(
        made(addon_versions={"vpc-cni": "v1.20.0-eksbuild.1", "coredns": "v1.12.4-eksbuild.1"})
    )
    template.resource_count_is("AWS::EKS::Addon", 3)
    template.has_resource_properties("AWS::EKS::Addon", {"AddonName": "vpc-cni", "AddonVersion": "v1.20.0-eksbuild.1"})
    template.has_resource_properties("AWS::EKS::Addon", {"AddonName": "kube-proxy", "AddonVersion": Match.absent()})


def test_others_can_wait_for_the_addons() -> None:
    own = stack()
    plane = control_plane(own)
    client = cdk.CfnResource(own, "Client", type="AWS::CloudFormation::WaitConditionHandle")
    client.node.add_dependency(plane.addons)
    template = Template.from_stack(own).to_json()

    assert sorted(template["Resources"]["Client"]["DependsOn"]) == sorted(of_type(template, "AWS::EKS::Addon"))


def test_administrators_keep_their_entries_whatever_their_order() -> None:
    def entries(*arns: str) -> dict[str, Any]:
        rows = of_type(made(admin_role_arns=arns), "AWS::EKS::AccessEntry")
        return {name: row for name, row in rows.items() if name.startswith("ControlPlaneAdminAccess")}

    first, second = entries(ADMIN), entries(OTHER_ADMIN, ADMIN)
    assert {row["Properties"]["PrincipalArn"] for row in second.values()} == {ADMIN, OTHER_ADMIN}
    assert first.items() <= second.items()
    (entry,) = first.values()
    assert entry["Properties"]["Type"] == "STANDARD"
    assert entry["Properties"]["AccessPolicies"] == [
        {
            "AccessScope": {"Type": "cluster"},
            "PolicyArn": {
                "Fn::Join": [
                    "",
                    [
                        "arn:",
                        {"Ref": "AWS::Partition"},
                        ":eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
                    ],
                ]
            },
        }
    ]


def test_an_administrator_may_be_a_token() -> None:
    template = made(admin_role_arns=[cdk.Fn.import_value("admin")])
    principals = [row["Properties"]["PrincipalArn"] for row in of_type(template, "AWS::EKS::AccessEntry").values()]
    assert {"Fn::ImportValue": "admin"} in principals


def test_the_entry_for_the_nodes() -> None:
    template = Template.from_json(made(node_role_arn_for_access_entry="arn:aws:iam::111122223333:role/Nodes"))
    template.has_resource_properties(
        "AWS::EKS::AccessEntry",
        {
            "PrincipalArn": "arn:aws:iam::111122223333:role/Nodes",
            "Type": "HYPERPOD_LINUX",
            "AccessPolicies": Match.absent(),
        },
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # as EKS has it, but written: what a template leaves out again nobody sets back
        ({}, {"EndpointPrivateAccess": True, "EndpointPublicAccess": True, "PublicAccessCidrs": ["0.0.0.0/0"]}),
        (
            {"public_access_cidrs": ["54.240.193.0/24"]},
            {
                "EndpointPrivateAccess": True,
                "EndpointPublicAccess": True,
                "PublicAccessCidrs": ["54.240.193.0/24"],
            },
        ),
        ({"endpoint_access": "private"}, {"EndpointPrivateAccess": True, "EndpointPublicAccess": False}),
    ],
    ids=["both", "restricted", "private"],
)
def test_who_reaches_the_endpoint(options: dict[str, Any], expected: dict[str, Any]) -> None:
    vpc_config = cluster_of(made(**options))["ResourcesVpcConfig"]
    assert {key: value for key, value in vpc_config.items() if "Access" in key} == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        (
            {"service_ipv4_cidr": "172.20.0.0/16"},
            {"KubernetesNetworkConfig": {"ServiceIpv4Cidr": "172.20.0.0/16", "IpFamily": "ipv4"}},
        ),
        ({"support_type": "standard"}, {"UpgradePolicy": {"SupportType": "STANDARD"}}),
        ({"scaling_tier": "tier-2xl"}, {"ControlPlaneScalingConfig": {"Tier": "tier-2xl"}}),
        ({"zonal_shift": True}, {"ZonalShiftConfig": {"Enabled": True}}),
    ],
    ids=["nothing", "services", "standard", "tier", "shift"],
)
def test_the_cluster_is_what_was_asked_for(options: dict[str, Any], expected: dict[str, Any]) -> None:
    plain, cluster = cluster_of(made()), cluster_of(made(**options))
    changed = {key: value for key, value in cluster.items() if value != plain.get(key)}
    assert changed.keys() == expected.keys()
    for key, value in expected.items():
        assert value.items() <= changed[key].items()


def test_omitted_settings_are_written_as_in_eks() -> None:
    cluster = cluster_of(made())
    assert {key: cluster[key] for key in ("UpgradePolicy", "ControlPlaneScalingConfig", "ZonalShiftConfig")} == {
        "UpgradePolicy": {"SupportType": "EXTENDED"},
        "ControlPlaneScalingConfig": {"Tier": "standard"},
        "ZonalShiftConfig": {"Enabled": False},
    }


def test_kubectl_runs_in_the_private_subnets_with_the_layer_of_the_version() -> None:
    template = made(kubernetes_version="1.33")
    (layer,) = [
        row["Properties"]["Description"]
        for name, row in of_type(template, "AWS::Lambda::LayerVersion").items()
        if "Kubectl" in name and "AwsCli" not in name
    ]
    (handler,) = [
        row["Properties"]
        for name, row in of_type(template, "AWS::Lambda::Function").items()
        if "KubectlProviderHandler" in name
    ]
    assert layer.startswith("/opt/kubectl/kubectl 1.33.")
    assert handler["VpcConfig"]["SubnetIds"] == ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
    assert cluster_of(template)["Version"] == "1.33"


@pytest.mark.parametrize("version", kubernetes.hyperpod_versions())
def test_every_version_that_hyperpod_takes_has_its_layer(version: str) -> None:
    own = stack()
    control_plane(own, kubernetes_version=version)


def test_given_log_retention_and_key_are_used() -> None:
    own = stack()
    key = kms.Key(own, "Mine")
    control_plane(own, secrets_key=key, log_retention_days=365)
    template = template_of(own)

    assert len(of_type(template, "AWS::KMS::Key")) == 1
    assert own.resolve(key.key_arn) == cluster_of(template)["EncryptionConfig"][0]["Provider"]["KeyArn"]
    Template.from_json(template).has_resource_properties("Custom::HyperPodLogSettings", {"RetentionInDays": 365})


def test_the_shared_security_group_is_on_the_control_plane() -> None:
    scope = app()
    own, other = stack("network", scope), stack("control-plane", scope)
    network = Network(
        own,
        "Network",
        vpc_cidr="10.192.0.0/16",
        availability_zones={"use1-az5": "10.5.0.0/16", "use1-az4": "10.4.0.0/16"},
    )
    efa = EfaSecurityGroup(own, "Efa", vpc=network.vpc)
    ControlPlane(
        other,
        "ControlPlane",
        vpc=network.vpc,
        subnets=network.control_plane_subnets,
        eks_cluster_name="prod-eks",
        security_group=efa.security_group,
    )
    (group,) = cluster_of(template_of(other))["ResourcesVpcConfig"]["SecurityGroupIds"]

    assert "EfaGroup" in group["Fn::ImportValue"]
    assert of_type(template_of(other), "AWS::EC2::SecurityGroup") == {}
    # Network tags its subnets itself, so CDK's reminder would be noise
    Annotations.from_stack(other).has_no_warning("*", Match.string_like_regexp(".*auto-tag.*"))


def test_subnets_of_a_foreign_vpc_are_warned_about() -> None:
    own = stack()
    control_plane(own)
    Annotations.from_stack(own).has_warning("*", Match.string_like_regexp(".*auto-tag.*"))


def test_a_version_that_hyperpod_does_not_document_is_warned_about() -> None:
    own = stack()
    _warn_about_version(own, "1.29")
    Annotations.from_stack(own).has_warning(
        "/test", Match.string_like_regexp("kubernetes_version: must be a Kubernetes version that HyperPod accepts .*")
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kubernetes_version": "1.99"},
            (
                'kubernetes_version: needs the kubectl layer of the same minor, got "1.99" and no package '
                "aws-cdk.lambda-layer-kubectl-v99; set "
                'kubernetes_version="1.35", or run pip install aws-cdk.lambda-layer-kubectl-v99'
            ),
        ),
        (
            {"kubernetes_version": 1.34},
            'kubernetes_version: must be text, got 1.34; write kubernetes_version="1.34"',
        ),
        (
            {"addon_versions": {"vpc-cni": "v1.18.2-eksbuild.1"}},
            (
                "addon_versions['vpc-cni']: must be 1.18.3 or newer for HyperPod, got v1.18.2-eksbuild.1; set"
                ' vpc-cni to "v1.18.3-eksbuild.1" or newer, or leave it out for EKS\'s default'
            ),
        ),
        (
            {"admin_role_arns": ["arn:aws:sts::111122223333:assumed-role/Admin/me"]},
            (
                "admin_role_arns[0]: must be the ARN of an IAM role, got the session "
                "arn:aws:sts::111122223333:assumed-role/Admin/me, which ends with its login; set "
                'admin_role_arns[0]="arn:aws:iam::111122223333:role/Admin" (with the role\'s path, if it has one)'
            ),
        ),
        (
            {"endpoint_access": "private", "public_access_cidrs": ["54.240.193.0/24"]},
            (
                'public_access_cidrs: must be left out with endpoint_access="private", because there is no public'
                ' endpoint; remove public_access_cidrs or set endpoint_access="public_and_private"'
            ),
        ),
        (
            {"public_access_cidrs": [f"8.8.{each}.0/24" for each in range(41)]},
            "public_access_cidrs: must hold at most 40 blocks, got 41; remove 1",
        ),
        (
            {"public_access_cidrs": ["8.8.8.0/24", "100.64.0.0/10"]},
            (
                "public_access_cidrs[1]: must contain public addresses, got 100.64.0.0/10 of 100.64.0.0/10"
                " (shared by carriers), which EKS refuses; write the blocks that you connect from (for one address,"
                " what https://checkip.amazonaws.com returns, followed by /32), or"
                " remove it: callers in the VPC, or in networks that are connected with it, use the private endpoint"
            ),
        ),
    ],
)
def test_misuse_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is compared below
        control_plane(stack(), **options)
    assert str(refusal.value) == message


def test_one_subnet_is_too_few() -> None:
    own = stack()
    vpc = foreign_vpc(own)
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole message is compared below
        ControlPlane(own, "ControlPlane", vpc=vpc, subnets=vpc.private_subnets[:1], eks_cluster_name="prod-eks")
    assert str(refusal.value) == (
        "subnets: must hold at least 2 subnets, in different availability zones, for the EKS control plane, got 1;"
        " add 1"
    )


def test_no_oidc_provider_unless_asked_for(plain: dict[str, Any]) -> None:
    assert of_type(plain, "AWS::IAM::OIDCProvider") == {}


def test_an_oidc_provider_of_the_clusters_issuer() -> None:
    own = stack()
    provider = control_plane(own, oidc_provider=True).oidc_provider
    template = template_of(own)
    ((name, resource),) = of_type(template, "AWS::IAM::OIDCProvider").items()
    (cluster,) = of_type(template, "AWS::EKS::Cluster")
    issuer_url = {"Fn::GetAtt": [cluster, "OpenIdConnectIssuerUrl"]}
    assert resource["Properties"] == {"ClientIdList": ["sts.amazonaws.com"], "Url": issuer_url}
    assert provider is not None
    assert own.resolve(provider.arn) == {"Fn::GetAtt": [name, "Arn"]}
    assert own.resolve(provider.issuer) == {"Fn::Select": [1, {"Fn::Split": ["//", issuer_url]}]}
