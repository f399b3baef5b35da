"""Functions, layers, permissions, versions and aliases, seen through Lambda's own operations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.resources.registry import HandlerError

ECHO = "def handler(event, context):\n    return event\n"


@pytest.fixture
def client(context: Any) -> Any:
    return context.client("lambda")


def said(call: Callable[[], Any]) -> str:
    with pytest.raises(ClientError) as error:
        call()
    return str(error.value).partition(" operation: ")[2]


def returned(client: Any, name: str = "provider", **event: Any) -> Any:
    answer = client.invoke(FunctionName=name, Payload=json.dumps(event).encode())
    return json.loads(answer["Payload"].read())


def test_inline_code_runs_and_changes(stack: Any, client: Any, function: Callable[..., str]) -> None:
    arn = function(ECHO, Environment={"Variables": {"AB": "1"}}, Tags=[{"Key": "team", "Value": "ml"}])
    assert arn == "arn:aws:lambda:us-east-1:123456789012:function:provider"
    assert returned(client, hello="there") == {"hello": "there"}
    seen = client.get_function(FunctionName="provider")
    assert seen["Tags"] == {"team": "ml"}
    assert seen["Configuration"]["Environment"]["Variables"] == {"AB": "1"}

    environment = "import os\ndef handler(event, context):\n    return os.environ.get('AB')\n"
    stack.update("provider", Code={"ZipFile": environment}, Timeout="7", MemorySize=256)
    assert returned(client) == "1"
    stack.update("provider", Environment=None, Tags=None)
    assert returned(client) is None
    configuration = client.get_function_configuration(FunctionName="provider")
    assert (configuration["Timeout"], configuration["MemorySize"]) == (7, 256)
    assert "Tags" not in client.get_function(FunctionName="provider")
    stack.delete("provider")
    stack.delete("provider")
    assert client.list_functions()["Functions"] == []


def test_the_log_group_of_its_logging_config(stack: Any, client: Any, function: Callable[..., str]) -> None:
    stack.create("AWS::Logs::LogGroup", {"LogGroupName": "mine"})
    function("def handler(event, context):\n    print('here I am')\n", LoggingConfig={"LogGroup": "mine"})
    returned(client)
    logs = stack.context.client("logs")
    assert [row["logGroupName"] for row in logs.describe_log_groups()["logGroups"]] == ["mine"]
    assert "here I am" in [row["message"] for row in logs.filter_log_events(logGroupName="mine")["events"]]
    told = client.get_function(FunctionName="provider")["Configuration"]["LoggingConfig"]
    assert told == {"LogFormat": "Text", "LogGroup": "mine"}
    client.update_function_configuration(FunctionName="provider", LoggingConfig={"LogFormat": "JSON"})
    assert client.get_function_configuration(FunctionName="provider")["LoggingConfig"] == {
        "LogFormat": "JSON",
        "LogGroup": "mine",
        "ApplicationLogLevel": "INFO",
        "SystemLogLevel": "INFO",
    }


def test_code_and_layer_from_a_bucket(stack: Any, client: Any, lambda_role: str, zipped: Callable[..., bytes]) -> None:
    s3 = stack.context.client("s3")
    s3.create_bucket(Bucket="assets")
    s3.put_object(Bucket="assets", Key="l.zip", Body=zipped({"python/shared.py": "NAME = 'layer'\n"}))
    code = "import shared\ndef handler(event, context):\n    return shared.NAME\n"
    s3.put_object(Bucket="assets", Key="f.zip", Body=zipped({"main.py": code}))
    layer = stack.create("AWS::Lambda::LayerVersion", {"Content": {"S3Bucket": "assets", "S3Key": "l.zip"}})
    assert layer.physical_id.endswith(":1")
    assert layer.attributes == {"LayerVersionArn": layer.physical_id}
    made = stack.create(
        "AWS::Lambda::Function",
        {
            "Code": {"S3Bucket": "assets", "S3Key": "f.zip"},
            "Handler": "main.handler",
            "Runtime": "python3.13",
            "Role": lambda_role,
            "Layers": [layer.physical_id],
        },
        "Main",
    )
    assert made.physical_id.startswith("prod-Main-")
    assert returned(client, made.physical_id) == "layer"
    for resource in (made, layer, layer):
        stack.delete(resource.physical_id)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            {"S3Bucket": "absent", "S3Key": "f.zip"},
            "S3 Error Code: NoSuchBucket. S3 Error Message: The specified bucket does not exist",
        ),
        (
            {"S3Bucket": "assets", "S3Key": "absent.zip"},
            "S3 Error Code: NoSuchKey. S3 Error Message: The specified key does not exist.",
        ),
    ],
)
def test_code_that_is_not_there(stack: Any, function: Callable[..., str], code: dict[str, str], text: str) -> None:
    stack.context.client("s3").create_bucket(Bucket="assets")
    assert said(lambda: function("", Code=code)) == f"Error occurred while GetObject. {text}"


def test_a_role_that_does_not_trust_lambda(stack: Any, function: Callable[..., str]) -> None:
    trust = {"Version": "2012-10-17", "Statement": []}
    role = stack.create("AWS::IAM::Role", {"AssumeRolePolicyDocument": trust})
    text = "The role defined for the function cannot be assumed by Lambda."
    assert said(lambda: function(ECHO, Role=role.attributes["Arn"])) == text
    assert said(lambda: function(ECHO, Role="arn:aws:iam::123456789012:role/absent")) == text


def test_a_permission(stack: Any, client: Any, function: Callable[..., str]) -> None:
    arn = function(ECHO)
    made = stack.create(
        "AWS::Lambda::Permission",
        {
            "FunctionName": arn,
            "Action": "lambda:InvokeFunction",
            "Principal": "events.amazonaws.com",
            "SourceArn": "arn:aws:events:us-east-1:123456789012:rule/r",
        },
    )
    policy = json.loads(client.get_policy(FunctionName="provider")["Policy"])
    assert [row["Sid"] for row in policy["Statement"]] == [made.physical_id]
    assert made.attributes == {"Id": made.physical_id}
    stack.delete(made.physical_id)
    stack.delete(made.physical_id)


def test_versions_and_aliases(stack: Any, client: Any, function: Callable[..., str]) -> None:
    function(ECHO)
    version = stack.create("AWS::Lambda::Version", {"FunctionName": "provider"})
    assert version.attributes == {"Version": "1", "FunctionArn": version.physical_id}
    with pytest.raises(HandlerError) as error:
        stack.create("AWS::Lambda::Version", {"FunctionName": "provider"})
    assert error.value.message.startswith("A version for this Lambda function exists ( 1 ).")
    alias = stack.create("AWS::Lambda::Alias", {"FunctionName": "provider", "Name": "live", "FunctionVersion": "1"})
    assert alias.physical_id.endswith(":provider:live")
    stack.update(alias.physical_id, Description="now")
    assert client.get_alias(FunctionName="provider", Name="live")["Description"] == "now"
    stack.delete(alias.physical_id)
    stack.delete(alias.physical_id)
    stack.delete(version.physical_id)
    stack.delete(version.physical_id)


def test_an_event_invoke_config(stack: Any, client: Any, function: Callable[..., str]) -> None:
    function(ECHO)
    made = stack.create(
        "AWS::Lambda::EventInvokeConfig",
        {"FunctionName": "provider", "Qualifier": "$LATEST", "MaximumRetryAttempts": "0"},
    )
    assert made.physical_id == "provider|$LATEST"
    assert client.get_function_event_invoke_config(FunctionName="provider")["MaximumRetryAttempts"] == 0
    stack.delete(made.physical_id)
    stack.delete(made.physical_id)
