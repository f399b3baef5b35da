"""Add-ons as AWS's guides describe them, compared with the catalog's: their differences."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hyperpod_cdk.catalog import addons as catalog
from hyperpod_cdk.catalog import operators
from hyperpod_cdk_rehearsal.embedded.published import addons

AGENT_AT_ANY_TIME = (
    "the agent may come before or after the driver, so that neither requires it first; preflight asks for it on a "
    "cluster of others (THROUGH_POD_IDENTITY), and the stacks install it on their own"
)
DIFFERENCES: Mapping[tuple[str, str], str] = {
    (addons.FSX_CSI_DRIVER, "pod identity agent"): AGENT_AT_ANY_TIME,
}


def test_both_know_the_same_addons() -> None:
    assert set(addons.names()) == set(catalog.names())
    assert all(addons.get(name) == addons.row(name) for name in addons.names())
    assert (addons.get("adot"), catalog.get("adot")) == (None, None)


@pytest.mark.parametrize("name", addons.names())
def test_the_catalog_says_the_same(name: str) -> None:
    theirs, ours = addons.row(name), catalog.row(name)
    assert theirs.namespace == ours.namespace
    assert theirs.service_accounts == ours.service_accounts
    assert theirs.needs_nodes == ours.needs_nodes
    assert theirs.takes_associations == ours.inline_pod_identity
    assert theirs.through_web_identity == ours.needs_oidc_provider
    assert theirs.minimum_kubernetes == ours.minimum_kubernetes
    assert theirs.minimum_node_xlarge == ours.minimum_node_xlarge
    assert theirs.needs_role == bool(ours.managed_policies)
    assert set(theirs.requires) == set(ours.requires)


@pytest.mark.parametrize("name", addons.names())
def test_the_catalog_requires_versions_that_are_as_old(name: str) -> None:
    for other, least in addons.row(name).requires.items():
        ours = catalog.row(name).requires[other]
        assert (least is None) == (ours is None)
        if least is not None and ours is not None:
            # a build that the catalog leaves out is any build of the release
            build = catalog.release(ours)
            assert build is not None
            assert not addons.is_older(f"v{ours}", least.partition("-eksbuild")[0])
            assert build[:3] == (catalog.release(least) or ())[:3]


def test_the_agent_that_the_fsx_driver_needs_is_asked_for() -> None:
    assert DIFFERENCES[addons.FSX_CSI_DRIVER, "pod identity agent"]
    assert addons.POD_IDENTITY_AGENT not in addons.row(addons.FSX_CSI_DRIVER).requires
    assert addons.FSX_CSI_DRIVER in catalog.THROUGH_POD_IDENTITY


def test_the_roles_of_the_inference_operator() -> None:
    assert {who: operators.service_account(who) for who in ("operator", "load_balancer", "keda")} == dict(
        addons.INFERENCE_ACCOUNTS
    )
    # the guide's own commands have the hyphen, the chart does not ask for it
    assert f"{addons.INFERENCE_ROLE_PREFIX}-" == operators.INFERENCE_ROLE_PREFIX


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("v1.20.4-eksbuild.1", True),
        ("v0.7.2-eksbuild.14", True),
        ("1.20.4-eksbuild.1", False),
        ("v1.20.4", False),
        ("v1.20-eksbuild.1", False),
        ("v01.20.4-eksbuild.1", False),
        ("latest", False),
    ],
)
def test_how_versions_are_written(version: str, fits: bool) -> None:  # noqa: FBT001 - a table's column
    assert (addons.VERSION.fullmatch(version) is not None) is fits is catalog.VERSION.matches(version)


@pytest.mark.parametrize(
    ("version", "older"),
    [
        ("v1.14.0-eksbuild.9", True),
        ("v1.14.1-eksbuild.1", False),
        ("v1.14.1-eksbuild.2", False),
        ("v1.9.9-eksbuild.1", True),
        ("v2.0.0-eksbuild.1", False),
    ],
)
def test_older_versions(version: str, older: bool) -> None:  # noqa: FBT001 - a table's column
    assert addons.is_older(version, "v1.14.1-eksbuild.1") is older
