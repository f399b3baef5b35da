"""The execution role of HyperPod nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.arns import ROLE_ARN, VOLUME_KEY_ACTIONS
from hyperpod_cdk.catalog.hyperpod import SERVICE_PRINCIPAL
from hyperpod_cdk.common.acknowledgments import MANAGED_POLICY as MANAGED
from hyperpod_cdk.common.acknowledgments import RESOURCE, acknowledge, all_objects
from hyperpod_cdk.common.removal import goes_with_its_stack
from hyperpod_cdk.common.stack_arns import ANY_ACCOUNT, HERE, ec2_arn, id_of
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse_all, refuse_for, refuse_unlike

MANAGED_POLICY = "AmazonSageMakerClusterInstanceRolePolicy"
"""AWS's own policy for nodes: CloudWatch logs and metrics, Session Manager, buckets named ``sagemaker-*``."""

# the Service Authorization Reference of EC2 says which resources and condition keys an action has: a new interface,
# a tag that may come with it, and a permission's ID have no VPC; an instance never has
_UNPLACED = ("ec2:CreateNetworkInterface", "ec2:CreateTags", "ec2:DeleteNetworkInterfacePermission")

_OWN_INTERFACES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
)

_INSTANCE_SIDE = ("ec2:AttachNetworkInterface", "ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute")

# as in AWS's own templates; most take no resource. The FSx client calls fsx:DescribeFileSystems before it uses EFA, and
# without the permission it falls back to TCP without a message.
_UNSCOPED_ACTIONS = (
    "cloudwatch:DescribeAlarms",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVpcs",
    "ecr:GetAuthorizationToken",
    "fsx:DescribeFileSystems",
)

_IMAGE_ACTIONS = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")


@judged()
class NodeExecutionRole(Construct):
    """The execution role of instance groups on EKS, with exactly the permissions that AWS's own templates give it.

    Trusts ``sagemaker.amazonaws.com``. AWS documents ``aws:SourceAccount`` conditions for other SageMaker
    features but not for HyperPod, and its templates use none, so there is none here.

    Role and policy are deleted with their stack, as the ``HyperPodCluster`` is, and retained if an update replaces
    them.

    ``bucket`` (s3.IBucket): the bucket of the lifecycle scripts; read access, and ``kms:Decrypt`` if it has a key.

    ``eks_cluster_arn`` (str, ARN): the EKS cluster, for pod identities. Raises ValueError for text that is not the ARN
    of an EKS cluster.

    ``vpc`` (ec2.IVpc): the VPC of the instance groups; only network interfaces in it may be changed. It must be in the
    stack's region. A literal ID may be of another account, which shares the resource; an ID that is a token is of the
    stack's account. The same applies to ``subnets`` and ``security_groups``.

    ``subnets`` (Sequence[ec2.ISubnet]): all subnets that any instance group uses; network interfaces may be created
    only in these. Raises ValueError for none.

    ``security_groups`` (Sequence[ec2.ISecurityGroup]): all security groups that any instance group uses; network
    interfaces may be created only with these. Raises ValueError for none.

    ``encryption_keys`` (Sequence[kms.IKey]): further KMS keys that nodes may decrypt with. Default: none.

    ``volume_key`` (kms.IKey): the KMS key of the nodes' volumes, on which HyperPod creates grants with this role.
    Default: none.

    ``others`` (Sequence[str], ARNs): roles that some groups use instead, in the stack's account: they get the policy
    too, and nothing else of them is changed. Default: none. Raises ValueError for text that is not the ARN of a role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: s3.IBucket,
        eks_cluster_arn: str,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        security_groups: Sequence[ec2.ISecurityGroup],
        encryption_keys: Sequence[kms.IKey] = (),
        volume_key: kms.IKey | None = None,
        others: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: refuse_unlike(hyperpod.EKS_CLUSTER_ARN, eks_cluster_arn=eks_cluster_arn),
            lambda: refuse_unlike(ROLE_ARN, others=others),
            lambda: refuse_for(
                f"{argument} must name at least one of the {argument.replace('_', ' ')} of the instance groups, "
                f"got none; pass every one that a group uses"
                for argument, given in (("subnets", subnets), ("security_groups", security_groups))
                if not given
            ),
        )
        self._role = iam.Role(
            self,
            "Role",
            assumed_by=cast("iam.IPrincipal", iam.ServicePrincipal(SERVICE_PRINCIPAL)),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(MANAGED_POLICY)],
            description="HyperPod nodes",
        )
        bucket_key = bucket.encryption_key
        vpc_arn = ec2_arn("vpc", id_of(vpc, "vpc_id"))
        places = [
            *(ec2_arn("subnet", each) for each in _unique(id_of(each, "subnet_id") for each in subnets)),
            *(
                ec2_arn("security-group", each)
                for each in _unique(id_of(group, "security_group_id") for group in security_groups)
            ),
        ]
        self._policy = iam.CfnManagedPolicy(
            self,
            "Policy",
            description="HyperPod nodes: network interfaces, images, lifecycle scripts, pod identities",
            policy_document={
                "Version": "2012-10-17",
                "Statement": _statements(
                    bucket_arn=bucket.bucket_arn,
                    eks_cluster_arn=eks_cluster_arn,
                    vpc_arn=vpc_arn,
                    places=places,
                    key_arns=_unique(key.key_arn for key in (bucket_key, *encryption_keys) if key is not None),
                    volume_key_arn=None if volume_key is None else volume_key.key_arn,
                ),
            },
            roles=[self._role.role_name, *(arn.rpartition("/")[2] for arn in others)],
        )
        goes_with_its_stack(cast("iam.CfnRole", self._role.node.default_child), self._policy)
        shared = [place for place in places if f":{ANY_ACCOUNT}:" in place]
        acknowledge(self, _reasons(bucket, self, shared))

    @property
    def role(self) -> iam.IRole:
        """The role, for ``ExecutionRole`` of the instance groups."""
        return cast("iam.IRole", self._role)

    @property
    def policies(self) -> IDependable:
        """The policy; resources that use the role must depend on it, because a role is ready before its policies.

        A cluster that is created in between fails with "unable to retrieve subnets".
        """
        return self._policy


def _reasons(bucket: s3.IBucket, role: NodeExecutionRole, shared: Sequence[str]) -> dict[str, str]:
    ec2_arn = "arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>"
    interfaces = (
        "the service creates instances and interfaces, whose names are known only then; subnets and groups are named"
    )
    return {
        MANAGED.format(MANAGED_POLICY): "AWS's policy for HyperPod nodes: logs, metrics, scripts, Session Manager",
        RESOURCE.format("arn:<AWS::Partition>:ec2:<AWS::Region>:*:instance/*"): interfaces,
        RESOURCE.format(f"{ec2_arn}:network-interface/*"): interfaces,
        **{
            RESOURCE.format(f"arn:<AWS::Partition>:ec2:<AWS::Region>:{ANY_ACCOUNT}:{place.rpartition(':')[2]}"): (
                "it existed before and may belong to the account that shares its VPC; no other one has its ID"
            )
            for place in shared
        },
        RESOURCE.format("*"): (
            "as in AWS's own templates: these actions only read, and most of them support no resource"
        ),
        RESOURCE.format("arn:<AWS::Partition>:ecr:*:*:repository/*"): (
            "images of add-ons are in AWS's accounts, images of jobs in any repository of the account"
        ),
        **all_objects(bucket, reason="nodes read all files of the lifecycle folder", of=role),
    }


def _statements(
    *,
    bucket_arn: str,
    eks_cluster_arn: str,
    vpc_arn: str,
    places: Sequence[str],
    key_arns: Sequence[str],
    volume_key_arn: str | None,
) -> list[dict[str, Any]]:
    # nodes are not among the account's instances: they run in an AWS account, whose ID is unknown
    instances = f"arn:{HERE.partition}:ec2:{HERE.region}:*:instance/*"
    interfaces = f"arn:{HERE.partition}:ec2:{HERE.region}:{HERE.account}:network-interface/*"
    in_vpc = {"ArnEquals": {"ec2:Vpc": vpc_arn}}
    statements = [
        _allow("Places", ["ec2:CreateNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"], places),
        _allow("NewInterfaces", _UNPLACED, [interfaces]),
        {**_allow("NetworkInterfaces", _OWN_INTERFACES, [interfaces]), "Condition": in_vpc},
        _allow("Instances", _INSTANCE_SIDE, [instances]),
        _allow("Unscoped", _UNSCOPED_ACTIONS, ["*"]),
        # images of add-ons are in AWS's accounts, whose IDs differ by region
        _allow("Images", _IMAGE_ACTIONS, [f"arn:{HERE.partition}:ecr:*:*:repository/*"]),
        _allow("PodIdentities", ["eks-auth:AssumeRoleForPodIdentity"], [eks_cluster_arn]),
        _allow("ListScripts", ["s3:ListBucket"], [bucket_arn]),
        _allow("GetScripts", ["s3:GetObject"], [f"{bucket_arn}/*"]),
    ]
    if key_arns:
        statements.append(_allow("Decrypt", ["kms:Decrypt"], key_arns))
    if volume_key_arn is not None:
        statements.append(_allow("VolumeKey", VOLUME_KEY_ACTIONS, [volume_key_arn]))
    return statements


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
