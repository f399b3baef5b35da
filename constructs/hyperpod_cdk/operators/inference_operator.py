"""The HyperPod inference operator: its add-on, its IAM roles for service accounts, and the bucket for certificates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import addons, hyperpod, operators, regions
from hyperpod_cdk.catalog.arns import OIDC_ISSUER
from hyperpod_cdk.catalog.hyperpod import SERVICE_PRINCIPAL
from hyperpod_cdk.catalog.rules import slug
from hyperpod_cdk.catalog.s3_places import BUCKET_NAME_MAXIMUM
from hyperpod_cdk.common.acknowledgments import MANAGED_POLICY, RESOURCE, acknowledge, ignore_in_checkov
from hyperpod_cdk.common.physical_names import STACK_PART_LENGTH, stack_part
from hyperpod_cdk.common.stack_arns import HERE, arn_of_aws, ec2_arn, id_of
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_unlike
from hyperpod_cdk.config.eks import ExistingEks
from hyperpod_cdk.eks.node_addons import NodeAddon, check_addon, inline_policy

_ACCESS, _GATED_ACCESS = addons.row(addons.INFERENCE).managed_policies
_LONGEST_ROLE_NAME = 64
_ACCOUNT_LENGTH = len("111122223333")


@judged(known=("name",))
class InferenceOperator(Construct):
    """The HyperPod inference operator, which serves models of JumpStart, S3 and FSx behind load balancers.

    Its pods get their roles with web identity, so the cluster needs an OIDC provider in IAM, given by
    ``oidc_provider_arn`` and ``oidc_issuer`` (the issuer without ``https://``). The execution role's name begins with
    ``SageMakerHyperPodInference-``, without which the add-on refuses it, and the bucket's, which is retained, with
    ``hyperpod-tls-``, the only names that AWS's managed policy covers; ``name`` is in both, shortened if it is too
    long, followed by part of the stack's id.

    ``prerequisites`` installs cert-manager, metrics-server and the CSI drivers of FSx and S3: the add-on fails
    permanently if one is missing. ``gated_models`` creates a role for JumpStart models whose license must be accepted.
    The AWS Load Balancer Controller and KEDA come with the add-on; without ``load_balancer_controller`` or ``keda`` the
    cluster's own are used. The add-on's version is EKS's default unless given.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``cluster_arn`` (str, ARN): the HyperPod cluster. Raises ValueError for text that is not the ARN of a HyperPod
    cluster.

    ``oidc_provider_arn`` (str, ARN): the EKS cluster's OIDC provider in IAM. Raises ValueError for text that is not
    such an ARN.

    ``oidc_issuer`` (str): issuer of the EKS cluster without ``https://``. Raises ValueError for text of another form.

    ``name`` (str): part of the names of roles and buckets.

    ``prerequisites`` (Sequence[IDependable]): constructs that it depends on. Default: none.

    ``gated_models`` (bool): whether models that require a license may be deployed. Default: no.

    ``load_balancer_controller`` (bool): whether the add-on installs the AWS Load Balancer Controller. Default: yes.

    ``keda`` (bool): whether the add-on installs KEDA. Default: yes.

    ``subnets`` (Sequence[ec2.ISubnet]): subnets of the cluster. Existing ones may belong to an account that shares its
    VPC, and AWS's managed policy allows the operator to create the network interfaces of endpoints only in subnets of
    its own account: it may do so in these too. Default: none.

    ``addon_version`` (str): version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        cluster_arn: str,
        oidc_provider_arn: str,
        oidc_issuer: str,
        name: str,
        prerequisites: Sequence[IDependable] = (),
        gated_models: bool = False,
        load_balancer_controller: bool = True,
        keda: bool = True,
        subnets: Sequence[ec2.ISubnet] = (),
        addon_version: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: check_addon(eks_cluster_name, addon_version),
            lambda: refuse_unlike(hyperpod.CLUSTER_ARN, cluster_arn=cluster_arn),
            lambda: refuse(ExistingEks, oidc_provider_arn=oidc_provider_arn),
            lambda: refuse_unlike(OIDC_ISSUER, oidc_issuer=oidc_issuer),
        )
        self._provider_arn = oidc_provider_arn
        self._issuer = oidc_issuer
        self.bucket: s3.Bucket = self._certificate_bucket(name)
        self.role: iam.CfnRole = self._role(
            "Role",
            description="HyperPod inference operator",
            service_account=operators.service_account("operator"),
            sagemaker=True,
            role_name=_named(operators.INFERENCE_ROLE_PREFIX, name, room=_LONGEST_ROLE_NAME),
            managed_policy=_ACCESS,
            statements=_placed(subnets),
        )
        configuration: dict[str, Any] = {
            "executionRoleArn": self.role.attr_arn,
            "hyperpodClusterArn": cluster_arn,
            "tlsCertificateS3Bucket": self.bucket.bucket_name,
            "alb": {"enabled": load_balancer_controller},
            "keda": {"enabled": keda},
        }
        if gated_models:
            gated = self._role(
                "GatedModelRole",
                description="HyperPod inference, gated models of JumpStart",
                service_account=operators.service_account("gated_model"),
                sagemaker=True,
                managed_policy=_GATED_ACCESS,
            )
            configuration["jumpstartGatedModelDownloadRoleArn"] = gated.attr_arn
        if load_balancer_controller:
            role = self._role(
                "LoadBalancerRole",
                description="AWS Load Balancer Controller of the HyperPod inference operator",
                service_account=operators.service_account("load_balancer"),
                rights="load_balancer_controller",
            )
            configuration["alb"] = {"enabled": True, "serviceAccount": {"create": True, "roleArn": role.attr_arn}}
        if keda:
            role = self._role(
                "KedaRole",
                description="KEDA of the HyperPod inference operator",
                service_account=operators.service_account("keda"),
                rights="keda",
            )
            irsa = {"enabled": True, "roleArn": role.attr_arn}
            configuration["keda"] = {"enabled": True, "auth": {"aws": {"irsa": irsa}}}
        operator = NodeAddon(
            self,
            "Addon",
            eks_cluster_name=eks_cluster_name,
            addon_name=addons.INFERENCE,
            addon_version=addon_version,
            configuration_values=configuration,
        )
        operator.node.add_dependency(*prerequisites)
        self.addon: eks.CfnAddon = operator.addon

    def _certificate_bucket(self, name: str) -> s3.Bucket:
        tail = f"{HERE.account}-{HERE.region}"
        reserved = _ACCOUNT_LENGTH + len(max(regions.names(), key=len)) + len("--")
        room = BUCKET_NAME_MAXIMUM - reserved
        bucket = s3.Bucket(
            self,
            "Certificates",
            bucket_name=f"{_named(operators.TLS_BUCKET_PREFIX, name, room=room)}-{tail}",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        reason = "Holds only certificates of endpoints, which the operator writes and clients read"
        acknowledge(bucket, {"AwsSolutions-S1": reason})
        ignore_in_checkov(cast("s3.CfnBucket", bucket.node.default_child), {"CKV_AWS_18": reason})
        return bucket

    def _role(
        self,
        construct_id: str,
        *,
        description: str,
        service_account: str,
        sagemaker: bool = False,
        role_name: str | None = None,
        managed_policy: str | None = None,
        rights: operators.Rights | None = None,
        statements: Sequence[Mapping[str, Any]] = (),
    ) -> iam.CfnRole:
        if rights:
            statements = operators.statements(rights, partition=HERE.partition)
        role = iam.CfnRole(
            self,
            construct_id,
            description=description,
            role_name=role_name,
            assume_role_policy_document=self._trust(service_account, sagemaker=sagemaker),
            managed_policy_arns=[_policy_arn(managed_policy)] if managed_policy else None,
            policies=[inline_policy(statements)] if statements else None,
        )
        if managed_policy:
            own = "AWS keeps this policy in step with the operator, and it is all that this role may do"
            acknowledge(role, {MANAGED_POLICY.format(managed_policy): own})
        reason = _REASONS.get(str(rights), _SHARED)
        acknowledge(role, {RESOURCE.format(_as_nag_reads(each)): reason for each in _wide(statements)})
        if rights == "load_balancer_controller":
            ignore_in_checkov(role, {"CKV_AWS_111": _UNBOUND_WRITES})
        return role

    def _trust(self, service_account: str, *, sagemaker: bool) -> str:
        statements: list[Mapping[str, Any]] = [
            {
                "Effect": "Allow",
                "Principal": {"Federated": "${Provider}"},
                "Action": "sts:AssumeRoleWithWebIdentity",
                "Condition": {
                    "StringLike": {
                        "${Issuer}:aud": "sts.amazonaws.com",
                        "${Issuer}:sub": f"system:serviceaccount:{service_account}",
                    }
                },
            }
        ]
        if sagemaker:
            service = {"Service": SERVICE_PRINCIPAL}
            statements.append({"Effect": "Allow", "Principal": service, "Action": "sts:AssumeRole"})
        # the issuer is part of keys, where CloudFormation allows no function: so the whole document is text
        document = json.dumps({"Version": "2012-10-17", "Statement": statements})
        return cdk.Fn.sub(document, {"Provider": self._provider_arn, "Issuer": self._issuer})


_REASONS = {
    "load_balancer_controller": (
        "AWS's policy of the controller: it creates load balancers with names from Kubernetes, and its conditions "
        "limit changes to those with its tag"
    ),
    "keda": "CloudWatch metrics have no ARN, and an endpoint may scale by any Prometheus workspace",
}

_SHARED = "it existed before and may belong to the account that shares its VPC; no other one has its ID"

_UNBOUND_WRITES = (
    "AWS's policy of the controller leaves rules of security groups, listeners and protections unbound: those of load"
    " balancers and groups that it has not tagged itself are its work too"
)


def _placed(subnets: Sequence[ec2.ISubnet]) -> list[dict[str, Any]]:
    """Allow the operator to create interfaces in subnets of another account (AWS's policy: aws:ResourceAccount)."""
    stood = dict.fromkeys(name for each in subnets if not is_token(name := id_of(each, "subnet_id")))
    places = [ec2_arn("subnet", each) for each in stood]
    return [{"Effect": "Allow", "Action": ["ec2:CreateNetworkInterface"], "Resource": places}] if places else []


def _named(prefix: str, name: str, *, room: int) -> str:
    """Return ``<prefix><name>-<part of the stack's id>`` in at most ``room`` characters."""
    left = room - len(prefix) - STACK_PART_LENGTH - len("-")
    word = slug(name, room=left) or "hyperpod"
    return f"{prefix}{word}-{stack_part()}"


def _policy_arn(name: str) -> str:
    return arn_of_aws("iam", f"policy/{name}")


def _wide(statements: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({resource for row in statements for resource in row["Resource"] if "*" in resource})


def _as_nag_reads(resource: str) -> str:
    return resource.replace(HERE.partition, "<AWS::Partition>").replace(HERE.region, "<AWS::Region>")
