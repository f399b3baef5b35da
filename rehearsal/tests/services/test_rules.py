"""What AWS enforces on a HyperPod cluster, each rule passing and failing with the whole text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hyperpod_cdk_rehearsal.embedded.services import kubernetes_store

EFA = (
    "EFA health checks did not run successfully. Ensure that your VPC and security groups are properly configured "
    "before "
    "attempting to create a new cluster."
)
LIFECYCLE = (
    "Lifecycle scripts did not run successfully. Ensure the scripts exist in provided S3 path, are accessible, and run "
    "without errors. Please see CloudWatch logs for lifecycle script execution details."
)
NETWORK = "Instance bootstrap failed likely because of customer network misconfiguration."
QUOTA_ADVICE = (
    "Please use AWS Service Quotas to request an increase for this quota. If AWS Service Quotas is not available, "
    "contact "
    "AWS support to request an increase for this quota."
)
EKS_ARN = "arn:aws:eks:us-east-1:123456789012:cluster/prod-eks"
PLAN = {"name": "h100", "instance_type": "ml.p5.48xlarge", "instance_count": 2, "availability_zone_id": "use1-az5"}
PLAN_ARN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/h100"


def create_refused(world: Any, refusal: Any, *groups: Any, eks: bool = True, **members: Any) -> tuple[str, str]:
    if eks:
        world.make_eks()
    request = world.hyperpod_request(*groups, **members)
    code, message = refusal(world.client("sagemaker").create_cluster, **request)
    return code, message


def status(world: Any) -> str:
    return str(world.client("sagemaker").describe_cluster(ClusterName="prod")["ClusterStatus"])


def p5(world: Any, **members: Any) -> dict[str, Any]:
    found: dict[str, Any] = world.group("h100", "ml.p5.48xlarge", 2, **members)
    return found


class TestEfaSecurityGroups:
    def test_rules_both_ways_pass(self, world: Any) -> None:
        world.make_hyperpod(p5(world))
        assert status(world) == "InService"

    @pytest.mark.parametrize(("ingress", "egress"), [(True, False), (False, True), (False, False)])
    def test_a_missing_direction_fails(self, world: Any, ingress: bool, egress: bool) -> None:  # noqa: FBT001 - table
        world.security_group_id = world.security_group("half", ingress=ingress, egress=egress)
        assert world.failure_message(p5(world)) == (
            f"{EFA} Rehearsal: none of {world.security_group_id} has an ingress rule and an egress rule for all "
            "traffic "
            "that name the group itself."
        )

    def test_a_second_group_may_carry_the_rules(self, world: Any) -> None:
        plain = world.security_group("plain", ingress=False, egress=False)
        network = {"SecurityGroupIds": [plain, world.security_group_id], "Subnets": [world.subnets["use1-az5"]]}
        world.make_hyperpod(p5(world, OverrideVpcConfig=network))
        assert status(world) == "InService"

    def test_types_without_efa_need_no_rule(self, world: Any) -> None:
        world.security_group_id = world.security_group("plain", ingress=False, egress=False)
        world.make_hyperpod(world.group())
        assert status(world) == "InService"

    def test_a_group_of_none_is_not_launched(self, world: Any) -> None:
        world.security_group_id = world.security_group("plain", ingress=False, egress=False)
        world.make_hyperpod(world.group("h100", "ml.p5.48xlarge", 0))
        assert status(world) == "InService"

    def test_the_cluster_fails_where_it_provisions_all_or_nothing(self, world: Any) -> None:
        world.security_group_id = world.security_group("half", egress=False)
        group = p5(world)
        message = world.failure_message(group)
        world.client("sagemaker").delete_cluster(ClusterName="prod")
        world.settle()
        assert world.failure_message(group, NodeProvisioningMode=None) == message
        assert world.client("sagemaker").list_cluster_nodes(ClusterName="prod")["ClusterNodeSummaries"] == []


class TestTrainingPlan:
    @pytest.mark.parametrize("state", ["Active", "Scheduled"])
    def test_a_usable_plan_passes(self, world: Any, state: str) -> None:
        world.account_file(training_plans={"plans": [{**PLAN, "status": state}]})
        world.make_hyperpod(p5(world, TrainingPlanArn=PLAN_ARN))
        group = world.client("sagemaker").describe_cluster(ClusterName="prod")["InstanceGroups"][0]
        expected = 2 if state == "Active" else 0
        assert (group["Status"], group["CurrentCount"], group["TargetCount"]) == ("InService", expected, 2)

    @pytest.mark.parametrize("state", ["Pending", "Expired", "Failed"])
    def test_other_states_are_refused(self, world: Any, refusal: Any, state: str) -> None:
        world.account_file(training_plans={"plans": [{**PLAN, "status": state}]})
        assert create_refused(world, refusal, p5(world, TrainingPlanArn=PLAN_ARN)) == (
            "ValidationException",
            f"Training plan {PLAN_ARN} is {state}; it must be Scheduled or Active.",
        )

    @pytest.mark.parametrize(
        "arn",
        [
            "arn:aws:sagemaker:us-east-1:123456789012:training-plan/other",
            "arn:aws:sagemaker:us-west-2:123456789012:training-plan/h100",
            "arn:aws:sagemaker:us-east-1:210987654321:training-plan/h100",
        ],
    )
    def test_a_plan_of_another_name_region_or_account_is_not_found(self, world: Any, refusal: Any, arn: str) -> None:
        world.account_file(training_plans={"plans": [PLAN]})
        assert create_refused(world, refusal, p5(world, TrainingPlanArn=arn)) == (
            "ValidationException",
            f"Training plan {arn} does not exist in account 123456789012 in us-east-1.",
        )

    def test_the_target_must_be_hyperpod(self, world: Any, refusal: Any) -> None:
        world.account_file(training_plans={"plans": [{**PLAN, "target_resources": ["training-job", "endpoint"]}]})
        assert create_refused(world, refusal, p5(world, TrainingPlanArn=PLAN_ARN)) == (
            "ValidationException",
            f"Training plan {PLAN_ARN} is for training-job, endpoint; it cannot be used for hyperpod-cluster.",
        )

    def test_the_type_must_be_equal(self, world: Any, refusal: Any) -> None:
        world.account_file(training_plans={"plans": [{**PLAN, "instance_type": "ml.p5en.48xlarge"}]})
        assert create_refused(world, refusal, p5(world, TrainingPlanArn=PLAN_ARN)) == (
            "ValidationException",
            f"Training plan {PLAN_ARN} is for ml.p5en.48xlarge, instance group 'h100' uses ml.p5.48xlarge.",
        )

    @pytest.mark.parametrize(("count", "fits"), [(1, True), (2, True), (3, False)])
    def test_the_instances_must_be_free(self, world: Any, refusal: Any, count: int, fits: bool) -> None:  # noqa: FBT001 - table
        world.account_file(training_plans={"plans": [PLAN]})
        group = world.group("h100", "ml.p5.48xlarge", count, TrainingPlanArn=PLAN_ARN)
        if fits:
            world.make_hyperpod(group)
            assert status(world) == "InService"
            return
        assert create_refused(world, refusal, group) == (
            "ResourceLimitExceeded",
            f"Training plan {PLAN_ARN} has 2 available instances of 2, the request needs 3.",
        )

    def test_groups_share_the_plan(self, world: Any, refusal: Any) -> None:
        world.account_file(training_plans={"plans": [PLAN]})
        groups = [world.group(name, "ml.p5.48xlarge", 2, TrainingPlanArn=PLAN_ARN) for name in ("a", "b")]
        assert create_refused(world, refusal, *groups) == (
            "ResourceLimitExceeded",
            f"Training plan {PLAN_ARN} has 2 available instances of 2, the request needs 4.",
        )

    def test_the_zone_must_be_the_plans(self, world: Any, refusal: Any) -> None:
        world.account_file(training_plans={"plans": [{**PLAN, "availability_zone_id": "use1-az6"}]})
        assert create_refused(world, refusal, p5(world, TrainingPlanArn=PLAN_ARN)) == (
            "ValidationException",
            (
                f"No subnets in the capacity AZ. Training plan {PLAN_ARN} is in use1-az6, the subnets of instance "
                "group "
                "'h100' "
                "are in use1-az5."
            ),
        )

    def test_a_groups_own_subnet_counts_not_the_clusters(self, world: Any) -> None:
        world.account_file(training_plans={"plans": [{**PLAN, "availability_zone_id": "use1-az4"}]})
        network = {"SecurityGroupIds": [world.security_group_id], "Subnets": [world.subnets["use1-az4"]]}
        world.make_hyperpod(p5(world, TrainingPlanArn=PLAN_ARN, OverrideVpcConfig=network))
        nodes = world.client("sagemaker").list_cluster_nodes(ClusterName="prod")["ClusterNodeSummaries"]
        node = world.client("sagemaker").describe_cluster_node(ClusterName="prod", NodeId=nodes[0]["InstanceId"])
        assert node["NodeDetails"]["Placement"]["AvailabilityZoneId"] == "use1-az4"


class TestNetwork:
    def test_a_public_subnet_is_refused(self, world: Any, refusal: Any) -> None:
        ec2 = world.client("ec2")
        gateway = ec2.describe_internet_gateways()["InternetGateways"][0]["InternetGatewayId"]
        table = world.route_tables["use1-az5"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="8.8.8.8/32", GatewayId=gateway)
        assert create_refused(world, refusal) == (
            "ValidationException",
            (
                f"The subnet '{world.subnets['use1-az5']}' is public: it has a route to an internet gateway. HyperPod "
                "requires "
                "private subnets."
            ),
        )

    def test_a_subnet_must_exist(self, world: Any, refusal: Any) -> None:
        network = {"SecurityGroupIds": [world.security_group_id], "Subnets": ["subnet-00000000000000000"]}
        assert create_refused(world, refusal, VpcConfig=network) == (
            "ValidationException",
            "The subnet ID 'subnet-00000000000000000' does not exist.",
        )

    def test_a_security_group_must_exist(self, world: Any, refusal: Any) -> None:
        network = {"SecurityGroupIds": ["sg-00000000000000000"], "Subnets": [world.subnets["use1-az5"]]}
        assert create_refused(world, refusal, VpcConfig=network) == (
            "ValidationException",
            "The security group 'sg-00000000000000000' does not exist.",
        )

    def test_the_subnets_must_be_in_the_clusters_vpc(self, world: Any, refusal: Any) -> None:
        ec2 = world.client("ec2")
        other = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=other, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
        network = {"SecurityGroupIds": [world.security_group_id], "Subnets": [subnet]}
        assert create_refused(world, refusal, VpcConfig=network) == (
            "ValidationException",
            f"The subnet '{subnet}' is not in the VPC {world.vpc_id} of the EKS cluster.",
        )

    def test_the_security_groups_must_be_in_the_clusters_vpc(self, world: Any, refusal: Any) -> None:
        ec2 = world.client("ec2")
        other = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        group = ec2.create_security_group(GroupName="x", Description="x", VpcId=other)["GroupId"]
        network = {"SecurityGroupIds": [group], "Subnets": [world.subnets["use1-az5"]]}
        assert create_refused(world, refusal, VpcConfig=network) == (
            "ValidationException",
            f"The security group '{group}' is not in the VPC {world.vpc_id} of the EKS cluster.",
        )

    def test_no_s3_gateway_endpoint_fails(self, world: Any) -> None:
        ec2 = world.client("ec2")
        endpoints = [item["VpcEndpointId"] for item in ec2.describe_vpc_endpoints()["VpcEndpoints"]]
        ec2.delete_vpc_endpoints(VpcEndpointIds=endpoints)
        assert world.failure_message() == (
            f"{NETWORK} Rehearsal: the route table of {world.subnets['use1-az5']} has no S3 gateway endpoint."
        )

    def test_no_default_route_fails(self, world: Any) -> None:
        table = world.route_tables["use1-az5"]
        world.client("ec2").delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")
        assert world.failure_message() == (
            f"{NETWORK} Rehearsal: {world.subnets['use1-az5']} has neither a default route to a NAT gateway nor "
            "interface "
            "endpoints for the services that nodes call."
        )

    def test_interface_endpoints_stand_in_for_the_default_route(self, world: Any) -> None:
        ec2 = world.client("ec2")
        ec2.delete_route(RouteTableId=world.route_tables["use1-az5"], DestinationCidrBlock="0.0.0.0/0")
        ec2.modify_vpc_attribute(VpcId=world.vpc_id, EnableDnsHostnames={"Value": True})
        for service in ("ec2", "ecr.api", "ecr.dkr", "eks-auth", "logs", "sagemaker.api", "ssm", "ssmmessages", "sts"):
            ec2.create_vpc_endpoint(
                VpcId=world.vpc_id,
                ServiceName=f"com.amazonaws.us-east-1.{service}",
                VpcEndpointType="Interface",
                SubnetIds=[world.subnets["use1-az5"]],
            )
        world.make_hyperpod()
        assert status(world) == "InService"

    @pytest.mark.parametrize(("count", "fits"), [(12, True), (13, False)])
    def test_addresses_must_be_free(self, world: Any, count: int, fits: bool) -> None:  # noqa: FBT001 - table
        # a /22 has 1019 usable addresses, a p5.48xlarge takes 81
        ec2 = world.client("ec2")
        subnet = ec2.create_subnet(VpcId=world.vpc_id, CidrBlock="10.0.64.0/22", AvailabilityZoneId="use1-az5")
        subnet_id = subnet["Subnet"]["SubnetId"]
        ec2.associate_route_table(RouteTableId=world.route_tables["use1-az5"], SubnetId=subnet_id)
        network = {"SecurityGroupIds": [world.security_group_id], "Subnets": [subnet_id]}
        group = world.group("h100", "ml.p5.48xlarge", count, OverrideVpcConfig=network)
        if fits:
            world.make_hyperpod(group)
            assert status(world) == "InService"
            return
        assert world.failure_message(group) == (
            "Insufficient free IP addresses. Rehearsal: instance group 'h100' needs 13 x 81 addresses, its subnets "
            "have room "
            "for 12 such nodes."
        )

    @pytest.mark.parametrize(("count", "fits"), [(10, True), (11, False)])
    def test_efa_only_interfaces_take_no_addresses(self, world: Any, count: int, fits: bool) -> None:  # noqa: FBT001 - table
        # a /23 has 507 usable addresses, a p5.48xlarge takes 81 less those of its 31 further network cards
        ec2 = world.client("ec2")
        subnet = ec2.create_subnet(VpcId=world.vpc_id, CidrBlock="10.0.64.0/23", AvailabilityZoneId="use1-az5")
        subnet_id = subnet["Subnet"]["SubnetId"]
        ec2.associate_route_table(RouteTableId=world.route_tables["use1-az5"], SubnetId=subnet_id)
        network = {"SecurityGroupIds": [world.security_group_id], "Subnets": [subnet_id]}
        interface = {"InterfaceType": "efa-only"}
        half = count // 2
        # the second group finds what the nodes of the first left
        groups = [
            world.group(name, "ml.p5.48xlarge", each, OverrideVpcConfig=network, NetworkInterface=interface)
            for name, each in (("a", half), ("b", count - half))
        ]
        if fits:
            world.make_hyperpod(*groups)
            assert status(world) == "InService"
            return
        assert world.failure_message(*groups) == (
            "Insufficient free IP addresses. Rehearsal: instance group 'b' needs 6 x 50 addresses, its subnets have "
            "room for 5 such nodes."
        )

    def test_groups_of_one_request_share_the_addresses(self, world: Any) -> None:
        ec2 = world.client("ec2")
        subnet = ec2.create_subnet(VpcId=world.vpc_id, CidrBlock="10.0.64.0/24", AvailabilityZoneId="use1-az5")
        subnet_id = subnet["Subnet"]["SubnetId"]
        ec2.associate_route_table(RouteTableId=world.route_tables["use1-az5"], SubnetId=subnet_id)
        network = {"SecurityGroupIds": [world.security_group_id], "Subnets": [subnet_id]}
        groups = [world.group(name, "ml.p5.48xlarge", 2, OverrideVpcConfig=network) for name in ("a", "b")]
        assert world.failure_message(*groups) == (
            "Insufficient free IP addresses. Rehearsal: instance group 'b' needs 2 x 81 addresses, its subnets have "
            "room for "
            "1 such nodes."
        )


class TestCapacity:
    @pytest.mark.parametrize(("zones", "fits"), [(["use1-az5"], True), (["use1-az4"], False)])
    def test_the_account_file_may_restrict_it(self, world: Any, zones: list[str], fits: bool) -> None:  # noqa: FBT001 - table
        world.account_file(capacity={"ml.p5.48xlarge": zones})
        if fits:
            world.make_hyperpod(p5(world))
            assert status(world) == "InService"
            return
        assert world.failure_message(p5(world)) == (
            "We currently do not have sufficient capacity to launch new ml.p5.48xlarge instances. Please try again. "
            "Rehearsal: no subnet of instance group 'h100' is in a zone where the account file gives it capacity."
        )


class TestOrchestrator:
    def test_the_eks_cluster_must_exist(self, world: Any, refusal: Any) -> None:
        assert create_refused(world, refusal, eks=False) == (
            "ValidationException",
            f"The EKS cluster {EKS_ARN} does not exist or is not ACTIVE.",
        )

    def test_the_eks_cluster_must_be_active(self, world: Any, refusal: Any) -> None:
        world.client("eks").create_cluster(**world.eks_request())
        assert create_refused(world, refusal, eks=False) == (
            "ValidationException",
            f"The EKS cluster {EKS_ARN} does not exist or is not ACTIVE.",
        )

    @pytest.mark.parametrize("mode", ["API", "API_AND_CONFIG_MAP"])
    def test_authentication_modes_with_access_entries_pass(self, world: Any, mode: str) -> None:
        world.make_eks(accessConfig={"authenticationMode": mode})
        world.make_hyperpod()
        assert status(world) == "InService"

    def test_config_map_alone_is_refused(self, world: Any, refusal: Any) -> None:
        world.make_eks(accessConfig={"authenticationMode": "CONFIG_MAP"})
        assert create_refused(world, refusal, eks=False) == (
            "ValidationException",
            (
                f"The authentication mode of the EKS cluster {EKS_ARN} is CONFIG_MAP; HyperPod requires API or "
                "API_AND_CONFIG_MAP to create its access entries."
            ),
        )

    @pytest.mark.parametrize("version", ["1.30", "1.35"])
    def test_supported_versions_pass(self, world: Any, version: str) -> None:
        world.make_eks(version=version)
        world.make_hyperpod()
        assert status(world) == "InService"

    @pytest.mark.parametrize("version", ["1.29", "1.36"])
    def test_other_versions_are_refused(self, world: Any, refusal: Any, version: str) -> None:
        world.make_eks(version=version)
        assert create_refused(world, refusal, eks=False) == (
            "ValidationException",
            (
                f"Kubernetes version {version} of the EKS cluster {EKS_ARN} is not supported by HyperPod; supported "
                "versions are "
                "1.30 to 1.35."
            ),
        )

    def test_the_chart_must_be_installed(self, world: Any, refusal: Any) -> None:
        world.make_eks(chart=False)
        kubernetes_store.record_helm_release(world.context, "prod-eks", "ingress", "default", "nginx", {})
        assert create_refused(world, refusal, eks=False) == (
            "ValidationException",
            (
                f"The EKS cluster {EKS_ARN} is missing one or more required dependencies. Install the HyperPod Helm "
                "chart before "
                "you create the cluster."
            ),
        )

    def test_an_uninstalled_chart_is_missing(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        kubernetes_store.remove_helm_release(world.context, "prod-eks", "hyperpod-dependencies", "kube-system")
        code, _ = create_refused(world, refusal, eks=False)
        assert code == "ValidationException"

    def test_an_old_vpc_cni_is_refused(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        world.client("eks").create_addon(clusterName="prod-eks", addonName="vpc-cni", addonVersion="v1.18.2-eksbuild.1")
        world.settle()
        assert create_refused(world, refusal, eks=False) == (
            "ValidationException",
            (
                f"The Amazon VPC CNI add-on of the EKS cluster {EKS_ARN} has the version v1.18.2-eksbuild.1, and "
                "HyperPod needs 1.18.3 or later."
            ),
        )

    def test_one_hyperpod_cluster_for_each_eks_cluster(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        assert create_refused(world, refusal, eks=False, ClusterName="second") == (
            "ResourceInUse",
            f"The EKS cluster {EKS_ARN} already orchestrates the HyperPod cluster prod.",
        )

    def test_the_clusters_network_is_required(self, world: Any, refusal: Any) -> None:
        world.make_eks()
        request = world.hyperpod_request()
        del request["VpcConfig"]
        assert refusal(world.client("sagemaker").create_cluster, **request) == (
            "ValidationException",
            "VpcConfig is required for a cluster that is orchestrated by Amazon EKS.",
        )

    def test_the_name_must_be_free(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        assert create_refused(world, refusal, eks=False) == (
            "ResourceInUse",
            "Resource In Use: a cluster with the name prod already exists.",
        )


class TestExecutionRole:
    def refused_role(self, arn: str) -> tuple[str, str]:
        return (
            "ValidationException",
            (
                f"Could not assume role {arn}. Please ensure that the role exists and allows principal "
                "'sagemaker.amazonaws.com' "
                "to assume the role."
            ),
        )

    def test_it_must_exist(self, world: Any, refusal: Any) -> None:
        arn = "arn:aws:iam::123456789012:role/nobody"
        assert create_refused(world, refusal, world.group(ExecutionRole=arn)) == self.refused_role(arn)

    def test_it_must_trust_sagemaker(self, world: Any, refusal: Any) -> None:
        arn = world.role("lambda-role", "lambda.amazonaws.com")
        assert create_refused(world, refusal, world.group(ExecutionRole=arn)) == self.refused_role(arn)

    def test_a_role_without_policies_cannot_see_subnets(self, world: Any, refusal: Any) -> None:
        arn = world.role("bare", "sagemaker.amazonaws.com")
        assert create_refused(world, refusal, world.group(ExecutionRole=arn)) == (
            "ValidationException",
            f"Unable to retrieve subnets. The role {arn} is not authorized to perform: ec2:DescribeSubnets",
        )

    def test_an_explicit_deny_wins(self, world: Any, refusal: Any) -> None:
        arn = world.role("denied", "sagemaker.amazonaws.com", actions={"*": "*"})
        document = {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Deny", "Action": "ec2:Describe*", "Resource": "*"}],
        }
        world.client("iam").put_role_policy(RoleName="denied", PolicyName="deny", PolicyDocument=json.dumps(document))
        code, message = create_refused(world, refusal, world.group(ExecutionRole=arn))
        assert (code, message.split(".")[0]) == ("ValidationException", "Unable to retrieve subnets")

    def test_missing_node_actions_fail_the_launch(self, world: Any) -> None:
        actions = {"*": ["ec2:DescribeSubnets", "ec2:*Network*", "ec2:*Private*", "ec2:Describe*", "ecr:*"]}
        arn = world.role("almost", "sagemaker.amazonaws.com", actions=actions)
        assert world.failure_message(world.group(ExecutionRole=arn)) == (
            f"The role {arn} is not authorized to perform: eks-auth:AssumeRoleForPodIdentity"
        )

    def test_a_customer_managed_policy_counts(self, world: Any) -> None:
        iam = world.client("iam")
        arn = world.role("managed", "sagemaker.amazonaws.com")
        document = json.dumps(
            {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
        )
        policy = iam.create_policy(PolicyName="everything", PolicyDocument=document)["Policy"]["Arn"]
        iam.attach_role_policy(RoleName="managed", PolicyArn=policy)
        world.make_hyperpod(world.group(ExecutionRole=arn))
        assert status(world) == "InService"

    def test_a_permissions_boundary_narrows(self, world: Any, refusal: Any) -> None:
        iam = world.client("iam")
        document = json.dumps(
            {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
        )
        boundary = iam.create_policy(PolicyName="boundary", PolicyDocument=document)["Policy"]["Arn"]
        iam.put_role_permissions_boundary(RoleName="nodes", PermissionsBoundary=boundary)
        code, message = create_refused(world, refusal)
        assert (code, message.split(".")[0]) == ("ValidationException", "Unable to retrieve subnets")


class TestLifecycleScript:
    def config(self, world: Any, uri: str = "", script: str = "on_create.sh") -> dict[str, str]:
        return {"SourceS3Uri": uri or f"s3://{world.bucket}/abc", "OnCreate": script}

    def test_the_bucket_must_be_called_sagemaker(self, world: Any, refusal: Any) -> None:
        group = world.group(LifeCycleConfig=self.config(world, "s3://my-bucket/abc"))
        assert create_refused(world, refusal, group) == (
            "ValidationException",
            (
                "Instance group 'system': LifeCycleConfig.SourceS3Uri must start with s3://sagemaker-, got "
                "s3://my-bucket/abc"
            ),
        )

    def test_the_script_must_be_uploaded_before(self, world: Any) -> None:
        group = world.group(LifeCycleConfig=self.config(world, script="missing.sh"))
        assert world.failure_message(group) == (
            f"{LIFECYCLE} Rehearsal: s3://{world.bucket}/abc/missing.sh does not exist."
        )

    def test_it_needs_a_shebang(self, world: Any) -> None:
        world.client("s3").put_object(Bucket=world.bucket, Key="abc/on_create.sh", Body=b"echo hello\n")
        assert world.failure_message() == (
            f"{LIFECYCLE} Rehearsal: s3://{world.bucket}/abc/on_create.sh does not begin with #!."
        )

    def test_it_needs_unix_line_ends(self, world: Any) -> None:
        world.client("s3").put_object(Bucket=world.bucket, Key="abc/on_create.sh", Body=b"#!/bin/bash\r\nexit 0\r\n")
        assert world.failure_message() == (
            f"{LIFECYCLE} Rehearsal: s3://{world.bucket}/abc/on_create.sh has Windows line ends (CRLF)."
        )

    def test_the_role_must_be_able_to_read_it(self, world: Any) -> None:
        world.allow("nodes", {"*": ["ec2:*", "ecr:*", "eks-auth:*"]})
        assert world.failure_message() == (
            f"{LIFECYCLE} Rehearsal: the role {world.node_role_arn} is not authorized to perform s3:ListBucket on "
            f"{world.bucket}."
        )

    def test_it_may_be_left_out(self, world: Any) -> None:
        group = world.group()
        del group["LifeCycleConfig"]
        world.make_hyperpod(group)
        assert status(world) == "InService"

    def test_the_two_kinds_exclude_each_other(self, world: Any, refusal: Any) -> None:
        group = world.group(LifeCycleConfig={**self.config(world), "OnInitComplete": "later.sh"})
        assert create_refused(world, refusal, group) == (
            "ValidationException",
            "Instance group 'system': specify one of OnCreate and OnInitComplete, not both.",
        )


class TestQuotas:
    def test_per_type(self, world: Any, refusal: Any) -> None:
        assert create_refused(world, refusal, world.group("g", "ml.g6.12xlarge", 1)) == (
            "ResourceLimitExceeded",
            (
                "The account-level service limit 'ml.g6.12xlarge for cluster usage' is 0 Instances, with current "
                "utilization of "
                f"0 Instances and a request delta of 1 Instances. {QUOTA_ADVICE}"
            ),
        )

    @pytest.mark.parametrize(("count", "fits"), [(8, True), (9, False)])
    def test_at_the_bound(self, world: Any, refusal: Any, count: int, fits: bool) -> None:  # noqa: FBT001 - table
        group = world.group("g", "ml.g5.12xlarge", count)
        if fits:
            world.make_hyperpod(group)
            assert status(world) == "InService"
            return
        assert create_refused(world, refusal, group) == (
            "ResourceLimitExceeded",
            (
                "The account-level service limit 'ml.g5.12xlarge for cluster usage' is 8 Instances, with current "
                "utilization of "
                f"0 Instances and a request delta of 9 Instances. {QUOTA_ADVICE}"
            ),
        )

    def test_spot_has_a_quota_of_its_own(self, world: Any, refusal: Any) -> None:
        group = world.group("g", "ml.g5.12xlarge", 1, CapacityRequirements={"Spot": {}})
        assert create_refused(world, refusal, group) == (
            "ResourceLimitExceeded",
            (
                "The account-level service limit 'ml.g5.12xlarge for cluster spot instance usage' is 0 Instances, with "
                "current "
                f"utilization of 0 Instances and a request delta of 1 Instances. {QUOTA_ADVICE}"
            ),
        )

    def test_per_cluster(self, world: Any, refusal: Any) -> None:
        groups = [world.group("a", count=15), world.group("b", "ml.g5.12xlarge", 6)]
        assert create_refused(world, refusal, *groups) == (
            "ResourceLimitExceeded",
            (
                "The account-level service limit 'Maximum number instances allowed per SageMaker HyperPod cluster' "
                "is 20 "
                "Instances, with current utilization of 0 Instances and a request delta of 21 Instances. "
                f"{QUOTA_ADVICE}"
            ),
        )

    def test_in_total(self, world: Any, refusal: Any) -> None:
        total = "Total number of instances allowed across SageMaker HyperPod clusters"
        quotas = {**world.context.account_file.document["quotas"]["sagemaker"], total: 3}
        world.account_file(quotas={"sagemaker": quotas})
        assert create_refused(world, refusal, world.group(count=4)) == (
            "ResourceLimitExceeded",
            (
                f"The account-level service limit '{total}' is 3 Instances, with current utilization of 0 Instances "
                "and "
                "a request "
                f"delta of 4 Instances. {QUOTA_ADVICE}"
            ),
        )

    @pytest.mark.parametrize(("size", "fits"), [(1024, True), (1025, False)])
    def test_volume_size(self, world: Any, refusal: Any, size: int, fits: bool) -> None:  # noqa: FBT001 - table
        group = world.group(InstanceStorageConfigs=[{"EbsVolumeConfig": {"VolumeSizeInGB": size}}])
        if fits:
            world.make_hyperpod(group)
            assert status(world) == "InService"
            return
        assert create_refused(world, refusal, group) == (
            "ResourceLimitExceeded",
            (
                "The account-level service limit 'Maximum size of EBS volume in GB for a SageMaker HyperPod cluster "
                "instance' is "
                "1024 Gigabytes, with current utilization of 0 Gigabytes and a request delta of 1025 Gigabytes. "
                f"{QUOTA_ADVICE}"
            ),
        )

    def test_growth_counts_what_is_used(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod(world.group("g", "ml.g5.12xlarge", 6))
        update = world.client("sagemaker").update_cluster
        assert refusal(update, ClusterName="prod", InstanceGroups=[world.group("g", "ml.g5.12xlarge", 9)]) == (
            "ResourceLimitExceeded",
            (
                "The account-level service limit 'ml.g5.12xlarge for cluster usage' is 8 Instances, with current "
                "utilization of "
                f"6 Instances and a request delta of 3 Instances. {QUOTA_ADVICE}"
            ),
        )


class TestGroups:
    def test_names_are_unique(self, world: Any, refusal: Any) -> None:
        assert create_refused(world, refusal, world.group(), world.group()) == (
            "ValidationException",
            "Instance group names must be unique, got more than one of: system.",
        )

    def test_a_type_or_a_list_of_types(self, world: Any, refusal: Any) -> None:
        both = world.group(InstanceRequirements={"InstanceTypes": ["ml.m5.2xlarge"]})
        assert create_refused(world, refusal, both) == (
            "ValidationException",
            "Instance group 'system': specify exactly one of InstanceType and InstanceRequirements.",
        )

    def test_types_of_a_flexible_group_are_unique(self, world: Any, refusal: Any) -> None:
        group = world.group(InstanceRequirements={"InstanceTypes": ["ml.m5.2xlarge", "ml.m5.2xlarge"]})
        del group["InstanceType"]
        assert create_refused(world, refusal, group) == (
            "ValidationException",
            "Instance group 'system': InstanceRequirements must not name an instance type twice.",
        )

    @pytest.mark.parametrize(
        ("member", "value"),
        [("MinInstanceCount", 1), ("CapacityRequirements", {"Spot": {}})],
    )
    def test_what_needs_continuous_provisioning(self, world: Any, refusal: Any, member: str, value: Any) -> None:
        world.make_eks()
        request = world.hyperpod_request(world.group(**{member: value}))
        del request["NodeProvisioningMode"]
        shown = "CapacityRequirements Spot" if member == "CapacityRequirements" else member
        assert refusal(world.client("sagemaker").create_cluster, **request) == (
            "ValidationException",
            f"Instance group 'system': {shown} requires NodeProvisioningMode Continuous.",
        )

    def test_the_minimum_is_not_above_the_count(self, world: Any, refusal: Any) -> None:
        assert create_refused(world, refusal, world.group(count=2, MinInstanceCount=3)) == (
            "ValidationException",
            "Instance group 'system': MinInstanceCount 3 must not be greater than InstanceCount 2.",
        )

    def test_two_threads_need_two_threads(self, world: Any, refusal: Any) -> None:
        assert create_refused(world, refusal, world.group("arm", "ml.m6g.2xlarge", 1)) == (
            "ValidationException",
            "Instance group 'arm': ThreadsPerCore 2 is not supported for ml.m6g.2xlarge.",
        )

    def test_deep_health_checks_need_accelerators(self, world: Any, refusal: Any) -> None:
        assert create_refused(world, refusal, world.group(OnStartDeepHealthChecks=["InstanceStress"])) == (
            "ValidationException",
            "Instance group 'system': OnStartDeepHealthChecks is not supported for ml.m5.2xlarge.",
        )

    def test_a_key_must_exist(self, world: Any, refusal: Any) -> None:
        key = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000"
        storage = [{"EbsVolumeConfig": {"VolumeSizeInGB": 100, "VolumeKmsKeyId": key}}]
        assert create_refused(world, refusal, world.group(InstanceStorageConfigs=storage)) == (
            "ValidationException",
            f"Instance group 'system': the KMS key {key} does not exist.",
        )

    def test_an_existing_key_passes(self, world: Any) -> None:
        key = world.client("kms").create_key()["KeyMetadata"]["Arn"]
        world.allow("nodes", {key: ["kms:CreateGrant", "kms:DescribeKey"]}, "volumes")
        storage = [{"EbsVolumeConfig": {"VolumeSizeInGB": 100, "VolumeKmsKeyId": key}}]
        world.make_hyperpod(world.group(InstanceStorageConfigs=storage))
        assert status(world) == "InService"


class TestImmutableMembers:
    @pytest.mark.parametrize(
        ("member", "value", "shown"),
        [
            ("InstanceType", "ml.g5.12xlarge", "from ml.m5.2xlarge to ml.g5.12xlarge"),
            ("ThreadsPerCore", 1, "from 2 to 1"),
            ("CapacityRequirements", {"OnDemand": {}}, "from none to {'OnDemand': {}}"),
        ],
    )
    def test_a_change_is_refused(self, world: Any, refusal: Any, member: str, value: Any, shown: str) -> None:
        world.make_hyperpod()
        update = world.client("sagemaker").update_cluster
        assert refusal(update, ClusterName="prod", InstanceGroups=[world.group(**{member: value})]) == (
            "ValidationException",
            f"Instance group 'system': {member} cannot be changed {shown}. Create a new instance group instead.",
        )

    def test_the_role(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        other = world.role("other", "sagemaker.amazonaws.com", actions={"*": "*"})
        update = world.client("sagemaker").update_cluster
        assert refusal(update, ClusterName="prod", InstanceGroups=[world.group(ExecutionRole=other)]) == (
            "ValidationException",
            (
                f"Instance group 'system': ExecutionRole cannot be changed from {world.node_role_arn} to {other}. "
                "Create "
                "a new "
                "instance group instead."
            ),
        )

    def test_the_network(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        network = {"SecurityGroupIds": [world.security_group_id], "Subnets": [world.subnets["use1-az4"]]}
        update = world.client("sagemaker").update_cluster
        assert refusal(update, ClusterName="prod", InstanceGroups=[world.group(OverrideVpcConfig=network)]) == (
            "ValidationException",
            (
                f"Instance group 'system': OverrideVpcConfig cannot be changed from none to {network}. Create a new "
                "instance "
                "group instead."
            ),
        )

    def test_a_type_does_not_become_a_list(self, world: Any, refusal: Any) -> None:
        world.make_hyperpod()
        group = world.group(InstanceRequirements={"InstanceTypes": ["ml.m5.2xlarge"]})
        del group["InstanceType"]
        assert refusal(world.client("sagemaker").update_cluster, ClusterName="prod", InstanceGroups=[group]) == (
            "ValidationException",
            (
                "Instance group 'system': InstanceType and InstanceRequirements cannot replace each other. Create a "
                "new "
                "instance "
                "group instead."
            ),
        )

    def test_a_flexible_group_gains_types_but_loses_none(self, world: Any, refusal: Any) -> None:
        def flexible(*types: str) -> dict[str, Any]:
            group: dict[str, Any] = world.group(InstanceRequirements={"InstanceTypes": list(types)})
            del group["InstanceType"]
            return group

        world.make_hyperpod(flexible("ml.m5.2xlarge"))
        sagemaker = world.client("sagemaker")
        sagemaker.update_cluster(ClusterName="prod", InstanceGroups=[flexible("ml.m5.2xlarge", "ml.g5.12xlarge")])
        world.settle()
        assert refusal(sagemaker.update_cluster, ClusterName="prod", InstanceGroups=[flexible("ml.m5.2xlarge")]) == (
            "ValidationException",
            "Instance group 'system': instance types in use cannot be removed: ml.g5.12xlarge.",
        )
