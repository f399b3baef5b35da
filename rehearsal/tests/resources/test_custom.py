"""Custom resources: real code in a subprocess, CDK's providers, and every way in which a provider can fail."""

from __future__ import annotations

import importlib.util
import json
import re
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.resources.custom import executions
from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError

ANSWER = """
import json, urllib.request

def answer(event, **fields):
    body = {
        "Status": "SUCCESS",
        "PhysicalResourceId": event.get("PhysicalResourceId") or "made",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        **fields,
    }
    put(event, json.dumps(body).encode())

def put(event, body):
    request = urllib.request.Request(event["ResponseURL"], data=body, method="PUT", headers={"content-type": ""})
    urllib.request.urlopen(request).read()
"""

REASON = r"Received response status \[FAILED\] from custom resource\. Message returned: {} \(RequestId: [0-9a-f-]+\)"


@pytest.fixture
def provider(function: Callable[..., str]) -> Callable[..., str]:
    """Create a provider whose handler has this body; `answer(event, ...)` and `put(event, bytes)` are available."""

    def make(body: str, **options: Any) -> str:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        return function(f"{ANSWER}\ndef handler(event, context):\n{lines}\n", **options)

    return make


def refused(call: Callable[[], Any]) -> HandlerError:
    with pytest.raises(HandlerError) as caught:
        call()
    return caught.value


IN_PYTHON = """
import cfnresponse
def handler(event, context):
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {"Count": 3}, "made")
"""
IN_NODE = """
const response = require("cfn-response");
exports.handler = (event, context) => {
  response.send(event, context, response.SUCCESS, { Count: 3 }, "made");
};
"""


class TestOwnCode:
    def test_create_update_delete(self, stack: Any, provider: Callable[..., str]) -> None:
        token = provider(
            "print(json.dumps({k: v for k, v in event.items() if k != 'ResponseURL'}))\n"
            "answer(event, Data={'Type': event['RequestType'], 'Count': event['ResourceProperties'].get('Count')})"
        )
        properties = {"ServiceToken": token, "Count": 2, "Deep": {"Flag": True, "List": [1, None]}}
        made = stack.create("Custom::Quota", properties, "Quota")
        assert made.physical_id == "made"
        assert made.attributes == {"Type": "Create", "Count": "2"}
        assert stack.update("made", Count=3).attributes == {"Type": "Update", "Count": "3"}
        stack.delete("made")
        how = [(row.mode, row.request_type, row.logical_id) for row in executions(stack.context)]
        assert how == [("ran", "Create", "Quota"), ("ran", "Update", "Quota"), ("ran", "Delete", "Quota")]

        logs = stack.context.client("logs")
        lines = [row["message"] for row in logs.filter_log_events(logGroupName="/aws/lambda/provider")["events"]]
        events = [json.loads(line) for line in lines if line.startswith("{")]
        by_type = {event["RequestType"]: event for event in events}
        assert by_type["Create"]["ResourceProperties"]["Deep"] == {"Flag": "true", "List": ["1", "None"]}
        assert "PhysicalResourceId" not in by_type["Create"]
        assert by_type["Update"]["OldResourceProperties"]["Count"] == "2"
        assert by_type["Delete"]["PhysicalResourceId"] == "made"
        assert by_type["Create"]["ResourceType"] == "Custom::Quota"

    def test_an_update_may_answer_with_another_id(self, stack: Any, provider: Callable[..., str]) -> None:
        token = provider("answer(event, PhysicalResourceId=event['ResourceProperties']['Name'])")
        stack.create("Custom::Named", {"ServiceToken": token, "Name": "one"})
        assert stack.update("one", Name="two").physical_id == "two"

    def test_the_first_answer_counts(self, stack: Any, provider: Callable[..., str]) -> None:
        token = provider("answer(event, PhysicalResourceId='first')\nanswer(event, PhysicalResourceId='second')")
        assert stack.create("Custom::Twice", {"ServiceToken": token}).physical_id == "first"

    def test_an_answer_may_come_from_another_function(
        self, stack: Any, provider: Callable[..., str], function: Callable[..., str]
    ) -> None:
        late = provider("import time; time.sleep(0.5); answer(event, PhysicalResourceId='late')", name="late")
        token = function(
            "import boto3, json\n"
            "def handler(event, context):\n"
            f"    boto3.client('lambda').invoke(FunctionName={late!r}, InvocationType='Event', "
            "Payload=json.dumps(event))\n",
            name="starter",
        )
        assert stack.create("Custom::Late", {"ServiceToken": token}).physical_id == "late"

    @pytest.mark.parametrize(("runtime", "source"), [("python3.13", IN_PYTHON), ("nodejs22.x", IN_NODE)])
    def test_inline_code_has_the_module_for_answers(
        self, stack: Any, function: Callable[..., str], runtime: str, source: str
    ) -> None:
        token = function(source, name="inline", Runtime=runtime)
        made = stack.create("Custom::Answered", {"ServiceToken": token})
        assert (made.physical_id, made.attributes) == ("made", {"Count": 3})

    def test_the_module_for_answers_can_fail(self, stack: Any, function: Callable[..., str]) -> None:
        token = function(
            "import cfnresponse\n"
            "def handler(event, context):\n"
            "    cfnresponse.send(event, context, cfnresponse.FAILED, {}, 'half', reason='no capacity')\n",
            name="inline",
        )
        error = refused(lambda: stack.create("Custom::Failing", {"ServiceToken": token}))
        assert re.fullmatch(REASON.format("no capacity"), error.message)

    def test_other_imports_of_the_module_for_answers_find_none(self, stack: Any, function: Callable[..., str]) -> None:
        token = function("from cfnresponse import send\ndef handler(event, context):\n    pass\n", name="inline")
        said = refused(lambda: stack.create("Custom::Missing", {"ServiceToken": token})).message
        assert "No module named 'cfnresponse'" in said


class TestFailure:
    def test_failed_is_worded_as_cloudformation_does(self, stack: Any, provider: Callable[..., str]) -> None:
        token = provider("answer(event, Status='FAILED', Reason='no capacity', PhysicalResourceId='half')")
        error = refused(lambda: stack.create("Custom::Failing", {"ServiceToken": token}))
        assert re.fullmatch(REASON.format("no capacity"), error.message)
        assert error.physical_id == "half"
        assert executions(stack.context)[-1].reason == error.message

    @pytest.mark.parametrize(
        ("body", "text"),
        [
            ("put(event, b'x' * 4097)", "Response object is too long."),
            ("put(event, b'[')", "Invalid response: the response is not a JSON document."),
            ("put(event, b'{}')", "Invalid PhysicalResourceId"),
            ("answer(event, PhysicalResourceId='')", "Invalid PhysicalResourceId"),
            ("answer(event, Status='DONE')", "Invalid Status in the response: must be SUCCESS or FAILED"),
        ],
    )
    def test_a_malformed_answer(self, stack: Any, provider: Callable[..., str], body: str, text: str) -> None:
        token = provider(body)
        assert refused(lambda: stack.create("Custom::Malformed", {"ServiceToken": token})).message == text

    @pytest.mark.parametrize(
        ("source", "timeout", "said"),
        [
            (
                "def handler(event, context):\n    import time\n    time.sleep(30)\n",
                1,
                "Task timed out after 1.00 seconds",
            ),
            ("raise RuntimeError('no table')\n", 10, "Unable to import module 'index': no table"),
            ("import sys\nsys.exit(3)\n", 10, "Unable to import module 'index': 3"),
            ("def other(event, context):\n    pass\n", 10, "Handler 'handler' missing on module 'index'"),
            ("def handler(event, context):\n    raise KeyError('Name')\n", 10, "'Name'"),
            ("import os\ndef handler(event, context):\n    os._exit(7)\n", 10, "exit status 7"),
        ],
        ids=["hangs", "fails on import", "exits on import", "has no handler", "raises", "kills itself"],
    )
    def test_no_answer(self, stack: Any, function: Callable[..., str], source: str, timeout: int, said: str) -> None:
        token = function(source, timeout=timeout)
        error = refused(lambda: stack.create("Custom::Silent", {"ServiceToken": token}))
        assert error.message.startswith("CloudFormation did not receive a response from your Custom Resource.")
        assert "The function provider failed: " in error.message
        assert error.message.endswith(said)
        # CloudFormation makes an id itself, with which it asks for the deletion in the rollback
        assert re.fullmatch(r"prod-Resource\d*-[A-Z0-9]{12}", error.physical_id or "")

    def test_a_function_that_ends_well_and_says_nothing(self, stack: Any, provider: Callable[..., str]) -> None:
        token = provider("pass")
        error = refused(lambda: stack.create("Custom::Silent", {"ServiceToken": token, "ServiceTimeout": "1"}))
        assert error.message.endswith("The function provider ended without one.")

    def test_an_unknown_service_token(self, stack: Any) -> None:
        token = "arn:aws:lambda:us-east-1:123456789012:function:nobody"
        error = refused(lambda: stack.create("Custom::Lost", {"ServiceToken": token}))
        assert error.message == f"Function not found: {token}"


FRAMEWORK = {"Runtime": "nodejs24.x", "Handler": "framework.onEvent", "Code": {"ZipFile": "exports.onEvent = 1;"}}


class TestProviderFramework:
    @pytest.fixture
    def framework(self, function: Callable[..., str]) -> Callable[..., str]:
        def make(on_event: str, is_complete: str | None = None) -> str:
            variables = {"USER_ON_EVENT_FUNCTION_ARN": function(on_event, name="on-event")}
            if is_complete:
                variables["USER_IS_COMPLETE_FUNCTION_ARN"] = function(is_complete, name="is-complete")
            return function("", name="framework", Environment={"Variables": variables}, **FRAMEWORK)

        return make

    def test_the_result_is_mapped(self, stack: Any, framework: Callable[..., str]) -> None:
        token = framework(
            "def handler(event, context):\n"
            "    return {'PhysicalResourceId': 'quota-1', 'Data': {'Answer': event['ResourceProperties']['N']}}\n"
        )
        made = stack.create("Custom::Quota", {"ServiceToken": token, "N": 42})
        assert (made.physical_id, made.attributes) == ("quota-1", {"Answer": "42"})
        assert executions(stack.context)[0].mode == "ran"

    def test_no_result_keeps_the_id(self, stack: Any, framework: Callable[..., str]) -> None:
        token = framework("def handler(event, context):\n    pass\n")
        made = stack.create("Custom::Plain", {"ServiceToken": token, "A": "1"})
        assert len(made.physical_id) == 36
        assert stack.update(made.physical_id, A="2").physical_id == made.physical_id
        stack.delete(made.physical_id)

    def test_it_waits_until_complete(self, stack: Any, framework: Callable[..., str], tmp_path: Path) -> None:
        counter = tmp_path / "calls"
        token = framework(
            "def handler(event, context):\n    return {'PhysicalResourceId': 'q', 'Data': {'A': '1'}}\n",
            "import pathlib\n"
            f"calls = pathlib.Path({str(counter)!r})\n"
            "def handler(event, context):\n"
            "    calls.write_text((calls.read_text() if calls.exists() else '') + event['PhysicalResourceId'])\n"
            "    done = len(calls.read_text()) > 1\n"
            "    return {'IsComplete': done, **({'Data': {'B': '2'}} if done else {})}\n",
        )
        made = stack.create("Custom::Slow", {"ServiceToken": token})
        assert (made.physical_id, made.attributes) == ("q", {"A": "1", "B": "2"})
        assert counter.read_text() == "qq"

    def test_an_exception_reads_as_the_framework_words_it(self, stack: Any, framework: Callable[..., str]) -> None:
        token = framework("def handler(event, context):\n    raise ValueError('quota is 8')\n")
        error = refused(lambda: stack.create("Custom::Quota", {"ServiceToken": token}))
        assert error.message.startswith(
            "Received response status [FAILED] from custom resource. "
            "Message returned: Error: quota is 8\n\nLogs: /aws/lambda/on-event\n (RequestId: "
        )
        assert error.physical_id == "AWSCDK::CustomResourceProviderFramework::CREATE_FAILED"

    def test_deleting_a_resource_that_was_never_created_makes_no_call(
        self, stack: Any, framework: Callable[..., str]
    ) -> None:
        token = framework("def handler(event, context):\n    raise ValueError('called')\n")
        marker = "AWSCDK::CustomResourceProviderFramework::CREATE_FAILED"
        request = stack.request("Custom::Quota", "Quota", {"ServiceToken": token}, physical_id=marker)
        stack._handler("Custom::Quota").delete(request)

    def test_a_delete_must_keep_the_id(self, stack: Any, framework: Callable[..., str]) -> None:
        token = framework("def handler(event, context):\n    return {'PhysicalResourceId': event['RequestType']}\n")
        stack.create("Custom::Quota", {"ServiceToken": token})
        error = refused(lambda: stack.delete("Create"))
        assert 'cannot change the physical resource ID from "Create" to "Delete" during deletion' in error.message


class TestNode:
    def test_a_handler_without_the_sdk_runs(self, stack: Any, function: Callable[..., str]) -> None:
        source = """
const https = require("https");
exports.handler = async (event) => {
  const target = new URL(event.ResponseURL);
  const body = JSON.stringify({ Status: "SUCCESS", PhysicalResourceId: "node", Data: { Type: event.RequestType } });
  await new Promise((resolve, reject) => {
    const options = { hostname: target.hostname, path: target.pathname, method: "PUT",
      headers: { "content-type": "", "content-length": Buffer.byteLength(body) } };
    const request = https.request(options, resolve);
    request.on("error", reject);
    request.end(body);
  });
};
"""
        token = function(source, Runtime="nodejs24.x")
        made = stack.create("Custom::Node", {"ServiceToken": token})
        assert (made.physical_id, made.attributes) == ("node", {"Type": "Create"})

    def test_one_that_needs_the_sdk_is_skipped_and_says_so(self, stack: Any, function: Callable[..., str]) -> None:
        source = 'const { EC2 } = require("@aws-sdk/client-ec2");\nexports.handler = async () => {};\n'
        token = function(source, Runtime="nodejs24.x")
        made = stack.create("Custom::Sdk", {"ServiceToken": token})
        assert len(made.physical_id) == 36
        row = executions(stack.context)[0]
        assert row.mode == "skipped"
        assert row.reason == ("provider needs @aws-sdk/client-ec2, which only Lambda's own nodejs24.x runtime brings")


@pytest.fixture(scope="session")
def cdk_lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bucket deployment handler as aws-cdk-lib ships it."""
    wanted = "package/custom-resource-handlers/dist/aws-s3-deployment/bucket-deployment-handler/index.py"
    return extracted(package_folder(), wanted, tmp_path_factory.mktemp("lib"))


@pytest.fixture(scope="session")
def awscli_layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer with the AWS CLI as CDK ships it."""
    package = package_folder() / "asset_awscli_v1"
    return extracted(package, "package/lib/layer.zip", tmp_path_factory.mktemp("layer"))


def package_folder() -> Path:
    """Where aws_cdk lies; importing it would start Node.js."""
    spec = importlib.util.find_spec("aws_cdk")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def extracted(package: Path, member: str, target: Path) -> Path:
    [archive] = package.glob("_jsii/*.jsii.tgz")
    # read rather than extracted: the filter of extract came with Python 3.11.4
    with tarfile.open(archive) as opened:
        content = opened.extractfile(member)
        assert content is not None
        path = target / Path(member).name
        path.write_bytes(content.read())
    return path


@pytest.mark.examples
class TestBucketDeployment:
    @pytest.fixture
    def deployment(
        self, stack: Any, lambda_role: str, cdk_lib: Path, awscli_layer: Path, zipped: Callable[..., bytes]
    ) -> str:
        """CDK's provider with its genuine code and layer."""
        s3 = stack.context.client("s3")
        s3.create_bucket(Bucket="assets")
        s3.put_object(Bucket="assets", Key="layer.zip", Body=awscli_layer.read_bytes())
        s3.put_object(Bucket="assets", Key="handler.zip", Body=zipped({"index.py": cdk_lib.read_text()}))
        layer = stack.create("AWS::Lambda::LayerVersion", {"Content": {"S3Bucket": "assets", "S3Key": "layer.zip"}})
        made = stack.create(
            "AWS::Lambda::Function",
            {
                "Code": {"S3Bucket": "assets", "S3Key": "handler.zip"},
                "Handler": "index.handler",
                "Runtime": "python3.13",
                "Layers": [layer.physical_id],
                "Role": lambda_role,
                "Timeout": 60,
            },
        )
        arn: str = made.attributes["Arn"]
        return arn

    def test_the_files_reach_the_bucket(
        self, stack: Any, deployment: str, zipped: Callable[[Mapping[str, str]], bytes]
    ) -> None:
        s3 = stack.context.client("s3")
        s3.create_bucket(Bucket="lifecycle")
        s3.put_object(Bucket="assets", Key="scripts.zip", Body=zipped({"on_create.sh": "#!/bin/sh\n", "d/a.txt": "x"}))
        s3.put_object(Bucket="assets", Key="written.zip", Body=zipped({"environment.conf": "lustre=p5.48xlarge\n"}))
        made = stack.create(
            "Custom::CDKBucketDeployment",
            {
                "ServiceToken": deployment,
                "SourceBucketNames": ["assets", "assets"],
                "SourceObjectKeys": ["scripts.zip", "written.zip"],
                "SourceMarkers": [{}, {}],
                "SourceMarkersConfig": [{}, {}],
                "DestinationBucketName": "lifecycle",
                "DestinationBucketKeyPrefix": "abc",
                "Prune": False,
                "RetainOnDelete": True,
                "OutputObjectKeys": True,
            },
        )
        assert made.physical_id.startswith("aws.cdk.s3deployment.")
        assert made.attributes["SourceObjectKeys"] == ["scripts.zip", "written.zip"]
        keys = [row["Key"] for row in s3.list_objects_v2(Bucket="lifecycle")["Contents"]]
        assert keys == ["abc/d/a.txt", "abc/environment.conf", "abc/on_create.sh"]
        stack.delete(made.physical_id)
        assert s3.list_objects_v2(Bucket="lifecycle")["KeyCount"] == 3

    def test_a_missing_source_fails_as_the_handler_says(self, stack: Any, deployment: str) -> None:
        stack.context.client("s3").create_bucket(Bucket="lifecycle")
        properties = {
            "ServiceToken": deployment,
            "SourceBucketNames": ["assets"],
            "SourceObjectKeys": ["absent.zip"],
            "DestinationBucketName": "lifecycle",
        }
        error = refused(lambda: stack.create("Custom::CDKBucketDeployment", properties))
        assert "Command '['/opt/awscli/aws', 's3', 'cp', 's3://assets/absent.zip'" in error.message


class TestPlayed:
    @pytest.fixture
    def token(self, function: Callable[..., str]) -> str:
        return function("exports.handler = 1;", Runtime="nodejs24.x")

    def test_auto_delete_empties_a_tagged_bucket(self, stack: Any, token: str) -> None:
        bucket = stack.create(
            "AWS::S3::Bucket",
            {
                "BucketName": "scratch",
                "VersioningConfiguration": {"Status": "Enabled"},
                "Tags": [{"Key": "aws-cdk:auto-delete-objects", "Value": "true"}],
            },
        )
        s3 = stack.context.client("s3")
        for text in (b"1", b"2"):
            s3.put_object(Bucket="scratch", Key="a", Body=text)
        s3.delete_object(Bucket="scratch", Key="a")
        cleaner = stack.create("Custom::S3AutoDeleteObjects", {"ServiceToken": token, "BucketName": "scratch"})
        with pytest.raises(ClientError) as error:
            stack.delete(bucket.physical_id)
        assert "(BucketNotEmpty)" in str(error.value)
        stack.delete(cleaner.physical_id)
        with pytest.raises(ClientError) as error:
            s3.put_object(Bucket="scratch", Key="late", Body=b"3")
        assert "(403)" in str(error.value)
        stack.delete(bucket.physical_id)
        stack.delete(cleaner.physical_id)
        assert {row.mode for row in executions(stack.context)} == {"played"}

    def test_an_untagged_bucket_keeps_its_objects(self, stack: Any, token: str) -> None:
        s3 = stack.context.client("s3")
        s3.create_bucket(Bucket="kept")
        s3.put_object(Bucket="kept", Key="a", Body=b"1")
        cleaner = stack.create("Custom::S3AutoDeleteObjects", {"ServiceToken": token, "BucketName": "kept"})
        stack.delete(cleaner.physical_id)
        assert s3.list_objects_v2(Bucket="kept")["KeyCount"] == 1

    def test_the_default_group_is_restricted_and_given_back(self, stack: Any, token: str) -> None:
        vpc = stack.create("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"})
        group = vpc.attributes["DefaultSecurityGroup"]
        made = stack.create(
            "Custom::VpcRestrictDefaultSG",
            {"ServiceToken": token, "DefaultSecurityGroupId": group, "Account": stack.context.account},
        )
        ec2 = stack.context.client("ec2")
        seen = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
        assert (seen["IpPermissions"], seen["IpPermissionsEgress"]) == ([], [])
        stack.delete(made.physical_id)
        seen = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
        assert seen["IpPermissions"]
        assert seen["IpPermissionsEgress"]

    def test_log_retention(self, stack: Any, token: str) -> None:
        made = stack.create(
            "Custom::LogRetention", {"ServiceToken": token, "LogGroupName": "app", "RetentionInDays": 7}
        )
        assert (made.physical_id, made.attributes) == ("app", {"LogGroupName": "app"})
        logs = stack.context.client("logs")
        days = {row["logGroupName"]: row.get("retentionInDays") for row in logs.describe_log_groups()["logGroups"]}
        assert days == {"app": 7, "/aws/lambda/provider": 1}
        stack.update("app", RetentionInDays=None)
        stack.update("app", RemovalPolicy="destroy")
        stack.delete("app")
        names = [row["logGroupName"] for row in logs.describe_log_groups()["logGroups"]]
        assert names == ["/aws/lambda/provider"]


def test_executions_go_over_http_as_rows(stack: Any, provider: Callable[..., str]) -> None:
    token = provider("answer(event)")
    stack.create("Custom::Quota", {"ServiceToken": token}, "Quota")
    assert [row.as_dict() for row in executions(stack.context)] == [
        {
            "how": "ran",
            "type": "Custom::Quota",
            "logical_id": "Quota",
            "reason": "",
            "stack": "prod",
            "request": "Create",
        }
    ]


class TestSdkCall:
    @pytest.fixture
    def make(self, stack: Any, function: Callable[..., str]) -> Callable[..., Any]:
        """Create an AwsCustomResource with these calls."""
        token = function('const s3 = require("@aws-sdk/client-s3");', Runtime="nodejs24.x")

        def create(**calls: Any) -> Any:
            properties = {"ServiceToken": token, "InstallLatestAwsSdk": False}
            return stack.create("Custom::AWS", properties | {k: json.dumps(v) for k, v in calls.items()}, "Call")

        return create

    def test_calls_by_request_type(self, stack: Any, make: Callable[..., Any]) -> None:
        policy = {"policyName": "events", "policyDocument": "{}"}
        made = make(
            Create={
                "service": "CloudWatchLogs",
                "action": "putResourcePolicy",
                "parameters": policy,
                "physicalResourceId": {"id": "events"},
            },
            Delete={
                "service": "CloudWatchLogs",
                "action": "deleteResourcePolicy",
                "parameters": {"policyName": "PHYSICAL:RESOURCEID:"},
                "ignoreErrorCodesMatching": "ResourceNotFoundException",
            },
        )
        logs = stack.context.client("logs")
        assert made.physical_id == "events"
        assert made.attributes["resourcePolicy.policyName"] == "events"
        assert len(logs.describe_resource_policies()["resourcePolicies"]) == 1
        stack.delete("events")
        stack.delete("events")
        assert logs.describe_resource_policies()["resourcePolicies"] == []
        assert {row.mode for row in executions(stack.context)} == {"played"}

    def test_the_id_and_data_of_a_response(self, stack: Any, make: Callable[..., Any]) -> None:
        stack.context.client("ssm").put_parameter(Name="/a", Type="String", Value="42")
        made = make(
            Create={
                "service": "@aws-sdk/client-ssm",
                "action": "GetParameterCommand",
                "parameters": {"Name": "/a"},
                "physicalResourceId": {"responsePath": "Parameter.ARN"},
                "outputPaths": ["Parameter.Value"],
            }
        )
        assert made.physical_id == "arn:aws:ssm:us-east-1:123456789012:parameter/a"
        assert made.attributes == {"Parameter.Value": "42"}

    def test_an_error_of_the_call(self, make: Callable[..., Any]) -> None:
        wanted = {"service": "SSM", "action": "getParameter", "parameters": {"Name": "/absent"}}
        error = refused(lambda: make(Create=wanted))
        assert re.fullmatch(REASON.format("Parameter /absent not found."), error.message)

    def test_a_service_nobody_knows(self, stack: Any, make: Callable[..., Any]) -> None:
        make(Create={"service": "Quantum", "action": "entangle"})
        [row] = executions(stack.context)
        assert (row.mode, row.reason) == ("skipped", "boto3 has no service for Quantum")
