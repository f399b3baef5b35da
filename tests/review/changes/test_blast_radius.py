"""What a change does to every resource, and that nothing grave is ever reported as less."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from hyperpod_cdk.catalog import create_only, updates
from hyperpod_cdk.catalog.updates import NO_CIRCUMSTANCES
from hyperpod_cdk.review.changes.blast_radius import blast_radius
from hyperpod_cdk.review.changes.effects import judge
from hyperpod_cdk.review.changes.excerpts import differing
from hyperpod_cdk.review.model import BlastRadius, Effect, PropertyEffect, ResourceEffect
from hyperpod_cdk.templates.assembly import EMPTY, Assembly, Stack, read_assembly
from hyperpod_cdk.templates.difference import MISSING, PropertyChange, apart, compare
from hyperpod_cdk_rehearsal.embedded.cloudformation.provision import Provisioner
from tests.support.assembly import ENVIRONMENTS, by_mapping, shipped
from tests.support.schemas import resource_schema
from tests.support.tables import row_by_row

if TYPE_CHECKING:
    from hyperpod_cdk_rehearsal.embedded.context import Context

CLUSTER = "AWS::SageMaker::Cluster"
EKS = "AWS::EKS::Cluster"
LUSTRE = "AWS::FSx::FileSystem"
VPC = "AWS::EC2::VPC"
SUBNET = "AWS::EC2::Subnet"
LUSTRE_LOST = (
    "its files are lost unless they are in a data repository or in a backup that a user created: automatic backups "
    "are deleted with it."
)
GRAVE = (CLUSTER, LUSTRE, EKS, VPC, SUBNET)
UPDATE_CLUSTER = (
    "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-cli-command-update-cluster.html"
)

Resources = dict[str, Any]


def stack(name: str, resources: Resources, **more: Any) -> Stack:
    return Stack(name=name, template={"Resources": resources, **more})


def assembly(*stacks: Stack) -> Assembly:
    return Assembly(environment="dev", stacks=stacks)


def one(resources: Resources, **sections: Any) -> Assembly:
    return assembly(stack("s", resources, **sections))


def resource(resource_type: str, attributes: dict[str, Any] | None = None, /, **properties: Any) -> dict[str, Any]:
    return {"Type": resource_type, "Properties": properties, **(attributes or {})}


def radius(base: Assembly, head: Assembly) -> BlastRadius:
    return blast_radius(base, head, compare(base, head))


def found(base: Assembly, head: Assembly, logical_id: str = "A") -> ResourceEffect:
    (effect,) = [each for each in radius(base, head).resources if each.logical_id == logical_id]
    return effect


def effects(base: Assembly, head: Assembly) -> dict[str, Effect]:
    return {f"{each.stack}/{each.logical_id}": each.effect for each in radius(base, head).resources}


def updated(resource_type: str, before: dict[str, Any], after: dict[str, Any]) -> ResourceEffect:
    return found(one({"A": resource(resource_type, **before)}), one({"A": resource(resource_type, **after)}))


def group(name: str = "h100", **properties: Any) -> dict[str, Any]:
    return {"InstanceGroupName": name, "InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, **properties}


def groups(*items: dict[str, Any]) -> dict[str, Any]:
    return {"ClusterName": "prod", "InstanceGroups": list(items)}


# every property

GROWS: dict[str, Any] = {"LustreConfiguration": {"DeploymentType": "SCRATCH_2"}}
FILE_SYSTEMS: list[tuple[dict[str, Any], Effect]] = [
    ({"FileSystemType": "LUSTRE"}, Effect.REFUSED),
    ({"FileSystemType": "LUSTRE", **GROWS}, Effect.IN_PLACE),
    ({"FileSystemType": "ONTAP"}, Effect.IN_PLACE),
    ({"LustreConfiguration": {"DeploymentType": "SCRATCH_1"}}, Effect.REFUSED),
]
UPLOADS: list[tuple[dict[str, Any], Effect]] = [
    ({}, Effect.IN_PLACE),
    ({"RetainOnDelete": True}, Effect.IN_PLACE),
    ({"RetainOnDelete": "true"}, Effect.IN_PLACE),
    ({"RetainOnDelete": False}, Effect.UNKNOWN),
]

GROUP_CHANGES = [
    ("InstanceType", "ml.p5.48xlarge", "ml.p5e.48xlarge", Effect.REFUSED),
    ("ExecutionRole", "arn:a", "arn:b", Effect.REFUSED),
    ("ThreadsPerCore", 1, 2, Effect.REFUSED),
    ("ThreadsPerCore", 2, MISSING, Effect.UNKNOWN),
    ("OverrideVpcConfig", {"Subnets": ["a"]}, {"Subnets": ["b"]}, Effect.REFUSED),
    ("OverrideVpcConfig", MISSING, {"Subnets": ["b"], "SecurityGroupIds": ["s"]}, Effect.REFUSED),
    ("CapacityRequirements", MISSING, {"Spot": {}}, Effect.REFUSED),
    ("InstanceRequirements", {"InstanceTypes": ["a"]}, {"InstanceTypes": ["a", "b"]}, Effect.IN_PLACE),
    ("InstanceRequirements", {"InstanceTypes": ["a", "b"]}, {"InstanceTypes": ["b"]}, Effect.REFUSED),
    ("InstanceCount", 2, 3, Effect.IN_PLACE),
    ("InstanceCount", 2, 1, Effect.INTERRUPTED),
    ("InstanceCount", "2", 10, Effect.IN_PLACE),
    ("InstanceCount", 2, {"Ref": "Count"}, Effect.UNKNOWN),
    ("MinInstanceCount", 1, 2, Effect.IN_PLACE),
    ("LifeCycleConfig", {"OnCreate": "a.sh"}, {"OnCreate": "b.sh"}, Effect.IN_PLACE),
    ("ImageReleaseVersion", "1.0.0", "1.0.1", Effect.INTERRUPTED),
    ("ImageId", "default", "ami-12345678", Effect.INTERRUPTED),
    ("TrainingPlanArn", MISSING, "arn:plan", Effect.UNKNOWN),
    ("TrainingPlanArn", "arn:plan", "arn:other", Effect.UNKNOWN),
    (
        "InstanceStorageConfigs",
        [{"EbsVolumeConfig": {"VolumeSizeInGB": 1}}],
        [{"EbsVolumeConfig": {"VolumeSizeInGB": 2}}],
        Effect.UNKNOWN,
    ),
    ("KubernetesConfig", {"Labels": {"a": "b"}}, {"Labels": {"a": "c"}}, Effect.IN_PLACE),
    ("KubernetesConfig", {"Labels": {"nvidia.com/mig.config": "a"}}, {"Labels": {}}, Effect.UNKNOWN),
    ("KubernetesConfig", MISSING, {"Labels": {"nvidia.com/mig.config": "a"}}, Effect.UNKNOWN),
    ("KubernetesConfig", MISSING, {"Taints": [{"Key": "a", "Effect": "NoSchedule"}]}, Effect.IN_PLACE),
    ("KubernetesConfig", MISSING, {"Taints": [{"Key": "a", "Effect": "NoExecute"}]}, Effect.UNKNOWN),
    ("KubernetesConfig", {"Taints": [{"Key": "a", "Effect": "NoExecute"}]}, MISSING, Effect.UNKNOWN),
    ("OnStartDeepHealthChecks", ["InstanceStress"], MISSING, Effect.UNKNOWN),
    ("AutoPatchConfig", MISSING, {"PatchingStrategy": "WhenIdle"}, Effect.IN_PLACE),
    ("NetworkInterface", MISSING, {"InterfaceType": "efa"}, Effect.UNKNOWN),
]


@row_by_row("list_name", ["InstanceGroups", "RestrictedInstanceGroups"])
@row_by_row("name, before, after, effect", GROUP_CHANGES)
def test_a_property_of_an_instance_group(name: str, before: Any, after: Any, effect: Effect, list_name: str) -> None:
    def cluster(value: Any) -> dict[str, Any]:
        item = group(**{name: value}) if value is not MISSING else group()
        return {"ClusterName": "prod", list_name: [item]}

    changed = updated(CLUSTER, cluster(before), cluster(after))
    assert changed.effect is effect
    (of_property,) = {each.path.split(".")[1] for each in changed.properties}
    assert of_property.partition("[")[0] == name
    assert all(each.path.startswith(f"{list_name}[h100].") for each in changed.properties)
    assert changed.summary.startswith("Instance group h100: ")


PROPERTIES: list[tuple[str, dict[str, Any], dict[str, Any], Effect]] = [
    (CLUSTER, {"ClusterName": "a"}, {"ClusterName": "b"}, Effect.REPLACED),
    (CLUSTER, {"VpcConfig": {"Subnets": ["a"]}}, {"VpcConfig": {"Subnets": ["a", "b"]}}, Effect.REPLACED),
    (CLUSTER, {"Orchestrator": {"Eks": {"ClusterArn": "a"}}}, {}, Effect.REPLACED),
    (CLUSTER, {"NodeRecovery": "Automatic"}, {"NodeRecovery": "None"}, Effect.IN_PLACE),
    (CLUSTER, {}, {"NodeProvisioningMode": "Continuous"}, Effect.UNKNOWN),
    (CLUSTER, {}, {"AutoScaling": {"Mode": "Enable"}}, Effect.IN_PLACE),
    (CLUSTER, {"ClusterRole": "a"}, {"ClusterRole": "b"}, Effect.IN_PLACE),
    (
        CLUSTER,
        {"ClusterRole": "a", "AutoScaling": {"Mode": "Enable"}},
        {"ClusterRole": "b", "AutoScaling": {"Mode": "Enable"}},
        Effect.REFUSED,
    ),
    (
        CLUSTER,
        {"ClusterRole": "a", "AutoScaling": {"Mode": "Disable"}},
        {"ClusterRole": "b", "AutoScaling": {"Mode": "Disable"}},
        Effect.IN_PLACE,
    ),
    # it goes along with autoscaling, which nobody refuses
    (CLUSTER, {"ClusterRole": "a", "AutoScaling": {"Mode": "Enable"}}, {}, Effect.UNKNOWN),
    (CLUSTER, {}, {"Tags": [{"Key": "a", "Value": "b"}]}, Effect.IN_PLACE),
    (EKS, {"Version": "1.33"}, {"Version": "1.34"}, Effect.IN_PLACE),
    (EKS, {"Version": "1.9"}, {"Version": "1.10"}, Effect.IN_PLACE),
    (EKS, {"Version": "1.33"}, {"Version": "1.35"}, Effect.REFUSED),
    (EKS, {"Version": "1.33"}, {"Version": "1.32"}, Effect.REFUSED),
    (EKS, {}, {"Version": "1.32"}, Effect.UNKNOWN),
    (EKS, {}, {"EncryptionConfig": [{"Resources": ["secrets"]}]}, Effect.REPLACED),
    (EKS, {"RoleArn": "a"}, {"RoleArn": "b"}, Effect.REPLACED),
    (
        EKS,
        {"ResourcesVpcConfig": {"SubnetIds": ["a"]}},
        {"ResourcesVpcConfig": {"SubnetIds": ["b"]}},
        # they may be of another VPC, or of other zones
        Effect.UNKNOWN,
    ),
    (
        EKS,
        {"AccessConfig": {"AuthenticationMode": "CONFIG_MAP"}},
        {"AccessConfig": {"AuthenticationMode": "API"}},
        Effect.REFUSED,
    ),
    (EKS, {}, {"AccessConfig": {"AuthenticationMode": "API_AND_CONFIG_MAP"}}, Effect.IN_PLACE),
    # Auto Mode ends with all of its nodes
    (EKS, {"ComputeConfig": {"Enabled": True}}, {"ComputeConfig": {"Enabled": False}}, Effect.INTERRUPTED),
    (EKS, {"ComputeConfig": {"Enabled": True}}, {}, Effect.UNKNOWN),
    (EKS, {"ComputeConfig": {"Enabled": {"Ref": "P"}}}, {"ComputeConfig": {"Enabled": False}}, Effect.UNKNOWN),
    (EKS, {}, {"ComputeConfig": {"Enabled": True, "NodePools": ["system"], "NodeRoleArn": "a"}}, Effect.IN_PLACE),
    (EKS, {}, {"ComputeConfig": {"Enabled": False}}, Effect.IN_PLACE),
    (EKS, {"ComputeConfig": {"NodeRoleArn": "a"}}, {"ComputeConfig": {"NodeRoleArn": "b"}}, Effect.REFUSED),
    (
        EKS,
        {"ResourcesVpcConfig": {"ControlPlaneEgressMode": "CUSTOMER_ROUTED"}},
        {"ResourcesVpcConfig": {"ControlPlaneEgressMode": "AWS_MANAGED"}},
        Effect.REFUSED,
    ),
    (
        EKS,
        {"AccessConfig": {"AuthenticationMode": "API"}},
        {"AccessConfig": {"AuthenticationMode": "API_AND_CONFIG_MAP"}},
        Effect.REFUSED,
    ),
    # a whole mapping that comes counts by what is in it
    (EKS, {}, {"AccessConfig": {"AuthenticationMode": "API"}}, Effect.REFUSED),
    (EKS, {}, {"AccessConfig": {"BootstrapClusterCreatorAdminPermissions": True}}, Effect.REPLACED),
    (EKS, {}, {"UpgradePolicy": {"SupportType": "STANDARD"}}, Effect.IN_PLACE),
    # the default of DeploymentType is SCRATCH_1, which does not grow (FSx API reference, UpdateFileSystem)
    (LUSTRE, {"StorageCapacity": 1200}, {"StorageCapacity": 2400}, Effect.REFUSED),
    (LUSTRE, {**GROWS, "StorageCapacity": 1200}, {**GROWS, "StorageCapacity": 2400}, Effect.IN_PLACE),
    (LUSTRE, {**GROWS, "StorageCapacity": 2400}, {**GROWS, "StorageCapacity": 1200}, Effect.REFUSED),
    (LUSTRE, {**GROWS, "StorageCapacity": 2400}, {**GROWS, "StorageCapacity": {"Ref": "Size"}}, Effect.UNKNOWN),
    *(
        (LUSTRE, {**of, "StorageCapacity": 2400}, {**of, "StorageCapacity": 4800}, effect)
        for of, effect in FILE_SYSTEMS
    ),
    (LUSTRE, {"SubnetIds": ["a"]}, {"SubnetIds": ["b"]}, Effect.REPLACED),
    (LUSTRE, {"KmsKeyId": "a"}, {}, Effect.REPLACED),
    (LUSTRE, {"FileSystemTypeVersion": "2.12"}, {"FileSystemTypeVersion": "2.15"}, Effect.IN_PLACE),
    (LUSTRE, {"FileSystemTypeVersion": "2.15"}, {"FileSystemTypeVersion": "2.12"}, Effect.REFUSED),
    *(
        (LUSTRE, {"LustreConfiguration": before}, {"LustreConfiguration": after}, effect)
        for before, after, effect in [
            ({"DeploymentType": "SCRATCH_2"}, {"DeploymentType": "PERSISTENT_2"}, Effect.REPLACED),
            ({"CopyTagsToBackups": True}, {}, Effect.REPLACED),
            ({"PerUnitStorageThroughput": 250}, {"PerUnitStorageThroughput": 125}, Effect.IN_PLACE),
            (
                {"EfaEnabled": True, "PerUnitStorageThroughput": 250},
                {"EfaEnabled": True, "PerUnitStorageThroughput": 500},
                Effect.REFUSED,
            ),
            ({"ThroughputCapacity": 8000}, {"ThroughputCapacity": 4000}, Effect.REFUSED),
            ({"EfaEnabled": False}, {"EfaEnabled": True}, Effect.REFUSED),
            ({"MetadataConfiguration": {"Iops": 12000}}, {"MetadataConfiguration": {"Iops": 6000}}, Effect.REFUSED),
            (
                {"MetadataConfiguration": {"Mode": "AUTOMATIC"}},
                {"MetadataConfiguration": {"Mode": "USER_PROVISIONED"}},
                Effect.IN_PLACE,
            ),
            ({"AutomaticBackupRetentionDays": 7}, {"AutomaticBackupRetentionDays": 30}, Effect.IN_PLACE),
            ({"AutomaticBackupRetentionDays": 7}, {"AutomaticBackupRetentionDays": 0}, Effect.UNKNOWN),
            ({"DataCompressionType": "NONE"}, {"DataCompressionType": "LZ4"}, Effect.IN_PLACE),
            ({"ImportPath": "s3://a"}, {"ImportPath": "s3://b"}, Effect.REPLACED),
        ]
    ),
    ("AWS::EKS::Addon", {"AddonVersion": "v1"}, {"AddonVersion": "v2"}, Effect.IN_PLACE),
    ("AWS::EKS::Addon", {"AddonName": "a"}, {"AddonName": "b"}, Effect.REPLACED),
    ("AWS::EKS::PodIdentityAssociation", {"RoleArn": "a"}, {"RoleArn": "b"}, Effect.IN_PLACE),
    ("AWS::EKS::Nodegroup", {"ReleaseVersion": "1"}, {"ReleaseVersion": "2"}, Effect.INTERRUPTED),
    (VPC, {"InstanceTenancy": "default"}, {"InstanceTenancy": "dedicated"}, Effect.REPLACED),
    (VPC, {"InstanceTenancy": "dedicated"}, {"InstanceTenancy": "default"}, Effect.IN_PLACE),
    (VPC, {"InstanceTenancy": "dedicated"}, {}, Effect.IN_PLACE),
    (VPC, {}, {"EnableDnsSupport": False}, Effect.IN_PLACE),
    (VPC, {"EnableDnsHostnames": True}, {"EnableDnsHostnames": False}, Effect.IN_PLACE),
    (VPC, {}, {"EnableDnsHostnames": False}, Effect.IN_PLACE),
    ("AWS::Logs::LogGroup", {"RetentionInDays": 30}, {"RetentionInDays": 365}, Effect.IN_PLACE),
    ("AWS::Logs::LogGroup", {"RetentionInDays": 30}, {"RetentionInDays": 7}, Effect.UNKNOWN),
    ("AWS::Logs::LogGroup", {}, {"RetentionInDays": 7}, Effect.UNKNOWN),
    ("AWS::S3::Bucket", {}, {"LifecycleConfiguration": {"Rules": [{"ExpirationInDays": 1}]}}, Effect.UNKNOWN),
    ("AWS::S3::Bucket", {"LifecycleConfiguration": {"Rules": []}}, {}, Effect.IN_PLACE),
    ("AWS::EC2::SecurityGroup", {"GroupDescription": "a"}, {"GroupDescription": "b"}, Effect.REPLACED),
    ("AWS::EC2::Instance", {"InstanceType": "a"}, {"InstanceType": "b"}, Effect.INTERRUPTED),
    ("AWS::KMS::Key", {"KeyPolicy": {"a": 1}}, {"KeyPolicy": {"a": 2}}, Effect.IN_PLACE),
    ("AWS::KMS::Key", {"Enabled": True}, {"Enabled": False}, Effect.IN_PLACE),
    ("AWS::IAM::Role", {"RoleName": "a"}, {"RoleName": "b"}, Effect.REPLACED),
    ("AWS::S3::Bucket", {"BucketName": "a"}, {"BucketName": "b"}, Effect.REPLACED),
    ("AWS::Lambda::Function", {"Handler": "a"}, {"Handler": "b"}, Effect.IN_PLACE),
    ("AWS::CloudFormation::Stack", {"TemplateURL": "a"}, {"TemplateURL": "b"}, Effect.UNKNOWN),
    ("AWS::CloudFormation::CustomResource", {"P": 1}, {"P": 2}, Effect.UNKNOWN),
    ("Custom::SomebodyElses", {"P": 1}, {"P": 2}, Effect.UNKNOWN),
    ("Custom::SomebodyElses", {"ServiceToken": "a"}, {"ServiceToken": "b"}, Effect.REFUSED),
    ("Custom::HyperPodQuotaGate", {"Requirements": []}, {"Requirements": ["a"]}, Effect.IN_PLACE),
    ("Custom::HyperPodQuotaGate", {"ServiceToken": "a"}, {"ServiceToken": "b"}, Effect.REFUSED),
    ("Custom::ComputeQuota", {"Name": "a"}, {"Name": "b"}, Effect.REPLACED),
    ("Custom::ComputeQuota", {"ActivationState": "Enabled"}, {"ActivationState": "Disabled"}, Effect.UNKNOWN),
    ("Custom::AWSCDK-EKS-HelmChart", {"Version": "1"}, {"Version": "2"}, Effect.UNKNOWN),
    ("Custom::AWSCDK-EKS-HelmChart", {"Timeout": "1s"}, {"Timeout": "2s"}, Effect.IN_PLACE),
    (
        "Custom::AWSCDK-EKS-KubernetesResource",
        {"Manifest": '[{"kind":"Namespace"},{"kind":"Deployment"}]'},
        {"Manifest": '[{"kind":"Namespace","a":1},{"kind":"Deployment"}]'},
        Effect.IN_PLACE,
    ),
    (
        "Custom::AWSCDK-EKS-KubernetesResource",
        {"Manifest": '[{"kind":"PersistentVolume","spec":{"capacity":1}}]'},
        {"Manifest": '[{"kind":"PersistentVolume","spec":{"capacity":2}}]'},
        Effect.IN_PLACE,
    ),
    (
        "Custom::AWSCDK-EKS-KubernetesResource",
        {"Manifest": '[{"kind":"PersistentVolume","spec":{"csi":1}}]'},
        {"Manifest": '[{"kind":"PersistentVolume","spec":{"csi":2}}]'},
        Effect.UNKNOWN,
    ),
    ("Custom::AWSCDK-EKS-KubernetesResource", {"Manifest": "a"}, {"Manifest": "b"}, Effect.UNKNOWN),
    (
        "Custom::AWSCDK-EKS-KubernetesResource",
        {"Manifest": '[{"kind":"Deployment"}]'},
        {"Manifest": '[{"kind":"Deployment","a":1}]'},
        Effect.UNKNOWN,
    ),
    # Karpenter disrupts nodes that drift from their node pool and class
    (
        "Custom::AWSCDK-EKS-KubernetesResource",
        {"Manifest": '[{"kind":"HyperpodNodeClass","spec":["a","b"]}]'},
        {"Manifest": '[{"kind":"HyperpodNodeClass","spec":["a"]}]'},
        Effect.UNKNOWN,
    ),
    (
        "Custom::AWSCDK-EKS-KubernetesResource",
        {"PruneLabel": "p", "Manifest": '[{"kind":"Namespace"},{"kind":"ConfigMap"}]'},
        {"PruneLabel": "p", "Manifest": '[{"kind":"ConfigMap"}]'},
        Effect.UNKNOWN,
    ),
    (
        "Custom::AWSCDK-EKS-KubernetesResource",
        {"PruneLabel": "p", "Manifest": '[{"kind":"Namespace"}]'},
        {"PruneLabel": "p", "Manifest": '[{"kind":"ConfigMap"},{"kind":"Namespace"}]'},
        Effect.IN_PLACE,
    ),
    (
        "Custom::AWSCDK-EKS-KubernetesResource",
        {"Manifest": '[{"kind":"Namespace"},{"kind":"ConfigMap"}]'},
        {"Manifest": '[{"kind":"ConfigMap"}]'},
        Effect.IN_PLACE,
    ),
    *(
        (
            "Custom::CDKBucketDeployment",
            {**of, "DestinationBucketKeyPrefix": "a"},
            {**of, "DestinationBucketKeyPrefix": "b"},
            effect,
        )
        for of, effect in UPLOADS
    ),
    ("Custom::CDKBucketDeployment", {"SourceObjectKeys": ["a"]}, {"SourceObjectKeys": ["b"]}, Effect.IN_PLACE),
    ("MyCompany::Some::Thing", {"P": 1}, {"P": 2}, Effect.UNKNOWN),
]


@row_by_row("resource_type, before, after, effect", PROPERTIES)
def test_a_property(resource_type: str, before: dict[str, Any], after: dict[str, Any], effect: Effect) -> None:
    assert updated(resource_type, before, after).effect is effect


@row_by_row("resource_type, before, after, effect", PROPERTIES)
def test_a_property_that_a_mapping_states(
    resource_type: str, before: dict[str, Any], after: dict[str, Any], effect: Effect
) -> None:
    def of(properties: dict[str, Any]) -> Assembly:
        stated: dict[str, Any] = {}
        return one({"A": resource(resource_type, **by_mapping(properties, stated))}, Mappings={"Stated": stated})

    assert found(of(before), of(after)).effect is effect


def properties(resource_type: str) -> Iterator[tuple[str, ...]]:
    """Every create-only property, as the schema itself lists them."""
    for pointer in resource_schema(resource_type)["createOnlyProperties"]:
        yield tuple(pointer.removeprefix("/properties/").split("/"))


@row_by_row("resource_type, path", [(each, path) for each in GRAVE for path in properties(each)], ids=str)
@row_by_row("before, after", [("a", "b"), (MISSING, "a"), ("a", MISSING), ({"x": 1}, MISSING)])
def test_a_create_only_property_is_never_reported_as_less_than_replaced(
    resource_type: str, path: tuple[str, ...], before: Any, after: Any
) -> None:
    def with_value(value: Any) -> dict[str, Any]:
        for step in reversed(path):
            value = {step: value} if value is not MISSING else {}
        return value if isinstance(value, dict) else {}

    for outer in (with_value, lambda value: {path[0]: with_value(value).get(path[0], {})}):
        changed = updated(resource_type, outer(before), outer(after))
        assert changed.effect in (Effect.REPLACED, Effect.REFUSED)
        assert changed.stateful


def test_every_property_that_ships_is_replaced_where_the_embedded_cloudformation_replaces(assemblies: Path) -> None:
    base = read(assemblies, "prod")
    provisioner = Provisioner(cast("Context", SimpleNamespace(region="us-east-1")), lambda _type: None)
    beyond_the_schema = {(LUSTRE, "LustreConfiguration.DeploymentType")}
    judged = 0
    for each in base.resources():
        for path, value in leaves(dict(each.properties)):
            change = PropertyChange(steps=path, before=value, after="another")
            effect = judge(base, base, each.type, change, NO_CIRCUMSTANCES).effect
            decision = provisioner.replacement(each.type, change.schema_path)
            where = (each.type, change.path)
            if decision == "always":
                assert effect in (Effect.REPLACED, Effect.REFUSED), where
            elif where not in beyond_the_schema:
                assert effect is not Effect.REPLACED, where
            judged += 1
    assert judged > 300


def test_every_property_that_this_project_emits_has_a_row(assemblies: Path) -> None:
    """Of every type, in every environment that ships: create-only by its schema, or told by the table."""
    emitted: set[tuple[str, tuple[str, ...]]] = set()
    for name in ENVIRONMENTS:
        for template in shipped(assemblies, name).templates.values():
            for body in template.get("Resources", {}).values():
                found = leaves(body.get("Properties", {}))
                emitted |= {
                    (body["Type"], tuple(step for step in steps if step[0] != "["))
                    for steps, _ in found
                    if steps[0] != "ServiceToken"
                }
    assert len(emitted) > 300
    without_effect = []
    for resource_type, path in sorted(emitted):
        rule = create_only.update_rule(resource_type)
        if rule is not None and rule.is_create_only(path):
            continue
        if all(updates.update(resource_type, path, *sides) is None for sides in (("a", "b"), (None, "b"), ("a", None))):
            without_effect.append((resource_type, ".".join(path)))
    assert without_effect == []


SET_AGAIN = (
    "The update also sets the group to the size of the template, however it has been scaled: instances above it are "
    "terminated; IgnoreUnmodifiedGroupSizeProperties in its UpdatePolicy leaves the size alone."
)
IGNORING = {"UpdatePolicy": {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": "true"}}}
SCHEDULE = resource("AWS::AutoScaling::ScheduledAction", AutoScalingGroupName={"Ref": "A"})


@row_by_row(
    "row",
    [
        ({}, {"MinSize": "1", "MaxSize": "9", "DesiredCapacity": "3"}, {}, [("DesiredCapacity", "3", "3 (set again)")]),
        # as many as there may be, and no fewer: nobody scales it
        ({}, {"MinSize": "3", "MaxSize": "3", "DesiredCapacity": "3"}, {}, []),
        # an update leaves alone what the template does not state
        ({}, {"MinSize": "1", "MaxSize": "9"}, {}, []),
        # a schedule changes the bounds, too
        ({}, {"MinSize": "1", "MaxSize": "1"}, {"B": SCHEDULE}, [("MinSize", "1", "1 (set again)")]),
        (IGNORING, {"MinSize": "1", "MaxSize": "9", "DesiredCapacity": "3"}, {"B": SCHEDULE}, []),
    ],
)
def test_any_update_of_an_auto_scaling_group_sets_its_size_again(row: tuple[Any, ...]) -> None:
    attributes, sizes, others, said = row

    def of(cooldown: str, **more: Any) -> Assembly:
        scaled = resource("AWS::AutoScaling::AutoScalingGroup", {**attributes, **more}, Cooldown=cooldown, **sizes)
        return one({"A": scaled, **others})

    changes = [each for each in found(of("1"), of("2")).properties if each.path != "Cooldown"]
    assert [(each.path, each.before, each.after) for each in changes] == said
    assert {(each.effect, each.reason, each.interrupts) for each in changes} <= {(Effect.IN_PLACE, SET_AGAIN, True)}
    # what only CloudFormation reads asks the service for nothing
    only = found(of("1"), of("1", DeletionPolicy="Retain"))
    assert [each.path for each in only.properties] == ["DeletionPolicy"]


def test_a_silent_schema_is_unknown_where_something_can_be_lost() -> None:
    silent = updated("AWS::SNS::Topic", {"ArchivePolicy": "a"}, {"ArchivePolicy": "b"})
    assert (silent.effect, silent.stateful) == (Effect.UNKNOWN, True)
    assert [each.reason for each in silent.properties] == [
        "Its schema lets CloudFormation update it, and this table does not contain what the service then does."
    ]
    unjudged = updated("AWS::Neptune::DBCluster", {"BackupRetentionPeriod": 7}, {"BackupRetentionPeriod": 1})
    assert (unjudged.effect, unjudged.stateful) == (Effect.UNKNOWN, True)
    settings = updated("AWS::Events::EventBus", {"Description": "a"}, {"Description": "b"})
    assert (settings.effect, settings.stateful) == (Effect.IN_PLACE, False)


TEMPLATE_VERSION = {"Fn::GetAtt": ["T", "LatestVersionNumber"]}
OF_TEMPLATE = {"LaunchTemplate": {"Id": {"Ref": "T"}, "Version": TEMPLATE_VERSION}}
OF_GROUP = {"LaunchTemplate": {"LaunchTemplateId": {"Ref": "T"}, "Version": TEMPLATE_VERSION}}
ROLLING: dict[str, Any] = {"UpdatePolicy": {"AutoScalingRollingUpdate": {}}}


@pytest.mark.parametrize(
    ("user", "effect"),
    [
        (resource("AWS::EKS::Nodegroup", **OF_TEMPLATE), Effect.INTERRUPTED),
        (resource("AWS::AutoScaling::AutoScalingGroup", ROLLING, **OF_GROUP), Effect.INTERRUPTED),
        (resource("AWS::AutoScaling::AutoScalingGroup", **OF_GROUP), Effect.UNKNOWN),
        (resource("AWS::EC2::Instance", **OF_GROUP), Effect.REPLACED),
        # the name of the template stays what it is, and so does what asks for nothing but that
        (resource("AWS::EKS::Nodegroup", LaunchTemplate={"Id": {"Ref": "T"}, "Version": "1"}), None),
    ],
)
def test_who_uses_a_launch_templates_version(user: dict[str, Any], effect: Effect | None) -> None:
    """EKS user guide: another version of the launch template replaces the nodes of a managed node group."""
    base, head = (
        one({"T": resource("AWS::EC2::LaunchTemplate", LaunchTemplateData={"ImageId": image}), "U": user})
        for image in ("ami-1", "ami-2")
    )
    assert effects(base, head) == {"s/T": Effect.IN_PLACE} | ({"s/U": effect} if effect else {})


def test_who_uses_a_launch_templates_version_through_an_export() -> None:
    def of(image: str) -> Assembly:
        outputs = {"O": {"Value": TEMPLATE_VERSION, "Export": {"Name": "version"}}}
        template = {"T": resource("AWS::EC2::LaunchTemplate", LaunchTemplateData={"ImageId": image})}
        group = resource("AWS::EKS::Nodegroup", LaunchTemplate={"Version": {"Fn::ImportValue": "version"}})
        return assembly(stack("one", template, Outputs=outputs), stack("two", {"U": group}))

    assert effects(of("ami-1"), of("ami-2")) == {"one/T": Effect.IN_PLACE, "two/U": Effect.INTERRUPTED}


@pytest.mark.parametrize(
    ("value", "parameters", "effect"),
    [
        ({"Fn::GetAtt": ["P", "Value"]}, {}, Effect.REPLACED),
        ("{{resolve:ssm:/ami}}", {}, Effect.UNKNOWN),
        (
            {"Ref": "Image"},
            {"Image": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/ami"}},
            Effect.UNKNOWN,
        ),
        ("{{resolve:ssm:/ami:3}}", {}, None),
        ("{{resolve:ssm:/other}}", {}, None),
    ],
)
def test_who_reads_a_parameter_that_changes(value: Any, parameters: dict[str, Any], effect: Effect | None) -> None:
    base, head = (
        one(
            {
                "P": resource("AWS::SSM::Parameter", Name="/ami", Value=image),
                "U": resource("AWS::EC2::Instance", ImageId=value),
            },
            Parameters=parameters,
        )
        for image in ("ami-1", "ami-2")
    )
    assert effects(base, head) == {"s/P": Effect.UNKNOWN} | ({"s/U": effect} if effect else {})


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ({}, ""),
        (
            {"U": resource("AWS::Lambda::Function", Environment={"Variables": {"P": {"Ref": "P"}}})},
            "; here U (s) does or",
        ),
        ({"U": resource("AWS::EC2::Instance", ImageId="{{resolve:ssm:/ami}}")}, "; here U (s) does or has its name"),
        ({"U": resource("AWS::EC2::Instance", ImageId="{{resolve:ssm:/ami:3}}")}, ""),
        (
            {name: resource("AWS::SNS::Topic", DisplayName={"Ref": "P"}) for name in "ABCDE"},
            "; here A (s), B (s), C (s) and 2 more do or have its name",
        ),
    ],
)
def test_who_is_given_the_name_of_a_parameter_that_changes(users: dict[str, Any], said: str) -> None:
    base, head = (
        one({"P": resource("AWS::SSM::Parameter", Name="/ami", Value=value), **users}) for value in ("1", "2")
    )
    (found,) = (each for each in blast_radius(base, head, compare(base, head)).resources if each.logical_id == "P")
    (change,) = found.properties
    reason = "Readers get the other value from their next read on, and the templates do not show all readers"
    assert change.reason.startswith(f"{reason}{said}" if said else f"{reason}.")


@pytest.mark.parametrize(
    ("image", "interrupts"),
    [("resolve:ssm:/ami", True), ("resolve:ssm:/ami:3", False), ("resolve:ssm:/other", False), ("ami-1", False)],
)
def test_an_image_that_is_looked_up_for_each_instance(image: str, interrupts: bool) -> None:  # noqa: FBT001 - a table's column
    """EC2 Auto Scaling user guide: a launch template with ``resolve:ssm:`` needs no new version for another image."""
    base, head = (
        one(
            {
                "P": resource("AWS::SSM::Parameter", Name="/ami", Value=value),
                "T": resource("AWS::EC2::LaunchTemplate", LaunchTemplateData={"ImageId": image, "KeyName": image}),
            }
        )
        for value in ("ami-1", "ami-2")
    )
    told = [each for each in blast_radius(base, head, compare(base, head)).resources if each.logical_id == "T"]
    assert [(each.effect, [(one.path, one.interrupts) for one in each.properties]) for each in told] == (
        [(Effect.IN_PLACE, [("LaunchTemplateData.ImageId", True)])] if interrupts else []
    )


@pytest.mark.parametrize(
    ("capacity", "effect"),
    [(4800, Effect.IN_PLACE), (7200, Effect.REFUSED), ({"Ref": "Size"}, Effect.UNKNOWN)],
    ids=["alone", "with storage", "with storage that is not known"],
)
def test_metadata_and_storage_do_not_grow_together(capacity: object, effect: Effect) -> None:
    """FSx user guide, "Managing metadata performance"."""

    def of(size: object, iops: int) -> dict[str, Any]:
        settings = {
            "DeploymentType": "PERSISTENT_2",
            "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": iops},
        }
        return {"FileSystemType": "LUSTRE", "StorageCapacity": size, "LustreConfiguration": settings}

    assert updated(LUSTRE, of(4800, 6000), of(capacity, 12_000)).effect is effect


def test_a_replacement_is_spared_what_updates_would_refuse() -> None:
    """No UpdateFileSystem is called of a file system that is made anew."""
    before = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250, "EfaEnabled": True}
    changed = updated(
        LUSTRE,
        {"FileSystemType": "LUSTRE", "StorageCapacity": 19200, "LustreConfiguration": before},
        {"FileSystemType": "LUSTRE", "StorageCapacity": 2400, "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}},
    )
    assert changed.effect is Effect.REPLACED
    assert {each.path: each.effect for each in changed.properties} == {
        "LustreConfiguration.DeploymentType": Effect.REPLACED,
        "LustreConfiguration.PerUnitStorageThroughput": Effect.IN_PLACE,
        "LustreConfiguration.EfaEnabled": Effect.IN_PLACE,
        "StorageCapacity": Effect.IN_PLACE,
    }


def leaves(value: Any, steps: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and value and not (len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref"))):
        for key, item in value.items():
            yield from leaves(item, (*steps, key))
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from leaves(item, (*steps, f"[{index}]"))
    elif steps:
        yield steps, value


def read(assemblies: Path, name: str) -> Assembly:
    shipped(assemblies, name)
    return read_assembly(assemblies / name, name)


# whole instance groups


def test_the_refused_change_of_a_group_is_reported_in_words() -> None:
    changed = updated(CLUSTER, groups(group()), groups(group(InstanceType="ml.p5e.48xlarge")))
    assert changed == ResourceEffect(
        stack="s",
        logical_id="A",
        type=CLUSTER,
        name="A",
        effect=Effect.REFUSED,
        stateful=True,
        summary="Instance group h100: InstanceType ml.p5.48xlarge -> ml.p5e.48xlarge is refused: "
        "UpdateCluster cannot change it; give the group a new name.",
        properties=(
            PropertyEffect(
                path="InstanceGroups[h100].InstanceType",
                before="ml.p5.48xlarge",
                after="ml.p5e.48xlarge",
                effect=Effect.REFUSED,
                reason="UpdateCluster cannot change it; give the group a new name.",
                source=UPDATE_CLUSTER,
            ),
        ),
    )


def test_a_renamed_group_is_one_that_goes_and_one_that_comes() -> None:
    changed = updated(CLUSTER, groups(group()), groups(group("h100-b")))
    assert changed.effect is Effect.INTERRUPTED
    assert [(each.path, each.before, each.after, each.effect) for each in changed.properties] == [
        ("InstanceGroups[h100]", "2 x ml.p5.48xlarge", None, Effect.DELETED),
        ("InstanceGroups[h100-b]", None, "2 x ml.p5.48xlarge", Effect.ADDED),
    ]
    assert changed.summary == (
        "Instance group h100 (2 x ml.p5.48xlarge) is deleted: a group that is omitted is deleted with its nodes and "
        "all data on their volumes; instance group h100-b (2 x ml.p5.48xlarge) is added: UpdateCluster adds the "
        "group and launches its nodes."
    )


@pytest.mark.parametrize(
    ("before", "after", "effect", "shown"),
    [
        (groups(group(), group("b")), groups(group()), Effect.INTERRUPTED, "2 x ml.p5.48xlarge"),
        (groups(group(), group("b", InstanceCount=0)), groups(group()), Effect.IN_PLACE, "0 x ml.p5.48xlarge"),
        (groups(group(), group("b")), groups(), Effect.INTERRUPTED, "2 x ml.p5.48xlarge"),
        (groups(group("b")), {"ClusterName": "prod"}, Effect.INTERRUPTED, "2 x ml.p5.48xlarge"),
        (
            groups(group(), group("b", InstanceCount={"Ref": "N"})),
            groups(group()),
            Effect.INTERRUPTED,
            "${N} x ml.p5.48xlarge",
        ),
        (
            groups(
                {"InstanceGroupName": "b", "InstanceCount": 3, "InstanceRequirements": {"InstanceTypes": ["x", "y"]}}
            ),
            groups(),
            Effect.INTERRUPTED,
            "3 x x or y",
        ),
    ],
)
def test_a_group_that_is_left_out(before: Any, after: Any, effect: Effect, shown: str) -> None:
    changed = updated(CLUSTER, before, after)
    assert (changed.effect, changed.is_certain) == (effect, "${N}" not in shown)
    assert ("InstanceGroups[b]", shown, None) in [(each.path, each.before, each.after) for each in changed.properties]


@pytest.mark.parametrize("count", [0, 2])
def test_a_restricted_group_that_is_left_out_takes_its_file_system_along(count: int) -> None:
    before = {"ClusterName": "prod", "RestrictedInstanceGroups": [group(InstanceCount=count)]}
    changed = updated(CLUSTER, before, {"ClusterName": "prod"})
    assert changed.effect is Effect.INTERRUPTED
    (of_group,) = changed.properties
    assert of_group.reason == (
        "A restricted group that is omitted is deleted with its nodes, and with the file system that the service "
        "created for it, unless a deletion policy keeps that."
    )


def test_a_group_at_0_has_nodes_where_karpenter_adds_them() -> None:
    scaled = {"AutoScaling": {"Mode": "Enable"}}
    changed = updated(
        CLUSTER, {**groups(group(), group("b", InstanceCount=0)), **scaled}, {**groups(group()), **scaled}
    )
    assert changed.effect is Effect.INTERRUPTED
    assert [each.reason for each in changed.properties] == [
        "A group that is omitted is deleted with the nodes that Karpenter has added to it."
    ]


def test_any_update_of_an_autoscaled_cluster_sends_the_counts_of_its_template() -> None:
    """Karpenter's nodes are not in a literal 0, and UpdateCluster brings a group to what it is given."""

    def cluster(recovery: str, **more: Any) -> dict[str, Any]:
        counted = groups(group("a", InstanceCount=0), group("b"), group("c", InstanceCount={"Ref": "N"}))
        return {**counted, "NodeRecovery": recovery, **more}

    scaled = {"AutoScaling": {"Mode": "Enable"}}
    changed = updated(CLUSTER, cluster("Automatic", **scaled), cluster("None", **scaled))
    assert [(each.path, each.before, each.after, each.effect) for each in changed.properties] == [
        ("InstanceGroups[a].InstanceCount", "0", "0", Effect.UNKNOWN),
        ("NodeRecovery", "Automatic", "None", Effect.IN_PLACE),
    ]
    assert changed.effect is Effect.UNKNOWN
    assert updated(CLUSTER, cluster("Automatic"), cluster("None")).effect is Effect.IN_PLACE


GIVEN: dict[str, Any] = {
    "Parameters": {"Type": {"Type": "String", "Default": "SCRATCH_1"}, "Asked": {"Type": "String"}},
    "Mappings": {"Types": {"dev": {"Type": "SCRATCH_1"}}},
    "Conditions": {
        "Old": {"Fn::Equals": [{"Ref": "Type"}, "SCRATCH_1"]},
        "Asked": {"Fn::Equals": [{"Ref": "Asked"}, "x"]},
    },
}
ON = {"WillReplace": True}


@pytest.mark.parametrize(
    "stated",
    [
        "SCRATCH_1",
        {"Ref": "Type"},
        {"Fn::FindInMap": ["Types", "dev", "Type"]},
        {"Fn::If": ["Old", "SCRATCH_1", "SCRATCH_2"]},
    ],
)
def test_a_circumstance_that_a_function_states(stated: Any) -> None:
    def of(capacity: int) -> Assembly:
        configuration = {"DeploymentType": stated}
        return one({"A": resource(LUSTRE, StorageCapacity=capacity, LustreConfiguration=configuration)}, **GIVEN)

    assert found(of(1200), of(2400)).effect is Effect.REFUSED


@pytest.mark.parametrize(
    ("policy", "effect", "may"),
    [
        ({"AutoScalingReplacingUpdate": ON}, Effect.REPLACED, False),
        ({"AutoScalingReplacingUpdate": {"WillReplace": {"Fn::If": ["Old", True, False]}}}, Effect.REPLACED, False),
        ({"AutoScalingReplacingUpdate": {"WillReplace": {"Fn::If": ["Old", False, True]}}}, Effect.UNKNOWN, False),
        # what only the deployment knows may be
        ({"AutoScalingReplacingUpdate": {"WillReplace": {"Fn::If": ["Asked", True, False]}}}, Effect.UNKNOWN, True),
        ({"AutoScalingReplacingUpdate": {"Fn::If": ["Asked", ON, {"Ref": "AWS::NoValue"}]}}, Effect.UNKNOWN, True),
        ({"Fn::If": ["Asked", {"AutoScalingReplacingUpdate": ON}, {"Ref": "AWS::NoValue"}]}, Effect.UNKNOWN, True),
        ({"Fn::If": ["Old", {"Ref": "AWS::NoValue"}, {"AutoScalingReplacingUpdate": ON}]}, Effect.UNKNOWN, False),
    ],
)
def test_an_update_policy_that_a_condition_states(policy: Any, effect: Effect, *, may: bool) -> None:
    def of(version: str) -> Assembly:
        template = {"LaunchTemplateId": "lt", "Version": version}
        group_ = resource("AWS::AutoScaling::AutoScalingGroup", {"UpdatePolicy": policy}, LaunchTemplate=template)
        return one({"A": group_}, **GIVEN)

    changed = found(of("1"), of("2"))
    assert changed.effect is effect
    assert ("possibly" in changed.summary) is may


@pytest.mark.parametrize(
    ("autoscaling", "effect"),
    [
        ({"Mode": "Enable"}, Effect.UNKNOWN),
        ({"Fn::If": ["Old", {"Mode": "Enable"}, {"Ref": "AWS::NoValue"}]}, Effect.UNKNOWN),
        ({"Fn::If": ["Asked", {"Mode": "Enable"}, {"Ref": "AWS::NoValue"}]}, Effect.UNKNOWN),
        ({"Fn::If": ["Old", {"Ref": "AWS::NoValue"}, {"Mode": "Enable"}]}, Effect.IN_PLACE),
    ],
)
def test_a_cluster_that_a_condition_lets_karpenter_scale(autoscaling: Any, effect: Effect) -> None:
    def of(tag: str, count: Any) -> Assembly:
        tags, items = [{"Key": "a", "Value": tag}], [group(InstanceCount=count)]
        return one({"A": resource(CLUSTER, AutoScaling=autoscaling, Tags=tags, InstanceGroups=items)}, **GIVEN)

    for count in (0, {"Fn::If": ["Old", 0, 2]}):
        assert found(of("a", count), of("b", count)).effect is effect


def test_groups_that_cannot_be_distinguished_are_unknown() -> None:
    changed = updated(CLUSTER, groups(group(), group()), groups(group()))
    assert changed.effect is Effect.UNKNOWN
    assert changed.properties[0].reason == "It is unknown which of its parts change."


def karpenter(count: Any) -> Assembly:
    counts = resource("Custom::HyperPodNodeCounts", ServiceToken="t")
    return one({"Counts": counts, "A": resource(CLUSTER, **groups(group(InstanceCount=count)))})


READ = {"Fn::GetAtt": ["Counts", "Count0"]}


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (0, READ, Effect.IN_PLACE),
        (READ, {"Fn::GetAtt": ["Counts", "Count1"]}, Effect.IN_PLACE),
        (READ, 4, Effect.UNKNOWN),
        # Karpenter begins at 0: the nodes that are there go
        (4, READ, Effect.INTERRUPTED),
        ({"Ref": "Elsewhere"}, READ, Effect.UNKNOWN),
    ],
)
def test_counts_that_a_custom_resource_reads(before: Any, after: Any, effect: Effect) -> None:
    assert found(karpenter(before), karpenter(after)).effect is effect


# what follows from a replacement


def network(cidr: str, **more: Any) -> Assembly:
    return assembly(
        stack(
            "net",
            {
                "Vpc": resource(VPC, CidrBlock=cidr, **more),
                "Subnet": resource(SUBNET, VpcId={"Ref": "Vpc"}, CidrBlock="10.0.0.0/24"),
                "Group": resource("AWS::EC2::SecurityGroup", GroupDescription="x", VpcId={"Ref": "Vpc"}),
                "Parameter": resource("AWS::SSM::Parameter", Type="String", Value={"Fn::GetAtt": ["Vpc", "CidrBlock"]}),
            },
            Outputs={"O": {"Value": {"Ref": "Subnet"}, "Export": {"Name": "net:Subnet"}}},
        ),
        stack(
            "pod",
            {
                "A": resource(CLUSTER, ClusterName="prod", VpcConfig={"Subnets": [{"Fn::ImportValue": "net:Subnet"}]}),
                "Files": resource(
                    LUSTRE, {"UpdateReplacePolicy": "Retain"}, SubnetIds=[{"Fn::ImportValue": "net:Subnet"}]
                ),
                "Eks": resource(EKS, ResourcesVpcConfig={"SubnetIds": [{"Fn::ImportValue": "net:Subnet"}]}),
                "Role": resource("AWS::IAM::Role", Description={"Fn::Sub": "of ${A.ClusterArn}"}),
            },
        ),
    )


def test_a_replaced_vpc_takes_everything_with_it() -> None:
    report = radius(network("10.0.0.0/16"), network("10.1.0.0/16"))
    assert {each.logical_id: each.effect for each in report.resources} == {
        "Vpc": Effect.REPLACED,
        "Subnet": Effect.REPLACED,
        "A": Effect.REPLACED,
        "Files": Effect.REPLACED,
        "Group": Effect.REPLACED,
        "Parameter": Effect.UNKNOWN,
        "Eks": Effect.REFUSED,
        "Role": Effect.IN_PLACE,
    }
    assert report.counts == {Effect.REPLACED: 5, Effect.REFUSED: 1, Effect.UNKNOWN: 1, Effect.IN_PLACE: 1}
    subnet, cluster = (each for each in report.resources if each.logical_id in ("Subnet", "A"))
    assert [(each.path, each.effect) for each in subnet.properties] == [
        ("VpcId", Effect.REPLACED),
        ("Export net:Subnet", Effect.REFUSED),
    ]
    assert subnet.summary == (
        "VpcId replaces it: it refers to Vpc, which is replaced: CloudFormation cannot change it in place; Export "
        "net:Subnet is refused: the export changes while pod imports it; CloudFormation neither changes nor removes an "
        "export that another stack imports; the old one is deleted, and with it addresses and the "
        "resources that use them."
    )
    assert [(each.path, each.before, each.after, each.effect) for each in cluster.properties] == [
        ("VpcConfig.Subnets", "Subnet", "Subnet (replaced)", Effect.REPLACED),
        ("ClusterName", "prod", "prod", Effect.REFUSED),
    ]
    assert [(each.logical_id, each.costs_money, each.why) for each in report.left_behind] == [
        ("Files", True, "The old one stays in the account: its UpdateReplacePolicy is Retain.")
    ]


@pytest.mark.parametrize(("vpc", "effect"), [("VpcA", Effect.IN_PLACE), ("VpcB", Effect.REFUSED)])
def test_eks_moves_inside_of_its_vpc_only(vpc: str, effect: Effect) -> None:
    def of(subnet: str) -> Assembly:
        subnets = {
            name: resource(SUBNET, VpcId={"Ref": of_subnet}, AvailabilityZone="a")
            for name, of_subnet in (("S1", "VpcA"), ("S2", vpc))
        }
        vpcs = {"VpcA": resource(VPC), "VpcB": resource(VPC)}
        return one({**vpcs, **subnets, "A": resource(EKS, ResourcesVpcConfig={"SubnetIds": [{"Ref": subnet}]})})

    assert effects(of("S1"), of("S2")) == {"s/A": effect}


@pytest.mark.parametrize(
    ("name", "zones", "effect"),
    [
        ("AvailabilityZone", ("a", "b", "a"), Effect.IN_PLACE),
        ("AvailabilityZoneId", ("a", "b", "c"), Effect.REFUSED),
        ("AvailabilityZone", ("a", "b", {"Ref": "Asked"}), Effect.UNKNOWN),
    ],
)
def test_eks_stays_in_its_zones(name: str, zones: tuple[Any, ...], effect: Effect) -> None:
    subnets = {f"S{place}": resource(SUBNET, **{name: zone}) for place, zone in enumerate(zones)}

    def of(*names: str) -> Assembly:
        ids = [{"Ref": each} for each in names]
        return one({**subnets, "A": resource(EKS, ResourcesVpcConfig={"SubnetIds": ids})})

    assert effects(of("S0", "S1"), of("S0", "S1", "S2")) == {"s/A": effect}


VPC_BLOCK = "AWS::EC2::VPCCidrBlock"


@pytest.mark.parametrize("taker", [VPC_BLOCK, SUBNET])
@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        # VPC user guide, "IPv4 CIDR block association restrictions"; API CreateSubnet: "must not overlap the CIDR block
        # of an existing subnet in the VPC"
        ("10.2.0.0/24", "10.2.0.0/16", Effect.REFUSED),
        ("10.2.0.0/16", "10.2.255.0/24", Effect.REFUSED),
        ("10.2.0.0/24", "10.2.1.0/24", Effect.REPLACED),
        ("10.2.0.0/16", "10.3.0.0/16", Effect.REPLACED),
    ],
)
def test_a_block_is_not_created_again_within_the_old_one(taker: str, before: str, after: str, effect: Effect) -> None:
    changed = updated(taker, {"VpcId": "vpc-1", "CidrBlock": before}, {"VpcId": "vpc-1", "CidrBlock": after})
    assert changed.effect is Effect.REPLACED
    assert {each.effect for each in changed.properties} == {Effect.REPLACED, effect}
    if effect is Effect.REFUSED:
        assert changed.properties[-1].reason == (
            "EC2 accepts no block that overlaps another one of the VPC, and CloudFormation creates the new one "
            f"before it deletes the old one: its own, {before}."
        )


def test_a_block_is_not_made_within_one_that_goes() -> None:
    def of(name: str, block: str, vpc: str = "vpc-1") -> Assembly:
        return one({name: resource(VPC_BLOCK, VpcId=vpc, CidrBlock=block)})

    assert effects(of("Old", "10.2.0.0/24"), of("New", "10.2.0.0/16"))["s/New"] is Effect.REFUSED
    assert effects(of("Old", "10.2.0.0/24"), of("New", "10.3.0.0/16"))["s/New"] is Effect.ADDED
    assert effects(of("Old", "10.2.0.0/24"), of("New", "10.2.0.0/16", "vpc-2"))["s/New"] is Effect.ADDED
    # by a stack that is deployed earlier it is gone
    block = {"Old": resource(VPC_BLOCK, VpcId="vpc-1", CidrBlock="10.2.0.0/24")}
    later = {"New": resource(VPC_BLOCK, VpcId="vpc-1", CidrBlock="10.2.0.0/16")}
    base = assembly(stack("a", {**block, "Q": resource("AWS::SQS::Queue")}), stack("b", {}))
    assert (
        effects(base, assembly(stack("a", {"Q": resource("AWS::SQS::Queue")}), stack("b", later)))["b/New"]
        is Effect.ADDED
    )


def test_an_attribute_that_stays_takes_nothing_with_it() -> None:
    base, head = network("10.0.0.0/16", Ipv4IpamPoolId="a"), network("10.0.0.0/16", Ipv4IpamPoolId="b")
    assert "net/Parameter" not in effects(base, head)
    assert effects(base, head)["net/Subnet"] is Effect.REPLACED


def test_a_role_that_changes_in_place_takes_nothing_with_it() -> None:
    def of(text: str) -> Assembly:
        role = resource("AWS::IAM::Role", Description=text)
        return one({"Role": role, "A": resource(EKS, RoleArn={"Fn::GetAtt": ["Role", "Arn"]})})

    assert effects(of("a"), of("b")) == {"s/Role": Effect.IN_PLACE}


def test_only_the_branch_that_a_condition_takes_counts() -> None:
    def of(value: str) -> Assembly:
        subnet = {"Fn::If": ["Own", {"Ref": "Vpc"}, "vpc-1"]}
        resources = {"Vpc": resource(VPC, CidrBlock=value), "A": resource(SUBNET, VpcId=subnet)}
        return one(resources, Conditions={"Own": {"Fn::Equals": ["a", "b"]}})

    assert effects(of("10.0.0.0/16"), of("10.1.0.0/16")) == {"s/Vpc": Effect.REPLACED}


def test_what_a_foreign_custom_resource_gives_may_be_another_value() -> None:
    def of(value: int) -> Assembly:
        custom = resource("Custom::SomebodyElses", P=value)
        lookup = {"Fn::GetAtt": ["Custom", "VpcId"]}
        return one(
            {
                "Custom": custom,
                "A": resource(SUBNET, VpcId=lookup),
                "B": resource("AWS::IAM::Role", Description=lookup),
                "C": resource(LUSTRE, SubnetIds=[{"Ref": "A"}]),
            }
        )

    changed = effects(of(1), of(2))
    assert changed == {"s/Custom": Effect.UNKNOWN, "s/A": Effect.UNKNOWN, "s/C": Effect.UNKNOWN}
    assert found(of(1), of(2)).properties[0].reason == (
        "It refers to Custom, which may give another value: CloudFormation cannot change it in place."
    )


# shapes that CloudFormation refuses


def test_another_type_under_the_same_logical_id() -> None:
    changed = found(one({"A": resource(VPC)}), one({"A": resource(SUBNET)}))
    assert changed.effect is Effect.REFUSED
    assert changed.summary == (
        "Type AWS::EC2::VPC -> AWS::EC2::Subnet is refused: CloudFormation does not change the type of a resource; "
        "use another logical ID for the new one."
    )


@pytest.mark.parametrize(
    ("resource_type", "before", "after", "refused"),
    [
        (CLUSTER, {"ClusterName": "a", "VpcConfig": "x"}, {"ClusterName": "a", "VpcConfig": "y"}, "ClusterName"),
        (CLUSTER, {"ClusterName": "a", "VpcConfig": "x"}, {"ClusterName": "b", "VpcConfig": "y"}, None),
        (CLUSTER, {"VpcConfig": "x"}, {"VpcConfig": "y"}, None),
        (SUBNET, {"CidrBlock": "c", "AvailabilityZone": "a"}, {"CidrBlock": "c", "AvailabilityZone": "b"}, "CidrBlock"),
        (EKS, {"Name": "a", "RoleArn": "x"}, {"Name": "a", "RoleArn": "y"}, "Name"),
        ("AWS::EC2::SecurityGroup", {"GroupDescription": "x"}, {"GroupDescription": "y"}, None),
        # the old quota goes before the new one comes
        (
            "AWS::SageMaker::ComputeQuota",
            {"Name": "a", "ClusterArn": "c", "ComputeQuotaTarget": {"TeamName": "x"}},
            {"Name": "a", "ClusterArn": "c", "ComputeQuotaTarget": {"TeamName": "y"}},
            None,
        ),
    ],
)
def test_a_replacement_that_keeps_its_name(resource_type: str, before: Any, after: Any, refused: str | None) -> None:
    changed = updated(resource_type, before, after)
    assert changed.effect is Effect.REPLACED
    assert next((each.path for each in changed.properties if each.effect is Effect.REFUSED), None) == refused


def bucket(name: str, **attributes: Any) -> dict[str, Any]:
    return resource("AWS::S3::Bucket", attributes, BucketName=name)


@row_by_row(
    "base, head, effect",
    [
        (one({"Old": bucket("b")}), one({"A": bucket("b")}), Effect.REFUSED),
        (one({"Old": bucket("b")}), one({"A": bucket("c")}), Effect.ADDED),
        (one({"Old": bucket("b")}), one({"Old": bucket("b"), "A": bucket("b")}), Effect.REFUSED),
        # what is made anew leaves its name at the end of the update only, to whoever takes it
        (one({"Old": bucket("b")}), one({"Old": bucket("c"), "A": bucket("b")}), Effect.REFUSED),
        (
            assembly(stack("one", {"Old": bucket("b")}), stack("two", {"Y": bucket("y")})),
            assembly(stack("one", {"Old": bucket("c")}), stack("two", {"Y": bucket("y"), "A": bucket("b")})),
            Effect.ADDED,
        ),
        (
            assembly(
                stack("one", {"Old": bucket("b", UpdateReplacePolicy="Retain")}), stack("two", {"Y": bucket("y")})
            ),
            assembly(
                stack("one", {"Old": bucket("c", UpdateReplacePolicy="Retain")}),
                stack("two", {"Y": bucket("y"), "A": bucket("b")}),
            ),
            Effect.REFUSED,
        ),
        # between two stacks the order of deployment decides
        (
            assembly(stack("one", {"Old": bucket("b"), "X": bucket("x")}), stack("two", {"Y": bucket("y")})),
            assembly(stack("one", {"X": bucket("x")}), stack("two", {"Y": bucket("y"), "A": bucket("b")})),
            Effect.ADDED,
        ),
        (
            assembly(stack("one", {"X": bucket("x")}), stack("two", {"Old": bucket("b"), "Y": bucket("y")})),
            assembly(stack("one", {"X": bucket("x"), "A": bucket("b")}), stack("two", {"Y": bucket("y")})),
            Effect.REFUSED,
        ),
        (
            assembly(
                stack("one", {"Old": bucket("b", DeletionPolicy="Retain"), "X": bucket("x")}),
                stack("two", {"Y": bucket("y")}),
            ),
            assembly(stack("one", {"X": bucket("x")}), stack("two", {"Y": bucket("y"), "A": bucket("b")})),
            Effect.REFUSED,
        ),
        (
            assembly(stack("gone", {"Old": bucket("b")}), stack("two", {"Y": bucket("y")})),
            assembly(stack("two", {"Y": bucket("y"), "A": bucket("b")})),
            Effect.REFUSED,
        ),
    ],
)
def test_a_resource_of_a_name_that_is_still_taken(base: Assembly, head: Assembly, effect: Effect) -> None:
    assert found(base, head).effect is effect


@pytest.mark.parametrize(
    ("names", "others", "refused"),
    [
        (("b", "c"), ("c", "b"), {"A", "Old"}),
        (("b", "c"), ("d", "b"), {"Old"}),
        (("b", "c"), ("d", "c"), set()),
        (("b", "c"), ("c", "c"), {"A"}),
    ],
)
def test_names_that_resources_take_from_one_another(
    names: tuple[str, str], others: tuple[str, str], refused: set[str]
) -> None:
    base, head = (one({"A": bucket(a), "Old": bucket(b)}) for a, b in (names, others))
    changed = blast_radius(base, head, compare(base, head)).resources
    assert {
        each.logical_id for each in changed if any(one.effect is Effect.REFUSED for one in each.properties)
    } == refused
    assert {each.effect for each in changed} == {Effect.REPLACED}


def test_a_taken_name_is_reported_in_words() -> None:
    changed = found(one({"Old": bucket("b")}), one({"A": bucket("b")}))
    assert changed.summary == (
        "It is created; BucketName b is refused: Old of s still exists when this one is created, and has the same "
        "BucketName."
    )


def test_a_renamed_stack_makes_its_network_beside_the_old_one() -> None:
    """Blocks collide within a VPC, and a stack of another name has a VPC of its own."""
    network = {"Vpc": resource(VPC, CidrBlock="10.0.0.0/16"), "A": subnet("Vpc", "10.0.0.0/24")}
    changed = effects(assembly(stack("old", network)), assembly(stack("new", network)))
    assert changed == {
        "old/Vpc": Effect.LEFT_BEHIND,
        "old/A": Effect.LEFT_BEHIND,
        "new/Vpc": Effect.ADDED,
        "new/A": Effect.ADDED,
    }


def subnet(vpc: str, block: str) -> dict[str, Any]:
    return resource(SUBNET, VpcId={"Ref": vpc}, CidrBlock=block)


@pytest.mark.parametrize(
    ("resource_type", "name", "effect"),
    [
        ("AWS::S3::Bucket", "BucketName", Effect.REFUSED),
        ("AWS::IAM::Role", "RoleName", Effect.REFUSED),
        ("AWS::SQS::Queue", "QueueName", Effect.ADDED),
    ],
)
def test_where_a_name_is_taken(resource_type: str, name: str, effect: Effect) -> None:
    """A bucket's name is taken everywhere, one of IAM in the account, that of a queue in the region."""
    template = {"Resources": {"A": resource(resource_type, **{name: "n"})}}
    here, there = (
        assembly(Stack(name="s", template=template, account="1", region=region))
        for region in ("us-east-1", "us-west-2")
    )
    base = apart(here, there)
    assert effects(base, there) == {"s in 1 us-east-1/A": Effect.LEFT_BEHIND, "s/A": effect}


def exporting(value: Any, *users: str, exports: bool = True, order: tuple[str, ...] = ("net", "pod")) -> Assembly:
    outputs = {"O": {"Value": value, "Export": {"Name": "net:O"}}} if exports else {}
    imported = {"Fn::ImportValue": "net:O"}
    stacks = {
        "net": stack("net", {"A": resource(VPC), "B": resource(VPC)}, Outputs=outputs),
        "pod": stack("pod", {"P": resource("AWS::SSM::Parameter", Value=imported if "pod" in users else "x")}),
    }
    return assembly(*(stacks[name] for name in order))


@pytest.mark.parametrize(
    ("base", "head", "refused"),
    [
        (exporting({"Ref": "A"}, "pod"), exporting({"Ref": "B"}, "pod"), "changes while pod imports it"),
        (exporting({"Ref": "A"}, "pod"), exporting({"Ref": "A"}, exports=False), "is removed while pod imports it"),
        # who else imports it is in none of these templates
        (
            exporting({"Ref": "A"}),
            exporting({"Ref": "A"}, exports=False),
            "is removed, and no template here imports it",
        ),
        (exporting({"Ref": "A"}, "pod"), exporting({"Ref": "A"}, "pod"), None),
        # who lets go of it first does not hold it any more
        (
            exporting({"Ref": "A"}, "pod"),
            exporting({"Ref": "A"}, exports=False, order=("pod", "net")),
            None,
        ),
        # a stack that has left the app is still deployed
        (
            exporting({"Ref": "A"}, "pod"),
            exporting({"Ref": "A"}, exports=False, order=("net",)),
            "is removed while pod imports it",
        ),
        (exporting("text", "pod"), exporting("other", "pod"), "changes while pod imports it"),
    ],
)
def test_an_export_that_is_in_use(base: Assembly, head: Assembly, refused: str | None) -> None:
    reasons = [
        each.reason
        for one_resource in radius(base, head).resources
        for each in one_resource.properties
        if each.of == "export"
    ]
    expected = f"The export {refused}; CloudFormation neither changes nor removes an export that another stack imports."
    assert reasons == ([expected] if refused else [])


@pytest.mark.parametrize(
    ("value", "afterwards", "is_refused"),
    [
        # what Ref and Arn of a bucket give, by the page of AWS::S3::Bucket
        ({"Ref": "Own"}, {"Fn::Sub": "sagemaker-${AWS::StackId}"}, False),
        ({"Fn::GetAtt": ["Own", "Arn"]}, {"Fn::Sub": "arn:${AWS::Partition}:s3:::sagemaker-${AWS::StackId}"}, False),
        ({"Ref": "Own"}, {"Fn::Sub": "arn:${AWS::Partition}:s3:::sagemaker-${AWS::StackId}"}, True),
        ({"Fn::GetAtt": ["Own", "DomainName"]}, {"Fn::Sub": "sagemaker-${AWS::StackId}"}, True),
        ({"Ref": "Unnamed"}, {"Fn::Sub": "sagemaker-${AWS::StackId}"}, True),
    ],
)
def test_an_export_of_a_bucket_that_goes_and_keeps_its_name(value: Any, afterwards: Any, *, is_refused: bool) -> None:
    buckets = {
        "Own": resource("AWS::S3::Bucket", BucketName={"Fn::Sub": "sagemaker-${AWS::StackId}"}),
        "Unnamed": resource("AWS::S3::Bucket"),
    }
    pod = stack("pod", {"P": resource("AWS::SSM::Parameter", Value={"Fn::ImportValue": "net:O"})})
    base, head = (
        assembly(stack("net", there, Outputs={"O": {"Value": given, "Export": {"Name": "net:O"}}}), pod)
        for there, given in ((buckets, value), ({"A": resource(VPC)}, afterwards))
    )
    paths = [each.path for one_resource in radius(base, head).resources for each in one_resource.properties]
    assert ("Export net:O" in paths) is is_refused


def test_an_export_that_is_renamed_is_a_change() -> None:
    def with_export(name: str) -> Assembly:
        return one({"A": resource(VPC)}, Outputs={"O": {"Value": {"Ref": "A"}, "Export": {"Name": name}}})

    changed = found(with_export("old"), with_export("new"))
    assert (changed.effect, changed.properties[0].path) == (Effect.UNKNOWN, "Export old")
    assert effects(with_export("old"), with_export("old")) == {}


@pytest.mark.parametrize(
    ("value", "head", "effect", "is_refused"),
    [
        (True, {}, Effect.DELETED, True),
        ("true", {}, Effect.DELETED, True),
        (False, {}, Effect.DELETED, False),
        (True, {"A": resource(EKS, RoleArn="b", DeletionProtection=False)}, Effect.REPLACED, True),
        (True, {"A": resource(EKS, RoleArn="a", DeletionProtection=False)}, Effect.IN_PLACE, False),
    ],
)
def test_deletion_protection(value: Any, head: Resources, effect: Effect, *, is_refused: bool) -> None:
    base = one({"A": resource(EKS, RoleArn="a", DeletionProtection=value), "X": resource(VPC)})
    after = one({**head, "X": resource(VPC)})
    changed = found(base, after)
    assert changed.effect is effect
    assert any(each.effect is Effect.REFUSED for each in changed.properties) is is_refused
    assert bool(radius(base, after).left_behind) is is_refused


# what comes, goes and stays


@pytest.mark.parametrize(
    ("attributes", "effect", "summary"),
    [
        (
            {},
            Effect.DELETED,
            f"It is deleted: {LUSTRE_LOST}",
        ),
        (
            {"DeletionPolicy": "Retain"},
            Effect.LEFT_BEHIND,
            "It is removed from its stack and stays in the account: its DeletionPolicy is Retain.",
        ),
        (
            {"DeletionPolicy": "RetainExceptOnCreate"},
            Effect.LEFT_BEHIND,
            "It is removed from its stack and stays in the account: its DeletionPolicy is RetainExceptOnCreate.",
        ),
        (
            {"DeletionPolicy": "Snapshot"},
            Effect.DELETED,
            "It is deleted, and a snapshot of it is kept: its DeletionPolicy is Snapshot.",
        ),
    ],
)
def test_a_removed_resource(attributes: dict[str, Any], effect: Effect, summary: str) -> None:
    base, head = one({"A": resource(LUSTRE, attributes), "X": resource(VPC)}), one({"X": resource(VPC)})
    changed = found(base, head)
    assert (changed.effect, changed.summary, changed.stateful) == (effect, summary, True)
    assert [each.costs_money for each in radius(base, head).left_behind] == (
        [True] if effect is Effect.LEFT_BEHIND else []
    )


def test_a_stack_that_goes_stays_in_the_account() -> None:
    base = assembly(stack("one", {"X": resource(VPC)}), stack("two", {"A": resource("AWS::EC2::NatGateway")}))
    report = radius(base, assembly(stack("one", {"X": resource(VPC)})))
    assert [(each.effect, each.summary) for each in report.resources] == [
        (
            Effect.LEFT_BEHIND,
            "The stack two is no longer in the app, and cdk deploy does not delete a stack that the app no longer has.",
        )
    ]
    assert [each.costs_money for each in report.left_behind] == [True]


def test_everything_is_added_to_an_empty_account() -> None:
    assert effects(EMPTY, one({"A": resource(VPC), "B": resource(SUBNET)})) == {
        "s/A": Effect.ADDED,
        "s/B": Effect.ADDED,
    }
    assert effects(one({"A": resource(VPC)}), one({"A": resource(VPC)})) == {}


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("Snapshot", "a snapshot of the old one is kept: its UpdateReplacePolicy is Snapshot."),
        ("Retain", "the old one stays in the account: its UpdateReplacePolicy is Retain."),
        ("Delete", "the old one is deleted, and with it a database."),
    ],
)
def test_the_old_one_of_what_is_replaced(policy: str, told: str) -> None:
    def of(key: str) -> Assembly:
        return one({"A": resource("AWS::RDS::DBInstance", {"UpdateReplacePolicy": policy}, KmsKeyId=key)})

    changed = found(of("a"), of("b"))
    assert changed.effect is Effect.REPLACED
    assert changed.summary.endswith(told)
    assert bool(radius(of("a"), of("b")).left_behind) is (policy == "Retain")


def test_a_policy_that_is_loosened_is_shown() -> None:
    before, after = resource(LUSTRE, {"DeletionPolicy": "Retain"}), resource(LUSTRE)
    changed = found(one({"A": before}), one({"A": after}))
    assert changed.effect is Effect.IN_PLACE
    assert [(each.path, each.before, each.after, each.reason) for each in changed.properties] == [
        ("DeletionPolicy", "Retain", None, "From now on it is not kept when it is removed from its stack.")
    ]


def test_a_replacement_is_kept_only_where_both_templates_say_so() -> None:
    base = one({"A": resource(LUSTRE, {"UpdateReplacePolicy": "Retain"}, SubnetIds=["a"])})
    head = one({"A": resource(LUSTRE, SubnetIds=["b"])})
    assert radius(base, head).left_behind == ()
    assert found(base, head).summary.endswith(f"the old one is deleted: {LUSTRE_LOST}")


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [("a", "b", Effect.DELETED), ("b", "a", Effect.ADDED), ("b", "b", None), ("a", "a", None)],
)
def test_a_condition_that_turns(before: str, after: str, effect: Effect | None) -> None:
    def of(value: str) -> Assembly:
        return one({"A": resource(VPC, {"Condition": "C"})}, Conditions={"C": {"Fn::Equals": [value, "a"]}})

    assert effects(of(before), of(after)) == ({"s/A": effect} if effect else {})


def test_a_condition_that_is_not_reported() -> None:
    def of(condition: str) -> Assembly:
        conditions = {"C": {"Fn::Equals": [{"Ref": "P"}, "a"]}, "D": {"Fn::Equals": ["a", "a"]}}
        return one({"A": resource(VPC, {"Condition": condition})}, Conditions=conditions)

    assert effects(of("D"), of("C")) == {"s/A": Effect.UNKNOWN}
    assert effects(of("C"), of("C")) == {}


def test_a_layer_is_replaced_without_harm() -> None:
    def of(key: str) -> Assembly:
        layer = resource("AWS::Lambda::LayerVersion", Content={"S3Key": key})
        return one({"Layer": layer, "A": resource("AWS::Lambda::Function", Layers=[{"Ref": "Layer"}])})

    assert effects(of("a"), of("b")) == {"s/Layer": Effect.REPLACED, "s/A": Effect.IN_PLACE}
    assert found(of("a"), of("b"), "Layer").summary == (
        "Content.S3Key a -> b replaces it: CloudFormation cannot change it in place; functions that use the old "
        "version keep it."
    )


@pytest.mark.parametrize(
    ("stays", "kept", "effect"),
    [
        ((), (), Effect.IN_PLACE),
        # whatever holds the subnet that is kept, the routes go with the table
        ((), ("Subnet",), Effect.IN_PLACE),
        (("Subnet",), (), Effect.UNKNOWN),
        (("Subnet", "Other"), (), Effect.UNKNOWN),
        ((), ("Table", "Subnet"), Effect.UNKNOWN),
        (("Table", "Subnet"), (), Effect.UNKNOWN),
        (("Table",), (), Effect.UNKNOWN),
    ],
)
def test_a_route_table_that_goes_with_its_subnets_is_no_loss(
    stays: tuple[str, ...], kept: tuple[str, ...], effect: Effect
) -> None:
    # docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteRouteTable.html: "You must disassociate the route table
    # from any subnets before you can delete it"
    network = {
        "Table": resource("AWS::EC2::RouteTable", VpcId="v"),
        "Subnet": resource("AWS::EC2::Subnet", VpcId="v", CidrBlock="10.0.0.0/24"),
        "Other": resource("AWS::EC2::RouteTable", VpcId="v"),
    }
    link = resource("AWS::EC2::SubnetRouteTableAssociation", SubnetId={"Ref": "Subnet"}, RouteTableId={"Ref": "Table"})
    for name in kept:
        network[name] = {**network[name], "DeletionPolicy": "Retain"}

    def endpoint(*tables: str) -> dict[str, Any]:
        routes = [{"Ref": each} for each in tables]
        return resource("AWS::EC2::VPCEndpoint", VpcId="v", ServiceName="s3", RouteTableIds=routes)

    base = one({**network, "Link": link, "A": endpoint("Other", "Table")})
    head = one({"Other": network["Other"], **{name: network[name] for name in stays}, "A": endpoint("Other")})
    assert found(base, head, "A").effect is effect


def test_a_route_table_that_no_template_has_may_be_anybodys() -> None:
    def of(*tables: str) -> Assembly:
        return one({"A": resource("AWS::EC2::VPCEndpoint", VpcId="v", ServiceName="s3", RouteTableIds=list(tables))})

    assert effects(of("rtb-1", "rtb-2"), of("rtb-1")) == {"s/A": Effect.UNKNOWN}


# what is shown


def test_what_a_noecho_parameter_holds_is_never_shown() -> None:
    def of(value: str, password: str) -> Assembly:
        parameters = {"P": {"Type": "String", "NoEcho": True, "Default": value}}
        shown = {"Description": {"Fn::Sub": "key ${P}!"}, "MasterUserPassword": password}
        return one({"A": resource("AWS::RDS::DBInstance", **shown)}, Parameters=parameters)

    report = radius(of("hunter22", "letmein1"), of("tiger333", "letmein2")).model_dump_json()
    assert not any(secret in report for secret in ("hunter22", "tiger333", "letmein"))
    assert "key (hidden)!" in report


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a", "b", ("a", "b")),
        (None, "b", (None, "b")),
        ("x" * 300, "y", ("x" * 300, "y")),
        (None, "x" * 301, (None, "x" * 300 + "...")),
        (
            "x" * 400 + "1" + "z" * 400,
            "x" * 400 + "2" + "z" * 400,
            ("..." + "x" * 40 + "1" + "z" * 40 + "...", "..." + "x" * 40 + "2" + "z" * 40 + "..."),
        ),
        ("x" * 400, "x" * 400 + "y", ("..." + "x" * 40, "..." + "x" * 40 + "y")),
        ("a" + "x" * 400, "x" * 400, ("a" + "x" * 40 + "...", "x" * 40 + "...")),
    ],
)
def test_long_values_are_cut_to_what_differs(before: str | None, after: str | None, expected: Any) -> None:
    assert differing(before, after) == expected


def test_the_order_is_by_gravity_and_then_by_deployment() -> None:
    base = one({"R": resource("AWS::IAM::Role", Path="/a/"), "V": resource(VPC, CidrBlock="a"), "T": resource(VPC)})
    head = one(
        {"R": resource("AWS::IAM::Role", Path="/b/"), "V": resource(VPC, CidrBlock="b"), "T": resource(VPC, Tags=["a"])}
    )
    assert [each.logical_id for each in radius(base, head).resources] == ["V", "R", "T"]
    assert radius(base, head).schemas_as_of == create_only.SCHEMAS_AS_OF.isoformat()


def test_a_replaced_vpc_of_an_environment_that_ships(assemblies: Path) -> None:
    base = read(assemblies, "prod")
    stacks = []
    for each in base.stacks:
        template = copy.deepcopy(dict(each.template))
        for body in template["Resources"].values():
            if body["Type"] == VPC:
                body["Properties"]["CidrBlock"] = "10.9.0.0/16"
        stacks.append(replace(each, template=template))
    report = radius(base, replace(base, stacks=tuple(stacks)))
    grave = {each.type: each.effect for each in report.resources if each.type in GRAVE}
    assert grave == {
        VPC: Effect.REPLACED,
        SUBNET: Effect.REPLACED,
        LUSTRE: Effect.REPLACED,
        CLUSTER: Effect.REPLACED,
        EKS: Effect.REFUSED,
    }
    assert json.loads(report.model_dump_json())["counts"]["replaced"] > 30


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("a", Effect.REFUSED),
        ({"Ref": "Asked"}, Effect.REFUSED),
        ({"Fn::ImportValue": "elsewhere"}, Effect.REFUSED),
        ({"Fn::If": ["Asked", "a", {"Ref": "AWS::NoValue"}]}, Effect.UNKNOWN),
        ({"Ref": "Stored"}, Effect.UNKNOWN),
        ({"Ref": "AWS::NoValue"}, None),
    ],
)
def test_a_replacement_keeps_a_name_that_is_not_known(name: Any, effect: Effect | None) -> None:
    """CloudFormation user guide, "Update behaviors of stack resources": a custom name must change, too."""
    parameters = {**GIVEN["Parameters"], "Stored": {"Type": "AWS::SSM::Parameter::Value<String>"}}

    def of(path: str) -> Assembly:
        role = resource("AWS::IAM::Role", RoleName=name, Path=path, AssumeRolePolicyDocument={})
        return one({"A": role}, **{**GIVEN, "Parameters": parameters})

    told = {each.path: each.effect for each in found(of("/a/"), of("/b/")).properties}
    assert told.pop("Path") is Effect.REPLACED
    assert told.get("RoleName") is effect
