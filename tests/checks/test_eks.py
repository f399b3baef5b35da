"""Kubernetes versions, add-ons, kubectl and capacity for pods, at and next to each limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.catalog import addons, images
from hyperpod_cdk.catalog.kubernetes import kubectl_minors
from hyperpod_cdk.checks.answers import AddonVersions, KubernetesVersionAnswer, NotAnswered
from hyperpod_cdk.checks.eks import wanted_addons
from hyperpod_cdk.checks.model import Case, Result, Status
from hyperpod_cdk.checks.run import offline
from hyperpod_cdk.eks.charts import LOCK_FILE, ChartLock
from tests.support.fake_aws import FakeAws

CaseOf = Callable[..., Case]
RunCheck = Callable[..., Result]

VERSION = "kubernetes_version_is_supported_for_long"
ADDONS = "addon_versions_exist"
KUBECTL = "kubectl_layer_matches_kubernetes"
PODS = "system_nodes_hold_the_addons"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DENIED = NotAnswered("no permission", action="eks:DescribeClusterVersions")
ALL = (
    addons.VPC_CNI,
    addons.KUBE_PROXY,
    addons.POD_IDENTITY_AGENT,
    addons.COREDNS,
    addons.TASK_GOVERNANCE,
    addons.CERT_MANAGER,
    addons.TRAINING_OPERATOR,
    addons.FSX_CSI_DRIVER,
)
JOINED: Mapping[str, Any] = {
    "network": {
        "existing": {
            "vpc_id": "vpc-0a1b2c3d4e5f67890",
            "node_subnet_ids": {
                "use1-az5": "subnet-00000000000000005",
                "use1-az4": "subnet-00000000000000004",
            },
        }
    },
    "eks": {
        "kubernetes_version": "1.32",
        "existing": {
            "cluster_name": "platform",
            "security_group_id": "sg-0a1b2c3d4e5f67890",
            "installed_addons": [addons.CERT_MANAGER],
        },
    },
}


def messages(result: Result) -> list[str]:
    """What a check found, each with its place."""
    return [finding.render() for finding in result.findings]


def kubernetes(
    version: str, *, standard: timedelta, extended: timedelta = timedelta(days=500), status: str = ""
) -> KubernetesVersionAnswer:
    """A version whose support ends so long after now."""
    return KubernetesVersionAnswer(
        version=version,
        status=status or ("STANDARD_SUPPORT" if standard > timedelta(0) else "EXTENDED_SUPPORT"),
        end_of_standard_support=NOW + standard,
        end_of_extended_support=NOW + extended,
    )


def addon(name: str, *versions: str, default: str = "", kubernetes_version: str = "1.35") -> AddonVersions:
    """An add-on in these versions, newest first."""
    there = versions or ("v9.0.0-eksbuild.1",)
    return AddonVersions(addon=name, kubernetes_version=kubernetes_version, versions=there, default=default or there[0])


@pytest.fixture
def account(fake_aws: FakeAws) -> FakeAws:
    """EKS with versions of long support and every add-on of prod.yaml."""
    fake_aws.answers.kubernetes_versions = (
        kubernetes("1.36", standard=timedelta(days=300)),
        kubernetes("1.35", standard=timedelta(days=126)),
        kubernetes("1.34", standard=timedelta(days=11)),
        kubernetes("1.33", standard=timedelta(days=-115)),
    )
    fake_aws.answers.addon_versions = {(name, "1.35"): addon(name) for name in ALL}
    return fake_aws


@pytest.mark.check("kubernetes_version_is_supported_for_long", "passes")
@pytest.mark.parametrize("left", [timedelta(days=60), timedelta(days=600)])
def test_a_version_of_long_support(case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, left: timedelta) -> None:
    account.answers.kubernetes_versions = (kubernetes("1.35", standard=left),)
    result = run_check(VERSION, case_of(), account)
    assert (result.status, messages(result)) == (Status.PASSED, [])


def test_a_version_without_dates_passes(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    row = kubernetes("1.35", standard=timedelta(days=1))
    account.answers.kubernetes_versions = (replace(row, end_of_standard_support=None),)
    assert run_check(VERSION, case_of(), account).status is Status.PASSED


STEPS = ' for a new cluster; an existing one is updated by one minor version at a time, "1.33" first'


@pytest.mark.check("kubernetes_version_is_supported_for_long", "fails")
@pytest.mark.parametrize("status", ["", "UNSUPPORTED"])
def test_a_version_that_eks_does_not_offer(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, status: str
) -> None:
    assert isinstance(account.answers.kubernetes_versions, tuple)
    gone = (kubernetes("1.31", standard=timedelta(days=-400), status=status),) if status else ()
    account.answers.kubernetes_versions = (*account.answers.kubernetes_versions, *gone)
    result = run_check(VERSION, case_of({"eks.kubernetes_version": "1.31"}), account)
    assert (result.status, messages(result)) == (
        Status.FAILED,
        [
            (
                "eks.kubernetes_version: must be a version that EKS offers in us-east-1 (1.33, 1.34, 1.35, 1.36), got"
                ' "1.31"; set kubernetes_version: "1.35" for a new cluster; an existing one is updated by one minor'
                ' version at a time, "1.32" first'
            )
        ],
    )


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (
            kubernetes("1.32", standard=timedelta(days=60) - timedelta(seconds=1)),
            (
                "standard support for Kubernetes 1.32 ends on 2027-01-20, in 60 days; extended support is billed from"
                ' that day: set kubernetes_version: "1.35"'
            ),
        ),
        (
            kubernetes("1.32", standard=timedelta(days=1)),
            (
                "standard support for Kubernetes 1.32 ends on 2026-11-22, in 1 day; extended support is billed from"
                ' that day: set kubernetes_version: "1.35"'
            ),
        ),
        (
            kubernetes("1.32", standard=timedelta(hours=5)),
            (
                "standard support for Kubernetes 1.32 ends on 2026-11-21, today; extended support is billed from that"
                " day:"
                ' set kubernetes_version: "1.35"'
            ),
        ),
        (
            kubernetes("1.32", standard=timedelta(days=-1), extended=timedelta(days=60)),
            ('EKS bills extended support for Kubernetes 1.32 until 2027-01-20; set kubernetes_version: "1.35"'),
        ),
        (
            kubernetes("1.32", standard=timedelta(days=-1), extended=timedelta(days=59)),
            (
                "EKS bills extended support for Kubernetes 1.32 until 2027-01-19, in 59 days, and then updates the"
                ' cluster automatically; set kubernetes_version: "1.35"'
            ),
        ),
        (
            replace(kubernetes("1.32", standard=timedelta(days=-1)), end_of_extended_support=None),
            'EKS bills extended support for Kubernetes 1.32; set kubernetes_version: "1.35"',
        ),
    ],
)
def test_support_that_ends_or_costs(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, version: KubernetesVersionAnswer, says: str
) -> None:
    assert isinstance(account.answers.kubernetes_versions, tuple)
    account.answers.kubernetes_versions = (*account.answers.kubernetes_versions, version)
    result = run_check(VERSION, case_of({"eks.kubernetes_version": "1.32"}), account)
    assert (result.status, messages(result)) == (Status.WARNED, [f"eks.kubernetes_version: {says}{STEPS}"])


def test_an_existing_cluster_is_updated_step_by_step(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    assert isinstance(account.answers.kubernetes_versions, tuple)
    account.answers.kubernetes_versions = (
        *account.answers.kubernetes_versions,
        kubernetes("1.32", standard=timedelta(days=-1)),
    )
    assert messages(run_check(VERSION, case_of(JOINED), account)) == [
        (
            "eks.kubernetes_version: EKS bills extended support for Kubernetes 1.32 until 2028-04-04; update the"
            " cluster platform, one minor at a time, up to 1.35"
        )
    ]


def test_no_better_version(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    account.answers.kubernetes_versions = (kubernetes("1.35", standard=timedelta(days=3)),)
    assert messages(run_check(VERSION, case_of(), account)) == [
        (
            "eks.kubernetes_version: standard support for Kubernetes 1.35 ends on 2026-11-24, in 3 days; extended"
            " support is billed from that day: HyperPod accepts no other version that EKS supports for long, look for a"
            " newer hyperpod-cdk"
        )
    ]


@pytest.mark.check("kubernetes_version_is_supported_for_long", "skips")
@pytest.mark.parametrize(
    ("version", "now", "says"),
    [
        ("1.35", datetime(2026, 11, 21, tzinfo=UTC), []),
        ("1.34", datetime(2026, 10, 3, tzinfo=UTC), []),
        (
            "1.34",
            datetime(2026, 10, 4, tzinfo=UTC),
            [
                (
                    "eks.kubernetes_version: standard support for Kubernetes 1.34 ends on 2026-12-02, in 59 days (dates"
                    " as"
                    ' of 2026-11-20); extended support is billed from that day: set kubernetes_version: "1.35"'
                )
            ],
        ),
        (
            "1.34",
            datetime(2026, 12, 1, tzinfo=UTC),
            [
                (
                    "eks.kubernetes_version: standard support for Kubernetes 1.34 ends on 2026-12-02, in 1 day (dates"
                    " as of"
                    ' 2026-11-20); extended support is billed from that day: set kubernetes_version: "1.35"'
                )
            ],
        ),
        # ends that have passed are validate's to report
        ("1.34", datetime(2026, 12, 2, tzinfo=UTC), []),
        (
            "1.35",
            datetime(2027, 3, 20, tzinfo=UTC),
            [
                (
                    "eks.kubernetes_version: standard support for Kubernetes 1.35 ends on 2027-03-27, in 7 days (dates"
                    " as of 2026-11-20); extended support is billed from that day: look for a newer version that"
                    " HyperPod accepts"
                )
            ],
        ),
    ],
)
def test_the_dated_table_where_eks_does_not_answer(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, version: str, now: datetime, says: list[str]
) -> None:
    account.answers.kubernetes_versions = DENIED
    result = run_check(VERSION, case_of({"eks.kubernetes_version": version}, now=now), account)
    assert (result.status, messages(result)) == (Status.SKIPPED, says)
    assert [(each.reason, each.action, each.path) for each in result.skipped] == [
        ("no permission", "eks:DescribeClusterVersions", "eks.kubernetes_version")
    ]


def test_add_ons_follow_from_the_file(case_of: CaseOf) -> None:
    bare = {"task_governance": ..., "operators": ..., "storage": ...}
    assert tuple(wanted_addons(case_of().environment)) == ALL
    assert tuple(wanted_addons(case_of(bare).environment)) == ALL[:4]
    assert wanted_addons(case_of(JOINED).environment) == {
        addons.TASK_GOVERNANCE: "task_governance",
        addons.TRAINING_OPERATOR: "operators.training",
        addons.FSX_CSI_DRIVER: "storage.lustre[0].claim",
    }


@pytest.mark.check("addon_versions_exist", "passes")
@pytest.mark.parametrize("pinned", [{}, {"eks.addon_versions": {addons.COREDNS: "v1.11.4-eksbuild.2"}}])
def test_add_ons_that_eks_has(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, pinned: Mapping[str, Any]
) -> None:
    assert isinstance(account.answers.addon_versions, dict)
    account.answers.addon_versions[addons.COREDNS, "1.35"] = addon(
        addons.COREDNS, "v1.12.0-eksbuild.1", "v1.11.4-eksbuild.2"
    )
    result = run_check(ADDONS, case_of(pinned), account)
    assert (result.status, messages(result)) == (Status.PASSED, [])


NOWHERE = AddonVersions(addon=addons.CERT_MANAGER, kubernetes_version="", versions=(), default="")
"""In the table below: EKS has no such add-on in the region."""


@pytest.mark.check("addon_versions_exist", "fails")
@pytest.mark.parametrize(
    ("answer", "pinned", "says"),
    [
        (
            None,
            {},
            (
                "operators.training: needs the add-on cert-manager, which EKS does not have for Kubernetes 1.35 in"
                " us-east-1; set eks.kubernetes_version to one of 1.30, 1.31, 1.32, 1.33, 1.34, 1.35 that has it"
            ),
        ),
        (
            None,
            {"eks.addon_versions": {addons.CERT_MANAGER: "v1.18.2-eksbuild.2"}},
            (
                "eks.addon_versions.cert-manager: needs the add-on cert-manager, which EKS does not have for Kubernetes"
                " 1.35 in us-east-1; set eks.kubernetes_version to one of 1.30, 1.31, 1.32, 1.33, 1.34, 1.35 that has"
                " it"
            ),
        ),
        (
            NOWHERE,
            {},
            (
                "operators.training: needs the add-on cert-manager, which EKS does not have in us-east-1 for any"
                " version of Kubernetes; do without what needs it, or use another region"
            ),
        ),
        (
            addon(addons.CERT_MANAGER, "v1.19.0-eksbuild.1", "v1.18.2-eksbuild.2", default="v1.18.2-eksbuild.2"),
            {"eks.addon_versions": {addons.CERT_MANAGER: "v1.18.2-eksbuild.1"}},
            (
                "eks.addon_versions.cert-manager: must be a version that EKS has for Kubernetes 1.35, got"
                " v1.18.2-eksbuild.1; set cert-manager: v1.18.2-eksbuild.2, or leave it out for EKS's default"
            ),
        ),
    ],
)
def test_add_ons_that_eks_does_not_have(
    case_of: CaseOf,
    run_check: RunCheck,
    account: FakeAws,
    *,
    answer: AddonVersions | None,
    pinned: Mapping[str, Any],
    says: str,
) -> None:
    assert isinstance(account.answers.addon_versions, dict)
    known = addon(addons.CERT_MANAGER, "v1.17.2-eksbuild.1", default="v1.17.2-eksbuild.1")
    account.answers.addon_versions[addons.CERT_MANAGER, "1.35"] = None if answer is NOWHERE else answer
    account.answers.addon_versions[addons.CERT_MANAGER, ""] = None if answer is NOWHERE else known
    result = run_check(ADDONS, case_of(pinned), account)
    assert (result.status, messages(result)) == (Status.FAILED, [says])


@pytest.mark.parametrize(
    ("default", "says"),
    [
        ("v1.18.3-eksbuild.1", []),
        (
            "v1.18.2-eksbuild.9",
            [
                (
                    "eks.kubernetes_version: EKS's default of vpc-cni for Kubernetes 1.35 is v1.18.2-eksbuild.9, and"
                    " HyperPod needs 1.18.3 (as of 2026-11-20); set eks.addon_versions: {vpc-cni: v1.20.4-eksbuild.1}"
                )
            ],
        ),
    ],
)
def test_a_default_that_hyperpod_does_not_accept(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, default: str, says: list[str]
) -> None:
    assert isinstance(account.answers.addon_versions, dict)
    account.answers.addon_versions[addons.VPC_CNI, "1.35"] = addon(
        addons.VPC_CNI, "v1.20.4-eksbuild.1", default, default=default
    )
    assert messages(run_check(ADDONS, case_of(), account)) == says


@pytest.mark.parametrize(
    ("default", "says"),
    [
        ("v1.2.0-eksbuild.1", []),
        (
            "v1.1.9-eksbuild.1",
            [
                (
                    "operators.training: elastic training needs amazon-sagemaker-hyperpod-training-operator 1.2.0 (as"
                    " of 2026-11-20), and prod would get v1.1.9-eksbuild.1; set eks.addon_versions:"
                    " {amazon-sagemaker-hyperpod-training-operator: v1.2.1-eksbuild.1}"
                )
            ],
        ),
    ],
)
def test_an_operator_too_old_for_elastic_training_is_a_warning(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws, *, default: str, says: list[str]
) -> None:
    assert isinstance(account.answers.addon_versions, dict)
    account.answers.addon_versions[addons.TRAINING_OPERATOR, "1.35"] = addon(
        addons.TRAINING_OPERATOR, "v1.2.1-eksbuild.1", default, default=default
    )
    result = run_check(ADDONS, case_of(), account)
    assert (result.status, messages(result)) == (Status.WARNED if says else Status.PASSED, says)


def test_a_version_that_eks_does_not_offer_is_reported_once(
    case_of: CaseOf, run_check: RunCheck, account: FakeAws
) -> None:
    account.answers.addon_versions = {(name, "1.30"): None for name in ALL}
    case = case_of({"eks.kubernetes_version": "1.30"})
    assert run_check(VERSION, case, account).status is Status.FAILED
    assert run_check(ADDONS, case, account).status is Status.SKIPPED


@pytest.mark.check("addon_versions_exist", "skips")
def test_one_missing_answer_hides_no_other(case_of: CaseOf, run_check: RunCheck, account: FakeAws) -> None:
    assert isinstance(account.answers.addon_versions, dict)
    account.answers.addon_versions[addons.COREDNS, "1.35"] = NotAnswered("throttled")
    account.answers.addon_versions[addons.TASK_GOVERNANCE, "1.35"] = None
    result = run_check(ADDONS, case_of(), account)
    assert [(each.reason, each.path) for each in result.skipped] == [("throttled", "eks.kubernetes_version")]
    assert [finding.path for finding in result.findings] == ["task_governance"]


@pytest.mark.check("kubectl_layer_matches_kubernetes", "passes")
@pytest.mark.parametrize("version", ["1.30", "1.31", "1.32", "1.33", "1.34", "1.35"])
def test_every_version_of_hyperpod_has_its_kubectl(case_of: CaseOf, run_check: RunCheck, *, version: str) -> None:
    assert run_check(KUBECTL, case_of({"eks.kubernetes_version": version}), offline()).status is Status.PASSED
    assert kubectl_minors() == frozenset(range(30, 36))


@pytest.mark.check("kubectl_layer_matches_kubernetes", "fails")
@pytest.mark.parametrize(
    ("version", "minor", "fix"),
    [
        ("1.36", 36, 'set kubernetes_version: "1.35", or run pip install aws-cdk.lambda-layer-kubectl-v36'),
        ("1.29", 29, 'set kubernetes_version: "1.30"'),
    ],
)
def test_a_version_without_its_kubectl(
    case_of: CaseOf, run_check: RunCheck, *, version: str, minor: int, fix: str
) -> None:
    case = case_of()
    section = case.environment.eks.model_copy(update={"kubernetes_version": version})
    beyond = replace(case, environment=case.environment.model_copy(update={"eks": section}))
    assert messages(run_check(KUBECTL, beyond, offline())) == [
        (
            f'eks.kubernetes_version: needs the kubectl layer of the same minor, got "{version}" and no package'
            f" aws-cdk.lambda-layer-kubectl-v{minor}; {fix}"
        )
    ]


@pytest.mark.check("system_nodes_hold_the_addons", "passes")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        # nine pods a node, four of them on every node: eleven pods of add-ons want three nodes
        {"hyperpod.instance_groups[0].instance_type": "ml.m5.large", "hyperpod.instance_groups[0].count": 3},
    ],
)
def test_nodes_with_room_for_add_ons(case_of: CaseOf, run_check: RunCheck, *, changes: Mapping[str, Any]) -> None:
    result = run_check(PODS, case_of(changes), offline())
    assert (result.status, messages(result)) == (Status.PASSED, [])


@pytest.mark.parametrize(
    "changes",
    [
        # only accelerated groups: validate's to report
        {"hyperpod.instance_groups[0].instance_type": "ml.g5.xlarge", "hyperpod.instance_groups[0].capacity": "spot"},
        # an existing cluster may have other nodes
        {**JOINED, "hyperpod.instance_groups[0].instance_type": "ml.m5.large"},
    ],
)
def test_room_for_add_ons_is_not_compared(case_of: CaseOf, run_check: RunCheck, *, changes: Mapping[str, Any]) -> None:
    assert run_check(PODS, case_of(changes), offline()).status is Status.NOT_NEEDED


@pytest.mark.check("system_nodes_hold_the_addons", "fails")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"instance_type": "ml.m5.large", "count": 2},
            (
                "hyperpod.instance_groups[0]: must have room for 11 pods of add-ons and controllers and 4 more on each"
                " node, got room for 10 (2 ml.m5.large of system with 9 pods each); further pods wait with 'Too many"
                " pods': set hyperpod.instance_groups[0].count: 3 or use a larger type"
            ),
        ),
        (
            {"instance_type": "ml.c6g.medium", "count": 9},
            (
                "hyperpod.instance_groups[0]: must have room for 11 pods of add-ons and controllers and 4 more on each"
                " node, got room for 0 (9 ml.c6g.medium of system with 3 pods each); further pods wait with 'Too many"
                " pods': use a larger type"
            ),
        ),
        (
            {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]},
            (
                "hyperpod.instance_groups[0].taints: every group without accelerators has taints, which add-ons do not"
                " tolerate, so their pods run on accelerated nodes or stay pending; remove the taints of one, or add a"
                " small group named system"
            ),
        ),
    ],
)
def test_nodes_without_room_for_add_ons(
    case_of: CaseOf, run_check: RunCheck, *, changes: Mapping[str, Any], says: str
) -> None:
    case = case_of({f"hyperpod.instance_groups[0].{key}": value for key, value in changes.items()})
    result = run_check(PODS, case, offline())
    assert (result.status, messages(result)) == (Status.WARNED, [says])


def test_what_prefers_other_nodes_does_not_keep_pods_out(case_of: CaseOf, run_check: RunCheck) -> None:
    taint = {"key": "dedicated", "effect": "PreferNoSchedule"}
    assert run_check(PODS, case_of({"hyperpod.instance_groups[0].taints": [taint]}), offline()).status is Status.PASSED


def test_a_type_outside_the_table_has_the_room_of_its_interface(case_of: CaseOf, run_check: RunCheck) -> None:
    """ml.m7i.large takes ten addresses, one of them its own."""
    case = case_of(
        {"hyperpod.instance_groups[0].instance_type": "ml.m7i.large", "hyperpod.instance_groups[0].count": 2}
    )
    assert (
        "got room for 10 (2 ml.m7i.large of system with 9 pods each)" in messages(run_check(PODS, case, offline()))[0]
    )


@pytest.mark.parametrize(("governance", "status"), [(..., Status.PASSED), ({"teams": []}, Status.WARNED)])
def test_room_at_and_beside_the_bound(
    case_of: CaseOf, run_check: RunCheck, *, governance: object, status: Status
) -> None:
    """Two ml.t3.medium of five pods, three on every node, hold CoreDNS and the chart; task governance is one more."""
    changes = {
        "hyperpod.instance_groups[0].instance_type": "ml.t3.medium",
        "operators": ...,
        "storage": ...,
        "task_governance": governance,
    }
    assert run_check(PODS, case_of(changes), offline()).status is status


def test_a_flexible_group_has_the_room_of_its_smallest_type(case_of: CaseOf, run_check: RunCheck) -> None:
    changes = {
        "hyperpod.instance_groups[0].instance_type": ...,
        "hyperpod.instance_groups[0].instance_types": ["ml.m5.2xlarge", "ml.m5.large"],
    }
    (says,) = messages(run_check(PODS, case_of(changes), offline()))
    assert "got room for 10 (2 ml.m5.2xlarge or ml.m5.large of system with 9 pods each)" in says


def test_a_type_without_a_number_is_skipped(case_of: CaseOf, run_check: RunCheck) -> None:
    changes = {
        "instance_types": {"ml.p9.large": {"vcpu": 2, "memory_gib": 8}},
        "hyperpod.instance_groups[0].instance_type": "ml.p9.large",
    }
    result = run_check(PODS, case_of(changes), offline())
    assert [(each.reason, each.path) for each in result.skipped] == [
        ("how many pods fit on a node of ml.p9.large is unknown", "hyperpod.instance_groups[0]")
    ]
    assert not result.findings


IMAGES = "copied_images_are_in_the_registry"
MIRROR = "444455556666.dkr.ecr.us-east-1.amazonaws.com"
# what prod's groups of ml.m5.2xlarge and ml.p5.48xlarge need and ECR of us-east-1 does not have
COPIES = (
    ("kubeflow/training-operator", "v1-855e096"),
    ("mpioperator/mpi-operator", "0.5"),
    ("nvidia/k8s-device-plugin", "v0.16.1"),
    ("eks/aws-efa-k8s-device-plugin", "v0.5.13"),
)


def mirrored(fake_aws: FakeAws, *, folder: str = "", **changed: bool | NotAnswered) -> None:
    """Let ECR have every copy below ``folder``, except for what is ``changed``, by the name's last part."""
    fake_aws.answers.container_image_exists = {
        ("444455556666", f"{folder}{repository}", tag): changed.get(
            repository.rpartition("/")[2].replace("-", "_"), True
        )
        for repository, tag in COPIES
    }


@pytest.mark.check("copied_images_are_in_the_registry", "passes")
@pytest.mark.parametrize(("registry", "folder"), [(MIRROR, ""), (f"{MIRROR}/mirror/of/all", "mirror/of/all/")])
def test_images_that_were_copied(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, registry: str, folder: str
) -> None:
    mirrored(fake_aws, folder=folder)
    result = run_check(IMAGES, case_of({"eks.image_registry": registry}), fake_aws)
    assert (result.status, messages(result), result.skipped) == (Status.PASSED, [], ())
    assert sorted(fake_aws.asked) == sorted(
        ("container_image_exists", "444455556666", f"{folder}{repository}", tag) for repository, tag in COPIES
    )


@pytest.mark.check("copied_images_are_in_the_registry", "fails")
def test_images_that_were_not_copied(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    mirrored(fake_aws, mpi_operator=False, k8s_device_plugin=NotAnswered("no permission", action="ecr:DescribeImages"))
    result = run_check(IMAGES, case_of({"eks.image_registry": MIRROR}), fake_aws)
    assert [(each.severity.value, each.path, each.message) for each in result.findings] == [
        (
            "warning",
            "eks.image_registry",
            (
                f"must have the image {MIRROR}/mpioperator/mpi-operator:0.5, got none: its pods would remain in"
                " ImagePullBackOff; push it, unless a pull-through cache fetches it ('hyperpod-cdk charts images' lists"
                " all images)"
            ),
        )
    ]
    (skipped,) = result.skipped
    assert (skipped.reason, skipped.action) == (
        f"the image {MIRROR}/nvidia/k8s-device-plugin:v0.16.1: no permission",
        "ecr:DescribeImages",
    )


@pytest.mark.check("copied_images_are_in_the_registry", "skips")
@pytest.mark.parametrize(
    ("registry", "reason"),
    [
        (
            f"{MIRROR.replace('us-east-1', 'us-west-2')}/mirror",
            f"{MIRROR.replace('us-east-1', 'us-west-2')} is not ECR",
        ),
        ("registry.example.com:5000/mirror", "registry.example.com:5000 is not ECR"),
    ],
)
def test_a_registry_that_is_not_asked(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, *, registry: str, reason: str
) -> None:
    result = run_check(IMAGES, case_of({"eks.image_registry": registry}), fake_aws)
    (skipped,) = result.skipped
    assert (skipped.reason, skipped.path) == (f"{reason} of us-east-1", "eks.image_registry")
    assert (result.status, fake_aws.asked) == (Status.SKIPPED, [])


OTHER_CHART = "ab" * 20


@pytest.mark.parametrize(
    ("lock", "reason"),
    [
        (
            ChartLock.packaged_text().replace(images.CHART_COMMIT, OTHER_CHART),
            (
                f"charts/charts.lock.yaml names the chart at {OTHER_CHART[:12]}, and its images are known at"
                f" {images.CHART_COMMIT[:12]}; 'hyperpod-cdk charts images' reads them from the pulled chart"
            ),
        ),
        ("commit: [", "{}: is not a chart lock"),
    ],
)
def test_the_images_of_another_chart_are_not_judged(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, tmp_path: Path, *, lock: str, reason: str
) -> None:
    file = tmp_path / LOCK_FILE
    file.parent.mkdir()
    file.write_text(lock, encoding="utf-8")
    result = run_check(IMAGES, case_of({"eks.image_registry": MIRROR}, project=tmp_path), fake_aws)
    (skipped,) = result.skipped
    assert skipped.reason.startswith(reason.format(f"{file}:1"))
    assert (result.status, skipped.path, fake_aws.asked) == (Status.SKIPPED, "eks.image_registry", [])


def test_a_project_without_a_lock_has_the_chart_of_the_library(
    case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws, tmp_path: Path
) -> None:
    mirrored(fake_aws)
    result = run_check(IMAGES, case_of({"eks.image_registry": MIRROR}, project=tmp_path), fake_aws)
    assert result.status is Status.PASSED


def test_a_file_without_a_registry_has_no_copies(case_of: CaseOf, run_check: RunCheck, fake_aws: FakeAws) -> None:
    assert run_check(IMAGES, case_of(), fake_aws).status is Status.NOT_NEEDED
