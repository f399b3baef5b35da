"""Releases of the HyperPod AMI as AWS's release notes list them, compared with the catalog's."""

from __future__ import annotations

from hyperpod_cdk.catalog import kubernetes as catalog
from hyperpod_cdk_rehearsal.embedded.published import node_images

ARCHITECTURES = ("x86_64", "arm64")
VERSIONS = tuple(row.version for row in catalog.VERSIONS)


def test_the_catalog_has_the_same_releases() -> None:
    ours: dict[str, set[str]] = {}
    for version in VERSIONS:
        for architecture in ARCHITECTURES:
            for release in catalog.image_releases(version, architecture):
                ours.setdefault(release, set()).add(version)
    assert ours == node_images.RELEASES


def test_the_newest_release_is_the_catalogs() -> None:
    for version in VERSIONS:
        known = catalog.image_releases(version, "x86_64")
        assert node_images.newest(version) == (known[-1] if known else None), version


def test_the_catalog_refuses_the_same_releases() -> None:
    """The embedded AWS does not distinguish architectures: it refuses what the catalog refuses for both."""
    refused = set()
    for release in (*node_images.RELEASES, "1.3.0", "1.9.9", "9.9.9"):
        for version in VERSIONS:
            theirs = node_images.is_of_others(release, version)
            assert theirs == all(catalog.is_image_of_others(release, version, each) for each in ARCHITECTURES), (
                release,
                version,
            )
            refused |= {(release, version)} if theirs else set()
    assert ("3.0.0", "1.34") in refused
    assert ("2.1.0", "1.36") in refused
