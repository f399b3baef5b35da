"""File systems: their links, their growth, their users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import (
    BackupAnswer,
    BucketAnswer,
    LustreAnswer,
    LustreChange,
    NotAnswered,
    SecurityGroupAnswer,
    SecurityGroupRule,
    StackAnswer,
    SubnetAnswer,
)
from hyperpod_cdk.checks.model import Case, Result, Status
from hyperpod_cdk.checks.run import offline
from hyperpod_cdk.config.rules import problems
from hyperpod_cdk.config.source import render_path
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
NOW = datetime(2026, 4, 1, 9, 0, tzinfo=UTC)
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


def beside(**changes: Any) -> dict[str, Any]:
    """A second file system of prod.yaml, in the other zone, for the same namespace."""
    return {
        "name": "near",
        "availability_zone_id": "use1-az4",
        "capacity_gib": 19200,
        "throughput_mbps_per_tib": 250,
        "efa": True,
        "claim": {"namespaces": ["hyperpod-ns-research"], "name": "near"},
        **changes,
    }


def messages(result: Result) -> list[str]:
    """What a check found, each with its place."""
    return [finding.render() for finding in result.findings]


def bucket(name: str, region: str = "us-east-1") -> BucketAnswer:
    """A bucket in a region."""
    return BucketAnswer(name=name, region=region)


def file_system(capacity_gib: int, *, stack: str = "prod-storage", name: str = "prod-scratch") -> LustreAnswer:
    """An existing file system."""
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
    assert (result.status, messages(result)) == (Status.PASSED if changes else Status.NOT_NEEDED, [])
    assert len(fake_aws.asked) == (2 if changes else 0)


@pytest.mark.check("data_repositories_are_in_the_region", "fails")
def test_buckets_elsewhere_or_nowhere(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.bucket = {"my-datasets": None, "my-models": bucket("my-models", "eu-west-1")}
    assert messages(run_check(BUCKETS, case_of(LINKS), fake_aws)) == [
        (
            f"{SYSTEM}.data_repositories[0].s3_uri: must name a bucket that exists, got my-datasets; correct the name,"
            " or create it with 'aws s3api create-bucket --bucket my-datasets --region us-east-1'"
        ),
        (
            f"{SYSTEM}.data_repositories[1].s3_uri: must name a bucket in us-east-1, got my-models in eu-west-1,"
            " because FSx imports within a region only; copy the data to a bucket in us-east-1 and use that"
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
        "create it with 'aws s3api create-bucket --bucket my-datasets --region eu-west-1"
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
            f" {SYSTEM}.data_repositories[1].s3_uri); correct the name, or create it with 'aws s3api create-bucket"
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
            f"{SYSTEM}.capacity_gib: must be at least 7200, the capacity of fs-0a1b2c3d4e5f67890, which can only grow,"
            " got 4800; set capacity_gib: 7200, or create a smaller one with another name"
        )
    ]


@pytest.mark.check("file_systems_only_grow", "fails")
@pytest.mark.parametrize(
    ("lifecycle", "severity"),
    [
        # FileSystemLifecycle of botocore's fsx model
        ("AVAILABLE", ""),
        ("UPDATING", ""),
        ("CREATING", "error"),
        ("DELETING", "error"),
        ("FAILED", "warning"),
        ("MISCONFIGURED", "warning"),
        ("MISCONFIGURED_UNAVAILABLE", "warning"),
    ],
)
def test_own_file_systems_that_are_not_available(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, lifecycle: str, severity: str
) -> None:
    fake_aws.answers.stack = dict(STACK_STANDS)
    fake_aws.answers.lustre_file_systems = (replace(file_system(4800), lifecycle=lifecycle),)
    said = (
        f"storage.lustre[0].name: needs fs-0a1b2c3d4e5f67890, which exists, to be AVAILABLE, got {lifecycle}; check"
        " with 'aws fsx describe-file-systems --file-system-ids fs-0a1b2c3d4e5f67890' and deploy when it is"
    )
    result = run_check(GROWTH, case_of(), fake_aws)
    assert messages(result) == ([said] if severity else [])
    assert [finding.severity.value for finding in result.findings] == ([severity] if severity else [])


@pytest.mark.check("file_systems_only_grow", "skips")
def test_file_systems_that_could_not_be_asked(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.lustre_file_systems = NotAnswered("no permission", action="fsx:DescribeFileSystems")
    result = run_check(GROWTH, case_of(), fake_aws)
    assert [(each.reason, each.action) for each in result.skipped] == [("no permission", "fsx:DescribeFileSystems")]
    assert run_check(GROWTH, case_of({"storage": ...}), fake_aws).status is Status.NOT_NEEDED


@pytest.mark.check("file_systems_stand_beside_their_users", "passes")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        EFA,
        # a team of another type uses it
        two_zones(instance_type="ml.g5.12xlarge"),
        # an empty group uses nothing
        two_zones(count=0),
        # each zone has a file system of its own for the same namespace
        {**two_zones(), **EFA, "storage.lustre[1]": beside()},
        # nobody stands in its zone: validate's to report
        {f"{SYSTEM}.availability_zone_id": "use1-az1", "network.availability_zones.use1-az1.node_cidr": "10.11.0.0/16"},
    ],
)
def test_users_in_the_zone(case_of: CaseOf, run_check: RunCheck, *, changes: Mapping[str, Any]) -> None:
    result = run_check(USERS, case_of(changes), offline())
    assert (result.status, messages(result)) == (Status.PASSED, [])


def test_without_a_file_system_no_zone_is_compared(case_of: CaseOf, run_check: RunCheck) -> None:
    assert run_check(USERS, case_of({"storage": ...}), offline()).status is Status.NOT_NEEDED


@pytest.mark.check("file_systems_stand_beside_their_users", "fails")
@pytest.mark.parametrize(
    ("changes", "status", "says"),
    [
        (
            two_zones(),
            Status.PASSED,
            (
                f"{SYSTEM}.availability_zone_id: h100-b in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; put the nodes that use it into one zone, or create a file system in each"
            ),
        ),
        (
            two_zones(count=3),
            Status.PASSED,
            (
                f"{SYSTEM}.availability_zone_id: h100-b in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; put the nodes that use it into one zone, or create a file system in each"
            ),
        ),
        (
            {f"{SYSTEM}.availability_zone_id": "use1-az4"},
            Status.PASSED,
            (
                f"{SYSTEM}.availability_zone_id: h100 in use1-az5 uses scratch in use1-az4, and traffic between zones"
                " is slow and billed; set availability_zone_id: use1-az5"
            ),
        ),
        (
            {**two_zones(), **EFA},
            Status.FAILED,
            (
                f"{SYSTEM}.efa: must have its users in use1-az5, because EFA does not cross zones, got h100-b in"
                " use1-az4; move h100-b or the file system, or set efa: false"
            ),
        ),
        # one beside it without EFA is not the same
        (
            {**two_zones(), **EFA, "storage.lustre[1]": beside(efa=False)},
            Status.FAILED,
            (
                f"{SYSTEM}.efa: must have its users in use1-az5, because EFA does not cross zones, got h100-b in"
                " use1-az4; move h100-b or the file system, or set efa: false"
            ),
        ),
        (
            {**EFA, f"{SYSTEM}.availability_zone_id": "use1-az4"},
            Status.FAILED,
            (
                f"{SYSTEM}.efa: must have its users in use1-az4, because EFA does not cross zones, got h100 in"
                " use1-az5; move h100 or the file system, or set efa: false"
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
            Status.PASSED,
            (
                f"{SYSTEM}.availability_zone_id: h100-b in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; put the nodes that use it into one zone, or create a file system in each"
            ),
        ),
        # a namespace that is no team's: whoever has accelerators may use it
        (
            {
                **two_zones(instance_type="ml.g5.12xlarge"),
                f"{SYSTEM}.claim.namespaces": ["hyperpod-ns-research", "shared"],
            },
            Status.PASSED,
            (
                f"{SYSTEM}.availability_zone_id: h100-b in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; put the nodes that use it into one zone, or create a file system in each"
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
            Status.PASSED,
            (
                f"{SYSTEM}.availability_zone_id: system in use1-az4 uses scratch in use1-az5, and traffic between zones"
                " is slow and billed; put the nodes that use it into one zone, or create a file system in each"
            ),
        ),
    ],
)
def test_users_in_another_zone(
    case_of: CaseOf, run_check: RunCheck, *, changes: Mapping[str, Any], status: Status, says: str
) -> None:
    case = case_of(changes)
    result = run_check(USERS, case, offline())
    found = problems(case.environment, today=case.now.date())
    warned = [
        f"{render_path(each.path)}: {each.message}"
        for rule, each in found
        if rule.name == "file_system_is_beside_nodes"
    ]
    if status is Status.FAILED:
        assert (result.status, messages(result)) == (status, [says])
        assert warned
    else:
        # without EFA it is validate's to warn of
        assert (result.status, messages(result), warned) == (Status.PASSED, [], [says])


@pytest.mark.parametrize(
    ("chosen", "provisioned", "wanted", "says"),
    [
        pytest.param(None, 6000, 3000, (6000, 3000), id="from-automatic-to-less"),
        pytest.param(None, 6000, 6000, None, id="from-automatic-to-as-many"),
        pytest.param(12000, 12000, None, (12000, 6000), id="to-automatic-that-is-less"),
        pytest.param(6000, 6000, None, None, id="to-automatic-that-is-as-many"),
        pytest.param(None, 12000, None, None, id="automatic-stays"),
        pytest.param(None, None, 3000, None, id="no-metadata-configuration"),
    ],
)
def test_metadata_of_either_mode_only_grows(
    case_of: CaseOf,
    run_check: RunCheck,
    fake_aws: FakeAws,
    *,
    chosen: int | None,
    provisioned: int | None,
    wanted: int | None,
    says: tuple[int, int] | None,
) -> None:
    """API reference, UpdateFileSystemLustreMetadataConfiguration: FSx refuses less in either direction."""
    standing = replace(file_system(4800), metadata_iops=chosen, provisioned_metadata_iops=provisioned)
    fake_aws.answers.lustre_file_systems = (standing,)
    fake_aws.answers.stack = STACK_STANDS
    said = messages(run_check(GROWTH, case_of({f"{SYSTEM}.metadata_iops": wanted}), fake_aws))
    text = (
        "{path}.metadata_iops: must be at least {0}, the metadata operations per second of fs-0a1b2c3d4e5f67890,"
        " which can only grow, got {1}; set metadata_iops: {0}, or create a smaller one with another name"
    )
    assert said == ([text.format(*says, path=SYSTEM)] if says else [])


GROWN: Mapping[str, Any] = {
    f"{SYSTEM}.storage_type": "intelligent_tiering",
    f"{SYSTEM}.capacity_gib": ...,
    f"{SYSTEM}.throughput_mbps_per_tib": ...,
    f"{SYSTEM}.throughput_capacity_mbps": 4000,
    f"{SYSTEM}.read_cache": {"sizing": "none"},
}


@pytest.mark.check("file_systems_only_grow", "fails")
def test_throughput_and_metadata_only_grow(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    standing = replace(
        file_system(0), throughput_capacity_mbps=8000, metadata_iops=12000, provisioned_metadata_iops=12000
    )
    fake_aws.answers.lustre_file_systems = (standing,)
    fake_aws.answers.stack = STACK_STANDS
    assert messages(run_check(GROWTH, case_of(GROWN), fake_aws)) == [
        (
            f"{SYSTEM}.throughput_capacity_mbps: must be at least 8000, the throughput of fs-0a1b2c3d4e5f67890, which"
            " can only grow, got 4000; set throughput_capacity_mbps: 8000, or create a smaller one with another name"
        ),
        (
            f"{SYSTEM}.metadata_iops: must be at least 12000, the metadata operations per second of"
            " fs-0a1b2c3d4e5f67890, which can only grow, got 6000; set metadata_iops: 12000, or create a smaller one"
            " with another name"
        ),
    ]


@pytest.mark.check("file_systems_only_grow", "fails")
@pytest.mark.parametrize(
    ("minutes", "status", "target", "said"),
    [
        (
            300,
            "UPDATED_OPTIMIZING",
            {"capacity_gib": 2400},
            (
                f"error {SYSTEM}.capacity_gib: must not become 4800 before 2026-04-01 10:00 UTC, because FSx refuses"
                " another change for 6 hours and fs-0a1b2c3d4e5f67890 was to become 2400 at 04:00 UTC; deploy after"
                " that"
            ),
        ),
        (359, "COMPLETED", {"capacity_gib": 2400, "metadata_iops": 3000}, "error"),
        # the other bound, and what says nothing of this change
        (360, "COMPLETED", {"capacity_gib": 2400}, ""),
        (5, "COMPLETED", {}, ""),
        (5, "COMPLETED", {"metadata_iops": 3000}, ""),
        (
            360,
            "UPDATED_OPTIMIZING",
            {"capacity_gib": 2400},
            (
                f"warning {SYSTEM}.capacity_gib: may be refused as 4800 before FSx has completed the last change of"
                " fs-0a1b2c3d4e5f67890, got UPDATED_OPTIMIZING; check with 'aws fsx describe-file-systems"
                " --file-system-ids fs-0a1b2c3d4e5f67890' and deploy when it is COMPLETED"
            ),
        ),
        (360, "FAILED", {"capacity_gib": 2400}, ""),
        (5, "COMPLETED", {"throughput_mbps_per_tib": 500}, "warning"),
        (400, "IN_PROGRESS", {"throughput_mbps_per_tib": 500}, "warning"),
    ],
)
def test_what_was_changed_a_short_time_ago(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, minutes: int, status: str, target: Any, said: str
) -> None:
    case = replace(case_of(), now=NOW)
    older = LustreChange(asked=NOW - timedelta(days=2), status="COMPLETED", target={"capacity_gib": 1200})
    last = LustreChange(asked=NOW - timedelta(minutes=minutes), status=status, target=target)
    standing = replace(file_system(2400), throughput_mbps_per_tib=500, changes=(last, older))
    fake_aws.answers.stack = dict(STACK_STANDS)
    fake_aws.answers.lustre_file_systems = (standing,)
    result = run_check(GROWTH, case, fake_aws)
    found = [f"{each.severity.value} {each.render()}" for each in result.findings]
    assert len(found) == bool(said)
    assert "".join(found).startswith(said)
    # what the file leaves as it is may have been changed at any time
    fake_aws.answers.lustre_file_systems = (replace(standing, capacity_gib=4800, throughput_mbps_per_tib=250),)
    assert run_check(GROWTH, case, fake_aws).status is Status.PASSED


EXISTING = "existing_file_systems_serve_the_nodes"
BACKUPS = "backups_can_be_restored"
MOUNTED = "mounted_buckets_are_in_the_region"
NODES_GROUP = "sg-0f2c7a9d4e6b81503"
THEIRS: Mapping[str, Any] = {
    "network": {
        "existing": {
            "vpc_id": "vpc-0c1f4e8a9b7d26350",
            "node_subnet_ids": {"use1-az5": "subnet-0d5a9e3b71c84f206", "use1-az4": "subnet-02b6f8d4e9a13c75e"},
            "control_plane_subnet_ids": ["subnet-09e47b1c6d2f8a035", "subnet-0a83d5f2e7c1b6490"],
            "security_group_id": NODES_GROUP,
        }
    },
    "storage": {
        "lustre": [
            {
                "name": "archive",
                "availability_zone_id": "use1-az5",
                "existing": {"file_system_id": "fs-0a1b2c3d4e5f67890", "mount_name": "abcdefgh"},
                "claim": {"namespaces": ["hyperpod-ns-research"]},
            }
        ]
    },
}
STANDS = LustreAnswer(
    file_system_id="fs-0a1b2c3d4e5f67890",
    deployment_type="PERSISTENT_2",
    capacity_gib=4800,
    subnet_ids=("subnet-0d5a9e3b71c84f206",),
    lifecycle="AVAILABLE",
    vpc_id="vpc-0c1f4e8a9b7d26350",
    mount_name="abcdefgh",
    dns_name="fs-0a1b2c3d4e5f67890.fsx.us-east-1.amazonaws.com",
    network_interface_ids=("eni-0a1b2c3d4e5f67890",),
)
THEIR_GROUP = "sg-0aaaaaaaaaaaaaaaa"
FILE_SYSTEM_ID = f"{SYSTEM}.existing.file_system_id"


def rule(first: int | None, last: int | None, *, protocol: str = "tcp", group: str = "", cidr: str = "") -> Any:
    """A rule inwards."""
    return SecurityGroupRule(
        protocol=protocol,
        from_port=first,
        to_port=last,
        group_ids=(group,) if group else (),
        cidrs=(cidr,) if cidr else (),
    )


LET_IN = (rule(988, 988, group=NODES_GROUP), rule(1018, 1023, group=NODES_GROUP))


def serve(fake_aws: FakeAws, *rules: SecurityGroupRule, **changes: Any) -> None:
    """An account with a file system of others, these rules at its door."""
    fake_aws.answers.lustre_file_systems = (replace(STANDS, **changes),)
    fake_aws.answers.subnets = {
        subnet_id: SubnetAnswer(
            subnet_id=subnet_id,
            vpc_id="vpc-0c1f4e8a9b7d26350",
            availability_zone_id=zone,
            cidr=cidr,
            free=100,
            assigns_public_addresses=False,
        )
        for subnet_id, zone, cidr in (
            ("subnet-0d5a9e3b71c84f206", "use1-az5", "10.40.0.0/24"),
            ("subnet-02b6f8d4e9a13c75e", "use1-az4", "10.40.1.0/24"),
        )
    }
    fake_aws.answers.interface_groups = {"eni-0a1b2c3d4e5f67890": (THEIR_GROUP,)}
    group = SecurityGroupAnswer(group_id=THEIR_GROUP, vpc_id="vpc-0c1f4e8a9b7d26350", ingress=rules, egress=())
    fake_aws.answers.security_groups = {THEIR_GROUP: group}


@pytest.mark.check("existing_file_systems_serve_the_nodes", "passes")
@pytest.mark.parametrize(
    "rules",
    [
        LET_IN,
        (rule(None, None, protocol="-1", group=NODES_GROUP),),
        (rule(900, 1100, cidr="10.40.0.0/16"),),
        (rule(988, 1023, protocol="6", cidr="0.0.0.0/0"),),
    ],
)
def test_a_file_system_of_others_that_serves(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, rules: tuple[SecurityGroupRule, ...]
) -> None:
    serve(fake_aws, *rules)
    result = run_check(EXISTING, case_of(THEIRS), fake_aws)
    assert (result.status, messages(result)) == (Status.PASSED, [])


@pytest.mark.check("existing_file_systems_serve_the_nodes", "fails")
@pytest.mark.parametrize(
    ("changes", "rules", "message"),
    [
        (
            {"file_system_id": "fs-0fffffffffffffff0"},
            LET_IN,
            (
                f"{FILE_SYSTEM_ID}: must be an FSx for Lustre file system of the account in us-east-1, got"
                " fs-0a1b2c3d4e5f67890, which is not; correct the ID"
            ),
        ),
        (
            {"lifecycle": "FAILED"},
            LET_IN,
            (
                f"{FILE_SYSTEM_ID}: must be AVAILABLE, got fs-0a1b2c3d4e5f67890 as FAILED; wait for it, or use another"
                " one"
            ),
        ),
        (
            {"mount_name": "fsx"},
            LET_IN,
            f"{SYSTEM}.existing.mount_name: must be that of fs-0a1b2c3d4e5f67890, got abcdefgh; set mount_name: fsx",
        ),
        (
            {"vpc_id": "vpc-0fffffffffffffff0"},
            LET_IN,
            (
                f"{FILE_SYSTEM_ID}: must be in vpc-0c1f4e8a9b7d26350, got fs-0a1b2c3d4e5f67890 in"
                " vpc-0fffffffffffffff0; use a file system of this VPC"
            ),
        ),
        (
            {"subnet_ids": ("subnet-02b6f8d4e9a13c75e",), "efa": True},
            LET_IN,
            (
                f"{SYSTEM}.availability_zone_id: must be that of fs-0a1b2c3d4e5f67890, use1-az4, and EFA does not cross"
                " zones, got use1-az5; set availability_zone_id: use1-az4"
            ),
        ),
        (
            {},
            (rule(988, 988, group=NODES_GROUP), rule(1018, 1022, group=NODES_GROUP), rule(22, 22, cidr="0.0.0.0/0")),
            (
                f"{FILE_SYSTEM_ID}: must allow TCP 1018-1023 from the nodes, got sg-0aaaaaaaaaaaaaaaa without a rule"
                " for sg-0f2c7a9d4e6b81503, the nodes' group; ask its owner for one"
            ),
        ),
        (
            {},
            (rule(988, 1023, cidr="10.40.1.0/24"), rule(988, 1023, protocol="udp", group=NODES_GROUP)),
            (
                f"{FILE_SYSTEM_ID}: must allow TCP 988 and 1018-1023 from the nodes, got sg-0aaaaaaaaaaaaaaaa without"
                " a rule for sg-0f2c7a9d4e6b81503, the nodes' group; ask its owner for one"
            ),
        ),
    ],
)
def test_a_file_system_of_others_that_does_not_serve(
    case_of: CaseOf,
    run_check: RunCheck,
    fake_aws: FakeAws,
    *,
    changes: Mapping[str, Any],
    rules: tuple[SecurityGroupRule, ...],
    message: str,
) -> None:
    serve(fake_aws, *rules, **changes)
    assert messages(run_check(EXISTING, case_of(THEIRS), fake_aws)) == [message]


@pytest.mark.check("existing_file_systems_serve_the_nodes", "skips")
def test_a_file_system_whose_network_is_unknown(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    serve(fake_aws, *LET_IN)
    fake_aws.answers.interface_groups = NotAnswered("not allowed", action="ec2:DescribeNetworkInterfaces")
    (skipped,) = run_check(EXISTING, case_of(THEIRS), fake_aws).skipped
    assert (skipped.reason, skipped.action) == (
        "the network of fs-0a1b2c3d4e5f67890: not allowed",
        "ec2:DescribeNetworkInterfaces",
    )


RESTORED: Mapping[str, Any] = {f"{SYSTEM}.from_backup": "backup-01234567"}
BACKUP = BackupAnswer(backup_id="backup-01234567", lifecycle="AVAILABLE", kind="LUSTRE", capacity_gib=4800)


@pytest.mark.check("backups_can_be_restored", "passes")
@pytest.mark.parametrize(("stands", "asked"), [(False, 1), (True, 0)])
def test_a_backup_to_restore(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, stands: bool, asked: int
) -> None:
    fake_aws.answers.lustre_file_systems = (file_system(4800),) if stands else ()
    fake_aws.answers.stack = STACK_STANDS
    fake_aws.answers.file_system_backup = {"backup-01234567": BACKUP}
    assert run_check(BACKUPS, case_of(RESTORED), fake_aws).status is Status.PASSED
    assert len([each for each in fake_aws.asked if each[0] == "file_system_backup"]) == asked


@pytest.mark.check("backups_can_be_restored", "fails")
@pytest.mark.parametrize(
    ("backup", "message"),
    [
        (
            None,
            (
                f"{SYSTEM}.from_backup: must be a backup of the account in us-east-1, got backup-01234567, which is"
                " not; correct the ID"
            ),
        ),
        (
            replace(BACKUP, lifecycle="CREATING"),
            (
                f"{SYSTEM}.from_backup: must be an AVAILABLE backup of a LUSTRE file system, got backup-01234567,"
                " which is CREATING, of LUSTRE; wait for it, or use another one"
            ),
        ),
        (
            replace(BACKUP, capacity_gib=2400),
            (
                f"{SYSTEM}.capacity_gib: must be that of backup-01234567, 2400, until the file system exists, got 4800;"
                " set capacity_gib: 2400"
            ),
        ),
    ],
)
def test_a_backup_that_cannot_be_restored(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, backup: BackupAnswer | None, message: str
) -> None:
    fake_aws.answers.lustre_file_systems = ()
    fake_aws.answers.file_system_backup = {"backup-01234567": backup}
    assert messages(run_check(BACKUPS, case_of(RESTORED), fake_aws)) == [message]


@pytest.mark.check("backups_can_be_restored", "skips")
def test_a_backup_that_cannot_be_read(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.lustre_file_systems = ()
    fake_aws.answers.file_system_backup = {"backup-01234567": NotAnswered("not allowed", action="fsx:DescribeBackups")}
    (skipped,) = run_check(BACKUPS, case_of(RESTORED), fake_aws).skipped
    assert skipped.reason == "the backup backup-01234567: not allowed"


MOUNTS: Mapping[str, Any] = {
    "storage.s3": [
        {"name": name, "bucket": "my-runs", "claim": {"namespaces": ["hyperpod-ns-research"]}} for name in ("a", "b")
    ]
}


@pytest.mark.check("mounted_buckets_are_in_the_region", "passes")
@pytest.mark.parametrize(("changes", "asked"), [({}, 0), (MOUNTS, 1)])
def test_mounted_buckets_of_the_region(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, changes: Mapping[str, Any], asked: int
) -> None:
    fake_aws.answers.bucket = {"my-runs": bucket("my-runs")}
    assert run_check(MOUNTED, case_of(changes), fake_aws).status is (Status.PASSED if asked else Status.NOT_NEEDED)
    assert len(fake_aws.asked) == asked


@pytest.mark.check("mounted_buckets_are_in_the_region", "fails")
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            None,
            (
                "storage.s3[0].bucket: must name a bucket that exists, got my-runs; correct the name, or create it"
                " with 'aws s3api create-bucket --bucket my-runs --region us-east-1'"
            ),
        ),
        (
            bucket("my-runs", "eu-west-1"),
            (
                "storage.s3[0].bucket: must name a bucket in us-east-1, where pods mount it, got my-runs in eu-west-1;"
                " copy the data to a bucket in us-east-1 and use that"
            ),
        ),
    ],
)
def test_mounted_buckets_elsewhere(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, answer: BucketAnswer | None, message: str
) -> None:
    fake_aws.answers.bucket = {"my-runs": answer}
    assert messages(run_check(MOUNTED, case_of(MOUNTS), fake_aws)) == [message]


@pytest.mark.check("mounted_buckets_are_in_the_region", "skips")
def test_a_mounted_bucket_that_is_unknown(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    fake_aws.answers.bucket = {"my-runs": NotAnswered("not allowed", action="s3:ListBucket")}
    (skipped,) = run_check(MOUNTED, case_of(MOUNTS), fake_aws).skipped
    assert (skipped.reason, skipped.path) == ("the bucket my-runs: not allowed", "storage.s3[0].bucket")
