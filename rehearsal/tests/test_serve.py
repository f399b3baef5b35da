"""What its README promises: `serve`, the variables that AWS names, and a template of AWS: CDK's own bootstrap stack."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hyperpod_cdk_rehearsal.embedded.serve import main
from rehearsal.tests.support.tables import row_by_row

ACCOUNT, REGION = "111122223333", "us-west-2"
TEMPLATE = Path("node_modules/aws-cdk/lib/api/bootstrap/bootstrap-template.yaml")
"""AWS's template of the stack CDKToolkit, as the CDK CLI ships it."""

DEPLOY = """
import boto3, json, sys
cloudformation = boto3.client("cloudformation")
cloudformation.create_stack(
    StackName="Theirs", TemplateBody=open(sys.argv[1]).read(), Capabilities=["CAPABILITY_NAMED_IAM"],
    Parameters=[{"ParameterKey": "Qualifier", "ParameterValue": "theirs"}],
)
cloudformation.get_waiter("stack_create_complete").wait(
    StackName="Theirs", WaiterConfig={"Delay": 1, "MaxAttempts": 60}
)
(stack,) = cloudformation.describe_stacks(StackName="Theirs")["Stacks"]
outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
bucket = boto3.client("s3").get_bucket_versioning(Bucket=outputs["BucketName"])["Status"]
version = boto3.client("ssm").get_parameter(Name="/cdk-bootstrap/theirs/version")["Parameter"]["Value"]
print(json.dumps({"status": stack["StackStatus"], "bucket": bucket, "same": version == outputs["BootstrapVersion"]}))
"""


@pytest.fixture
def variables(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """Serve as the README says; give the environment variables that it names, and no other of AWS's."""
    command = [sys.executable, "-m", "hyperpod_cdk_rehearsal", "serve", "--account", ACCOUNT, "--region", REGION]
    served = subprocess.Popen(
        [*command, "--log-file", str(tmp_path / "log")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert served.stdin is not None
    assert served.stdout is not None
    said = json.loads(served.stdout.readline())
    yield {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "AWS_ENDPOINT_URL": said["endpoint"],
        "AWS_ACCESS_KEY_ID": said["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": said["secret_access_key"],
        "AWS_DEFAULT_REGION": REGION,
    }
    served.stdin.close()
    assert served.wait(10) == 0
    served.stdout.close()


def test_one_of_awss_own_templates(variables: Mapping[str, str], project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEPLOY, str(project / TEMPLATE)],
        env=dict(variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == {"status": "CREATE_COMPLETE", "bucket": "Enabled", "same": True}


def test_another_command_is_refused() -> None:
    command = [sys.executable, "-m", "hyperpod_cdk_rehearsal", "sreve"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m hyperpod_cdk_rehearsal serve --account ID")


NUMBER = 'must be a number, 0 to {}, got "{}"; for example 0.5'
PORT = 'must be a port, 0 to 65535, got "{}"; omit the option for any free port'


@row_by_row(
    "option, value, said",
    [
        *(
            ("account", value, f"must be the 12 digits of an AWS account, got {shown}; for example 111122223333")
            for value, shown in [
                ("1", '"1"'),
                ("", '""'),
                ("11112222333", '"11112222333"'),
                ("1111222233334", '"1111222233334"'),
                ("1111-2222-3333", '"1111-2222-3333"'),
                ("111122223333\n", r'"111122223333\n"'),
                ("\u0661" * 12, '"' + r"\u0661" * 12 + '"'),
                ("1" * 100_000, f'"{"1" * 60}..."'),
            ]
        ),
        *(
            ("region", value, f"must be an AWS Region that botocore knows, got {shown}; did you mean {near}?")
            for value, shown, near in [
                ("us-west2", '"us-west2"', "us-west-2"),
                ("us-west-2a", '"us-west-2a"', "us-west-2"),
                ("EU-WEST-1", '"EU-WEST-1"', "eu-west-1"),
                ("us-gov-west1", '"us-gov-west1"', "us-gov-west-1"),
                ("us-west-2\r\nX: y", r'"us-west-2\r\nX: y"', "us-west-2"),
            ]
        ),
        *(("port", value, PORT.format(value)) for value in ("-1", "65536", "70000", "x", "")),
        ("port", "9" * 5000, PORT.format("9" * 60 + "...")),
        *(("clock-scale", value, NUMBER.format(100, value)) for value in ("-0.1", "100.1", "nan", "inf", "1e400", "x")),
        *(("latency-ms", value, NUMBER.format(60000, value)) for value in ("-5", "60000.5", "nan", "inf", "")),
        ("account-file", "/nowhere/a.yaml", "/nowhere/a.yaml: No such file or directory"),
        ("log-file", "/", 'must be a file that can be written (Is a directory), got "/"; name another file'),
    ],
)
def test_wrong_values_are_refused(option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"account": ACCOUNT, "region": REGION, option: value}
    with pytest.raises(SystemExit) as ended:
        main([f"--{name}={each}" for name, each in options.items()])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert printed.err.splitlines()[-1] == f"python -m hyperpod_cdk_rehearsal serve: error: argument --{option}: {said}"


def test_region_like_no_other_is_refused_with_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--account", ACCOUNT, "--region", "nowhere-1"])
    said = capsys.readouterr().err
    assert 'got "nowhere-1"; write one of af-south-1, ' in said
    assert "us-west-2" in said
    assert "global" not in said


@row_by_row(
    "document, said",
    [
        ("- a", "must be a mapping, got list"),
        ("quotaz: {}", ":1 quotaz: extra inputs are not permitted"),
        ("quotas: 7", ":1 quotas: input should be a valid dictionary"),
        (
            "quotas: {}\nzones:\n  from_environment: true\n",
            ":3 zones.from_environment: is for 'hyperpod-cdk rehearse', which knows the environment; state the values",
        ),
    ],
)
def test_wrong_account_file_is_refused(
    document: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "account.yaml"
    file.write_text(document)
    with pytest.raises(SystemExit) as ended:
        main(["--account", ACCOUNT, "--region", REGION, "--account-file", str(file)])
    assert ended.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(said)


def test_port_in_use_is_refused() -> None:
    command = [sys.executable, "-m", "hyperpod_cdk_rehearsal", "serve", "--account", ACCOUNT, "--region", REGION]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*command, "--port", str(port)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"--port: {port} cannot be used (Address already in use); omit the option for any free port\n"
