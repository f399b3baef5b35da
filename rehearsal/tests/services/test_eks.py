"""EKS clusters, their access entries, pod identities and add-ons."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.published import kubernetes
from hyperpod_cdk_rehearsal.embedded.services import eks as service
from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store
from hyperpod_cdk_rehearsal.embedded.services.stores import Table

REPLICAS = {
    "code": "InsufficientNumberOfReplicas",
    "message": "The add-on is unhealthy because it doesn't have the desired number of replicas.",
}
OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
POD_TRUST = ["sts:AssumeRole", "sts:TagSession"]


def cluster_of(world: Any) -> dict[str, Any]:
    found: dict[str, Any] = world.client("eks").describe_cluster(name="prod-eks")["cluster"]
    return found


def install(world: Any, name: str, **members: Any) -> dict[str, Any]:
    world.client("eks").create_addon(clusterName="prod-eks", addonName=name, **members)
    world.settle()
    return addon(world, name)


def addon(world: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = world.client("eks").describe_addon(clusterName="prod-eks", addonName=name)["addon"]
    return found


class TestCluster:
    def test_states_follow_the_clock(self, world: Any) -> None:
        world.client("eks").create_cluster(**world.eks_request())
        assert (cluster_of(world)["status"], "endpoint" in cluster_of(world)) == ("CREATING", False)
        world.clock.sleep(service.CREATE_SECONDS)
        assert (cluster_of(world)["status"], "endpoint" in cluster_of(world)) == ("ACTIVE", True)

    def test_its_security_group_lets_itself_in_and_everything_out(self, world: Any) -> None:
        world.make_eks()
        group_id = cluster_of(world)["resourcesVpcConfig"]["clusterSecurityGroupId"]
        group = world.client("ec2").describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
        assert group["IpPermissions"][0]["UserIdGroupPairs"][0]["GroupId"] == group_id
        out = [(row["IpProtocol"], row["IpRanges"], row["UserIdGroupPairs"]) for row in group["IpPermissionsEgress"]]
        assert ("-1", [{"CidrIp": "0.0.0.0/0"}]) in [(protocol, ranges) for protocol, ranges, _ in out]
        assert group_id in [pair["GroupId"] for _, _, pairs in out for pair in pairs]
        assert group["VpcId"] == world.vpc_id

    def test_its_security_group_goes_with_it(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        group_id = cluster_of(world)["resourcesVpcConfig"]["clusterSecurityGroupId"]
        world.client("eks").delete_cluster(name="prod-eks")
        world.settle()
        assert refusal(world.client("eks").describe_cluster, name="prod-eks") == (
            "ResourceNotFoundException",
            "No cluster found for name: prod-eks.",
        )
        assert refusal(world.client("ec2").describe_security_groups, GroupIds=[group_id])[0] == "InvalidGroup.NotFound"

    def test_the_name_must_be_free(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        assert refusal(world.client("eks").create_cluster, **world.eks_request()) == (
            "ResourceInUseException",
            "Cluster already exists with name: prod-eks",
        )

    def test_the_number_of_clusters_is_limited(self, world: Any, refusal: Any) -> None:
        world.account_file(quotas={"eks": {"Clusters": 0}})
        assert refusal(world.client("eks").create_cluster, **world.eks_request()) == (
            "ResourceLimitExceededException",
            "Cluster limit exceeded: the account may have 0 clusters.",
        )

    def test_unknown_versions_are_refused(self, world: Any, refusal: Any) -> None:
        assert refusal(world.client("eks").create_cluster, **world.eks_request(version="1.99")) == (
            "InvalidParameterException",
            "unsupported Kubernetes version 1.99",
        )

    @pytest.mark.parametrize("trusts", [None, "ec2.amazonaws.com"])
    def test_the_role_must_be_eks_own(self, world: Any, refusal: Any, trusts: str | None) -> None:
        arn = world.role("wrong", trusts) if trusts else "arn:aws:iam::123456789012:role/nobody"
        assert refusal(world.client("eks").create_cluster, **world.eks_request(roleArn=arn)) == (
            "InvalidParameterException",
            (
                f"Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not "
                "correct"
            ),
        )

    def test_a_role_that_the_account_file_names_exists(self, world: Any) -> None:
        world.account_file(existing={"iam_roles": ["theirs"]})
        world.make_eks(roleArn="arn:aws:iam::123456789012:role/theirs")
        assert cluster_of(world)["status"] == "ACTIVE"

    def test_two_zones_are_needed(self, world: Any, refusal: Any) -> None:
        one = {"subnetIds": [world.subnets["use1-az5"]]}
        assert refusal(world.client("eks").create_cluster, **world.eks_request(resourcesVpcConfig=one)) == (
            "InvalidParameterException",
            "Subnets specified must be in at least two different AZs",
        )

    def test_a_subnet_must_exist(self, world: Any, refusal: Any) -> None:
        config = {"subnetIds": [world.subnets["use1-az5"], "subnet-00000000000000000"]}
        assert refusal(world.client("eks").create_cluster, **world.eks_request(resourcesVpcConfig=config)) == (
            "InvalidParameterException",
            "The subnet ID 'subnet-00000000000000000' does not exist",
        )

    def test_a_security_group_must_exist(self, world: Any, refusal: Any) -> None:
        config = {"subnetIds": list(world.subnets.values()), "securityGroupIds": ["sg-00000000000000000"]}
        assert refusal(world.client("eks").create_cluster, **world.eks_request(resourcesVpcConfig=config)) == (
            "InvalidParameterException",
            "The security group ID 'sg-00000000000000000' does not exist",
        )

    def test_some_zones_carry_no_control_plane(self, world: Any, refusal: Any) -> None:
        ec2 = world.client("ec2")
        subnet = ec2.create_subnet(VpcId=world.vpc_id, CidrBlock="10.0.96.0/24", AvailabilityZoneId="use1-az3")
        config = {"subnetIds": [world.subnets["use1-az5"], subnet["Subnet"]["SubnetId"]]}
        zone = subnet["Subnet"]["AvailabilityZone"]
        others = [f"us-east-1{letter}" for letter in "abcdef" if f"us-east-1{letter}" != zone]
        assert refusal(world.client("eks").create_cluster, **world.eks_request(resourcesVpcConfig=config)) == (
            "UnsupportedAvailabilityZoneException",
            (
                "Cannot create cluster 'prod-eks' because EKS does not support creating control plane instances in "
                f"{zone}, the "
                "targeted availability zone. Retry cluster creation using control plane subnets that span at least two "
                "of these "
                f"availability zones: {', '.join(others)}. Note, post cluster creation, you can run worker nodes in "
                "separate "
                "subnets/availability zones from control plane subnets/availability zones passed during cluster "
                "creation."
            ),
        )

    def test_the_secrets_key_must_exist(self, world: Any, refusal: Any) -> None:
        key = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000"
        encryption = [{"resources": ["secrets"], "provider": {"keyArn": key}}]
        assert refusal(world.client("eks").create_cluster, **world.eks_request(encryptionConfig=encryption)) == (
            "InvalidParameterException",
            f"The KMS key {key} does not exist",
        )

    def test_it_is_not_deleted_under_a_hyperpod_cluster(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        assert refusal(world.client("eks").delete_cluster, name="prod-eks") == (
            "ResourceInUseException",
            "Cluster prod-eks is in use by the SageMaker HyperPod cluster prod. Delete that cluster first.",
        )

    def test_deletion_protection(self, world: Any, refusal: Any) -> None:
        world.make_eks(deletionProtection=True)
        assert refusal(world.client("eks").delete_cluster, name="prod-eks") == (
            "InvalidRequestException",
            "Cluster prod-eks has deletion protection enabled.",
        )

    def test_deletion_protection_does_not_bind_a_cluster_that_is_being_created(self, world: Any) -> None:
        eks = world.client("eks")
        eks.create_cluster(**world.eks_request(deletionProtection=True))
        assert eks.delete_cluster(name="prod-eks")["cluster"]["status"] == "DELETING"

    def test_tags(self, world: Any) -> None:
        world.make_eks(tags={"a": "1"})
        eks, arn = world.client("eks"), cluster_of(world)["arn"]
        eks.tag_resource(resourceArn=arn, tags={"b": "2"})
        eks.untag_resource(resourceArn=arn, tagKeys=["a"])
        assert eks.list_tags_for_resource(resourceArn=arn)["tags"] == {"b": "2"}


class TestUpdates:
    @pytest.mark.parametrize(("wanted", "allowed"), [("1.35", True), ("1.36", False), ("1.34", False), ("1.33", False)])
    def test_one_minor_version_at_a_time(self, world: Any, refusal: Any, wanted: str, allowed: bool) -> None:  # noqa: FBT001 - table
        world.make_eks()
        update = world.client("eks").update_cluster_version
        if allowed:
            update(name="prod-eks", version=wanted)
            assert cluster_of(world)["status"] == "UPDATING"
            world.settle()
            assert (cluster_of(world)["status"], cluster_of(world)["version"]) == ("ACTIVE", wanted)
            return
        assert refusal(update, name="prod-eks", version=wanted) == (
            "InvalidParameterException",
            f"Unsupported Kubernetes minor version update from 1.34 to {wanted}",
        )

    def test_back_by_one_minor_version_within_seven_days(self, world: Any, refusal: Any) -> None:
        # EKS user guide, rollback-cluster
        world.make_eks()
        update = world.client("eks").update_cluster_version
        for days, is_taken in ((6.9, True), (7.1, False)):
            update(name="prod-eks", version="1.35")
            world.clock.sleep(days * 24 * 3600)
            too_far = ("InvalidParameterException", "Unsupported Kubernetes minor version update from 1.35 to 1.33")
            assert refusal(update, name="prod-eks", version="1.33") == too_far
            if is_taken:
                assert update(name="prod-eks", version="1.34")["update"]["type"] == "VersionRollback"
                world.settle()
                assert cluster_of(world)["version"] == "1.34"
                # it was taken back: nothing is left to go back from
                assert refusal(update, name="prod-eks", version="1.33")[1].endswith("from 1.34 to 1.33")
            else:
                assert refusal(update, name="prod-eks", version="1.34")[1].endswith("from 1.35 to 1.34")

    def test_an_update_succeeds_in_time(self, world: Any) -> None:
        world.make_eks()
        eks = world.client("eks")
        made = eks.update_cluster_version(name="prod-eks", version="1.35")["update"]
        assert made["status"] == "InProgress"
        world.settle()
        assert eks.describe_update(name="prod-eks", updateId=made["id"])["update"]["status"] == "Successful"
        assert eks.list_updates(name="prod-eks")["updateIds"] == [made["id"]]

    def test_one_kind_of_change_at_a_time(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        logging = {"clusterLogging": [{"types": ["api"], "enabled": True}]}
        access = {"authenticationMode": "API"}
        assert refusal(
            world.client("eks").update_cluster_config, name="prod-eks", logging=logging, accessConfig=access
        ) == ("InvalidParameterException", "Only one type of update can be allowed.")

    def test_logging(self, world: Any) -> None:
        world.make_eks()
        logging = {"clusterLogging": [{"types": ["api", "audit"], "enabled": True}]}
        world.client("eks").update_cluster_config(name="prod-eks", logging=logging)
        assert cluster_of(world)["logging"]["clusterLogging"] == [
            {"types": ["api", "audit"], "enabled": True},
            {"types": ["authenticator", "controllerManager", "scheduler"], "enabled": False},
        ]

    def test_the_authentication_mode_only_goes_forward(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        config = {"authenticationMode": "API_AND_CONFIG_MAP"}
        assert refusal(world.client("eks").update_cluster_config, name="prod-eks", accessConfig=config) == (
            "InvalidParameterException",
            "Unsupported authentication mode update from API to API_AND_CONFIG_MAP",
        )

    def test_not_while_another_runs(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        eks = world.client("eks")
        eks.update_cluster_version(name="prod-eks", version="1.35")
        assert refusal(eks.update_cluster_config, name="prod-eks", deletionProtection=True) == (
            "ResourceInUseException",
            "Cannot update cluster prod-eks: it is UPDATING",
        )


def test_cluster_versions_carry_their_support(world: Any) -> None:
    found = world.client("eks").describe_cluster_versions()["clusterVersions"]
    by_version = {item["clusterVersion"]: item["versionStatus"] for item in found}
    assert by_version["1.34"] == "STANDARD_SUPPORT"
    assert by_version["1.31"] == "EXTENDED_SUPPORT"
    assert "1.29" not in by_version
    everything = world.client("eks").describe_cluster_versions(includeAll=True)["clusterVersions"]
    assert {item["clusterVersion"]: item["versionStatus"] for item in everything}["1.29"] == "UNSUPPORTED"
    default = world.client("eks").describe_cluster_versions(defaultOnly=True)["clusterVersions"]
    assert [item["clusterVersion"] for item in default] == [kubernetes.DEFAULT]


class TestAccessEntries:
    ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"

    def test_an_entry_and_its_policies(self, world: Any) -> None:
        world.make_eks()
        eks, principal = world.client("eks"), world.role("admin", "ec2.amazonaws.com")
        names = {"clusterName": "prod-eks", "principalArn": principal}
        entry = eks.create_access_entry(**names)["accessEntry"]
        assert entry["username"] == "arn:aws:sts::123456789012:assumed-role/admin/{{SessionName}}"
        eks.associate_access_policy(**names, policyArn=self.ADMIN, accessScope={"type": "cluster"})
        policies = eks.list_associated_access_policies(**names)["associatedAccessPolicies"]
        assert [item["policyArn"] for item in policies] == [self.ADMIN]
        assert eks.list_access_entries(clusterName="prod-eks", associatedPolicyArn=self.ADMIN)["accessEntries"] == [
            principal
        ]
        eks.disassociate_access_policy(**names, policyArn=self.ADMIN)
        assert eks.list_associated_access_policies(**names)["associatedAccessPolicies"] == []
        eks.delete_access_entry(**names)
        assert eks.list_access_entries(clusterName="prod-eks")["accessEntries"] == []

    @pytest.mark.parametrize(
        "principal",
        [
            "arn:aws:iam::123456789012:role/nobody",
            "arn:aws:iam::123456789012:user/nobody",
            "arn:aws:sts::123456789012:assumed-role/nodes/x",
            # https://github.com/terraform-aws-modules/terraform-aws-eks/issues/2969: the role has a path
            "arn:aws:iam::123456789012:role/AWSReservedSSO_Admin_1f9ff11932198c00",
        ],
    )
    def test_the_principal_must_exist(self, world: Any, refusal: Any, principal: str) -> None:
        path = "aws-reserved/sso.amazonaws.com"
        world.account_file(existing={"iam_roles": [f"{path}/AWSReservedSSO_Admin_1f9ff11932198c00"]})
        world.make_eks()
        assert refusal(world.client("eks").create_access_entry, clusterName="prod-eks", principalArn=principal) == (
            "InvalidParameterException",
            "The specified principalArn is invalid: invalid principal.",
        )

    def test_a_role_with_a_path_is_taken_by_its_whole_arn(self, world: Any) -> None:
        world.account_file(existing={"iam_roles": ["team/admin"]})
        world.make_eks()
        principal = "arn:aws:iam::123456789012:role/team/admin"
        world.client("eks").create_access_entry(clusterName="prod-eks", principalArn=principal)

    def test_a_principal_of_another_account_is_taken(self, world: Any) -> None:
        world.make_eks()
        principal = "arn:aws:iam::210987654321:role/theirs"
        world.client("eks").create_access_entry(clusterName="prod-eks", principalArn=principal)
        assert world.client("eks").list_access_entries(clusterName="prod-eks")["accessEntries"] == [principal]

    def test_one_entry_for_each_principal(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        names = {"clusterName": "prod-eks", "principalArn": world.node_role_arn}
        world.client("eks").create_access_entry(**names)
        assert refusal(world.client("eks").create_access_entry, **names) == (
            "ResourceInUseException",
            "The specified access entry resource is already in use on this cluster.",
        )

    def test_not_with_a_config_map_alone(self, world: Any, refusal: Any) -> None:
        world.make_eks(accessConfig={"authenticationMode": "CONFIG_MAP"})
        names = {"clusterName": "prod-eks", "principalArn": world.node_role_arn}
        assert refusal(world.client("eks").create_access_entry, **names) == (
            "InvalidRequestException",
            (
                "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
                "operation."
            ),
        )

    def test_reserved_groups_are_refused(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        names = {"clusterName": "prod-eks", "principalArn": world.node_role_arn}
        code, message = refusal(world.client("eks").create_access_entry, **names, kubernetesGroups=["system:masters"])
        assert (code, message) == (
            "InvalidParameterException",
            (
                "The kubernetes group name system:masters is invalid, it cannot start with system:, eks:, aws:, "
                "amazon:, iam:"
            ),
        )

    def test_an_unknown_entry_is_not_found(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        names = {"clusterName": "prod-eks", "principalArn": world.node_role_arn}
        assert refusal(world.client("eks").describe_access_entry, **names) == (
            "ResourceNotFoundException",
            (
                "The specified principalArn could not be found. You can view your available access entries with "
                "'list-access-entries'."
            ),
        )


class TestPodIdentity:
    def names(self, role: str) -> dict[str, str]:
        return {"clusterName": "prod-eks", "namespace": "team", "serviceAccount": "runner", "roleArn": role}

    def test_an_association(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        eks = world.client("eks")
        role = world.role("pods", "pods.eks.amazonaws.com", trust=POD_TRUST)
        made = eks.create_pod_identity_association(**self.names(role))["association"]
        listed = eks.list_pod_identity_associations(clusterName="prod-eks", namespace="team")["associations"]
        assert [item["associationId"] for item in listed] == [made["associationId"]]
        assert refusal(eks.create_pod_identity_association, **self.names(role)) == (
            "ResourceInUseException",
            f"Association already exists: {made['associationId']}",
        )
        eks.delete_pod_identity_association(clusterName="prod-eks", associationId=made["associationId"])
        assert eks.list_pod_identity_associations(clusterName="prod-eks")["associations"] == []

    @pytest.mark.parametrize("trust", ["sts:AssumeRole", "sts:TagSession"])
    def test_the_role_must_allow_both_actions(self, world: Any, refusal: Any, trust: str) -> None:
        world.make_eks()
        role = world.role("pods", "pods.eks.amazonaws.com", trust=trust)
        assert refusal(world.client("eks").create_pod_identity_association, **self.names(role)) == (
            "InvalidParameterException",
            (
                f"Role {role} does not exist or does not trust pods.eks.amazonaws.com with sts:AssumeRole and "
                "sts:TagSession"
            ),
        )


class TestAddons:
    @pytest.mark.parametrize("name", ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"])
    def test_some_need_no_node(self, world: Any, name: str) -> None:
        world.make_eks()
        assert (install(world, name)["status"], addon(world, name)["health"]["issues"]) == ("ACTIVE", [])

    @pytest.mark.parametrize("name", ["coredns", "cert-manager", "aws-fsx-csi-driver", "metrics-server"])
    def test_others_are_degraded_until_a_node_runs(self, world: Any, name: str) -> None:
        world.make_eks()
        install(world, "eks-pod-identity-agent")
        installed = install(world, name)
        assert (installed["status"], installed["health"]["issues"]) == ("DEGRADED", [REPLICAS])
        world.make_hyperpod()
        assert addon(world, name)["status"] == "ACTIVE"

    def test_the_fsx_driver_needs_the_agent_before_or_after_itself(self, world: Any) -> None:
        world.make_hyperpod()
        (issue,) = install(world, "aws-fsx-csi-driver")["health"]["issues"]
        assert issue["message"] == "Amazon EKS Pod Identity agent is not installed in the cluster"
        install(world, "eks-pod-identity-agent")
        assert addon(world, "aws-fsx-csi-driver")["status"] == "ACTIVE"

    def test_they_take_time(self, world: Any) -> None:
        world.make_eks()
        world.client("eks").create_addon(clusterName="prod-eks", addonName="vpc-cni")
        assert addon(world, "vpc-cni")["status"] == "CREATING"

    def test_once_only(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        install(world, "vpc-cni")
        assert refusal(world.client("eks").create_addon, clusterName="prod-eks", addonName="vpc-cni") == (
            "ResourceInUseException",
            "Addon already exists.",
        )

    def test_an_unknown_one_is_refused(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        assert refusal(world.client("eks").create_addon, clusterName="prod-eks", addonName="vpc-cny") == (
            "InvalidParameterException",
            "Addon vpc-cny specified is not supported in 1.34 kubernetes version",
        )

    def test_a_version_has_eks_form(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        assert refusal(
            world.client("eks").create_addon, clusterName="prod-eks", addonName="vpc-cni", addonVersion="1.20.4"
        ) == ("InvalidParameterException", "Addon version specified is not supported: 1.20.4")

    @pytest.mark.parametrize(
        ("version", "fits"),
        [
            ("v1.35.0-eksbuild.2", False),
            ("v1.34.1-eksbuild.2", True),
            ("v1.31.13-eksbuild.2", True),
            ("v1.30.14-eksbuild.8", False),
        ],
    )
    def test_kube_proxy_follows_the_skew_policy(self, world: Any, refusal: Any, version: str, fits: bool) -> None:  # noqa: FBT001 - table
        world.make_eks()
        create = world.client("eks").create_addon
        wanted = {"clusterName": "prod-eks", "addonName": "kube-proxy", "addonVersion": version}
        if fits:
            create(**wanted)
            return
        assert refusal(create, **wanted) == (
            "InvalidParameterException",
            f"Addon version specified is not supported: {version}",
        )

    def test_an_account_says_which_versions_fit_which_kubernetes(self, world: Any, refusal: Any) -> None:
        old, new = "v1.12.4-eksbuild.1", "v1.14.2-eksbuild.4"
        world.account_file(
            kubernetes={
                "addons_for": {"1.34": {"coredns": [old]}, "1.35": {"coredns": [new, old]}, "1.36": {"coredns": []}}
            }
        )
        world.make_eks()
        assert install(world, "coredns")["addonVersion"] == old
        eks = world.client("eks")
        update = {"clusterName": "prod-eks", "addonName": "coredns", "addonVersion": new}
        said = ("InvalidParameterException", f"Addon version specified is not supported: {new}")
        assert refusal(eks.update_addon, **update) == said
        eks.update_cluster_version(name="prod-eks", version="1.35")
        world.settle()
        eks.update_addon(**update)
        (found,) = eks.describe_addon_versions(addonName="coredns")["addons"]
        suited = {
            each["addonVersion"]: [(row["clusterVersion"], row["defaultVersion"]) for row in each["compatibilities"]]
            for each in found["addonVersions"]
        }
        assert suited[new] == [("1.35", True)]
        assert [row for row in suited[old] if row[0] in {"1.34", "1.35", "1.36"}] == [("1.34", True), ("1.35", False)]

    def test_configuration_must_be_json(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        code, message = refusal(
            world.client("eks").create_addon, clusterName="prod-eks", addonName="vpc-cni", configurationValues="{a"
        )
        assert code == "InvalidParameterException"
        assert message.startswith("ConfigurationValue provided in request is not valid JSON: ")

    def test_update_and_delete(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        install(world, "vpc-cni")
        eks = world.client("eks")
        eks.update_addon(clusterName="prod-eks", addonName="vpc-cni", addonVersion="v1.21.0-eksbuild.1")
        assert addon(world, "vpc-cni")["status"] == "UPDATING"
        world.settle()
        assert (addon(world, "vpc-cni")["status"], addon(world, "vpc-cni")["addonVersion"]) == (
            "ACTIVE",
            "v1.21.0-eksbuild.1",
        )
        assert eks.list_addons(clusterName="prod-eks")["addons"] == ["vpc-cni"]
        eks.delete_addon(clusterName="prod-eks", addonName="vpc-cni")
        assert addon(world, "vpc-cni")["status"] == "DELETING"
        world.settle()
        assert refusal(eks.describe_addon, clusterName="prod-eks", addonName="vpc-cni") == (
            "ResourceNotFoundException",
            "No addon: vpc-cni found in cluster: prod-eks",
        )

    def test_pod_identity_comes_and_goes_with_the_addon(self, world: Any) -> None:
        world.make_eks()
        role = world.role("csi", "pods.eks.amazonaws.com", trust=POD_TRUST)
        association = [{"serviceAccount": "fsx-csi-controller-sa", "roleArn": role}]
        installed = install(world, "aws-fsx-csi-driver", podIdentityAssociations=association)
        listed = world.client("eks").list_pod_identity_associations(clusterName="prod-eks")["associations"]
        assert [item["associationArn"] for item in listed] == installed["podIdentityAssociations"]
        world.client("eks").delete_addon(clusterName="prod-eks", addonName="aws-fsx-csi-driver")
        assert world.client("eks").list_pod_identity_associations(clusterName="prod-eks")["associations"] == []

    def test_versions_on_offer(self, world: Any) -> None:
        found = world.client("eks").describe_addon_versions(addonName="kube-proxy", kubernetesVersion="1.34")["addons"]
        assert [item["addonVersion"] for item in found[0]["addonVersions"]] == ["v1.34.0-eksbuild.1"]
        for old in ("1.29",):
            names = {
                item["addonName"]
                for item in world.client("eks").describe_addon_versions(kubernetesVersion=old)["addons"]
            }
            assert GOVERNANCE not in names
            assert "coredns" in names


class TestTaskGovernanceAddon:
    def test_it_is_degraded_until_there_is_a_node(self, world: Any) -> None:
        world.make_eks()
        installed = install(world, GOVERNANCE)
        assert (installed["status"], installed["health"]["issues"]) == ("DEGRADED", [REPLICAS])
        world.make_hyperpod()
        assert addon(world, GOVERNANCE)["status"] == "ACTIVE"

    def test_it_works_with_a_node(self, world: Any) -> None:
        world.make_hyperpod()
        assert install(world, GOVERNANCE)["status"] == "ACTIVE"

    def test_it_will_not_have_another_kueue(self, world: Any) -> None:
        world.make_hyperpod()
        kubernetes_store.record_helm_release(world.context, "prod-eks", "queues", "kueue-system", "kueue", {})
        assert install(world, GOVERNANCE)["health"]["issues"] == [
            {
                "code": "ConfigurationConflict",
                "message": "Kueue is installed already by the Helm release queues. Remove it first.",
            }
        ]

    def test_it_does_not_skip_from_1_3_to_1_5(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        install(world, GOVERNANCE, addonVersion="v1.3.1-eksbuild.1")
        update = world.client("eks").update_addon
        names = {"clusterName": "prod-eks", "addonName": GOVERNANCE}
        assert refusal(update, **names, addonVersion="v1.5.0-eksbuild.1") == (
            "InvalidParameterException",
            f"Addon {GOVERNANCE} cannot be updated from v1.3.1-eksbuild.1 to v1.5.0-eksbuild.1 directly",
        )
        update(**names, addonVersion="v1.4.0-eksbuild.1")


class TestTrainingOperator:
    def ready(self, world: Any, *, association: bool = True, without: str = "", **members: Any) -> dict[str, Any]:
        world.make_hyperpod(**members)
        for name in ("cert-manager", "eks-pod-identity-agent"):
            if name != without:
                install(world, name)
        if association:
            role = world.role("operator", "pods.eks.amazonaws.com", trust=POD_TRUST)
            world.client("eks").create_pod_identity_association(
                clusterName="prod-eks",
                namespace="aws-hyperpod",
                serviceAccount="hp-training-operator-controller-manager",
                roleArn=role,
            )
        return install(world, OPERATOR)

    def test_with_everything_it_needs(self, world: Any) -> None:
        assert self.ready(world)["status"] == "ACTIVE"

    @pytest.mark.parametrize("missing", ["cert-manager", "eks-pod-identity-agent"])
    def test_another_addon_is_missing(self, world: Any, missing: str) -> None:
        installed = self.ready(world, without=missing)
        assert (installed["status"], installed["health"]["issues"][0]["message"]) == (
            "CREATE_FAILED",
            f"The add-on {missing} is required, it is not installed.",
        )

    def test_no_pod_identity_association(self, world: Any) -> None:
        installed = self.ready(world, association=False)
        assert (installed["status"], installed["health"]["issues"][0]["message"]) == (
            "CREATE_FAILED",
            "The service account aws-hyperpod/hp-training-operator-controller-manager has no pod identity association.",
        )

    def test_no_tag_on_the_cluster(self, world: Any) -> None:
        installed = self.ready(world, Tags=[{"Key": "team", "Value": "ml"}])
        assert (installed["status"], installed["health"]["issues"][0]["message"]) == (
            "CREATE_FAILED",
            "The HyperPod cluster prod does not carry the tag SageMaker=true.",
        )

    def test_inline_pod_identity_is_refused(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        role = world.role("operator", "pods.eks.amazonaws.com", trust=POD_TRUST)
        association = [{"serviceAccount": "hp-training-operator-controller-manager", "roleArn": role}]
        assert refusal(
            world.client("eks").create_addon,
            clusterName="prod-eks",
            addonName=OPERATOR,
            podIdentityAssociations=association,
        ) == (
            "InvalidParameterException",
            f"Pod Identity feature is not supported for addon version {OPERATOR}:v1.2.1-eksbuild.1",
        )


def test_a_table_is_gone_through_while_another_request_adds_to_it() -> None:
    table: Table[str, int] = Table(a=1, b=2)
    for read in (table.values, table.items, lambda: list(table)):
        for _ in read():
            table[f"{len(table)}"] = 0
    assert len(table) == 2 + 2 + 4 + 8
    assert max(table.items()) == ("b", 2)
