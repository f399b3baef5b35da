"""Whether the account's quotas cover what the environment needs together with what others in the account use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, cast

from hyperpod_cdk.catalog import quotas
from hyperpod_cdk.checks.answers import Aws, NotAnswered, QuotaValue, Why, causes_of
from hyperpod_cdk.checks.model import Case, Detail, Found, Skipped, check, error, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment
from hyperpod_cdk.handlers.quota_gate.comparison import (
    NOTHING_USED,
    Reading,
    Requirement,
    Usage,
    Verdict,
    asked_for,
    judge,
    number,
)
from hyperpod_cdk.quotas.needs import (
    CLUSTER_SIZE,
    EKS,
    LUSTRE,
    NETWORK,
    PER_TYPE,
    RESTRICTED,
    VOLUME,
    kind_of,
    required_quotas,
)

_Quota: TypeAlias = QuotaValue | NotAnswered | None

_INSTANCES = ("usage:hyperpod_instances", "usage:hyperpod_spot_instances")
_NETWORK = (
    "usage:vpcs",
    "usage:elastic_ips",
    "usage:internet_gateways",
    "usage:nat_gateways",
    "usage:network_interfaces",
    "usage:network_interfaces_beside_nodes",
    "usage:security_groups",
    "usage:gateway_endpoints",
    "usage:interface_endpoints",
    "usage:subnets",
    "usage:cidrs",
)
_SKIPS = (
    "AWS did not give a quota, or not all that others use of it; only that one is skipped, and not even that if"
    " what was read leaves too little. What is deleted just after it was listed does not count."
)
_SHOW_ALL = "hyperpod-cdk quotas show prod"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A requirement, what AWS says of its quota, and the verdict. ``code`` is AWS's own, empty if not read."""

    requirement: Requirement
    reading: Reading
    verdict: Verdict
    code: str = ""

    @property
    def request(self) -> float | None:
        """The value to request, None if the quota is enough or was not read."""
        return asked_for(self.requirement, self.reading)


def compare(
    environment: Environment, aws: Aws, requirements: Iterable[Requirement], *, called: str
) -> tuple[Compared, ...]:
    """Read every quota, and what others use, in parallel and judge each; a refusal of AWS raises nothing."""
    needs = tuple(requirements)
    questions: list[Callable[[], QuotaValue | Usage | None]] = [
        *(partial(aws.quota, need.service, need.name, need.code or None) for need in needs),
        *(partial(_used, aws, need) for need in needs),
    ]
    answers = together(lambda ask: ask(), questions)
    compared = []
    for need, quota, used in zip(needs, answers[: len(needs)], answers[len(needs) :], strict=True):
        reading = _reading(need, cast("_Quota", quota), cast("Usage", used))
        verdict = judge(need, reading, region=environment.region, environment_name=called)
        code = quota.code if isinstance(quota, QuotaValue) else ""
        compared.append(Compared(requirement=need, reading=reading, verdict=verdict, code=code))
    return tuple(compared)


@check(
    area="quotas",
    asks=("quota", *_INSTANCES),
    inputs="Types, counts and capacity of the instance groups, hyperpod.node_recovery; the other HyperPod clusters of"
    " the account.",
    passes="The quota 'ml.X for cluster usage', or 'ml.X for cluster spot instance usage', of every type covers the"
    " groups' instances together with those of other clusters, and one more of each accelerated type that a faulty"
    " node's"
    " replacement may take. Instances on a training plan count too. A quota without an applied value is AWS's default.",
    fails="The groups need more of a type than other clusters leave of the quota. A warning if only the"
    " replacement has no room, or if a flexible group could not take all its nodes of a type that is not its first.",
    skips=_SKIPS,
    by_hand="aws service-quotas list-service-quotas --service-code sagemaker"
    " --query \"Quotas[?contains(QuotaName, 'for cluster')].[QuotaName,QuotaCode,Value]\"",
)
def instance_type_quotas_cover_the_groups(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare instances by type."""
    return _found(case, aws, PER_TYPE)


@check(
    area="quotas",
    asks=("quota", *_INSTANCES),
    inputs="Counts of the instance groups; the other HyperPod clusters of the account.",
    passes="The quotas for instances, and for Spot instances, across all HyperPod clusters and in one cluster cover the"
    " groups' instances, those across clusters together with other clusters' instances.",
    fails="All groups together need more instances than a quota leaves. A warning if only the replacement of faulty"
    " accelerated nodes has no room.",
    skips=_SKIPS,
    by_hand="aws service-quotas list-service-quotas --service-code sagemaker"
    " --query \"Quotas[?contains(QuotaName, 'HyperPod cluster')].[QuotaName,QuotaCode,Value]\"",
)
def cluster_size_quotas_cover_the_cluster(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare instances of all types."""
    return _found(case, aws, CLUSTER_SIZE)


@check(
    area="quotas",
    asks=("quota",),
    inputs="volume_gib of the instance groups.",
    passes="The quota for the EBS volume of one HyperPod instance is at least the largest volume_gib.",
    fails="A volume is larger than the quota. A warning if the account has no value of its own: AWS documents 0 as"
    " the default, and accounts have been seen with 1024.",
    skips=_SKIPS,
    by_hand="aws service-quotas get-service-quota --service-code sagemaker"
    f" --quota-code {quotas.get('hyperpod_ebs_volume_gb').code}",
)
def volume_quota_covers_the_largest_volume(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare the size of volumes."""
    return _found(case, aws, VOLUME)


@check(
    area="quotas",
    asks=("quota", *_NETWORK),
    inputs="The network section, instance groups and file systems; the VPCs, addresses, gateways, endpoints, security"
    " groups and interfaces of the account.",
    passes="The quotas for VPCs, Elastic IPs, NAT gateways in each zone, internet gateways, gateway endpoints, security"
    " groups and network interfaces cover what the environment creates together with what others have; those for"
    " subnets and"
    " IPv4 blocks of one VPC cover its own. An existing network needs only interfaces and security groups.",
    fails="The environment needs more than a quota leaves. A shortage of network interfaces has no message: nodes"
    " just do not join.",
    skips=_SKIPS,
    by_hand=f"aws service-quotas list-service-quotas --service-code vpc; aws ec2 describe-vpcs; {_SHOW_ALL}",
)
def network_quotas_cover_the_network(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare VPCs, addresses, gateways and interfaces."""
    return _found(case, aws, NETWORK)


@check(
    area="quotas",
    asks=("quota", "usage:eks_clusters"),
    inputs="eks.existing; the EKS clusters of the account.",
    passes="The quota for EKS clusters leaves room for one more, or the environment uses an existing one.",
    fails="The account has as many EKS clusters as its quota allows.",
    skips=_SKIPS,
    by_hand="aws eks list-clusters; aws service-quotas get-service-quota --service-code eks"
    f" --quota-code {quotas.get('eks_clusters').code}",
)
def eks_quota_leaves_room_for_the_cluster(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare EKS clusters."""
    return _found(case, aws, EKS)


@check(
    area="quotas",
    asks=(
        "quota",
        "usage:lustre_file_systems",
        "usage:lustre_capacity_gib",
        "usage:lustre_tiering_mbps",
        "usage:lustre_read_cache_gib",
    ),
    inputs="storage.lustre; the FSx for Lustre file systems of the account.",
    passes="The quotas for PERSISTENT_2 file systems, for storage in GiB (PERSISTENT_2 and scratch each have one), and"
    " for Intelligent-Tiering's throughput and read cache cover those of the environment and the account's others."
    " The size of a proportional read cache is not documented, and not counted.",
    fails="The file systems need more than a quota leaves.",
    skips=_SKIPS,
    by_hand="aws fsx describe-file-systems; aws service-quotas list-service-quotas --service-code fsx"
    " --query \"Quotas[?contains(QuotaName, 'Lustre')].[QuotaName,QuotaCode,Value]\"",
)
def lustre_quotas_cover_the_file_systems(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare file systems and their capacity."""
    return _found(case, aws, LUSTRE)


@check(
    area="quotas",
    asks=("quota", "usage:restricted_lustre_tib"),
    inputs="lustre of every restricted instance group and of hyperpod.restricted_environment; the file systems that the"
    " service created for restricted groups of the account's other HyperPod clusters.",
    passes="The quota for the capacity of these file systems in TiB, 0 unless it was raised, covers all of them.",
    fails="The file systems need more than the quota leaves: the service creates them before the first node.",
    skips=_SKIPS,
    by_hand="aws service-quotas get-service-quota --service-code sagemaker"
    f" --quota-code {quotas.get('hyperpod_restricted_lustre_tib').code}",
)
def restricted_lustre_quota_covers_the_file_systems(case: Case, aws: Aws) -> Iterator[Found]:
    """Compare the capacity that the service creates for restricted groups."""
    return _found(case, aws, RESTRICTED)


def _found(case: Case, aws: Aws, kind: str) -> Iterator[Found]:
    requirements = [each for each in required_quotas(case.environment) if kind_of(each) == kind]
    for each in compare(case.environment, aws, requirements, called=case.called):
        verdict = each.verdict
        match verdict.severity:
            case "error":
                yield error(verdict.path, verdict.message)
            case "warning":
                yield warning(verdict.path, verdict.message)
        if verdict.unread:
            yield Skipped(reason=why_unread(each), action=verdict.action, said=verdict.said, path=verdict.path)
        yield _detail(each)


def _detail(compared: Compared) -> Detail:
    need, reading = compared.requirement, compared.reading
    value = "unknown" if reading.value is None else number(reading.value)
    shown = [
        f"needed {number(need.needed)}",
        *([f"spare {number(need.spare)}"] if need.spare else []),
        *([f"used by others {usage_shown(reading.used)}"] if need.usage else []),
        f"quota {value}{' (default)' if reading.is_default else ''}",
    ]
    return Detail(text=f"{need.name}: {', '.join(shown)}: {compared.verdict.severity}", data=as_dict(compared))


def as_dict(compared: Compared) -> dict[str, object]:
    """Return a comparison as plain data, for JSON; numbers that were not read, or not in full, are null."""
    need, reading, verdict = compared.requirement, compared.reading, compared.verdict
    used = reading.used
    return {
        "quota": need.name,
        "service": need.service,
        "code": compared.code or need.code,
        "needed": need.needed,
        "spare": need.spare,
        "used_by_others": used.at_least if need.usage and used.is_whole else None,
        "used_by_others_at_least": used.at_least if need.usage else None,
        "value": reading.value,
        "is_default": reading.is_default,
        "verdict": verdict.severity,
        "message": verdict.message,
        "unread": verdict.unread,
        "aws_said": verdict.said,
        "path": need.path,
    }


def usage_shown(used: Usage) -> str:
    """Write what others use: a number, "at least" one if not all was read, "unknown" if nothing was."""
    if used.is_whole:
        return number(used.at_least)
    return f"at least {number(used.at_least)}" if used.at_least else "unknown"


def why_unread(compared: Compared) -> str:
    """Say what of a quota, or of its use, was not read and why; empty where everything was that matters."""
    verdict, reading = compared.verdict, compared.reading
    if not verdict.unread:
        return ""
    unread = [reading.problem] if reading.value is None else [each.reason for each in reading.used.unread]
    whys = tuple(dict.fromkeys(each for each in unread if each))
    causes = causes_of(whys[0]) if len(whys) == 1 else (", ".join(whys),) if whys else ()
    return Why(verdict.unread, causes=(verdict.unread, *causes))


def _used(aws: Aws, need: Requirement) -> Usage:
    return aws.usage(need.usage) if need.usage else NOTHING_USED


def _reading(need: Requirement, quota: _Quota, used: Usage) -> Reading:
    if quota is None or isinstance(quota, NotAnswered):
        missing = quota or NotAnswered(f"{need.service} has no quota of this name here")
        return Reading(value=None, used=used, problem=missing.reason, action=missing.action, said=missing.said)
    return Reading(value=quota.value, is_default=quota.is_default, used=used, is_adjustable=quota.adjustable)
