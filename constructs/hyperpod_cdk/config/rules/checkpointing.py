"""Rules about the service accounts that write checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from hyperpod_cdk.catalog import addons, arns, governance, s3_places
from hyperpod_cdk.catalog.rules import again_problem, repeated
from hyperpod_cdk.config.checkpointing import CheckpointAccount
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.rules.book import Book, Problem, checkpoint_accounts, file_systems, teams, warning
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.suggest import closest

BOOK = Book()


@BOOK.whole
def checkpoint_accounts_are_unique(environment: Environment) -> Iterator[Problem]:
    """Refuse a repeated service account: EKS gives each account one role."""
    members = list(checkpoint_accounts(environment))
    for index, first, (namespace, name) in repeated([(each.namespace, each.name) for _, each in members]):
        yield Problem(
            (*members[index][0], "name"),
            f"must be unique in its namespace, got {namespace}/{name} as in service_accounts[{first}], and EKS gives a"
            " service"
            " account one role; put all buckets under one of the two",
        )


@BOOK.alone(checkpoint_accounts)
def checkpoint_accounts_are_nobody_elses(path: DataPath, account: CheckpointAccount) -> Iterator[Problem]:
    """Refuse the service accounts of add-ons, which have roles of their own."""
    problem = addons.service_account_problem(account.namespace, account.name)
    if problem:
        yield Problem((*path, "name"), problem)


@BOOK.each(checkpoint_accounts)
def checkpoint_namespaces_are_there(
    environment: Environment, path: DataPath, account: CheckpointAccount
) -> Iterator[Problem]:
    """Refuse a team's namespace without the team; warn of one that is similar to that of a team or a claim."""
    own = [team.namespace for _, team in teams(environment)]
    claimed = [
        name for _, each in file_systems(environment) if each.claim is not None for name in each.claim.namespaces
    ]
    at, namespace = (*path, "namespace"), account.namespace
    if namespace in own or (namespace in claimed and governance.team_of(namespace) is None):
        return
    near = closest(namespace, dict.fromkeys((*own, *claimed)))
    if governance.team_of(namespace) is not None:
        yield Problem(at, governance.no_team_problem(namespace, near=near))
    elif near:
        yield warning(
            at,
            f"{namespace} is neither the namespace of a team nor that of a claim in this file; did you mean {near}?",
        )


@BOOK.alone(checkpoint_accounts)
def checkpoint_buckets_do_not_overlap(path: DataPath, account: CheckpointAccount) -> Iterator[Problem]:
    """Refuse a place that another place contains."""
    for index, problem in s3_places.overlaps(account.buckets, key="buckets"):
        yield Problem((*path, "buckets", index), problem)


@BOOK.each(checkpoint_accounts)
def checkpoint_keys_are_of_the_partition(
    environment: Environment, path: DataPath, account: CheckpointAccount
) -> Iterator[Problem]:
    """Refuse keys that no role of the environment can use."""
    for index, first, arn in repeated(account.kms_key_arns):
        yield Problem(
            (*path, "kms_key_arns", index),
            again_problem(arn, first),
        )
    for index, arn in enumerate(account.kms_key_arns):
        problem = arns.partition_problem(arn, partition=environment.partition, region=environment.region)
        if problem:
            yield Problem((*path, "kms_key_arns", index), problem)
