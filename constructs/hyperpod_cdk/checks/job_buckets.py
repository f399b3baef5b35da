"""Whether the buckets of jobs exist: checkpoints of pods, data and results of restricted groups, models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from hyperpod_cdk.checks.answers import Aws, NotAnswered
from hyperpod_cdk.checks.model import Case, Found, check, error, unanswered, warning
from hyperpod_cdk.checks.side_by_side import together
from hyperpod_cdk.config import Environment

AREA = "job-buckets"


@check(
    area=AREA,
    asks=("bucket",),
    inputs="buckets of every service account of hyperpod.tiered_checkpointing; input_buckets and output_buckets of each"
    " restricted instance group; operators.inference.model_buckets.",
    passes="Each bucket exists, and in the environment's region. It may belong to another account.",
    fails="There is no such bucket: jobs would run and lose what they write, and endpoints find no model. One in"
    " another region is a warning: every checkpoint crosses regions, which is slow and billed.",
    skips="AWS gives no answer about a bucket, for example about one of another account whose owner does not allow it"
    " yet; the others are still checked.",
    by_hand="aws s3api head-bucket --bucket my-checkpoints",
)
def job_buckets_are_in_the_region(case: Case, aws: Aws) -> Iterator[Found]:
    """Look for each bucket once, even if it is named several times."""
    region = case.environment.region

    def far(name: str, place: str, there: str) -> Found:
        return warning(
            place,
            f"{name} is in {there}, so all data that jobs read and write there crosses regions, which is slow and"
            " billed;"
            f" use a bucket in {region}",
        )

    paths = job_buckets(case.environment)
    yield from in_region(aws, paths, region, make=lambda _: f"create the bucket in {region}", far=far)


def in_region(
    aws: Aws,
    paths: Mapping[str, Sequence[str]],
    region: str,
    *,
    make: Callable[[str], str],
    far: Callable[[str, str, str], Found],
) -> Iterator[Found]:
    """Find buckets that do not exist or are in another region; ``paths`` gives bucket -> its places in the file.

    ``make`` says how to create a bucket, ``far`` what is wrong with one by its name, place and region.
    """
    for (name, places), answer in zip(paths.items(), together(aws.bucket, paths), strict=True):
        if isinstance(answer, NotAnswered):
            yield unanswered(answer, places[0], about=f"the bucket {name}")
        elif answer is None:
            also = "" if len(places) == 1 else f" (also in {', '.join(places[1:])})"
            yield error(
                places[0], f"must name a bucket that exists, got {name}{also}; correct the name, or {make(name)}"
            )
        elif answer.region != region:
            yield far(name, places[0], answer.region)


def job_buckets(environment: Environment) -> dict[str, list[str]]:
    """Return bucket -> its places in the file, in the file's order."""
    found: dict[str, list[str]] = {}
    checkpointing = environment.hyperpod.tiered_checkpointing
    for index, account in enumerate(checkpointing.service_accounts if checkpointing else ()):
        for place, address in enumerate(account.buckets):
            path = f"hyperpod.tiered_checkpointing.service_accounts[{index}].buckets[{place}]"
            found.setdefault(address.removeprefix("s3://").partition("/")[0], []).append(path)
    for index, group in enumerate(environment.hyperpod.restricted_instance_groups):
        for key, buckets in (("input_buckets", group.input_buckets), ("output_buckets", group.output_buckets)):
            for place, name in enumerate(buckets):
                path = f"hyperpod.restricted_instance_groups[{index}].{key}[{place}]"
                found.setdefault(name, []).append(path)
    for place, name in enumerate(environment.operators.inference.model_buckets):
        found.setdefault(name, []).append(f"operators.inference.model_buckets[{place}]")
    return found
