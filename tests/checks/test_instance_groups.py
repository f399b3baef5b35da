"""Instance groups: images that nodes can boot from, alarms that exist, nodes that Karpenter has made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hyperpod_cdk.checks.answers import HyperPodClusterAnswer, ImageAnswer, InstancesInCluster
from hyperpod_cdk.checks.model import Case, Result, Status
from hyperpod_cdk.checks.run import is_needed
from tests.support.fake_aws import NOT_SET, Answers, FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

IMAGES = "images_can_be_booted"
ALARMS = "rollback_alarms_exist"
NODES = "autoscaled_nodes_are_kept"
LEFT_OUT = "what_is_left_out_is_off"
AMI = "ami-0123456789abcdef0"
H100 = "hyperpod.instance_groups[1]"

OWN = ImageAnswer(
    image_id=AMI,
    owner="111122223333",
    state="available",
    architecture="x86_64",
    volumes=1,
    encrypted=False,
    public=False,
)
WITH_IMAGE = {f"{H100}.image": {"ami_id": AMI}}
WITH_ALARMS = {
    f"{H100}.patching": {"schedule": "cron(0 3 ? * SUN *)", "rollback_alarms": ["node-deficit", "job-failures"]}
}
GPU = {
    "name": "gpu",
    "instance_type": "ml.g5.12xlarge",
    "count": 0,
    "availability_zone_id": "use1-az4",
    "capacity": "on_demand",
}
SCALED = {"hyperpod.instance_groups[2]": GPU, "hyperpod.autoscaling": "karpenter"}


def messages(result: Result) -> list[str]:
    return [f"{finding.path}: {finding.message}" for finding in result.findings]


def cluster(*, autoscaled: bool, **targets: int) -> HyperPodClusterAnswer:
    """The environment's deployed cluster."""
    return HyperPodClusterAnswer(
        name="prod",
        arn="arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdef012345",
        status="InService",
        eks_cluster_arn="arn:aws:eks:us-east-1:111122223333:cluster/prod-eks",
        autoscaled=autoscaled,
        groups=tuple(
            InstancesInCluster(
                group=name, types=("ml.g5.12xlarge",), current=count, target=count, spot=False, training_plan_arn=""
            )
            for name, count in targets.items()
        ),
    )


class TestImages:
    @pytest.mark.check("images_can_be_booted", "passes")
    @pytest.mark.parametrize(
        "image", [OWN, replace(OWN, owner="602401143452", public=True)], ids=["own", "of HyperPod itself"]
    )
    def test_good(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, image: ImageAnswer) -> None:
        fake_aws.answers.images = {AMI: image}
        result = run_check(IMAGES, case_of(WITH_IMAGE), fake_aws)
        assert result.status is Status.PASSED

    @pytest.mark.check("images_can_be_booted", "fails")
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"state": "pending"}, f"needs an available AMI, got {AMI}, which is pending"),
            (
                {"architecture": "arm64"},
                f"needs an AMI for x86_64, the architecture of ml.p5.48xlarge, got {AMI} for arm64",
            ),
            ({"encrypted": True}, f"needs an unencrypted AMI, got {AMI}, whose volume is encrypted"),
            ({"volumes": 2}, f"needs an AMI with one volume, got {AMI} with 2"),
            (
                {"owner": "444455556666"},
                f"needs an AMI of account 111122223333 itself, got {AMI} of 444455556666",
            ),
        ],
    )
    def test_bad(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, change: Mapping[str, Any], message: str
    ) -> None:
        fake_aws.answers.images = {AMI: replace(OWN, **change)}
        result = run_check(IMAGES, case_of(WITH_IMAGE), fake_aws)
        fix = "; build the AMI again on the public HyperPod AMI, or use another"
        assert messages(result) == [f"{H100}.image.ami_id: {message}{fix}"]

    def test_missing(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        fake_aws.answers.images = {}
        assert messages(run_check(IMAGES, case_of(WITH_IMAGE), fake_aws)) == [
            (
                f"{H100}.image.ami_id: needs an AMI that account 111122223333 may use in us-east-1, got {AMI}, which"
                " does not exist there; copy it to the region, or correct the ID"
            )
        ]

    @pytest.mark.check("images_can_be_booted", "skips")
    def test_not_answered(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        result = run_check(IMAGES, case_of(WITH_IMAGE), fake_aws)
        assert [each.reason for each in result.skipped] == [NOT_SET]

    @pytest.mark.parametrize("ami_id", [None, "default"])
    def test_nothing_to_ask(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, ami_id: str | None) -> None:
        case = case_of({f"{H100}.image": {"ami_id": ami_id}})
        result = run_check(IMAGES, case, fake_aws)
        assert (result.status, fake_aws.asked) == (Status.NOT_NEEDED, [])
        assert not is_needed(result.check, case.environment)


class TestAlarms:
    @pytest.mark.check("rollback_alarms_exist", "passes")
    def test_good(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        fake_aws.answers.alarms = {"node-deficit": "OK", "job-failures": "INSUFFICIENT_DATA"}
        case = case_of(WITH_ALARMS)
        result = run_check(ALARMS, case, fake_aws)
        assert (result.status, fake_aws.asked) == (Status.PASSED, [("alarms", ("job-failures", "node-deficit"))])
        assert is_needed(result.check, case.environment)
        assert not is_needed(result.check, case_of().environment)

    @pytest.mark.check("rollback_alarms_exist", "fails")
    def test_bad(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        fake_aws.answers.alarms = {"node-deficit": "ALARM"}
        result = run_check(ALARMS, case_of(WITH_ALARMS), fake_aws)
        assert result.status is Status.FAILED
        assert messages(result) == [
            (
                f"{H100}.patching.rollback_alarms[0]: node-deficit is in ALARM, so an update would be rolled back at"
                " once; fix its cause first"
            ),
            (
                f'{H100}.patching.rollback_alarms[1]: needs a CloudWatch alarm of us-east-1, got "job-failures", which'
                " does not exist; create the alarm, or correct the name"
            ),
        ]

    @pytest.mark.check("rollback_alarms_exist", "skips")
    def test_not_answered(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        assert run_check(ALARMS, case_of(WITH_ALARMS), fake_aws).status is Status.SKIPPED


class TestWhatIsLeftOut:
    @pytest.mark.check("what_is_left_out_is_off", "passes")
    @pytest.mark.parametrize(
        "changes",
        [
            {**SCALED, "hyperpod.tiered_checkpointing": {"memory_percent": 20}},
            {"hyperpod.autoscaling": "disabled", "hyperpod.tiered_checkpointing": {"enabled": False}},
        ],
        ids=["kept on", "turned off by name"],
    )
    def test_stated_ones_pass(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, changes: Mapping[str, Any]
    ) -> None:
        fake_aws.answers.hyperpod_clusters = (replace(cluster(autoscaled=True), checkpoints_in_memory=True),)
        assert run_check(LEFT_OUT, case_of(changes), fake_aws).status is Status.PASSED

    def test_a_cluster_without_either(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        fake_aws.answers.hyperpod_clusters = (cluster(autoscaled=False),)
        assert run_check(LEFT_OUT, case_of(), fake_aws).status is Status.PASSED

    @pytest.mark.check("what_is_left_out_is_off", "fails")
    def test_may_stay_on(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        fake_aws.answers.hyperpod_clusters = (replace(cluster(autoscaled=True), checkpoints_in_memory=True),)
        result = run_check(LEFT_OUT, case_of(), fake_aws)
        assert result.status is Status.WARNED
        assert messages(result) == [
            (
                "hyperpod.autoscaling: autoscaling is enabled in prod, and leaving it out of the file may keep it"
                " enabled; set autoscaling: disabled until it is disabled"
            ),
            (
                "hyperpod.tiered_checkpointing: tiered checkpointing is enabled in prod and reserves memory on every"
                " node, and leaving it out of the file may keep it enabled; set tiered_checkpointing: {enabled: false}"
                " until it is disabled"
            ),
        ]

    @pytest.mark.check("what_is_left_out_is_off", "skips")
    def test_not_answered(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        assert run_check(LEFT_OUT, case_of(), fake_aws).status is Status.SKIPPED


class TestNodesOfKarpenter:
    @pytest.mark.check("autoscaled_nodes_are_kept", "passes")
    def test_kept(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        fake_aws.answers.hyperpod_clusters = (cluster(autoscaled=True, system=2, h100=2, gpu=7),)
        result = run_check(NODES, case_of(SCALED), fake_aws)
        assert result.status is Status.PASSED
        assert [detail.text for detail in result.details] == ["gpu keeps the 7 nodes that Karpenter has created"]

    def test_first_deployment(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        fake_aws.answers.hyperpod_clusters = (replace(cluster(autoscaled=True, gpu=7), name="other"),)
        result = run_check(NODES, case_of(SCALED), fake_aws)
        assert (result.status, result.details) == (Status.PASSED, ())

    @pytest.mark.check("autoscaled_nodes_are_kept", "fails")
    @pytest.mark.parametrize(
        ("changes", "stands", "message"),
        [
            (
                {"hyperpod.instance_groups[2]": GPU},
                cluster(autoscaled=True, gpu=7),
                "this deployment disables autoscaling, and gpu changes from 7 nodes to 0; set count: 7 to keep them",
            ),
            (
                SCALED,
                cluster(autoscaled=False, gpu=3),
                (
                    "this deployment enables autoscaling, and the 3 nodes of gpu, which Karpenter did not create, are"
                    " removed; set count: 3 to keep them, and let Karpenter scale another group"
                ),
            ),
            (
                {"hyperpod.instance_groups[2]": GPU},
                cluster(autoscaled=True, gpu=1),
                "this deployment disables autoscaling, and gpu changes from 1 node to 0; set count: 1 to keep it",
            ),
            (
                SCALED,
                cluster(autoscaled=False, gpu=1),
                (
                    "this deployment enables autoscaling, and the 1 node of gpu, which Karpenter did not create, is"
                    " removed; set count: 1 to keep it, and let Karpenter scale another group"
                ),
            ),
        ],
        ids=["off", "on", "off, one node", "on, one node"],
    )
    def test_lost(
        self,
        case_of: CaseOf,
        run_check: RunCheck,
        changes: Mapping[str, Any],
        stands: HyperPodClusterAnswer,
        message: str,
    ) -> None:
        there = FakeAws(answers=Answers(hyperpod_clusters=(stands,)))
        result = run_check(NODES, case_of(changes), there)
        assert result.status is Status.WARNED
        assert messages(result) == [f"hyperpod.instance_groups[2].count: {message}"]

    def test_a_fixed_count_that_falls_is_no_matter_of_karpenter(
        self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws
    ) -> None:
        fake_aws.answers.hyperpod_clusters = (cluster(autoscaled=False, h100=9),)
        assert run_check(NODES, case_of(), fake_aws).status is Status.PASSED

    @pytest.mark.check("autoscaled_nodes_are_kept", "skips")
    def test_not_answered(self, case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
        assert run_check(NODES, case_of(SCALED), fake_aws).status is Status.SKIPPED
