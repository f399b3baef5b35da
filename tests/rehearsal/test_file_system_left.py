"""A file system that was removed from the file remains after the environment, in its subnet."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hyperpod_cdk.catalog import prices
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.eks.dependencies import PLACEHOLDER_PARAMETER
from hyperpod_cdk_rehearsal.account_files import satisfying
from hyperpod_cdk_rehearsal.left_over import kept_and_unexpected, snapshot
from tests.support.embedded import embedded
from tests.support.in_process_cdk import Aws, InProcessCdk

SMALL = """
name: small
account: "111122223333"
region: us-east-1
deletion_protection: false
tags: {cost-center: "42"}
network:
  vpc_cidr: 10.192.0.0/16
  availability_zones: {use1-az5: {}, use1-az4: {}}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
storage:
  lustre:
    - {name: scratch, availability_zone_id: use1-az4, capacity_gib: 1200, claim: null}
"""


@pytest.mark.examples
def test_a_destroy_after_a_file_system_has_left(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    environment = load_environment(file).environment
    with embedded(satisfying(environment), is_hurried=True) as there:
        aws = Aws(there, tmp_path)
        before = snapshot(aws)
        cdk = InProcessCdk(aws)

        def run(command: str, assembly: str) -> None:
            cdk.synth(file, tmp_path / assembly)
            parameter = f"small-foundation:{PLACEHOLDER_PARAMETER}=rehearsal"
            cdk.run([command, "--app", str(tmp_path / assembly), "small/*", "--parameters", parameter])

        run("deploy", "with")
        ec2, fsx = aws.client("ec2"), aws.client("fsx")
        (system,) = fsx.describe_file_systems()["FileSystems"]
        assert aws.client("logs").list_tags_for_resource(
            resourceArn="arn:aws:logs:us-east-1:111122223333:log-group:/aws/eks/small-eks/cluster"
        )["tags"] == {"cost-center": "42"}

        values = yaml.safe_load(SMALL)
        del values["storage"]
        values["network"]["retain"] = True
        file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
        # as the page on the lifecycle says of the last file system: until then the foundation's exports are in use
        aws.cloudformation.delete_stack(StackName="small-storage")
        cdk.wait("small-storage")
        run("deploy", "without")
        vpc = [{"Name": "vpc-id", "Values": [system["VpcId"]]}]
        nodes = {
            subnet["SubnetId"]
            for subnet in ec2.describe_subnets(Filters=vpc)["Subnets"]
            if not subnet["CidrBlock"].startswith("10.192.")
        }
        run("destroy", "without")

        # the file system's own group stays with it, and nothing else of the network
        kept, unexpected = kept_and_unexpected(
            aws, before, region="us-east-1", prices=prices.shipped(), asked={*nodes, system["VpcId"]}
        )
        assert unexpected == []
        network = {each.name for each in kept if each.kind in {"VPC", "subnet"}}
        assert network == {*nodes, system["VpcId"]}
        assert set(system["SubnetIds"]) <= nodes
        assert len(nodes) == 2
