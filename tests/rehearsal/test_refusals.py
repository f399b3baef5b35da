"""What AWS refuses, the rehearsal refuses: faults in the product's own templates are told by text and taken back."""

from __future__ import annotations

import copy
import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from hyperpod_cdk_rehearsal.account_files import load_document
from hyperpod_cdk_rehearsal.embedded.operations import service_error
from hyperpod_cdk_rehearsal.process import EmbeddedAws
from tests.support.assembly import ENVIRONMENTS, Synthesized, shipped
from tests.support.embedded import template_url

pytestmark = pytest.mark.examples
"""Each of them needs prod deployed; what a service refuses by itself stands in rehearsal/tests."""

Template = dict[str, Any]
Edit = Callable[[Template], None]
Step = str | int

ACCOUNT, REGION = "111122223333", "us-east-1"
PLANS = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan"
ROLES = f"arn:aws:iam::{ACCOUNT}:role"
WAVES = (("foundation",), ("storage", "hyperpod"), ("platform", "observability"))
"""What is deployed side by side, one wave after the other."""
STACKS = tuple(stack for wave in WAVES for stack in wave)
BOOTSTRAP_VERSION = "/cdk-bootstrap/hnb659fds/version"
SECONDS_PER_OPERATION = 60

VOLATILE = {"ResponseMetadata", "LastModifiedTime", "modifiedAt", "ComputeQuotaVersion", "AdministrativeActions"}
"""Members of an answer that an update changes and its rollback does not change back."""

SHOWN = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>"),
    (r"\b(subnet|sg|sgr|vpc|rtb|fs|lambda)-[0-9a-f]{8,}", r"<\1>"),
    (r"(?<=/)[0-9a-f]{32}", "<digest>"),
    (r"sagemaker-prod-[0-9a-z-]+", "<lifecycle bucket>"),
    (r"prod-hyperpod-Stranger-\w+", "<stranger>"),
    (r"/[^' ]*/tmp[^' ]*", "<file>"),
)
"""What differs from one run to the next, and what stands for it in the texts below."""


def put(value: Any, logical_id: str, *path: Step) -> Edit:
    """Set a property of a resource, given by the readable part of its logical id."""

    def edit(template: Template) -> None:
        *way, last = path
        target = _resource(template, logical_id)["Properties"]
        for step in way:
            target = target[step]
        target[last] = value

    return edit


def switched_on(logical_id: str, *path: Step) -> Edit:
    """Set a property to true."""
    on: Any = True
    return put(on, logical_id, *path)


def switched_off(logical_id: str, *path: Step) -> Edit:
    """Set a property to false."""
    off: Any = False
    return put(off, logical_id, *path)


def cut(logical_id: str, *path: Step) -> Edit:
    """Remove a property."""

    def edit(template: Template) -> None:
        *way, last = path
        target = _resource(template, logical_id)["Properties"]
        for step in way:
            target = target[step]
        del target[last]

    return edit


def attribute(value: Any, logical_id: str, name: str) -> Edit:
    """Set a resource attribute (DependsOn, DeletionPolicy)."""

    def edit(template: Template) -> None:
        _resource(template, logical_id)[name] = value

    return edit


def without(*logical_ids: str) -> Edit:
    """Remove resources, with the waiting for them and the outputs about them."""

    def edit(template: Template) -> None:
        for logical_id in logical_ids:
            name = _name(template, logical_id)
            del template["Resources"][name]
            for resource in template["Resources"].values():
                if name in resource.get("DependsOn", []):
                    resource["DependsOn"].remove(name)
            for output, content in list(template.get("Outputs", {}).items()):
                if name in json.dumps(content):
                    del template["Outputs"][output]

    return edit


def only(*logical_ids: str) -> Edit:
    """Remove every other resource."""

    def edit(template: Template) -> None:
        kept = {_name(template, logical_id) for logical_id in logical_ids}
        for name in [name for name in template["Resources"] if name not in kept]:
            without(name)(template)

    return edit


def trusting(service: str) -> dict[str, Any]:
    """Return the trust policy of a role that a service takes."""
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def added(logical_id: str, resource_type: str, **properties: Any) -> Edit:
    """Add a resource."""

    def edit(template: Template) -> None:
        template["Resources"][logical_id] = {"Type": resource_type, "Properties": properties}

    return edit


def group(name: str, count: int, **changes: Any) -> Edit:
    """Add an instance group: the first group (ml.p5.48xlarge) under another name, on demand."""

    def edit(template: Template) -> None:
        groups = _resource(template, "Cluster")["Properties"]["InstanceGroups"]
        made = {**copy.deepcopy(groups[0]), "InstanceGroupName": name, "InstanceCount": count, **changes}
        del made["TrainingPlanArn"], made["OnStartDeepHealthChecks"]
        made.update({key: value for key, value in changes.items() if value is not None})
        groups.append(made)

    return edit


@dataclass(frozen=True)
class Refusal:
    """A fault put into one of the stacks, and what is said about it."""

    name: str
    stack: str
    edits: tuple[Edit, ...]
    text: str
    at: str = ""
    """Which resource says so; empty where the request itself is refused and nothing begins."""


class Deployed:
    """The embedded AWS with the stacks in it."""

    def __init__(self, aws: EmbeddedAws, synthesized: Synthesized) -> None:
        self.aws = aws
        # Any: the stubs call members optional that CloudFormation always gives for what exists
        self.cloudformation: Any = aws.cloudformation
        self.templates = {name.removeprefix("prod-"): template for name, template in synthesized.templates.items()}
        self.picture: dict[str, Any] | None = None
        """What the account held after the last test, None where something was deployed since."""
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.aws.client(service)
        return self._clients[service]

    def edited(self, stack: str, *edits: Edit) -> Template:
        template = copy.deepcopy(self.templates[stack])
        for edit in edits:
            edit(template)
        return template

    def create(self, name: str, template: Template, *, chart: str = "rehearsal") -> None:
        self.picture = None
        self.cloudformation.create_stack(StackName=name, **self._request(template, chart))

    def update(self, name: str, template: Template) -> None:
        self.picture = None
        self.cloudformation.update_stack(StackName=name, **self._request(template, "rehearsal"))

    def _request(self, template: Template, chart: str) -> dict[str, Any]:
        asked = "HyperPodChart" in template.get("Parameters", {})
        return {
            "TemplateURL": template_url(self.client("s3"), template),
            "Capabilities": ["CAPABILITY_NAMED_IAM"],
            "Parameters": [{"ParameterKey": "HyperPodChart", "ParameterValue": chart}] if asked else [],
        }

    def settled(self, name: str) -> str:
        """The stack's status once nothing happens to it any more."""
        deadline = time.monotonic() + SECONDS_PER_OPERATION
        while time.monotonic() < deadline:
            status = str(self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
            if not status.endswith("_IN_PROGRESS"):
                return status
            time.sleep(0.03)
        raise AssertionError(f"{name} did not come to rest in {SECONDS_PER_OPERATION} s")

    def reasons(self, name: str) -> dict[str, str]:
        """Why each resource failed in the stack's last operation, without those that were only cancelled with it."""
        found = {}
        for event in self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]:
            reason = event.get("ResourceStatusReason", "")
            resource, status = event["LogicalResourceId"], event["ResourceStatus"]
            if resource == name and reason == "User Initiated":
                break
            if resource != name and status.endswith("_FAILED") and "cancelled" not in reason:
                found[resource] = shown(reason)
        return found

    def rollback_reason(self, name: str) -> str:
        """Why the stack's last update was rolled back, in the words of the stack itself."""
        events = self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        return next(
            str(each.get("ResourceStatusReason", "")).strip()
            for each in events
            if each["ResourceStatus"] == "UPDATE_ROLLBACK_IN_PROGRESS" and each["LogicalResourceId"] == name
        )

    def placed(self, template: Template) -> None:
        """Put ids of the deployment where an edit could not know them."""
        text = json.dumps(template)
        if "<default subnet>" in text:
            subnets = self.client("ec2").describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])
            cluster = self.client("sagemaker").describe_cluster(ClusterName="prod")
            text = text.replace("<default subnet>", subnets["Subnets"][0]["SubnetId"])
            text = text.replace("<efa group>", cluster["VpcConfig"]["SecurityGroupIds"][0])
            template.update(json.loads(text))

    def account(self) -> dict[str, Any]:
        """Everything that the account holds, without what tells time."""
        ec2, iam, eks, sagemaker = (self.client(name) for name in ("ec2", "iam", "eks", "sagemaker"))
        found: dict[str, Any] = {
            "stacks": {
                stack: [
                    (each["LogicalResourceId"], each["PhysicalResourceId"])
                    for each in self.cloudformation.describe_stack_resources(StackName=f"prod-{stack}")[
                        "StackResources"
                    ]
                ]
                for stack in STACKS
            },
            "templates": {
                stack: self.cloudformation.get_template(StackName=f"prod-{stack}")["TemplateBody"] for stack in STACKS
            },
            "clusters": [
                sagemaker.describe_cluster(ClusterName=each["ClusterName"])
                for each in sagemaker.list_clusters()["ClusterSummaries"]
            ],
            "nodes": sagemaker.list_cluster_nodes(ClusterName="prod"),
            "tags": sagemaker.list_tags(ResourceArn=sagemaker.describe_cluster(ClusterName="prod")["ClusterArn"]),
            "quotas": [
                sagemaker.describe_compute_quota(ComputeQuotaId=each["ComputeQuotaId"])["ComputeQuotaConfig"]
                for each in sagemaker.list_compute_quotas()["ComputeQuotaSummaries"]
            ],
            "control planes": {name: eks.describe_cluster(name=name) for name in eks.list_clusters()["clusters"]},
            "addons": [
                eks.describe_addon(clusterName="prod-eks", addonName=name)
                for name in eks.list_addons(clusterName="prod-eks")["addons"]
            ],
            "file systems": self.client("fsx").describe_file_systems(),
            "buckets": [each["Name"] for each in self.client("s3").list_buckets()["Buckets"]],
            "roles": iam.get_account_authorization_details(Filter=["Role"])["RoleDetailList"],
            "network": [
                ec2.describe_vpcs(),
                ec2.describe_subnets(),
                ec2.describe_route_tables(),
                ec2.describe_security_group_rules(),
                [each for each in ec2.describe_vpc_endpoints()["VpcEndpoints"] if each["State"] != "deleted"],
            ],
            "kubernetes": self.aws.state()["kubernetes"],
        }
        return dict(_lasting(found))


def shown(text: str) -> str:
    """The text with stand-ins for whatever differs from one run to the next."""
    for pattern, stand_in in SHOWN:
        text = re.sub(pattern, stand_in, text)
    return text


def _lasting(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _lasting(member) for key, member in value.items() if key not in VOLATILE}
    return [_lasting(member) for member in value] if isinstance(value, (list, tuple)) else value


def _name(template: Template, logical_id: str) -> str:
    names = [each for each in template["Resources"] if re.fullmatch(f"{logical_id}([0-9A-F]{{8}})?", each)]
    assert len(names) == 1, f"{logical_id}: {names} of {list(template['Resources'])}"
    return str(names[0])


def _resource(template: Template, logical_id: str) -> dict[str, Any]:
    resource: dict[str, Any] = template["Resources"][_name(template, logical_id)]
    return resource


EFA_GROUP = {"Fn::GetAtt": ["EfaGroup96CDBEEF", "GroupId"]}
VPC = {"Ref": "NetworkVpcFAC8F4A5"}
NOBODY = f"{ROLES}/nobody"
NETWORK = ("Network", "Efa")
STRANGER = {"Fn::GetAtt": ["Stranger", "Arn"]}
GROUPS = ("Cluster", "InstanceGroups")
SYSTEM = (*GROUPS, 1)
VOLUME = "#/InstanceGroups/1/InstanceStorageConfigs/0"
LUSTRE = "LustrescratchFileSystem"
UPLOAD = "LifecycleScriptsUploadCustomResource512MiB"
UPLOADER = "CustomCDKBucketDeployment8693BB64968944B69AAFB0CC9EB8756C512MiB"
QUOTA = "TaskGovernanceQuotaresearch"

EFA_TEXT = (
    "EFA health checks did not run successfully. Ensure that your VPC and security groups are properly configured "
    "before attempting to create a new cluster. Rehearsal: none of <sg> has an ingress rule and an egress rule for all "
    "traffic that name the group itself."
)


def said(service: str, text: str, code: str = "InvalidRequest") -> str:
    """What CloudFormation makes of a service's answer."""
    return handled(f"{text} (Service: {service}, Status Code: 400, Request ID: <uuid>)", code)


def handled(text: str, code: str = "InvalidRequest") -> str:
    """What CloudFormation makes of what a resource handler found itself."""
    return f'Resource handler returned message: "{text}" (RequestToken: <uuid>, HandlerErrorCode: {code})'


def invalid(resource: str, *problems: str) -> str:
    """What CloudFormation says of properties that the registry's schema forbids."""
    return f"Properties validation failed for resource {resource} with message: {'; '.join(problems)}"


def over(quota: str, limit: int, used: int, delta: int) -> str:
    """What SageMaker says of a quota that does not reach."""
    return said(
        "SageMaker",
        f"The account-level service limit '{quota}' is {limit} Instances, with current utilization of {used} Instances "
        f"and a request delta of {delta} Instances. Please use AWS Service Quotas to request an increase for this "
        "quota. If AWS Service Quotas is not available, contact AWS support to request an increase for this quota.",
        "ServiceLimitExceeded",
    )


CLUSTER = "ClusterEB0386A7"
EKS = "ControlPlaneCluster8AFA2E51"
FILE_SYSTEM = "LustrescratchFileSystemFF33363C"

REQUESTS = [
    Refusal(
        "resources that wait for each other",
        "foundation",
        (attribute(["EfaToItself789E6381"], "NetworkVpc", "DependsOn"),),
        "Circular dependency between resources: [EfaGroup96CDBEEF, EfaToItself789E6381, NetworkVpcFAC8F4A5]",
    ),
    Refusal(
        "security groups that name each other inline",
        "foundation",
        (
            put([{"IpProtocol": "-1", "SourceSecurityGroupId": {"Ref": "Other"}}], "EfaGroup", "SecurityGroupIngress"),
            added(
                "Other",
                "AWS::EC2::SecurityGroup",
                GroupDescription="other",
                SecurityGroupIngress=[{"IpProtocol": "-1", "SourceSecurityGroupId": EFA_GROUP}],
            ),
        ),
        "Circular dependency between resources: [EfaGroup96CDBEEF, Other]",
    ),
    Refusal(
        "a security group that names itself inline",
        "foundation",
        (put([{"IpProtocol": "-1", "SourceSecurityGroupId": EFA_GROUP}], "EfaGroup", "SecurityGroupIngress"),),
        "Circular dependency between resources: [EfaGroup96CDBEEF]",
    ),
    Refusal(
        "an attribute that the resource has not",
        "foundation",
        (put({"Fn::GetAtt": ["EfaGroup96CDBEEF", "Arn"]}, "EfaToItself", "GroupId"),),
        "Template error: resource EfaGroup96CDBEEF does not support attribute type Arn in Fn::GetAtt",
    ),
    Refusal(
        "a Ref to nothing",
        "foundation",
        (put({"Ref": "Nothing"}, "EfaToItself", "GroupId"),),
        "Template format error: Unresolved resource dependencies [Nothing] in the Resources block of the template",
    ),
    Refusal(
        "waiting for nothing",
        "foundation",
        (attribute(["Nothing"], "EfaToItself", "DependsOn"),),
        "Template format error: Unresolved resource dependencies [Nothing] in the Resources block of the template",
    ),
    Refusal(
        "an import of nothing",
        "hyperpod",
        (put({"Fn::ImportValue": "prod-foundation:Nothing"}, *SYSTEM, "ExecutionRole"),),
        "No export named prod-foundation:Nothing found.",
    ),
    Refusal(
        "a type that is not in the registry",
        "foundation",
        (added("More", "AWS::SageMaker::HyperPodCluster"),),
        "Template format error: Unrecognized resource types: [AWS::SageMaker::HyperPodCluster]",
    ),
    Refusal("nothing to do", "observability", (), "No updates are to be performed."),
]

UPDATES = [
    # what the registry's schemas forbid
    Refusal(
        "a word that NodeRecovery does not know",
        "hyperpod",
        (put("Sometimes", "Cluster", "NodeRecovery"),),
        invalid(CLUSTER, "#/NodeRecovery: Sometimes is not a valid enum value"),
        CLUSTER,
    ),
    Refusal(
        "a required property left out",
        "hyperpod",
        (cut(*SYSTEM, "ExecutionRole"),),
        invalid(CLUSTER, "#/InstanceGroups/1: required key [ExecutionRole] not found"),
        CLUSTER,
    ),
    Refusal(
        "an unknown property",
        "hyperpod",
        (put(2, *SYSTEM, "InstanceCounts"),),
        invalid(CLUSTER, "#/InstanceGroups/1: extraneous key [InstanceCounts] is not permitted"),
        CLUSTER,
    ),
    Refusal(
        "three threads per core",
        "hyperpod",
        (put(3, *SYSTEM, "ThreadsPerCore"),),
        invalid(CLUSTER, "#/InstanceGroups/1/ThreadsPerCore: 3 is not less or equal to 2"),
        CLUSTER,
    ),
    Refusal(
        "a volume of nothing",
        "hyperpod",
        (put(0, *SYSTEM, "InstanceStorageConfigs", 0, "EbsVolumeConfig", "VolumeSizeInGB"),),
        invalid(
            CLUSTER,
            f"{VOLUME}/EbsVolumeConfig/VolumeSizeInGB: 0 is not greater or equal to 1",
            f"{VOLUME}: #: 0 subschemas matched instead of one",
        ),
        CLUSTER,
    ),
    Refusal(
        "a retention that CloudWatch Logs does not offer",
        "foundation",
        (put(91, "NetworkFlowLogGroup", "RetentionInDays"),),
        invalid("NetworkFlowLogGroup1F868030", "#/RetentionInDays: 91 is not a valid enum value"),
        "NetworkFlowLogGroup1F868030",
    ),
    # what HyperPod refuses
    Refusal(
        "two groups of one name",
        "hyperpod",
        (group("more", 1), group("more", 1)),
        said("SageMaker", "Instance group names must be unique, got more than one of: more."),
        CLUSTER,
    ),
    Refusal(
        "a training plan that is not there",
        "hyperpod",
        (put(f"{PLANS}/nothing", *GROUPS, 0, "TrainingPlanArn"),),
        said("SageMaker", f"Training plan {PLANS}/nothing does not exist in account {ACCOUNT} in {REGION}."),
        CLUSTER,
    ),
    Refusal(
        "a training plan of another zone",
        "hyperpod",
        (put(f"{PLANS}/elsewhere", *GROUPS, 0, "TrainingPlanArn"),),
        said(
            "SageMaker",
            f"No subnets in the capacity AZ. Training plan {PLANS}/elsewhere is in use1-az6, the subnets of instance "
            "group 'h100' are in use1-az5.",
        ),
        CLUSTER,
    ),
    Refusal(
        "more nodes than the plan has",
        "hyperpod",
        (put(3, *GROUPS, 0, "InstanceCount"),),
        said(
            "SageMaker",
            f"Training plan {PLANS}/h100-april has 2 available instances of 2, the request needs 3.",
            "ServiceLimitExceeded",
        ),
        CLUSTER,
    ),
    Refusal(
        "a subnet of another VPC",
        "hyperpod",
        (group("more", 1, OverrideVpcConfig={"SecurityGroupIds": ["<efa group>"], "Subnets": ["<default subnet>"]}),),
        said("SageMaker", "The subnet '<subnet>' is not in the VPC <vpc> of the EKS cluster."),
        CLUSTER,
    ),
    Refusal(
        "more nodes than the quota",
        "hyperpod",
        (group("more", 3),),
        over("ml.p5.48xlarge for cluster usage", 4, 2, 3),
        CLUSTER,
    ),
    Refusal(
        "a bucket that the node's policy does not reach",
        "hyperpod",
        (put("s3://prod-scripts/scripts", *SYSTEM, "LifeCycleConfig", "SourceS3Uri"),),
        said(
            "SageMaker",
            "Instance group 'system': LifeCycleConfig.SourceS3Uri must start with s3://sagemaker-, got "
            "s3://prod-scripts/scripts",
        ),
        CLUSTER,
    ),
    Refusal(
        "an execution role that trusts another service",
        "hyperpod",
        (
            added("Stranger", "AWS::IAM::Role", AssumeRolePolicyDocument=trusting("ec2.amazonaws.com")),
            group("more", 1, ExecutionRole=STRANGER),
        ),
        said(
            "SageMaker",
            f"Could not assume role {ROLES}/<stranger>. Please ensure that the role exists and allows principal "
            "'sagemaker.amazonaws.com' to assume the role.",
        ),
        CLUSTER,
    ),
    Refusal(
        "an execution role without its policy",
        "hyperpod",
        (
            added("Stranger", "AWS::IAM::Role", AssumeRolePolicyDocument=trusting("sagemaker.amazonaws.com")),
            group("more", 1, ExecutionRole=STRANGER),
        ),
        said(
            "SageMaker",
            f"Unable to retrieve subnets. The role {ROLES}/<stranger> is not authorized to perform: "
            "ec2:DescribeSubnets",
        ),
        CLUSTER,
    ),
    Refusal(
        "an execution role that is not there",
        "hyperpod",
        (group("more", 1, ExecutionRole=NOBODY),),
        said(
            "SageMaker",
            f"Could not assume role {NOBODY}. Please ensure that the role exists and allows principal "
            "'sagemaker.amazonaws.com' to assume the role.",
        ),
        CLUSTER,
    ),
    Refusal(
        "another instance type in place",
        "hyperpod",
        (put("ml.m5.4xlarge", *SYSTEM, "InstanceType"),),
        said(
            "SageMaker",
            "Instance group 'system': InstanceType cannot be changed from ml.m5.2xlarge to ml.m5.4xlarge. Create a new "
            "instance group instead.",
        ),
        CLUSTER,
    ),
    # Lambda and the custom resource behind it
    Refusal(
        "a custom resource whose code fails",
        "foundation",
        (put(["missing.zip", "missing.zip"], UPLOAD, "SourceObjectKeys"),),
        "Received response status [FAILED] from custom resource. Message returned: Command '['/opt/awscli/aws', 's3', "
        "'cp', 's3://cdk-hnb659fds-assets-111122223333-us-east-1/missing.zip', '<file>']' returned non-zero exit "
        "status 1. (RequestId: <uuid>)",
        "LifecycleScriptsUploadCustomResource512MiB7CCFB229",
    ),
    Refusal(
        "a function's role that is not there",
        "foundation",
        (put(NOBODY, UPLOADER, "Role"),),
        said("Lambda", "The role defined for the function cannot be assumed by Lambda."),
        f"{UPLOADER}6723FB92",
    ),
    # the network
    Refusal(
        "the zone ID of another region",
        "foundation",
        (added("More", "AWS::EC2::Subnet", VpcId=VPC, CidrBlock="10.192.7.0/24", AvailabilityZoneId="usw2-az1"),),
        said(
            "EC2",
            "Value (usw2-az1) for parameter availabilityZoneId is invalid. Subnets can currently only be created in "
            "the following availability zones: use1-az1, use1-az2, use1-az3, use1-az4, use1-az5, use1-az6.",
        ),
        "More",
    ),
    Refusal(
        "blocks that overlap",
        "foundation",
        (added("More", "AWS::EC2::VPCCidrBlock", VpcId=VPC, CidrBlock="10.1.128.0/17"),),
        said("EC2", "The CIDR '10.1.128.0/17' overlaps the block '10.1.0.0/16' of the vpc '<vpc>'."),
        "More",
    ),
    Refusal(
        "a block that is too large",
        "foundation",
        (added("More", "AWS::EC2::VPCCidrBlock", VpcId=VPC, CidrBlock="10.64.0.0/10"),),
        said("EC2", "The CIDR '10.64.0.0/10' is invalid."),
        "More",
    ),
    Refusal(
        "a subnet that is too small",
        "foundation",
        (added("More", "AWS::EC2::Subnet", VpcId=VPC, CidrBlock="10.192.7.0/29", AvailabilityZoneId="use1-az4"),),
        said("EC2", "The CIDR '10.192.7.0/29' is invalid."),
        "More",
    ),
    Refusal(
        "subnets that overlap",
        "foundation",
        (added("More", "AWS::EC2::Subnet", VpcId=VPC, CidrBlock="10.2.3.0/24", AvailabilityZoneId="use1-az4"),),
        said("EC2", "The CIDR '10.2.3.0/24' conflicts with another subnet"),
        "More",
    ),
    Refusal(
        "a rule twice",
        "foundation",
        (
            added(
                "Again",
                "AWS::EC2::SecurityGroupEgress",
                GroupId=EFA_GROUP,
                IpProtocol="-1",
                DestinationSecurityGroupId=EFA_GROUP,
            ),
        ),
        said("EC2", 'the specified rule "peer: <sg>, ALL, ALLOW" already exists', "AlreadyExists"),
        "Again",
    ),
    Refusal(
        "a gateway endpoint of a service that has none",
        "foundation",
        (put(f"com.amazonaws.{REGION}.sts", "NetworkS3Endpoint", "ServiceName"),),
        said("EC2", f"The Vpc Endpoint Service 'com.amazonaws.{REGION}.sts' does not exist"),
        "NetworkS3Endpoint635CABAC",
    ),
    # FSx for Lustre
    Refusal(
        "a file system that shrinks",
        "storage",
        (put(1201, LUSTRE, "StorageCapacity"),),
        said("FSx", "StorageCapacity can only grow: the file system has 4800 GiB, got 1201."),
        FILE_SYSTEM,
    ),
    Refusal(
        "a throughput below the API's bound",
        "storage",
        (put(7, LUSTRE, "LustreConfiguration", "PerUnitStorageThroughput"),),
        handled(
            "1 validation error detected: Value '7' at 'lustreConfiguration.perUnitStorageThroughput' failed to "
            "satisfy constraint: Member must have value greater than or equal to 12"
        ),
        FILE_SYSTEM,
    ),
    Refusal(
        "EFA for a file system that has none",
        "storage",
        (switched_on(LUSTRE, "LustreConfiguration", "EfaEnabled"),),
        handled("LustreConfiguration members cannot be changed: EfaEnabled", "NotUpdatable"),
        FILE_SYSTEM,
    ),
    # EKS
    Refusal(
        "a Kubernetes version of the past",
        "foundation",
        (put("1.12", "ControlPlaneCluster", "Version"),),
        said("EKS", "unsupported Kubernetes version 1.12"),
        EKS,
    ),
    Refusal(
        "a Kubernetes version back",
        "foundation",
        (put("1.34", "ControlPlaneCluster", "Version"),),
        said("EKS", "Unsupported Kubernetes minor version update from 1.35 to 1.34"),
        EKS,
    ),
    Refusal(
        "access by config map",
        "foundation",
        (put("CONFIG_MAP", "ControlPlaneCluster", "AccessConfig", "AuthenticationMode"),),
        said("EKS", "Unsupported authentication mode update from API to CONFIG_MAP"),
        EKS,
    ),
    Refusal(
        "an API server that nobody reaches",
        "foundation",
        (
            switched_off("ControlPlaneCluster", "ResourcesVpcConfig", "EndpointPrivateAccess"),
            switched_off("ControlPlaneCluster", "ResourcesVpcConfig", "EndpointPublicAccess"),
        ),
        said("EKS", "Private and public endpoint access cannot be false"),
        EKS,
    ),
    Refusal(
        "clients from no address",
        "foundation",
        (put(["54.240.193.128/33"], "ControlPlaneCluster", "ResourcesVpcConfig", "PublicAccessCidrs"),),
        said("EKS", "The following CIDRs are invalid in publicAccessCidrs: [54.240.193.128/33]"),
        EKS,
    ),
    Refusal(  # the sentence that EKS answered a cluster with 203.0.113.0/24, and others with 10.1.0.128/27
        "clients from addresses that belong to nobody",
        "foundation",
        (
            put(
                ["0.0.0.0/0", "203.0.113.0/24", "10.1.0.128/27", "54.240.193.128/26"],
                "ControlPlaneCluster",
                "ResourcesVpcConfig",
                "PublicAccessCidrs",
            ),
        ),
        said("EKS", "The following CIDRs are not allowed in publicAccessCidrs: [203.0.113.0/24, 10.1.0.128/27]"),
        EKS,
    ),
    # the platform
    Refusal(
        "pod identities inside the training operator's add-on",
        "platform",
        (
            put(
                [{"RoleArn": NOBODY, "ServiceAccount": "hp-training-operator-controller-manager"}],
                "TrainingOperatorAddon",
                "PodIdentityAssociations",
            ),
        ),
        said(
            "EKS",
            "Pod Identity feature is not supported for addon version "
            "amazon-sagemaker-hyperpod-training-operator:v1.2.1-eksbuild.1",
        ),
        "TrainingOperatorAddonD918B4DC",
    ),
    Refusal(
        "a pod identity's role that is not there",
        "platform",
        (put(NOBODY, "TrainingOperatorPodIdentityAssociation", "RoleArn"),),
        said(
            "EKS",
            f"Role {NOBODY} does not exist or does not trust pods.eks.amazonaws.com with sts:AssumeRole and "
            "sts:TagSession",
        ),
        "TrainingOperatorPodIdentityAssociation77B33FDA",
    ),
    Refusal(
        "a quota that borrows too much",
        "platform",
        (put(501, QUOTA, "ComputeQuotaConfig", "ResourceSharingConfig", "BorrowLimit"),),
        said("SageMaker", "BorrowLimit must be 1 to 500, got 501."),
        "TaskGovernanceQuotaresearchDFFF7E00",
    ),
]


def with_efa(template: Template) -> None:
    """Ask for EFA, in the nodes' own security group, which allows it."""
    switched_on(LUSTRE, "LustreConfiguration", "EfaEnabled")(template)
    nodes = _resource(template, "LustrescratchClientsToServersIn988")["Properties"]["SourceSecurityGroupId"]
    put([nodes], LUSTRE, "SecurityGroupIds")(template)


EXPORTS = "ExportsOutputRefNetworkNodeSubnetUse1Az4D04F85AC89C12112"


def without_export(template: Template) -> None:
    """Remove the output that hands the system nodes' subnet to the hyperpod stack."""
    del template["Outputs"][EXPORTS]


def with_another_export(template: Template) -> None:
    """Change what that output says."""
    template["Outputs"][EXPORTS]["Value"] = "subnet-of-somebody-else"


@pytest.fixture(scope="session")
def prod(assemblies: Path) -> Synthesized:
    """environments/prod.yaml as it is synthesized where nobody pulled the HyperPod chart."""
    return shipped(assemblies, "prod")


@pytest.fixture(scope="session")
def deployed(prod: Synthesized, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """The stacks, up."""
    scratch = tmp_path_factory.mktemp("embedded")
    document = load_document(None, project / ENVIRONMENTS["prod"])
    elsewhere = {
        "name": "elsewhere",
        "instance_type": "ml.p5.48xlarge",
        "instance_count": 2,
        "availability_zone_id": "use1-az6",
    }
    document["training_plans"]["plans"].append(elsewhere)
    account = scratch / "account.yaml"
    account.write_text(yaml.safe_dump(document), encoding="utf-8")
    log = scratch / "embedded-aws.log"
    with EmbeddedAws(account=ACCOUNT, region=REGION, log=log, account_file=account) as aws:
        aws.client("ssm").put_parameter(Name=BOOTSTRAP_VERSION, Value="30", Type="String")
        found = Deployed(aws, prod)
        _publish(aws, prod)
        for wave in WAVES:
            for stack in wave:
                found.create(f"prod-{stack}", found.templates[stack])
            for stack in wave:
                assert found.settled(f"prod-{stack}") == "CREATE_COMPLETE", found.reasons(f"prod-{stack}")
        yield found


@pytest.fixture
def untouched(deployed: Deployed) -> Iterator[Deployed]:
    """The deployment; everything that the account holds must be as before when the test is through."""
    before = deployed.picture or deployed.account()
    yield deployed
    after = deployed.account()
    assert after == before
    deployed.picture = after


def _publish(aws: EmbeddedAws, synthesized: Synthesized) -> None:
    """Bring the assets where the templates look for them, as the CDK CLI does."""
    s3 = aws.client("s3")
    folder = next(iter(synthesized.template_files.values())).parent
    published: set[str] = set()
    for manifest in sorted(folder.glob("*.assets.json")):
        for asset in json.loads(manifest.read_text(encoding="utf-8"))["files"].values():
            source = (folder / asset["source"]["path"]).resolve()
            for place in asset["destinations"].values():
                bucket, key = place["bucketName"], place["objectKey"]
                if key in published or key.endswith(".json"):
                    continue
                if not published:
                    s3.create_bucket(Bucket=bucket)
                published.add(key)
                body = source.read_bytes() if asset["source"]["packaging"] == "file" else _zipped(source)
                s3.put_object(Bucket=bucket, Key=key, Body=body)


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return buffer.getvalue()


def _spare(deployed: Deployed, stack: str, name: str, *edits: Edit) -> tuple[str, Template]:
    """The template of a stack under another environment's name, in prod's network."""
    if stack == "foundation":
        edits = (_in_the_network_of(deployed), *edits)
    text = json.dumps(deployed.edited(stack, *edits))
    own = ["prod-hyperpod", "prod-platform", "prod-storage", "prod-eks", "prod-policy"]
    # storage and a cluster stand on what prod's foundation exports
    own += ["prod-foundation"] if stack in {"foundation", "platform"} else []
    for each in own:
        text = text.replace(each, each.replace("prod", name))
    text = text.replace('"ClusterName": "prod"', f'"ClusterName": "{name}"').replace(
        "prod-research", f"{name}-research"
    )
    return f"{name}-{stack}", json.loads(text)


def _in_the_network_of(deployed: Deployed) -> Edit:
    """Leave EKS and the chart of a foundation, in the network that stands, and nothing else."""
    described = deployed.cloudformation.describe_stack_resources(StackName="prod-foundation")["StackResources"]
    ids = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in described}

    def standing(value: Any) -> Any:
        if isinstance(value, list):
            return [standing(each) for each in value]
        if not isinstance(value, dict):
            return value
        name = value.get("Ref") or next(iter(value.get("Fn::GetAtt", [])), "")
        return ids[name] if name.startswith(NETWORK) else {key: standing(each) for key, each in value.items()}

    def edit(template: Template) -> None:
        kept = [name for name in template["Resources"] if name.startswith(("ControlPlane", "HyperPodDependencies"))]
        only(*kept)(template)
        template["Resources"] = standing(template["Resources"])

    return edit


def _refused_create(deployed: Deployed, name: str, template: Template) -> dict[str, str]:
    """Why a new stack failed, once it is rolled back and deleted."""
    deployed.create(name, template)
    assert deployed.settled(name) == "ROLLBACK_COMPLETE", deployed.reasons(name)
    reasons = deployed.reasons(name)
    left = deployed.cloudformation.describe_stack_resources(StackName=name)["StackResources"]
    assert {each["ResourceStatus"] for each in left} == {"DELETE_COMPLETE"}
    deployed.cloudformation.delete_stack(StackName=name)
    return reasons


def _ids(cases: list[Refusal]) -> list[str]:
    return [case.name for case in cases]


@pytest.mark.parametrize("case", REQUESTS, ids=_ids(REQUESTS))
def test_a_request_that_cannot_be_served_begins_nothing(deployed: Deployed, case: Refusal) -> None:
    with pytest.raises(ClientError) as refused:
        deployed.update(f"prod-{case.stack}", deployed.edited(case.stack, *case.edits))
    error = service_error(refused.value)
    assert (error.code, error.message) == ("ValidationError", case.text)


@pytest.mark.parametrize("case", UPDATES, ids=_ids(UPDATES))
def test_an_update_that_aws_refuses_is_reported_and_taken_back(untouched: Deployed, case: Refusal) -> None:
    stack = f"prod-{case.stack}"
    untouched.update(stack, untouched.edited(case.stack, *case.edits, untouched.placed))
    assert untouched.settled(stack) == "UPDATE_ROLLBACK_COMPLETE"
    assert untouched.reasons(stack) == {case.at: case.text}


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (
            without_export,
            f"Export prod-foundation:{EXPORTS} cannot be deleted as it is in use by prod-hyperpod",
        ),
        (
            with_another_export,
            f"Cannot update export prod-foundation:{EXPORTS} as it is in use by prod-hyperpod",
        ),
    ],
    ids=["removed", "changed"],
)
def test_an_export_in_use_stays_as_it_is(untouched: Deployed, edit: Edit, text: str) -> None:
    untouched.update("prod-foundation", untouched.edited("foundation", edit))
    assert untouched.settled("prod-foundation") == "UPDATE_ROLLBACK_COMPLETE"
    assert untouched.rollback_reason("prod-foundation") == text


def test_the_placeholder_chart_is_refused_before_anything_is_made(untouched: Deployed) -> None:
    name, template = _spare(untouched, "foundation", "fresh")
    with pytest.raises(ClientError) as refused:
        untouched.create(name, template, chart="placeholder")
    assert service_error(refused.value).message == (
        "Template validation error: Rule HyperPodChartIsPulled: the HyperPod dependency chart has not been pulled; run "
        "'hyperpod-cdk charts pull', then deploy again"
    )
    with pytest.raises(ClientError, match="Stack with id fresh-foundation does not exist"):
        untouched.cloudformation.describe_stacks(StackName=name)


@pytest.mark.parametrize("rule", ["EfaToItself", "EfaFromItself"], ids=["egress", "ingress"])
def test_efa_needs_both_rules_that_name_the_group_itself(deployed: Deployed, rule: str) -> None:
    deployed.update("prod-foundation", deployed.edited("foundation", without(rule)))
    assert deployed.settled("prod-foundation") == "UPDATE_COMPLETE"
    try:
        # a continuous cluster is complete without the node: an event tells
        deployed.update("prod-hyperpod", deployed.edited("hyperpod", group("more", 1)))
        assert deployed.settled("prod-hyperpod") == "UPDATE_COMPLETE"
        assert shown(_why_no_node(deployed, "more")) == EFA_TEXT
    finally:
        for name in ("hyperpod", "foundation"):
            deployed.update(f"prod-{name}", deployed.templates[name])
            assert deployed.settled(f"prod-{name}") == "UPDATE_COMPLETE"


def _why_no_node(deployed: Deployed, group_name: str) -> str:
    """Return what HyperPod says of a group whose node does not come."""
    sagemaker, begun = deployed.client("sagemaker"), time.monotonic()
    while time.monotonic() - begun < SECONDS_PER_OPERATION:
        events = sagemaker.list_cluster_events(ClusterName="prod", InstanceGroupName=group_name)["Events"]
        for event in events:
            if event["EventLevel"] == "Error":
                details = sagemaker.describe_cluster_event(ClusterName="prod", EventId=event["EventId"])["EventDetails"]
                return str(details["EventDetails"]["EventMetadata"]["Instance"]["FailureMessage"])
        time.sleep(0.05)
    raise AssertionError(f"no event tells why {group_name} has no node")


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (
            put("PERSISTENT_9", LUSTRE, "LustreConfiguration", "DeploymentType"),
            said(
                "FSx",
                "1 validation error detected: Value 'PERSISTENT_9' at 'lustreConfiguration.deploymentType' failed to "
                "satisfy constraint: Member must satisfy enum value set: [SCRATCH_1, SCRATCH_2, PERSISTENT_1, "
                "PERSISTENT_2]",
            ),
        ),
        (
            put(1201, LUSTRE, "StorageCapacity"),
            said(
                "FSx",
                "StorageCapacity must be 1200 GiB, 2400 GiB or an increment of 2400 GiB, got 1201",
            ),
        ),
        (
            put(126, LUSTRE, "LustreConfiguration", "PerUnitStorageThroughput"),
            said(
                "FSx",
                "PerUnitStorageThroughput must be one of 125, 250, 500 or 1000, got 126",
            ),
        ),
        (
            with_efa,
            said(
                "FSx",
                "StorageCapacity must be a multiple of 19200 GiB with EFA at 250 MB/s/TiB, got 4800",
            ),
        ),
        (
            without("LustrescratchServersIn8A79962F"),
            said(
                "FSx",
                "The file system cannot be created because the default security group in the subnet provided or the "
                "provided security groups do not permit Lustre LNET network traffic on port 988",
            ),
        ),
    ],
    ids=["deployment type", "capacity", "throughput", "too small for EFA", "a port closed"],
)
def test_a_file_system_that_fsx_does_not_make(untouched: Deployed, edit: Edit, text: str) -> None:
    reasons = _refused_create(untouched, *_spare(untouched, "storage", "spare", edit))
    assert reasons == {FILE_SYSTEM: text}


CONTROL_PLANE = ("ControlPlaneCluster", "ControlPlaneRole", "ControlPlaneSecretsKey")
KUBECTL_ACCESS = ("ControlPlaneKubectlAccess", "ControlPlaneKubectlProviderHandlerServiceRole")


def _bare(template: Template) -> None:
    """A control plane for itself: no access for kubectl, no chart, nothing that protects it."""
    only(*CONTROL_PLANE)(template)
    switched_off("ControlPlaneCluster", "DeletionProtection")(template)
    put("1.33", "ControlPlaneCluster", "Version")(template)


def test_access_entries_need_another_authentication_mode(untouched: Deployed) -> None:
    closed = put("CONFIG_MAP", "ControlPlaneCluster", "AccessConfig", "AuthenticationMode")
    unprotected = switched_off("ControlPlaneCluster", "DeletionProtection")
    edits = (only(*CONTROL_PLANE, *KUBECTL_ACCESS), closed, unprotected)
    reasons = _refused_create(untouched, *_spare(untouched, "foundation", "walled", *edits))
    text = (
        "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation."
    )
    assert reasons == {"ControlPlaneKubectlAccessB4B098BB": said("EKS", text)}


@pytest.fixture(scope="session")
def bare(deployed: Deployed) -> Deployed:
    """Beside prod, control planes without nodes: `closed` (access by config map) and `bare` (no chart)."""
    for name, mode in (("closed", "CONFIG_MAP"), ("bare", "API")):
        mode_set = put(mode, "ControlPlaneCluster", "AccessConfig", "AuthenticationMode")
        deployed.create(*_spare(deployed, "foundation", name, _bare, mode_set))
    for name in ("closed", "bare"):
        assert deployed.settled(f"{name}-foundation") == "CREATE_COMPLETE"
    return deployed


def _small_cluster(deployed: Deployed, name: str, *edits: Edit) -> tuple[str, Template]:
    """A HyperPod cluster of the system group only, with prod's scripts, role and network, on its own EKS cluster."""
    eks = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{name}-eks"

    def reduce(template: Template) -> None:
        del _resource(template, "Cluster")["Properties"]["InstanceGroups"][0]
        put(eks, "Cluster", "Orchestrator", "Eks", "ClusterArn")(template)
        only("Cluster")(template)

    return _spare(deployed, "hyperpod", name, reduce, *edits)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "closed",
            (
                f"The authentication mode of the EKS cluster arn:aws:eks:{REGION}:{ACCOUNT}:cluster/closed-eks is "
                "CONFIG_MAP; HyperPod requires API or API_AND_CONFIG_MAP to create its access entries."
            ),
        ),
        (
            "bare",
            (
                f"The EKS cluster arn:aws:eks:{REGION}:{ACCOUNT}:cluster/bare-eks is missing one or more required "
                "dependencies. Install the HyperPod Helm chart before you create the cluster."
            ),
        ),
    ],
    ids=["config map", "no chart"],
)
def test_hyperpod_wants_access_entries_and_its_chart(bare: Deployed, name: str, text: str) -> None:
    reasons = _refused_create(bare, *_small_cluster(bare, name))
    assert reasons == {CLUSTER: said("SageMaker", text)}


def test_kubernetes_goes_one_minor_version_at_a_time(bare: Deployed) -> None:
    stack, template = _spare(bare, "foundation", "bare", _bare)
    put("1.35", "ControlPlaneCluster", "Version")(template)
    bare.update(stack, template)
    assert bare.settled(stack) == "UPDATE_ROLLBACK_COMPLETE"
    assert bare.reasons(stack) == {EKS: said("EKS", "Unsupported Kubernetes minor version update from 1.33 to 1.35")}
    assert bare.client("eks").describe_cluster(name="bare-eks")["cluster"]["version"] == "1.33"


@pytest.mark.parametrize(
    ("kept", "at", "text"),
    [
        (
            ("TrainingOperatorRole", "TrainingOperatorPodIdentityAssociation", "TrainingOperatorAddon"),
            "TrainingOperatorAddonD918B4DC",
            (
                "Addon amazon-sagemaker-hyperpod-training-operator of cluster bare-eks is CREATE_FAILED: "
                "K8sResourceNotFound: The add-on cert-manager is required, it is not installed."
            ),
        ),
    ],
    ids=["training operator without cert-manager"],
)
def test_an_addon_without_its_prerequisite(bare: Deployed, kept: tuple[str, ...], at: str, text: str) -> None:
    reasons = _refused_create(bare, *_spare(bare, "platform", "bare", only(*kept)))
    assert reasons == {at: handled(text, "NotStabilized")}


@pytest.fixture(scope="session")
def untagged(deployed: Deployed) -> Deployed:
    """Beside prod, `untagged`: a control plane with its chart and a HyperPod cluster without the tag SageMaker=true."""
    name, template = _spare(deployed, "foundation", "untagged")
    deployed.create(name, template)
    assert deployed.settled(name) == "CREATE_COMPLETE", deployed.reasons(name)
    name, template = _small_cluster(deployed, "untagged", put([], "Cluster", "Tags"))
    deployed.create(name, template)
    assert deployed.settled(name) == "CREATE_COMPLETE", deployed.reasons(name)
    return deployed


@pytest.mark.parametrize(
    ("kept", "at", "text"),
    [
        (
            (
                "TrainingOperatorCertManager",
                "CertManagerReadycertmanagerwebhook",
                "TrainingOperatorRole",
                "TrainingOperatorPodIdentityAssociation",
                "TrainingOperatorAddon",
            ),
            "TrainingOperatorAddonD918B4DC",
            handled(
                "Addon amazon-sagemaker-hyperpod-training-operator of cluster untagged-eks is CREATE_FAILED: "
                "AccessDenied: The HyperPod cluster untagged does not carry the tag SageMaker=true.",
                "NotStabilized",
            ),
        ),
        (
            ("TrainingOperatorCertManager", "CertManagerReadycertmanagerwebhook", "TrainingOperatorAddon"),
            "TrainingOperatorAddonD918B4DC",
            handled(
                "Addon amazon-sagemaker-hyperpod-training-operator of cluster untagged-eks is CREATE_FAILED: "
                "AddonPermissionFailure: The service account aws-hyperpod/hp-training-operator-controller-manager has "
                "no pod identity association.",
                "NotStabilized",
            ),
        ),
        (
            (QUOTA,),
            "TaskGovernanceQuotaresearchDFFF7E00",
            said(
                "SageMaker",
                "The EKS add-on amazon-sagemaker-hyperpod-taskgovernance of cluster untagged-eks is not installed; "
                "task governance requires it to be ACTIVE.",
            ),
        ),
    ],
    ids=["operator without the tag", "operator without pod identity", "quota before the add-on"],
)
def test_a_platform_in_the_wrong_order(untagged: Deployed, kept: tuple[str, ...], at: str, text: str) -> None:
    reasons = _refused_create(untagged, *_spare(untagged, "platform", "untagged", only(*kept)))
    assert reasons == {at: text}


def test_a_bucket_with_something_in_it_is_not_deleted(untouched: Deployed) -> None:
    def spare(template: Template) -> None:
        only("LifecycleScriptsBucket")(template)
        bucket = _resource(template, "LifecycleScriptsBucket")
        bucket["Properties"] = {"BucketName": "sagemaker-spare"}
        bucket["DeletionPolicy"] = "Delete"
        template["Outputs"] = {}

    name, template = "spare-scripts", untouched.edited("foundation", spare)
    untouched.create(name, template)
    assert untouched.settled(name) == "CREATE_COMPLETE"
    s3 = untouched.client("s3")
    s3.put_object(Bucket="sagemaker-spare", Key="on_create.sh", Body=b"#!/bin/bash\n")
    untouched.cloudformation.delete_stack(StackName=name)
    assert untouched.settled(name) == "DELETE_FAILED"
    assert untouched.reasons(name) == {
        "LifecycleScriptsBucketBB67840B": handled(
            "The bucket you tried to delete is not empty. (Service: S3, Status Code: 409, Request ID: <uuid>)",
            "GeneralServiceException",
        )
    }
    s3.delete_object(Bucket="sagemaker-spare", Key="on_create.sh")
    stack_id = untouched.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
    untouched.cloudformation.delete_stack(StackName=name)
    assert untouched.settled(stack_id) == "DELETE_COMPLETE"
