"""The account with everything that an environment needs, in which preflight passes."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from hyperpod_cdk.catalog import iam, regions
from hyperpod_cdk.checks.job_buckets import job_buckets
from hyperpod_cdk.quotas.needs import required_quotas
from hyperpod_cdk_rehearsal.embedded.account import DEFAULT_ACCOUNT_FILE, read_account_file, resolved

if TYPE_CHECKING:
    from hyperpod_cdk.config import Environment

DEPLOYER = "deployer"


def satisfying(environment: Environment) -> dict[str, Any]:
    """Return the document of an account file with everything that the environment needs and no other resources.

    Its plans, roles, buckets and versions are those in the environment; a quota is AWS's default, or twice what is
    needed if that is more.
    """
    document = resolved(copy.deepcopy(_default()), environment)
    partition = regions.partition_of(environment.region) or "aws"
    account = environment.account
    roles = document["existing"]["iam_roles"]
    document["existing"] = {**document["existing"], "iam_roles": sorted({*roles, DEPLOYER})}
    document["quotas"] = _quotas(environment, document["quotas"])
    document["iam"] = {
        "caller": f"arn:{partition}:sts::{account}:assumed-role/{DEPLOYER}/preflight",
        "service_linked_roles": {role.name: role.service for role in iam.SERVICE_LINKED_ROLES if not role.is_made_anew},
        "policies": list(_policies(environment, partition)),
    }
    document["bootstrap"] = {"version": iam.MINIMUM_BOOTSTRAP_VERSION, "qualifier": iam.BOOTSTRAP_QUALIFIER}
    document["buckets"] = dict.fromkeys(_buckets(environment), environment.region)
    document["kubernetes"] = {
        "addons": {name: [version] for name, version in sorted(environment.eks.addon_versions.items())},
        "api": "answers",
    }
    return document


@cache
def _default() -> dict[str, Any]:
    # cached, because tests of many environments read the shipped file each time
    return read_account_file(DEFAULT_ACCOUNT_FILE)


def _quotas(environment: Environment, granted: dict[str, Any]) -> dict[str, Any]:
    merged = {service: dict(values) for service, values in granted.items()}
    for need in required_quotas(environment):
        values = merged.setdefault(need.service, {})
        enough = max(need.default, 2 * (need.needed + need.spare))
        values[need.name] = max(float(values.get(need.name, 0)), float(enough))
    return merged


def _policies(environment: Environment, partition: str) -> Iterable[str]:
    boundary = environment.permissions_boundary
    if not boundary:
        return
    arn = boundary if boundary.startswith("arn:") else f"arn:{partition}:iam::{environment.account}:policy/{boundary}"
    if f"::{environment.account}:" in arn:
        yield arn


def _buckets(environment: Environment) -> Iterable[str]:
    for file_system in environment.storage.lustre:
        for repository in file_system.data_repositories:
            yield repository.s3_uri.removeprefix("s3://").partition("/")[0]
    for volume in environment.storage.s3:
        yield volume.bucket
    yield from job_buckets(environment)
