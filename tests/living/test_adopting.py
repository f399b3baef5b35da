"""What AWS has, written into a file: only the values that differ change, and what no file can say is named."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.config.source import read_source
from hyperpod_cdk.living.adopting import adopted
from hyperpod_cdk.living.model import Difference, Next
from tests.support.tables import row_by_row

FILE = """\
# what we run
name: dev
eks:
  # who gets in
  admin_role_arns: [arn:aws:iam::111122223333:role/admin]
hyperpod:
  # two groups
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 2} # enough
    # the big one
    - name: h100
      count: 4 # seats of the plan

      labels: {tier: "gold", "example.com/team": 'research'}
  restricted_instance_groups: [{name: nova, count: 1}]
storage:
  lustre:
    - {name: scratch, capacity_gib: 4800, throughput_mbps_per_tib: 250}
task_governance:
  teams:
    - name: research
      quota:
        - instance_type: ml.p5.48xlarge # theirs
          count: 2
"""
CLUSTER, ADD_ON = "AWS::SageMaker::Cluster", "AWS::EKS::Addon"
FILE_SYSTEM, QUOTA = "AWS::FSx::FileSystem", "AWS::SageMaker::ComputeQuota"
PROPERTIES: dict[str, dict[str, Any]] = {
    FILE_SYSTEM: {"Tags": [{"Key": "Name", "Value": "dev-scratch"}]},
    QUOTA: {"ComputeQuotaTarget": {"TeamName": "research"}},
}


def difference(kind: str, path: str, actual: str | None, *, file: str | None = "other", id: str = "") -> Difference:  # noqa: A002 - the model's word
    return Difference(
        stack="dev-hyperpod",
        resource="It",
        type=kind,
        id=id,
        path=path,
        deployed="other",
        file=file,
        actual=actual,
        next=Next(effect="nothing", sentence=""),
    )


def written(*differences: Difference, text: str = FILE) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the lines that changed, before and after, and why the rest is left."""
    found = adopted(text, differences, lambda each: PROPERTIES.get(each.type, {}), environment="dev")
    before, after = text.splitlines(), found.text.splitlines()
    if len(before) < len(after):
        (number,) = [number for number in range(len(after)) if after[:number] + after[number + 1 :] == before][-1:]
        before.insert(number, "")
    return [row for row in zip(before, after, strict=True) if row[0] != row[1]], [each.why for each in found.left]


@row_by_row(
    "one, before, after",
    [
        (
            difference(CLUSTER, "InstanceGroups[h100].InstanceCount", "6"),
            "      count: 4 # seats of the plan",
            "      count: 6 # seats of the plan",
        ),
        (
            difference(CLUSTER, "InstanceGroups[system].InstanceCount", "12"),
            "    - {name: system, instance_type: ml.m5.2xlarge, count: 2} # enough",
            "    - {name: system, instance_type: ml.m5.2xlarge, count: 12} # enough",
        ),
        (
            difference(CLUSTER, "RestrictedInstanceGroups[nova].InstanceCount", "0"),
            "  restricted_instance_groups: [{name: nova, count: 1}]",
            "  restricted_instance_groups: [{name: nova, count: 0}]",
        ),
        (
            difference(CLUSTER, "InstanceGroups[system].MinInstanceCount", "1"),
            "    - {name: system, instance_type: ml.m5.2xlarge, count: 2} # enough",
            "    - {name: system, instance_type: ml.m5.2xlarge, count: 2, min_count: 1} # enough",
        ),
        (difference(CLUSTER, "InstanceGroups[h100].MinInstanceCount", "1"), "", "      min_count: 1"),
        (
            difference(CLUSTER, "InstanceGroups[h100].KubernetesConfig.Labels.tier", "07"),
            """      labels: {tier: "gold", "example.com/team": 'research'}""",
            """      labels: {tier: "07", "example.com/team": 'research'}""",
        ),
        (
            difference(CLUSTER, "InstanceGroups[h100].KubernetesConfig.Labels.example.com/team", "on"),
            """      labels: {tier: "gold", "example.com/team": 'research'}""",
            """      labels: {tier: "gold", "example.com/team": 'on'}""",
        ),
        (difference(CLUSTER, "NodeRecovery", "None"), "", "  node_recovery: none"),
        (
            difference(FILE_SYSTEM, "LustreConfiguration.PerUnitStorageThroughput", "500"),
            "    - {name: scratch, capacity_gib: 4800, throughput_mbps_per_tib: 250}",
            "    - {name: scratch, capacity_gib: 4800, throughput_mbps_per_tib: 500}",
        ),
        (
            difference(QUOTA, "ComputeQuotaConfig.ComputeQuotaResources[ml.p5.48xlarge].Count", "3"),
            "          count: 2",
            "          count: 3",
        ),
    ],
)
def test_one_value_changes_and_nothing_else(one: Difference, before: str, after: str) -> None:
    assert written(one) == ([(before, after)], [])


def test_a_comment_keeps_the_lines_below_it() -> None:
    """A key that is new comes below the last value of its mapping."""
    add_on = difference(ADD_ON, "AddonVersion", "v1.20.4-eksbuild.2", id="dev-eks|vpc-cni")
    both = [difference(CLUSTER, "NodeRecovery", "None"), add_on]
    text = adopted(FILE, both, lambda _: {}, environment="dev").text
    assert "  restricted_instance_groups: [{name: nova, count: 1}]\n  node_recovery: none\nstorage:\n" in text
    assert "role/admin]\n  addon_versions:\n    vpc-cni: v1.20.4-eksbuild.2\nhyperpod:\n" in text


@pytest.mark.parametrize(
    ("number", "line", "why"),
    [
        (2, 'tags: {cost-center: "43"}', []),
        (
            3,
            "tags: {cost-center: 42}",
            [
                (
                    "the file has one value of tag cost-center for all resources, and AWS has another one on 1 other"
                    " resource"
                ),
                (
                    "the file has one value of tag cost-center for all resources, and AWS has another one on 1 other"
                    " resource"
                ),
            ],
        ),
    ],
)
def test_a_tag_is_written_where_all_that_has_it_changed_alike(number: int, line: str, why: list[str]) -> None:
    text = FILE.replace("name: dev\n", "name: dev\ntags: {cost-center: 42}\n")
    both = [difference(each, "Tags[cost-center]", "43") for each in (CLUSTER, FILE_SYSTEM)]
    found = adopted(text, both, lambda _: {}, environment="dev", tagged=lambda _: number)
    assert found.text.splitlines()[2] == line
    assert [each.why for each in found.left] == why


def test_what_the_file_says_already_stays() -> None:
    assert written(difference(CLUSTER, "InstanceGroups[h100].InstanceCount", "4", file="4")) == ([], [])


NO_FIELD = "no field of the file is known for it; edit the file by hand, or let the next deployment set it back"
GROWN = (
    "a deployment would ask FSx for the capacity that it already has, and FSx accepts only a greater one"
    " (UpdateFileSystem); leave the file as it is until you need more"
)
NO_PARENT = "the file does not have the item that it belongs to; add it by hand"


@row_by_row(
    "one, why",
    [
        (
            difference(CLUSTER, "Tags[owner]", "me"),
            "the file has no tag owner; if you add it under tags, all resources get it",
        ),
        (
            difference(FILE_SYSTEM, "StorageCapacity", "7200"),
            GROWN,
        ),
        (difference(CLUSTER, "InstanceGroups[h100].ThreadsPerCore", "1"), NO_FIELD),
        (difference("AWS::EC2::RouteTable", "Routes[0]", "nat"), NO_FIELD),
        (difference(FILE_SYSTEM, "StorageType", "HDD"), NO_FIELD),
        (
            difference(CLUSTER, "InstanceGroups[by-hand]", "there"),
            (
                "no deployment created group by-hand, and every group of the file differs in more than name and"
                " count; add it by hand"
            ),
        ),
        (difference(CLUSTER, "InstanceGroups[gone].InstanceCount", "2"), NO_PARENT),
        (difference(QUOTA, "ComputeQuotaConfig.ComputeQuotaResources[ml.g5.xlarge].Count", "3"), NO_PARENT),
        (
            difference(ADD_ON, "", None),
            "AWS has nothing there; remove it from the file, or let a deployment create it again",
        ),
    ],
)
def test_what_no_file_can_say_is_named(one: Difference, why: str) -> None:
    assert written(one) == ([], [why])


def row(name: str, count: int, **more: Any) -> dict[str, Any]:
    """Return a group as DescribeCluster has it."""
    return {
        "InstanceGroupName": name,
        "TargetCount": count,
        "CurrentCount": count,
        "Status": "InService",
        "InstanceType": "ml.m5.2xlarge" if name in {"system", "other"} else "ml.p5.48xlarge",
        "OverrideVpcConfig": {"Subnets": ["subnet-a"], "SecurityGroupIds": ["sg-b", "sg-a"]},
        "KubernetesConfig": {"DesiredLabels": {"tier": "gold"}, "CurrentLabels": {}},
        **more,
    }


ROWS = [row("system", 2), row("h100", 4), row("nova", 1, InstanceType="ml.p4d.24xlarge")]


def with_group(made: dict[str, Any], *, place: str = "InstanceGroups", text: str = FILE) -> tuple[list[str], list[str]]:
    """Return the lines that a group made by hand adds, and why it is left."""
    one = difference(CLUSTER, f"{place}[{made['InstanceGroupName']}]", "there", file=None)
    found = adopted(text, [one], lambda _: {}, environment="dev", rows=lambda _: [*ROWS, made])
    assert yaml.safe_load(found.text) is not None
    new = list(unified_diff(text.splitlines(), found.text.splitlines(), n=0, lineterm=""))[3:]
    return new, [each.why for each in found.left]


def test_a_group_made_by_hand_is_written_as_the_one_that_it_equals() -> None:
    """In the way of the one that it equals, at the end of the list, without that one's comments."""
    assert with_group(row("other", 3)) == (["+    - {name: other, instance_type: ml.m5.2xlarge, count: 3}"], [])
    labels = """+      labels: {tier: "gold", "example.com/team": 'research'}"""
    assert with_group(row("more", 1, Status="Updating", CurrentCount=0)) == (
        ["+    - name: more", "+      count: 1", labels],
        [],
    )
    by_type = {"InstanceType": "ml.p4d.24xlarge"}
    assert with_group(row("nova-2", 5, **by_type), place="RestrictedInstanceGroups") == (
        [
            "-  restricted_instance_groups: [{name: nova, count: 1}]",
            "+  restricted_instance_groups: [{name: nova, count: 1}, {name: nova-2, count: 5}]",
        ],
        [],
    )


@pytest.mark.parametrize(
    "more",
    [
        {"InstanceType": "ml.g5.xlarge"},
        {"OverrideVpcConfig": {"Subnets": ["subnet-b"], "SecurityGroupIds": ["sg-a", "sg-b"]}},
        {"KubernetesConfig": {"DesiredLabels": {"tier": "silver"}}},
        {"TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/p"},
        {"MinCount": 1},
    ],
)
def test_a_group_made_by_hand_that_no_group_equals_is_left(more: dict[str, Any]) -> None:
    added, left = with_group(row("more", 1, **more))
    assert added == []
    assert [each.partition(",")[0] for each in left] == ["no deployment created group more"]


WHOLE = """\
name: dev # beginning of all names
account: "111122223333"
region: us-east-1
tags: {cost-center: "0042"}
eks:
  # who gets in
  admin_role_arns: ["arn:aws:iam::111122223333:role/admin"]
  public_access_cidrs: [54.240.193.128/26]
network: {availability_zones: {use1-az5: {}, use1-az4: {}}}
hyperpod:
  # two groups
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 2, availability_zone_id: use1-az4} # enough

    # the big one
    - name: h100
      instance_type: ml.p5.48xlarge
      count: 4 # seats of the plan
      # where the plan is
      availability_zone_id: use1-az5
      capacity: on_demand
      labels: {tier: "07", "example.com/team": 'research'}
storage:
  lustre:
    - name: scratch # a month's work
      availability_zone_id: use1-az5
      capacity_gib: 4800
      throughput_mbps_per_tib: 250
task_governance:
  teams:
    - name: research
      fair_share_weight: 10
      quota:
        - instance_type: ml.p5.48xlarge # theirs
          count: 2
# the end
"""
IN_FLOW = re.sub(
    r"    - name: h100\n.*?(?=storage:)",
    """    - {
        name: h100, # the big one
        instance_type: ml.p5.48xlarge,
        count: 4, availability_zone_id: use1-az5,
        capacity: on_demand,
        labels: {tier: "07", "example.com/team": 'research'},
      }
""",
    WHOLE,
    flags=re.DOTALL,
)
AWKWARD: dict[str, str] = {
    "as it is": WHOLE,
    "CRLF": WHOLE.replace("\n", "\r\n"),
    "BOM": f"\ufeff{WHOLE}",
    "BOM and CRLF": f"\ufeff{WHOLE}".replace("\n", "\r\n"),
    "both ends of lines": WHOLE.replace("\n", "\r\n", 12),
    "no newline at the end": WHOLE.removesuffix("\n# the end\n"),
    "CRLF and no newline at the end": WHOLE.removesuffix("\n# the end\n").replace("\n", "\r\n"),
    "document marks": f"---\n{WHOLE}...\n",
    "a directive": f"%YAML 1.1\n---\n{WHOLE}",
    "anchors": re.sub(r"(count|name): ", r"\1: &\1 ", WHOLE).replace("lustre:", "lustre: &all"),
    "flow over lines": IN_FLOW,
    "flow over lines and CRLF": IN_FLOW.replace("\n", "\r\n"),
    "one line of JSON": json.dumps(yaml.safe_load(WHOLE)),
    "JSON over lines": json.dumps(yaml.safe_load(WHOLE), indent=1),
    "written by PyYAML": yaml.safe_dump(yaml.safe_load(WHOLE)),
    "quoted keys": re.sub(r"(?m)^( *(?:- )?)([a-z_]+):", r'\1"\2":', WHOLE),
    "quotes of the other kind": WHOLE.replace("'research'", "research").replace('"07"', "'07'"),
    "comments everywhere": re.sub(r"(?m)^( *)(- )?([a-z_]+:.*)$", r"\1# - {name: h100, count: 1}\n\1\2\3", WHOLE),
    "empty lines and blanks": re.sub(r"(?m)$", "  \n", WHOLE),
    "keys aside of their colons": re.sub(r"(?m)^( *)([a-z_]+): ", r"\1\2  :   ", WHOLE),
    "comments of another script": WHOLE.replace("# two", "# zwei Gr\u00fc\u00dfe \U0001f600: two"),
    "dashes on lines of their own": WHOLE.replace("    - name: h100", "    -\n      name: h100"),
    "items far from their dashes": re.sub(r"(?m)^( *)- name: (h100|scratch)(.*)$", r"\1-\n\1  name: \2\3", WHOLE),
}
"""Files that say the same, each in a way of its own."""

ROW_OF_H100 = row("h100", 4)
ADOPTED: list[tuple[Difference, Callable[[Any], object]]] = [
    (
        difference(CLUSTER, "InstanceGroups[h100].InstanceCount", "6"),
        lambda data: data["hyperpod"]["instance_groups"][1].update(count=6),
    ),
    (
        difference(CLUSTER, "InstanceGroups[system].InstanceCount", "12"),
        lambda data: data["hyperpod"]["instance_groups"][0].update(count=12),
    ),
    (
        difference(CLUSTER, "InstanceGroups[h100].MinInstanceCount", "1"),
        lambda data: data["hyperpod"]["instance_groups"][1].update(min_count=1),
    ),
    (
        difference(CLUSTER, "InstanceGroups[h100].KubernetesConfig.Labels.tier", "1e3"),
        lambda data: data["hyperpod"]["instance_groups"][1]["labels"].update(tier="1e3"),
    ),
    (
        difference(CLUSTER, "InstanceGroups[h100].KubernetesConfig.Labels.example.com/team", "on"),
        lambda data: data["hyperpod"]["instance_groups"][1]["labels"].update({"example.com/team": "on"}),
    ),
    (
        difference(CLUSTER, "InstanceGroups[system].KubernetesConfig.Labels.example.com/use", "null"),
        lambda data: data["hyperpod"]["instance_groups"][0].update(labels={"example.com/use": "null"}),
    ),
    (difference(CLUSTER, "NodeRecovery", "None"), lambda data: data["hyperpod"].update(node_recovery="none")),
    (
        difference(ADD_ON, "AddonVersion", "v1.20.4-eksbuild.2", id="dev-eks|vpc-cni"),
        lambda data: data["eks"].update(addon_versions={"vpc-cni": "v1.20.4-eksbuild.2"}),
    ),
    (
        difference(FILE_SYSTEM, "LustreConfiguration.PerUnitStorageThroughput", "500"),
        lambda data: data["storage"]["lustre"][0].update(throughput_mbps_per_tib=500),
    ),
    (
        difference(QUOTA, "ComputeQuotaConfig.ComputeQuotaResources[ml.p5.48xlarge].Count", "3"),
        lambda data: data["task_governance"]["teams"][0]["quota"][0].update(count=3),
    ),
    (
        difference(CLUSTER, "Tags[cost-center]", "1_0: 2 = -@"),
        lambda data: data["tags"].update({"cost-center": "1_0: 2 = -@"}),
    ),
    (
        difference(CLUSTER, "InstanceGroups[more]", "there", file=None),
        lambda data: data["hyperpod"]["instance_groups"].append(
            {**data["hyperpod"]["instance_groups"][1], "name": "more", "count": 3}
        ),
    ),
]
"""Each kind of field that is adopted, and what the file says then."""


def _comments(text: str) -> list[str]:
    """Return the comments in their order; a group in braces is copied with those that stand within."""
    return [*dict.fromkeys(found[0] for line in text.splitlines() if (found := re.search(r"#.*$", line)))]


@row_by_row("name", AWKWARD)
def test_each_kind_of_field_is_adopted_in_each_way_of_writing(name: str) -> None:
    """The file then says that, and is valid; each of its lines but one stays, with its end, in its order."""
    text = AWKWARD[name]
    rows = [row("system", 2), ROW_OF_H100, row("more", 3)]

    def adopting(*differences: Difference) -> str:
        found = adopted(
            text, differences, lambda each: PROPERTIES.get(each.type, {}), environment="dev", rows=lambda _: rows
        )
        assert [(each.difference.path, each.why) for each in found.left] == []
        return found.text

    def data_of(of: str) -> Any:
        return copy.deepcopy(read_source(of.removeprefix("\ufeff"), "").data)

    together = data_of(text)
    assert together == data_of(WHOLE)
    for one, edit in ADOPTED:
        wanted, after = data_of(text), adopting(one)
        edit(wanted)
        edit(together)
        assert (one.path, data_of(after)) == (one.path, wanted)
        load_environment(Path("dev.yaml"), text=after)
        assert after.startswith("\ufeff") == text.startswith("\ufeff")
        assert (one.path, _comments(after)) == (one.path, _comments(text))
        assert "\n" not in re.sub("\r\n", "", after) or "\n" in re.sub("\r\n", "", text)
        before, now = text.splitlines(keepends=True), after.splitlines(keepends=True)
        changed = [each for each in ndiff_of(before, now) if each.startswith("-")]
        assert len(changed) <= 1, (one.path, changed)
    whole = adopting(*(each for each, _ in ADOPTED))
    assert data_of(whole) == together
    assert _comments(whole) == _comments(text)


def ndiff_of(before: list[str], now: list[str]) -> list[str]:
    """Return the lines that are taken away and added."""
    return [each for each in unified_diff(before, now, n=0) if each[:3] not in ("---", "+++")]


@pytest.mark.parametrize(
    ("text", "one", "why"),
    [
        ("hyperpod: [a]\n", difference(CLUSTER, "NodeRecovery", "None"), "hyperpod is not a mapping; "),
        (
            WHOLE.replace("count: 4", "count:\n        - 4"),
            difference(CLUSTER, "InstanceGroups[h100].InstanceCount", "6"),
            "hyperpod.instance_groups[1].count is not a single value; write it by hand",
        ),
        (WHOLE, difference(CLUSTER, "InstanceGroups[h100].InstanceCount", "many"), NO_FIELD),
    ],
)
def test_what_stands_otherwise_than_expected_is_left(text: str, one: Difference, why: str) -> None:
    found = adopted(text, [one], lambda _: {}, environment="dev")
    assert found.text == text
    assert [each.why[: len(why)] for each in found.left] == [why]
