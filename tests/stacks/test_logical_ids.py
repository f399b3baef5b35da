"""A contract with everybody who has deployed this: the logical ids of what holds data or cannot be moved.

CloudFormation knows a resource by its logical id. Under another id it is another resource: the new one is made (or
refused, where the old one still has the name) and the old one is deleted or, where it is retained, forgotten. Ids
follow from construct ids, so renaming a construct or moving it into another is such a change.
"""

from __future__ import annotations

import pytest

from tests.support.assembly import Synthesized

LOSS = {
    "AWS::EC2::Subnet": "the subnet would be made anew, and with it every node and file system in it",
    "AWS::EC2::VPC": "the VPC would be made anew, and with it everything in it",
    "AWS::EKS::Cluster": "EKS would make another cluster, and refuses while this one has its name",
    "AWS::FSx::FileSystem": "jobs would find an empty file system, and the one with the data would be forgotten",
    "AWS::KMS::Key": "what the key encrypts would depend on a key that no stack knows",
    "AWS::Logs::LogGroup": "logs would go on elsewhere, or the deployment fail since the group's name is taken",
    "AWS::S3::Bucket": "a new, empty bucket would take the place of the one with the objects",
    "AWS::SageMaker::Cluster": "HyperPod would make another cluster, and refuses while this one has its name",
}

PROD = {
    ("prod-foundation", "NetworkVpcFAC8F4A5"): "AWS::EC2::VPC",
    ("prod-foundation", "NetworkPublicSubnetUse1Az522BCA1E9"): "AWS::EC2::Subnet",
    ("prod-foundation", "NetworkControlPlaneSubnetUse1Az593973A04"): "AWS::EC2::Subnet",
    ("prod-foundation", "NetworkControlPlaneSubnetUse1Az47BFE4AFA"): "AWS::EC2::Subnet",
    ("prod-foundation", "NetworkNodeSubnetUse1Az53CDCADA8"): "AWS::EC2::Subnet",
    ("prod-foundation", "NetworkNodeSubnetUse1Az4D04F85AC"): "AWS::EC2::Subnet",
    ("prod-foundation", "NetworkFlowLogGroup1F868030"): "AWS::Logs::LogGroup",
    ("prod-foundation", "QuotaGateLogs8B0BB020"): "AWS::Logs::LogGroup",
    ("prod-foundation", "DeletionProtectionLogsB4348A04"): "AWS::Logs::LogGroup",
    ("prod-foundation", "ControlPlaneLogSettingsHandlerLogs3E8DDD5C"): "AWS::Logs::LogGroup",
    ("prod-foundation", "ControlPlaneSecretsKey72FED211"): "AWS::KMS::Key",
    ("prod-foundation", "ControlPlaneCluster8AFA2E51"): "AWS::EKS::Cluster",
    ("prod-foundation", "ControlPlaneKubectlProviderHandlerLogGroup6493E7C5"): "AWS::Logs::LogGroup",
    ("prod-foundation", "ControlPlaneKubectlProviderframeworkonEventLogGroup8D94A18D"): "AWS::Logs::LogGroup",
    ("prod-storage", "LustrescratchFileSystemFF33363C"): "AWS::FSx::FileSystem",
    ("prod-storage", "LustrescratchLogGroup489A9524"): "AWS::Logs::LogGroup",
    ("prod-foundation", "LifecycleScriptsAccessLogs486B0B7F"): "AWS::S3::Bucket",
    ("prod-foundation", "LifecycleScriptsBucketBB67840B"): "AWS::S3::Bucket",
    ("prod-foundation", "LifecycleScriptsUploadLogs902B8BF1"): "AWS::Logs::LogGroup",
    ("prod-hyperpod", "ClusterEB0386A7"): "AWS::SageMaker::Cluster",
    ("prod-hyperpod", "NodeWaiterLogs31062831"): "AWS::Logs::LogGroup",
    ("prod-observability", "NodeEventsLogGroup4621FA13"): "AWS::Logs::LogGroup",
}


def test_stateful_resources_keep_their_logical_ids(prod: Synthesized) -> None:
    now = {node: prod.resource(node)["Type"] for node in prod.of_type(*LOSS)}

    gone = [
        f"{stack}/{logical_id} ({resource_type}) is gone: {LOSS[resource_type]}"
        for (stack, logical_id), resource_type in PROD.items()
        if now.get((stack, logical_id)) != resource_type
    ]
    assert not gone, "\n".join(
        ["a deployed environment would lose", *gone, "give the construct its old id back; never edit this table's rows"]
    )
    new = [f"{stack}/{logical_id} ({now[stack, logical_id]})" for stack, logical_id in now.keys() - PROD.keys()]
    assert not new, f"new resources that hold state; add their rows, they are for ever: {', '.join(sorted(new))}"


@pytest.mark.parametrize("name", ["prod-foundation", "prod-storage", "prod-hyperpod"])
def test_stacks_keep_their_names(prod: Synthesized, name: str) -> None:
    assert name in prod.templates, f"stack {name} is gone: under another name all that it holds would be made anew"
