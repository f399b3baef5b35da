"""The EKS control plane of a HyperPod cluster: a new one without nodes, or an existing one."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from aws_cdk import Annotations, Fn, RemovalPolicy, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, DependencyGroup, IConstruct, IDependable

from hyperpod_cdk.catalog import addons as addon_rules
from hyperpod_cdk.catalog import arns as arn_rules
from hyperpod_cdk.catalog import kubernetes, regions
from hyperpod_cdk.catalog import network as network_rules
from hyperpod_cdk.catalog.rules import repeated_problem
from hyperpod_cdk.catalog.sentences import in_python
from hyperpod_cdk.common.acknowledgments import (
    MANAGED_POLICY,
    acknowledge,
    acknowledge_kubectl_provider,
    ignore_in_template,
)
from hyperpod_cdk.common.log_settings import LogSettings, check_retention
from hyperpod_cdk.common.removal import goes_with_its_stack
from hyperpod_cdk.common.stack_arns import arn_of_aws
from hyperpod_cdk.config import eks as fields
from hyperpod_cdk.config.argument_types import judged
from hyperpod_cdk.config.arguments import is_token, refuse, refuse_all, refuse_for
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.network.vpc import Network

NODE_INDEPENDENT_ADDONS = (addon_rules.VPC_CNI, addon_rules.KUBE_PROXY, addon_rules.POD_IDENTITY_AGENT)
"""Add-ons that become active without a node; all others come after the HyperPod cluster."""

_CALLED = {"cluster_name": "eks_cluster_name"}
_STS = "sts.amazonaws.com"
_PROVIDER = ":oidc-provider/"
_CLUSTER_POLICY = "AmazonEKSClusterPolicy"
_ADMIN_POLICY = "AmazonEKSClusterAdminPolicy"
_SUBNET_TAG_WARNING = "@aws-cdk/aws-eks:clusterMustManuallyTagSubnet"


@dataclass(frozen=True, kw_only=True)
class OidcProvider:
    """A cluster's OIDC provider in IAM.

    ``arn`` (str, ARN): the OIDC provider.

    ``issuer_url`` (str): address of the issuer, which begins with ``https://``.
    """

    arn: str
    issuer_url: str

    @property
    def issuer(self) -> str:
        """The issuer as trust policies name it, without ``https://``."""
        if Token.is_unresolved(self.issuer_url):
            return Fn.select(1, Fn.split("//", self.issuer_url))
        return self.issuer_url.removeprefix("https://")


@judged(known=("kubernetes_version",), whole=("public_access_cidrs",))
class ControlPlane(Construct):
    """An EKS cluster without nodes of its own, ready for HyperPod to join.

    ``subnets`` are for EKS's interfaces and the handler that runs kubectl and helm: private, in at least two zones,
    with a route to AWS. ``security_group`` is a group of the control plane, in addition to the one that EKS creates,
    and of the handler; its members must be able to communicate, as those of ``EfaSecurityGroup``. HyperPod nodes have
    only the groups of their ``VpcConfig``, so it must be one of those. Without it, the control plane gets a group that
    no node has, and the handler the one that EKS creates, for which it must wait.

    ``kubernetes_version`` looks like ``1.34``; the kubectl layer package of that minor version must be installed. Only
    the roles in ``admin_role_arns`` and the kubectl handler have access; the creator of the cluster does not become an
    administrator. ``node_role_arn_for_access_entry`` adds the ``HYPERPOD_LINUX`` entry that SageMaker otherwise
    creates. ``addon_versions`` pins add-ons of ``NODE_INDEPENDENT_ADDONS``; others get EKS's default version for the
    Kubernetes version, and names of other add-ons are ignored here. With ``oidc_provider``, IAM gets an OIDC provider
    for the cluster's issuer, for IAM roles for service accounts (IRSA).

    ``secrets_key`` encrypts Kubernetes secrets; without it, a key is created, rotated yearly and retained. EKS's log
    group keeps logs for ``log_retention_days`` (default 90; EKS's own: forever) and belongs to no stack
    (``LogSettings``), so that a cluster with the same name can be created again. The cluster is deleted with its stack,
    and retained if an update replaces it; ``DeletionProtection`` enables EKS's own deletion protection, which as a
    property would be active while the stack of the cluster can still fail.

    ``vpc`` (ec2.IVpc): the VPC of the cluster.

    ``subnets`` (Sequence[ec2.ISubnet]): private subnets in different zones, with a route to AWS. Raises ValueError for
    fewer than two.

    ``eks_cluster_name`` (str): name of the new cluster. Raises ValueError unless it is 1 to 100 letters, digits,
    hyphens and underscores.

    ``kubernetes_version`` (str): minor version as text, such as ``1.34``. Default: ``1.35``, which changes with
    releases of this library. Raises ValueError for a version without a kubectl layer.

    ``security_group`` (ec2.ISecurityGroup): group of the control plane in addition to EKS's own, which nodes have too.
    Default: a group that no node has.

    ``endpoint_access`` ("public_and_private" | "private"): whether the API server has a public endpoint, or only a
    private one. Default: ``public_and_private``. Raises ValueError for another value.

    ``public_access_cidrs`` (Sequence[str]): IPv4 blocks that can access the public endpoint, at most 40. Default: every
    address. Raises ValueError for text that is not a public block, for more blocks, and for any with a private
    endpoint.

    ``service_ipv4_cidr`` (str): IPv4 block of Kubernetes services, which must not overlap the VPC's blocks. Default:
    EKS's own. Raises ValueError for a block that EKS refuses.

    ``support_type`` ("standard" | "extended"): what EKS does when standard support ends: ``standard`` upgrades the
    cluster, ``extended`` keeps the version at a higher price. Default: ``extended``. Raises ValueError for another
    value.

    ``scaling_tier`` ("standard" | "tier-xl" | "tier-2xl" | "tier-4xl" | "tier-8xl" | "tier-ultra"): size of the control
    plane. Default: ``standard``. Raises ValueError for another value.

    ``zonal_shift`` (bool): whether traffic may be moved away from a zone. Default: no.

    ``admin_role_arns`` (Sequence[str], ARNs): IAM roles that administer the cluster. Default: none. Raises ValueError
    for text that is not the ARN of a role, a repeated role, and one of another partition.

    ``addon_versions`` (Mapping[str, str]): add-on -> version, such as ``v1.2.3-eksbuild.1``. Default: EKS's default
    versions. Raises ValueError for an invalid version, and for one older than HyperPod accepts.

    ``log_retention_days`` (int, days): how long the control plane's log is retained. Default: 90. Raises ValueError for
    a number that CloudWatch Logs does not offer.

    ``secrets_key`` (kms.IKey): KMS key of the Kubernetes secrets. Default: a key is created.

    ``node_role_arn_for_access_entry`` (str, ARN): the nodes' role, for an access entry. Default: SageMaker creates it.
    Raises ValueError for text that is not the ARN of a role.

    ``oidc_provider`` (bool): whether IAM gets an OIDC provider for the cluster. Default: no.

    ``log_group_tags`` (Mapping[str, str]): tags of the log group. Default: none. Raises ValueError for a key or value
    that AWS refuses as a tag.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        eks_cluster_name: str,
        kubernetes_version: str = kubernetes.DEFAULT,
        security_group: ec2.ISecurityGroup | None = None,
        endpoint_access: Literal["public_and_private", "private"] = "public_and_private",
        public_access_cidrs: Sequence[str] = (),
        service_ipv4_cidr: str | None = None,
        support_type: fields.SupportType = "extended",
        scaling_tier: fields.ScalingTier = "standard",
        zonal_shift: bool = False,
        admin_role_arns: Sequence[str] = (),
        addon_versions: Mapping[str, str] | None = None,
        log_retention_days: int = 90,
        secrets_key: kms.IKey | None = None,
        node_role_arn_for_access_entry: str | None = None,
        oidc_provider: bool = False,
        log_group_tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        pinned = dict(addon_versions or {})
        refuse_all(
            lambda: refuse(
                fields.ExistingEks,
                called={"kubectl_role_arn": "node_role_arn_for_access_entry"},
                kubectl_role_arn=node_role_arn_for_access_entry,
            ),
            lambda: check_retention(log_retention_days=log_retention_days),
            lambda: refuse(Environment, called={"tags": "log_group_tags"}, tags=log_group_tags),
            lambda: refuse(fields.ExistingEks, called=_CALLED, cluster_name=eks_cluster_name),
            lambda: refuse(
                fields.Eks,
                service_ipv4_cidr=service_ipv4_cidr,
                support_type=support_type,
                scaling_tier=scaling_tier,
                zonal_shift=zonal_shift,
            ),
            lambda: _check_administrators(self, admin_role_arns),
            lambda: refuse_for(_subnet_problems(subnets)),
            (
                lambda: refuse(fields.Eks, addon_versions=pinned),
                lambda: refuse_for(_addon_version_problems(pinned)),
            ),
            (
                lambda: refuse(fields.Eks, endpoint_access=endpoint_access, public_access_cidrs=public_access_cidrs),
                lambda: refuse_for(_public_access_problems(endpoint_access, public_access_cidrs)),
            ),
            lambda: refuse_for(_kubectl_problems(kubernetes_version)),
        )
        access = _endpoint_access(endpoint_access, public_access_cidrs)
        layer = _kubectl_layer(self, kubernetes_version)
        _warn_about_version(self, kubernetes_version)
        # EKS writes to the group at any time, creates it if needed, and uses an existing one
        LogSettings(
            self,
            "LogSettings",
            log_group_name=kubernetes.control_plane_log_group(eks_cluster_name),
            retention_days=log_retention_days,
            tags=log_group_tags,
        )
        key = secrets_key or kms.Key(
            self,
            "SecretsKey",
            description=f"Kubernetes secrets of EKS cluster {eks_cluster_name}",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        role = iam.Role(
            self,
            "Role",
            assumed_by=cast("iam.IPrincipal", iam.ServicePrincipal("eks.amazonaws.com")),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(_CLUSTER_POLICY)],
        )
        acknowledge(role, {MANAGED_POLICY.format(_CLUSTER_POLICY): "EKS asks for this policy on a cluster's role"})
        made = eks.Cluster(
            self,
            "Cluster",
            cluster_name=eks_cluster_name,
            version=eks.KubernetesVersion.of(kubernetes_version),
            # the class defaults to EKS Auto Mode; another type with a capacity of 0 creates neither that nor nodes
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            default_capacity=0,
            bootstrap_cluster_creator_admin_permissions=False,
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=list(subnets))],
            security_group=security_group,
            endpoint_access=access,
            cluster_logging=list(eks.ClusterLoggingTypes),
            secrets_encryption_key=key,
            service_ipv4_cidr=service_ipv4_cidr,
            control_plane_scaling_tier=eks.ControlPlaneScalingTier.of(scaling_tier),
            role=cast("iam.IRole", role),
        )
        # a parameter that adds a step to every chart and manifest: they depend on ``ready`` instead
        made.node.try_remove_child("KubectlReadyBarrier")
        if isinstance(vpc.node.scope, Network):
            Annotations.of(made).acknowledge_warning(_SUBNET_TAG_WARNING, "Network tags its subnets itself")
        resource = cast("eks.CfnCluster", made.node.default_child)
        # EKS's defaults are set explicitly: removing a property from a template does not reset it
        resource.upgrade_policy = eks.CfnCluster.UpgradePolicyProperty(support_type=support_type.upper())
        resource.zonal_shift_config = eks.CfnCluster.ZonalShiftConfigProperty(enabled=zonal_shift)
        goes_with_its_stack(resource, cast("iam.CfnRole", role.node.default_child))
        ignore_in_template(resource, {"W9009": "CDK names the encrypted resources, which EKS's API still documents"})
        addons = [self._addon(name, resource.ref, pinned.get(name)) for name in NODE_INDEPENDENT_ADDONS]
        self._addons = DependencyGroup(*addons)
        kubectl = _kubectl_provider(
            self,
            eks_cluster_name=eks_cluster_name,
            vpc=vpc,
            subnets=subnets,
            security_group=security_group or made.cluster_security_group,
            layer=layer,
        )
        entry = _admit(self, "KubectlAccess", cast("iam.IRole", kubectl.role).role_arn, resource.ref)
        self._ready = DependencyGroup(entry, *_log_groups(kubectl))
        self._cluster = eks.Cluster.from_cluster_attributes(
            self,
            "WithKubectl",
            cluster_name=resource.ref,
            vpc=vpc,
            prune=False,
            kubectl_provider=cast("eks.IKubectlProvider", kubectl),
        )
        self.prerequisites: Sequence[IConstruct] = [role, *([key] if secrets_key is None else [])]
        _admit_administrators(self, admin_role_arns, resource.ref)
        if node_role_arn_for_access_entry is not None:
            eks.CfnAccessEntry(
                self,
                "NodeAccess",
                cluster_name=resource.ref,
                principal_arn=node_role_arn_for_access_entry,
                type="HYPERPOD_LINUX",
            )
        self._issuer_url = resource.attr_open_id_connect_issuer_url
        self._oidc_provider: OidcProvider | None = None
        if oidc_provider:
            # IAM fetches the thumbprint of EKS's issuers itself
            provider = iam.CfnOIDCProvider(self, "OidcProvider", url=self._issuer_url, client_id_list=[_STS])
            self._oidc_provider = OidcProvider(arn=provider.attr_arn, issuer_url=self._issuer_url)

    @property
    def cluster(self) -> eks.ICluster:
        """The EKS cluster, with a kubectl provider; charts and manifests must depend on ``ready``."""
        return self._cluster

    @property
    def issuer_url(self) -> str:
        """The issuer of the cluster's tokens, which begins with ``https://``: it exists with and without a provider."""
        return self._issuer_url

    @property
    def oidc_provider(self) -> OidcProvider | None:
        """The cluster's OIDC provider, if requested."""
        return self._oidc_provider

    @property
    def addons(self) -> IDependable:
        """The add-ons that need no node."""
        return self._addons

    @property
    def ready(self) -> IDependable:
        """What a client of the API server must depend on: the kubectl handler's access entry and its log groups."""
        return self._ready

    def _addon(self, name: str, eks_cluster_name: str, version: str | None) -> eks.CfnAddon:
        return eks.CfnAddon(
            self,
            "".join(part.capitalize() for part in name.split("-")),
            cluster_name=eks_cluster_name,
            addon_name=name,
            addon_version=version,
            # EKS has installed its self-managed copies in the new cluster; the add-on replaces them
            resolve_conflicts="OVERWRITE",
        )


@judged(known=("kubernetes_version",))
class ExistingControlPlane(Construct):
    """An existing EKS cluster, with the public interface of ``ControlPlane`` and its own kubectl handler.

    ``kubernetes_version`` is the version of the cluster: kubectl may be one minor version older or newer. The handler
    is in ``subnets`` of ``vpc``, so that it can use a private endpoint, and has ``security_group``: the cluster
    security group that EKS created, or another one of the control plane whose members can communicate.

    ``kubectl_role_arn`` is the role of the handler: it trusts Lambda, may write logs and create network interfaces
    (``AWSLambdaVPCAccessExecutionRole``), and administers the cluster already. A policy for describing the cluster and
    reading charts is attached to it and removed with the stack. Without it, a role is created and gets an access entry,
    which needs the authentication mode ``API`` or ``API_AND_CONFIG_MAP`` that HyperPod requires too.
    ``admin_role_arns`` get access entries; EKS refuses a second one for the same role.

    Cluster, add-ons, log group and key remain their owner's: nothing here changes or deletes them. CDK accepts
    ``KubectlProviderOptions`` for an imported cluster and ignores them (2.275), so the provider is created here.

    ``vpc`` (ec2.IVpc): the cluster's VPC.

    ``subnets`` (Sequence[ec2.ISubnet]): private subnets for the kubectl handler.

    ``eks_cluster_name`` (str): name of the existing cluster. Raises ValueError for a name that EKS refuses.

    ``kubernetes_version`` (str): minor version of the cluster, as text. Raises ValueError for a version without a
    kubectl layer.

    ``security_group`` (ec2.ISecurityGroup): group of the control plane that allows access to it.

    ``oidc_provider_arn`` (str, ARN): the cluster's OIDC provider in IAM. Default: none. Raises ValueError for text that
    is not such an ARN, and for one of another account, partition or region than the stack's.

    ``kubectl_role_arn`` (str, ARN): the role with which kubectl runs. Default: a role is created. Raises ValueError for
    text that is not the ARN of a role, and for one of another account or partition than the stack's.

    ``admin_role_arns`` (Sequence[str], ARNs): IAM roles that get an access entry as administrators. Default: none.
    Raises ValueError for text that is not the ARN of a role, a repeated role, and one of another partition.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        eks_cluster_name: str,
        kubernetes_version: str,
        security_group: ec2.ISecurityGroup,
        oidc_provider_arn: str | None = None,
        kubectl_role_arn: str | None = None,
        admin_role_arns: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        refuse_all(
            lambda: refuse(fields.ExistingEks, called=_CALLED, cluster_name=eks_cluster_name),
            (
                lambda: refuse(fields.ExistingEks, kubectl_role_arn=kubectl_role_arn),
                lambda: _check_home(self, kubectl_role_arn=kubectl_role_arn),
            ),
            (
                lambda: refuse(fields.ExistingEks, oidc_provider_arn=oidc_provider_arn),
                lambda: _check_home(self, oidc_provider_arn=oidc_provider_arn),
            ),
            lambda: _check_administrators(self, admin_role_arns),
            lambda: refuse_for(_kubectl_problems(kubernetes_version)),
        )
        layer = _kubectl_layer(self, kubernetes_version)
        _warn_about_version(self, kubernetes_version)
        entries = _admit_administrators(self, admin_role_arns, eks_cluster_name)
        role = iam.Role.from_role_arn(self, "KubectlRole", kubectl_role_arn) if kubectl_role_arn else None
        attributes: dict[str, Any] = {"cluster_name": eks_cluster_name, "vpc": vpc, "prune": False}
        provider = _kubectl_provider(
            self,
            eks_cluster_name=eks_cluster_name,
            vpc=vpc,
            subnets=subnets,
            security_group=security_group,
            layer=layer,
            role=role,
        )
        if oidc_provider_arn is not None:
            attributes["open_id_connect_provider"] = iam.OpenIdConnectProvider.from_open_id_connect_provider_arn(
                self, "OidcProvider", oidc_provider_arn
            )
        self._cluster = eks.Cluster.from_cluster_attributes(
            self, "Cluster", kubectl_provider=cast("eks.IKubectlProvider", provider), **attributes
        )
        if role is not None:
            # CDK checks whether the region has public registries even if it creates no role that would read them
            self.node.try_remove_child("HasEcrPublic")
        if role is None and provider.role is not None:
            entries.append(_admit(self, "KubectlAccess", provider.role.role_arn, eks_cluster_name))
        self._ready = DependencyGroup(*entries, *_log_groups(provider))
        self._oidc_provider = None if oidc_provider_arn is None else _named_provider(oidc_provider_arn)

    @property
    def cluster(self) -> eks.ICluster:
        """The EKS cluster, with a kubectl provider."""
        return self._cluster

    @property
    def oidc_provider(self) -> OidcProvider | None:
        """The cluster's OIDC provider, if one was given."""
        return self._oidc_provider

    @property
    def ready(self) -> IDependable:
        """What a client of the API server must depend on: the access entries, and log groups of the kubectl handler."""
        return self._ready


def _kubectl_provider(
    scope: Construct,
    *,
    eks_cluster_name: str,
    vpc: ec2.IVpc,
    subnets: Sequence[ec2.ISubnet],
    security_group: ec2.ISecurityGroup,
    layer: lambda_.ILayerVersion,
    role: iam.IRole | None = None,
) -> eks.KubectlProvider:
    """Create the handler that runs kubectl and helm; it uses the cluster's name, so both are created in parallel."""
    provider = eks.KubectlProvider(
        scope,
        "KubectlProvider",
        cluster=eks.Cluster.from_cluster_attributes(scope, "Named", cluster_name=eks_cluster_name, vpc=vpc),
        role=role,
        private_subnets=list(subnets),
        security_groups=[security_group],
        kubectl_layer=layer,
    )
    acknowledge_kubectl_provider(provider, role=role)
    return provider


def _log_groups(provider: IConstruct) -> list[IDependable]:
    """Return the log groups that CDK creates for the functions of the kubectl provider, if its flag is set.

    A function that runs before its group exists creates the group itself, and CloudFormation then finds it
    and rolls the stack back (aws/aws-cdk issue 667).
    """
    return [each for each in provider.node.find_all() if isinstance(each, logs.CfnLogGroup)]


def _named_provider(arn: str) -> OidcProvider:
    issuer = Fn.select(1, Fn.split(_PROVIDER, arn)) if Token.is_unresolved(arn) else arn.partition(_PROVIDER)[2]
    return OidcProvider(arn=arn, issuer_url=f"https://{issuer}")


def _admit_administrators(scope: Construct, role_arns: Sequence[str], eks_cluster_name: str) -> list[IDependable]:
    entries: list[IDependable] = []
    for index, arn in enumerate(dict.fromkeys(role_arns)):
        suffix = str(index) if Token.is_unresolved(arn) else _role_suffix(arn)
        entries.append(_admit(scope, f"AdminAccess{suffix}", arn, eks_cluster_name))
    return entries


def _admit(scope: Construct, construct_id: str, role_arn: str, eks_cluster_name: str) -> eks.CfnAccessEntry:
    return eks.CfnAccessEntry(
        scope,
        construct_id,
        cluster_name=eks_cluster_name,
        principal_arn=role_arn,
        type="STANDARD",
        access_policies=[
            eks.CfnAccessEntry.AccessPolicyProperty(
                access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                policy_arn=arn_of_aws("eks", f"cluster-access-policy/{_ADMIN_POLICY}"),
            )
        ],
    )


def _subnet_problems(subnets: Sequence[ec2.ISubnet]) -> Iterator[str]:
    if problem := network_rules.control_plane_subnets_problem(len(subnets)):
        yield f"subnets: {problem}"


def _addon_version_problems(versions: Mapping[str, str]) -> Iterator[str]:
    for name, version in versions.items():
        problem = addon_rules.version_problem(name, version)
        if problem:
            yield f"addon_versions[{name!r}]: {in_python(problem)}"


def _role_suffix(arn: str) -> str:
    """Return a suffix that depends on the role, not on its place in the list."""
    return hashlib.sha256(arn.encode()).hexdigest()[:8]


def _check_administrators(scope: Construct, role_arns: Sequence[str]) -> None:
    refuse_all(
        (
            lambda: refuse(fields.Eks, admin_role_arns=role_arns),
            lambda: refuse_for(_administrator_problems(role_arns, region=Stack.of(scope).region)),
        )
    )


def _administrator_problems(role_arns: Sequence[str], *, region: str) -> Iterator[str]:
    if problem := repeated_problem([arn for arn in role_arns if not is_token(arn)], key="admin_role_arns"):
        yield problem
    partition = None if is_token(region) else regions.partition_of(region)
    for index, arn in enumerate(role_arns):
        if partition and not is_token(arn):
            problem = arn_rules.role_partition_problem(arn, partition=partition, region=region)
            if problem:
                yield f"admin_role_arns[{index}]: {in_python(problem)}"


def _check_home(scope: Construct, *, kubectl_role_arn: str | None = None, oidc_provider_arn: str | None = None) -> None:
    """Refuse ARNs of another account, partition or region than the stack's, as far as those are known."""
    stack = Stack.of(scope)
    partition = None if is_token(stack.region) else regions.partition_of(stack.region)
    for key, what, arn in (
        ("kubectl_role_arn", "a role", kubectl_role_arn),
        ("oidc_provider_arn", "an OIDC provider", oidc_provider_arn),
    ):
        if arn is None or is_token(arn):
            continue
        problem = None
        if partition and not is_token(stack.account):
            problem = arn_rules.home_problem(what, arn, partition=partition, account=stack.account, key=key)
        if problem is None and key == "oidc_provider_arn" and not is_token(stack.region):
            problem = arn_rules.issuer_problem(arn, region=stack.region, key=key)
        if problem:
            raise ValueError(f"{key}: {in_python(problem)}")


def _public_access_problems(kind: str, cidrs: Sequence[str]) -> Iterator[str]:
    if kind == "private":
        if problem := network_rules.private_endpoint_problem(kind, cidrs):
            yield f"public_access_cidrs: {in_python(problem)}"
    elif problem := network_rules.PUBLIC_ACCESS_CIDRS.count_problem(len(cidrs), what="blocks"):
        yield f"public_access_cidrs: {problem}"


def _endpoint_access(kind: Literal["public_and_private", "private"], cidrs: Sequence[str]) -> eks.EndpointAccess:
    if kind == "private":
        return eks.EndpointAccess.PRIVATE
    return eks.EndpointAccess.PUBLIC_AND_PRIVATE.only_from(*(cidrs or (network_rules.EVERYWHERE,)))


def _kubectl_problems(kubernetes_version: str) -> Iterator[str]:
    problem = kubernetes.kubectl_problem(kubernetes_version)
    if problem is not None:
        yield f"kubernetes_version: {in_python(problem)}"


def _kubectl_layer(scope: Construct, kubernetes_version: str) -> lambda_.ILayerVersion:
    minor = kubernetes_version.removeprefix("1.")
    module = importlib.import_module(f"aws_cdk.lambda_layer_kubectl_v{minor}")
    layer: lambda_.ILayerVersion = getattr(module, f"KubectlV{minor}Layer")(scope, "KubectlLayer")
    return layer


def _warn_about_version(scope: Construct, kubernetes_version: str) -> None:
    # which versions HyperPod accepts is from a dated table, not certain
    problem = kubernetes.version_problem(kubernetes_version)
    if problem:
        Annotations.of(scope).add_warning_v2(
            "hyperpod-cdk:kubernetes-version", f"kubernetes_version: {in_python(problem)}"
        )
