"""The releases of the HyperPod AMI, as AWS's release notes list them."""

from __future__ import annotations

from collections.abc import Mapping

_FROM_1_30 = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35")

RELEASES: Mapping[str, frozenset[str]] = {
    "1.4.0": frozenset(_FROM_1_30),
    "2.0.1": frozenset({"1.35"}),
    "2.0.2": frozenset(_FROM_1_30),
    "1.0.1": frozenset({"1.36"}),
    "2.1.0": frozenset(_FROM_1_30),
    "3.0.0": frozenset({"1.33"}),
    "1.1.0": frozenset({"1.36"}),
}
"""Kubernetes versions by release, of either architecture: SageMaker AI developer guide,
sagemaker-hyperpod-release-ami-eks, the notes of 2026-07-06, 2026-07-30 and 2026-08-29 (read 2026-11-22).

Earlier notes are not in it. Releases 1.0.1 and 1.1.0 have been of older versions, too, before July 2026 (the support
policy lists 1.0 to 1.3), so that ``is_of_others`` says nothing of 1.0 to 1.3."""


_NEWEST: Mapping[str, str] = {**dict.fromkeys(_FROM_1_30, "2.1.0"), "1.33": "3.0.0", "1.36": "1.1.0"}


def newest(kubernetes_version: str) -> str | None:
    """Return the newest release of August 2026 for a Kubernetes version on x86_64, None for one that has none."""
    return _NEWEST.get(kubernetes_version)


def is_of_others(release: str, kubernetes_version: str) -> bool:
    """Return whether the notes list a release, and not for this Kubernetes version."""
    if release.startswith(("1.0.", "1.1.", "1.2.", "1.3.")):
        return False
    return release in RELEASES and kubernetes_version not in RELEASES[release]
