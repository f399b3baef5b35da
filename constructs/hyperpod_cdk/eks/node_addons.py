"""EKS add-ons whose pods need a node, so that they come after the HyperPod cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from hyperpod_cdk.catalog import addons, operators
from hyperpod_cdk.catalog.closest import closest
from hyperpod_cdk.catalog.iam import MANAGED_POLICY_NAME
from hyperpod_cdk.catalog.kubernetes import SERVICE_ACCOUNT_NAME
from hyperpod_cdk.catalog.rules import Pattern
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import MANAGED_POLICY, RESOURCE, acknowledge
from hyperpod_cdk.common.manifests import answer_in_time, refuse_without_kubectl
from hyperpod_cdk.common.stack_arns import HERE, arn_of_aws
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for, refuse_unlike
from hyperpod_cdk.config.checkpointing import CheckpointAccount
from hyperpod_cdk.config.eks import ExistingEks

POD_IDENTITY_TRUST: Mapping[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ],
}
"""Trust of a role that pods of an add-on get through EKS Pod Identity."""


_WEBHOOK_SECONDS = 300


@judged()
class NodeAddon(Construct):
    """An EKS add-on that stays degraded until a node is Ready; it must depend on the HyperPod cluster.

    ``addon_version`` is emitted only if given: without it EKS uses its default for the cluster's Kubernetes version.
    Fields of the add-on's objects that others have set are overwritten, because EKS installs its own unmanaged CoreDNS
    on a new cluster.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``addon_name`` (str): name of the add-on, as EKS spells it. Raises ValueError if it is empty.

    ``addon_version`` (str): version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form, and for a version older than HyperPod accepts.

    ``configuration_values`` (str | Mapping[str, Any]): the add-on's configuration, as a mapping or as a JSON object in
    text. Default: its own. Raises ValueError for other text.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        addon_name: str,
        addon_version: str | None = None,
        configuration_values: str | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        no_name = "addon_name: must be the name of an add-on as EKS spells it, got nothing; name one"
        refuse_all(
            lambda: check_addon(eks_cluster_name),
            (
                lambda: refuse_unlike(addons.VERSION, addon_version=addon_version),
                lambda: refuse_for(_version_problems(addon_name, addon_version)),
            ),
            lambda: refuse_for(() if addon_name else [no_name]),
            lambda: refuse_for(_configuration_problems(addon_name, configuration_values)),
        )
        near = None if is_token(addon_name) or addons.get(addon_name) else closest(addon_name, addons.names())
        if near:
            # EKS has more add-ons than the catalog
            cdk.Annotations.of(self).add_warning_v2(
                "hyperpod-cdk:addon-name",
                f'addon_name: should be an add-on that this version knows, got "{addon_name}"; did you mean {near}?',
            )
        self.addon: eks.CfnAddon = eks.CfnAddon(
            self,
            "Resource",
            cluster_name=eks_cluster_name,
            addon_name=addon_name,
            addon_version=addon_version,
            configuration_values=_json_text(configuration_values),
            resolve_conflicts="OVERWRITE",
        )


ROLE_DESCRIPTION = Pattern(
    regex="[\\t\\n\\r\u0020-\\u007e\\u00a1-\\u00ff]*",
    minimum=0,
    maximum=1000,
    describes="at most 1000 characters of Latin-1",
    example="pods of the training operator",
    source="cfn AWS::IAM::Role Description",
)


DEPLOYMENT_NAME = replace(
    SERVICE_ACCOUNT_NAME,
    describes="the name of a deployment: lower-case letters, digits, hyphens and dots",
    example="metrics-server",
)


def check_addon(eks_cluster_name: str, addon_version: str | None = None) -> None:
    """Refuse an invalid name of an EKS cluster, and an invalid add-on version. Raises ValueError."""
    refuse_all(
        lambda: refuse(ExistingEks, called={"cluster_name": "eks_cluster_name"}, cluster_name=eks_cluster_name),
        lambda: refuse_unlike(addons.VERSION, addon_version=addon_version),
    )


@judged(known=("deployments",))
class WebhookReady(Construct):
    """Waits until the deployments of an add-on's webhooks have a ready pod.

    An add-on registers its admission webhooks with its other objects, and until its pod answers the API server refuses
    the requests for which they are called: "failed calling webhook ... connection refused". EKS reports ACTIVE earlier,
    and CloudFormation treats DEGRADED as complete, so this reads Kubernetes: CDK's handler of KubernetesObjectValue
    reads
    ``.status.availableReplicas`` of each deployment every 10 seconds, which does not exist while none is available.
    AWS's own Terraform waits for the same with ``kubectl wait --for=condition=available`` (awsome-distributed-ai,
    ``task_governance/main.tf`` and ``hyperpod_cluster/cert_manager.tf``), also 300 seconds.

    It waits only at its creation: an update of the add-on does not change it, and neither does the rollback of an
    update, which would fail if the pod still does not start.

    ``cluster`` (eks_v2.ICluster): the CDK construct of the EKS cluster, with a kubectl provider. Raises ValueError for
    a cluster without one.

    ``addon`` (eks_v2.CfnAddon): the add-on, on which this depends.

    ``namespace`` (str): namespace of its deployments. Raises ValueError for a name that Kubernetes refuses.

    ``deployments`` (Sequence[str]): names of the deployments of its webhooks. Raises ValueError for a name that
    Kubernetes refuses.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        addon: eks.CfnAddon,
        namespace: str,
        deployments: Sequence[str],
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: refuse(CheckpointAccount, namespace=namespace),
            lambda: refuse_unlike(DEPLOYMENT_NAME, deployments=deployments),
            lambda: refuse_without_kubectl(self, cluster),
        )
        timeout = cdk.Duration.seconds(_WEBHOOK_SECONDS)
        for name in deployments:
            value = eks.KubernetesObjectValue(
                self,
                name,
                cluster=cluster,
                object_type="deployment",
                object_name=name,
                object_namespace=namespace,
                json_path=".status.availableReplicas",
                timeout=timeout,
            )
            value.node.add_dependency(addon)
        answer_in_time(self)


@judged()
class PodRole(Construct):
    """A role that the pods of one service account of an add-on get through EKS Pod Identity.

    The association is a separate resource, which every add-on supports; the add-on must depend on it, because pods read
    it when they start. Needs the add-on ``eks-pod-identity-agent``.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``namespace`` (str): namespace of the service account. Raises ValueError for a name that Kubernetes refuses.

    ``service_account`` (str): name of the service account. Raises ValueError for a name that Kubernetes refuses.

    ``description`` (str): what the role is for, at most 1000 characters of Latin-1. Raises ValueError for other text.

    ``managed_policies`` (Sequence[str]): names of AWS's managed policies of the role, with their paths, not
    their ARNs. Raises ValueError for text that is not such a name.

    ``reason`` (str): why the managed policies are right, for reviewers of the stack. Raises ValueError if it is empty
    and there are managed policies.

    ``statements`` (Sequence[Mapping[str, Any]]): further statements of the role's policy. Default: none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        namespace: str,
        service_account: str,
        description: str,
        managed_policies: Sequence[str],
        reason: str,
        statements: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        unsaid = "reason: must say why the managed policies are right, got nothing; state it for reviewers"
        refuse_all(
            lambda: check_addon(eks_cluster_name),
            lambda: refuse(CheckpointAccount, namespace=namespace),
            lambda: refuse(CheckpointAccount, called={"name": "service_account"}, name=service_account),
            lambda: refuse_unlike(ROLE_DESCRIPTION, description=description),
            lambda: refuse_unlike(MANAGED_POLICY_NAME, managed_policies=managed_policies),
            lambda: refuse_for([unsaid] if managed_policies and not reason.strip() else ()),
        )
        self.role: iam.CfnRole = iam.CfnRole(
            self,
            "Role",
            description=description,
            assume_role_policy_document=POD_IDENTITY_TRUST,
            managed_policy_arns=[arn_of_aws("iam", f"policy/{name}") for name in managed_policies],
            policies=[inline_policy(statements)] if statements else None,
        )
        acknowledge(self.role, {MANAGED_POLICY.format(name): reason for name in managed_policies})
        self.association: eks.CfnPodIdentityAssociation = eks.CfnPodIdentityAssociation(
            self,
            "PodIdentityAssociation",
            cluster_name=eks_cluster_name,
            namespace=namespace,
            service_account=service_account,
            role_arn=self.role.attr_arn,
        )


def inline_policy(statements: Sequence[Mapping[str, Any]], *, name: str = "Rights") -> iam.CfnRole.PolicyProperty:
    """Return the statements as the inline policy of a role."""
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    return iam.CfnRole.PolicyProperty(policy_name=name, policy_document=document)


def driver_addon(
    scope: Construct, driver: addons.Addon, *, eks_cluster_name: str, addon_version: str | None, role_arn: str
) -> eks.CfnAddon:
    """Create a driver's add-on in ``scope``, after a pod identity association for each of its service accounts."""
    check_addon(eks_cluster_name, addon_version)
    addon = eks.CfnAddon(
        scope,
        "Addon",
        cluster_name=eks_cluster_name,
        addon_name=driver.name,
        addon_version=addon_version,
        resolve_conflicts="OVERWRITE",
    )
    for account in driver.service_accounts:
        association = eks.CfnPodIdentityAssociation(
            scope,
            f"PodIdentity-{account}",
            cluster_name=eks_cluster_name,
            namespace=driver.namespace or "",
            service_account=account,
            role_arn=role_arn,
        )
        # pods read their association when they start
        addon.add_resource_dependency(association)
    return addon


@judged()
class EbsCsiDriver(Construct):
    """The EBS CSI driver as an EKS add-on, with the permissions that it needs on HyperPod nodes.

    HyperPod nodes are not instances of the account, so the driver attaches volumes through SageMaker:
    ``sagemaker:AttachClusterNodeVolume`` is added to its managed policy. Needs the add-on ``eks-pod-identity-agent``
    and, to become active, a node.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``addon_version`` (str): version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form, and for a version older than HyperPod accepts.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        addon_version: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        check_addon(eks_cluster_name, addon_version)
        row = addons.row(addons.EBS_CSI_DRIVER)
        place = {"partition": HERE.partition, "region": HERE.region, "account": HERE.account}
        pods = PodRole(
            self,
            "Pods",
            eks_cluster_name=eks_cluster_name,
            namespace=str(row.namespace),
            service_account=row.service_accounts[0],
            description="EBS CSI driver",
            managed_policies=row.managed_policies,
            reason="EKS documents this policy for the driver, which makes and deletes volumes that it tagged",
            statements=operators.statements("ebs_csi_driver", eks_cluster=eks_cluster_name, **place),
        )
        clusters = "arn:<AWS::Partition>:sagemaker:<AWS::Region>:<AWS::AccountId>:cluster/*"
        acknowledge(
            pods.role, {RESOURCE.format(clusters): ("the ARN of a cluster contains an ID that SageMaker chooses")}
        )
        driver = NodeAddon(
            self,
            "Addon",
            eks_cluster_name=eks_cluster_name,
            addon_name=addons.EBS_CSI_DRIVER,
            addon_version=addon_version,
        )
        driver.node.add_dependency(pods.association)
        self.addon: eks.CfnAddon = driver.addon


@judged()
class CoreDns(NodeAddon):
    """The cluster's DNS; waiting for it before nodes exist would block the deployment.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``addon_version`` (str): version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form.

    ``configuration_values`` (str | Mapping[str, Any]): the add-on's configuration, as a mapping or as a JSON object in
    text. Default: its own. Raises ValueError for other text.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        addon_version: str | None = None,
        configuration_values: str | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            eks_cluster_name=eks_cluster_name,
            addon_name=addons.COREDNS,
            addon_version=addon_version,
            configuration_values=configuration_values,
        )


def _version_problems(addon_name: str, addon_version: str | None) -> Iterator[str]:
    if addon_version and not cdk.Token.is_unresolved(addon_version):
        problem = addons.version_problem(addon_name, addon_version, key="addon_version")
        if problem:
            yield f"{addon_name} {in_python(problem)}"


def _configuration_problems(addon_name: str, values: str | Mapping[str, Any] | None) -> Iterator[str]:
    if not isinstance(values, str) or cdk.Token.is_unresolved(values):
        return
    where, fix = f"{addon_name} configuration_values", "pass a mapping instead"
    try:
        is_object = isinstance(json.loads(values), dict)
    except ValueError as error:
        yield f"{where}: must be JSON, got text that is not ({error}); {fix}"
        return
    if not is_object:
        yield f"{where}: must be a JSON object, got {values}; {fix}"


def _json_text(values: str | Mapping[str, Any] | None) -> str | None:
    return values if values is None or isinstance(values, str) else json.dumps(values, sort_keys=True)
