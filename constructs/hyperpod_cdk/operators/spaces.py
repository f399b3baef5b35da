"""SageMaker Spaces on HyperPod: JupyterLab and Code Editor in pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import addons, operators
from hyperpod_cdk.catalog.rules import slug
from hyperpod_cdk.common.acknowledgments import MANAGED_POLICY, acknowledge
from hyperpod_cdk.common.physical_names import stack_part
from hyperpod_cdk.common.stack_arns import HERE, arn_here, arn_of_aws
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.eks.node_addons import NodeAddon, PodRole, check_addon

_AGENT_POLICY = "AmazonSSMManagedInstanceCore"
_NAMES = ("Controller", "Router")
_LONGEST_ROLE_NAME = 64
_STACK_ID_LENGTH = len("1a2b3c4d")  # the first group of the UUID in a stack's id


@judged(known=("name",))
class Spaces(Construct):
    """The SageMaker Spaces add-on with the roles of its controller and of its router, each with EKS Pod Identity.

    ``prerequisites`` installs cert-manager and the EBS CSI driver, on whose volumes spaces store their files. The
    cluster needs the add-on ``eks-pod-identity-agent``. The router runs only with browser access, which needs a domain
    and a certificate and is not configured here: users access spaces with port forwarding or, with ``remote_access``,
    from a local VS Code through Systems Manager, whose advanced tier is billed for each space. ``name`` is in the name
    of the role that those spaces get. The add-on's version is EKS's default unless given.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``name`` (str): part of the names of the resources.

    ``prerequisites`` (Sequence[IDependable]): constructs that it depends on. Default: none.

    ``remote_access`` (bool): whether a local editor can connect to spaces. Default: no.

    ``addon_version`` (str): version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        name: str,
        prerequisites: Sequence[IDependable] = (),
        remote_access: bool = False,
        addon_version: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        check_addon(eks_cluster_name, addon_version)
        row = addons.row(addons.SPACES)
        pods = [
            PodRole(
                self,
                construct,
                eks_cluster_name=eks_cluster_name,
                namespace=str(row.namespace),
                service_account=account,
                description=f"{construct} of SageMaker Spaces",
                managed_policies=[policy],
                reason="AWS keeps this policy in step with the add-on, and it is all that the pod may do",
            )
            for construct, account, policy in zip(_NAMES, row.service_accounts, row.managed_policies, strict=True)
        ]
        configuration: dict[str, Any] = {"jupyter-k8s": {"workspacePodWatching": {"enable": True}}}
        if remote_access:
            agent = self._agent_role(name)
            access = {"enabled": True, "ssmManagedNodeRole": agent.attr_arn}
            configuration["jupyter-k8s-aws-hyperpod"] = {"remoteAccess": access}
        addon = NodeAddon(
            self,
            "Addon",
            eks_cluster_name=eks_cluster_name,
            addon_name=addons.SPACES,
            addon_version=addon_version,
            configuration_values=configuration,
        )
        addon.node.add_dependency(*prerequisites, *(each.association for each in pods))
        self.addon: eks.CfnAddon = addon.addon

    def _agent_role(self, name: str) -> iam.CfnRole:
        agents = arn_here("ssm", "*")
        suffix = stack_part()
        room = _LONGEST_ROLE_NAME - len(operators.SPACES_ROLE_PREFIX) - _STACK_ID_LENGTH - len("-")
        word = slug(name, room=room) or "hyperpod"
        role = iam.CfnRole(
            self,
            "AgentRole",
            # the controller may pass no role with another name to Systems Manager
            role_name=f"{operators.SPACES_ROLE_PREFIX}{word}-{suffix}",
            description="SSM agent in pods of SageMaker Spaces",
            assume_role_policy_document={
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": "ssm.amazonaws.com"},
                        "Action": "sts:AssumeRole",
                        "Condition": {
                            "StringEquals": {"aws:SourceAccount": HERE.account},
                            "ArnEquals": {"aws:SourceArn": agents},
                        },
                    }
                ],
            },
            managed_policy_arns=[arn_of_aws("iam", f"policy/{_AGENT_POLICY}")],
        )
        acknowledge(role, {MANAGED_POLICY.format(_AGENT_POLICY): "AWS's own policy for SSM agents, which need it all"})
        return role
