"""The embedded AWS as a process: boto3 and the real CDK CLI against it, and its front end's checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from werkzeug.datastructures import Headers, MultiDict

from hyperpod_cdk.packaged_node import packaged_node
from hyperpod_cdk_rehearsal.embedded.operations import ServiceError
from hyperpod_cdk_rehearsal.embedded.protocol import WireRequest, operation_of, parse, serialise, serialise_error
from hyperpod_cdk_rehearsal.embedded.server import credential_scope, partition_of
from hyperpod_cdk_rehearsal.process import Address
from rehearsal.tests.support.tables import row_by_row

ACCOUNT, REGION = "111122223333", "us-west-2"


class Server:
    """The child process and clients of it."""

    def __init__(self, log: Path, *options: str) -> None:
        self.log = log
        command = [sys.executable, "-m", "hyperpod_cdk_rehearsal", "serve", "--account", ACCOUNT, "--region", REGION]
        self.process = subprocess.Popen(
            [*command, "--log-file", str(log), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()
        self.address = Address(**json.loads(self.first_line))
        self.endpoint = self.address.endpoint

    def client(self, service: str, **session: Any) -> Any:
        """A boto3 client that never repeats a request: botocore's own repetitions would hide a failure."""
        keys = {
            "aws_access_key_id": self.address.access_key_id,
            "aws_secret_access_key": self.address.secret_access_key,
            "region_name": REGION,
            **session,
        }
        config = Config(retries={"total_max_attempts": 1})
        # the stubs have an overload per service and none for a variable
        make: Any = boto3.session.Session(**keys).client
        return make(service, endpoint_url=self.endpoint, config=config)

    def stop(self) -> int:
        """Close standard input; returns the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(10)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("embedded") / "log")
    yield running
    if running.process.poll() is None:
        running.stop()


def code_of(error: ClientError) -> str:
    """The error code of a refused request."""
    # the stubs declare every key as one that may be missing
    response: Any = error.response
    return str(response["Error"]["Code"])


class TestProcess:
    def test_ends_with_its_parent_and_prints_one_line(self, tmp_path: Path) -> None:
        running = Server(tmp_path / "log")
        assert running.endpoint.startswith("http://127.0.0.1:")
        assert running.stop() == 0
        assert running.process.stdout is not None
        assert running.process.stdout.read() == ""

    def test_identity(self, server: Server) -> None:
        identity = server.client("sts").get_caller_identity()
        assert identity["Account"] == ACCOUNT

    def test_a_role_of_the_account_can_be_assumed(self, server: Server) -> None:
        role = f"arn:aws:iam::{ACCOUNT}:role/cdk-hnb659fds-deploy-role-{ACCOUNT}-{REGION}"
        given = server.client("sts").assume_role(RoleArn=role, RoleSessionName="cdk")["Credentials"]
        assumed = server.client(
            "sts",
            aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given["SessionToken"],
        ).get_caller_identity()
        assert (assumed["Account"], assumed["Arn"].split("/")[0]) == (ACCOUNT, f"arn:aws:sts::{ACCOUNT}:assumed-role")

    def test_a_policy_that_denies_unless_tls_does_not_deny_loopback(self, server: Server) -> None:
        s3 = server.client("s3")
        s3.create_bucket(Bucket="tls-only", CreateBucketConfiguration={"LocationConstraint": REGION})
        deny = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": "arn:aws:s3:::tls-only/*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
        s3.put_bucket_policy(Bucket="tls-only", Policy=json.dumps({"Version": "2012-10-17", "Statement": [deny]}))
        s3.put_object(Bucket="tls-only", Key="a b/ü.txt", Body=b"x")
        s3.put_object(Bucket="tls-only", Key="a b/ü.txt", Body=b"hello")
        assert s3.get_object(Bucket="tls-only", Key="a b/ü.txt")["Body"].read() == b"hello"

    def test_unimplemented_operations_are_refused_at_once(self, server: Server) -> None:
        start = time.monotonic()
        with pytest.raises(ClientError) as caught:
            server.client("cloudtrail").lookup_events()
        assert code_of(caught.value) == "UnsupportedOperationException"
        with pytest.raises(ClientError) as caught:
            server.client("ec2").describe_mac_hosts()
        assert code_of(caught.value) == "NotImplemented"
        with pytest.raises(ClientError) as caught:
            server.client("pricing").get_products(ServiceCode="AmazonSageMaker")
        assert caught.value.response.get("Error") == {
            "Code": "NotImplemented",
            "Message": f"the embedded AWS has no pricing operation for this: pricing.{REGION}.amazonaws.com",
        }
        # an SDK repeats what it takes for a fault for a minute
        assert time.monotonic() - start < 40

    def test_two_regions_do_not_share_stacks(self, server: Server) -> None:
        body = json.dumps({"Resources": {"A": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}})
        server.client("cloudformation", region_name="eu-west-1").create_stack(StackName="there", TemplateBody=body)
        with pytest.raises(ClientError, match="Stack with id there does not exist"):
            server.client("cloudformation").describe_stacks(StackName="there")


class TestStacksOverTheWire:
    TEMPLATE: dict[str, Any] = {  # noqa: RUF012 - never changed
        "Parameters": {"Value": {"Type": "String", "Default": "one"}},
        "Resources": {
            "Bucket": {"Type": "AWS::S3::Bucket"},
            "Parameter": {
                "Type": "AWS::SSM::Parameter",
                "Properties": {"Type": "String", "Name": "/wire/value", "Value": {"Ref": "Value"}},
            },
        },
        "Outputs": {"Bucket": {"Value": {"Ref": "Bucket"}, "Export": {"Name": "wire-bucket"}}},
    }

    def test_life_of_a_stack(self, server: Server) -> None:
        cloudformation, ssm = server.client("cloudformation"), server.client("ssm")
        body = json.dumps(self.TEMPLATE)
        cloudformation.create_stack(StackName="wire", TemplateBody=body, Tags=[{"Key": "team", "Value": "ml"}])
        stack = cloudformation.describe_stacks(StackName="wire")["Stacks"][0]
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        bucket = stack["Outputs"][0]["OutputValue"]
        assert server.client("s3").get_bucket_tagging(Bucket=bucket)["TagSet"] == [{"Key": "team", "Value": "ml"}]

        change_set = cloudformation.create_change_set(
            StackName="wire",
            ChangeSetName="second",
            UsePreviousTemplate=True,
            Parameters=[{"ParameterKey": "Value", "ParameterValue": "two"}],
        )
        described = cloudformation.describe_change_set(ChangeSetName=change_set["Id"], IncludePropertyValues=True)
        target = described["Changes"][0]["ResourceChange"]["Details"][0]["Target"]
        assert (target["BeforeValue"], target["AfterValue"]) == ("one", "two")
        cloudformation.execute_change_set(ChangeSetName=change_set["Id"])
        assert cloudformation.describe_stacks(StackName="wire")["Stacks"][0]["StackStatus"] == "UPDATE_COMPLETE"
        assert ssm.get_parameter(Name="/wire/value")["Parameter"]["Value"] == "two"

        cloudformation.delete_stack(StackName="wire")
        gone = cloudformation.describe_stacks(StackName=stack["StackId"])["Stacks"][0]
        assert gone["StackStatus"] == "DELETE_COMPLETE"
        with pytest.raises(ClientError) as caught:
            server.client("s3").head_bucket(Bucket=bucket)
        assert code_of(caught.value) == "404"

    def test_a_template_from_s3(self, server: Server) -> None:
        s3 = server.client("s3")
        s3.create_bucket(Bucket="templates", CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket="templates", Key="a b.json", Body=json.dumps(self.TEMPLATE).encode())
        for host in (f"{server.endpoint}/templates", f"https://templates.s3.{REGION}.amazonaws.com"):
            validated = server.client("cloudformation").validate_template(TemplateURL=f"{host}/a%20b.json")
            assert validated["Parameters"][0]["ParameterKey"] == "Value"
        with pytest.raises(ClientError, match="S3 error: "):
            server.client("cloudformation").validate_template(TemplateURL=f"{server.endpoint}/templates/nothing")

    def test_errors_have_the_codes_that_sdks_know(self, server: Server) -> None:
        cloudformation = server.client("cloudformation")
        body = json.dumps({"Resources": {"A": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}})
        cloudformation.create_stack(StackName="twice", TemplateBody=body)
        with pytest.raises(cloudformation.exceptions.AlreadyExistsException):
            cloudformation.create_stack(StackName="twice", TemplateBody=body)
        with pytest.raises(cloudformation.exceptions.ChangeSetNotFoundException):
            cloudformation.describe_change_set(StackName="twice", ChangeSetName="none")
        with pytest.raises(ClientError, match="Member must satisfy enum value set"):
            cloudformation.create_change_set(
                StackName="twice", ChangeSetName="a", ChangeSetType="MAYBE", TemplateBody="x"
            )


def request(method: str = "POST", path: str = "/", **parts: Any) -> WireRequest:
    return WireRequest(
        method,
        path,
        MultiDict(parts.get("values", {})),
        Headers(parts.get("headers", {})),
        json.dumps(parts["body"]).encode() if "body" in parts else b"",
    )


class TestProtocol:
    @row_by_row(
        "service, wire, expected",
        [
            ("cloudformation", request(values={"Action": "DescribeStacks"}), ("DescribeStacks", {})),
            ("cloudformation", request(values={"Action": "Nope"}), None),
            ("sagemaker", request(headers={"X-Amz-Target": "SageMaker.CreateCluster"}), ("CreateCluster", {})),
            ("sagemaker", request(headers={"X-Amz-Target": "Other.CreateCluster"}), None),
            ("cloudtrail", request(headers={"X-Amz-Target": "CloudTrail_20131101.LookupEvents"}), ("LookupEvents", {})),
            ("eks", request(path="/clusters"), ("CreateCluster", {})),
            ("eks", request("GET", "/clusters/a%2Fb"), ("DescribeCluster", {"name": "a/b"})),
            (
                "eks",
                request("GET", "/clusters/c/addons/vpc-cni"),
                ("DescribeAddon", {"name": "c", "addonName": "vpc-cni"}),
            ),
            ("eks", request("GET", "/clusters/c/addons/"), ("ListAddons", {"name": "c"})),
            ("eks", request("GET", "/nothing"), None),
            ("s3", request("GET", "/bucket", values={"policy": ""}), ("GetBucketPolicy", {"Bucket": "bucket"})),
            ("s3", request("GET", "/b/k/e/y"), ("GetObject", {"Bucket": "b", "Key": "k/e/y"})),
        ],
    )
    def test_operation(self, service: str, wire: WireRequest, expected: Any) -> None:
        assert operation_of(service, wire) == expected

    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            ({}, "Value at 'clusterName' failed to satisfy constraint: Member must not be null"),
            (
                {"ClusterName": "a_b"},
                (
                    "Value 'a_b' at 'clusterName' failed to satisfy constraint: Member must satisfy regular expression "
                    "pattern: [a-zA-Z0-9](-*[a-zA-Z0-9])*"
                ),
            ),
            (
                {"ClusterName": "a", "NodeRecovery": "Maybe"},
                (
                    "Value 'Maybe' at 'nodeRecovery' failed to satisfy constraint: Member must satisfy enum value set: "
                    "[Automatic, None]"
                ),
            ),
            (
                {"ClusterName": 5},
                "Value '5' at 'clusterName' failed to satisfy constraint: Member must be of type string",
            ),
            (
                {"ClusterName": "a", "InstanceGroups": []},
                (
                    "Value '[]' at 'instanceGroups' failed to satisfy constraint: "
                    "Member must have length greater than or equal to 1"
                ),
            ),
            (
                {
                    "ClusterName": "a",
                    "TieredStorageConfig": {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 101},
                },
                (
                    "Value '101' at 'tieredStorageConfig.instanceMemoryAllocationPercentage' failed to satisfy "
                    "constraint: Member must have value less than or equal to 100"
                ),
            ),
            (
                {"ClusterName": "a", "Tags": [{"Key": "k"}]},
                "Value at 'tags.1.member.value' failed to satisfy constraint: Member must not be null",
            ),
        ],
    )
    def test_the_model_is_enforced(self, body: dict[str, Any], problem: str) -> None:
        with pytest.raises(ServiceError) as caught:
            parse("sagemaker", "CreateCluster", request(body=body), {})
        assert (caught.value.code, caught.value.message) == (
            "ValidationException",
            f"1 validation error detected: {problem}",
        )

    def test_several_problems_come_at_once(self) -> None:
        with pytest.raises(ServiceError, match=r"^2 validation errors detected: "):
            parse("sagemaker", "CreateCluster", request(body={"NodeRecovery": "Maybe"}), {})

    def test_a_body_that_is_no_json(self) -> None:
        broken = WireRequest("POST", "/", MultiDict(), Headers(), b"{")
        with pytest.raises(ServiceError) as caught:
            parse("sagemaker", "CreateCluster", broken, {})
        assert caught.value.code == "SerializationException"

    def test_rest_input_comes_from_path_query_and_body(self) -> None:
        wire = request(path="/clusters/c/addons", body={"addonName": "vpc-cni"})
        assert parse("eks", "CreateAddon", wire, {"name": "c"}) == {"clusterName": "c", "addonName": "vpc-cni"}
        wire = request("GET", "/clusters", values={"maxResults": "5"})
        assert parse("eks", "ListClusters", wire, {}) == {"maxResults": 5}

    def test_responses(self) -> None:
        response = serialise("eks", "ListClusters", {"clusters": ["a"]})
        assert (response.status, json.loads(response.body)) == (200, {"clusters": ["a"]})
        assert serialise("sagemaker", "DeleteCluster", {"ClusterArn": "x"}).headers["x-amzn-RequestId"]

    @pytest.mark.parametrize(
        ("service", "expected"),
        [
            ("eks", '"message": "a < b"'),
            ("sagemaker", '"__type": "Wrong"'),
            ("cloudformation", "<Code>Wrong</Code><Message>a &lt; b</Message>"),
            ("ec2", "<Response><Errors><Error><Code>Wrong</Code>"),
            ("s3", "<Error><Code>Wrong</Code>"),
        ],
    )
    def test_errors(self, service: str, expected: str) -> None:
        response = serialise_error(service, ServiceError("Wrong", "a < b", 409))
        assert response.status == 409
        assert expected in response.body.decode()

    @pytest.mark.parametrize(
        ("environ", "scope"),
        [
            (
                {"HTTP_AUTHORIZATION": "AWS4-HMAC-SHA256 Credential=AK/20260101/us-west-2/eks/aws4_request, S=a"},
                ("us-west-2", "eks"),
            ),
            ({"QUERY_STRING": "X-Amz-Credential=AK%2F20260101%2Feu-west-1%2Fsts%2Faws4_request"}, ("eu-west-1", "sts")),
            ({}, ("", "")),
        ],
    )
    def test_credential_scope(self, environ: dict[str, str], scope: tuple[str, str]) -> None:
        assert credential_scope(environ) == scope

    @pytest.mark.parametrize(
        ("region", "expected"),
        [
            ("us-west-2", ("aws", "amazonaws.com")),
            ("cn-north-1", ("aws-cn", "amazonaws.com.cn")),
            ("us-gov-west-1", ("aws-us-gov", "amazonaws.com")),
        ],
    )
    def test_partition(self, region: str, expected: tuple[str, str]) -> None:
        assert partition_of(region) == expected


@pytest.fixture
def synthesized(tmp_path: Path) -> Callable[..., Path]:
    """A cloud assembly of one small stack: a bucket, a role that may read it, and a parameter."""
    import aws_cdk as cdk  # noqa: PLC0415 - a second to import, for the slow test only
    from aws_cdk import aws_iam as iam  # noqa: PLC0415 - as above
    from aws_cdk import aws_s3 as s3  # noqa: PLC0415 - as above

    def synthesise(value: str, *, tier: str = "Standard") -> Path:
        app = cdk.App(outdir=str(tmp_path / f"{value}-{tier}"), builtin_cloud_formation_validation=False)
        stack = cdk.Stack(app, "Small", env=cdk.Environment(account=ACCOUNT, region=REGION), tags={"team": "ml"})
        bucket = s3.Bucket(stack, "Bucket", enforce_ssl=True, removal_policy=cdk.RemovalPolicy.DESTROY)
        trust = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        read = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": bucket.arn_for_objects("*")}
        iam.CfnRole(
            stack,
            "Role",
            assume_role_policy_document={"Version": "2012-10-17", "Statement": [trust]},
            policies=[{"policyName": "read", "policyDocument": {"Version": "2012-10-17", "Statement": [read]}}],
        )
        first = cdk.CfnResource(
            stack, "First", type="AWS::SSM::Parameter", properties={"Type": "String", "Name": "/small", "Value": value}
        )
        second = cdk.CfnResource(
            stack, "Second", type="AWS::SSM::Parameter", properties={"Type": "String", "Value": value, "Tier": tier}
        )
        second.add_resource_dependency(first)
        cdk.CfnOutput(stack, "Name", value=bucket.bucket_name)
        return Path(app.synth().directory)

    return synthesise


@pytest.mark.examples
@pytest.mark.slow
def test_the_real_cli(project: Path, tmp_path: Path, synthesized: Callable[..., Path]) -> None:
    cli = project / "node_modules" / "aws-cdk" / "bin" / "cdk"
    node = packaged_node()
    if node is None or not cli.exists():
        pytest.skip(f"Node.js or the CDK CLI is not installed: {cli}; run npm ci")
    server = Server(tmp_path / "log")
    environment = {
        **os.environ,
        **server.address.environment(REGION),
        "HOME": str(tmp_path),
        "CDK_HOME": str(tmp_path / "cdk"),
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
    }

    def cdk(*arguments: str, ok: bool = True) -> str:
        done = subprocess.run(
            [str(node), str(cli), *arguments, "--notices=false", "--ci"],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode == 0) is ok, done.stdout + done.stderr
        return done.stdout + done.stderr

    def deploy(value: str, *, ok: bool = True, **options: str) -> str:
        app = str(synthesized(value, **options))
        return cdk("deploy", "--app", app, "--require-approval", "never", ok=ok)

    ssm = server.client("ssm")
    assert "bootstrapped" in cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}")
    assert "CREATE_COMPLETE" in deploy("one")
    assert "└─ [+] two" in cdk("diff", "--app", str(synthesized("two")))
    refused = deploy("three", tier="Huge", ok=False)
    assert "#/Tier: Huge is not a valid enum value" in refused
    stacks = server.client("cloudformation").describe_stacks(StackName="Small")["Stacks"]
    assert stacks[0]["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert ssm.get_parameter(Name="/small")["Parameter"]["Value"] == "one"
    cdk("destroy", "--app", str(synthesized("one")), "--force")
    assert [stack["StackName"] for stack in server.client("cloudformation").describe_stacks()["Stacks"]] == [
        "CDKToolkit"
    ]
    with pytest.raises(ssm.exceptions.ParameterNotFound):
        ssm.get_parameter(Name="/small")
    assert server.stop() == 0
