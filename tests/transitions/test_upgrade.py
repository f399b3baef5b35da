"""Upgrades: what is outdated, the steps, what the first step writes, and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.checks.policy import VERBS
from hyperpod_cdk.config import load_environment
from hyperpod_cdk.transitions.ages import Ages, Offer, Software, read_ages
from hyperpod_cdk.transitions.model import Upgrade
from hyperpod_cdk.transitions.pages import upgrade_text
from hyperpod_cdk.transitions.upgrade import Asked, Locks, upgrade
from tests.living.test_status import opened
from tests.support.scripted_aws import Fails

NOW = datetime(2026, 11, 23, 10, tzinfo=UTC)
UPGRADED = datetime(2026, 11, 20, 9, tzinfo=UTC)
EARLIER, LATER = UPGRADED - timedelta(days=30), UPGRADED + timedelta(hours=1)
FILE = "environments/dev.yaml"
TEXT = """\
name: dev
account: "111122223333"
region: us-east-1
eks:
  kubernetes_version: "1.33" # until the summer
  admin_role_arns: ["arn:aws:iam::111122223333:role/admin"]
  public_access_cidrs: [54.240.193.128/26]
  addon_versions:
    kube-proxy: v1.33.5-eksbuild.2 # with the control plane
network: {availability_zones: {use1-az5: {}, use1-az4: {}}}
hyperpod:
  instance_groups:
    - {name: system, instance_type: ml.m5.2xlarge, count: 2, availability_zone_id: use1-az4}
    - name: a10g
      instance_type: ml.g5.12xlarge
      count: 1
      availability_zone_id: use1-az4
      capacity: on_demand
      image: {release_version: 1.4.0}
"""
LIBRARY = ("b" * 40, "the library's\n")
NAMES = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns")


def offers(**others: dict[str, Offer]) -> dict[str, dict[str, Offer]]:
    """Return what EKS has: one version of each add-on for all, but a kube-proxy for each minor and two of coredns."""
    one = {"1.33": 1, "1.34": 1, "1.35": 1}
    found = {name: {minor: offer("v1.20.4-eksbuild.1") for minor in one} for name in NAMES}
    found["kube-proxy"] = {minor: offer(f"v{minor}.5-eksbuild.2") for minor in one}
    new, old = "v1.14.2-eksbuild.4", "v1.12.4-eksbuild.1"
    found["coredns"] = {"1.33": offer(old), "1.34": offer(new, old), "1.35": offer(new)}
    return {**found, **{name.replace("_", "-"): each for name, each in others.items()}}


def offer(*versions: str) -> Offer:
    return Offer(versions=frozenset(versions), default=versions[0])


def ages(version: str = "1.33", *, updated: datetime = LATER, release: str = "1.4.0", **more: Any) -> Ages:
    """Return what stands: deployed as the file says, its nodes younger than the last upgrade."""
    stands = {
        "is_deployed": True,
        "kubernetes": version,
        "upgraded": UPGRADED,
        "addons": {
            "vpc-cni": "v1.20.4-eksbuild.1",
            "kube-proxy": "v1.33.5-eksbuild.2",
            "eks-pod-identity-agent": "v1.20.4-eksbuild.1",
            "coredns": "v1.12.4-eksbuild.1",
        },
        "offers": offers(),
        "groups": {name: Software(release=release, updated=updated) for name in ("system", "a10g")},
    }
    return Ages(**{**stands, **more})


def run(
    text: str = TEXT, *, stands: Ages | None = None, own: str | None = None, now: datetime = NOW, **asked: Any
) -> tuple[Upgrade, dict[str, str]]:
    environment = load_environment(Path("dev.yaml"), text=text, today=now.date(), with_record=False).environment
    return upgrade(
        environment,
        text,
        file=FILE,
        argument="dev",
        asked=Asked(**asked),
        ages=ages() if stands is None else stands,
        locks=Locks(own=None if own is None else (own, "the project's\n"), library=LIBRARY),
        library="1.2.3",
        now=now,
    )


def titles(told: Upgrade) -> list[str]:
    return [f"{step.kind}: {step.title}" for step in told.steps]


def test_two_minors_are_four_kinds_of_steps_one_after_another() -> None:
    told, texts = run(kubernetes="1.35")
    assert titles(told) == [
        "kubernetes: Kubernetes 1.33 -> 1.34, with compatible add-ons",
        "ami: AMI of group system for Kubernetes 1.34",
        "ami: AMI of group a10g for Kubernetes 1.34: 1.4.0 -> 2.1.0",
        "kubernetes: Kubernetes 1.34 -> 1.35, with compatible add-ons",
        "ami: AMI of group system for Kubernetes 1.35",
        "ami: AMI of group a10g for Kubernetes 1.35",
    ]
    # only the first step is written, with comments, order and quotes as they were
    assert texts == {
        FILE: TEXT.replace('"1.33" #', '"1.34" #').replace("v1.33.5-eksbuild.2 #", "v1.34.5-eksbuild.2 #"),
    }
    first, system, a10g, second, _, again = told.steps
    assert [(each.path, each.line, each.before, each.after) for each in first.edits] == [
        ("eks.kubernetes_version", 5, "1.33", "1.34"),
        ("eks.addon_versions.kube-proxy", 9, "v1.33.5-eksbuild.2", "v1.34.5-eksbuild.2"),
    ]
    assert first.commands == ("hyperpod-cdk plan dev", "hyperpod-cdk deploy dev")
    assert first.back == (
        "only within 7 days of the upgrade, and not after another one: nodes and add-ons first, then aws eks"
        " update-cluster-version --name dev-eks --kubernetes-version 1.33; neither the older file nor a stack's"
        " rollback does it"
    )
    update = "aws sagemaker update-cluster-software --region us-east-1 --cluster-name dev --instance-groups"
    assert system.commands == (f"{update} InstanceGroupName=system",)
    assert a10g.commands == first.commands
    # the same release is another AMI for another minor version, and no change of the file tells HyperPod so
    assert again.commands == (f"{update} InstanceGroupName=a10g,ImageReleaseVersion=2.1.0",)
    assert [(each.path, each.after) for each in second.edits] == [
        ("eks.kubernetes_version", "1.35"),
        ("eks.addon_versions.kube-proxy", "v1.35.5-eksbuild.2"),
        # not pinned, but what stands does not fit any more
        ("eks.addon_versions.coredns", "v1.14.2-eksbuild.4"),
    ]
    assert told.verdict == "6 steps; the next one: Kubernetes 1.33 -> 1.34, with compatible add-ons."


def test_add_ons_go_to_their_defaults_where_that_is_asked() -> None:
    told, _ = run(stands=ages("1.34"), text=TEXT.replace('"1.33"', '"1.34"'), addons=True)
    assert [(each.path, each.after) for each in told.steps[0].edits] == [
        ("eks.addon_versions.kube-proxy", "v1.34.5-eksbuild.2"),
        ("eks.addon_versions.coredns", "v1.14.2-eksbuild.4"),
    ]
    assert told.diff.splitlines() == [
        "--- a/environments/dev.yaml",
        "+++ b/environments/dev.yaml",
        "@@ -6,7 +6,8 @@",
        '   admin_role_arns: ["arn:aws:iam::111122223333:role/admin"]',
        "   public_access_cidrs: [54.240.193.128/26]",
        "   addon_versions:",
        "-    kube-proxy: v1.33.5-eksbuild.2 # with the control plane",
        "+    kube-proxy: v1.34.5-eksbuild.2 # with the control plane",
        "+    coredns: v1.14.2-eksbuild.4",
        " network: {availability_zones: {use1-az5: {}, use1-az4: {}}}",
        " hyperpod:",
        "   instance_groups:",
    ]


def test_nodes_behind_the_control_plane_come_before_the_next_minor() -> None:
    told, texts = run(text=TEXT.replace('"1.33"', '"1.34"'), stands=ages("1.34", updated=EARLIER), kubernetes="1.35")
    assert titles(told)[:3] == [
        "ami: AMI of group system for Kubernetes 1.34",
        "ami: AMI of group a10g for Kubernetes 1.34: 1.4.0 -> 2.1.0",
        "kubernetes: Kubernetes 1.34 -> 1.35, with compatible add-ons",
    ]
    # the next step is a command, so nothing is written before it has been typed
    assert (texts, told.diff) == ({}, "")


def test_the_deployed_version_needs_no_step() -> None:
    told, texts = run(kubernetes="1.33")
    assert (told.verdict, told.refusals, texts) == ("Nothing to do: the requested versions are deployed.", (), {})


def test_what_the_file_says_already_is_deployed_first() -> None:
    ahead = TEXT.replace('"1.33"', '"1.34"').replace("v1.33.5", "v1.34.5")
    told, texts = run(text=ahead, kubernetes="1.34")
    assert titles(told)[0] == ("wait: Kubernetes 1.33 -> 1.34, with compatible add-ons: in the file and not deployed")
    assert texts == {}


def test_a_file_that_skips_a_minor_is_set_to_the_next_one() -> None:
    told, texts = run(text=TEXT.replace('"1.33"', '"1.35"'), kubernetes="1.35")
    assert told.steps[0].edits[0].after == "1.34"
    assert 'kubernetes_version: "1.34" # until' in texts[FILE]


def test_an_environment_that_is_not_deployed_takes_any_version_at_once() -> None:
    told, texts = run(stands=Ages(is_deployed=False, offers=offers()), kubernetes="1.35")
    assert titles(told) == ["kubernetes: Kubernetes 1.35"]
    assert 'kubernetes_version: "1.35" # until' in texts[FILE]
    assert told.notes == ("dev-eks is not deployed: the versions in the file are used as the deployed versions.",)


def test_chart_and_library() -> None:
    told, texts = run(own="a" * 40, chart=True)
    assert texts == {"charts/charts.lock.yaml": "the library's\n"}
    assert told.diff == (
        "--- a/charts/charts.lock.yaml\n+++ b/charts/charts.lock.yaml\n@@ -1 +1 @@\n-the project's\n+the library's\n"
    )
    assert told.steps[0].commands[0] == "hyperpod-cdk charts pull"
    for same in (None, LIBRARY[0]):
        assert run(own=same, chart=True)[0].verdict == "Nothing to do: the requested versions are deployed."
    told, texts = run(own="a" * 40, chart=True, library=True)
    # what the newer library knows is looked at before anything is written
    assert (titles(told)[0][:8], texts) == ("library:", {})


def test_amis_alone() -> None:
    told, texts = run(ami=True, stands=ages("1.33", release="1.4.0"))
    assert titles(told) == [
        "ami: AMI of group system for Kubernetes 1.33",
        # 3.0.0 is out for 1.33 on x86_64 only
        "ami: AMI of group a10g for Kubernetes 1.33: 1.4.0 -> 3.0.0",
    ]
    assert texts == {}
    told, texts = run(ami=True, text=TEXT.replace("1.4.0", "3.0.0"), stands=ages("1.33", release="3.0.0"))
    assert (told.verdict, texts) == ("Nothing to do: the requested versions are deployed.", {})
    # a release that is known for another minor version only
    told, _ = run(
        ami=True, text=TEXT.replace("1.4.0", "3.0.0").replace('"1.33"', '"1.34"'), stands=ages("1.34", release="2.1.0")
    )
    assert [(each.before, each.after) for each in told.steps[0].edits] == [("3.0.0", "2.1.0")]


def test_an_own_ami_is_a_persons_to_build() -> None:
    told, _ = run(text=TEXT.replace("release_version: 1.4.0", "ami_id: ami-0123456789abcdef0"), kubernetes="1.34")
    assert told.steps[-1].first[0] == "Build it on HyperPod's AMI for Kubernetes 1.34 and set image.ami_id of a10g."


@pytest.mark.parametrize(
    ("text", "stands", "asked", "why", "works"),
    [
        (
            TEXT,
            ages("1.34"),
            {"kubernetes": "1.34"},
            "eks.kubernetes_version is 1.33, and dev-eks runs 1.34: the file is older than the deployed version.",
            'Set eks.kubernetes_version: "1.34", deploy, and upgrade then.',
        ),
        (
            TEXT,
            ages(),
            {"kubernetes": "1.32"},
            (
                "dev-eks runs Kubernetes 1.33, and 1.32 is older: a file with an older version rolls no control"
                " plane back."
            ),
            (
                "Until 2026-11-27 09:00 UTC EKS can roll it back by one minor version: nodes and add-ons first,"
                " then aws eks update-cluster-version --name dev-eks --kubernetes-version 1.32; neither the older"
                " file nor a stack's rollback does it"
            ),
        ),
        (
            TEXT.replace("v1.33.5-eksbuild.2", "v1.34.1-eksbuild.3"),
            Ages(),
            {"kubernetes": "1.34"},
            (
                "eks.addon_versions.kube-proxy is v1.34.1-eksbuild.3, and it is unknown whether it fits"
                " Kubernetes 1.34: AWS was not asked, or did not answer."
            ),
            (
                "Run it with credentials that allow eks:DescribeAddonVersions; or run 'aws eks"
                " describe-addon-versions --addon-name kube-proxy --kubernetes-version 1.34' and set it by hand."
            ),
        ),
        (
            TEXT,
            ages(offers=offers(coredns={"1.33": offer("v1.12.4-eksbuild.1")})),
            {"kubernetes": "1.34"},
            "EKS has no version of the add-on coredns for Kubernetes 1.34 in us-east-1.",
            "Stay on a version that has it, or remove what needs it from the file (eks.kubernetes_version).",
        ),
    ],
)
def test_what_is_refused(text: str, stands: Ages, asked: dict[str, Any], why: str, works: str) -> None:
    told, texts = run(text=text, stands=stands, **asked)
    assert [(each.why, each.what_works) for each in told.refusals] == [(why, works)]
    assert (told.steps, texts, told.verdict) == ((), {}, "Refused; nothing is written.")


@pytest.mark.parametrize(
    ("pinned", "written"),
    [
        ("v1.33.5-eksbuild.2", "v1.34.1-eksbuild.2"),
        ("v1.34.1-eksbuild.1", "v1.34.1-eksbuild.2"),
        # the one that the guide names
        ("v1.34.1-eksbuild.2", "v1.34.1-eksbuild.2"),
    ],
)
def test_without_aws_a_version_is_written_that_the_user_guide_names(pinned: str, written: str) -> None:
    text = TEXT.replace("v1.33.5-eksbuild.2", pinned)
    told, texts = run(text=text, stands=Ages(), kubernetes="1.34")
    assert told.refusals == ()
    (wanted,) = texts.values()
    assert f"kube-proxy: {written} # with the control plane" in wanted


def test_without_aws_and_without_a_name_in_the_guide_it_is_refused() -> None:
    text = TEXT.replace("kube-proxy: v1.33.5-eksbuild.2", "vpc-cni: v1.20.0-eksbuild.1").replace("1.33", "1.34")
    told, texts = run(text=text, stands=Ages(), kubernetes="1.35")
    assert texts == {}
    assert told.refusals[0].why.startswith(
        "eks.addon_versions.vpc-cni is v1.20.0-eksbuild.1, and it is unknown whether it fits"
    )


def test_a_look_without_aws_reports_a_version_that_the_guide_names() -> None:
    told, _ = run(stands=Ages())
    line = "add-on kube-proxy: v1.33.5-eksbuild.2, unknown whether outdated; fits Kubernetes 1.33 (EKS user guide); "
    assert f"{line}it is unknown whether others do" in upgrade_text(told)
    assert "add-on coredns: " in upgrade_text(told)
    assert "it is unknown which versions fit Kubernetes 1.33" in upgrade_text(told)


def test_a_look_reports_what_is_old() -> None:
    told, texts = run(stands=ages(updated=EARLIER))
    assert texts == {}
    support = "AWS supports 1.x until January 2027, of others a major release for 12 months, a minor one for 6"
    assert upgrade_text(told).splitlines() == [
        "dev: 3 outdated, 1 unknown.",
        ("  hyperpod-cdk: 1.2.3, unknown whether outdated; the package index, which has the newest, was not asked"),
        (
            "  Kubernetes: 1.33, outdated, newest 1.35; in extended support, which is billed, since 2026-07-29"
            " and until 2027-07-29 (calendar of 2026-11-20); EKS can roll it back by one minor version until"
            " 2026-11-27 09:00 UTC"
        ),
        "  add-on vpc-cni: v1.20.4-eksbuild.1, up to date; fits Kubernetes 1.33 to 1.35",
        "  add-on kube-proxy: v1.33.5-eksbuild.2, up to date; fits Kubernetes 1.33",
        "  add-on eks-pod-identity-agent: v1.20.4-eksbuild.1, up to date; fits Kubernetes 1.33 to 1.35",
        "  add-on coredns: v1.12.4-eksbuild.1, up to date; fits Kubernetes 1.33 and 1.34",
        (
            "  dependency chart: bbbbbbbbbbbb, up to date; that of this hyperpod-cdk was read on"
            " 2026-11-22; AWS states no"
            " end of support"
        ),
        (
            f"  AMI of group system: 1.4.0, outdated, newest 3.0.0; older than the control plane's"
            f" upgrade; {support} (releases as"
            " of 2026-11-20)"
        ),
        (
            f"  AMI of group a10g: 1.4.0, outdated, newest 3.0.0; older than the control plane's upgrade;"
            f" {support} (releases as"
            " of 2026-11-20)"
        ),
    ]


def script() -> dict[str, Any]:
    """Return an AWS in which one cluster stands, upgraded once."""

    def stands(asked: Mapping[str, Any]) -> dict[str, Any]:
        version = "v1.12.4-eksbuild.1" if asked["addonName"] == "coredns" else "v1.14.2-eksbuild.4"
        return {"addon": {"addonName": asked["addonName"], "addonVersion": version}}

    fits = {"clusterVersion": "1.34", "platformVersions": ["*"], "defaultVersion": True}
    versions = [{"addonVersion": "v1.14.2-eksbuild.4", "compatibilities": [fits]}]
    update = {"id": "u", "status": "Successful", "type": "VersionUpdate", "createdAt": UPGRADED}
    node = {"InstanceGroupName": "system", "InstanceId": "i-1", "InstanceType": "ml.m5.2xlarge", "LaunchTime": EARLIER}
    node |= {"InstanceStatus": {"Status": "Running"}}
    group = {"InstanceGroupName": "system", "CurrentImageReleaseVersion": "2.1.0"}
    return {
        "sts:GetCallerIdentity": {
            "Account": "111122223333",
            "Arn": "arn:aws:iam::111122223333:user/dana",
            "UserId": "A",
        },
        "eks:DescribeCluster": {"cluster": {"name": "dev-eks", "version": "1.34"}},
        "eks:ListUpdates": {"updateIds": ["u"]},
        "eks:DescribeUpdate": {"update": update},
        "eks:DescribeAddon": stands,
        "eks:DescribeAddonVersions": {"addons": [{"addonName": "coredns", "addonVersions": versions}]},
        "sagemaker:DescribeCluster": {"ClusterName": "dev", "InstanceGroups": [group]},
        "sagemaker:ListClusterNodes": {"ClusterNodeSummaries": [node]},
    }


def read(answers: dict[str, Any]) -> Ages:
    return read_ages(opened(answers), eks_cluster="dev-eks", cluster="dev", addons=["coredns"])


def test_what_stands_is_read() -> None:
    assert read(script()) == Ages(
        is_deployed=True,
        kubernetes="1.34",
        upgraded=UPGRADED,
        are_updates_read=True,
        addons={"coredns": "v1.12.4-eksbuild.1"},
        offers={"coredns": {"1.34": offer("v1.14.2-eksbuild.4")}},
        groups={"system": Software(release="2.1.0", updated=EARLIER)},
    )


def _updates(*kinds: tuple[str, str]) -> dict[str, Any]:
    """Return an AWS that tells of updates of the control plane, a day apart, the oldest first: type and status."""
    told = {
        str(day): {"update": {"id": str(day), "type": kind, "status": status, "createdAt": EARLIER + timedelta(day)}}
        for day, (kind, status) in enumerate(kinds)
    }
    ids = {"updateIds": list(told)}
    return {**script(), "eks:ListUpdates": ids, "eks:DescribeUpdate": lambda asked: told[asked["updateId"]]}


@pytest.mark.parametrize(
    ("updates", "upgraded"),
    [
        ([], None),
        ([("VersionUpdate", "Successful"), ("LoggingUpdate", "Successful")], EARLIER),
        ([("VersionUpdate", "Failed")], None),
        ([("VersionUpdate", "Successful"), ("VersionUpdate", "Successful")], EARLIER + timedelta(1)),
        # EKS has taken the upgrade back, and takes none back twice
        ([("VersionUpdate", "Successful"), ("VersionRollback", "Successful")], None),
        ([("VersionUpdate", "Successful"), ("VersionRollback", "Failed")], EARLIER),
        ([("VersionRollback", "Successful"), ("VersionUpdate", "Successful")], EARLIER + timedelta(1)),
    ],
)
def test_the_last_applied_upgrade_is_read(updates: list[tuple[str, str]], upgraded: datetime | None) -> None:
    found = read(_updates(*updates))
    assert (found.upgraded, found.are_updates_read, found.skipped) == (upgraded, True, [])


_UNTIL = UPGRADED + timedelta(days=7)
_BACK = (
    "EKS can roll it back by one minor version: nodes and add-ons first, then aws eks update-cluster-version"
    " --name dev-eks --kubernetes-version 1.33; neither the older file nor a stack's rollback does it"
)
_ELSEWHERE = "create a second environment with 1.33, and move the workloads to it."


@pytest.mark.parametrize(
    ("stands", "now", "works"),
    [
        (ages("1.34"), _UNTIL, f"Until 2026-11-27 09:00 UTC {_BACK}"),
        (
            ages("1.34"),
            _UNTIL + timedelta(seconds=1),
            f"EKS could roll it back until 2026-11-27 09:00 UTC, 7 days after its upgrade; {_ELSEWHERE}",
        ),
        (
            ages("1.34", upgraded=None, are_updates_read=True),
            NOW,
            f"EKS rolls back only an upgrade, once, and there was none to 1.34; {_ELSEWHERE}",
        ),
        (ages("1.34", upgraded=None), NOW, f"Within 7 days of its upgrade {_BACK}"),
        (ages("1.35"), NOW, f"EKS rolls a control plane back by only one minor version; {_ELSEWHERE}"),
        (
            ages("1.34"),
            # the first day without support (EKS user guide, release calendar)
            datetime(2027, 7, 29, tzinfo=UTC),
            "Stay on 1.34: EKS ended extended support for Kubernetes 1.33 on 2027-07-29 and upgrades clusters with it.",
        ),
    ],
)
def test_what_leads_to_an_older_version(stands: Ages, now: datetime, works: str) -> None:
    # EKS user guide, rollback-cluster, "Prerequisites" (read 2026-11-28)
    told, texts = run(stands=stands, now=now, kubernetes="1.33")
    assert [each.what_works for each in told.refusals] == [works]
    assert texts == {}


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (_UNTIL, "; EKS can roll it back by one minor version until 2026-11-27 09:00 UTC"),
        (_UNTIL + timedelta(seconds=1), ""),
    ],
)
def test_a_look_promises_no_way_back_that_has_ended(now: datetime, says: str) -> None:
    told, _ = run(now=now)
    (row,) = (each for each in told.things if each.what == "Kubernetes")
    assert row.says.partition("(calendar of 2026-11-20)")[2] == says


_NEWER = "eks.kubernetes_version is 1.35, and dev-eks runs 1.34: the next deployment of the file upgrades it."
_OLDER = (
    'eks.kubernetes_version is 1.33, and dev-eks runs 1.34: set it to "1.34" before the next deployment, which'
    " rolls no control plane back."
)


@pytest.mark.parametrize(
    ("stated", "asked", "note"),
    [
        ("1.34", {}, None),
        ("1.34", {"kubernetes": "1.34"}, None),
        ("1.35", {}, _NEWER),
        (
            "1.35",
            {"kubernetes": "1.34"},
            _NEWER,
        ),
        ("1.35", {"kubernetes": "1.35"}, None),
        (
            "1.33",
            {},
            _OLDER,
        ),
        # the refusal says so
        ("1.33", {"kubernetes": "1.34"}, None),
    ],
)
def test_a_file_with_another_version_than_the_deployed_one_is_reported(
    stated: str, asked: dict[str, Any], note: str | None
) -> None:
    text = TEXT.replace('"1.33"', f'"{stated}"').replace("v1.33.5-eksbuild.2", f"v{stated}.5-eksbuild.2")
    told, _ = run(text=text, stands=ages("1.34"), **asked)
    assert told.notes == ((note,) if note else ())


def test_what_is_not_answered_is_skipped_and_what_is_not_there_is_not_deployed() -> None:
    denied = Fails("AccessDeniedException", "no")
    found = read({**script(), "eks:DescribeAddonVersions": denied, "sagemaker:ListClusterNodes": denied})
    assert (found.groups, found.offers, found.kubernetes) == (None, {}, "1.34")
    assert [each.partition(":")[0] for each in found.skipped] == [
        "the software of nodes",
        "the compatible versions of coredns",
    ]
    gone = Fails("ResourceNotFoundException", "No cluster found for name: dev-eks.", 404)
    found = read({**script(), "eks:DescribeCluster": gone})
    assert (found.is_deployed, found.kubernetes, found.skipped) == (False, None, [])


def test_only_what_the_policy_of_the_verb_allows_is_asked() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    read_ages(opened(script(), asked), eks_cluster="dev-eks", cluster="dev", addons=["coredns"])
    (verb,) = (each for each in VERBS if each.name == "upgrade")
    assert {name for name, _ in asked} | {"sts:GetCallerIdentity"} == set(verb.actions)


def test_what_was_not_read_is_neither_deployed_nor_up_to_date() -> None:
    unread = Ages(skipped=["the version of dev-eks: no permission", "the version of kube-proxy: no permission"])
    told, _ = run(stands=unread)
    # of all things only the lock of the chart is known without AWS
    assert told.verdict == "0 outdated, 8 unknown; 2 things could not be read."
    cluster = next(each for each in told.things if each.what == "Kubernetes")
    assert (cluster.stands, cluster.is_old) == ("1.33", None)
    assert cluster.says.startswith("version of the file, because the deployed version was not read; ")
    assert {each.is_old for each in told.things if each.what.startswith(("add-on", "AMI"))} == {None}
    # what EKS offers was read, and what is installed was not
    offered = {"coredns": {"1.33": offer("v1.12.4-eksbuild.1")}}
    for skipped, said in ((unread.skipped, "its deployed version was not read"), ([], "not installed yet")):
        told, _ = run(stands=Ages(is_deployed=True, kubernetes="1.33", offers=offered, skipped=skipped))
        assert [each.says for each in told.things if each.what == "add-on coredns"] == [said]
    # no step follows from nothing that was read, which is no proof that nothing is left to do
    told, _ = run(stands=unread, addons=True)
    assert (told.steps, told.verdict) == ((), "No step is known; 2 things could not be read.")
    told, _ = run(stands=unread, kubernetes="1.34")
    assert told.verdict.endswith(", with compatible add-ons; 2 things could not be read.")
    assert told.notes == ("The version of dev-eks could not be read: the steps start at that of the file.",)


def test_without_aws_the_file_is_taken_at_its_word() -> None:
    stands = Ages(is_asked=False, skipped=["AWS: not called, because of --offline"])
    told, _ = run(stands=stands)
    assert next(each for each in told.things if each.what == "Kubernetes").is_old is True
    assert run(stands=stands, addons=True)[0].verdict == "Nothing to do: the requested versions are in the file."
