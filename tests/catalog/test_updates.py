"""Effects of updates that schemas do not contain: every row is about something that exists and can be reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from hyperpod_cdk.catalog import _data, create_only, hyperpod, updates
from tests.support.tables import row_by_row

CLUSTER = "AWS::SageMaker::Cluster"
EKS = "AWS::EKS::Cluster"
LUSTRE = "AWS::FSx::FileSystem"
ROWS: list[dict[str, Any]] = _data.load("updates")["updates"]
TABLES = (
    *("stateful", "names", "protections", "on_replacement", "made_anew_without_harm", "deleted_where_unused"),
    "acts_on",
)
WHEN = {
    "added": (None, 1),
    "removed": (1, None),
    "grows": (1, 2),
    "shrinks": ("2", 1),
    "gains": (["a"], ["a", "b"]),
    "next minor": ("1.9", "1.10"),
    "skips a minor": ("1.9", "1.11"),
    "lower": ("1.10", "1.9"),
    "higher": ("1.9", "1.10"),
    "to false": (None, False),
    "switched off": ("true", False),
    "switched on": (None, True),
    "suspended": ("Enabled", "Suspended"),
    "grows by little": (100, 109),
    "to the default": ("dedicated", None),
    "was there": ("a", "b"),
    "reserved name": ("a", "system:a"),
    "evicting": (None, {"Effect": "NoExecute"}),
    "workloads": ('[{"kind":"Pod"}]', '[{"kind":"Pod","spec":1}]'),
    "node pools": ('[{"kind":"NodePool"}]', "[]"),
}
TOLD = {
    *(
        "another key",
        "counted",
        "handed over",
        "uncounted",
        "another VPC",
        "other zones",
        "autoscaled",
        "files kept",
        "pruned",
        "MIG",
    ),
    *("Windows", "ONTAP", "OpenZFS", "SCRATCH_1", "EFA", "no such size", "both closed", "on an instance"),
    "with storage",
    *("rolling", "replacing", "in place upgrade", "online resharding", "fires later", "tells more", "locks out"),
    *("lets in less", "lets out less", "Aurora", "Multi-AZ", "one minor at a time", "along", "alone"),
    *("several indexes", "private", "to edge", "by the internet alone", "in a row", "gap inwards", "gap outwards"),
    *("with their subnets", "major not allowed"),
}
"""Circumstances that only the caller knows."""


def types() -> Iterator[str]:
    for table in ("updates", *TABLES):
        yield from (row["type"] for row in _data.load("updates")[table])


GENERAL = {("Comment",), ("Description",), ("Tags",)}
"""Properties of which a row says something for every type of AWS's."""


def test_every_type_exists() -> None:
    aws = {name for name in types() if not name.startswith("Custom::") and not name.endswith("*")}
    assert [name for name in sorted(aws) if create_only.update_rule(name) is None] == []


@row_by_row(
    "resource_type",
    sorted(
        {row["type"] for row in ROWS if row["type"].startswith("AWS::") and not row["type"].endswith("*")}
        | {name for row in _data.load("updates")["settings"] for name in row["of"]}
    ),
)
def test_every_path_exists(resource_type: str, registry_schema: Callable[[str], Any]) -> None:
    schema = registry_schema(resource_type)
    for row in updates._rows(resource_type):
        # what holds for groups is said of both kinds, and restricted ones have fewer properties
        if row.path in GENERAL:
            # of every type of AWS's, whether it has one or not
            continue
        if row.path[:1] != ("RestrictedInstanceGroups",) or row.path[1:] == ("EnvironmentConfig",):
            assert stands_in(schema, schema, row.path), row.path


def stands_in(schema: dict[str, Any], node: dict[str, Any], path: tuple[str, ...]) -> bool:
    while "$ref" in node or node.get("type") == "array":
        if "$ref" in node:
            target: Any = schema
            for step in node["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            node = target
        else:
            node = node["items"]
    if not path:
        return True
    kinds = [node, *node.get("oneOf", [])]
    below = next((kind["properties"][path[0]] for kind in kinds if path[0] in kind.get("properties", {})), None)
    return below is not None and stands_in(schema, below, path[1:])


@pytest.mark.parametrize("table", TABLES)
def test_no_type_has_two_rows(table: str) -> None:
    names = [row["type"] for row in _data.load("updates")[table]]
    assert len(names) == len(set(names))


def test_every_effect_is_one_and_every_sentence_is_a_clause() -> None:
    assert {row["effect"] for row in ROWS} == set(get_args(updates.Effect))
    for row in ROWS:
        assert len(row["sentence"].split()) > 3, row
        assert not row["sentence"].endswith("."), row
        assert "safe" not in row["sentence"].split(), row


def test_every_row_can_be_reached() -> None:
    unconditional: set[tuple[str, str]] = set()
    for row in ROWS:
        for path in row.get("path", "").split(" "):
            key = (row["type"], path)
            assert key not in unconditional, row
            if "when" not in row and "items" not in row:
                unconditional.add(key)


def test_a_type_has_one_kind() -> None:
    named = [name for row in _data.load("updates")["kinds"] for name in row["types"].split()]
    assert sorted(named) == sorted(set(named))
    exact = {name for name in named if not name.endswith("*")}
    assert [name for name in sorted(exact) if create_only.update_rule(name) is None] == []
    assert {row["kind"] for row in _data.load("updates")["kinds"]} == set(get_args(updates.Kind))


WHOLE_SERVICES = (
    *("EKS", "EC2", "AutoScaling", "FSx", "EFS", "RDS", "KMS", "ECR", "DynamoDB", "SQS", "S3", "OpenSearchService"),
    *("MSK", "Redshift", "ElastiCache", "Lambda", "IAM"),
)
"""Services of which every type is judged."""


@row_by_row("service", WHOLE_SERVICES)
def test_every_type_of_a_service_has_a_kind(service: str) -> None:
    types = [name for name in _data.load("create_only")["types"] if name.startswith(f"AWS::{service}::")]
    assert types
    assert [name for name in types if updates.kind_of(name) is None] == []


def test_what_can_be_lost_is_never_settings_alone() -> None:
    lost = [name for name in updates.STATEFUL if name.startswith("AWS::") and name != "AWS::CloudFormation::Stack"]
    assert [name for name in lost if updates.kind_of(name) in (None, "nothing")] == []


@pytest.mark.parametrize(
    ("resource_type", "kind"),
    [
        ("AWS::IAM::Role", "nothing"),
        ("AWS::IAM::AccessKey", "key"),
        ("AWS::EC2::EIP", "address"),
        ("AWS::RDS::DBInstance", "data"),
        ("AWS::AutoScaling::AutoScalingGroup", "nodes"),
        ("AWS::Neptune::DBCluster", None),
        ("Custom::Other", None),
    ],
)
def test_what_a_type_holds(resource_type: str, kind: str | None) -> None:
    assert updates.kind_of(resource_type) == kind


def test_every_circumstance_is_one() -> None:
    assert {when for row in ROWS if "when" in row for when in row["when"].split(", ")} == {*WHEN, *TOLD, "forward"}
    for when, (before, after) in WHEN.items():
        assert when in updates.circumstances(before, after)


@pytest.mark.parametrize(
    ("taint", "evicts"),
    [
        ({"Effect": "NoExecute"}, True),
        ({"Effect": "NO_EXECUTE"}, True),
        ({"Effect": "NoSchedule"}, False),
        ([{"Effect": "NoSchedule"}, {"Effect": "NoExecute"}], True),
        # an effect that only the deployment knows can be the one that evicts
        ({"Effect": {"Ref": "Effect"}}, True),
        (None, False),
    ],
)
def test_taints_that_evict(taint: Any, evicts: bool) -> None:  # noqa: FBT001 - table
    assert ("evicting" in updates.circumstances({"Effect": "PreferNoSchedule"}, taint)) is evicts


@row_by_row(
    "before, after, order",
    [
        ("1.9", "1.10", {"higher", "next minor"}),
        ("1.9", "1.11", {"higher", "skips a minor"}),
        ("1.31", "2.0", {"higher", "skips a minor"}),
        ("1.10", "1.9", {"lower"}),
        (1.9, "1.8", {"lower"}),
        ("8.0.35", "8.0.36", {"higher"}),
        ("8.0.mysql_aurora.3.05.2", "8.0.mysql_aurora.3.04.0", {"lower"}),
        ("5.7.mysql_aurora.2.11.2", "8.0.mysql_aurora.3.04.0", {"higher", "skips a minor"}),
        ("19.0.0.0.ru-2023-01.rur-2023-01.r1", "19.0.0.0.ru-2022-10.rur-2022-10.r1", {"lower"}),
        ("15.00.4335.1.v1", "15.00.4316.3.v1", {"lower"}),
        ("v1.18.3-eksbuild.2", "v1.18.3-eksbuild.1", {"lower"}),
        ("v1.18.3-eksbuild.2", "v1.19.0-eksbuild.1", {"higher", "next minor"}),
        ("OpenSearch_2.9", "OpenSearch_2.11", {"higher", "skips a minor"}),
        ("Elasticsearch_7.10", "OpenSearch_1.3", {"higher"}),
        ("OpenSearch_1.3", "Elasticsearch_7.10", {"lower"}),
        ("3.7.x", "3.6.0", {"lower"}),
        # which of them is the higher one only the service knows
        ("3.7.x", "3.7.x.kraft", set()),
        ("16", "16.3", set()),
        ("6.x", "6.2", set()),
        ("1.30", "01.30", set()),
        ("a", "b", set()),
        ("arn:1", "arn:0", set()),
        ("1.9", "1.10!", set()),
        ("1.9!", "1.10", set()),
        ("1", "2", {"higher", "skips a minor"}),
        ("1.9.1", "1.10.3", {"higher", "next minor"}),
        ("1.9.1", "2.10.1", {"higher", "skips a minor"}),
        ("1.9", "1.9", set()),
        (True, False, set()),
        (["2"], ["1"], set()),
        ("²", "1", set()),
    ],
)
def test_which_version_is_the_higher_one(before: Any, after: Any, order: set[str]) -> None:
    assert updates.circumstances(before, after) & {"higher", "lower", "next minor", "skips a minor"} == order


@pytest.mark.parametrize("when", ["grows", "shrinks", "next minor"])
def test_a_value_that_is_not_known_is_never_taken_for_harmless(when: str) -> None:
    """Where numbers decide, something that is no number has a row of its own."""
    circumstances: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in ROWS:
        circumstances[row["type"], row.get("path", "")].add(row.get("when", ""))
    deciding = [key for key, whens in circumstances.items() if when in whens]
    assert deciding
    for resource_type, path in deciding:
        rows = updates._rows(resource_type)
        for each in {row.path for row in rows if row.path[-1:] == tuple(path.split("."))[-1:]}:
            found = updates.update(resource_type, each, object(), 1)
            assert found is not None
            assert found.effect in ("unknown", "nodes interrupted") or found.interrupts


@pytest.mark.parametrize("group", ["InstanceGroups", "RestrictedInstanceGroups"])
@pytest.mark.parametrize("name", hyperpod.IMMUTABLE_GROUP_PROPERTIES)
def test_what_a_group_cannot_change_is_refused(name: str, group: str) -> None:
    found = updates.update(CLUSTER, (group, name, "Below"), "a", "b")
    assert found is not None
    assert (found.effect, found.path) == ("refused by the service", (group, name))


@row_by_row(
    "resource_type, path, before, after, effect",
    [
        (LUSTRE, ("LustreConfiguration", "DeploymentType"), "a", "b", "replaced"),
        (LUSTRE, ("LustreConfiguration", "CopyTagsToBackups"), True, False, "replaced"),
        (EKS, ("Version",), "1.33", "1.34", "in place"),
        (EKS, ("Version",), "1.33", "2.34", "refused by the service"),
        (EKS, ("Version",), "1.33", "1.33.1", "unknown"),
        (EKS, ("AccessConfig", "AuthenticationMode"), "API", "CONFIG_MAP", "refused by the service"),
        (EKS, ("AccessConfig", "AuthenticationMode"), "CONFIG_MAP", "API_AND_CONFIG_MAP", "in place"),
        (EKS, ("AccessConfig", "AuthenticationMode"), None, "API_AND_CONFIG_MAP", "in place"),
        (EKS, ("AccessConfig", "AuthenticationMode"), "CONFIG_MAP", "API", "refused by the service"),
        (EKS, ("ComputeConfig", "NodeRoleArn"), None, "a", "in place"),
        (EKS, ("ComputeConfig", "NodePools"), ["system"], [], "unknown"),
        (LUSTRE, ("LustreConfiguration", "MetadataConfiguration", "Mode"), None, "USER_PROVISIONED", "unknown"),
        ("Custom::HyperPodQuotaGate", ("ServiceToken",), "a", "b", "refused by the service"),
        ("Custom::HyperPodQuotaGate", ("Mode",), "a", "b", "in place"),
        ("Custom::Other", ("ServiceToken",), "a", "b", "refused by the service"),
        ("Custom::Other", ("Mode",), "a", "b", None),
        ("AWS::S3::Bucket", ("Tags",), "a", "b", "in place"),
        ("AWS::SNS::Topic", ("ArchivePolicy",), "a", "b", None),
    ],
)
def test_a_row(resource_type: str, path: tuple[str, ...], before: Any, after: Any, effect: str | None) -> None:
    found = updates.update(resource_type, path, before, after)
    assert (found.effect if found else None) == effect


@row_by_row(
    "before, after, disturbs",
    [
        ('[{"kind":"Pod"}]', '[{"kind":"Pod"},{"kind":"Namespace"}]', False),
        ('[{"kind":"Pod"}]', '[{"kind":"Namespace"}]', False),
        ('[{"kind":"Pod","spec":1}]', '[{"kind":"Pod","spec":2}]', True),
        (
            '[{"kind":"Pod","metadata":{"name":"a"}}]',
            '[{"kind":"Pod","metadata":{"name":"b"}}]',
            False,
        ),
        ('[{"kind":"PersistentVolume","spec":{"a":1}}]', '[{"kind":"PersistentVolume","spec":{"a":2}}]', True),
        ('[{"kind":"PersistentVolume","spec":{"capacity":1}}]', '[{"kind":"PersistentVolume","spec":{}}]', False),
        # of a volume alone, whose fields are an object
        ('[{"kind":"Pod","spec":{"capacity":1}}]', '[{"kind":"Pod","spec":{"capacity":2}}]', True),
        ('[{"kind":"PersistentVolume","spec":1}]', '[{"kind":"PersistentVolume","spec":2}]', True),
        ('[{"kind":"PersistentVolume"}]', '[{"kind":"PersistentVolume"}]', False),
        ("half-", '[{"kind":"Namespace"}]', True),
        ('{"kind":"Namespace"}', '[{"kind":"Namespace"}]', True),
        (1, '[{"kind":"Namespace"}]', True),
    ],
)
def test_manifests_that_disturb(before: Any, after: Any, disturbs: bool) -> None:  # noqa: FBT001 - a table's column
    assert ("workloads" in updates.circumstances(before, after)) is disturbs


@row_by_row(
    "before, after, loses",
    [
        ('[{"kind":"Pod"}]', '[{"kind":"Pod"},{"kind":"Namespace"}]', False),
        ('[{"kind":"Pod"},{"kind":"Namespace"}]', '[{"kind":"Pod"}]', True),
        ('[{"kind":"Pod","metadata":{"name":"a"}}]', '[{"kind":"Pod","metadata":{"name":"b"}}]', True),
        (
            '[{"kind":"Pod","metadata":{"name":"a","namespace":"b"}}]',
            '[{"kind":"Pod","metadata":{"name":"a","namespace":"c"}}]',
            True,
        ),
        ('[{"kind":"Pod","spec":1}]', '[{"kind":"Pod","spec":2}]', False),
        ('[{"kind":"Pod"}]', "[]", True),
        # what cannot be read may lose some
        ("half-", "[]", None),
        ('[{"kind":"Pod"}]', "half-", None),
        ('[{"kind":"Pod"}]', None, None),
    ],
)
def test_manifests_that_lose_objects(before: Any, after: Any, *, loses: bool | None) -> None:
    assert updates.loses_objects(before, after) is loses


@row_by_row(
    "attribute, changed, another",
    [
        ("Value", ("Value",), True),
        ("Value", ("Type",), False),
        ("Value.Text", ("Value",), True),
    ],
)
def test_an_attribute_follows_the_property_of_its_name(
    attribute: str, changed: tuple[str, ...], *, another: bool
) -> None:
    assert updates.gives_another("AWS::SSM::Parameter", attribute, changed) is another


@pytest.mark.parametrize(
    ("resource_type", "costs"),
    [
        (CLUSTER, True),
        ("AWS::EC2::EIP", True),
        ("AWS::EC2::VPC", False),
        ("AWS::IAM::Role", False),
        ("AWS::CloudFormation::Stack", None),
        ("Custom::Other", None),
    ],
)
def test_what_goes_on_costing_money(resource_type: str, costs: bool | None) -> None:  # noqa: FBT001 - a table's column
    assert updates.costs_money(resource_type) is costs


@pytest.mark.parametrize(
    ("resource_type", "name"),
    [
        (CLUSTER, (("ClusterName",),)),
        ("AWS::EKS::Addon", (("ClusterName",), ("AddonName",))),
        ("AWS::EC2::Subnet", (("CidrBlock",), ("VpcId",))),
        (LUSTRE, ()),
        ("Custom::Other", ()),
    ],
)
def test_what_two_resources_cannot_share(resource_type: str, name: tuple[Any, ...]) -> None:
    assert updates.name_of(resource_type) == name


def test_what_holds_for_every_type_does_not_speak_over_a_schema(registry_schema: Callable[[str], Any]) -> None:
    """Tags that a schema does not let be updated, and what is replaced under a condition, have a row of their own."""
    assert {tuple(row["path"].split()) for row in ROWS if row["type"] == "AWS::*"} == {
        ("Tags",),
        ("Description", "Comment"),
    }
    asked, wrong = 0, []
    for name in _data.load("create_only")["types"]:
        rule = create_only.update_rule(name)
        if not name.startswith("AWS::") or rule is None:
            continue
        schema = registry_schema(name)
        for path in GENERAL:
            if path[0] not in schema["properties"] or rule.is_create_only(path):
                continue
            is_fixed = path == ("Tags",) and schema.get("tagging", {}).get("tagUpdatable") is False
            found = updates.update(name, path, "a", "b")
            assert found is not None
            asked += 1
            if (is_fixed or rule.is_conditional(path)) and found.effect != "unknown":
                wrong.append((name, path))
    assert asked > 1000
    assert wrong == []


@pytest.mark.parametrize(
    ("resource_type", "effect"),
    [
        ("AWS::Logs::QueryDefinition", "in place"),
        ("AWS::BedrockAgentCore::GatewayTarget", "unknown"),
        ("AWS::CloudFormation::StackSet", "in place"),
    ],
)
def test_descriptions_are_texts_where_no_model_and_no_stack_set_reads_them(resource_type: str, effect: str) -> None:
    found = updates.update(resource_type, ("Description",), "a", "b")
    assert found is not None
    assert (found.effect, found.interrupts) == (effect, resource_type == "AWS::CloudFormation::StackSet")


@pytest.mark.parametrize(
    ("engine", "before", "after", "is_major"),
    [
        # RDS user guide: of MySQL and MariaDB the major version is the first two numbers, of PostgreSQL the first
        ("mysql", "8.0.35", "8.0.36", False),
        ("mysql", "8.0.35", "8.4.3", True),
        ("mariadb", "10.6.14", "10.6.16", False),
        ("mariadb", "10.6.14", "10.11.6", True),
        ("postgres", "16.1", "16.4", False),
        ("postgres", "16.4", "17.2", True),
    ],
)
def test_which_upgrade_of_a_database_is_to_another_major(
    engine: str, before: str, after: str, *, is_major: bool
) -> None:
    assert updates.is_another_major(engine, before, after) is is_major


def test_only_what_nobody_misses_is_made_anew_without_harm() -> None:
    assert updates.is_made_anew_without_harm("AWS::Lambda::LayerVersion")
    assert set(updates.MADE_ANEW) & (set(updates.STATEFUL) | {"AWS::IAM::Role", "AWS::EC2::SecurityGroup"}) == set()


def test_sources_are_addresses_or_files_of_this_project() -> None:
    for key in _data.load("updates")["sources"]:
        assert updates.address(key).startswith(("https://", "docs/decisions/", "constructs/hyperpod_cdk/handlers")), key


SAID: list[list[Any]] = yaml.load(
    (Path(__file__).parent / "update_rows.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)


@row_by_row("row", SAID, ids=lambda row: "-".join(row[:3]))
def test_what_the_table_says(row: list[Any]) -> None:
    resource_type, path, also, before, after, effect, words = row
    found = updates.update(resource_type, steps_of(path), before, after, circumstances_of(also))
    assert found is not None
    assert (found.effect, found.sentence[: len(words)]) == (effect, words)


@pytest.mark.parametrize(
    ("path", "before", "after", "at", "silent"),
    [
        ("LifecycleConfiguration", {"Rules": []}, None, None, True),
        ("LifecycleConfiguration.Rules", [1], None, None, True),
        # what goes along with the whole, and a rule that loses its prefix
        ("LifecycleConfiguration.Rules.Prefix", "x", None, 2, True),
        ("LifecycleConfiguration.Rules.Prefix", "x", None, None, False),
        ("LifecycleConfiguration.Rules.ExpirationInDays", 1, None, None, True),
        # a row that tells of something graver speaks of the parts, too
        ("WebsiteConfiguration.IndexDocument", "x", None, None, False),
    ],
)
def test_what_a_part_loses_is_no_loss_of_the_whole(
    path: str, before: Any, after: Any, at: int | None, *, silent: bool
) -> None:
    found = updates.update("AWS::S3::Bucket", steps_of(path), before, after, at=at)
    assert found is not None
    assert found.is_silent is silent


def test_no_row_can_be_taken_away_unseen() -> None:
    """A mutation of the table: without any one of its rows, what the table says above is something else."""
    unseen = []
    for row in ROWS:
        of_row = [
            each
            for each in SAID
            if each[6] == row["sentence"][: len(each[6])] and each[5] == row["effect"] and is_of(each[0], row["type"])
        ]
        if not any(says_less_without(row, each) for each in of_row):
            unseen.append(row)
    assert unseen == []


def says_less_without(row: dict[str, Any], said: list[Any]) -> bool:
    resource_type, path, also, before, after, *_ = said
    paths = {each for one in row.get("path", "").split(" ") for each in updates._paths(one)}
    rows = [
        each
        for each in updates._rows(resource_type)
        if (".".join(each.path), each.sentence, each.when) not in {(one, row["sentence"], each.when) for one in paths}
    ]
    arguments = (steps_of(path), before, after, circumstances_of(also))
    return updates.first(rows, *arguments) != updates.first(updates._rows(resource_type), *arguments)


def is_of(resource_type: str, pattern: str) -> bool:
    return resource_type == pattern or (pattern.endswith("*") and resource_type.startswith(pattern[:-1]))


def steps_of(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def circumstances_of(also: str) -> updates.Circumstances:
    return updates.Circumstances.of(*(also.split(", ") if also else ()))


SETTINGS: list[list[Any]] = yaml.load(
    (Path(__file__).parent / "setting_rows.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)


@row_by_row("row", SETTINGS, ids=lambda row: f"{row[0]}-{row[3]}")
def test_what_is_reported_about_a_setting(row: list[Any]) -> None:
    resource_type, names, asks, words = row
    assert updates.kind_of(resource_type) == "nothing"
    for name in names.split():
        found = updates.update(resource_type, (name,), "a", "b")
        assert found is not None, name
        assert (found.effect, found.interrupts) == ("in place", asks)
        assert found.sentence.startswith(words)
        assert found.source.startswith("https://docs.aws.amazon.com/")


def test_every_setting_is_reported_once() -> None:
    said = [(row[0], name) for row in SETTINGS for name in row[1].split()]
    told = [
        (resource_type, name)
        for row in _data.load("updates")["settings"]
        for resource_type, names in row["of"].items()
        for name in names.split()
    ]
    assert sorted(said) == sorted(told)
    assert len(set(told)) == len(told) >= 500
    rows = {(row["type"], path) for row in ROWS for path in row.get("path", "").split(" ") if "when" not in row}
    assert rows.isdisjoint(told)


TABLES_SAID: dict[str, list[list[Any]]] = yaml.load(
    (Path(__file__).parent / "update_tables.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)


def test_what_the_smaller_tables_say() -> None:
    """Each is held against what stands apart from it, row by row: none can come, go or say less unseen."""
    stateful = {
        resource_type: [each.holds, updates.costs_money(resource_type), _begins(each.deleted)]
        for resource_type, each in updates.STATEFUL.items()
    }
    said: dict[str, dict[Any, Any]] = {
        "kinds": dict(updates._KINDS),
        "outputs": {key: [".".join(path) for path in paths] for key, paths in updates._OUTPUTS.items()},
        "stateful": stateful,
        "names": {row["type"]: row["properties"] for row in _data.load("updates")["names"]},
        "protections": {key: [each.name, each.value] for key, each in updates.PROTECTIONS.items()},
        "on_replacement": {key: _begins(each.sentence) for key, each in updates.ON_REPLACEMENT.items()},
        "made_anew_without_harm": {key: _begins(each.sentence) for key, each in updates.MADE_ANEW.items()},
        "deleted_where_unused": {key: _begins(each.sentence) for key, each in updates.DELETED_WHERE_UNUSED.items()},
        "acts_on": {key: [" ".join(on), _begins(each.sentence)] for key, (on, each) in updates.ACTS_ON.items()},
        "shapes": {key: _begins(each.sentence) for key, each in updates.SHAPES.items()},
    }
    assert said.keys() == TABLES_SAID.keys()
    for table, rows in TABLES_SAID.items():
        keys = [(row[0], row[1]) if table == "outputs" else row[0] for row in rows]
        values = [row[2] if table == "outputs" else row[1:] if len(row) > 2 else row[1] for row in rows]
        assert said[table] == dict(zip(keys, values, strict=True)), table


def _begins(sentence: str) -> str:
    return " ".join(sentence.split()[:5])


def test_no_row_of_the_smaller_tables_says_what_would_hold_without_it() -> None:
    """Of the tables beside which something else answers: the kind of a whole service, the name in a schema."""
    kinds = dict(updates._KINDS)
    assert [
        name
        for name, kind in kinds.items()
        if not name.endswith("*") and kinds.get(f"{name.rpartition('::')[0]}::*") == kind
    ] == []
    for row in _data.load("updates")["names"]:
        rule = create_only.update_rule(row["type"])
        assert rule is None or updates.name_of(row["type"]) != rule.name, row["type"]
    for resource_type, attribute, paths in TABLES_SAID["outputs"]:
        for path in paths:
            assert updates.gives_another(resource_type, attribute, steps_of(path))
            # the attribute is no property of that name, of which the table need say nothing
            assert not create_only.overlap(steps_of(attribute), steps_of(path))
    # what is left behind costs what its own row says, not what its price list does
    for resource_type, _, costs, _ in TABLES_SAID["stateful"]:
        assert updates.costs_money(resource_type) is costs


@pytest.mark.parametrize(
    ("path", "speaks"),
    [
        (("LustreConfiguration",), True),
        (("LustreConfiguration", "MetadataConfiguration"), True),
        # a row of its own and none below it, as every property that holds no others
        (("LustreConfiguration", "MetadataConfiguration", "Iops"), False),
        (("FileSystemTypeVersion",), False),
        (("Nowhere",), False),
    ],
)
def test_what_stands_below_a_path(path: tuple[str, ...], *, speaks: bool) -> None:
    assert updates.speaks_below(LUSTRE, path) is speaks


A, AB, ABC = ("A",), ("A", "B"), ("A", "B", "C")
UNKNOWN = object()


def row(sentence: str, effect: updates.Effect = "in place", path: tuple[str, ...] = AB, **more: Any) -> updates.Update:
    return updates.Update(path=path, effect=effect, sentence=sentence, source="", **more)


@pytest.mark.parametrize(
    ("path", "at", "said"),
    [(AB, None, "alone"), (AB, 2, "alone"), (AB, 1, "along"), (ABC, 3, "alone"), (ABC, 2, "alone"), (ABC, 1, "along")],
)
def test_what_comes_with_all_around_it_comes_along(path: tuple[str, ...], at: int | None, said: str) -> None:
    rows = [row("along", when="along"), row("alone", when="alone")]
    found = updates.first(rows, path, None, 1, at=at)
    assert found is not None
    assert found.sentence == said


@pytest.mark.parametrize(
    ("effect", "at", "holds"), [("in place", 3, False), ("in place", 2, True), ("replaced", 3, True)]
)
@pytest.mark.parametrize(
    ("when", "before", "after"),
    [("added", None, 1), ("removed", 1, None), ("gains", [1], [1, 2]), ("alone, added", None, 1)],
)
def test_what_comes_below_a_property_leaves_it_there(
    when: str, before: Any, after: Any, effect: updates.Effect, at: int, *, holds: bool
) -> None:
    """A row without an effect speaks of the property itself, a serious one of what is below it, too."""
    assert (updates.first([row("", effect, when=when)], ABC, before, after, at=at) is not None) is holds


def test_a_row_that_interrupts_is_not_silent() -> None:
    assert updates.first([row("", when="added", interrupts=True)], ABC, None, 1, at=3) is not None


@row_by_row(
    "before, after, holds",
    [("a", "b", True), ("b", "c", True), (None, "c", True), ("a", "c", False), ("b", "a", False), ("b", None, False)],
)
def test_one_step_forward(before: str | None, after: str | None, *, holds: bool) -> None:
    rows = [row("", when="forward", order=("a", "b", "c"), default="b")]
    assert (updates.first(rows, AB, before, after) is not None) is holds


FORWARD: dict[str, Any] = {"when": "forward", "order": ("a", "b")}
PERHAPS = "its value is known only at deployment; possibly "


@row_by_row(
    "rows, before, after, found",
    [
        # the whole is known
        ([row("one", **FORWARD), row("two", "replaced")], "a", "b", ("in place", "one")),
        ([row("one", **FORWARD), row("two", "replaced")], "b", "a", ("replaced", "two")),
        # a row of another property
        ([row("one", path=("B",)), row("two", path=A)], "a", "b", ("in place", "two")),
        ([row("one", path=ABC)], "a", "b", None),
        # of unknown values a row without effect says nothing where a serious one may hold
        ([row("one", "replaced", **FORWARD), row("two")], "a", UNKNOWN, ("unknown", f"{PERHAPS}one")),
        ([row("one", "replaced", **FORWARD), row("two")], UNKNOWN, "b", ("unknown", f"{PERHAPS}one")),
        ([row("one", "replaced", **FORWARD), row("two")], UNKNOWN, UNKNOWN, ("unknown", f"{PERHAPS}one")),
        ([row("one", "replaced", **FORWARD), row("two")], "b", UNKNOWN, ("in place", "two")),
        ([row("one", "replaced", **FORWARD), row("two")], UNKNOWN, "a", ("in place", "two")),
        ([row("one", **FORWARD), row("two")], "a", UNKNOWN, ("in place", "two")),
        # a refusal says nothing for certain where an earlier row may allow it
        ([row("one", **FORWARD), row("two", "refused by the service")], "a", UNKNOWN, ("unknown", f"{PERHAPS}two")),
        (
            [row("one", **FORWARD), row("two", "refused by the service")],
            "b",
            UNKNOWN,
            ("refused by the service", "two"),
        ),
        # nor does any other row
        ([row("one", **FORWARD), row("two", "replaced")], "a", UNKNOWN, ("unknown", f"{PERHAPS}two")),
        ([row("one", "replaced", **FORWARD), row("two", "replaced")], "a", UNKNOWN, ("replaced", "two")),
        ([row("one", "replaced", when="switched on"), row("two")], None, UNKNOWN, ("unknown", f"{PERHAPS}one")),
        ([row("one", "replaced", when="suspended"), row("two")], None, UNKNOWN, ("unknown", f"{PERHAPS}one")),
        ([row("one", "replaced", when="grows"), row("two")], 1, UNKNOWN, ("in place", "two")),
        ([], "a", "b", None),
    ],
)
def test_the_first_row_that_holds(
    rows: list[updates.Update], before: Any, after: Any, found: tuple[str, str] | None
) -> None:
    first = updates.first(rows, AB, before, after)
    assert (first and (first.effect, first.sentence)) == found
    assert first is None or first in rows or (first.when, first.interrupts) == ("", False)


CIRCUMSTANCE = "a value that decides it is known only at deployment; possibly "


@row_by_row(
    "rows, also, found",
    [
        ([row("one", "replaced", when="EFA"), row("two")], {"certain": {"EFA"}}, ("replaced", "one", False)),
        ([row("one", "replaced", when="EFA"), row("two")], {}, ("in place", "two", False)),
        (
            [row("one", "replaced", when="EFA"), row("two")],
            {"possible": {"EFA"}},
            ("unknown", f"{CIRCUMSTANCE}one", True),
        ),
        # what may be spared is not certain
        (
            [row("one", when="EFA"), row("two", "nodes interrupted")],
            {"possible": {"EFA"}},
            ("unknown", f"{CIRCUMSTANCE}two", False),
        ),
        # of several the most serious
        (
            [row("one", interrupts=True, when="EFA"), row("two", "replaced", when="ONTAP"), row("three")],
            {"possible": {"EFA", "ONTAP"}},
            ("unknown", f"{CIRCUMSTANCE}two", True),
        ),
        ([row("one", "replaced", when="EFA, grows"), row("two")], {"possible": {"EFA"}}, ("in place", "two", False)),
        (
            [row("one", "replaced", when="EFA, shrinks"), row("two")],
            {"possible": {"EFA"}},
            ("unknown", f"{CIRCUMSTANCE}one", True),
        ),
        # with the same effect it does not matter
        ([row("one", when="EFA"), row("two")], {"possible": {"EFA"}}, ("in place", "two", False)),
        # an item whose name is unknown may be any
        (
            [row("one", "replaced", when="of a"), row("two")],
            {"is_any_item": True},
            ("unknown", f"{CIRCUMSTANCE}one", True),
        ),
        ([row("one", "replaced", when="EFA"), row("two")], {"is_any_item": True}, ("in place", "two", False)),
        # no row applies for certain: nothing is known
        ([row("one", "replaced", when="EFA")], {"possible": {"EFA"}}, None),
    ],
)
def test_the_row_of_a_circumstance_that_may_apply(
    rows: list[updates.Update], also: dict[str, Any], found: tuple[str, str, bool] | None
) -> None:
    first = updates.first(rows, AB, 2, 1, updates.Circumstances(**also))
    assert (first and (first.effect, first.sentence, first.may_replace)) == found


@row_by_row(
    "before, after, circumstances",
    [
        (None, False, {"to false", "switched on"}),
        (None, "false", {"to false", "switched on"}),
        (True, False, {"to false", "switched off"}),
        ("true", "false", {"to false", "switched off"}),
        (True, "false", {"to false", "switched off"}),
        (False, True, {"switched on"}),
        ("false", "true", {"switched on"}),
        (None, "true", {"switched on"}),
        (True, True, set()),
        (True, None, {"to the default"}),
        ("a", "default", {"to the default"}),
        ("default", None, set()),
        ("default", "a", set()),
        (None, "default", set()),
        (None, "a", set()),
        ("Enabled", None, {"suspended", "to the default"}),
        ("Suspended", None, {"to the default"}),
        ("Enabled", "Suspended", {"suspended"}),
        (None, "Suspended", {"suspended"}),
        ("Suspended", "Enabled", set()),
        (1, 2, {"grows"}),
        (2, "1", {"shrinks"}),
        *((size, size // 10 * 11, {"grows"}) for size in (10, 30, 100, 2400, 65_530)),
        (0, 2, {"grows"}),
        (100, 109.9, {"grows", "grows by little"}),
        (100, 99, {"shrinks"}),
        (1, 1.0, set()),
        ("a", 1, set()),
        (["a"], ["b", "a"], {"gains"}),
        (["a"], ["b"], set()),
        ([], ["b"], {"gains"}),
        ("a", "eks:b", {"reserved name"}),
        ("eks:a", "b", set()),
        ("a", "aeks:", set()),
    ],
)
def test_circumstances_of_plain_values(before: Any, after: Any, circumstances: set[str]) -> None:
    asked = {"to false", "switched off", "switched on", "to the default", "suspended", "grows", "shrinks"}
    asked |= {"grows by little", "gains", "reserved name"}
    found = updates.circumstances(before, after)
    assert found & asked == circumstances
    assert ("added" in found, "removed" in found, "was there" in found) == (
        before is None,
        before is not None and after is None,
        before is not None,
    )


@row_by_row(
    "engine, before, after, is_another",
    [
        ("postgres", "15.4", "16.1", True),
        ("postgres", "15.4", "15.5", False),
        ("mysql", "5.7.44", "8.0.35", True),
        ("mysql", "8.0.35", "8.4.1", True),
        ("mariadb", "10.6.1", "10.11.2", True),
        ("mysql", "8.0.35", "8.0.36", False),
        # as far as both are known
        ("mysql", "8", "8.4", False),
        ("mysql", "8.0", "9", False),
        ("postgres", 15, 16, True),
        ("postgres", None, "16", False),
        ("postgres", "15", "latest", False),
        ("postgres", "latest", "15", False),
    ],
)
def test_another_major_version_of_an_engine(engine: str, before: Any, after: Any, *, is_another: bool) -> None:
    assert updates.is_another_major(engine, before, after) is is_another


@row_by_row(
    "before, after, concerns",
    [
        ("[]", "[]", False),
        ('[{"kind":"NodePool"}]', '[{"kind":"NodePool"}]', False),
        ('[{"kind":"NodePool","spec":1}]', '[{"kind":"NodePool","spec":2}]', True),
        ("[]", '[{"kind":"EC2NodeClass"}]', True),
        ('[{"kind":"NodeClass"}]', "[]", True),
        ("[]", '[{"kind":"Pod"}]', False),
        ('[{"kind":"Pod","spec":1}]', '[{"kind":"Pod","spec":2}]', False),
    ],
)
def test_manifests_that_concern_karpenter(before: str, after: str, *, concerns: bool) -> None:
    assert ("node pools" in updates.circumstances(before, after)) is concerns


@row_by_row(
    "resource_type, is_foreign",
    [
        ("AWS::S3::Bucket", False),
        ("AWS::CloudFormation::CustomResource", True),
        ("AWS::S3::Bucket::MODULE", True),
        ("Custom::Other", True),
        ("Custom::HyperPodQuotaGate", False),
        ("Moon::Base::Station", True),
        ("Bucket", False),
    ],
)
def test_types_that_others_create(resource_type: str, *, is_foreign: bool) -> None:
    assert updates.is_foreign(resource_type) is is_foreign


def test_effects_below_a_property_count_for_it() -> None:
    below = updates.effects_of(EKS, "AccessConfig")
    assert {"in place", "refused by the service"} <= below
    assert updates.effects_of(EKS, "AuthenticationMode") == frozenset()
    assert updates.effects_of("Custom::Other", "ServiceToken") == {"refused by the service"}


def test_of_several_sources_the_first_is_named() -> None:
    windows, ontap = (updates.address(key) for key in ("fsx-windows", "fsx-ontap"))
    assert windows != ontap
    assert updates.address("fsx-windows, fsx-ontap, fsx-openzfs") == windows
