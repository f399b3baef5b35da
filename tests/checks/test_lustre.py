"""File systems: their links, their growth, their users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import BucketAnswer, LustreAnswer, NotAnswered, StackAnswer
from hyperpod_cdk.checks.model import Case, Result, Status
from hyperpod_cdk.checks.run import offline
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

BUCKETS = "data_repositories_are_in_the_region"
GROWTH = "file_systems_only_grow"
USERS = "file_systems_stand_beside_their_users"
SYSTEM = "storage.lustre[0]"
LINKS: Mapping[str, Any] = {
    f"{SYSTEM}.data_repositories": [
        {"path": "/datasets", "s3_uri": "s3://my-datasets/"},
        {"path": "/models", "s3_uri": "s3://my-models/large/"},
    ]
}
STACK_STANDS: dict[str, StackAnswer | NotAnswered | None] = {
    "prod-storage": StackAnswer(name="prod-storage", status="UPDATE_COMPLETE")
}
EFA: Mapping[str, Any] = {f"{SYSTEM}.efa": True, f"{SYSTEM}.capacity_gib": 19200}


def two_zones(**changes: Any) -> dict[str, Any]:
    """Changes to prod.yaml: a second group of the same type in the other zone."""
    group = {
        "name": "h100-b",
        "instance_type": "ml.p5.48xlarge",
        "count": 1,
        "availability_zone_id": "use1-az4",
        "capacity": "spot",
    }
    return {"hyperpod.instance_groups[2]": {**group, **changes}, "operators": ...}


def messages(result: Result) -> list[str]:
    """What a check found, each with its place."""
    return [finding.render() for finding in result.findings]


def bucket(name: str, region: str = "us-east-1") -> BucketAnswer:
    """A bucket in a region."""
    return BucketAnswer(name=name, region=region)


def file_system(capacity_gib: int, *, stack: str = "prod-storage", name: str = "prod-scratch") -> LustreAnswer:
    """A file system that stands."""
    return LustreAnswer(
        file_system_id="fs-0a1b2c3d4e5f67890",
        deployment_type="PERSISTENT_2",
        capacity_gib=capacity_gib,
        subnet_ids=(),
        lifecycle="AVAILABLE",
        tags={"aws:cloudformation:stack-name": stack, "Name": name},
    )


@pytest.mark.check("data_repositories_are_in_the_region", "passes")
@pytest.mark.parametrize("changes", [{}, LINKS])
def test_buckets_of_the_region(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, changes: Mapping[str, Any]
) -> None:
    fake_aws.answers.bucket = {name: bucket(name) for name in ("my-datasets", "my-models")}
    result = run_check(BUCKETS, case_of(changes), fake_aws)
    assert (result.status, messages(result)) == (Status.PASSED, [])
    assert len(fake_aws.asked) == (2 if changes else 0)


@pytest.mark.check("data_repositories_are_in_the_region", "fails")
def test_buckets_elsewhere_or_nowhere(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.bucket = {"my-datasets": None, "my-models": bucket("my-models", "eu-west-1")}
    assert messages(run_check(BUCKETS, case_of(LINKS), fake_aws)) == [
        (
            f"{SYSTEM}.data_repositories[0].s3_uri: must name a bucket that exists, got my-datasets; correct the name,"
            " or make it with 'aws s3api create-bucket --bucket my-datasets --region us-east-1'"
        ),
        (
            f"{SYSTEM}.data_repositories[1].s3_uri: must name a bucket in us-east-1, got my-models in eu-west-1, since"
            " FSx imports within a region only; copy the data to a bucket in us-east-1 and name that"
        ),
    ]


def test_a_bucket_elsewhere_than_in_us_east_1_is_made_with_its_place(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws
) -> None:
    fake_aws.answers.bucket = {"my-datasets": None, "my-models": bucket("my-models", "eu-west-1")}
    case = case_of(LINKS)
    elsewhere = replace(case, environment=case.environment.model_copy(update={"region": "eu-west-1"}))
    (finding,) = run_check(BUCKETS, elsewhere, fake_aws).findings
    assert finding.message.endswith(
        "make it with 'aws s3api create-bucket --bucket my-datasets --region eu-west-1"
        " --create-bucket-configuration LocationConstraint=eu-west-1'"
    )


def test_one_bucket_is_asked_and_reported_once(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    links = [
        {"path": "/a", "s3_uri": "s3://my-datasets/a/"},
        {"path": "/b", "s3_uri": "s3://my-datasets/b/"},
    ]
    fake_aws.answers.bucket = {"my-datasets": None}
    assert messages(run_check(BUCKETS, case_of({f"{SYSTEM}.data_repositories": links}), fake_aws)) == [
        (
            f"{SYSTEM}.data_repositories[0].s3_uri: must name a bucket that exists, got my-datasets (also in"
            f" {SYSTEM}.data_repositories[1].s3_uri); correct the name, or make it with 'aws s3api create-bucket"
            " --bucket my-datasets --region us-east-1'"
        )
    ]
    assert fake_aws.asked == [("bucket", "my-datasets")]


@pytest.mark.check("data_repositories_are_in_the_region", "skips")
def test_one_bucket_without_an_answer_hides_no_other(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.bucket = {
        "my-datasets": NotAnswered("no permission", action="s3:ListBucket"),
        "my-models": bucket("my-models", "eu-west-1"),
    }
    result = run_check(BUCKETS, case_of(LINKS), fake_aws)
    assert [(each.reason, each.action, each.path) for each in result.skipped] == [
        ("the bucket my-datasets: no permission", "s3:ListBucket", f"{SYSTEM}.data_repositories[0].s3_uri")
    ]
    assert [finding.path for finding in result.findings] == [f"{SYSTEM}.data_repositories[1].s3_uri"]


@pytest.mark.check("file_systems_only_grow", "passes")
@pytest.mark.parametrize(
    "standing",
    [
        (),
        (file_system(4800),),
        (file_system(2400),),
        (file_system(9600, name="prod-other"),),
        (file_system(9600, stack="test-storage"),),
    ],
)
def test_capacities_that_grow(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, standing: tuple[LustreAnswer, ...]
) -> None:
    fake_aws.answers.lustre_file_systems = standing
    fake_aws.answers.stack = STACK_STANDS
    result = run_check(GROWTH, case_of(), fake_aws)
    assert (result.status, messages(result)) == (Status.PASSED, [])


@pytest.mark.parametrize("status", ["", "REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"])
def test_a_file_system_that_a_destroyed_stack_left_may_be_larger(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, status: str
) -> None:
    fake_aws.answers.lustre_file_systems = (file_system(9600),)
    fake_aws.answers.stack = {"prod-storage": StackAnswer(name="prod-storage", status=status) if status else None}
    assert run_check(GROWTH, case_of(), fake_aws).status is Status.PASSED


@pytest.mark.parametrize("order", [1, -1])
def test_beside_one_that_a_destroyed_stack_left_the_smaller_counts(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, order: int
) -> None:
    fake_aws.answers.lustre_file_systems = (file_system(9600), file_system(4800))[::order]
    fake_aws.answers.stack = STACK_STANDS
    assert run_check(GROWTH, case_of(), fake_aws).status is Status.PASSED


@pytest.mark.check("file_systems_only_grow", "fails")
def test_a_capacity_that_shrinks(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.lustre_file_systems = (file_system(7200),)
    fake_aws.answers.stack = STACK_STANDS
    assert messages(run_check(GROWTH, case_of(), fake_aws)) == [
        (
            f"{SYSTEM}.capacity_gib: must be at least 7200, the capacity of fs-0a1b2c3d4e5f67890, which can grow and"
            " never shrink, got 4800; set capacity_gib: 7200, or make a smaller one under another name"
        )
    ]


@pytest.mark.check("file_systems_only_grow", "skips")
def test_file_systems_that_could_not_be_asked(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.lustre_file_systems = NotAnswered("no permission", action="fsx:DescribeFileSystems")
    result = run_check(GROWTH, case_of(), fake_aws)
    assert [(each.reason, each.action) for each in result.skipped] == [("no permission", "fsx:DescribeFileSystems")]
    assert run_check(GROWTH, case_of({"storage": ...}), fake_aws).status is Status.PASSED


@pytest.mark.check("file_systems_stand_beside_their_users", "passes")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        EFA,
        {"storage": ...},
        # a team of another type uses it
        two_zones(instance_type="ml.g5.12xlarge"),
        # an empty group uses nothing
        two_zones(count=0),
        # nobody stands in its zone: validate's to report
        {f"{SYSTEM}.availability_zone_id": "use1-az1", "network.availability_zones.use1-az1": None},
    ],
)
def test_users_in_the_zone(case_of: CaseOf, run_check: RunCheck, *, changes: Mapping[str, Any]) -> None:
    result = run_check(USERS, case_of(changes), offline())
    assert (result.status, messages(result)) == (Status.PASSED, [])


@pytest.mark.check("file_systems_stand_beside_their_users", "fails")
@pytest.mark.parametrize(
    ("changes", "status", "says"),
    [
        (
            two_zones(),
            Status.WARNED,
            (
                f"{SYSTEM}.availability_zone_id: h100-b in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; put these nodes into one zone, or make a file system in each"
            ),
        ),
        (
            two_zones(count=3),
            Status.WARNED,
            (
                f"{SYSTEM}.availability_zone_id: h100-b in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; set availability_zone_id: use1-az4"
            ),
        ),
        (
            {f"{SYSTEM}.availability_zone_id": "use1-az4"},
            Status.WARNED,
            (
                f"{SYSTEM}.availability_zone_id: h100 in use1-az5 uses scratch in use1-az4, and traffic between zones"
                " is slow and billed; set availability_zone_id: use1-az5"
            ),
        ),
        (
            {**two_zones(), **EFA},
            Status.FAILED,
            (
                f"{SYSTEM}.efa: must have its users in use1-az5, since EFA does not cross zones, got h100-b in"
                " use1-az4; move h100-b or the file system, or set efa: false"
            ),
        ),
        (
            {**EFA, f"{SYSTEM}.availability_zone_id": "use1-az4"},
            Status.FAILED,
            (
                f"{SYSTEM}.efa: must have its users in use1-az4, since EFA does not cross zones, got h100 in use1-az5;"
                " move h100 or the file system, or set efa: false"
            ),
        ),
        # g5 reaches no file system over EFA, wherever it stands
        (
            {
                **two_zones(instance_type="ml.g5.12xlarge"),
                **EFA,
                "task_governance": ...,
                f"{SYSTEM}.claim.namespaces": ["research"],
            },
            Status.WARNED,
            (
                f"{SYSTEM}.availability_zone_id: h100-b in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; put these nodes into one zone, or make a file system in each"
            ),
        ),
        # a namespace that is no team's: whoever has accelerators may use it
        (
            {
                **two_zones(instance_type="ml.g5.12xlarge"),
                f"{SYSTEM}.claim.namespaces": ["hyperpod-ns-research", "shared"],
            },
            Status.WARNED,
            (
                f"{SYSTEM}.availability_zone_id: h100-b in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; put these nodes into one zone, or make a file system in each"
            ),
        ),
        # without accelerators every group may use it
        (
            {
                "hyperpod.instance_groups[1].instance_type": "ml.m5.2xlarge",
                "hyperpod.instance_groups[1].capacity": ...,
                "hyperpod.instance_groups[1].training_plan_arn": ...,
                "hyperpod.instance_groups[1].deep_health_checks": ...,
                "task_governance": ...,
                f"{SYSTEM}.claim": ...,
            },
            Status.WARNED,
            (
                f"{SYSTEM}.availability_zone_id: system in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; put these nodes into one zone, or make a file system in each"
            ),
        ),
    ],
)
def test_users_in_another_zone(
    case_of: CaseOf, run_check: RunCheck, *, changes: Mapping[str, Any], status: Status, says: str
) -> None:
    result = run_check(USERS, case_of(changes), offline())
    assert (result.status, messages(result)) == (status, [says])
