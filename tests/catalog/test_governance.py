"""Task governance's limits and values are those of the API's model and of the CloudFormation schemas."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import addons, governance, instance_types, kubernetes
from hyperpod_cdk.catalog.rules import Bound, Pattern
from tests.support.tables import row_by_row

SCHEDULER = "AWS::SageMaker::ClusterSchedulerConfig"
QUOTA = "AWS::SageMaker::ComputeQuota"

Schema = Callable[[str], dict[str, Any]]


def properties(schema: dict[str, Any], definition: str) -> dict[str, Any]:
    found: dict[str, Any] = schema["definitions"][definition]["properties"]
    return found


def test_numbers_agree_with_the_schemas(registry_schema: Schema) -> None:
    weight = properties(registry_schema(SCHEDULER), "PriorityClass")["Weight"]
    classes = properties(registry_schema(SCHEDULER), "SchedulerConfig")["PriorityClasses"]
    share = properties(registry_schema(QUOTA), "ComputeQuotaTarget")["FairShareWeight"]
    resources = properties(registry_schema(QUOTA), "ComputeQuotaConfig")["ComputeQuotaResources"]
    limits = properties(registry_schema(QUOTA), "ResourceSharingConfig")["AbsoluteBorrowLimits"]
    count = properties(registry_schema(QUOTA), "ComputeQuotaResourceConfig")["Count"]
    assert pair(governance.PRIORITY_WEIGHT) == (weight["minimum"], weight["maximum"])
    assert pair(governance.PRIORITY_CLASSES) == (classes["minItems"], classes["maxItems"])
    assert pair(governance.FAIR_SHARE_WEIGHT) == (share["minimum"], share["maximum"])
    assert pair(governance.QUOTA_RESOURCES) == (resources["minItems"], resources["maxItems"])
    assert pair(governance.ABSOLUTE_BORROW_LIMITS) == (limits["minItems"], limits["maxItems"])
    assert pair(governance.QUOTA_COUNT) == (count["minimum"], count["maximum"])


def test_the_borrow_limit_is_the_guide_s_and_lies_inside_the_shape(registry_schema: Schema) -> None:
    shape = properties(registry_schema(QUOTA), "ResourceSharingConfig")["BorrowLimit"]
    assert pair(governance.BORROW_LIMIT_PERCENT) == (1, 500)
    assert (shape["minimum"], shape["maximum"]) == (0, 10_000)


def test_words_are_those_of_the_schemas(registry_schema: Schema) -> None:
    scheduler = properties(registry_schema(SCHEDULER), "SchedulerConfig")
    quota = properties(registry_schema(QUOTA), "ComputeQuotaConfig")
    sharing = properties(registry_schema(QUOTA), "ResourceSharingConfig")
    assert set(governance.IDLE_COMPUTE.values()) == set(scheduler["FairShare"]["enum"])
    assert set(governance.SHARING.values()) == set(sharing["Strategy"]["enum"])
    assert set(governance.PREEMPTION.values()) == set(quota["PreemptTeamTasks"]["enum"])
    assert governance.ORDERINGS == ("first_come_first_served", "priority")


def test_patterns_agree_with_the_schemas(registry_schema: Schema) -> None:
    name = registry_schema(SCHEDULER)["properties"]["Name"]
    assert f"^{governance.POLICY_NAME.regex}$" == name["pattern"]
    assert governance.POLICY_NAME.maximum == name["maxLength"]


@given(text=st.text(alphabet="ab0-_A\n", max_size=12))
def test_names_match_what_the_schemas_slow_pattern_matches(text: str, registry_schema: Schema) -> None:
    team = properties(registry_schema(QUOTA), "ComputeQuotaTarget")["TeamName"]["pattern"]
    priority = properties(registry_schema(SCHEDULER), "PriorityClass")["Name"]["pattern"]
    assert governance.TEAM_NAME.matches(text) == (re.fullmatch(team, text) is not None)
    assert governance.PRIORITY_CLASS_NAME.matches(text) == (re.fullmatch(priority, text) is not None)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("pattern", [governance.TEAM_NAME, governance.PRIORITY_CLASS_NAME, governance.POLICY_NAME])
def test_a_long_name_with_a_bad_end_is_refused_at_once(pattern: Pattern) -> None:
    # the schema's own pattern needs hours for this text: each further letter doubles its work
    assert not pattern.matches("a" * (pattern.maximum - 1) + "-")


def test_lengths_leave_room_for_the_names_that_are_built_of_them() -> None:
    team = "t" * governance.TEAM_NAME.maximum
    name = "n" * governance.PRIORITY_CLASS_NAME.maximum
    label_value = 63
    assert len(governance.local_queue(team)) == label_value
    assert len(governance.priority_class(name)) == label_value
    assert len(governance.namespace(team)) < label_value


@pytest.mark.parametrize(
    ("percent", "problem"),
    [
        (0, "must be at least 1, got 0; set borrow_limit_percent: 1 or more"),
        (1, None),
        (500, None),
        (501, "must be at most 500, got 501; set borrow_limit_percent: 500 or less"),
    ],
)
def test_borrow_limits(percent: int, problem: str | None) -> None:
    assert governance.BORROW_LIMIT_PERCENT.problem(percent, key="borrow_limit_percent") == problem


@pytest.mark.parametrize(
    ("count", "problem"),
    [(0, None), (10, None), (11, "must hold at most 10 priority classes, got 11; remove 1")],
)
def test_priority_classes(count: int, problem: str | None) -> None:
    assert governance.PRIORITY_CLASSES.count_problem(count, what="priority classes") == problem


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("Research", "set name: research"),
        ("ml_platform", "set name: ml-platform"),
        ("t" * 41, f"set name: {'t' * 40}"),
        # nothing follows from nothing: an example is no proposal
        ("", "correct name, which must look like research"),
    ],
)
def test_team_names_that_kubernetes_cannot_carry(name: str, fix: str) -> None:
    assert governance.TEAM_NAME.problem(name, key="name") == (
        "must be 1 to 40 lower-case letters, digits and hyphens, beginning and ending with a letter or digit, "
        f'got "{name}"; {fix}'
    )


@pytest.mark.parametrize("name", ["r", "research", "team-1", "t" * 40])
def test_team_names(name: str) -> None:
    assert governance.TEAM_NAME.problem(name, key="name") is None


def test_default_priority_classes_are_valid() -> None:
    for name, weight in governance.DEFAULT_PRIORITY_CLASSES:
        assert governance.PRIORITY_CLASS_NAME.problem(name, key="name") is None
        assert governance.PRIORITY_WEIGHT.problem(weight, key="weight") is None
    weights = [weight for _, weight in governance.DEFAULT_PRIORITY_CLASSES]
    assert weights == sorted(set(weights), reverse=True)


def test_names_that_the_service_builds() -> None:
    assert governance.namespace("research") == "hyperpod-ns-research"
    assert governance.local_queue("research") == "hyperpod-ns-research-localqueue"
    assert governance.cluster_queue("research") == "hyperpod-ns-research-clusterqueue"
    assert governance.priority_class("training") == "training-priority"
    assert governance.QUEUE_LABEL == "kueue.x-k8s.io/queue-name"
    assert governance.PRIORITY_LABEL == "kueue.x-k8s.io/priority-class"


@row_by_row(
    "teams, policy, taken",
    [
        ([], None, []),
        ([("a", None), ("b", "its-own")], "our-policy", []),
        ([("policy", None)], None, [(0, "prod-policy", True)]),
        ([("policy", None)], "our-policy", []),
        ([("a", None), ("b", "prod-a")], None, [(0, "prod-a", False), (1, "prod-a", False)]),
        ([("a", "prod-policy")], None, [(0, "prod-policy", True)]),
        ([("a", None)], "prod-a", [(0, "prod-a", True)]),
        ([("a", "x"), ("b", "x")], "x", [(0, "x", False), (1, "x", False)]),
    ],
)
def test_names_of_quotas_that_others_have(
    teams: list[tuple[str, str | None]], policy: str | None, taken: list[tuple[int, str, bool]]
) -> None:
    found = governance.names_taken("prod", teams, policy)
    assert [(each.team, each.name, each.is_policys) for each in found] == taken


def test_defaults_of_the_service() -> None:
    assert governance.DEFAULT_BORROW_LIMIT_PERCENT == 50
    assert governance.DEFAULT_FAIR_SHARE_WEIGHT == 0


def test_every_row_of_the_file_has_a_name_in_the_module() -> None:
    values = [value for value in vars(governance).values() if isinstance(value, Bound | Pattern)]
    assert all(bound in values and bound.source for bound in governance._BOUNDS.values())
    assert all(pattern in values and pattern.source for pattern in governance._PATTERNS.values())


def pair(bound: Bound) -> tuple[int | None, int | None]:
    return bound.minimum, bound.maximum


def test_partition_profiles_are_those_of_the_schema(registry_schema: Schema) -> None:
    partition = properties(registry_schema(QUOTA), "AcceleratorPartitionConfig")
    assert list(governance.PARTITION_PROFILES) == partition["Type"]["enum"]
    assert pair(governance.QUOTA_COUNT) == (partition["Count"]["minimum"], partition["Count"]["maximum"])


@pytest.mark.parametrize("name", ["Accelerators", "VCpu", "MemoryInGiB"])
def test_all_amounts_have_one_bound(registry_schema: Schema, name: str) -> None:
    amount = properties(registry_schema(QUOTA), "ComputeQuotaResourceConfig")[name]
    assert pair(governance.QUOTA_COUNT) == (amount["minimum"], amount["maximum"])


@pytest.mark.parametrize(
    ("amounts", "problem"),
    [
        (("count",), None),
        (("accelerators", "vcpu", "memory_gib"), None),
        (("accelerator_partition", "vcpu", "memory_gib"), None),
        (
            (),
            "must state an amount, got none; add count: 1, accelerators, vcpu, memory_gib or accelerator_partition",
        ),
        (
            ("count", "vcpu"),
            "must state count without other amounts, got count and vcpu; remove count, or remove vcpu",
        ),
        (
            ("count", "accelerator_partition"),
            (
                "must state count without other amounts, got count and accelerator_partition; remove count, or"
                " remove accelerator_partition"
            ),
        ),
        (
            ("accelerators", "vcpu", "accelerator_partition"),
            (
                "must state accelerator_partition without other amounts except vcpu and memory_gib, got"
                " accelerator_partition and accelerators; remove accelerator_partition, or remove accelerators"
            ),
        ),
    ],
)
def test_amounts_that_go_together(amounts: tuple[str, ...], problem: str | None) -> None:
    assert governance.amounts_problem(amounts) == problem


@dataclass(frozen=True, kw_only=True)
class Partition:
    profile: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Row:
    count: int | None = None
    accelerators: int | None = None
    vcpu: float | None = None
    memory_gib: float | None = None
    accelerator_partition: Partition | None = None

    @property
    def amounts(self) -> tuple[str, ...]:
        return tuple(each.name for each in fields(self) if getattr(self, each.name) is not None)


@row_by_row(
    "instance_type, row, shares",
    [
        # 8 accelerators, 192 vCPUs, 2048 GiB
        ("ml.p5.48xlarge", Row(count=3), (3, 3, 3)),
        ("misspelt", Row(count=3), (3, 3, 3)),
        ("misspelt", Row(accelerators=3), None),
        ("ml.p5.48xlarge", Row(), None),
        ("ml.p5.48xlarge", Row(accelerators=4), (0.5, 0.5, 0.5)),
        ("ml.p5.48xlarge", Row(accelerators=0), (0, 0, 0)),
        ("ml.p5.48xlarge", Row(vcpu=0, memory_gib=256), (0, 0, 0.125)),
        ("ml.p5.48xlarge", Row(count=0), (0, 0, 0)),
        ("ml.p5.48xlarge", Row(accelerators=4, vcpu=48), (0.5, 0.25, 0.5)),
        ("ml.p5.48xlarge", Row(accelerators=4, memory_gib=256), (0.5, 0.5, 0.125)),
        ("ml.p5.48xlarge", Row(vcpu=48), (0, 0.25, 0.25)),
        ("ml.p5.48xlarge", Row(vcpu=48, memory_gib=256), (0, 0.25, 0.125)),
        ("ml.p5.48xlarge", Row(memory_gib=256), (0, 0.125, 0.125)),
        ("ml.m5.2xlarge", Row(vcpu=2), (0, 0.25, 0.25)),
        ("ml.m5.2xlarge", Row(accelerators=1), None),
        # two of this profile fit on one GPU
        (
            "ml.p5.48xlarge",
            Row(accelerator_partition=Partition(profile="mig-3g.40gb", count=4)),
            (0.25, 0.25, 0.25),
        ),
        ("ml.p5.48xlarge", Row(accelerator_partition=Partition(profile="mig-1g.5gb", count=4)), None),
        ("ml.m5.2xlarge", Row(accelerator_partition=Partition(profile="mig-3g.40gb", count=4)), None),
    ],
)
def test_shares_of_instances(instance_type: str, row: Row, shares: tuple[float, float, float] | None) -> None:
    found = governance.instance_shares(row, instance_types.get(instance_type))
    assert found == (None if shares is None else dict(zip(governance.SHARES, shares, strict=True)))


@pytest.mark.parametrize(
    ("instance_type", "fitting"),
    [("ml.p4d.24xlarge", (7, 4, 3, 2, 1, 1)), ("ml.p5.48xlarge", (7, 4, 3, 2, 1, 1))],
)
def test_partitions_of_one_gpu(instance_type: str, fitting: tuple[int, ...]) -> None:
    row = instance_types.get(instance_type)
    assert row is not None
    profiles = row.mig_profiles
    assert tuple(governance.partitions_per_accelerator(each, profiles) for each in profiles) == fitting


def test_every_documented_profile_can_be_counted() -> None:
    rows = [row for name in instance_types.names() if (row := instance_types.get(name)) and row.mig_profiles]
    assert len(rows) > 5
    for row in rows:
        for profile in row.mig_profiles:
            assert governance.partitions_per_accelerator(profile, row.mig_profiles) in {1, 2, 3, 4, 7}, profile


def test_a_profile_of_less_than_a_slice_of_memory_takes_one() -> None:
    assert governance.partitions_per_accelerator("mig-1g.1gb", ["mig-1g.1gb", "mig-7g.80gb"]) == 7


def test_what_is_no_profile() -> None:
    with pytest.raises(ValueError, match=r'^must be a MIG profile such as mig-1g\.5gb, got "1g"$'):
        governance.partitions_per_accelerator("1g", ["mig-7g.40gb"])


@pytest.mark.parametrize(
    ("version", "api"),
    [
        (None, "v1beta2"),
        ("v1.3.0-eksbuild.1", "v1beta1"),
        ("v1.4.9-eksbuild.1", "v1beta1"),
        ("v1.5.0-eksbuild.1", "v1beta2"),
        ("v1.6.1-eksbuild.1", "v1beta2"),
        ("newest", "v1beta2"),
    ],
)
def test_local_queues_are_written_as_the_kueue_of_the_version_knows_them(version: str | None, api: str) -> None:
    assert governance.local_queue_api(version) == f"kueue.x-k8s.io/{api}"


@pytest.mark.parametrize(
    ("version", "is_known"), [("v1.2.9-eksbuild.1", False), ("v1.3.0-eksbuild.1", True), ("v1.6.0-eksbuild.1", True)]
)
def test_default_queues_need_kueue_0_12(version: str, is_known: bool) -> None:  # noqa: FBT001 - table
    problem = governance.default_queue_problem(version)
    assert problem == (
        None
        if is_known
        else "needs task governance 1.3 or newer, whose Kueue puts jobs without a queue into the one named default,"
        f" got {version}"
    )


@pytest.mark.parametrize(
    ("installed", "wanted", "is_refused"),
    [
        ("v1.3.9-eksbuild.1", "v1.5.0-eksbuild.1", True),
        ("v1.3.9-eksbuild.1", "v1.4.9-eksbuild.1", False),
        ("v1.4.0-eksbuild.1", "v1.5.0-eksbuild.1", False),
        ("v1.6.0-eksbuild.1", "v1.3.0-eksbuild.1", False),
        ("newest", "v1.5.0-eksbuild.1", False),
    ],
)
def test_steps_between_versions(installed: str, wanted: str, is_refused: bool) -> None:  # noqa: FBT001 - table
    assert (governance.update_problem(installed, wanted) is not None) is is_refused


def test_descriptions_take_what_the_api_takes() -> None:
    assert governance.DESCRIPTION.maximum == 1024
    assert governance.DESCRIPTION.matches("Größe & Fairness: 50 %")
    assert not governance.DESCRIPTION.matches("two\nlines")
    # EntityDescription of SageMaker (botocore 1.44.5): [\p{L}\p{M}\p{Z}\p{S}\p{N}\p{P}]*, so no category C
    assert governance.DESCRIPTION.matches("na\u0303o \u2028 \U0001f680 \u2116 1")
    for mark in ("\u200b", "\u202e", "\u00ad", "\ufeff", "\ue000", "\U000f0000", "\U000e0067", "\u0378"):
        assert not governance.DESCRIPTION.matches(f"next {mark} model"), hex(ord(mark))


def test_every_kubernetes_version_of_hyperpod_is_new_enough_for_task_governance() -> None:
    least = addons.row(addons.TASK_GOVERNANCE).minimum_kubernetes
    assert least is not None
    minors = [int(version.split(".")[1]) for version in kubernetes.hyperpod_versions()]
    assert min(minors) >= int(least.split(".")[1]), "an older version needs a rule of the file"


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        *((name, None) for name in ("cpu", "requests.cpu", "limits.memory", "requests.storage", "pods", "secrets")),
        *((name, None) for name in ("services.nodeports", "hugepages-2Mi", "requests.hugepages-1Gi")),
        *(
            (name, None)
            for name in ("requests.nvidia.com/gpu", "count/jobs.batch", "gold.storageclass.storage.k8s.io/x")
        ),
        ("request.cpu", "did you mean requests.cpu?"),
        ("Requests.cpu", "did you mean requests.cpu?"),
        ("limits.storage", "write one of these"),
        ("gpus", "write one of these"),
        ("x", "write one of these"),
    ],
)
def test_what_a_resource_quota_may_limit(name: str, fix: str | None) -> None:
    """Names without a domain are those of Kubernetes' IsStandardQuotaResourceName."""
    said = governance.limited_resource_problem(name)
    assert (said and said.partition(f"before a slash, got {name}; ")[2]) == fix


@row_by_row(
    "name, is_of_others",
    [
        ("kube-public", True),
        ("kueue-system", True),
        ("gpu-system-2", True),
        ("default", True),
        ("aws-hyperpod", True),
        ("mount-s3", True),
        ("my-kube-jobs", False),
        ("system", False),
        ("hyperpod-ns-research", False),
    ],
)
def test_namespaces_of_operators(name: str, *, is_of_others: bool) -> None:
    assert governance.is_namespace_of_others(name) is is_of_others


@pytest.mark.parametrize(
    ("namespace", "team"),
    [("hyperpod-ns-research", "research"), ("hyperpod-ns-", ""), ("research", None), ("my-hyperpod-ns-research", None)],
)
def test_the_team_of_a_namespace(namespace: str, team: str | None) -> None:
    assert governance.team_of(namespace) == team


@pytest.mark.parametrize(
    ("near", "fix"),
    [
        ("hyperpod-ns-research", "did you mean hyperpod-ns-research?"),
        (None, 'add the team "resarch" to task_governance.teams, or name another namespace'),
        # it has the namespace's name, but not its team
        ("hyperpod-ns-resarch", 'add the team "resarch" to task_governance.teams, or name another namespace'),
    ],
)
def test_a_namespace_without_a_team(near: str | None, fix: str) -> None:
    assert governance.no_team_problem("hyperpod-ns-resarch", near=near) == (
        f"must be the namespace of a team, got hyperpod-ns-resarch and there is no such team; {fix}"
    )


def test_a_member_is_no_administrator() -> None:
    one, two, other = (f"arn:aws:iam::111122223333:role/{name}" for name in ("one", "two", "other"))
    assert governance.member_problem(other, [one, two], listed="eks.admins") is None
    assert governance.member_problem(two, [one, two], listed="eks.admins") == (
        f"must not be an administrator of the cluster, got {two} as in eks.admins[1]: EKS allows one access entry per"
        " role; remove it here, because administrators can do what members can"
    )


def test_sentences_about_settings_without_effect() -> None:
    assert governance.unranked_classes_problem("first_come_first_served") == (
        "must be left out with ordering: first_come_first_served; set ordering: priority or remove priority_classes"
    )
    assert governance.borrowing_problem("lend", key="borrow_limit_percent") == (
        "needs strategy: lend_and_borrow, got strategy: lend; remove borrow_limit_percent or set strategy:"
        " lend_and_borrow"
    )


P5_PROFILES = "mig-1g.10gb, mig-1g.20gb, mig-2g.20gb, mig-3g.40gb, mig-4g.40gb, mig-7g.80gb"
NO_PARTITIONS = (
    "must be of a type whose GPUs can be partitioned, got {} (as of"
    f" {instance_types.AS_OF}); set count or accelerators in place of accelerator_partition"
).format
OTHER_PROFILE = (
    f"must be a MIG profile of ml.p5.48xlarge ({P5_PROFILES}; as of {instance_types.AS_OF}), got {{}};"
    " set profile: {}"
).format
PROFILE = "accelerator_partition.profile"


@row_by_row(
    "name, accelerators, profile, problems",
    [
        ("ml.p5.48xlarge", 8, "mig-1g.10gb", {}),
        ("ml.p5.48xlarge", None, None, {}),
        ("ml.m5.2xlarge", None, None, {}),
        (
            "ml.m5.2xlarge",
            0,
            "mig-1g.10gb",
            {
                "accelerators": (
                    "must be left out, got 0 of ml.m5.2xlarge, which has no accelerators; set count, vcpu or memory_gib"
                ),
                PROFILE: NO_PARTITIONS("ml.m5.2xlarge"),
            },
        ),
        ("ml.g5.12xlarge", 1, "mig-1g.10gb", {PROFILE: NO_PARTITIONS("ml.g5.12xlarge")}),
        ("ml.p5.48xlarge", 1, "mig-3g.41gb", {PROFILE: OTHER_PROFILE("mig-3g.41gb", "mig-3g.40gb")}),
        ("ml.p5.48xlarge", None, "x", {PROFILE: OTHER_PROFILE("x", "mig-1g.10gb")}),
    ],
)
def test_what_a_type_has_for_a_quota(
    name: str, accelerators: int | None, profile: str | None, problems: dict[str, str]
) -> None:
    row = instance_types.get(name)
    assert row is not None
    found = governance.accelerator_problems(row, accelerators=accelerators, profile=profile)
    assert {".".join(place): said for place, said in found} == problems


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("nvidia.com/gpu", "requests.nvidia.com/gpu"),
        ("limits.nvidia.com/gpu", "requests.nvidia.com/gpu"),
        ("requests.nvidia.com/gpu", None),
        ("count/nvidia.com", None),
        ("gold.storageclass.storage.k8s.io/requests.storage", None),
        ("hugepages-2Mi", None),
        ("pods", None),
    ],
)
def test_extended_resources_are_limited_by_their_requests(name: str, fix: str | None) -> None:
    assert governance.limited_resource_problem(name) == (
        fix
        and "must begin with requests., the only kind of limit that Kubernetes enforces for such a resource, got"
        f" {name}; write {fix}"
    )


@pytest.mark.parametrize(
    ("version", "api", "is_served"),
    [
        ("v1.4.9-eksbuild.1", "kueue.x-k8s.io/v1beta2", False),
        ("v1.5.0-eksbuild.1", "kueue.x-k8s.io/v1beta2", True),
        ("v1.4.9-eksbuild.1", "kueue.x-k8s.io/v1beta1", True),
        ("v1.5.0-eksbuild.1", "kueue.x-k8s.io/v1beta1", True),
        # older than all that are listed
        ("v1.2.0-eksbuild.1", "kueue.x-k8s.io/v1beta2", False),
        ("newest", "kueue.x-k8s.io/v1beta2", True),
    ],
)
def test_versions_of_kueues_api(version: str, api: str, is_served: bool) -> None:  # noqa: FBT001 - table
    assert governance.serves_kueue_api(version, api) is is_served


def test_a_step_beyond_the_stored_definitions() -> None:
    problem = governance.update_problem("v1.3.9-eksbuild.1", "v1.5.0-eksbuild.1")
    assert problem == (
        "must not skip from v1.3.9-eksbuild.1 to v1.5.0-eksbuild.1, because releases before 1.4 store Kueue's custom"
        " resource definitions in a version that releases from 1.5 on no longer have"
    )
    assert governance.update_problem("v1.3.9-eksbuild.1", "newest") is None


def test_names_under_which_a_resource_quota_limits() -> None:
    assert governance.limited_resource("gpu") == "requests.nvidia.com/gpu"
    assert governance.limited_resource("partition", profile="mig-1g.5gb") == "requests.nvidia.com/mig-1g.5gb"


def test_labels_of_pod_security() -> None:
    assert governance.pod_security_labels("baseline") == {
        "pod-security.kubernetes.io/audit": "baseline",
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "baseline",
    }


@pytest.mark.parametrize(
    ("region", "native"),
    [
        ("us-east-1", (True, True)),
        ("us-west-2", (False, True)),
        ("us-west-1", (True, False)),
        ("me-south-1", (False,) * 2),
    ],
)
def test_regions_with_native_types(region: str, native: tuple[bool, bool]) -> None:
    assert tuple(governance.is_native(name, region) for name in (SCHEDULER, QUOTA)) == native


def test_sentences_about_rows_of_one_name() -> None:
    assert governance.same_quota_name_problem("prod-a") == (
        'must be unique, got "prod-a", which is the name of another team\'s quota; rename one of the two'
    )
    assert governance.same_row_problem("ml.p5.48xlarge", "quota[0]") == (
        "must be unique, got ml.p5.48xlarge as in quota[0]; add the counts up in one of the two"
    )
