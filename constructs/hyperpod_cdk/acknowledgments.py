"""Findings of cdk-nag and the template checks that constructs answer for, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from aws_cdk import Acknowledgment, CfnCondition, CfnElement, CfnResource, Stack, Token, Validations
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as s3_deployment
from constructs import IConstruct

MANAGED_POLICY = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{}]"
ACTION = "AwsSolutions-IAM5[Action::{}]"
RESOURCE = "AwsSolutions-IAM5[Resource::{}]"

_LAMBDA_POLICIES = "AWS's own minimal policy for functions; CDK attaches it to the functions it ships"
_ASSETS = "CDK grants its function read access to the bootstrap bucket, where the assets of every stack lie"
_RUNTIME = "CDK chooses and tests the runtime of the functions it ships"
_REDUNDANT = "CDK writes the dependency beside the reference that implies it"


def acknowledge(scope: IConstruct, reasons: Mapping[str, str]) -> None:
    """Record why each of these findings stands, for everything below ``scope``."""
    Validations.of(scope).acknowledge(*(Acknowledgment(id=rule, reason=reason) for rule, reason in reasons.items()))


def acknowledge_kubectl_provider(provider: IConstruct, *, role: IConstruct | None = None) -> None:
    """Answer for the functions with which CDK talks to a cluster; ``role`` is the handler's where CDK made none."""
    handler = provider.node.find_child("Handler")
    framework = provider.node.find_child("Provider").node.find_child("framework-onEvent")
    stack = Stack.of(provider)
    reasons = {
        **_lambda_policies("AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole"),
        **_asset_access(stack),
        "AwsSolutions-L1": _RUNTIME,
        RESOURCE.format(f"<{_logical_id(stack, _resource(handler))}.Arn>:*"): (
            "CDK's provider calls any version of its handler"
        ),
    }
    if role is None:
        has_ecr = cast("CfnCondition", handler.node.find_child("HasEcrPublic"))
        images = "CDK lets its handler read registries, for charts that are OCI artifacts, whatever kind a chart is of"
        reasons[MANAGED_POLICY.format("AmazonEC2ContainerRegistryReadOnly")] = images
        public = _conditional_policy(_logical_id(stack, has_ecr), "AmazonElasticContainerRegistryPublicReadOnly")
        reasons[public] = images
    else:
        acknowledge(role, _asset_access(stack))
    acknowledge(provider, reasons)
    for function in (handler, framework):
        ignore_in_template(_resource(function), {"W3005": _REDUNDANT})


def acknowledge_bucket_deployment(deployment: s3_deployment.BucketDeployment, *, bucket: s3.IBucket) -> None:
    """Answer for the function with which CDK uploads files; it is one per stack."""
    function = deployment.handler_role.node.scope
    if function is None:
        return
    stack = Stack.of(deployment)
    upload = "CDK's function writes the files of this deployment, whose names it learns when it runs"
    key = "CDK grants the whole of encryption in kinds of actions, on this one key"
    with_key = {ACTION.format(action): key for action in ("kms:GenerateDataKey*", "kms:ReEncrypt*")}
    acknowledge(
        function,
        {
            **_lambda_policies("AWSLambdaBasicExecutionRole"),
            **_asset_access(stack),
            ACTION.format("s3:Abort*"): upload,
            ACTION.format("s3:DeleteObject*"): upload,
            **all_objects(bucket, reason=upload),
            **(with_key if bucket.encryption_key else {}),
            "AwsSolutions-L1": _RUNTIME,
        },
    )
    ignore_in_template(_resource(function), {"W3005": _REDUNDANT})


def acknowledge_quota_gate(role: IConstruct) -> None:
    """Answer for the role with which the quota gate reads quotas, and what uses them up, all over the account."""
    clusters = "arn:<AWS::Partition>:sagemaker:<AWS::Region>:<AWS::AccountId>:cluster/*"
    acknowledge(
        role,
        {
            RESOURCE.format("*"): "reading quotas and listing what uses them up know no resource-level rights",
            RESOURCE.format(
                clusters
            ): "every cluster of the account uses up the quotas; which there are, only AWS knows",
        },
    )


def all_objects(bucket: s3.IBucket, *, reason: str) -> dict[str, str]:
    """Give the finding that speaks of every object of a bucket; one that is not made here is known by its ARN."""
    if bucket.node.default_child is None:
        name = bucket.bucket_name
        return {} if Token.is_unresolved(name) else {RESOURCE.format(f"arn:<AWS::Partition>:s3:::{name}/*"): reason}
    return {RESOURCE.format(f"<{_logical_id(Stack.of(bucket), _resource(bucket))}.Arn>/*"): reason}


def ignore_in_template(resource: CfnResource, rules: Mapping[str, str]) -> None:
    """Tell cfn-lint, in the template, and our own checks which rules do not apply to a resource."""
    resource.add_metadata("cfn-lint", {"config": {"ignore_checks": list(rules)}})
    acknowledge(resource, {f"hyperpod-cdk::{rule}": reason for rule, reason in rules.items()})


def _resource(construct: IConstruct) -> CfnResource:
    return cast("CfnResource", construct.node.default_child)


def _logical_id(stack: Stack, element: CfnElement) -> str:
    return str(stack.resolve(element.logical_id))


def _lambda_policies(*names: str) -> dict[str, str]:
    return {MANAGED_POLICY.format(f"service-role/{name}"): _LAMBDA_POLICIES for name in names}


def _asset_access(stack: Stack) -> dict[str, str]:
    account, region = stack.resolve(stack.account), stack.resolve(stack.region)
    actions = ("s3:GetBucket*", "s3:GetObject*", "s3:List*")
    bucket = f"arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-{_spelt(account)}-{_spelt(region)}/*"
    return {**{ACTION.format(action): _ASSETS for action in actions}, RESOURCE.format(bucket): _ASSETS}


def _spelt(value: object) -> str:
    return f"<{cast('dict[str, str]', value)['Ref']}>" if isinstance(value, dict) else str(value)


def _conditional_policy(condition: str, policy: str) -> str:
    arn = f'{{"Fn::Join":["",["arn:",{{"Ref":"AWS::Partition"}},":iam::aws:policy/{policy}"]]}}'
    return f'AwsSolutions-IAM4[Policy::{{"Fn::If":["{condition}",{arn},{{"Ref":"AWS::NoValue"}}]}}]'
