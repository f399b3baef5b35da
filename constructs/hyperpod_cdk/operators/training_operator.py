"""The HyperPod training operator: its add-on, and its prerequisites."""

from __future__ import annotations

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from hyperpod_cdk.catalog import addons
from hyperpod_cdk.common.acknowledgments import MANAGED_POLICY, acknowledge
from hyperpod_cdk.common.stack_arns import arn_of_aws
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import refuse_all, refuse_for, refuse_unlike
from hyperpod_cdk.eks.node_addons import POD_IDENTITY_TRUST, NodeAddon, check_addon


@judged()
class TrainingOperator(Construct):
    """The HyperPod training operator, which runs ``HyperPodPyTorchJob`` with process-level recovery and elastic jobs.

    In this order: cert-manager, the operator's role and its pod identity association, the operator's add-on. The
    association is a separate resource, because operator version v1.2.1-eksbuild.1 refuses one inside the add-on
    (awslabs/awsome-distributed-ai issue 1075). The cluster needs the eks-pod-identity-agent add-on and the HyperPod
    cluster the tag ``SageMaker=true``: the operator's managed policy reads only nodes of clusters with it.

    ``cert_manager`` is the construct that installs cert-manager already (its add-on, its chart); without it the
    cert-manager add-on is created here. Versions are EKS's defaults unless given.

    ``eks_cluster_name`` (str): name of the EKS cluster. Raises ValueError for a name that EKS refuses.

    ``addon_version`` (str): version of the add-on, such as ``v1.2.3-eksbuild.1``. Default: EKS's default for the
    Kubernetes version. Raises ValueError for text of another form.

    ``cert_manager`` (IDependable): the construct that installs cert-manager. Default: the add-on is created here.

    ``cert_manager_version`` (str): version of that add-on. Default: EKS's default. Raises ValueError for text of
    another form, and together with ``cert_manager``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster_name: str,
        addon_version: str | None = None,
        cert_manager: IDependable | None = None,
        cert_manager_version: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        both = (
            "cert_manager_version: must be left out with cert_manager, which has its own, "
            f"got {cert_manager_version}; remove one of the two"
        )
        refuse_all(
            lambda: check_addon(eks_cluster_name, addon_version),
            lambda: refuse_for([both] if cert_manager is not None and cert_manager_version is not None else ()),
            lambda: refuse_unlike(addons.VERSION, cert_manager_version=cert_manager_version),
        )
        row = addons.row(addons.TRAINING_OPERATOR)
        self.cert_manager: IDependable = cert_manager or NodeAddon(
            self,
            "CertManager",
            eks_cluster_name=eks_cluster_name,
            addon_name=addons.CERT_MANAGER,
            addon_version=cert_manager_version,
        )
        self.role: iam.CfnRole = iam.CfnRole(
            self,
            "Role",
            description="HyperPod training operator",
            assume_role_policy_document=POD_IDENTITY_TRUST,
            managed_policy_arns=[arn_of_aws("iam", f"policy/{policy}") for policy in row.managed_policies],
        )
        own = "AWS keeps this policy in step with the operator, and it is all the operator may do"
        acknowledge(self.role, {MANAGED_POLICY.format(policy): own for policy in row.managed_policies})
        self.association: eks.CfnPodIdentityAssociation = eks.CfnPodIdentityAssociation(
            self,
            "PodIdentityAssociation",
            cluster_name=eks_cluster_name,
            namespace=str(row.namespace),
            service_account=row.service_accounts[0],
            role_arn=self.role.attr_arn,
        )
        operator = NodeAddon(
            self,
            "Addon",
            eks_cluster_name=eks_cluster_name,
            addon_name=addons.TRAINING_OPERATOR,
            addon_version=addon_version,
        )
        operator.node.add_dependency(self.cert_manager, self.association)
        self.addon: eks.CfnAddon = operator.addon
