"""Tags that change on what stands, and by which something selects it; expectations from the pages in review/tags.py."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.review.model import Reason, ReasonKind, Side
from hyperpod_cdk.review.run import review
from hyperpod_cdk.templates.assembly import Assembly, Stack
from tests.support.tables import row_by_row

pytestmark = pytest.mark.usefixtures("nag_here")

Body = dict[str, Any]


def side(resources: Body) -> Assembly:
    stack = Stack(name="prod", template={"Resources": resources}, account="111122223333", region="us-east-1")
    return Assembly(environment="", stacks=(stack,))


def asked(before: Body, after: Body) -> tuple[Reason, ...]:
    return review(
        side(before), side(after), base_side=Side(label="a"), head_side=Side(label="b")
    ).verdict.needs_approval


def tagged(kind: str, tags: Any, **properties: Any) -> Body:
    stated = {} if tags is None else {"Tags": tags}
    return {"It": {"Type": f"AWS::{kind}", "Properties": {**properties, **stated}}}


def listed(**tags: str) -> list[Body]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def by(kind: str, **properties: Any) -> Body:
    return {"By": {"Type": f"AWS::{kind}", "Properties": properties}}


def permits(condition: Body) -> Body:
    statement = {"Effect": "Allow", "Action": "ec2:DeleteVolume", "Resource": "*", "Condition": condition}
    return by("IAM::ManagedPolicy", PolicyDocument={"Statement": [statement]}, Roles=["r"])


SNAPSHOTS = by("DLM::LifecyclePolicy", State="ENABLED", PolicyDetails={"TargetTags": [{"Key": "team", "Value": "a"}]})
COMMANDS = by("SSM::Association", Name="AWS-RunShellScript", Targets=[{"Key": "tag:team", "Values": ["a"]}])
SELECTING: list[tuple[Body, ReasonKind, str]] = [
    (
        permits({"StringEquals": {"aws:ResourceTag/team": "a"}}),
        ReasonKind.ACCESS,
        "The tag team of the volume changes, and conditions of managed IAM policy By use it to decide who may do what.",
    ),
    (
        # IAM does not show small and large letters of a condition's key apart
        permits({"StringEquals": {"ec2:resourceTag/Team": "a"}}),
        ReasonKind.ACCESS,
        "The tag team of the volume changes, and conditions of managed IAM policy By use it to decide who may do what.",
    ),
    (
        SNAPSHOTS,
        ReasonKind.PROTECTION,
        "The tag team of the volume changes, and lifecycle policy By use it to select what they copy.",
    ),
    (
        by("Backup::BackupSelection", BackupSelection={"ListOfTags": [{"ConditionKey": "team"}]}),
        ReasonKind.PROTECTION,
        "The tag team of the volume changes, and backup selection By use it to select what they copy.",
    ),
    (
        by(
            "Backup::BackupSelection", BackupSelection={"Conditions": {"a": [{"ConditionKey": "aws:ResourceTag/team"}]}}
        ),
        ReasonKind.PROTECTION,
        "The tag team of the volume changes, and backup selection By use it to select what they copy.",
    ),
    (
        by("RBin::Rule", ResourceType="EBS_SNAPSHOT", ResourceTags=[{"ResourceTagKey": "team"}]),
        ReasonKind.PROTECTION,
        "The tag team of the volume changes, and rule By use it to select what they copy.",
    ),
    (
        COMMANDS,
        ReasonKind.INTERRUPTION,
        "The tag team of the volume changes, and association By use it to select their targets.",
    ),
    (
        # a map of tags, as fault injection has it
        by("FIS::ExperimentTemplate", Targets={"a": {"ResourceTags": {"team": "a"}}}),
        ReasonKind.INTERRUPTION,
        "The tag team of the volume changes, and experiment template By use it to select their targets.",
    ),
]


@pytest.mark.parametrize(("selecting", "kind", "said"), SELECTING)
@pytest.mark.parametrize("tags", [None, listed(team="b"), listed(Team="a")])
def test_a_tag_by_which_something_selects(selecting: Body, kind: ReasonKind, said: str, tags: Any) -> None:
    volume = {"AvailabilityZone": "us-east-1a", "Size": 1}
    before, after = tagged("EC2::Volume", listed(team="a"), **volume), tagged("EC2::Volume", tags, **volume)
    for old, new in ((before, after), (after, before)):
        found = asked({**old, **selecting}, {**new, **selecting})
        assert (kind, said, "Tags[team]") in [(each.kind, each.sentence, each.property) for each in found]


@pytest.mark.parametrize(
    "beside",
    [
        {},
        # its own tags, those of what it makes, and those of objects select nothing
        by("SNS::Topic", Tags=listed(team="a")),
        by("EC2::LaunchTemplate", LaunchTemplateData={"TagSpecifications": [{"Tags": listed(team="a")}]}),
        by("DLM::LifecyclePolicy", PolicyDetails={"Schedules": [{"TagsToAdd": listed(team="a")}]}),
        by("S3::Bucket", LifecycleConfiguration={"Rules": [{"TagFilters": listed(team="a"), "Status": "Disabled"}]}),
        permits({"StringEquals": {"aws:ResourceTag/owner": "a"}}),
        permits({"StringEquals": {"aws:RequestTag/team": "a"}}),
    ],
)
def test_a_tag_by_which_nothing_selects(beside: Body) -> None:
    before, after = (tagged("EC2::Subnet", listed(team=each), VpcId="v") for each in ("a", "b"))
    assert asked({**before, **beside}, {**after, **beside}) == ()


@pytest.mark.parametrize("selecting", [SNAPSHOTS, COMMANDS])
def test_an_unchanged_or_inherited_tag_is_not_reported(selecting: Body) -> None:
    one, other = listed(team="a", x="y"), listed(x="z", team="a")
    before, after = (tagged("EC2::Subnet", each, VpcId="v") for each in (one, other))
    assert asked({**before, **selecting}, {**after, **selecting}) == ()
    assert asked(selecting, {**after, **selecting}) == ()


@row_by_row(
    "key, asks",
    [
        ("karpenter.sh/discovery", True),
        ("kubernetes.io/role/internal-elb", True),
        ("kubernetes.io/cluster/prod", True),
        ("k8s.io/cluster-autoscaler/enabled", True),
        ("elbv2.k8s.aws/cluster", True),
        ("mykubernetes.io/role/elb", False),
        ("kubernetes.io/", False),
        ("Name", False),
    ],
)
def test_tags_that_controllers_look_for(key: str, asks: bool) -> None:  # noqa: FBT001 - a table
    before, after = (
        tagged("EC2::Subnet", tags, VpcId="v") for tags in ([{"Key": key, "Value": "1"}], [{"Key": "a", "Value": "b"}])
    )
    said = f"The tag {key} of the subnet changes, and controllers in a cluster find it by this tag."
    assert [(each.kind, each.sentence) for each in asked(before, after)] == (
        [(ReasonKind.INTERRUPTION, said)] if asks else []
    )


def test_tags_of_other_forms() -> None:
    """Some types have their tags as a map, or under another name (CloudFormation template reference)."""
    condition = permits({"StringEquals": {"aws:ResourceTag/team": "a"}})
    before, after = (tagged("SSM::Parameter", {"team": each}, Type="String", Value="v") for each in ("a", "b"))
    assert [each.kind for each in asked({**before, **condition}, {**after, **condition})] == [ReasonKind.ACCESS]
    before, after = (
        {"It": {"Type": "AWS::EFS::FileSystem", "Properties": {"FileSystemTags": listed(team=each)}}} for each in "ab"
    )
    found = asked({**before, **condition}, {**after, **condition})
    assert [(each.kind, each.property) for each in found] == [(ReasonKind.ACCESS, "FileSystemTags[team]")]
