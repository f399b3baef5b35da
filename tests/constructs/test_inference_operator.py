"""The HyperPod inference operator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from hyperpod_cdk.operators.inference_operator import InferenceOperator
from hyperpod_cdk.templates.cdk_plugin import check_templates

ISSUER = "oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
PROVIDER = f"arn:aws:iam::111122223333:oidc-provider/{ISSUER}"
CLUSTER = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef123456"
PREFIX = "InferenceOperator"


def stack_with(**arguments: Any) -> cdk.Stack:
    app = cdk.App(builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "foreign", env=cdk.Environment(account="111122223333", region="us-east-1"))
    operator_in(stack, **arguments)
    return stack


def operator_in(stack: cdk.Stack, **arguments: Any) -> None:
    given = {"eks_cluster_name": "prod-eks", "cluster_arn": CLUSTER, "name": "prod"}
    InferenceOperator(stack, "Operator", oidc_provider_arn=PROVIDER, oidc_issuer=ISSUER, **{**given, **arguments})


def resources(stack: cdk.Stack, resource_type: str) -> dict[str, dict[str, Any]]:
    found = Template.from_stack(stack).to_json()["Resources"]
    return {name: each for name, each in found.items() if each["Type"] == resource_type}


def configuration(stack: cdk.Stack) -> dict[str, Any]:
    """The add-on's configuration, each token as the logical id that it speaks of."""
    (addon,) = resources(stack, "AWS::EKS::Addon").values()
    parts = addon["Properties"]["ConfigurationValues"]["Fn::Join"][1]
    written = [part if isinstance(part, str) else next(iter(part.values())) for part in parts]
    loaded: dict[str, Any] = json.loads("".join(part if isinstance(part, str) else part[0] for part in written))
    return loaded


def subjects(stack: cdk.Stack) -> dict[str, str]:
    """Role -> the service account that may take it."""
    found = {}
    for name, role in resources(stack, "AWS::IAM::Role").items():
        text, names = role["Properties"]["AssumeRolePolicyDocument"]["Fn::Sub"]
        assert names == {"Provider": PROVIDER, "Issuer": ISSUER}
        (statement, *others) = json.loads(text)["Statement"]
        assert statement["Principal"] == {"Federated": "${Provider}"}
        assert [each["Principal"] for each in others] in ([], [{"Service": "sagemaker.amazonaws.com"}])
        conditions = statement["Condition"]["StringLike"]
        assert conditions["${Issuer}:aud"] == "sts.amazonaws.com"
        found[name] = conditions["${Issuer}:sub"]
    return found


def test_it_may_make_interfaces_in_subnets_that_another_account_may_share() -> None:
    """AmazonSageMakerHyperPodInferenceAccess v4 lets it with aws:ResourceAccount, which is the subnet's owner's."""

    def policies(*given: str) -> list[Any]:
        app = cdk.App(builtin_cloud_formation_validation=False)
        stack = cdk.Stack(app, "foreign", env=cdk.Environment(account="111122223333", region="us-east-1"))
        made = ec2.CfnSubnet(stack, "Made", vpc_id="vpc-1").ref
        subnets = [
            ec2.Subnet.from_subnet_id(stack, f"Subnet{number}", each or made) for number, each in enumerate(given)
        ]
        operator_in(stack, subnets=subnets)
        (role,) = (each for name, each in resources(stack, "AWS::IAM::Role").items() if name.startswith("OperatorRole"))
        found: list[Any] = role["Properties"].get("Policies", [])
        return found

    assert policies() == []
    # a subnet that is made here is this account's
    assert policies("") == []
    (policy,) = policies("subnet-0d5a9e3b71c84f206", "", "subnet-0d5a9e3b71c84f206")
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Allow", ["ec2:CreateNetworkInterface"])
    (place,) = statement["Resource"]
    text = "".join(part if isinstance(part, str) else f"<{part['Ref']}>" for part in place["Fn::Join"][1])
    assert text == "arn:<AWS::Partition>:ec2:<AWS::Region>:*:subnet/subnet-0d5a9e3b71c84f206"


def test_roles_are_taken_by_these_service_accounts_and_no_other() -> None:
    found = {name[len("Operator") : -8]: subject for name, subject in subjects(stack_with(gated_models=True)).items()}
    system = "system:serviceaccount:hyperpod-inference-system:"
    assert found == {
        "Role": f"{system}hyperpod-inference-controller-manager",
        "LoadBalancerRole": f"{system}aws-load-balancer-controller",
        "KedaRole": f"{system}keda-operator",
        "GatedModelRole": "system:serviceaccount:*:hyperpod-inference-service-account*",
    }


def test_the_addon_gets_its_roles_and_its_bucket() -> None:
    stack = stack_with(gated_models=True)
    roles = {name[len("Operator") : -8]: name for name in resources(stack, "AWS::IAM::Role")}
    (bucket,) = resources(stack, "AWS::S3::Bucket")
    assert configuration(stack) == {
        "executionRoleArn": roles["Role"],
        "hyperpodClusterArn": CLUSTER,
        "jumpstartGatedModelDownloadRoleArn": roles["GatedModelRole"],
        "tlsCertificateS3Bucket": bucket,
        "alb": {"enabled": True, "serviceAccount": {"create": True, "roleArn": roles["LoadBalancerRole"]}},
        "keda": {"enabled": True, "auth": {"aws": {"irsa": {"enabled": True, "roleArn": roles["KedaRole"]}}}},
    }


def test_controllers_of_the_clusters_own_get_no_role() -> None:
    stack = stack_with(load_balancer_controller=False, keda=False)
    assert len(resources(stack, "AWS::IAM::Role")) == 1
    assert configuration(stack)["alb"] == {"enabled": False}
    assert configuration(stack)["keda"] == {"enabled": False}


@pytest.mark.parametrize(
    ("name", "role", "bucket"),
    [
        ("prod", "SageMakerHyperPodInference-prod-", "hyperpod-tls-prod-"),
        ("Production Ø1", "SageMakerHyperPodInference-production-1-", "hyperpod-tls-production-1-"),
        ("x" * 40, f"SageMakerHyperPodInference-{'x' * 28}-", f"hyperpod-tls-{'x' * 12}-"),
        ("--", "SageMakerHyperPodInference-hyperpod-", "hyperpod-tls-hyperpod-"),
    ],
)
def test_names_begin_as_aws_wants_them_and_fit(name: str, role: str, bucket: str) -> None:
    stack = stack_with(name=name)
    names = [each["Properties"].get("RoleName") for each in resources(stack, "AWS::IAM::Role").values()]
    (role_name,) = [each["Fn::Join"][1][0] for each in names if each]
    (made,) = resources(stack, "AWS::S3::Bucket").values()
    bucket_name = made["Properties"]["BucketName"]["Fn::Join"][1][0]
    assert role_name == role
    assert len(role_name) + 8 <= 64
    assert bucket_name == bucket
    assert len(bucket_name) + 8 + len("-111122223333-ap-southeast-1") <= 63


def test_certificates_are_kept_and_read_over_tls_only() -> None:
    stack = stack_with()
    (bucket,) = resources(stack, "AWS::S3::Bucket").values()
    assert (bucket["DeletionPolicy"], bucket["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    (policy,) = resources(stack, "AWS::S3::BucketPolicy").values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_what_is_required_comes_first() -> None:
    app = cdk.App(builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "foreign")
    driver = sns.CfnTopic(stack, "Driver")
    operator_in(stack, prerequisites=[driver], addon_version="v1.2.0-eksbuild.1")
    (addon,) = resources(stack, "AWS::EKS::Addon").values()
    assert addon["DependsOn"] == ["Driver"]
    assert addon["Properties"]["AddonVersion"] == "v1.2.0-eksbuild.1"


def test_the_template_passes_the_checks(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path), builtin_cloud_formation_validation=False)
    operator_in(cdk.Stack(app, "foreign"), gated_models=True)
    app.synth()
    assert check_templates(tmp_path.glob("*.template.json"), region="eu-west-1") == []
