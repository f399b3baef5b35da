"""Functions run for real: what they are told, what they may reach, and what becomes of their end."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded.lambda_runner import Invocation, NotExecutableError, invoke


@pytest.fixture
def run(context: Any, function: Callable[..., str]) -> Callable[..., Invocation]:
    """Run a handler with this body."""

    def make(body: str, event: Any = None, **options: Any) -> Invocation:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        name = function(f"def handler(event, context):\n{lines}\n", **options)
        return invoke(context, name, json.dumps(event))

    return make


class TestWhatAFunctionIsTold:
    def test_the_environment(
        self, context: Any, run: Callable[..., Invocation], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOST_SECRET", "1")
        seen = run(
            "import os; return dict(os.environ)", Environment={"Variables": {"MINE": "x"}}, MemorySize=256
        ).result
        assert seen["MINE"] == "x"
        assert seen["AWS_REGION"] == "us-east-1"
        assert seen["AWS_LAMBDA_FUNCTION_NAME"] == "f"
        assert seen["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "256"
        assert seen["AWS_LAMBDA_LOG_GROUP_NAME"] == "/aws/lambda/f"
        assert seen["AWS_EXECUTION_ENV"] == "AWS_Lambda_python3.13"
        assert seen["AWS_ENDPOINT_URL"] == context.endpoint
        assert seen["_HANDLER"] == "index.handler"
        assert "HOST_SECRET" not in seen

    def test_the_context(self, run: Callable[..., Invocation]) -> None:
        invocation = run(
            "return [context.function_name, context.aws_request_id, context.invoked_function_arn,"
            " context.log_stream_name, context.get_remaining_time_in_millis()]",
            Timeout=20,
        )
        name, request_id, arn, stream, remaining = invocation.result
        assert (name, request_id, stream) == ("f", invocation.request_id, invocation.log_stream)
        assert arn == "arn:aws:lambda:us-east-1:123456789012:function:f"
        assert 10_000 < remaining <= 20_000

    def test_time_flies_while_it_sleeps(self, run: Callable[..., Invocation]) -> None:
        before = time.monotonic()
        seen = run("import time; time.sleep(600); return context.get_remaining_time_in_millis()", Timeout=900).result
        assert 200_000 < seen <= 300_000
        assert time.monotonic() - before < 300

    def test_the_event_and_boto3(self, context: Any, run: Callable[..., Invocation]) -> None:
        context.client("s3").create_bucket(Bucket="seen")
        body = "import boto3; return [event, [b['Name'] for b in boto3.client('s3').list_buckets()['Buckets']]]"
        assert run(body, {"a": 1}).result == [{"a": 1}, ["seen"]]

    def test_files_may_be_written_to_the_temporary_directory(self, run: Callable[..., Invocation]) -> None:
        body = "import tempfile, pathlib\np = pathlib.Path(tempfile.mkdtemp(), 'a'); p.write_text('x'); return str(p)"
        assert "/run-" in run(body).result


class TestWhatItMayReach:
    @pytest.mark.parametrize(
        "body",
        [
            "import socket; socket.create_connection(('198.51.100.1', 80), timeout=5)",
            "import urllib.request; urllib.request.urlopen('http://example.com', timeout=5)",
            "import socket; socket.socket().connect(('198.51.100.1', 80))",
        ],
    )
    def test_no_network_beyond_this_machine(self, run: Callable[..., Invocation], body: str) -> None:
        assert "the rehearsal has no network beyond this machine" in run(body).error_message

    def test_a_program_of_a_layer_under_opt(
        self, context: Any, run: Callable[..., Invocation], zipped: Callable[..., bytes]
    ) -> None:
        tool = "#!/var/lang/bin/python\nimport sys\nprint('tool', *sys.argv[1:])\n"
        layer = context.client("lambda").publish_layer_version(
            LayerName="tools",
            Content={"ZipFile": zipped({"bin2/tool": tool, "python/helper.py": "NAME = 'helper'\n"})},
        )["LayerVersionArn"]
        body = (
            "import os, subprocess, helper\n"
            "direct = subprocess.check_output(['/opt/bin2/tool', 'a']).decode()\n"
            "os.environ['PATH'] = '/opt/bin2:' + os.environ['PATH']\n"
            "return [direct, subprocess.check_output(['tool', 'b'], text=True), helper.NAME]"
        )
        assert run(body, Layers=[layer]).result == ["tool a\n", "tool b\n", "helper"]


class TestHowItEnds:
    @pytest.mark.parametrize(
        ("source", "kind", "message"),
        [
            ("def handler(e, c):\n    raise ValueError('no')\n", "ValueError", "no"),
            ("import nothing_of_this_name\n", "Runtime.ImportModuleError", "No module named 'nothing_of_this_name'"),
            ("handle = 1\n", "Runtime.HandlerNotFound", "Handler 'handler' missing on module 'index'"),
            ("def handler(e, c):\n    return {1, 2}\n", "Runtime.MarshalError", "not JSON serializable"),
            ("def handler(e, c):\n    import os; os._exit(3)\n", "Runtime.ExitError", "exit status 3"),
            ("def handler(e, c):\n    raise SystemExit(4)\n", "Runtime.ExitError", "exit status 4"),
            (
                "def handler(e, c):\n    import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n",
                "Runtime.ExitError",
                "signal: SIGKILL",
            ),
        ],
    )
    def test_errors(self, context: Any, function: Callable[..., str], source: str, kind: str, message: str) -> None:
        invocation = invoke(context, function(source), "{}")
        assert invocation.error == "Unhandled"
        assert invocation.result["errorType"] == kind
        assert invocation.error_message.endswith(message)

    def test_the_time_runs_out_for_the_children_too(self, run: Callable[..., Invocation]) -> None:
        started = time.monotonic()
        invocation = run("import subprocess; subprocess.run(['sleep', '60'])", Timeout=1)
        # far from the minute that the child would sleep, however busy the machine
        assert time.monotonic() - started < 40
        assert invocation.result == {
            "errorType": "Sandbox.Timedout",
            "errorMessage": f"RequestId: {invocation.request_id} Error: Task timed out after 1.00 seconds",
        }

    def test_the_log(self, context: Any, run: Callable[..., Invocation]) -> None:
        invocation = run("import logging\nprint('out')\nlogging.getLogger().warning('careful')\nreturn 1")
        events = context.client("logs").filter_log_events(logGroupName="/aws/lambda/f")["events"]
        lines = [row["message"] for row in events]
        assert lines[0] == f"START RequestId: {invocation.request_id} Version: $LATEST"
        assert "out" in lines
        assert [line for line in lines if line.startswith("[WARNING]\t") and line.endswith("\tcareful")]
        assert lines[-1].startswith(f"REPORT RequestId: {invocation.request_id}\tDuration: ")


class TestInvokeOperation:
    def test_payload_log_and_version(self, context: Any, function: Callable[..., str]) -> None:
        function("def handler(event, context):\n    print('hello')\n    return {'got': event}\n")
        client = context.client("lambda")
        answer = client.invoke(FunctionName="f", Payload=b'{"a": 1}', LogType="Tail")
        assert json.loads(answer["Payload"].read()) == {"got": {"a": 1}}
        assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
        assert "FunctionError" not in answer
        assert "hello" in base64.b64decode(answer["LogResult"]).decode()

    def test_a_dry_run_runs_nothing(self, context: Any, function: Callable[..., str]) -> None:
        function("def handler(event, context):\n    return 1\n")
        answer = context.client("lambda").invoke(FunctionName="f", InvocationType="DryRun")
        assert answer["Payload"].read() == b""
        assert context.client("logs").describe_log_groups()["logGroups"] == []

    def test_an_error_is_a_result(self, context: Any, function: Callable[..., str]) -> None:
        function("def handler(event, context):\n    raise ValueError('no')\n")
        answer = context.client("lambda").invoke(FunctionName="f")
        assert answer["FunctionError"] == "Unhandled"
        assert json.loads(answer["Payload"].read())["errorMessage"] == "no"

    def test_an_event_is_run_in_the_background(self, context: Any, function: Callable[..., str]) -> None:
        function(
            "import boto3\ndef handler(event, context):\n    boto3.client('s3').create_bucket(Bucket=event['name'])\n"
        )
        client = context.client("lambda")
        answer = client.invoke(FunctionName="f", InvocationType="Event", Payload=b'{"name": "made"}')
        assert answer["Payload"].read() == b""
        for _ in range(100):
            if context.client("s3").list_buckets()["Buckets"]:
                break
            time.sleep(0.05)
        assert [row["Name"] for row in context.client("s3").list_buckets()["Buckets"]] == ["made"]

    def test_an_unknown_function(self, context: Any) -> None:
        with pytest.raises(ClientError) as error:
            context.client("lambda").invoke(FunctionName="absent")
        assert str(error.value) == (
            "An error occurred (ResourceNotFoundException) when calling the Invoke operation: "
            "Function not found: arn:aws:lambda:us-east-1:123456789012:function:absent"
        )


class TestNode:
    def test_a_result_and_an_error(self, context: Any, function: Callable[..., str]) -> None:
        source = (
            "exports.handler = async (event, context) => {\n"
            "  if (event.fail) throw new TypeError('no');\n"
            "  return { name: context.functionName, left: context.getRemainingTimeInMillis() > 1000 };\n"
            "};\n"
        )
        function(source, Runtime="nodejs24.x")
        assert invoke(context, "f", "{}").result == {"name": "f", "left": True}
        failed = invoke(context, "f", '{"fail": true}')
        assert (failed.result["errorType"], failed.error_message) == ("TypeError", "no")

    def test_no_network_beyond_this_machine(self, context: Any, function: Callable[..., str]) -> None:
        source = "exports.handler = async () => { await fetch('http://198.51.100.1/'); };\n"
        function(source, Runtime="nodejs24.x")
        assert invoke(context, "f", "{}").error == "Unhandled"

    @pytest.mark.parametrize(
        ("runtime", "message"),
        [("java21", "f runs on java21; only Python and Node.js run here")],
    )
    def test_other_runtimes(self, context: Any, function: Callable[..., str], runtime: str, message: str) -> None:
        function("", Runtime=runtime)
        with pytest.raises(NotExecutableError) as error:
            invoke(context, "f", "{}")
        assert str(error.value) == message
