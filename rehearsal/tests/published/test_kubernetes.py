"""Kubernetes versions and HyperPod's own words in a cluster as AWS publishes them, compared with the catalog's."""

from __future__ import annotations

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog import kubernetes as catalog
from hyperpod_cdk_rehearsal.embedded.published import kubernetes


def test_the_catalog_has_the_same_versions() -> None:
    ours = [(row.version, row.standard_support_ends, row.extended_support_ends) for row in catalog.VERSIONS]
    theirs = [(row.version, row.standard_support_ends, row.extended_support_ends) for row in kubernetes.VERSIONS]
    assert ours == theirs


def test_hyperpod_has_the_same_of_them() -> None:
    assert catalog.hyperpod_versions() == kubernetes.OF_HYPERPOD


def test_the_default_is_one_that_eks_supports_and_hyperpod_takes() -> None:
    """The catalog's is our choice, the other is EKS's, of which no document says which it is: they need not agree."""
    assert catalog.DEFAULT in kubernetes.OF_HYPERPOD
    assert kubernetes.DEFAULT in [row.version for row in kubernetes.VERSIONS]


def test_support_lasts_a_year_beyond_the_standard_one() -> None:
    for row in kubernetes.VERSIONS:
        # "it enters extended support for the next 12 months"
        standard, extended = row.standard_support_ends, row.extended_support_ends
        assert standard.replace(year=standard.year + 1) == extended


def test_hyperpod_has_the_same_words() -> None:
    assert hyperpod.KARPENTER_PRINCIPAL == kubernetes.KARPENTER_PRINCIPAL
    assert {
        hyperpod.KARPENTER_NODE_CLASS["group"],
        hyperpod.KARPENTER_NODE_POOL["group"],
    } == kubernetes.KARPENTER_GROUPS
    assert hyperpod.MIG_LABEL == kubernetes.PARTITION_LABEL
