"""Findings of cdk-nag, checkov and the template checks that constructs answer for, each with its reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from aws_cdk import Acknowledgment, CfnCondition, CfnElement, CfnResource, Stack, Token, Validations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as s3_deployment
from constructs import IConstruct

from hyperpod_cdk.config.arguments import is_token

MANAGED_POLICY = "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{}]"
ACTION = "AwsSolutions-IAM5[Action::{}]"
RESOURCE = "AwsSolutions-IAM5[Resource::{}]"

_LAMBDA_POLICIES = "AWS's own minimal policy for functions; CDK attaches it to the functions it ships"
_ASSETS = "CDK grants its function read access to the bootstrap bucket, which contains the assets of every stack"
_RUNTIME = "CDK chooses and tests the runtime of the functions it ships"
_REDUNDANT = "CDK writes the dependency beside the reference that implies it"

_LOG_KEY = "CKV_AWS_158"
_DEPLOYMENT_FUNCTION = {
    "CKV_AWS_115": "It runs only while a stack is deployed; a reserved share would be taken from the account's others",
    "CKV_AWS_116": "The deployment waits for the answer and fails without it: a call that is lost does not go unseen",
}
_NO_VPC = {"CKV_AWS_117": "It calls only AWS's APIs, nothing inside a VPC, and may run before there is one"}
_CDK_VARIABLES = {
    "CKV_AWS_173": "The variables are CDK's own: a setting, a path, an ARN, no secret",
    "CKV_AWS_45": "The variables are CDK's own; checkov also reads the template's file name, which can look like a key",
}


def acknowledge(scope: IConstruct, reasons: Mapping[str, str]) -> None:
    """Record why each of these findings is accepted, for everything below ``scope``.

    A name in a finding may be a token, such as the name of a nested stack.
    """
    spelt = {_as_nag_spells(scope, rule): reason for rule, reason in reasons.items()}
    Validations.of(scope).acknowledge(*(Acknowledgment(id=rule, reason=reason) for rule, reason in spelt.items()))


def acknowledge_kubectl_provider(provider: IConstruct, *, role: IConstruct | None = None) -> None:
    """Answer for the functions with which CDK talks to a cluster; ``role`` is the handler's where CDK made none."""
    node = provider.node
    handler = node.find_child("Handler")
    framework = node.find_child("Provider").node.find_child("framework-onEvent")
    handler_resource = _resource(handler)
    stack = Stack.of(provider)
    reasons = {
        **_lambda_policies("AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole"),
        **_asset_access(stack),
        "AwsSolutions-L1": _RUNTIME,
        RESOURCE.format(f"<{_logical_id(stack, handler_resource)}.Arn>:*"): (
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
    for function, resource in ((handler, handler_resource), (framework, _resource(framework))):
        ignore_in_template(resource, {"W3005": _REDUNDANT})
        ignore_in_checkov(resource, {**_DEPLOYMENT_FUNCTION, **_CDK_VARIABLES})
        for each in function.node.find_all():
            if isinstance(each, logs.CfnLogGroup):
                acknowledge_log_group(each)


def acknowledge_bucket_deployment(deployment: s3_deployment.BucketDeployment, *, bucket: s3.IBucket) -> None:
    """Answer for the function with which CDK uploads files; it is one per stack."""
    function = deployment.handler_role.node.scope
    if function is None:
        return
    stack = Stack.of(deployment)
    upload = "CDK's function writes the files of this deployment, whose names it knows only when it runs"
    key = "CDK grants encryption with wildcards in the actions, on this one key"
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
    resource = _resource(function)
    ignore_in_template(resource, {"W3005": _REDUNDANT})
    ignore_in_checkov(resource, {**_DEPLOYMENT_FUNCTION, **_NO_VPC, **_CDK_VARIABLES})


def acknowledge_handler_function(function: lambda_.CfnFunction) -> None:
    """Answer for a function of ours, just made, that serves a custom resource."""
    ignore_in_checkov(function, {**_DEPLOYMENT_FUNCTION, **_NO_VPC}, is_new=True)


def acknowledge_log_group(group: logs.CfnLogGroup | logs.LogGroup, *, is_new: bool = False) -> None:
    """Answer for a log group without a KMS key; ``keys.encrypt_log_groups`` takes the answer back.

    ``is_new``: as for ``ignore_in_checkov``.
    """
    resource = group if isinstance(group, logs.CfnLogGroup) else cast("logs.CfnLogGroup", _resource(group))
    own = "CloudWatch Logs encrypts what it keeps with a key of its own; encryption.logs is for another"
    ignore_in_checkov(resource, {_LOG_KEY: own}, is_new=is_new)


def withdraw_log_group(group: logs.CfnLogGroup) -> None:
    """Take back what ``acknowledge_log_group`` said of a group that has a key by now."""
    options = group.cfn_options
    metadata = dict(options.metadata or {})
    skipped: Mapping[str, list[dict[str, str]]] = metadata.pop("checkov", {})
    others = [each for each in skipped.get("skip", []) if each["id"] != _LOG_KEY]
    options.metadata = {**metadata, "checkov": {"skip": others}} if others else metadata


def acknowledge_quota_gate(role: IConstruct, *, log_group: logs.CfnLogGroup) -> None:
    """Answer for the role with which the quota gate reads quotas, and what uses them up, all over the account."""
    group = f"<AWS::StackName>-{_logical_id(Stack.of(log_group), log_group)}"
    clusters = "arn:<AWS::Partition>:sagemaker:<AWS::Region>:<AWS::AccountId>:cluster/*"
    acknowledge(
        role,
        {
            RESOURCE.format("*"): (
                "the actions that read quotas and list their usage support no resource-level permissions"
            ),
            RESOURCE.format(
                clusters
            ): "every cluster of the account uses the quotas; only AWS knows which clusters exist",
            RESOURCE.format(f"arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:{group}-*"): (
                "its own log group, whose name ends with a random part from CloudFormation: the role is "
                "created in parallel with it, not after it"
            ),
        },
    )


def all_objects(bucket: s3.IBucket, *, reason: str, of: IConstruct | None = None) -> dict[str, str]:
    """Return the finding that speaks of every object of a bucket; one that is not made here is known by its ARN.

    The finding is about ``of``: in another stack than the bucket's it names the export. Default: in the same stack.
    """
    if bucket.node.default_child is None:
        name = bucket.bucket_name
        return {} if Token.is_unresolved(name) else {RESOURCE.format(f"arn:<AWS::Partition>:s3:::{name}/*"): reason}
    stack = Stack.of(bucket)
    if of is not None and Stack.of(of).node.path != stack.node.path:
        imported = stack.resolve(stack.export_value(bucket.bucket_arn))["Fn::ImportValue"]
        return {RESOURCE.format(f"{imported}/*"): reason}
    return {RESOURCE.format(f"<{_logical_id(stack, _resource(bucket))}.Arn>/*"): reason}


def ignore_in_template(resource: CfnResource, rules: Mapping[str, str]) -> None:
    """Tell cfn-lint, in the template, and our own checks which rules do not apply to a resource."""
    resource.add_metadata("cfn-lint", {"config": {"ignore_checks": list(rules)}})
    acknowledge(resource, {f"hyperpod-cdk::{rule}": reason for rule, reason in rules.items()})


def ignore_in_checkov(resource: CfnResource, checks: Mapping[str, str], *, is_new: bool = False) -> None:
    """Tell checkov, in the template, which of its checks do not apply to a resource and why.

    Earlier answers stay. ``is_new``: whether the resource cannot have any, as the caller has just made it; saves the
    call into Node.js that reads them.
    """
    earlier = [] if is_new else _skipped(resource)
    reasons = {**{each["id"]: each["comment"] for each in earlier}, **checks}
    skip = [{"id": check, "comment": reason} for check, reason in sorted(reasons.items())]
    resource.add_metadata("checkov", {"skip": skip})


def _skipped(resource: CfnResource) -> list[dict[str, str]]:
    metadata = cast("Mapping[str, list[dict[str, str]]]", resource.get_metadata("checkov") or {})
    return metadata.get("skip", [])


def _resource(construct: IConstruct) -> CfnResource:
    return cast("CfnResource", construct.node.default_child)


def _logical_id(stack: Stack, element: CfnElement) -> str:
    return str(stack.resolve(element.logical_id))


def _lambda_policies(*names: str) -> dict[str, str]:
    return {MANAGED_POLICY.format(f"service-role/{name}"): _LAMBDA_POLICIES for name in names}


def _asset_access(stack: Stack) -> dict[str, str]:
    account, region = stack.resolve([stack.account, stack.region])
    actions = ("s3:GetBucket*", "s3:GetObject*", "s3:List*")
    bucket = f"arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-{_spelt(account)}-{_spelt(region)}/*"
    return {**{ACTION.format(action): _ASSETS for action in actions}, RESOURCE.format(bucket): _ASSETS}


def _as_nag_spells(scope: IConstruct, rule: str) -> str:
    """Return a finding as cdk-nag writes it: CDK accepts no key of metadata that only the deployment knows."""
    return _spelt(Stack.of(scope).resolve(rule)) if is_token(rule) else rule


def _spelt(value: object) -> str:
    """Return a value as cdk-nag writes it in a finding: ``<Name>`` for a reference, ``<Name.Attribute>`` (3.0)."""
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return f"<{name}>"
        case {"Fn::GetAtt": [*names]}:
            return f"<{'.'.join(map(_spelt, names))}>"
        case {"Fn::Join": [str(delimiter), [*parts]]}:
            return delimiter.join(map(_spelt, parts))
        case {"Fn::ImportValue": name}:
            return _spelt(name)
        case _:
            return json.dumps(value, separators=(",", ":"))


def _conditional_policy(condition: str, policy: str) -> str:
    arn = f'{{"Fn::Join":["",["arn:",{{"Ref":"AWS::Partition"}},":iam::aws:policy/{policy}"]]}}'
    return f'AwsSolutions-IAM4[Policy::{{"Fn::If":["{condition}",{arn},{{"Ref":"AWS::NoValue"}}]}}]'
