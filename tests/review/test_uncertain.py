"""Resources whose condition is unknown: each change of them still asks, and no sentence claims that it happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.review.model import Effect, Report, Side
from hyperpod_cdk.review.run import review
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.difference import MISSING, PropertyChange, differs_for_certain
from hyperpod_cdk.templates.values import Unknown
from tests.support.tables import row_by_row

pytestmark = pytest.mark.usefixtures("nag_here")

ROWS: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "approvals.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)
ONLY_IF = re.compile(r"^only if condition Maybe is true|unknown")
MARKED = re.compile(
    r"only if condition Maybe is true|if its condition is true|\bmay\b|unknown|depends on|whether", re.IGNORECASE
)
SECTIONS: dict[str, Any] = {
    "Parameters": {"Unknown": {"Type": "String"}},
    "Conditions": {"Maybe": {"Fn::Equals": [{"Ref": "Unknown"}, "x"]}},
}


def side(resources: dict[str, Any]) -> Assembly:
    bodies = {
        name: {
            "Type": kind[1:] if kind.startswith("!") else f"AWS::{kind}",
            "Properties": properties,
            "Condition": "Maybe",
        }
        for name, (kind, properties) in resources.items()
    }
    stack = Stack(name="prod", template={**SECTIONS, "Resources": bodies}, account="111122223333", region="us-east-1")
    return Assembly(environment="", stacks=(stack,))


def reviewed(row: dict[str, Any]) -> Report:
    return review(side(row["before"]), side(row["after"]), base_side=Side(label="a"), head_side=Side(label="b"))


def sentences(report: Report) -> list[str]:
    """Every sentence of a report that says what happens to a resource."""
    return [
        *(each.sentence for each in report.verdict.needs_approval),
        *(each.message for each in report.verdict.attention if each.about != "policy"),
        *(each.summary for each in report.blast_radius.resources),
        *(each.why for each in report.blast_radius.left_behind),
    ]


# every third one has every kind of sentence
@row_by_row("row", ROWS[::3], ids=lambda row: row["change"])
def test_what_may_not_exist_is_never_claimed(row: dict[str, Any]) -> None:
    report = reviewed(row)
    assert [each for each in sentences(report) if not MARKED.search(each)] == []
    given = [*(each.sentence for each in report.access.grants), *(each.sentence for each in report.access.reach)]
    assert [each for each in given if not ONLY_IF.search(each)] == []
    kinds = {each.partition(":")[0] for each in row["reasons"]}
    assert kinds <= {each.kind.value for each in report.verdict.needs_approval}


FILES = {"FileSystemType": "LUSTRE", "StorageCapacity": 2400, "SubnetIds": ["subnet-1"]}
TOPIC = {"Other": ["SNS::Topic", {}]}


def test_what_may_not_exist_may_be_deleted() -> None:
    report = reviewed({"before": {**TOPIC, "Fs": ["FSx::FileSystem", FILES]}, "after": TOPIC})
    assert report.verdict.sentence == "May delete 1 file system."
    (found,) = report.blast_radius.resources
    assert (found.is_certain, found.condition) == (False, "Maybe")
    assert [each.is_certain for each in report.verdict.attention] == [False]
    assert [each.name for each in report.timeline.steps] == ["Fs (only if Maybe is true)"]


@pytest.mark.parametrize(
    ("name", "is_certain"),
    [
        ("b", True),
        ({"Ref": "Unknown"}, False),
        ({"Fn::If": ["Maybe", "a", "b"]}, False),
        ({"Fn::Sub": "b-${Unknown}"}, False),
        ({"Fn::ImportValue": "name"}, False),
    ],
)
def test_a_value_that_may_be_the_same_may_replace(name: Any, *, is_certain: bool) -> None:
    def of(stated: Any) -> Assembly:
        template = {**SECTIONS, "Resources": {"It": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": stated}}}}
        return Assembly(environment="", stacks=(Stack(name="prod", template=template),))

    report = review(of("a"), of(name), base_side=Side(label="a"), head_side=Side(label="b"))
    (found,) = report.blast_radius.resources
    assert (found.effect, found.is_certain, found.condition) == (Effect.REPLACED, is_certain, None)
    assert ("may replace it" in found.summary) is not is_certain
    assert report.verdict.sentence.startswith("Replaces 1 bucket." if is_certain else "May replace 1 bucket.")


@row_by_row(
    "before, after, is_certain",
    [
        ("a", "b", True),
        (Unknown("${A}"), "b", False),
        (Unknown("${A}"), Unknown("${B}"), False),
        # what is around the same unknown value differs
        ("a-${A}", "b-${A}", True),
        ("${A}-a", "${B}-a", False),
        (MISSING, Unknown("{if C: a, else nothing}"), False),
        (MISSING, "a", True),
        ([Unknown("${A}"), "a"], [Unknown("${A}"), "b"], True),
    ],
)
def test_whether_a_property_differs(before: Any, after: Any, *, is_certain: bool) -> None:
    change = PropertyChange(steps=("A",), before=before, after=after)
    assert differs_for_certain(change) is is_certain


GONE = "a group that is omitted is deleted with its nodes{} and all data on their volumes"


@row_by_row(
    "count, has_any, is_certain",
    [
        (1, "", True),
        ("2", "", True),
        ({"Ref": "Unknown"}, ", if it has any,", False),
        ({"Fn::If": ["Maybe", 0, 2]}, ", if it has any,", False),
        (None, ", if it has any,", False),
    ],
)
def test_a_group_of_an_unknown_number_of_nodes_may_have_none(count: Any, has_any: str, *, is_certain: bool) -> None:
    def of(*groups: dict[str, Any]) -> Assembly:
        properties = {"InstanceGroups": [{"InstanceType": "ml.p5.48xlarge", **each} for each in groups]}
        template = {**SECTIONS, "Resources": {"It": {"Type": "AWS::SageMaker::Cluster", "Properties": properties}}}
        return Assembly(environment="", stacks=(Stack(name="prod", template=template),))

    stays = {"InstanceGroupName": "a", "InstanceCount": 1}
    goes = {"InstanceGroupName": "b", **({} if count is None else {"InstanceCount": count})}
    report = review(of(stays, goes), of(stays), base_side=Side(label="a"), head_side=Side(label="b"))
    (found,) = report.blast_radius.resources
    assert (found.effect, found.is_certain) == (Effect.INTERRUPTED, is_certain)
    # the group itself is deleted in any case
    assert found.summary.startswith("Instance group b (")
    assert found.summary.endswith(f") is deleted: {GONE.format(has_any)}.")
    does = "Interrupts" if is_certain else "May interrupt"
    assert report.verdict.sentence.startswith(f"{does} the nodes of 1 instance group.")
    assert [each.kind.value for each in report.verdict.needs_approval][:1] == ["deletion"]
