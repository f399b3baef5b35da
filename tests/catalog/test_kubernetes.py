"""Kubernetes versions: what HyperPod accepts and what EKS still supports."""

from __future__ import annotations

import re
import tomllib
import typing
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from hyperpod_cdk.catalog import kubernetes
from hyperpod_cdk.config.eks import ScalingTier, SupportType
from tests.support.tables import row_by_row

SAYS = f"must be a Kubernetes version that HyperPod accepts (1.30 to 1.35 on {kubernetes.AS_OF})"


def test_versions_are_in_order_and_the_default_is_one_of_them() -> None:
    versions = [tuple(map(int, row.version.split("."))) for row in kubernetes.VERSIONS]
    assert versions == sorted(set(versions))
    assert kubernetes.DEFAULT == "1.35"
    assert kubernetes.DEFAULT in kubernetes.hyperpod_versions()


def test_hyperpod_accepts_one_unbroken_range() -> None:
    assert kubernetes.hyperpod_versions() == ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35")


@row_by_row("row", kubernetes.VERSIONS, ids=lambda row: row.version)
def test_extended_support_is_a_year_longer(row: kubernetes.KubernetesVersion) -> None:
    standard, extended = row.standard_support_ends, row.extended_support_ends
    assert standard is not None
    assert extended == standard.replace(year=standard.year + 1)


def test_what_is_not_sure_is_marked() -> None:
    # EKS user guide, "release calendar": 1.36 is in standard support until August 2, 2027; HyperPod's prerequisites
    # of October 2026 name 1.30 to 1.35
    unsure = {row.version: (str(row.standard_support_ends), row.hyperpod) for row in kubernetes.VERSIONS if row.unsure}
    assert unsure == {"1.36": ("2027-08-02", False)}


@row_by_row(
    "version, fix",
    [
        ("1.29", "1.35"),
        ("1.3", "1.35"),
        ("2.0", "1.35"),
        ("v1.33", "1.33"),
        ("1.33.2", "1.33"),
        ("", "1.35"),
        ("latest", "1.35"),
        ("1.x", "1.35"),
    ],
)
def test_a_version_outside_the_range(version: str, fix: str) -> None:
    assert kubernetes.version_problem(version) == f'{SAYS}, got "{version}"; set kubernetes_version: "{fix}"'


def test_a_version_that_hyperpod_may_accept_soon_shows_what_is_missing() -> None:
    # AMI releases of 2026-08-29 and the prerequisites of October 2026
    assert kubernetes.version_problem("1.36") == (
        f'{SAYS}, got "1.36" (HyperPod has AMIs for it since July 2026, but its prerequisites do not name it yet); set'
        ' kubernetes_version: "1.35"'
    )


@pytest.mark.parametrize("version", ["1.30", "1.31", "1.34", "1.35"])
def test_a_version_inside_the_range(version: str) -> None:
    assert kubernetes.version_problem(version) is None


STEPS = ' for a new cluster; an existing one is updated by one minor version at a time, "{}" first'


def test_support_on_the_days_beside_its_ends() -> None:
    standard, extended = date(2025, 11, 26), date(2026, 11, 26)
    day = timedelta(days=1)
    billed = (
        "EKS bills extended support for Kubernetes 1.31 since 2025-11-26, until 2026-11-26 "
        f'(dates as of {kubernetes.AS_OF}); set kubernetes_version: "1.35"{STEPS.format("1.32")}'
    )
    ended = (
        "EKS ended extended support for Kubernetes 1.31 on 2026-11-26, so no new cluster can use it "
        f'(dates as of {kubernetes.AS_OF}); set kubernetes_version: "1.35"{STEPS.format("1.32")}'
    )
    soon = (
        "EKS bills extended support for Kubernetes 1.31 from 2025-11-26, in {} "
        f'(dates as of {kubernetes.AS_OF}); set kubernetes_version: "1.35"{STEPS.format("1.32")}'
    )
    assert kubernetes.support_warning("1.31", on=standard - 61 * day) is None
    assert kubernetes.support_warning("1.31", on=standard - 60 * day) == soon.format("60 days")
    assert kubernetes.support_warning("1.31", on=standard - day) == soon.format("1 day")
    assert kubernetes.support_warning("1.31", on=standard) == billed
    assert kubernetes.support_warning("1.31", on=extended - day) == billed
    assert kubernetes.support_warning("1.31", on=extended) == ended


def test_an_existing_cluster_is_updated_first() -> None:
    warning = kubernetes.support_warning("1.31", on=date(2025, 11, 26), existing="shared")
    assert (warning or "").endswith("; update the cluster shared, one minor at a time, up to 1.35")


def test_the_state_of_support_at_each_bound() -> None:
    # EKS user guide, release calendar: 1.31
    day = timedelta(days=1)
    standard, extended = date(2025, 11, 26), date(2026, 11, 26)
    before = "standard support until 2025-11-26, extended until 2026-11-26"
    billed = "in extended support, which is billed, since 2025-11-26 and until 2026-11-26"
    assert kubernetes.support_state("1.31", on=standard - day) == before
    assert kubernetes.support_state("1.31", on=standard) == billed
    assert kubernetes.support_state("1.31", on=extended - day) == billed
    assert kubernetes.support_state("1.31", on=extended) == (
        "EKS ended extended support for Kubernetes 1.31 on 2026-11-26 and upgrades clusters with it"
    )
    assert kubernetes.support_state("1.99", on=extended) == ""


@pytest.mark.parametrize("version", ["1.37", "1.99", "x"])
def test_no_warning_without_dates(version: str) -> None:
    assert kubernetes.support_warning(version, on=date(2035, 1, 1)) is None


def test_a_warning_never_advises_a_version_that_is_no_better() -> None:
    on = date(2027, 1, 1)
    assert kubernetes.support_warning("1.34", on=on) == (
        "EKS bills extended support for Kubernetes 1.34 since 2026-12-02, until 2027-12-02 "
        f'(dates as of {kubernetes.AS_OF}); set kubernetes_version: "1.35"'
    )
    assert (kubernetes.support_warning("1.33", on=on) or "").endswith(
        f'set kubernetes_version: "1.35"{STEPS.format("1.34")}'
    )


def test_the_default_is_advised_while_eks_supports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "DEFAULT", "1.34")
    for on, advised in ((date(2026, 12, 1), "1.34"), (date(2026, 12, 2), "1.35")):
        assert f'set kubernetes_version: "{advised}"' in (kubernetes.support_warning("1.33", on=on) or "")


def test_rows_are_found_by_version() -> None:
    assert kubernetes.get("1.33") == kubernetes.VERSIONS[4]
    assert kubernetes.get("1.28") is None


def test_the_newest_version_is_not_advised_against_itself() -> None:
    assert kubernetes.support_warning("1.35", on=date(2027, 3, 27)) == (
        "EKS bills extended support for Kubernetes 1.35 since 2027-03-27, until 2028-03-27 "
        f"(dates as of {kubernetes.AS_OF}); this is the newest version known here, look for a newer hyperpod-cdk"
    )


@pytest.mark.parametrize(
    ("vcpu", "kept"), [(0, 0.1), (1, 0.4), (2, 0.55), (4, 0.75), (5, 0.81), (96, 6.27), (192, 12.03)]
)
def test_what_a_node_keeps_of_its_vcpus(vcpu: int, kept: float) -> None:
    assert kubernetes.reserved_vcpu(vcpu) == pytest.approx(kept)


@pytest.mark.parametrize(
    ("memory_gib", "kept"), [(0, 0.5), (4, 1.7), (8, 2.7), (16, 4.3), (128, 23.34), (129, 23.41), (2048, 157.74)]
)
def test_what_a_node_keeps_of_its_memory(memory_gib: int, kept: float) -> None:
    assert kubernetes.reserved_memory_gib(memory_gib) == pytest.approx(kept)


# kubernetes/kubernetes, IsKubeletLabel and ValidateKubeletFlags: the domains, the namespaces and the keys of its source
@row_by_row(
    "key, is_refused",
    [
        ("team", False),
        ("example.com/team", False),
        ("notkubernetes.io/team", False),
        ("kubernetes.io/team", True),
        ("k8s.io/team", True),
        ("app.kubernetes.io/name", True),
        ("x.k8s.io/name", True),
        ("node-role.kubernetes.io/worker", True),
        ("node-restriction.kubernetes.io/team", True),
        ("topology.kubernetes.io/rack", True),
        ("node.kubernetes.io/team", False),
        ("my.node.kubernetes.io/team", False),
        ("kubelet.kubernetes.io/team", False),
        ("mynode.kubernetes.io/team", True),
        ("topology.kubernetes.io/zone", False),
        ("kubernetes.io/hostname", False),
        ("beta.kubernetes.io/instance-type", False),
    ],
)
def test_labels_that_kubelet_takes(key: str, *, is_refused: bool) -> None:
    assert (kubernetes.node_label_problem(key) is not None) is is_refused


@pytest.mark.parametrize("version", kubernetes.hyperpod_versions())
def test_a_version_without_its_kubectl_names_the_extra(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kubernetes.kubectl_problem(version) is None
    monkeypatch.setattr(kubernetes, "kubectl_minors", lambda: frozenset({29}))
    assert kubernetes.kubectl_problem(version, key="eks.kubernetes_version") == (
        f'needs the kubectl layer of the same minor, got "{version}" and no package'
        f" aws-cdk.lambda-layer-kubectl-v{version.removeprefix('1.')}; run pip install"
        f" 'hyperpod-cdk[kubernetes-{version}]', or set eks.kubernetes_version: \"1.29\""
    )


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        ("1.28", 'set kubernetes_version: "1.29"'),
        ("1.31", "run pip install 'hyperpod-cdk[kubernetes-1.31]', or set kubernetes_version: \"1.32\""),
        ("1.30", "run pip install 'hyperpod-cdk[kubernetes-1.30]', or set kubernetes_version: \"1.29\""),
        ("1.40", 'set kubernetes_version: "1.33", or run pip install aws-cdk.lambda-layer-kubectl-v40'),
        ("x", "run pip install aws-cdk.lambda-layer-kubectl-vx"),
    ],
)
def test_the_nearest_kubectl_is_offered_and_the_newer_of_two(
    version: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version older than HyperPod takes is not offered its kubectl at all, and a newer one only second."""
    monkeypatch.setattr(kubernetes, "kubectl_minors", lambda: frozenset({29, 32, 33}))
    problem = kubernetes.kubectl_problem(version) or ""
    assert problem.partition("; ")[2] == fix


def test_of_two_that_are_as_near_the_newer_kubectl_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "kubectl_minors", lambda: frozenset({30, 32}))
    assert (kubernetes.kubectl_problem("1.31") or "").endswith('or set kubernetes_version: "1.32"')


def test_the_layers_that_are_installed_are_those_of_the_lock(project: Path) -> None:
    locked = (project / "requirements.lock").read_text(encoding="utf-8")
    assert kubernetes.kubectl_minors() == {
        int(minor) for minor in re.findall(r"^aws-cdk-lambda-layer-kubectl-v(\d+)==", locked, re.MULTILINE)
    }


def test_each_version_has_its_extra_and_the_default_comes_along(project: Path) -> None:
    package = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    layers = {
        version: f"aws-cdk.lambda-layer-kubectl-v{version.removeprefix('1.')}>=2,<3"
        for version in kubernetes.hyperpod_versions()
    }
    extras = {name: needs for name, needs in package["optional-dependencies"].items() if name.startswith("kubernetes")}
    assert extras == {f"kubernetes-{version}": [layer] for version, layer in layers.items()}
    assert [each for each in package["dependencies"] if "kubectl" in each] == [layers[kubernetes.DEFAULT]]


def test_what_the_file_may_say_of_a_control_plane_is_what_the_schema_has(
    registry_schema: Callable[[str], dict[str, Any]],
) -> None:
    schema = registry_schema("AWS::EKS::Cluster")["definitions"]
    assert list(typing.get_args(ScalingTier)) == schema["ControlPlaneScalingConfig"]["properties"]["Tier"]["enum"]
    api = botocore.session.get_session().get_service_model("eks").shape_for("ProvisionedControlPlaneTier")
    for tier in typing.get_args(ScalingTier):
        assert (kubernetes.scaling_tier_warning(tier) is None) == (tier in getattr(api, "enum", ())), tier
    support = [each.upper() for each in typing.get_args(SupportType)]
    assert sorted(support) == sorted(schema["UpgradePolicy"]["properties"]["SupportType"]["enum"])


@pytest.mark.parametrize(
    ("version", "architecture", "releases"),
    [
        ("1.33", "x86_64", ("1.4.0", "2.0.2", "3.0.0")),
        ("1.33", "arm64", ("1.4.0", "2.0.2", "2.1.0")),
        ("1.35", "arm64", ("1.4.0", "2.0.1", "2.1.0")),
        ("1.30", "arm64", ()),
        ("1.36", "x86_64", ("1.0.1", "1.1.0")),
        ("1.29", "x86_64", ()),
    ],
)
def test_releases_of_the_ami_by_version_and_architecture(
    version: str, architecture: str, releases: tuple[str, ...]
) -> None:
    assert kubernetes.image_releases(version, architecture) == releases


@pytest.mark.parametrize(
    ("release", "version", "is_of_others"),
    [
        ("3.0.0", "1.34", True),
        ("3.0.0", "1.33", False),
        ("2.0.1", "1.34", True),
        # of 1.0 to 1.3 the notes begin too late, of 9.9.9 they know nothing
        ("1.1.0", "1.34", False),
        ("1.4.0", "1.36", True),
        ("9.9.9", "1.34", False),
        ("latest", "1.34", False),
    ],
)
def test_a_release_that_is_known_for_other_versions_only(release: str, version: str, is_of_others: bool) -> None:  # noqa: FBT001 - table
    assert kubernetes.is_image_of_others(release, version, "x86_64") is is_of_others


@pytest.mark.parametrize(
    ("one", "other", "is_newer"),
    [
        ("1.35", "1.34", True),
        ("1.10", "1.9", True),
        ("1.34", "1.34", False),
        ("1.33", "1.34", False),
        ("x", "1.1", False),
        ("1.1", "x", False),
        ("1", "0.1", False),
        ("1.35.1", "1.34", True),
        ("v2.0", "1.34", True),
        # no version has so many digits
        ("1.99999", "1.34", True),
        ("1.100000", "1.34", False),
        ("1.1000000", "1.34", False),
    ],
)
def test_minors_are_compared_as_numbers(one: str, other: str, is_newer: bool) -> None:  # noqa: FBT001 - table
    assert kubernetes.is_newer(one, other) is is_newer


@row_by_row(
    "newer, version, minors",
    [
        ("1.34", "1.34", []),
        ("1.33", "1.34", []),
        ("1.34", "1.33", ["1.34"]),
        ("1.35", "1.33", ["1.34", "1.35"]),
        ("v1.35", "1.32", ["1.33", "1.34", "1.35"]),
        ("2.1", "1.34", []),
        ("latest", "1.34", []),
        ("1.34", "", []),
    ],
)
def test_the_minors_on_the_way_to_a_newer_version(newer: str, version: str, minors: list[str]) -> None:
    assert kubernetes.minors_to(newer, version) == minors


@pytest.mark.parametrize(
    ("better", "version", "says"),
    [
        ("1.33", "1.34", 'set k: "1.33"'),
        ("1.34", "1.33", 'set k: "1.34"'),
        (
            "1.35",
            "1.33",
            'set k: "1.35" for a new cluster; an existing one is updated by one minor version at a time, "1.34" first',
        ),
        ("1.34", "x", 'set k: "1.34"'),
        ("x", "1.34", 'set k: "x"'),
    ],
)
def test_a_cluster_takes_one_minor_at_a_time(better: str, version: str, says: str) -> None:
    assert kubernetes.step_to(better, version, key="k") == says


def test_a_label_of_a_domain_of_kubernetes() -> None:
    assert kubernetes.node_label_problem("team.kubernetes.io/rack") == (
        "must not be team.kubernetes.io/rack: kubelet sets no labels of kubernetes.io and k8s.io, which Kubernetes"
        " reserves, except those of kubelet.kubernetes.io and node.kubernetes.io; use a prefix of your own, such as"
        " example.com/rack"
    )


def test_what_is_said_of_a_size_that_the_api_does_not_list() -> None:
    assert kubernetes.scaling_tier_warning("standard") is None
    assert kubernetes.update_of("shared", "1.35") == "update the cluster shared, one minor at a time, up to 1.35"
    assert kubernetes.control_plane_log_group("prod") == "/aws/eks/prod/cluster"


@pytest.mark.parametrize(
    ("version", "day", "ended"),
    [
        ("1.31", date(2026, 11, 25), False),
        ("1.31", date(2026, 11, 26), True),
        ("1.31", date(2026, 11, 27), True),
        ("1.99", date(2026, 11, 27), False),
    ],
)
def test_the_first_day_without_support(version: str, day: date, ended: bool) -> None:  # noqa: FBT001 - a column
    assert kubernetes.is_unsupported(version, on=day) is ended
