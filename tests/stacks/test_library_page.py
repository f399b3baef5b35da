"""The cluster of docs/library.md: its app runs unchanged, and its stacks deploy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.eks.dependencies import PLACEHOLDER_PARAMETER, REHEARSAL
from hyperpod_cdk_rehearsal.account_files import satisfying
from tests.support.assembly import PROJECT
from tests.support.embedded import embedded
from tests.support.in_process_cdk import Aws, InProcessCdk, read_stacks

PAGE = (PROJECT / "docs" / "library.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def assembly() -> Path:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    app: dict[str, Any] = {"__name__": "app"}
    exec(compile(code, "docs/library.md", "exec"), app)  # noqa: S102 - the page's own code
    return Path(app["app"].synth().directory)


@pytest.mark.examples
def test_it_makes_a_whole_cluster(assembly: Path) -> None:
    resources = json.loads((assembly / "Training.template.json").read_text(encoding="utf-8"))["Resources"]
    (cluster,) = [each for each in resources.values() if each["Type"] == "AWS::SageMaker::Cluster"]
    groups = cluster["Properties"]["InstanceGroups"]

    assert [(each["InstanceGroupName"], each["InstanceCount"]) for each in groups] == [("h100", 2), ("system", 2)]
    before = {resources[each]["Type"] for each in cluster["DependsOn"]}
    assert {"Custom::AWSCDK-EKS-HelmChart", "AWS::EKS::Addon", "AWS::EC2::SecurityGroupEgress"} <= before


@pytest.mark.examples
def test_it_deploys(assembly: Path, tmp_path: Path) -> None:
    # the account has what this example of the same two groups needs
    account = satisfying(load_environment(PROJECT / "examples" / "training-plan.yaml").environment)
    with embedded(account, region="us-east-1", account="111122223333", is_hurried=True) as there:
        aws = Aws(there, tmp_path / "log")
        InProcessCdk(aws).deploy(read_stacks(assembly), {PLACEHOLDER_PARAMETER: REHEARSAL})
        (stack,) = aws.cloudformation.describe_stacks(StackName="Training")["Stacks"]

    assert stack["StackStatus"] == "CREATE_COMPLETE"
