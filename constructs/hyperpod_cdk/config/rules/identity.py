"""Rules about the environment itself: region, tags, permissions boundary, instance types in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import BaseModel

from hyperpod_cdk.catalog import instance_types, regions
from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.catalog.rules import template_mark_problem
from hyperpod_cdk.catalog.sentences import Sentence, Setting
from hyperpod_cdk.config.draft import known
from hyperpod_cdk.config.environment import Environment
from hyperpod_cdk.config.rules.book import Book, Problem, warning
from hyperpod_cdk.config.source import DataPath
from hyperpod_cdk.config.suggest import closest

BOOK = Book()


@BOOK.whole
def region_runs_hyperpod(environment: Environment) -> Iterator[Problem]:
    """Refuse a region that neither the developer guide nor CloudFormation's registry lists for HyperPod."""
    region = environment.region
    doubt = regions.hyperpod_warning(region)
    if doubt is None:
        return
    if regions.has_type(region, "AWS::SageMaker::Cluster"):
        yield warning(("region",), doubt)
        return
    partition = environment.partition
    if all(regions.partition_of(each) != partition for each in regions.HYPERPOD_REGIONS):
        # credentials of one partition are not valid in another, so no region of another partition is similar
        yield Problem(
            ("region",),
            f"must be a region where HyperPod runs (as of {regions.AS_OF}), got {region}, and the partition {partition}"
            f" has none; use an account of another partition, and one of {', '.join(regions.HYPERPOD_REGIONS)}",
        )
        return
    # a region on another continent is similar only in its letters
    beside = [each for each in regions.HYPERPOD_REGIONS if each.split("-")[0] == region.split("-")[0]]
    near = closest(region, beside or regions.HYPERPOD_REGIONS) or (beside or regions.HYPERPOD_REGIONS)[0]
    yield Problem(
        ("region",),
        Sentence(
            f"must be a region where HyperPod runs (as of {regions.AS_OF}), got {region}; ",
            Setting("region", near),
            f", or one of {', '.join(regions.HYPERPOD_REGIONS)}",
        ),
    )


@BOOK.whole
def tags_differ_by_more_than_case(environment: Environment) -> Iterator[Problem]:
    """Refuse tags whose keys differ only by case, which IAM ignores."""
    seen: dict[str, str] = {}
    for key, _ in known(environment.tags):
        first = seen.setdefault(key.lower(), key)
        if first != key:
            yield Problem(
                ("tags", key),
                f'must differ from the tag "{first}" by more than case, which IAM ignores; remove one of them',
            )


@BOOK.whole
def permissions_boundary_is_in_reach(environment: Environment) -> Iterator[Problem]:
    """Refuse a permissions boundary that no role of this account can have."""
    boundary = environment.permissions_boundary
    if boundary is None or not boundary.startswith("arn:"):
        return
    of = arn_parts(boundary)
    if of.partition != environment.partition:
        yield Problem(
            ("permissions_boundary",),
            f"must be a policy of the partition {environment.partition}, that of {environment.region}, got"
            f" {boundary}; set permissions_boundary: {boundary.replace(of.partition, environment.partition, 1)}",
        )
    if of.account not in {"aws", environment.account}:
        yield Problem(
            ("permissions_boundary",),
            f"must be a policy of account {environment.account}, got one of {of.account}; set permissions_boundary:"
            f" {boundary.rsplit('/', 1)[-1]}",
        )


@BOOK.whole
def stated_instance_types_are_new(environment: Environment) -> Iterator[Problem]:
    """Refuse a name that is not an instance type; warn that the file's numbers are used unchecked."""
    for name, _ in known(environment.instance_types):
        path = ("instance_types", name)
        if not re.fullmatch(instance_types.NAME.regex, name):
            # a similar name in the catalog does not help: this section is for types that the catalog does not have
            whole = f"ml.{name.removeprefix('ml.')}"
            near = whole if re.fullmatch(instance_types.NAME.regex, whole) else "ml. and the EC2 name"
            yield Problem(path, f'must be an instance type such as ml.p5.48xlarge, got "{name}"; write {near}')
        elif instance_types.get(name) is not None:
            yield warning(
                path,
                f"{name} is in the catalog of {instance_types.as_of()}, and this file's numbers are used instead;"
                " remove the entry to use the catalog's",
            )
        else:
            yield warning(
                path,
                f"{name} is not in the catalog of {instance_types.as_of()}; its numbers are taken from this file"
                " unchecked",
            )


@BOOK.whole
def texts_are_no_references(environment: Environment) -> Iterator[Problem]:
    """Refuse text that CloudFormation reads as a dynamic reference."""
    for path, text in _texts((), environment):
        if problem := template_mark_problem(text, key=str(path[-1])):
            yield Problem(path, problem)


def _texts(path: DataPath, value: object) -> Iterator[tuple[DataPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, BaseModel):
        for name, each in value.__dict__.items():
            yield from _texts((*path, name), each)
    elif isinstance(value, dict):
        for key, each in dict.items(value):
            yield from _texts((*path, key), key)
            yield from _texts((*path, key), each)
    elif isinstance(value, tuple):
        for index, each in enumerate(value):
            yield from _texts((*path, index), each)
