"""Whether EKS supports the Kubernetes version and has the add-ons, and whether the nodes have room for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from math import ceil

from hyperpod_cdk.catalog import addons, images, kubernetes
from hyperpod_cdk.catalog.rules import joined
from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.checks.answers import AddonVersions, Aws, KubernetesVersionAnswer, NotAnswered
from hyperpod_cdk.checks.model import LOOKED, Case, Found, Skipped, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment, InstanceGroup
from hyperpod_cdk.config.wanted_addons import EVERYWHERE, asked_for
from hyperpod_cdk.eks import charts

AREA = "eks"

SOON = timedelta(days=60)
"""An end of support within this time is reported: an update of a cluster needs planning."""

_VERSION = "eks.kubernetes_version"
_STANDARD = "STANDARD_SUPPORT"
_EXTENDED = "EXTENDED_SUPPORT"
_KEEPS_PODS_OUT = frozenset({"NoSchedule", "NoExecute"})


@check(
    area=AREA,
    asks=("kubernetes_versions",),
    inputs="eks.kubernetes_version and today's date. validate checks which versions HyperPod accepts.",
    passes="EKS offers the version, in standard support for 60 days or more.",
    fails="EKS does not offer the version. A warning where it is in extended support, which is billed for every hour of"
    " the cluster, or where standard or extended support ends within 60 days.",
    skips="AWS gives no answer about the versions. An end of standard support within 60 days is then still reported, by"
    " the dated table of this version of hyperpod-cdk.",
    by_hand="aws eks describe-cluster-versions --query"
    " 'clusterVersions[].[clusterVersion,versionStatus,endOfStandardSupportDate,endOfExtendedSupportDate]'",
)
def kubernetes_version_is_supported_for_long(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare the version with EKS's support calendar as it is today."""
    environment = case.environment
    version = environment.eks.kubernetes_version
    try:
        offered = aws.kubernetes_versions()
    except NotAnswered as missing:
        yield unanswered(missing, _VERSION)
        yield from _ends_soon_by_the_table(version, case.now.date())
        return
    row = next((each for each in offered if each.version == version), None)
    if row is None or row.status not in {_STANDARD, _EXTENDED}:
        listed = [each.version for each in offered if each.status in {_STANDARD, _EXTENDED}]
        yield error(
            _VERSION,
            f"must be a version that EKS offers in {environment.region} ({', '.join(sorted(listed, key=_number))}), got"
            f' "{version}"; {_better(environment, offered, case.now, above="0.0")}',
        )
    else:
        yield from _support(environment, row, offered, case.now)


@check(
    area=AREA,
    asks=("addon_versions",),
    inputs="The add-ons that the file asks for, eks.addon_versions, eks.kubernetes_version.",
    passes="EKS has every add-on for the Kubernetes version, every pinned version is among those it has, and where none"
    " is pinned its default is not older than HyperPod accepts. Another check reports a version for which EKS has no"
    " add-on at all.",
    fails="EKS has no such add-on, or no such version of it, for the Kubernetes version, or its default is too old. A"
    " warning where the training operator is older than elastic training needs.",
    skips="AWS gives no answer about an add-on; the others are still compared.",
    by_hand="aws eks describe-addon-versions --kubernetes-version 1.35 --addon-name vpc-cni"
    " --query 'addons[].addonVersions[].addonVersion'",
)
def addon_versions_exist(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare the add-ons of the environment with those that EKS has for its Kubernetes version."""
    environment = case.environment
    version = environment.eks.kubernetes_version
    wanted = wanted_addons(environment)
    answers = together(lambda name: aws.addon_versions(name, version), wanted)
    if not environment.eks.is_existing and all(answer is None for answer in answers):
        # EKS does not offer the version, which is reported once and not for each add-on
        yield Skipped(reason=f"EKS has no add-on at all for Kubernetes {version}", path=_VERSION)
        return
    for (name, cause), answer in zip(wanted.items(), answers, strict=True):
        pinned = environment.eks.addon_versions.get(name)
        path = f"eks.addon_versions.{name}" if pinned else cause
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, path)
        elif answer is None or not answer.versions:
            yield error(path, _absent(name, environment, aws))
        elif pinned and pinned not in answer.versions:
            yield error(
                path,
                f"must be a version that EKS has for Kubernetes {version}, got {pinned}; set {name}:"
                f" {_advised(answer)}, or leave it out for EKS's default",
            )
        else:
            yield from _old(environment, path, answer, pinned)


@check(
    area=AREA,
    asks=("container_image_exists",),
    inputs="eks.image_registry; charts/charts.lock.yaml; the images of the dependency chart that the instance types of"
    f" the file need and that are not in ECR of the region (table of {images.AS_OF}, chart at"
    f" {images.CHART_COMMIT[:12]}).",
    passes="ECR has each image under its upstream name and tag, or the file names no registry.",
    fails="Never. A warning where an image is missing: its pods remain in ImagePullBackOff, on nodes that are billed."
    " The deployment succeeds without it, and a pull-through cache may fetch an image when it is first pulled.",
    skips="ECR gives no answer about an image (the others are still compared), the registry is not in ECR of the"
    " region, or charts/charts.lock.yaml names another commit of the chart.",
    by_hand="aws ecr describe-images --registry-id 111122223333 --repository-name mirror/nvidia/k8s-device-plugin"
    " --image-ids imageTag=v0.16.1",
)
def copied_images_are_in_the_registry(case: Case, aws: Aws) -> Iterator[Found]:
    """Look for each image that nodes pull from the registry of the file."""
    environment = case.environment
    path, registry = "eks.image_registry", environment.eks.image_registry
    if registry is None:
        return
    home = images.ecr_registry(registry)
    if home is None or home.region != environment.region:
        yield Skipped(reason=f"{registry.partition('/')[0]} is not ECR of {environment.region}", path=path)
        return
    try:
        commit = charts.ChartLock.load(case.project).commit
    except charts.ChartError as unreadable:
        yield Skipped(reason=str(unreadable), path=path)
        return
    if commit != images.CHART_COMMIT:
        yield Skipped(
            reason=f"{charts.LOCK_FILE} names the chart at {commit[:12]}, and its images are known at"
            f" {images.CHART_COMMIT[:12]}; 'hyperpod-cdk charts images' reads them from the pulled chart",
            path=path,
        )
        return

    def is_there(copy: str) -> bool:
        repository, _, tag = copy.partition("/")[2].rpartition(":")
        return aws.container_image_exists(home.account, repository, tag)

    copies = environment.copied_images
    for copy, answer in zip(copies, together(is_there, copies), strict=True):
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, path, about=f"the image {copy}")
        elif not answer:
            yield warning(
                path,
                f"must have the image {copy}, got none: its pods would remain in ImagePullBackOff; push it, unless a"
                " pull-through cache fetches it ('hyperpod-cdk charts images' lists all images)",
            )


@check(
    area=AREA,
    inputs="eks.kubernetes_version; the kubectl layer packages that are installed with hyperpod-cdk.",
    passes="The kubectl layer of the same minor version is installed: kubectl works with servers one minor away at most"
    " and the construct needs the same minor version.",
    fails="There is no such package. The message names the nearest one.",
    skips="Never.",
    by_hand="pip show aws-cdk.lambda-layer-kubectl-v35",
)
def kubectl_layer_matches_kubernetes(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nobody
    """Find the package from which synthesis takes kubectl."""
    yield LOOKED
    problem = kubernetes.kubectl_problem(case.environment.eks.kubernetes_version)
    if problem is not None:
        yield error(_VERSION, problem)


@check(
    area=AREA,
    inputs="Types, counts and taints of the instance groups without accelerators; the add-ons that the file asks for.",
    passes="The nodes without accelerators and taints have room for the pods of the add-ons and the dependency chart"
    " and"
    " for those that run on every node. HyperPod gives pods one network interface, which limits pods per node; how"
    " many pods the add-ons add is a lower estimate. If there is no such group, validate says so. An existing"
    " cluster may have other nodes and is not compared.",
    fails="Never an error, because the number of pods is an estimate: a warning if pods would wait with 'Too many"
    " pods', or if every group without accelerators has taints that keep them out.",
    skips="How many pods fit on a node of an instance type is unknown.",
    by_hand="kubectl get nodes -o custom-columns=NAME:.metadata.name,PODS:.status.allocatable.pods",
)
def system_nodes_hold_the_addons(case: Case, aws: Aws) -> Iterator[Found]:  # noqa: ARG001 - asks nobody
    """Compare the room for pods with the pods of add-ons and controllers."""
    environment = case.environment
    if environment.eks.is_existing:
        return
    groups = [
        (index, group)
        for index, group in enumerate(environment.hyperpod.instance_groups)
        if group.count and not _has_accelerators(environment, group)
    ]
    if not groups:
        return
    yield LOOKED
    open_groups = [(index, group) for index, group in groups if not _is_tainted(group)]
    if not open_groups:
        index, group = groups[0]
        yield warning(
            f"hyperpod.instance_groups[{index}].taints",
            "every group without accelerators has taints, which add-ons do not tolerate, so their pods run on"
            " accelerated nodes or stay pending; remove the taints of one, or add a small group named system",
        )
        return
    rooms = {index: _pods_per_node(environment, group) for index, group in open_groups}
    unknown = [(index, group) for index, group in open_groups if rooms[index] is None]
    for index, group in unknown:
        yield Skipped(
            reason=f"how many pods fit on a node of {joined(group.all_instance_types, last='or')} is unknown",
            path=f"hyperpod.instance_groups[{index}]",
        )
    if not unknown:
        yield from _room(environment, [(index, group, rooms[index] or 0) for index, group in open_groups])


def wanted_addons(environment: Environment) -> dict[str, str]:
    """Return every add-on that the environment installs -> the place in the file that asks for it."""
    found = {**dict.fromkeys(EVERYWHERE, _VERSION), **asked_for(environment)}
    return {name: cause for name, cause in found.items() if environment.eks.installs(name)}


def _support(
    environment: Environment, row: KubernetesVersionAnswer, offered: tuple[KubernetesVersionAnswer, ...], now: datetime
) -> Iterator[Found]:
    better = _better(environment, offered, now, above=row.version)
    if row.status == _EXTENDED:
        ends = row.end_of_extended_support
        until = "" if ends is None else f" until {ends.date()}"
        text = f"EKS bills extended support for Kubernetes {row.version}{until}"
        if ends is not None and ends - now < SOON:
            text = f"{text}, {_days(ends.date() - now.date())}, and then updates the cluster automatically"
        yield warning(_VERSION, f"{text}; {better}")
    elif row.end_of_standard_support is not None and row.end_of_standard_support - now < SOON:
        last = row.end_of_standard_support.date()
        yield warning(
            _VERSION,
            f"standard support for Kubernetes {row.version} ends on {last}, {_days(last - now.date())}; extended"
            f" support is billed from that day: {better}",
        )


def _ends_soon_by_the_table(version: str, today: date) -> Iterator[Found]:
    """Warn of a coming end of support; validate reports only ends that have passed."""
    row = kubernetes.get(version)
    ends = row.standard_support_ends if row else None
    if ends is None or not timedelta(0) < ends - today < SOON:
        return
    later = [
        each.version
        for each in kubernetes.VERSIONS
        if each.hyperpod and each.standard_support_ends and each.standard_support_ends - today >= SOON
    ]
    fix = (
        kubernetes.step_to(later[-1], version, key="kubernetes_version")
        if later
        else "look for a newer version that HyperPod accepts"
    )
    yield warning(
        _VERSION,
        f"standard support for Kubernetes {version} ends on {ends}, {_days(ends - today)} (dates as of"
        f" {kubernetes.AS_OF}); extended support is billed from that day: {fix}",
    )


def _days(left: timedelta) -> str:
    days = max(0, left.days)
    return "today" if days == 0 else f"in {days} {plural(days, 'day')}"


def _better(
    environment: Environment, offered: tuple[KubernetesVersionAnswer, ...], now: datetime, *, above: str
) -> str:
    """Name the newest version above one that HyperPod accepts and EKS supports for long."""
    accepted = set(kubernetes.hyperpod_versions())
    good = [
        row.version
        for row in offered
        if row.version in accepted
        and row.status == _STANDARD
        and (row.end_of_standard_support is None or row.end_of_standard_support - now >= SOON)
        and _number(row.version) > _number(above)
    ]
    if not good:
        return "HyperPod accepts no other version that EKS supports for long, look for a newer hyperpod-cdk"
    newest = max(good, key=_number)
    if environment.eks.is_existing:
        return kubernetes.update_of(environment.eks_cluster_name, newest)
    return kubernetes.step_to(newest, environment.eks.kubernetes_version, key="kubernetes_version")


def _absent(name: str, environment: Environment, aws: Aws) -> str:
    """Say that EKS does not have an add-on: no version of Kubernetes helps if the region does not have it at all."""
    version, region = environment.eks.kubernetes_version, environment.region
    try:
        elsewhere = aws.addon_versions(name, "")
    except NotAnswered as missing:
        has_any = f"; whether it has it for another version is unknown: {missing.sentence}"
    else:
        if elsewhere is None or not elsewhere.versions:
            return (
                f"needs the add-on {name}, which EKS does not have in {region} for any version of Kubernetes;"
                " do without what needs it, or use another region"
            )
        has_any = ""
    return (
        f"needs the add-on {name}, which EKS does not have for Kubernetes {version} in {region};"
        f" set {_VERSION} to one of {', '.join(kubernetes.hyperpod_versions())} that has it{has_any}"
    )


def _advised(answer: AddonVersions) -> str:
    return answer.default or answer.versions[0]


def _old(environment: Environment, path: str, answer: AddonVersions, pinned: str | None) -> Iterator[Found]:
    """Find versions that are too old: validate refuses pinned ones; EKS's default is known only here."""
    row = addons.get(answer.addon)
    taken = pinned or answer.default
    if row is None or not taken:
        return
    if not pinned and _older(taken, row.minimum_version):
        newer = next((each for each in answer.versions if not _older(each, row.minimum_version)), None)
        fix = f"set eks.addon_versions: {{{answer.addon}: {newer}}}" if newer else f"set a newer {_VERSION}"
        yield error(
            path,
            f"EKS's default of {answer.addon} for Kubernetes {answer.kubernetes_version} is {taken}, and HyperPod needs"
            f" {row.minimum_version} (as of {addons.AS_OF}); {fix}",
        )
    elif _older(taken, row.elastic_minimum_version):
        newer = next((each for each in answer.versions if not _older(each, row.elastic_minimum_version)), None)
        fix = f"; set eks.addon_versions: {{{answer.addon}: {newer}}}" if newer else ""
        yield warning(
            path,
            f"elastic training needs {answer.addon} {row.elastic_minimum_version} (as of {addons.AS_OF}), and"
            f" {environment.name} would get {taken}{fix}",
        )


def _older(version: str, least: str | None) -> bool:
    got, wanted = addons.release(version), addons.release(least) if least else None
    return got is not None and wanted is not None and got < wanted


def _room(environment: Environment, groups: list[tuple[int, InstanceGroup, int]]) -> Iterator[Found]:
    rows = [addons.row(name) for name in wanted_addons(environment)]
    on_each_node = sum(row.node_pods for row in rows)
    needed = addons.CHART_PODS + sum(row.cluster_pods for row in rows)
    free = sum(group.count * max(0, pods - on_each_node) for _, group, pods in groups)
    if needed <= free:
        return
    index, group, pods = max(groups, key=lambda each: each[1].count * each[2])
    nodes = ", ".join(
        f"{group.count} {joined(group.all_instance_types, last='or')} of {group.name} with {pods} pods each"
        for _, group, pods in groups
    )
    others = free - group.count * max(0, pods - on_each_node)
    count = ceil((needed - others) / (pods - on_each_node)) if pods > on_each_node else 0
    fix = f"set hyperpod.instance_groups[{index}].count: {count} or use a larger type" if count else "use a larger type"
    yield warning(
        f"hyperpod.instance_groups[{index}]",
        f"must have room for {needed} pods of add-ons and controllers and {on_each_node} more on each node, got room"
        " for"
        f" {free} ({nodes}); further pods wait with 'Too many pods': {fix}",
    )


def _pods_per_node(environment: Environment, group: InstanceGroup) -> int | None:
    """Return how many pods fit on a node of the group, for a flexible group the least of its types; None: unknown."""
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    rooms = [None if row is None else row.pods_per_node for row in rows]
    known = [room for room in rooms if room is not None]
    return min(known) if len(known) == len(rooms) else None


def _has_accelerators(environment: Environment, group: InstanceGroup) -> bool:
    rows = [environment.instance_type(name) for name in group.all_instance_types]
    return any(row is None or row.is_accelerated for row in rows)


def _is_tainted(group: InstanceGroup) -> bool:
    return any(taint.effect in _KEEPS_PODS_OUT for taint in group.taints)


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)
