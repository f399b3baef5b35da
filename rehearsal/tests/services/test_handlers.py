"""CloudFormation handlers of EKS, SageMaker and FSx: Ref, GetAtt, updates in place, what a failure leaves."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.embedded import resources
from hyperpod_cdk_rehearsal.embedded.resources.registry import (
    HandlerError,
    ResourceHandler,
    ResourceRequest,
    ResourceResult,
    handler_for,
)
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store

assert resources

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"


def handler(resource_type: str) -> ResourceHandler:
    found = handler_for(resource_type)
    assert found is not None
    return found


def request(
    world: Any,
    resource_type: str,
    properties: dict[str, Any],
    *,
    previous: dict[str, Any] | None = None,
    physical_id: str | None = None,
) -> ResourceRequest:
    return ResourceRequest(
        resource_type=resource_type,
        logical_id="Thing",
        stack_name="prod-stack",
        stack_id="arn:aws:cloudformation:us-east-1:123456789012:stack/prod-stack/1",
        properties=properties,
        previous=previous,
        physical_id=physical_id,
        tags={},
        context=world.context,
    )


def create(world: Any, resource_type: str, properties: dict[str, Any]) -> ResourceResult:
    return handler(resource_type).create(request(world, resource_type, properties))


def update(
    world: Any, resource_type: str, made: ResourceResult, before: dict[str, Any], after: dict[str, Any]
) -> ResourceResult:
    changed = request(world, resource_type, after, previous=before, physical_id=made.physical_id)
    return handler(resource_type).update(changed)


def delete(world: Any, resource_type: str, made: ResourceResult, properties: dict[str, Any]) -> None:
    """Delete twice: a resource that is gone is no error."""
    for _ in range(2):
        handler(resource_type).delete(request(world, resource_type, properties, physical_id=made.physical_id))


def found_again(world: Any, resource_type: str, made: ResourceResult, properties: dict[str, Any], *keys: str) -> bool:
    """Return whether an import by the ``keys`` of its identifier finds the resource with the same ID and attributes."""
    identifier = {key: str({**properties, **made.attributes}[key]) for key in keys}
    return handler(resource_type).read(request(world, resource_type, {}), identifier) == made


def all_or_nothing(properties: dict[str, Any]) -> dict[str, Any]:
    """Take continuous provisioning from a cluster's properties."""
    return {key: value for key, value in properties.items() if key != "NodeProvisioningMode"}


class TestEksCluster:
    TYPE = "AWS::EKS::Cluster"

    def properties(self, world: Any, **members: Any) -> dict[str, Any]:
        return {
            "Name": "prod-eks",
            "Version": "1.34",
            "RoleArn": world.eks_role_arn,
            "ResourcesVpcConfig": {"SubnetIds": list(world.subnets.values()), "EndpointPrivateAccess": "true"},
            "AccessConfig": {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False},
            "Logging": {"ClusterLogging": {"EnabledTypes": [{"Type": "api"}]}},
            "Tags": [{"Key": "a", "Value": "1"}],
            **members,
        }

    def test_ref_and_attributes(self, world: Any) -> None:
        made = create(world, self.TYPE, self.properties(world))
        cluster = world.client("eks").describe_cluster(name="prod-eks")["cluster"]
        assert made.physical_id == "prod-eks"
        assert made.attributes["Arn"] == "arn:aws:eks:us-east-1:123456789012:cluster/prod-eks"
        assert made.attributes["Endpoint"] == cluster["endpoint"]
        assert made.attributes["CertificateAuthorityData"] == cluster["certificateAuthority"]["data"]
        assert made.attributes["OpenIdConnectIssuerUrl"] == cluster["identity"]["oidc"]["issuer"]
        assert made.attributes["ClusterSecurityGroupId"] == cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
        assert made.attributes["KubernetesNetworkConfig.ServiceIpv4Cidr"] == "172.20.0.0/16"
        assert cluster["resourcesVpcConfig"]["endpointPrivateAccess"] is True

    def test_a_name_is_generated(self, world: Any) -> None:
        properties = self.properties(world)
        del properties["Name"]
        assert create(world, self.TYPE, properties).physical_id.startswith("prod-stack-Thing-")

    def test_several_changes_come_one_after_another(self, world: Any) -> None:
        before = self.properties(world)
        made = create(world, self.TYPE, before)
        after = self.properties(
            world,
            Version="1.35",
            Logging={"ClusterLogging": {"EnabledTypes": [{"Type": "audit"}]}},
            DeletionProtection=True,
            Tags=[{"Key": "b", "Value": "2"}],
        )
        update(world, self.TYPE, made, before, after)
        cluster = world.client("eks").describe_cluster(name="prod-eks")["cluster"]
        assert (cluster["version"], cluster["deletionProtection"], cluster["tags"]) == ("1.35", True, {"b": "2"})
        assert cluster["logging"]["clusterLogging"][0] == {"types": ["audit"], "enabled": True}
        assert len(world.client("eks").list_updates(name="prod-eks")["updateIds"]) == 3

    def test_deleted(self, world: Any) -> None:
        properties = self.properties(world)
        made = create(world, self.TYPE, properties)
        delete(world, self.TYPE, made, properties)
        assert world.client("eks").list_clusters()["clusters"] == []


class TestAddon:
    TYPE = "AWS::EKS::Addon"

    def test_ref_update_and_delete(self, world: Any) -> None:
        world.make_eks()
        before = {"ClusterName": "prod-eks", "AddonName": "vpc-cni"}
        made = create(world, self.TYPE, before)
        assert made.physical_id == "prod-eks|vpc-cni"
        assert found_again(world, self.TYPE, made, before, "ClusterName", "AddonName")
        assert made.attributes["Arn"].startswith("arn:aws:eks:us-east-1:123456789012:addon/prod-eks/vpc-cni/")
        after = {**before, "AddonVersion": "v1.21.0-eksbuild.1", "Tags": [{"Key": "a", "Value": "1"}]}
        update(world, self.TYPE, made, before, after)
        addon = world.client("eks").describe_addon(clusterName="prod-eks", addonName="vpc-cni")["addon"]
        assert (addon["addonVersion"], addon["tags"]) == ("v1.21.0-eksbuild.1", {"a": "1"})
        delete(world, self.TYPE, made, after)
        assert world.client("eks").list_addons(clusterName="prod-eks")["addons"] == []

    def test_a_degraded_one_counts_as_made(self, world: Any) -> None:
        world.make_eks()
        create(world, self.TYPE, {"ClusterName": "prod-eks", "AddonName": "coredns"})
        addon = world.client("eks").describe_addon(clusterName="prod-eks", addonName="coredns")["addon"]
        assert addon["status"] == "DEGRADED"

    def test_a_failed_one_is_removed(self, world: Any) -> None:
        world.make_eks()
        with pytest.raises(HandlerError) as caught:
            create(world, self.TYPE, {"ClusterName": "prod-eks", "AddonName": "amazon-sagemaker-spaces"})
        assert (caught.value.code, caught.value.message) == (
            "NotStabilized",
            (
                "Addon amazon-sagemaker-spaces of cluster prod-eks is CREATE_FAILED: K8sResourceNotFound: The add-on"
                " cert-manager is required, it is not installed."
            ),
        )
        assert world.client("eks").list_addons(clusterName="prod-eks")["addons"] == []


class TestAccessEntry:
    TYPE = "AWS::EKS::AccessEntry"
    ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    VIEW = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"

    def properties(self, principal: str, *policies: str, **members: Any) -> dict[str, Any]:
        scope = {"Type": "cluster"}
        return {
            "ClusterName": "prod-eks",
            "PrincipalArn": principal,
            "AccessPolicies": [{"PolicyArn": arn, "AccessScope": scope} for arn in policies],
            **members,
        }

    def test_ref_update_and_delete(self, world: Any) -> None:
        world.make_eks()
        principal = world.role("admin", "ec2.amazonaws.com")
        before = self.properties(principal, self.ADMIN)
        made = create(world, self.TYPE, before)
        assert made.physical_id == f"{principal}|prod-eks"
        assert found_again(world, self.TYPE, made, before, "PrincipalArn", "ClusterName")
        assert ":access-entry/prod-eks/role/" in made.attributes["AccessEntryArn"]
        after = self.properties(principal, self.VIEW, KubernetesGroups=["viewers"])
        update(world, self.TYPE, made, before, after)
        eks, names = world.client("eks"), {"clusterName": "prod-eks", "principalArn": principal}
        policies = eks.list_associated_access_policies(**names)["associatedAccessPolicies"]
        assert [item["policyArn"] for item in policies] == [self.VIEW]
        assert eks.describe_access_entry(**names)["accessEntry"]["kubernetesGroups"] == ["viewers"]
        delete(world, self.TYPE, made, after)
        assert eks.list_access_entries(clusterName="prod-eks")["accessEntries"] == []


class TestPodIdentityAssociation:
    TYPE = "AWS::EKS::PodIdentityAssociation"

    def test_ref_update_and_delete(self, world: Any) -> None:
        world.make_eks()
        trust = ["sts:AssumeRole", "sts:TagSession"]
        first, second = (world.role(name, "pods.eks.amazonaws.com", trust=trust) for name in ("one", "two"))
        before = {"ClusterName": "prod-eks", "Namespace": "team", "ServiceAccount": "runner", "RoleArn": first}
        made = create(world, self.TYPE, before)
        assert made.physical_id == made.attributes["AssociationArn"]
        assert made.physical_id.endswith(made.attributes["AssociationId"])
        assert found_again(world, self.TYPE, made, before, "AssociationArn")
        after = {**before, "RoleArn": second}
        update(world, self.TYPE, made, before, after)
        names = {"clusterName": "prod-eks", "associationId": made.attributes["AssociationId"]}
        assert world.client("eks").describe_pod_identity_association(**names)["association"]["roleArn"] == second
        delete(world, self.TYPE, made, after)


class TestHyperPodCluster:
    TYPE = "AWS::SageMaker::Cluster"

    def properties(self, world: Any, *groups: dict[str, Any], **members: Any) -> dict[str, Any]:
        found: dict[str, Any] = world.hyperpod_request(*groups, **members)
        return found

    def test_ref_and_attributes(self, world: Any) -> None:
        world.make_eks()
        made = create(world, self.TYPE, self.properties(world))
        assert made.physical_id == made.attributes["ClusterArn"]
        assert made.physical_id.startswith("arn:aws:sagemaker:us-east-1:123456789012:cluster/")
        assert made.attributes["ClusterStatus"] == "InService"

    def test_numbers_may_be_text(self, world: Any) -> None:
        world.make_eks()
        made = create(world, self.TYPE, self.properties(world, world.group(InstanceCount="2")))
        cluster = world.client("sagemaker").describe_cluster(ClusterName=made.physical_id)
        assert cluster["InstanceGroups"][0]["TargetCount"] == 2

    def test_a_failed_cluster_is_deleted_and_its_reason_reported(self, world: Any) -> None:
        world.make_eks()
        group = world.group(LifeCycleConfig={"SourceS3Uri": f"s3://{world.bucket}", "OnCreate": "missing.sh"})
        with pytest.raises(HandlerError) as caught:
            create(world, self.TYPE, all_or_nothing(self.properties(world, group)))
        assert (caught.value.code, caught.value.message) == (
            "NotStabilized",
            (
                "Lifecycle scripts did not run successfully. Ensure the scripts exist in provided S3 path, are "
                "accessible, and run "
                "without errors. Please see CloudWatch logs for lifecycle script execution details. Rehearsal: "
                f"s3://{world.bucket}/missing.sh does not exist."
            ),
        )
        assert world.client("sagemaker").list_clusters()["ClusterSummaries"] == []

    def test_groups_and_tags_change_in_place(self, world: Any) -> None:
        world.make_eks()
        before = self.properties(world)
        made = create(world, self.TYPE, before)
        tags = [{"Key": "SageMaker", "Value": "true"}, {"Key": "team", "Value": "ml"}]
        after = self.properties(world, world.group(count=3), Tags=tags)
        assert update(world, self.TYPE, made, before, after).physical_id == made.physical_id
        sagemaker = world.client("sagemaker")
        assert sagemaker.describe_cluster(ClusterName="prod")["InstanceGroups"][0]["TargetCount"] == 3
        assert sagemaker.list_tags(ResourceArn=made.physical_id)["Tags"] == tags

    def test_an_update_that_rolls_back_fails(self, world: Any) -> None:
        world.make_eks()
        before = all_or_nothing(self.properties(world))
        made = create(world, self.TYPE, before)
        world.client("s3").delete_object(Bucket=world.bucket, Key="abc/on_create.sh")
        with pytest.raises(HandlerError) as caught:
            update(world, self.TYPE, made, before, all_or_nothing(self.properties(world, world.group(count=2))))
        assert caught.value.message.endswith(f"Rehearsal: s3://{world.bucket}/abc/on_create.sh does not exist.")

    def test_an_immutable_member_fails_the_update(self, world: Any) -> None:
        world.make_eks()
        before = self.properties(world)
        made = create(world, self.TYPE, before)
        with pytest.raises(ClientError, match="InstanceType cannot be changed"):
            update(world, self.TYPE, made, before, self.properties(world, world.group(InstanceType="ml.g5.12xlarge")))

    def test_a_new_image_release_is_a_software_update(self, world: Any) -> None:
        world.make_eks()
        before = self.properties(world, world.group(ImageReleaseVersion="1.0.0"))
        made = create(world, self.TYPE, before)
        after = self.properties(world, world.group(ImageReleaseVersion="1.1.0"))
        update(world, self.TYPE, made, before, after)
        node = world.client("sagemaker").list_cluster_nodes(ClusterName="prod")["ClusterNodeSummaries"][0]
        assert node["CurrentImageReleaseVersion"] == "1.1.0"

    def test_deleted(self, world: Any) -> None:
        world.make_eks()
        properties = self.properties(world)
        made = create(world, self.TYPE, properties)
        delete(world, self.TYPE, made, properties)
        assert world.client("sagemaker").list_clusters()["ClusterSummaries"] == []


class TestPolicies:
    @pytest.fixture
    def cluster_arn(self, world: Any) -> str:
        """A cluster with task governance."""
        arn = str(world.make_hyperpod(world.group(count=2)))
        world.client("eks").create_addon(clusterName="prod-eks", addonName=GOVERNANCE)
        world.settle()
        return arn

    def test_scheduler_config(self, world: Any, cluster_arn: str) -> None:
        kind = "AWS::SageMaker::ClusterSchedulerConfig"
        before = {"Name": "prod", "ClusterArn": cluster_arn, "SchedulerConfig": {"FairShare": "Enabled"}}
        made = create(world, kind, before)
        assert made.physical_id == made.attributes["ClusterSchedulerConfigArn"]
        assert found_again(world, kind, made, before, "ClusterSchedulerConfigArn")
        assert found_again(world, kind, made, before, "ClusterSchedulerConfigId")
        assert (made.attributes["ClusterSchedulerConfigVersion"], made.attributes["Status"]) == (1, "Created")
        after = {**before, "SchedulerConfig": {"FairShare": "Disabled"}}
        assert update(world, kind, made, before, after).attributes["ClusterSchedulerConfigVersion"] == 2
        delete(world, kind, made, after)
        assert world.client("sagemaker").list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"] == []

    def test_compute_quota(self, world: Any, cluster_arn: str) -> None:
        kind = "AWS::SageMaker::ComputeQuota"
        resources = [{"InstanceType": "ml.m5.2xlarge", "Count": 1}]
        before = {
            "Name": "research",
            "ClusterArn": cluster_arn,
            "ComputeQuotaConfig": {"ComputeQuotaResources": resources},
            "ComputeQuotaTarget": {"TeamName": "research"},
        }
        made = create(world, kind, before)
        assert made.physical_id == made.attributes["ComputeQuotaArn"]
        assert found_again(world, kind, made, before, "ComputeQuotaArn")
        names = [item["metadata"]["name"] for item in kubernetes_store.objects(world.context, "prod-eks")]
        assert "hyperpod-ns-research" in names
        after = {**before, "Description": "ours"}
        assert update(world, kind, made, before, after).attributes["Status"] == "Updated"
        delete(world, kind, made, after)


class TestFileSystem:
    TYPE = "AWS::FSx::FileSystem"

    def properties(self, world: Any, **lustre: Any) -> dict[str, Any]:
        configuration = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}
        return {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": "2400",
            "SubnetIds": [world.subnets["use1-az5"]],
            "SecurityGroupIds": [world.security_group_id],
            "LustreConfiguration": {**configuration, **lustre},
        }

    def test_ref_update_and_delete(self, world: Any) -> None:
        before = self.properties(world)
        made = create(world, self.TYPE, before)
        assert made.attributes["DNSName"] == f"{made.physical_id}.fsx.us-east-1.amazonaws.com"
        assert len(made.attributes["LustreMountName"]) == 8
        after = {**self.properties(world, PerUnitStorageThroughput=500), "StorageCapacity": 4800}
        update(world, self.TYPE, made, before, after)
        found = world.client("fsx").describe_file_systems()["FileSystems"][0]
        assert (found["StorageCapacity"], found["LustreConfiguration"]["PerUnitStorageThroughput"]) == (4800, 500)
        delete(world, self.TYPE, made, after)
        assert world.client("fsx").describe_file_systems()["FileSystems"] == []

    def test_efa_is_not_switched_on_later(self, world: Any) -> None:
        before = self.properties(world)
        made = create(world, self.TYPE, before)
        with pytest.raises(HandlerError) as caught:
            update(world, self.TYPE, made, before, self.properties(world, EfaEnabled=True))
        assert (caught.value.code, caught.value.message) == (
            "NotUpdatable",
            "LustreConfiguration members cannot be changed: EfaEnabled",
        )

    def test_the_storage_type_stays(self, world: Any) -> None:
        before = self.properties(world)
        made = create(world, self.TYPE, before)
        with pytest.raises(HandlerError) as caught:
            update(world, self.TYPE, made, before, {**before, "StorageType": "INTELLIGENT_TIERING"})
        assert (caught.value.code, caught.value.message) == ("NotUpdatable", "StorageType cannot be changed")

    def test_scratch_grows(self, world: Any) -> None:
        before = {**self.properties(world), "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}}
        made = create(world, self.TYPE, before)
        update(world, self.TYPE, made, before, {**before, "StorageCapacity": 4800})
        assert world.client("fsx").describe_file_systems()["FileSystems"][0]["StorageCapacity"] == 4800

    def test_a_backup_is_restored(self, world: Any) -> None:
        world.account_file(existing={"backups": [{"backup_id": "backup-01234567", "capacity_gib": 2400}]})
        made = create(world, self.TYPE, {**self.properties(world), "BackupId": "backup-01234567"})
        (found,) = world.client("fsx").describe_file_systems()["FileSystems"]
        assert (found["FileSystemId"], found["StorageCapacity"]) == (made.physical_id, 2400)

    def test_a_link_to_s3(self, world: Any) -> None:
        kind = "AWS::FSx::DataRepositoryAssociation"
        file_system = create(world, self.TYPE, self.properties(world))
        before = {
            "FileSystemId": file_system.physical_id,
            "FileSystemPath": "/datasets",
            "DataRepositoryPath": "s3://my-datasets/",
        }
        made = create(world, kind, before)
        assert made.physical_id == made.attributes["AssociationId"]
        after = {**before, "S3": {"AutoImportPolicy": {"Events": ["NEW"]}}}
        update(world, kind, made, before, after)
        found = world.client("fsx").describe_data_repository_associations()["Associations"][0]
        assert found["S3"] == after["S3"]
        delete(world, kind, made, after)
