"""What its README promises: `serve`, the variables that AWS names, and a template of AWS: CDK's own bootstrap stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

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
