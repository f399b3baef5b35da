"""Every shipped environment with customer managed keys and a permissions boundary: resources and dependencies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk import HyperPodChart
from hyperpod_cdk.config import Environment, load_environment
from hyperpod_cdk_stacks.environment import HyperPodEnvironment
from tests.support.assembly import ENVIRONMENTS, FEW, Synthesized, few_and_others, light_app, read_assembly

KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"

Changed = Callable[[dict[str, Any]], object]


Encrypted = Callable[[str], Synthesized]


@pytest.fixture(scope="module")
def encrypted(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Encrypted:
    """An environment by its name: those of FEW in one app, and all others, which costs a third of one app for each."""
    made: dict[str, Synthesized] = {}

    def of(name: str) -> Synthesized:
        if name not in made:
            together = [each for each in ENVIRONMENTS if (each in FEW) == (name in FEW)]
            app = light_app(tmp_path_factory.mktemp("encrypted"))
            environments = [changed(project / ENVIRONMENTS[each], with_everything) for each in together]
            for environment in environments:
                add(app, environment, project)
            app.synth()
            made.update({each.name: read_assembly(Path(app.outdir), each) for each in environments})
        return made[name]

    return of


@pytest.fixture(params=few_and_others())
def synthesized(request: pytest.FixtureRequest, encrypted: Encrypted) -> Synthesized:
    """Each of them in turn."""
    return encrypted(request.param)


@pytest.fixture(scope="module")
def named(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """The environment that ships, with one key that stands and a bucket of somebody else's."""
    app = light_app(tmp_path_factory.mktemp("named"))
    environment = changed(project / ENVIRONMENTS["prod"], with_named)
    add(app, environment, project)
    app.synth()
    return read_assembly(Path(app.outdir), environment)


def with_everything(values: dict[str, Any]) -> None:
    lustre = values.get("storage", {}).get("lustre", [])
    wanted = {"lifecycle_bucket": True, "logs": True, "eks_secrets": "existing" not in values.get("eks", {})}
    wanted["notifications"] = "notify" in values and "sns_topic_arn" not in values["notify"]
    wanted["node_volumes"] = values["hyperpod"].get("provisioning") != "all_or_nothing"
    wanted["file_systems"] = any({"existing", "deployment_type"}.isdisjoint(each) for each in lustre)
    values["encryption"] = {name: "create" for name, is_wanted in wanted.items() if is_wanted}
    values["hyperpod"]["provisioning"] = "continuous"  # HyperPod takes a key for volumes with no other
    values["permissions_boundary"] = f"arn:aws:iam::{values['account']}:policy/team/Boundary"


def with_named(values: dict[str, Any]) -> None:
    values["encryption"] = dict.fromkeys(("eks_secrets", "node_volumes", "file_systems", "logs"), KEY)
    bucket = {"name": "sagemaker-scripts", "prefix": "hyperpod/prod", "kms_key_arn": KEY}
    values["hyperpod"]["lifecycle"] = {"existing_bucket": bucket}


def changed(file: Path, change: Changed) -> Environment:
    values = yaml.safe_load(file.read_text(encoding="utf-8"))
    change(values)
    return load_environment(file, text=yaml.safe_dump(values, sort_keys=False)).environment


def add(app: Any, environment: Environment, project: Path) -> None:
    chart, scripts = HyperPodChart.placeholder(), project / "lifecycle_scripts"
    HyperPodEnvironment(app, environment.name, environment=environment, chart=chart, lifecycle_scripts=scripts)


def properties(synthesized: Synthesized, *types: str) -> list[dict[str, Any]]:
    return [synthesized.resource(node)["Properties"] for node in synthesized.of_type(*types)]


def test_every_role_of_every_environment_has_the_boundary(synthesized: Synthesized) -> None:
    """Those of CDK's own functions and those of the first level too: what has no boundary, IAM refuses to make."""
    boundary = synthesized.environment.permissions_boundary
    roles = properties(synthesized, "AWS::IAM::Role")
    assert roles
    assert {role.get("PermissionsBoundary") for role in roles} == {boundary}
    assert synthesized.of_type("AWS::IAM::User") == []


def test_every_log_group_of_every_environment_has_the_key(synthesized: Synthesized) -> None:
    name = f"{synthesized.environment.name}-foundation"
    (key,) = (node for node in synthesized.of_type("AWS::KMS::Key") if node[1].startswith("LogsKey"))
    assert key[0] == name
    groups = synthesized.of_type("AWS::Logs::LogGroup")
    assert len(groups) >= 4
    for group in groups:
        found = synthesized.resource(group)["Properties"]["KmsKeyId"]
        here = {"Fn::GetAtt": [key[1], "Arn"]}
        assert found == here if group[0] == name else str(found).startswith(f"{{'Fn::ImportValue': '{name}:"), group
        assert synthesized.waits_for(group, key)


def test_every_key_rotates_and_stays(synthesized: Synthesized) -> None:
    keys = synthesized.of_type("AWS::KMS::Key")
    environment = synthesized.environment.name
    # the one of the secrets has no alias
    own = 0 if synthesized.environment.eks.is_existing else 1
    aliases = sorted(alias["AliasName"] for alias in properties(synthesized, "AWS::KMS::Alias"))
    wanted = synthesized.environment.encryption.model_dump(exclude={"eks_secrets"}, exclude_none=True)
    assert aliases == sorted(f"alias/{environment}-{purpose.replace('_', '-')}" for purpose in wanted)
    assert len(keys) == len(aliases) + own
    for node in keys:
        resource = synthesized.resource(node)
        assert resource["Properties"]["EnableKeyRotation"] is True
        # what stays after a first deployment that failed keeps its key
        kept = "Retain" if node[1].startswith(("LogsKey", "LifecycleBucketKey")) else "RetainExceptOnCreate"
        assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == (kept, "Retain")


def test_keys_keep_their_logical_ids(encrypted: Encrypted) -> None:
    """Another id is another key, and what the old one encrypted is read by nobody who forgets it."""
    assert set(encrypted("prod").of_type("AWS::KMS::Key")) == {
        ("prod-foundation", "LogsKey195F8DFC"),
        ("prod-foundation", "ControlPlaneSecretsKey72FED211"),
        ("prod-foundation", "LifecycleBucketKey78EDAC3F"),
        ("prod-foundation", "NodeVolumesKey83FE03A3"),
        ("prod-storage", "FileSystemsKey69ECE703"),
    }


def test_the_gate_waits_for_the_key_of_its_logs(encrypted: Encrypted) -> None:
    prod = encrypted("prod")
    (gate,) = prod.of_type("Custom::HyperPodQuotaGate")
    (key,) = (node for node in prod.of_type("AWS::KMS::Key") if node[1].startswith("LogsKey"))
    assert prod.waits_for(gate, key)


def test_both_volumes_of_every_group_have_the_key_and_the_role_its_rights(encrypted: Encrypted) -> None:
    prod = encrypted("prod")
    (key,) = (node for node in prod.of_type("AWS::KMS::Key") if node[1].startswith("NodeVolumesKey"))
    arn = {"Fn::GetAtt": [key[1], "Arn"]}
    (cluster,) = properties(prod, "AWS::SageMaker::Cluster")
    for group in cluster["InstanceGroups"]:
        volumes = [each["EbsVolumeConfig"] for each in group["InstanceStorageConfigs"]]
        assert [volume.get("RootVolume", False) for volume in volumes] == [False, True]
        for volume in volumes:
            assert volume["VolumeKmsKeyId"]["Fn::ImportValue"].startswith(
                f"prod-foundation:ExportsOutputFnGetAtt{key[1]}Arn"
            )
    (policy,) = properties(prod, "AWS::IAM::ManagedPolicy")
    rights = [each for each in policy["PolicyDocument"]["Statement"] if "kms" in str(each["Action"])]
    assert [(each["Action"], each["Resource"]) for each in rights] == [
        (["kms:Decrypt"], [{"Fn::GetAtt": ["LifecycleBucketKey78EDAC3F", "Arn"]}]),
        (["kms:CreateGrant", "kms:DescribeKey"], [arn]),
    ]


def test_an_existing_key_is_used_everywhere_and_created_nowhere(named: Synthesized) -> None:
    assert named.of_type("AWS::KMS::Key", "AWS::KMS::Alias", "AWS::S3::Bucket", "AWS::S3::BucketPolicy") == []
    assert {group["KmsKeyId"] for group in properties(named, "AWS::Logs::LogGroup")} == {KEY}
    (eks,) = properties(named, "AWS::EKS::Cluster")
    assert eks["EncryptionConfig"][0]["Provider"] == {"KeyArn": KEY}
    (file_system,) = properties(named, "AWS::FSx::FileSystem")
    assert file_system["KmsKeyId"] == KEY
    (cluster,) = properties(named, "AWS::SageMaker::Cluster")
    volumes = [
        each["EbsVolumeConfig"] for group in cluster["InstanceGroups"] for each in group["InstanceStorageConfigs"]
    ]
    assert {volume["VolumeKmsKeyId"] for volume in volumes} == {KEY}
    (upload,) = properties(named, "Custom::CDKBucketDeployment")
    assert upload["DestinationBucketName"] == "sagemaker-scripts"
    assert (upload["RetainOnDelete"], upload["Prune"]) == (True, False)
    sources = {group["LifeCycleConfig"]["SourceS3Uri"] for group in cluster["InstanceGroups"]}
    assert sources == {f"s3://sagemaker-scripts/{upload['DestinationBucketKeyPrefix']}"}
    assert upload["DestinationBucketKeyPrefix"].startswith("hyperpod/prod/")
    (policy,) = properties(named, "AWS::IAM::ManagedPolicy")
    rights = [each for each in policy["PolicyDocument"]["Statement"] if "kms" in str(each["Action"])]
    assert [(each["Action"], each["Resource"]) for each in rights] == [
        (["kms:Decrypt"], [KEY]),
        (["kms:CreateGrant", "kms:DescribeKey"], [KEY]),
    ]
