"""An existing EKS cluster: whether HyperPod can join it and the add-ons of the environment fit on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from hyperpod_cdk.catalog import addons, governance, kubernetes
from hyperpod_cdk.catalog import network as addresses
from hyperpod_cdk.catalog.kubernetes import SYSTEM_NAMESPACE
from hyperpod_cdk.catalog.rules import listing
from hyperpod_cdk.checks.answers import (
    Aws,
    EksClusterAnswer,
    HyperPodClusterAnswer,
    InstalledAddon,
    NotAnswered,
    Partial,
    StackAnswer,
)
from hyperpod_cdk.checks.eks import wanted_addons
from hyperpod_cdk.checks.model import Case, Found, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import answered
from hyperpod_cdk.config.eks import ExistingEks
from hyperpod_cdk.config.environment import FOUNDATION, PLATFORM, stack_name

AREA = "existing-cluster"

KUEUE_GROUP = governance.KUEUE_GROUP

_HERE = "eks.existing"
_NAME = f"{_HERE}.cluster_name"
_CNI_DAEMON_SET = "aws-node"
_CNI_IMAGE = re.compile(r"(?:^|/)amazon-k8s-cni:(v[\w.-]+)$")
_NO_KUBECTL_SKEW = 1
_IPV6 = "ipv6"


@check(
    area=AREA,
    asks=("eks_cluster",),
    inputs="eks.existing.cluster_name.",
    passes="The cluster exists in the account and region and is ACTIVE.",
    fails="It does not exist, is being created or deleted, or failed. A warning while it is being updated.",
    skips="EKS does not answer.",
    by_hand="aws eks describe-cluster --name platform --query cluster.status",
)
def existing_cluster_is_active(case: Case, aws: Aws) -> Iterator[Found]:
    """The other checks of the cluster depend on this one; without a cluster they are skipped."""
    existing = case.environment.eks.existing
    if existing is None:
        return
    cluster = aws.eks_cluster(existing.cluster_name)
    if cluster is None:
        yield error(
            _NAME,
            f"needs an EKS cluster of account {case.environment.account} in {case.environment.region}, got"
            f" {existing.cluster_name}, which does not exist there; correct the name, the account or the region",
        )
    elif cluster.status == "UPDATING":
        yield warning(_NAME, f"{cluster.name} is being updated; wait until it is ACTIVE before you deploy")
    elif cluster.status != "ACTIVE":
        yield error(
            _NAME, f"needs an ACTIVE cluster, got {cluster.name}, which is {cluster.status}; wait for it or repair it"
        )


@check(
    area=AREA,
    asks=("eks_cluster",),
    inputs="eks.existing.cluster_name and security_group_id, network.existing.vpc_id.",
    passes="The cluster is in the VPC of the file, and its control plane has the security group of the file.",
    fails="It is in another VPC, or its control plane does not have the group: nodes and the function that runs"
    " kubectl use it to reach the API server.",
    skips="EKS does not answer.",
    by_hand="aws eks describe-cluster --name platform --query cluster.resourcesVpcConfig",
)
def existing_cluster_stands_in_the_network(case: Case, aws: Aws) -> Iterator[Found]:
    """HyperPod accepts only subnets of the cluster's VPC."""
    existing, network = case.environment.eks.existing, case.environment.network.existing
    cluster = _cluster(existing, aws)
    if existing is None or network is None or cluster is None:
        return
    if cluster.vpc_id != network.vpc_id:
        yield error(
            "network.existing.vpc_id",
            f"needs the VPC of {cluster.name}, which is {cluster.vpc_id}, got {network.vpc_id}; set vpc_id:"
            f" {cluster.vpc_id} with subnets of it, or name another cluster",
        )
        return
    groups = tuple(dict.fromkeys((cluster.cluster_security_group_id, *cluster.security_group_ids)))
    if existing.security_group_id not in groups:
        yield error(
            f"{_HERE}.security_group_id",
            f"must be a group that the control plane of {cluster.name} has ({', '.join(groups)}), got"
            f" {existing.security_group_id}; set security_group_id: {cluster.cluster_security_group_id}, which EKS"
            " created"
            " for the cluster",
        )


@check(
    area=AREA,
    asks=("eks_cluster",),
    inputs="eks.kubernetes_version; the versions that HyperPod documents"
    f" ({kubernetes.hyperpod_versions()[0]} to {kubernetes.hyperpod_versions()[-1]}, table of {kubernetes.AS_OF}).",
    passes="The cluster has the version that the file states.",
    fails="The cluster's version is more than one minor away from the file's, whose kubectl then cannot connect to it."
    " A"
    " warning for one minor, and where the table does not list the cluster's version.",
    skips="EKS does not answer.",
    by_hand="aws eks describe-cluster --name platform --query cluster.version",
)
def existing_cluster_has_the_stated_version(case: Case, aws: Aws) -> Iterator[Found]:
    """The file's version chooses kubectl and the add-ons."""
    cluster = _cluster(case.environment.eks.existing, aws)
    stated = case.environment.eks.kubernetes_version
    if cluster is None or cluster.kubernetes_version == stated:
        return
    path, has = "eks.kubernetes_version", cluster.kubernetes_version
    if has not in kubernetes.hyperpod_versions():
        allowed = kubernetes.hyperpod_versions()
        yield warning(
            path,
            f"HyperPod documents Kubernetes {allowed[0]} to {allowed[-1]} (table of {kubernetes.AS_OF}), and"
            f" {cluster.name} has {has}; choose another cluster, or update it to one of these",
        )
        return
    skew = abs(_minor(has) - _minor(stated))
    say = error if skew > _NO_KUBECTL_SKEW else warning
    yield say(path, f'must be the version of {cluster.name}, {has}, got {stated}; set kubernetes_version: "{has}"')


@check(
    area=AREA,
    asks=("eks_cluster",),
    inputs="eks.existing.cluster_name.",
    passes="The cluster's authentication mode is API or API_AND_CONFIG_MAP.",
    fails="It is CONFIG_MAP: SageMaker creates access entries for itself and the nodes, which that mode does not"
    " support.",
    skips="EKS does not answer.",
    by_hand="aws eks describe-cluster --name platform --query cluster.accessConfig.authenticationMode",
)
def existing_cluster_takes_access_entries(case: Case, aws: Aws) -> Iterator[Found]:
    """The mode can be changed to one with more methods, never back."""
    cluster = _cluster(case.environment.eks.existing, aws)
    if cluster is None or cluster.authentication_mode in kubernetes.ACCESS_ENTRY_MODES:
        return
    yield error(
        _NAME,
        f"needs authentication mode {listing(kubernetes.ACCESS_ENTRY_MODES)}, got"
        f" {cluster.authentication_mode} on {cluster.name}; run"
        f" 'aws eks update-cluster-config --name {cluster.name} --access-config"
        " authenticationMode=API_AND_CONFIG_MAP', which cannot be undone",
    )


@check(
    area=AREA,
    asks=("eks_cluster",),
    inputs="eks.existing.cluster_name and storage.lustre.",
    passes="The cluster gives its pods IPv4 addresses.",
    fails="Never an error: a warning if it gives them IPv6 addresses, which the role of the nodes may not assign,"
    " and another if pods mount FSx for Lustre, which the EKS user guide excludes in such a cluster.",
    skips="EKS does not answer.",
    by_hand="aws eks describe-cluster --name platform --query cluster.kubernetesNetworkConfig.ipFamily",
)
def existing_cluster_gives_pods_ipv4_addresses(case: Case, aws: Aws) -> Iterator[Found]:
    """HyperPod accepts such clusters (CreateCluster, VpcConfig); their requirements: EKS user guide, cni-ipv6."""
    cluster = _cluster(case.environment.eks.existing, aws)
    if cluster is None or cluster.ip_family != _IPV6:
        return
    yield warning(
        _NAME,
        f"should give pods IPv4 addresses, got {cluster.ip_family} on {cluster.name}, which the role of the nodes may"
        " not assign; give the VPC CNI a role of its own with ec2:AssignIpv6Addresses, or use an IPv4 cluster",
    )
    if any(each.claim for each in case.environment.storage.lustre):
        yield warning(
            "storage.lustre",
            f"is not supported by the EKS user guide in IPv6 clusters, such as {cluster.name}; leave out the claims"
            ", or use an IPv4 cluster",
        )


@check(
    area=AREA,
    asks=("eks_cluster", "installed_addons", "kubernetes_daemon_sets"),
    inputs="The add-ons of the cluster; without the add-on vpc-cni, the image of the DaemonSet aws-node.",
    passes=f"The Amazon VPC CNI is installed in {addons.row(addons.VPC_CNI).minimum_version} or newer.",
    fails="It is older, or there is none: it is the only CNI that HyperPod supports.",
    skips="EKS or the API server does not answer, or the image's tag is not a version.",
    by_hand="kubectl -n kube-system get daemonset aws-node -o jsonpath='{..image}'",
)
def existing_cluster_has_a_new_enough_vpc_cni(case: Case, aws: Aws) -> Iterator[Found]:
    """It is an add-on, or the DaemonSet that every new cluster has."""
    cluster = _cluster(case.environment.eks.existing, aws)
    if cluster is None:
        return
    addon = aws.installed_addons(cluster.name).named(addons.VPC_CNI)
    version = _self_managed_cni(cluster.name, aws) if addon is None else addon.version
    least = addons.row(addons.VPC_CNI).minimum_version or ""
    if version is None:
        yield error(
            _NAME,
            f"needs the Amazon VPC CNI {least} or newer, the only CNI that HyperPod supports, got neither the add-on"
            f" {addons.VPC_CNI} nor the DaemonSet {_CNI_DAEMON_SET} on {cluster.name}; install the add-on",
        )
    elif (got := addons.release(version)) is None:
        raise NotAnswered(f"the VPC CNI of {cluster.name} has the version {version}, which cannot be compared")
    elif got < (addons.release(least) or ()):
        yield error(
            _NAME,
            f"needs the Amazon VPC CNI {least} or newer for HyperPod, got {version} on {cluster.name};"
            f" {_newer_cni(addon)}",
        )


@check(
    area=AREA,
    asks=("eks_cluster", "installed_addons", "kubernetes_api_groups"),
    inputs=f"task_governance, eks.existing.installed_addons; the API groups that the cluster serves ({KUEUE_GROUP}).",
    passes="Task governance is disabled or its add-on is on the cluster already, or the cluster has no Kueue.",
    fails="The cluster has its own Kueue, and the task-governance add-on installs another: the add-on is degraded.",
    skips="EKS or the API server does not answer, such as a private endpoint from outside, or without an access entry.",
    by_hand="kubectl get --raw /apis | grep kueue.x-k8s.io",
)
def existing_cluster_has_no_kueue_of_its_own(case: Case, aws: Aws) -> Iterator[Found]:
    """AWS says to remove an existing Kueue before the add-on is installed."""
    environment = case.environment
    if environment.task_governance is None or not environment.eks.installs(addons.TASK_GOVERNANCE):
        return
    cluster = _cluster(environment.eks.existing, aws)
    if cluster is None:
        return
    answers = answered(lambda: aws.installed_addons(cluster.name), lambda: aws.kubernetes_api_groups(cluster.name))
    installed = cast("Partial[InstalledAddon]", answers[0])
    groups = cast("frozenset[str]", answers[1])
    if KUEUE_GROUP in groups and not installed.has(addons.TASK_GOVERNANCE):
        yield error(
            "task_governance",
            f"needs {cluster.name} without its own Kueue, got the API group {KUEUE_GROUP}; leave out"
            " task_governance, or name another cluster: the users of that Kueue would lose their queues and workloads"
            " with it",
        )


@check(
    area=AREA,
    asks=("eks_cluster", "installed_addons", "stack"),
    may_lack=("stack",),
    inputs="The add-ons that the file asks for, eks.existing.installed_addons, the add-ons of the cluster, the stacks"
    " <name>-platform and <name>-foundation.",
    passes="No add-on that the environment would install is there, or the environment's own stack exists already and"
    " counts as the one that installed it; every add-on that the file lists as installed is there, and so is the pod"
    " identity"
    " agent if an add-on gets its permissions through it.",
    fails="EKS refuses to install an add-on twice; or one that the environment needs is missing.",
    skips="EKS or CloudFormation does not answer.",
    by_hand="aws eks list-addons --cluster-name platform",
)
def existing_addons_are_told_apart(case: Case, aws: Aws) -> Iterator[Found]:
    """The file must say who owns the add-ons on the cluster."""
    environment = case.environment
    existing = environment.eks.existing
    cluster = _cluster(existing, aws)
    if existing is None or cluster is None:
        return
    names = [stack_name(environment.name, stack) for stack in (PLATFORM, FOUNDATION)]
    answers = answered(lambda: aws.installed_addons(cluster.name), *(_stack(name, aws) for name in names))
    found = cast("Partial[InstalledAddon]", answers[0])
    installed = found.names
    is_deployed = any(answer is not None for answer in answers[1:])
    wanted = wanted_addons(environment)
    for name, path in wanted.items():
        if name in installed and not is_deployed:
            yield error(
                path,
                f"needs to install {name} on {cluster.name}, got one that is installed already, which EKS refuses; add"
                f" it to"
                f" {_HERE}.installed_addons to use it as it is",
            )
    if found.broken_off is not None:
        # installed add-ons were named above; which are missing cannot be known
        yield unanswered(found.broken_off, f"{_HERE}.installed_addons")
        return
    for index, name in enumerate(existing.installed_addons):
        if name not in installed:
            yield error(
                f"{_HERE}.installed_addons[{index}]",
                f"must be an add-on of {cluster.name} ({', '.join(sorted(installed)) or 'it has none'}), got {name};"
                " remove it from the list to have it installed",
            )
    through_pods = [name for name in wanted if name in addons.THROUGH_POD_IDENTITY]
    if through_pods and addons.POD_IDENTITY_AGENT not in installed:
        yield error(
            _NAME,
            f"needs the add-on {addons.POD_IDENTITY_AGENT} on {cluster.name} for {', '.join(through_pods)}, got"
            f" none; run"
            f" 'aws eks create-addon --cluster-name {cluster.name} --addon-name {addons.POD_IDENTITY_AGENT}'",
        )


@check(
    area=AREA,
    asks=("eks_cluster", "installed_addons"),
    inputs="operators, eks.existing.installed_addons, the versions of these on the cluster.",
    passes="Every add-on that an operator needs, and that the file lists as installed, is new enough for it.",
    fails="One is too old for the operator's add-on, which then fails permanently.",
    skips="EKS does not answer.",
    by_hand="aws eks describe-addon --cluster-name platform --addon-name cert-manager --query addon.addonVersion",
)
def installed_addons_suit_the_operators(case: Case, aws: Aws) -> Iterator[Found]:
    """Add-ons that are used unchanged must be new enough."""
    existing = case.environment.eks.existing
    cluster = _cluster(existing, aws)
    if existing is None or cluster is None or not existing.installed_addons:
        return
    found = aws.installed_addons(cluster.name)
    if found.broken_off is not None:
        yield unanswered(found.broken_off, f"{_HERE}.installed_addons")
    for listed in found.unread:
        if listed.name in existing.installed_addons:
            index = existing.installed_addons.index(listed.name)
            yield unanswered(listed.why, f"{_HERE}.installed_addons[{index}]", about=listed.name)
    versions = {addon.name: addon.version for addon in found.read}
    for operator in wanted_addons(case.environment):
        for name, least in addons.row(operator).requires.items():
            version = versions.get(name, "")
            got, needed = addons.release(version), addons.release(least or "")
            if name not in existing.installed_addons or got is None or needed is None or got >= needed:
                continue
            yield error(
                f"{_HERE}.installed_addons[{existing.installed_addons.index(name)}]",
                f"must be {least} or newer for {operator}, got {name} {version} on {cluster.name}; run 'aws eks"
                f" update-addon --cluster-name {cluster.name} --addon-name {name} --addon-version VERSION'",
            )


@check(
    area=AREA,
    asks=("eks_cluster",),
    inputs="eks.existing.cluster_name.",
    passes="The API server answers inside the VPC, where the nodes and the function that runs kubectl are. Whether you"
    " reach it from your machine does not matter: only that function must.",
    fails="It has no private endpoint, and its public one is disabled or allows no public address, so no node can reach"
    " it. A warning if only the public endpoint is enabled and does not allow every address: the address of the NAT"
    " gateway must be in the allowed blocks, which is not checked.",
    skips="EKS does not answer, or does not show which blocks the public endpoint allows.",
    by_hand="aws eks describe-cluster --name platform --query cluster.resourcesVpcConfig.publicAccessCidrs",
)
def existing_cluster_can_be_reached(case: Case, aws: Aws) -> Iterator[Found]:
    """Nodes that cannot reach the API server never join."""
    cluster = _cluster(case.environment.eks.existing, aws)
    if cluster is None or cluster.endpoint_private:
        return
    fix = f"run 'aws eks update-cluster-config --name {cluster.name} --resources-vpc-config endpointPrivateAccess=true'"
    if cluster.endpoint_public and cluster.public_access_cidrs is None:
        raise NotAnswered(f"EKS does not show who reaches the public endpoint of {cluster.name}")
    allowed = cluster.public_access_cidrs or ()
    blocks = [block for block in allowed if ":" not in block]
    listed = ", ".join(allowed) or "no block"
    if not cluster.endpoint_public or not any(map(addresses.reaches_the_internet, blocks)):
        yield error(
            _NAME,
            f"needs an API server that nodes and kubectl can reach, got {cluster.name}, which has no private"
            f" endpoint, and whose public endpoint allows {listed}; {fix}",
        )
    elif addresses.internet_share(blocks) < 1:
        yield warning(
            _NAME,
            f"{cluster.name} has no private endpoint, and its public endpoint allows {listed} only: nodes and"
            f" kubectl reach it only if the address of their NAT gateway is in these blocks; {fix}",
        )


@check(
    area=AREA,
    asks=("eks_cluster",),
    inputs="eks.existing.oidc_provider_arn, if it is set.",
    passes="It ends with the issuer of the cluster.",
    fails="It is the provider of another cluster, or the cluster has none.",
    skips="EKS does not answer.",
    by_hand="aws eks describe-cluster --name platform --query cluster.identity.oidc.issuer",
)
def oidc_provider_is_the_clusters(case: Case, aws: Aws) -> Iterator[Found]:
    """Roles for service accounts trust an issuer, not a cluster."""
    existing = case.environment.eks.existing
    if existing is None or existing.oidc_provider_arn is None:
        return
    cluster = _cluster(existing, aws)
    if cluster is None:
        return
    issuer = cluster.oidc_issuer.removeprefix("https://")
    _, _, stated = existing.oidc_provider_arn.partition(":oidc-provider/")
    if stated == issuer:
        return
    place = f"arn:{case.environment.partition}:iam::{case.environment.account}:oidc-provider/{issuer}"
    fix = f"set oidc_provider_arn: {place}" if issuer else "remove it"
    yield error(
        f"{_HERE}.oidc_provider_arn",
        f"must be the provider of {cluster.name}, whose issuer is {issuer or 'none'}, got {stated}; {fix}",
    )


@check(
    area=AREA,
    asks=("eks_cluster", "hyperpod_clusters"),
    inputs="eks.existing.cluster_name, hyperpod.cluster_name.",
    passes="No HyperPod cluster of another name uses the EKS cluster.",
    fails="One does: an EKS cluster serves one HyperPod cluster.",
    skips="EKS or SageMaker does not answer.",
    by_hand="aws sagemaker list-clusters; aws sagemaker describe-cluster --cluster-name prod --query Orchestrator",
)
def existing_cluster_serves_no_other_hyperpod_cluster(case: Case, aws: Aws) -> Iterator[Found]:
    """SageMaker refuses a second one."""
    existing = case.environment.eks.existing
    if existing is None:
        return
    answers = answered(lambda: aws.eks_cluster(existing.cluster_name), aws.hyperpod_clusters)
    cluster = cast("EksClusterAnswer | None", answers[0])
    if cluster is None:
        return
    clusters = cast("Partial[HyperPodClusterAnswer]", answers[1])
    if clusters.broken_off is not None:
        yield unanswered(clusters.broken_off, _NAME)
    for listed in clusters.unread:
        if listed.name != case.environment.hyperpod_cluster_name:
            yield unanswered(listed.why, _NAME, about=listed.name)
    for other in clusters.read:
        if other.eks_cluster_arn == cluster.arn and other.name != case.environment.hyperpod_cluster_name:
            yield error(
                _NAME,
                f"needs an EKS cluster without a HyperPod cluster, got {cluster.name}, which serves {other.name}; use"
                f" another one, or add the instance groups to {other.name}",
            )


def _cluster(existing: ExistingEks | None, aws: Aws) -> EksClusterAnswer | None:
    return None if existing is None else aws.eks_cluster(existing.cluster_name)


def _stack(name: str, aws: Aws) -> Callable[[], StackAnswer | None]:
    return lambda: aws.stack(name)


def _self_managed_cni(cluster: str, aws: Aws) -> str | None:
    """Return the version in the image's tag of aws-node, or None where there is no such DaemonSet."""
    sets: Mapping[str, tuple[str, ...]] = aws.kubernetes_daemon_sets(cluster, SYSTEM_NAMESPACE)
    images = sets.get(_CNI_DAEMON_SET)
    if images is None:
        return None
    tags = [match[1] for image in images if (match := _CNI_IMAGE.search(image))]
    if not tags:
        raise NotAnswered(f"the images of {_CNI_DAEMON_SET} on {cluster} ({', '.join(images)}) show no version")
    return tags[0]


def _newer_cni(addon: InstalledAddon | None) -> str:
    if addon is not None:
        return f"update the add-on {addon.name} to it, which its owner can with 'aws eks update-addon'"
    # as an add-on it would lose settings that differ
    return f"update the DaemonSet {_CNI_DAEMON_SET} to it in the way it was installed"


def _minor(version: str) -> int:
    return int(version.split(".")[1])
