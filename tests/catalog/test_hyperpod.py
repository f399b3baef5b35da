"""HyperPod's limits and values are those of the API's model and of the CloudFormation schema."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.catalog import hyperpod
from hyperpod_cdk.catalog.rules import Bound, Pattern
from tests.support.tables import row_by_row

CLUSTER = "AWS::SageMaker::Cluster"
GROUP = "definitions/ClusterInstanceGroup/properties"

Schema = Callable[[str], dict[str, Any]]


def at(document: dict[str, Any], path: str) -> dict[str, Any]:
    for key in path.split("/"):
        document = document[key]
    return document


@pytest.mark.parametrize(
    ("bound", "path"),
    [
        (hyperpod.INSTANCE_COUNT, f"{GROUP}/InstanceCount"),
        (hyperpod.MIN_INSTANCE_COUNT, f"{GROUP}/MinInstanceCount"),
        (hyperpod.THREADS_PER_CORE, f"{GROUP}/ThreadsPerCore"),
        (hyperpod.VOLUME_GIB, "definitions/ClusterEbsVolumeConfig/properties/VolumeSizeInGB"),
        (hyperpod.PATCHING_BATCH, "definitions/CapacitySizeConfig/properties/Value"),
        (hyperpod.PATCHING_WAIT_SECONDS, "definitions/DeploymentConfig/properties/WaitIntervalInSeconds"),
    ],
)
def test_numbers_agree_with_the_schema(bound: Bound, path: str, registry_schema: Schema) -> None:
    found = at(registry_schema(CLUSTER), path)
    assert (bound.minimum, bound.maximum) == (found.get("minimum"), found.get("maximum"))


@pytest.mark.parametrize(
    ("bound", "path"),
    [
        (hyperpod.INSTANCE_GROUPS, "definitions/ClusterInstanceGroupsList"),
        (hyperpod.INSTANCE_TYPES_PER_GROUP, "definitions/InstanceRequirements/properties/InstanceTypes"),
        (hyperpod.SECURITY_GROUPS, "definitions/VpcConfig/properties/SecurityGroupIds"),
        (hyperpod.SUBNETS, "definitions/VpcConfig/properties/Subnets"),
        (hyperpod.TAINTS, "definitions/ClusterKubernetesTaints"),
        (hyperpod.TAGS, "properties/Tags"),
        (hyperpod.ROLLBACK_ALARMS, "definitions/AutoRollbackConfiguration"),
    ],
)
def test_counts_agree_with_the_schema(bound: Bound, path: str, registry_schema: Schema) -> None:
    found = at(registry_schema(CLUSTER), path)
    assert (bound.minimum, bound.maximum) == (found["minItems"], found["maxItems"])


@pytest.mark.parametrize(
    ("bound", "shape"),
    [
        (hyperpod.LABELS, "ClusterKubernetesLabels"),
        (hyperpod.TAINTS, "ClusterKubernetesTaints"),
        (hyperpod.INSTANCE_COUNT, "ClusterInstanceCount"),
        (hyperpod.NODES_AT_ONCE, "BatchReplaceClusterNodesRequestNodeIdsList"),
        (hyperpod.NODES_AT_ONCE, "BatchReplaceClusterNodesRequestNodeLogicalIdsList"),
        (hyperpod.NODES_AT_ONCE, "BatchRebootClusterNodesRequestNodeIdsList"),
        (hyperpod.NODES_AT_ONCE, "BatchRebootClusterNodesRequestNodeLogicalIdsList"),
        (hyperpod.NODES_CHECKED_AT_ONCE, "InstanceIds"),
        (hyperpod.VOLUME_GIB, "ClusterEbsVolumeSizeInGB"),
        (hyperpod.RESTRICTED_LUSTRE_CAPACITY_GIB, "FSxLustreSizeInGiB"),
        (hyperpod.RESTRICTED_LUSTRE_THROUGHPUT_MBPS_PER_TIB, "FSxLustrePerUnitStorageThroughput"),
    ],
)
def test_numbers_agree_with_the_api(bound: Bound, shape: str, sagemaker_shapes: dict[str, Any]) -> None:
    found = sagemaker_shapes[shape]
    assert (bound.minimum, bound.maximum) == (found["min"], found["max"])


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (hyperpod.CLUSTER_NAME, "properties/ClusterName"),
        (hyperpod.INSTANCE_GROUP_NAME, "definitions/InstanceGroupName"),
        (hyperpod.TAINT_KEY, "definitions/ClusterKubernetesTaint/properties/Key"),
        (hyperpod.TAINT_VALUE, "definitions/ClusterKubernetesTaint/properties/Value"),
        (hyperpod.AMI_ID, "definitions/ImageId"),
        (hyperpod.RELEASE_VERSION, f"{GROUP}/ImageReleaseVersion"),
        (hyperpod.CRON, "definitions/ScheduledUpdateConfig/properties/ScheduleExpression"),
        (hyperpod.LIFECYCLE_SCRIPT, "definitions/ClusterLifeCycleConfig/properties/OnCreate"),
        (hyperpod.ALARM_NAME, "definitions/AlarmDetails/properties/AlarmName"),
    ],
)
def test_patterns_agree_with_the_schema(pattern: Pattern, path: str, registry_schema: Schema) -> None:
    found = at(registry_schema(CLUSTER), path)
    assert pattern.regex == found["pattern"].removeprefix("^").removesuffix("$")
    assert pattern.maximum == found["maxLength"]
    assert pattern.minimum >= found["minLength"]


def test_a_plan_is_named_as_the_api_names_one(registry_schema: Schema, sagemaker_shapes: dict[str, Any]) -> None:
    """The ARN's own pattern takes any name, that of CreateTrainingPlan does not."""
    arn = at(registry_schema(CLUSTER), f"{GROUP}/TrainingPlanArn")["pattern"].removeprefix("^").removesuffix("$")
    name = sagemaker_shapes["TrainingPlanName"]["pattern"]
    assert arn.endswith("/.*")
    assert arn.removesuffix(".*") + name == hyperpod.TRAINING_PLAN_ARN.regex
    for wrong in ("", "h100 april", "-april", "a" * 65, "h100/april"):
        assert not hyperpod.TRAINING_PLAN_ARN.matches(f"arn:aws:sagemaker:us-east-1:111122223333:training-plan/{wrong}")


@pytest.mark.parametrize(
    ("pattern", "shape"),
    [
        (hyperpod.LABEL_KEY, "ClusterKubernetesLabelKey"),
        (hyperpod.LABEL_VALUE, "ClusterKubernetesLabelValue"),
        (hyperpod.INSTANCE_GROUP_NAME, "ClusterInstanceGroupName"),
        (hyperpod.CLUSTER, "ClusterNameOrArn"),
        (hyperpod.TRAINING_PLAN_NAME, "TrainingPlanName"),
        (hyperpod.NODE, "ClusterNodeLogicalId"),
    ],
)
def test_patterns_agree_with_the_api(pattern: Pattern, shape: str, sagemaker_shapes: dict[str, Any]) -> None:
    found = sagemaker_shapes[shape]
    # a name that may be empty by its length may not by its pattern
    assert (pattern.regex, pattern.minimum, pattern.maximum) == (found["pattern"], found["min"] or 1, found["max"])


def test_a_node_is_named_by_its_instance_too(sagemaker_shapes: dict[str, Any]) -> None:
    assert sagemaker_shapes["ClusterNodeId"]["pattern"] == "i-[a-f0-9]{8}(?:[a-f0-9]{9})?"
    for name in ("i-0a1b2c3d", "i-0a1b2c3d4e5f67890", "hyperpod-i-0a1b2c3d4e5f67890"):
        assert hyperpod.NODE.matches(name)


def test_words_are_those_of_the_schema(registry_schema: Schema) -> None:
    schema = registry_schema(CLUSTER)
    definitions = schema["definitions"]
    assert list(hyperpod.TAINT_EFFECTS) == definitions["ClusterKubernetesTaint"]["properties"]["Effect"]["enum"]
    assert list(hyperpod.NODE_RECOVERY.values()) == schema["properties"]["NodeRecovery"]["enum"]
    provisioning = [word for word in hyperpod.PROVISIONING.values() if word]
    assert provisioning == schema["properties"]["NodeProvisioningMode"]["enum"]
    strategies = definitions["AutoPatchConfig"]["properties"]["PatchingStrategy"]["enum"]
    assert list(hyperpod.PATCHING_STRATEGIES.values()) == strategies
    assert list(hyperpod.DEEP_HEALTH_CHECKS.values()) == definitions["DeepHealthCheckType"]["enum"]


def test_immutable_properties_are_properties_of_a_group(registry_schema: Schema) -> None:
    assert set(hyperpod.IMMUTABLE_GROUP_PROPERTIES) <= set(at(registry_schema(CLUSTER), GROUP))


@pytest.mark.parametrize(
    ("count", "problem"),
    [
        (0, "must hold instance groups, got none; add one"),
        (1, None),
        (100, None),
        (101, "must hold at most 100 instance groups, got 101; remove 1"),
    ],
)
def test_instance_groups(count: int, problem: str | None) -> None:
    assert hyperpod.INSTANCE_GROUPS.count_problem(count, what="instance groups") == problem


@pytest.mark.parametrize(("count", "extra"), [(20, 0), (21, 1), (100, 80), (101, 0)])
def test_more_instance_groups_than_the_guide_allows_warn(count: int, extra: int) -> None:
    warning = (
        "should hold at most 20 instance groups (the API accepts 100, the developer guide states up to 20), got "
        f"{count}; remove {extra} to be safe"
    )
    assert hyperpod.INSTANCE_GROUPS.count_warning(count, what="instance groups") == (warning if extra else None)


@pytest.mark.parametrize(
    ("percent", "problem"),
    [
        (19, "must be at least 20, got 19; set memory_percent: 20 or more"),
        (20, None),
        (100, None),
        (101, "must be at most 100, got 101; set memory_percent: 100 or less"),
    ],
)
def test_tiered_checkpointing(percent: int, problem: str | None) -> None:
    bound = hyperpod.TIERED_CHECKPOINTING_MEMORY_PERCENT
    assert bound.problem(percent, key="memory_percent") == problem


@pytest.mark.parametrize(
    ("count", "problem"),
    [
        (-1, "must be at least 0, got -1; set count: 0 or more"),
        (0, None),
        (6758, None),
        (6759, "must be at most 6758, got 6759; set count: 6758 or less"),
    ],
)
def test_instance_count(count: int, problem: str | None) -> None:
    assert hyperpod.INSTANCE_COUNT.problem(count, key="count") == problem


@pytest.mark.parametrize("name", ["p", "prod", "Prod-1", "a--b", "a" * 63])
def test_cluster_names(name: str) -> None:
    assert hyperpod.CLUSTER_NAME.problem(name, key="cluster_name") is None


@pytest.mark.parametrize(
    ("name", "fix"),
    [("my_cluster", "my-cluster"), ("-prod", "prod"), ("prod-", "prod"), ("a" * 64, "a" * 63)],
)
def test_cluster_names_that_are_refused(name: str, fix: str) -> None:
    assert hyperpod.CLUSTER_NAME.problem(name, key="cluster_name") == (
        "must be 1 to 63 letters, digits and hyphens, beginning and ending with a letter or digit, "
        f'got "{name}"; set cluster_name: {fix}'
    )


@pytest.mark.parametrize(
    "text",
    [
        "cron(0 3 ? * SUN *)",
        "cron(00 00 1 * ? *)",
        "cron(30 23 31 */2 ? 2027)",
        "cron(0 3 ? 12 1#1 *)",
        "cron(0 3 ? * 5L *)",
        "cron(0 3 ? * L *)",
    ],
)
def test_schedules(text: str) -> None:
    assert hyperpod.CRON.problem(text, key="schedule") is None


@row_by_row(
    "text",
    [
        "cron(* * * * * *)",
        "cron(0 3 * * ? *)",
        "cron(60 3 ? * SUN *)",
        "cron(0 24 ? * SUN *)",
        "cron(0 3 ? * sun *)",
        "cron(0 3 ? * SUN 2019)",
        "rate(1 day)",
        "0 3 ? * SUN *",
        "cron(0 3 ? * SUN *) ",
    ],
)
def test_schedules_that_cloudformation_refuses(text: str) -> None:
    bare = text.strip()
    fix = f"set schedule: {bare}" if bare != text else "correct schedule, which must look like cron(0 3 ? * SUN *)"
    assert hyperpod.CRON.problem(text, key="schedule") == (
        "must be cron(minute hour day month weekday year) with single values for minute and hour, a day or ?, "
        f'got "{text}"; {fix}'
    )


@row_by_row("name", sorted(vars(hyperpod)))
def test_every_example_passes_its_own_pattern(name: str) -> None:
    pattern = getattr(hyperpod, name)
    if isinstance(pattern, Pattern):
        assert pattern.source
        stands = {"partition": "aws", "region": "us-east-1", "account": "111122223333", "name": "april"}
        stands |= {"id": "abcdefabcdef"}
        example = re.sub(r"<(\w+)>", lambda match: stands[match[1]], pattern.example)
        assert pattern.matches(example)
    if isinstance(pattern, Bound):
        assert pattern.source


@pytest.mark.timeout(5)
@pytest.mark.parametrize("name", sorted(hyperpod._PATTERNS))
@pytest.mark.parametrize("piece", ["a", "a-", "a.", "-", "a/"])
def test_no_pattern_is_slow_on_a_long_text(name: str, piece: str) -> None:
    pattern = hyperpod._PATTERNS[name]
    pattern.matches((piece * pattern.maximum)[: pattern.maximum - 1] + "!")


def test_every_row_of_the_file_has_a_name_in_the_module() -> None:
    values = list(vars(hyperpod).values())
    assert all(bound in values for bound in hyperpod._BOUNDS.values())
    assert all(pattern in values for pattern in hyperpod._PATTERNS.values())


def test_the_rest() -> None:
    assert hyperpod.REQUIRED_TAGS == {"SageMaker": "true"}
    assert hyperpod.LIFECYCLE_BUCKET_PREFIX == "sagemaker-"
    assert hyperpod.TRAINING_PLAN_RECLAIM_MINUTES == 60
    assert hyperpod.TRAINING_PLAN_USABLE_STATUSES == ("Scheduled", "Active")
    assert hyperpod.TRAINING_PLAN_TARGET == "hyperpod-cluster"
    assert (hyperpod.TRAINING_PLAN_DAYS[0], hyperpod.TRAINING_PLAN_DAYS[-1]) == (1, 182)
    assert hyperpod.TRAINING_PLAN_COUNTS == (1, 2, 4, 8, 16, 32, 64)
    assert hyperpod.TRAINING_PLAN_START_DAYS_AHEAD == 56


SCRIPT = (
    'must be the path of a script below the folder of lifecycle scripts, without / at its beginning, "." and "..", got'
    ' "{}"; set on_create: {}'
).format


@row_by_row(
    "script, fix",
    [
        ("on_create.sh", None),
        ("a/b..c/.d.sh", None),
        ("/a.sh", "a.sh"),
        ("a//b.sh", "a/b.sh"),
        ("./a.sh", "a.sh"),
        ("../../a/./b.sh", "a/b.sh"),
        ("a/", "a"),
        ("a\tb/c.sh", "c.sh"),
        ("..", "on_create.sh"),
        ("a" * 128, None),
    ],
)
def test_scripts_are_below_their_folder(script: str, fix: str | None) -> None:
    assert hyperpod.script_problem(script, key="on_create") == (fix and SCRIPT(script, fix))


def test_a_script_whose_name_is_too_long() -> None:
    name = "/" + "a" * 128
    assert hyperpod.script_problem(name, key="on_create") == (
        f'must be the name of a script, 1 to 128 characters, got "{name}"; set on_create: {"a" * 128}'
    )


@row_by_row(
    "key, owner",
    [
        ("team", None),
        ("kubernetes.io", None),
        ("kubernetes.io/a", ("kubernetes", "kubernetes.io")),
        ("x.kubernetes.io/a", ("kubernetes", "kubernetes.io")),
        ("xkubernetes.io/a", None),
        ("kubernetes.io.x/a", None),
        ("k8s.io/a", ("kubernetes", "k8s.io")),
        ("sagemaker.amazonaws.com/a", ("hyperpod", "sagemaker.amazonaws.com")),
        ("x.sagemaker.amazonaws.com/a", ("hyperpod", "sagemaker.amazonaws.com")),
    ],
)
def test_prefixes_with_an_owner(key: str, owner: tuple[str, str] | None) -> None:
    assert hyperpod.reserved_prefix(key) == owner


@pytest.mark.parametrize(("length", "is_refused"), [(62, False), (63, False), (64, True)])
@pytest.mark.parametrize("prefix", ["", "example.com/", f"{'x' * 100}/"])
def test_the_length_of_a_key_after_its_prefix(prefix: str, length: int, *, is_refused: bool) -> None:
    assert hyperpod.key_name_problem(prefix + "a" * length) == (
        "must have at most 63 characters after the prefix, Kubernetes' limit, got 64" if is_refused else None
    )


def test_types_that_are_sold_as_ultraservers() -> None:
    server = hyperpod.ultraserver("ml.p6e-gb200.36xlarge")
    assert server is not None
    assert (server.region, server.zone_id, server.kubernetes_version) == ("us-east-1", "use1-dfw2-az1", "1.33")
    assert hyperpod.ultraserver("ml.p5.48xlarge") is None
    # a key of the table that is no type
    assert hyperpod.ultraserver("source") is None


def test_groups_and_pools_of_karpenter() -> None:
    assert hyperpod.two_pools_problem("a", "one") == (
        "must be in one pool, got a again after pool one; remove one of the two"
    )
    assert hyperpod.unlike_taints_problem("a", "b", pool="one") == (
        "must hold groups with the same taints in a pool, got a and b in pool one; give both the same taints, or put"
        " each in its own pool"
    )


def test_log_groups() -> None:
    assert hyperpod.log_group("prod", "abc") == "/aws/sagemaker/Clusters/prod/abc"
    assert hyperpod.events_log_group("prod", stack_part="1a2b") == "/aws/events/prod-hyperpod-1a2b"
