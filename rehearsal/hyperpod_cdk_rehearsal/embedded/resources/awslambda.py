"""AWS::Lambda: functions, layer versions, permissions, versions, aliases and their invoke configuration."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded import lambda_runner
from hyperpod_cdk_rehearsal.embedded.lambda_runner.runner import CHILD
from hyperpod_cdk_rehearsal.embedded.resources._calls import (
    as_list,
    call,
    changed,
    error_code,
    ignoring,
    refusal,
    retag,
    tag_map,
    take,
)
from hyperpod_cdk_rehearsal.embedded.resources._waiting import wait_until_gone
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handles,
)
from hyperpod_cdk_rehearsal.embedded.services.lambda_roles import INTERFACE_DESCRIPTION

GONE = "ResourceNotFoundException"
LAMBDA_PRINCIPAL = "lambda.amazonaws.com"
CONFIGURATION = (
    "DeadLetterConfig",
    "Description",
    "Environment",
    "EphemeralStorage",
    "FileSystemConfigs",
    "Handler",
    "ImageConfig",
    "Layers",
    "LoggingConfig",
    "MemorySize",
    "Role",
    "Runtime",
    "SnapStart",
    "Timeout",
    "TracingConfig",
)
_RESPONSE_MODULES = {
    "python": (re.compile(r"^\s*import cfnresponse\b", re.MULTILINE), "cfnresponse.py", "cfnresponse.py"),
    "nodejs": (
        re.compile(r"require\(\s*['\"]cfn-response['\"]\s*\)"),
        "node_modules/cfn-response/index.js",
        "cfn_response.cjs",
    ),
}
"""The statement with which inline code gets CloudFormation's module for answers, the module's path in the function, and
its file here; code in S3 does not get it (CloudFormation user guide, "cfn-response module")."""
REMOVED_CONFIGURATION: dict[str, Any] = {
    # what a property that left the template goes back to
    "Description": "",
    "Environment": {"Variables": {}},
    "Layers": [],
    "MemorySize": 128,
    "Timeout": 3,
    "TracingConfig": {"Mode": "PassThrough"},
}
FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def _client(request: ResourceRequest) -> Any:
    return request.context.client("lambda")


@handles("AWS::Lambda::Function")
class Function(ResourceHandler):
    """A function. `Ref` is its name."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, properties = _client(request), request.properties
        name = properties.get("FunctionName") or request.generated_name(max_length=64)
        self._require_role(request)
        call(
            client,
            "create_function",
            take(properties, "Architectures", "PackageType", "CodeSigningConfigArn", KMSKeyArn="KmsKeyArn")
            | take(properties, *CONFIGURATION)
            | {
                "FunctionName": name,
                "Code": self._code(request),
                "VpcConfig": _vpc_config(properties),
                "Tags": tag_map(properties.get("Tags")) or None,
            },
        )
        self._set_what_moto_lacks(request, name)
        return self._result(request, name)

    def update(self, request: ResourceRequest) -> ResourceResult:
        client, name = _client(request), request.existing_id
        if changed(request, "Code", "Architectures"):
            architectures = take(request.properties, "Architectures")
            call(
                client,
                "update_function_code",
                {"FunctionName": name} | self._code(request) | architectures,
            )
        if changed(request, "Role"):
            self._require_role(request)
        settings = {
            key: request.properties.get(key, REMOVED_CONFIGURATION.get(key))
            for key in CONFIGURATION
            if changed(request, key)
        }
        if changed(request, "VpcConfig"):
            settings["VpcConfig"] = _vpc_config(request.properties) or {"SubnetIds": [], "SecurityGroupIds": []}
        if settings:
            call(client, "update_function_configuration", {"FunctionName": name} | settings)
        self._set_what_moto_lacks(request, name)
        result = self._result(request, name)
        arn = result.attributes["Arn"]
        retag(
            request,
            add=lambda tags: client.tag_resource(Resource=arn, Tags=tags),
            remove=lambda keys: client.untag_resource(Resource=arn, TagKeys=keys),
        )
        return result

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            _client(request).delete_function(FunctionName=request.existing_id)
        subnets = (_vpc_config(request.properties) or {}).get("SubnetIds")
        if subnets:
            # CloudFormation itself waits (aws-cloudformation/cloudformation-coverage-roadmap issue 392)
            wait_until_gone(request.context, lambda: _interfaces(request, subnets))
        lambda_runner.set_log_group(request.context, request.existing_id, None)

    @staticmethod
    def _require_role(request: ResourceRequest) -> None:
        """Lambda refuses a role that is not there or does not trust it; moto takes any ARN of the right form."""
        arn = str(request.properties["Role"])
        untrusted = refusal(
            "InvalidParameterValueException",
            "The role defined for the function cannot be assumed by Lambda.",
            "CreateFunction",
        )
        try:
            role = request.context.client("iam").get_role(RoleName=arn.rpartition("/")[2])["Role"]
        except ClientError as error:
            raise untrusted from error
        if LAMBDA_PRINCIPAL not in json.dumps(role["AssumeRolePolicyDocument"]):
            raise untrusted

    @staticmethod
    def _code(request: ResourceRequest) -> dict[str, Any]:
        """The API's code members; inline text becomes the zip that CloudFormation makes of it."""
        code = request.properties["Code"]
        if code.get("ZipFile") is None:
            Function._require_object(request, code)
            return take(code, "S3Bucket", "S3Key", "S3ObjectVersion", "ImageUri")
        runtime = str(request.properties.get("Runtime", ""))
        if not runtime.startswith(("nodejs", "python")):
            raise refusal(
                "InvalidParameterValueException",
                "ZipFile can only be used when Runtime is set to either of nodejs, python.",
                "CreateFunction",
            )
        is_python = runtime.startswith("python")
        files = {"index.py" if is_python else "index.js": code["ZipFile"]}
        pattern, name, source = _RESPONSE_MODULES["python" if is_python else "nodejs"]
        if pattern.search(code["ZipFile"]):
            files[name] = (CHILD / source).read_text()
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
            for path, text in files.items():
                file = zipfile.ZipInfo(path, FIXED_DATE)
                file.external_attr = 0o644 << 16
                opened.writestr(file, text)
        return {"ZipFile": archive.getvalue()}

    @staticmethod
    def _require_object(request: ResourceRequest, code: dict[str, Any]) -> None:
        if code.get("S3Bucket"):
            try:
                request.context.client("s3").head_object(
                    **take(code, Bucket="S3Bucket", Key="S3Key", VersionId="S3ObjectVersion")
                )
            except ClientError as error:
                raise _unreadable(request, code, error) from error

    @staticmethod
    def _set_what_moto_lacks(request: ResourceRequest, name: str) -> None:
        properties, client = request.properties, _client(request)
        log_group = (properties.get("LoggingConfig") or {}).get("LogGroup")
        lambda_runner.set_log_group(request.context, name, log_group)
        if changed(request, "ReservedConcurrentExecutions"):
            reserved = properties.get("ReservedConcurrentExecutions")
            if reserved is None:
                client.delete_function_concurrency(FunctionName=name)
            else:
                client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=int(reserved))

    @staticmethod
    def _result(request: ResourceRequest, name: str) -> ResourceResult:
        configuration = _client(request).get_function_configuration(FunctionName=name)
        snap_start = {"ApplyOn": "None", "OptimizationStatus": "Off"}
        return ResourceResult(
            name,
            {
                "Arn": configuration["FunctionArn"],
                "SnapStartResponse": snap_start,
                **{f"SnapStartResponse.{key}": value for key, value in snap_start.items()},
            },
        )


def _interfaces(request: ResourceRequest, subnet_ids: list[str]) -> list[str]:
    """The function's interfaces that are still there."""
    described = request.context.client("ec2").describe_network_interfaces(
        Filters=[{"Name": "subnet-id", "Values": subnet_ids}]
    )
    name = INTERFACE_DESCRIPTION.format(request.existing_id)
    return [row["NetworkInterfaceId"] for row in described["NetworkInterfaces"] if row["Description"] == name]


def _vpc_config(properties: dict[str, Any]) -> dict[str, Any] | None:
    value = properties.get("VpcConfig")
    if not value:
        return None
    return {
        "SubnetIds": as_list(value.get("SubnetIds")),
        "SecurityGroupIds": as_list(value.get("SecurityGroupIds")),
    }


def _unreadable(request: ResourceRequest, code: dict[str, Any], error: ClientError) -> ClientError:
    """Lambda's words for code that it cannot get."""
    try:
        request.context.client("s3").head_bucket(Bucket=code["S3Bucket"])
    except ClientError:
        s3_code, s3_message = "NoSuchBucket", "The specified bucket does not exist"
    else:
        s3_code, s3_message = "NoSuchKey", "The specified key does not exist."
    if error_code(error) not in {"404", "NoSuchBucket", "NoSuchKey"}:
        s3_code, s3_message = error_code(error), str(error)
    return refusal(
        "InvalidParameterValueException",
        f"Error occurred while GetObject. S3 Error Code: {s3_code}. S3 Error Message: {s3_message}",
        "CreateFunction",
    )


@handles("AWS::Lambda::LayerVersion")
class LayerVersion(ResourceHandler):
    """A layer version. `Ref` is its ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        properties = request.properties
        Function._require_object(request, properties["Content"])  # noqa: SLF001 - one rule for functions and layers
        # without stack and random part, as in arn:aws:lambda:us-east-1:123456789012:layer:AwsCliLayerF44AAF94:34
        name = properties.get("LayerName") or request.logical_id
        arn = call(
            _client(request),
            "publish_layer_version",
            take(properties, "CompatibleArchitectures", "CompatibleRuntimes", "Content", "Description", "LicenseInfo")
            | {"LayerName": name},
        )["LayerVersionArn"]
        return ResourceResult(arn, {"LayerVersionArn": arn})

    def delete(self, request: ResourceRequest) -> None:
        layer, _, version = request.existing_id.rpartition(":")
        with ignoring(GONE):
            _client(request).delete_layer_version(LayerName=layer.rpartition(":")[2], VersionNumber=int(version))


@handles("AWS::Lambda::Permission")
class Permission(ResourceHandler):
    """A statement of a function's policy. `Ref` is the statement's id."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        statement = request.generated_name(max_length=100)
        call(
            _client(request),
            "add_permission",
            take(
                request.properties,
                "FunctionName",
                "Action",
                "Principal",
                "SourceArn",
                "SourceAccount",
                "EventSourceToken",
                "PrincipalOrgID",
                "FunctionUrlAuthType",
            )
            | {"StatementId": statement},
        )
        return ResourceResult(statement, {"Id": statement})

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            _client(request).remove_permission(
                FunctionName=request.properties["FunctionName"], StatementId=request.existing_id
            )


@handles("AWS::Lambda::Version")
class Version(ResourceHandler):
    """A published version. `Ref` is its ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        client, name = _client(request), request.properties["FunctionName"]
        before = {row["Version"] for row in client.list_versions_by_function(FunctionName=name)["Versions"]}
        published = call(
            client, "publish_version", take(request.properties, "FunctionName", "Description", "CodeSha256")
        )
        if published["Version"] in before:
            raise HandlerError(
                "AlreadyExists",
                f"A version for this Lambda function exists ( {published['Version']} ). "
                "Modify the function to create a new version.",
            )
        arn = published["FunctionArn"]
        return ResourceResult(arn, {"Version": published["Version"], "FunctionArn": arn})

    def update(self, request: ResourceRequest) -> ResourceResult:
        arn = request.existing_id
        return ResourceResult(arn, {"Version": arn.rpartition(":")[2], "FunctionArn": arn})

    def delete(self, request: ResourceRequest) -> None:
        function, _, version = request.existing_id.rpartition(":")
        with ignoring(GONE):
            _client(request).delete_function(FunctionName=function.rpartition(":")[2], Qualifier=version)


@handles("AWS::Lambda::Alias")
class Alias(ResourceHandler):
    """An alias of a version. `Ref` is its ARN."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request, "create_alias")

    def update(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request, "update_alias")

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            call(_client(request), "delete_alias", take(request.properties, "FunctionName", "Name"))

    @staticmethod
    def _put(request: ResourceRequest, method: str) -> ResourceResult:
        weights = as_list((request.properties.get("RoutingConfig") or {}).get("AdditionalVersionWeights"))
        routing = {row["FunctionVersion"]: row["FunctionWeight"] for row in weights}
        arn = call(
            _client(request),
            method,
            take(request.properties, "FunctionName", "Name", "FunctionVersion", "Description")
            | {"RoutingConfig": {"AdditionalVersionWeights": routing} if routing else None},
        )["AliasArn"]
        return ResourceResult(arn, {"AliasArn": arn})


@handles("AWS::Lambda::EventInvokeConfig")
class EventInvokeConfig(ResourceHandler):
    """How a function is invoked asynchronously. `Ref` is `<function>|<qualifier>`."""

    def create(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request)

    def update(self, request: ResourceRequest) -> ResourceResult:
        return self._put(request)

    def delete(self, request: ResourceRequest) -> None:
        with ignoring(GONE):
            call(
                _client(request),
                "delete_function_event_invoke_config",
                take(request.properties, "FunctionName", "Qualifier"),
            )

    @staticmethod
    def _put(request: ResourceRequest) -> ResourceResult:
        properties = request.properties
        call(
            _client(request),
            "put_function_event_invoke_config",
            take(
                properties,
                "FunctionName",
                "Qualifier",
                "MaximumEventAgeInSeconds",
                "MaximumRetryAttempts",
                "DestinationConfig",
            ),
        )
        return ResourceResult(f"{properties['FunctionName']}|{properties['Qualifier']}")
