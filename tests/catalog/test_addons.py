"""Add-ons: their rows, and the oldest releases that HyperPod accepts."""

from __future__ import annotations

import json

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from hyperpod_cdk.catalog import addons
from tests.support.tables import row_by_row

NAMES = [value for name, value in vars(addons).items() if name.isupper() and isinstance(value, str)]


def test_every_constant_is_a_row_and_every_row_a_constant() -> None:
    assert sorted(NAMES) == sorted(addons.names())


@row_by_row("name", NAMES)
def test_a_row_knows_its_source(name: str) -> None:
    row = addons.row(name)
    assert row.name == name
    assert row.source
    assert row.namespace or not row.service_accounts


@row_by_row("name", NAMES)
def test_managed_policies_exist_under_these_names(name: str) -> None:
    policies = json.loads(aws_managed_policies_data)
    known = {f"{entry.get('Path', '/')}{policy}".removeprefix("/") for policy, entry in policies.items()}
    assert set(addons.row(name).managed_policies) <= known


@row_by_row("name", NAMES)
def test_what_an_addon_requires_is_known(name: str) -> None:
    row = addons.row(name)
    assert set(row.requires) <= set(addons.names())
    for version in (*row.requires.values(), row.minimum_version, row.elastic_minimum_version):
        assert version is None or addons.release(version) is not None


def test_only_these_run_without_nodes() -> None:
    assert {name for name in addons.names() if not addons.row(name).needs_nodes} == {
        addons.VPC_CNI,
        addons.KUBE_PROXY,
        addons.POD_IDENTITY_AGENT,
    }


def test_the_training_operator_takes_a_stand_alone_pod_identity() -> None:
    row = addons.row(addons.TRAINING_OPERATOR)
    assert row.namespace == "aws-hyperpod"
    assert row.service_accounts == ("hp-training-operator-controller-manager",)
    assert row.managed_policies == ("AmazonSageMakerHyperPodTrainingOperatorAccess",)
    assert not row.inline_pod_identity
    assert set(row.requires) == {addons.CERT_MANAGER, addons.POD_IDENTITY_AGENT}
    assert row.elastic_minimum_version == "1.2.0"


def test_task_governance_needs_no_role_and_names_its_kueue() -> None:
    row = addons.row(addons.TASK_GOVERNANCE)
    assert (row.managed_policies, row.minimum_kubernetes) == ((), "1.30")
    assert dict(row.kueue) == {"1.3": "0.12.0", "1.4.0": "0.14.0", "1.5.0": "0.18.0", "1.6.0": "0.19.2"}


def test_a_row_that_names_no_pods_brings_none() -> None:
    # each pod of a node takes one of its addresses
    assert {name for name in addons.names() if not addons.row(name).node_pods} == {
        addons.TASK_GOVERNANCE,
        addons.TRAINING_OPERATOR,
        addons.INFERENCE,
        addons.SPACES,
        addons.CLOUDWATCH_OBSERVABILITY,
        addons.CERT_MANAGER,
        addons.METRICS_SERVER,
        addons.COREDNS,
    }
    assert {name for name in addons.names() if not addons.row(name).cluster_pods} == {
        addons.CLOUDWATCH_OBSERVABILITY,
        addons.POD_IDENTITY_AGENT,
        addons.VPC_CNI,
        addons.KUBE_PROXY,
    }


def test_cert_manager_has_its_own_namespace() -> None:
    assert addons.row(addons.CERT_MANAGER).namespace == "cert-manager"


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("v1.18.2-eksbuild.2", (1, 18, 2, 2)),
        ("1.18.2", (1, 18, 2, 0)),
        ("v0.7.2-eksbuild.4", (0, 7, 2, 4)),
        ("latest", None),
        ("1.18", None),
    ],
)
def test_release_numbers(version: str, numbers: tuple[int, ...] | None) -> None:
    assert addons.release(version) == numbers


@pytest.mark.parametrize(
    "version", ["v1.18.3-eksbuild.1", "v1.18.3-eksbuild.3", "v1.19.0-eksbuild.1", "1.18.3", "latest"]
)
def test_a_cni_new_enough(version: str) -> None:
    assert addons.version_problem(addons.VPC_CNI, version) is None


@pytest.mark.parametrize("version", ["v1.18.2-eksbuild.9", "v1.9.5-eksbuild.1", "1.17.0"])
def test_a_cni_too_old(version: str) -> None:
    assert addons.version_problem(addons.VPC_CNI, version) == (
        f"must be 1.18.3 or newer for HyperPod, got {version}; "
        "set vpc-cni: v1.18.3-eksbuild.1 or newer, or leave it out for EKS's default"
    )


def test_the_place_can_be_named() -> None:
    problem = addons.version_problem(addons.VPC_CNI, "v1.1.1-eksbuild.1", key="addon_version")
    assert problem is not None
    assert "; set addon_version: v1.18.3" in problem


def test_addons_without_a_floor_take_any_version() -> None:
    assert addons.version_problem(addons.COREDNS, "v0.0.1-eksbuild.1") is None
    assert addons.version_problem("my-own-addon", "v0.0.1-eksbuild.1") is None


def test_an_unknown_addon() -> None:
    assert addons.get("my-own-addon") is None
    with pytest.raises(KeyError, match="my-own-addon"):
        addons.row("my-own-addon")


def test_versions_that_the_user_guide_names() -> None:
    minors = [f"1.{minor}" for minor in range(29, 37)]
    named = {name: {minor: addons.published(name, minor) for minor in minors} for name in addons.names()}
    told = {name: {minor: each for minor, each in row.items() if each} for name, row in named.items()}
    assert {name for name, row in told.items() if row} == {addons.KUBE_PROXY, addons.COREDNS, addons.VPC_CNI}
    for row in told.values():
        releases = [addons.release(each) or () for each in row.values()]
        assert all(releases)
        assert releases == sorted(releases)
    # kube-proxy is of the control plane's own minor
    assert all(each.startswith(f"v{minor}.") for minor, each in told[addons.KUBE_PROXY].items())
    assert (named[addons.VPC_CNI]["1.33"], named[addons.VPC_CNI]["1.34"]) == ("v1.20.1-eksbuild.3", None)


@pytest.mark.parametrize(
    ("namespace", "name", "addon"),
    [
        ("kube-system", "aws-node", addons.VPC_CNI),
        ("jupyter-k8s-system", "jupyter-k8s-authmiddleware", addons.SPACES),
        ("kube-system", "trainer", None),
        ("research", "aws-node", None),
        ("research", "trainer", None),
    ],
)
def test_service_accounts_of_addons(namespace: str, name: str, addon: str | None) -> None:
    assert addons.service_account_problem(namespace, name) == (
        addon
        and f"must be a service account of training pods, got {namespace}/{name}, which is that of the add-on {addon}"
        " and has its own role; name another service account"
    )


@pytest.mark.parametrize(
    ("version", "is_old"),
    [("v1.15.0-eksbuild.1", True), ("v2.0.0-eksbuild.1", False), ("v2.1.0-eksbuild.1", False), ("latest", False)],
)
def test_the_s3_driver_since_its_pod_identity(version: str, is_old: bool) -> None:  # noqa: FBT001 - a column
    assert addons.s3_pod_identity_problem(version) == (
        f"must be 2.0.0 or newer, which supports EKS Pod Identity, got {version}; set a newer one, or leave it out for"
        " EKS's default"
        if is_old
        else None
    )


def test_releases_with_more_digits() -> None:
    assert addons.release("v1.10.2-eksbuild.12") == (1, 10, 2, 12)
