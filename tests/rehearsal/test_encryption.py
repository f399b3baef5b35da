"""Customer-managed keys in the embedded AWS: made, named, and given to what stood without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.eks.dependencies import PLACEHOLDER_PARAMETER
from hyperpod_cdk_rehearsal.account_files import satisfying
from tests.support.embedded import embedded
from tests.support.in_process_cdk import Aws, InProcessCdk

KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
SMALL = """
name: small
account: "111122223333"
region: us-east-1
network:
  vpc_cidr: 10.192.0.0/16
  availability_zones: {use1-az5: {}, use1-az4: {}}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 1, availability_zone_id: use1-az4}
storage:
  lustre:
    - {name: scratch, availability_zone_id: use1-az4, capacity_gib: 1200}
"""
ALL = ("eks_secrets", "node_volumes", "lifecycle_bucket", "file_systems", "logs", "notifications")
# an alarm on a file system would keep it from being replaced
TOLD = {"emails": ["on-call@example.com"], "monthly_budget_usd": 100, "events": ["node_unhealthy", "nodes_missing"]}


class Life:
    """The small environment in a separate account."""

    def __init__(self, aws: Aws, folder: Path) -> None:
        self.aws = aws
        self.cdk = InProcessCdk(aws)
        self._folder = folder
        self._count = 0

    def deploy(self, **sections: Any) -> dict[str, list[str]]:
        """Deploy the file with these sections and give what changed, by stack."""
        self._count += 1
        file = write(self._folder, **sections)
        assembly = self._folder / f"assembly-{self._count}"
        self.cdk.synth(file, assembly)
        parameter = f"small-foundation:{PLACEHOLDER_PARAMETER}=rehearsal"
        self.cdk.run(["deploy", "--app", str(assembly), "--parameters", parameter])
        return self.cdk.changes

    def keys(self) -> dict[str, str]:
        """Return ARN -> alias, or nothing where a key has none."""
        kms = self.aws.client("kms")
        aliases = {row.get("TargetKeyId"): row["AliasName"] for row in kms.list_aliases()["Aliases"]}
        return {row["KeyArn"]: aliases.get(row["KeyId"], "") for row in kms.list_keys()["Keys"]}

    def log_group_keys(self) -> set[str | None]:
        """Return the keys of all log groups."""
        return {row.get("kmsKeyId") for row in self.aws.client("logs").describe_log_groups()["logGroups"]}

    def topic_key(self) -> str | None:
        """Return the key of the one topic."""
        sns = self.aws.client("sns")
        (topic,) = sns.list_topics()["Topics"]
        found: str | None = sns.get_topic_attributes(TopicArn=topic["TopicArn"])["Attributes"].get("KmsMasterKeyId")
        return found or None

    def volumes(self) -> list[dict[str, Any]]:
        """Return the volumes of the one group."""
        (group,) = self.aws.client("sagemaker").describe_cluster(ClusterName="small")["InstanceGroups"]
        return [each["EbsVolumeConfig"] for each in group["InstanceStorageConfigs"]]

    def file_system(self) -> dict[str, Any]:
        """Return the newest file system."""
        rows = self.aws.client("fsx").describe_file_systems()["FileSystems"]
        return max(rows, key=lambda row: row["CreationTime"])


def write(folder: Path, **sections: Any) -> Path:
    """Write the small environment with further sections."""
    values = yaml.safe_load(SMALL)
    for name, section in sections.items():
        values[name] = {**values.get(name, {}), **section}
    file = folder / "small.yaml"
    file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    return file


@contextmanager
def living(folder: Path, **sections: Any) -> Iterator[Life]:
    """Yield an account that satisfies the file."""
    environment = load_environment(write(folder, **sections)).environment
    with embedded(satisfying(environment), is_hurried=True) as there:
        yield Life(Aws(there, folder), folder)


@pytest.mark.examples
def test_keys_are_made_for_what_stood_without(tmp_path: Path) -> None:
    with living(tmp_path) as life:
        life.deploy(notify=TOLD)
        assert list(life.keys().values()) == [""]  # of the secrets
        assert life.topic_key() is None
        before = life.file_system()["FileSystemId"]

        changes = life.deploy(encryption=dict.fromkeys(ALL, "create"), notify=TOLD)

        by_alias = {alias: arn for arn, alias in life.keys().items()}
        assert set(by_alias) == {
            "",
            *(f"alias/small-{each.replace('_', '-')}" for each in ALL[1:]),
        }
        volumes = by_alias["alias/small-node-volumes"]
        assert [(each.get("RootVolume"), each["VolumeKmsKeyId"]) for each in life.volumes()] == [
            (None, volumes),
            (True, volumes),
        ]
        assert life.log_group_keys() == {by_alias["alias/small-logs"]}
        assert life.topic_key() == by_alias["alias/small-notifications"]
        assert [each for each in changes["small-observability"] if "Topic" in each] == ["Modify AWS::SNS::Topic"]
        assert life.file_system()["KmsKeyId"] == by_alias["alias/small-file-systems"]
        assert life.file_system()["FileSystemId"] != before
        assert "Modify AWS::FSx::FileSystem replaced: True" in changes["small-storage"]
        assert [each for each in changes["small-foundation"] if "AWS::S3::Bucket" in each] == ["Modify AWS::S3::Bucket"]
        assert [each for each in changes["small-hyperpod"] if "Cluster" in each] == ["Modify AWS::SageMaker::Cluster"]


@pytest.mark.examples
def test_what_other_stacks_import_goes_in_one_deployment(tmp_path: Path) -> None:
    """The bucket gives way to one that is there, the OIDC provider goes with its operator: `cdk deploy` alone."""
    hyperpod = yaml.safe_load(SMALL)["hyperpod"]
    there = {**hyperpod, "lifecycle": {"existing_bucket": {"name": "sagemaker-scripts"}}}
    inference = {"inference": {"enabled": True}}
    with living(tmp_path, hyperpod=there, eks={"oidc_provider": True}, operators=inference) as life:
        life.deploy(eks={"oidc_provider": True}, operators=inference)
        providers = life.aws.client("iam").list_open_id_connect_providers
        assert len(providers()["OpenIDConnectProviderList"]) == 1

        changes = life.deploy()
        assert "Remove AWS::IAM::OIDCProvider" in changes["small-foundation"]
        assert providers()["OpenIDConnectProviderList"] == []

        changes = life.deploy(hyperpod=there)
        assert "Remove AWS::S3::Bucket" in changes["small-foundation"]
        cluster = life.aws.client("sagemaker").describe_cluster(ClusterName="small")
        sources = {group["LifeCycleConfig"]["SourceS3Uri"] for group in cluster["InstanceGroups"]}
        assert all(each.startswith("s3://sagemaker-scripts/") for each in sources)
        # the own one stays, with what it holds
        names = [row["Name"] for row in life.aws.client("s3").list_buckets()["Buckets"]]
        assert len([each for each in names if each.startswith("sagemaker-small-")]) == 1


@pytest.mark.examples
def test_keys_and_a_bucket_that_stand_are_used_and_stay_as_they_are(tmp_path: Path) -> None:
    sections = {
        "encryption": dict.fromkeys(("eks_secrets", "node_volumes", "file_systems", "logs"), KEY),
        "hyperpod": {
            **yaml.safe_load(SMALL)["hyperpod"],
            "lifecycle": {"existing_bucket": {"name": "sagemaker-scripts", "prefix": "a/b", "kms_key_arn": KEY}},
        },
    }
    with living(tmp_path, **sections) as life:
        kms, s3 = life.aws.client("kms"), life.aws.client("s3")
        policy = kms.get_key_policy(KeyId=KEY, PolicyName="default")["Policy"]
        life.deploy(**sections)

        assert life.keys() == {KEY: ""}
        assert kms.get_key_policy(KeyId=KEY, PolicyName="default")["Policy"] == policy
        assert life.log_group_keys() == {KEY}
        assert {each["VolumeKmsKeyId"] for each in life.volumes()} == {KEY}
        assert life.file_system()["KmsKeyId"] == KEY
        cluster = life.aws.client("eks").describe_cluster(name="small-eks")["cluster"]
        assert cluster["encryptionConfig"][0]["provider"] == {"keyArn": KEY}
        objects = [row["Key"] for row in s3.list_objects_v2(Bucket="sagemaker-scripts")["Contents"]]
        assert {each.rsplit("/", 1)[0].startswith("a/b/") for each in objects} == {True}
        assert any(each.endswith("/on_create.sh") for each in objects)
        assert [row["Name"] for row in s3.list_buckets()["Buckets"] if row["Name"].startswith("sagemaker-")] == [
            "sagemaker-scripts"
        ]
