"""Properties that CloudFormation cannot change in place, compared with the schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_cdk.catalog import _data, create_only
from hyperpod_cdk.catalog.create_only import UpdateRule, overlap, update_rule


@pytest.mark.parametrize(
    ("resource_type", "rule"),
    [
        (
            "AWS::SageMaker::Cluster",
            UpdateRule(
                create_only=(("ClusterName",), ("Orchestrator", "Eks"), ("VpcConfig",)), name=(("ClusterName",),)
            ),
        ),
        (
            "AWS::SageMaker::ComputeQuota",
            UpdateRule(
                create_only=(("ClusterArn",), ("ComputeQuotaTarget", "TeamName"), ("Name",)), deletes_first=True
            ),
        ),
        ("AWS::KMS::Key", UpdateRule()),
        ("Custom::Something", None),
        ("AWS::Nothing::Here", None),
    ],
)
def test_a_rule(resource_type: str, rule: UpdateRule | None) -> None:
    assert update_rule(resource_type) == rule


@pytest.mark.parametrize("resource_type", ["AWS::EC2::VPC", "AWS::EC2::Instance", "AWS::EKS::Cluster"])
def test_a_rule_is_the_schemas(resource_type: str, registry_schema: Callable[[str], Any]) -> None:
    schema = registry_schema(resource_type)
    rule = update_rule(resource_type)
    assert rule is not None
    for key, paths in (
        ("createOnlyProperties", rule.create_only),
        ("conditionalCreateOnlyProperties", rule.conditionally),
    ):
        assert sorted("/properties/" + "/".join(path) for path in paths) == sorted(schema.get(key, []))


def test_items_of_lists_are_no_step() -> None:
    starred = [name for name, words in _data.load("create_only")["types"].items() if "/*" in words]
    assert starred
    for name in starred:
        rule = update_rule(name)
        assert rule is not None
        assert not any("*" in path for path in (*rule.create_only, *rule.conditionally, *rule.name))


@pytest.mark.parametrize(
    ("path", "is_create_only"),
    [
        (("VpcConfig",), True),
        (("VpcConfig", "Subnets"), True),
        (("Orchestrator",), True),
        (("Orchestrator", "Eks", "ClusterArn"), True),
        (("Orchestrator", "Slurm"), False),
        (("InstanceGroups",), False),
    ],
)
def test_a_change_above_or_below_counts(path: tuple[str, ...], is_create_only: bool) -> None:  # noqa: FBT001 - a table's column
    rule = update_rule("AWS::SageMaker::Cluster")
    assert rule is not None
    assert rule.is_create_only(path) is is_create_only
    assert not rule.is_conditional(path)


def test_overlap_goes_both_ways() -> None:
    assert overlap(("a",), ("a", "b"))
    assert overlap(("a", "b"), ("a",))
    assert not overlap(("a", "b"), ("a", "c"))


def test_the_schemas_are_dated() -> None:
    assert create_only.SCHEMAS_AS_OF <= create_only.AS_OF


@pytest.mark.parametrize("resource_type", sorted(_data.load("create_only")["documented"]))
def test_only_pages_name_what_is_documented(resource_type: str, registry_schema: Callable[[str], Any]) -> None:
    """The schema is authoritative if CloudFormation uses it: a type with handlers, a property without a condition."""
    schema, rule = registry_schema(resource_type), update_rule(resource_type)
    assert rule is not None
    assert rule.documented
    for path in rule.documented:
        assert path[0] in schema["properties"]
        assert not rule.is_create_only(path)
        assert rule.is_conditional(path) or not schema.get("handlers")


@pytest.mark.parametrize(
    ("path", "at", "documented"),
    [
        ("WindowsConfiguration.DeploymentType", 2, "WindowsConfiguration.DeploymentType"),
        (
            "OpenZFSConfiguration.RootVolumeConfiguration.NfsExports.ClientConfigurations",
            4,
            "OpenZFSConfiguration.RootVolumeConfiguration.NfsExports",
        ),
        # what comes or goes with all around it does not change, and neither does what stands above
        ("WindowsConfiguration.DeploymentType", 1, ""),
        ("WindowsConfiguration", 1, ""),
        ("WindowsConfiguration.ThroughputCapacity", 2, ""),
    ],
)
def test_what_is_documented_of_a_path(path: str, at: int, documented: str) -> None:
    rule = update_rule("AWS::FSx::FileSystem")
    assert rule is not None
    assert ".".join(rule.documented_at(tuple(path.split(".")), at)) == documented
