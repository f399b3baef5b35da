"""An existing EKS cluster: one problem at a time, reported once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperpod_cdk.checks.answers import (
    EksClusterAnswer,
    HyperPodClusterAnswer,
    InstalledAddon,
    NotAnswered,
    Partial,
    StackAnswer,
    Undescribed,
)
from hyperpod_cdk.checks.model import Result, Status
from tests.support.fake_aws import Answers, FakeAws

ACTIVE = "existing_cluster_is_active"
NETWORK = "existing_cluster_stands_in_the_network"
VERSION = "existing_cluster_has_the_stated_version"
ENTRIES = "existing_cluster_takes_access_entries"
FAMILY = "existing_cluster_gives_pods_ipv4_addresses"
CNI = "existing_cluster_has_a_new_enough_vpc_cni"
KUEUE = "existing_cluster_has_no_kueue_of_its_own"
ADDONS = "existing_addons_are_told_apart"
REACH = "existing_cluster_can_be_reached"
OIDC = "oidc_provider_is_the_clusters"
ALONE = "existing_cluster_serves_no_other_hyperpod_cluster"
SUITED = "installed_addons_suit_the_operators"
ALL = (ACTIVE, NETWORK, VERSION, ENTRIES, FAMILY, CNI, KUEUE, ADDONS, SUITED, REACH, OIDC, ALONE)

VPC = "vpc-0c1f4e8a9b7d26350"
EKS_SG = "sg-03e9b5d7f1a8c2646"
ISSUER = "oidc.eks.us-east-1.amazonaws.com/id/4C7E1F0A93B8D2566A1B9E3D70F4C825"
ARN = "arn:aws:eks:us-east-1:111122223333:cluster/platform"
GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
REGISTRY = "602401143452.dkr.ecr.us-east-1.amazonaws.com"

CLUSTER = EksClusterAnswer(
    name="platform",
    arn=ARN,
    status="ACTIVE",
    kubernetes_version="1.34",
    authentication_mode="API_AND_CONFIG_MAP",
    vpc_id=VPC,
    subnet_ids=(),
    security_group_ids=("sg-0bbbbbbbbbbbbbbbb",),
    cluster_security_group_id=EKS_SG,
    endpoint="https://4C7E.gr7.us-east-1.eks.amazonaws.com",
    endpoint_public=True,
    endpoint_private=True,
    public_access_cidrs=("0.0.0.0/0",),
    certificate_authority="",
    oidc_issuer=f"https://{ISSUER}",
)

Run = Callable[..., Result]


def addon(name: str, version: str = "v1.20.4-eksbuild.1") -> InstalledAddon:
    return InstalledAddon(name=name, version=version, status="ACTIVE")


OWNERS = tuple(addon(name) for name in ("vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent", "cert-manager"))


def without(*names: str) -> tuple[InstalledAddon, ...]:
    return tuple(each for each in OWNERS if each.name not in names)


@pytest.fixture
def cluster(fake_aws: FakeAws) -> Answers:
    """A cluster that satisfies everything, with the add-ons of its owner, before the first deployment."""
    answers = fake_aws.answers
    answers.eks_cluster = {"platform": CLUSTER}
    answers.installed_addons = {"platform": OWNERS}
    answers.kubernetes_api_groups = {"platform": frozenset({"apps", "batch"})}
    answers.kubernetes_daemon_sets = {("platform", "kube-system"): {}}
    answers.hyperpod_clusters = ()
    answers.stack = {"shared-platform": None, "shared-foundation": None}
    return answers


@pytest.fixture
def run(project: Path, case_of: Any, run_check: Any, fake_aws: FakeAws, cluster: Answers) -> Run:
    """Runs a check on examples/existing-vpc-and-eks.yaml; keywords change sections, or keys of eks.existing."""
    document = yaml.safe_load((project / "examples/existing-vpc-and-eks.yaml").read_text(encoding="utf-8"))

    def on(check: str, *, existing: dict[str, Any] | None = None, **sections: Any) -> Result:
        data = {**document, **sections}
        changed = {**document["eks"]["existing"], **(existing or {})}
        data["eks"] = {
            **document["eks"],
            "kubernetes_version": "1.34",
            "existing": {key: value for key, value in changed.items() if value is not None},
        }
        kept = {key: value for key, value in data.items() if value is not None}
        result: Result = run_check(check, case_of(yaml.dump(kept, Dumper=yaml.CSafeDumper, sort_keys=False)), fake_aws)
        return result

    assert cluster is fake_aws.answers
    return on


def said(result: Result) -> list[str]:
    return [f"{finding.severity.value}: {finding.path}: {finding.message}" for finding in result.findings]


def everything(run: Run, **changes: Any) -> list[str]:
    return [line for check in ALL for line in said(run(check, **changes))]


def changed(answers: Answers, **fields: Any) -> None:
    answers.eks_cluster = {"platform": replace(CLUSTER, **fields)}


@pytest.mark.check("existing_cluster_is_active", "passes")
@pytest.mark.check("existing_cluster_stands_in_the_network", "passes")
@pytest.mark.check("existing_cluster_has_the_stated_version", "passes")
@pytest.mark.check("existing_cluster_takes_access_entries", "passes")
@pytest.mark.check("existing_cluster_gives_pods_ipv4_addresses", "passes")
@pytest.mark.check("existing_cluster_has_a_new_enough_vpc_cni", "passes")
@pytest.mark.check("existing_cluster_has_no_kueue_of_its_own", "passes")
@pytest.mark.check("existing_addons_are_told_apart", "passes")
@pytest.mark.check("installed_addons_suit_the_operators", "passes")
@pytest.mark.check("existing_cluster_can_be_reached", "passes")
@pytest.mark.check("oidc_provider_is_the_clusters", "passes")
@pytest.mark.check("existing_cluster_serves_no_other_hyperpod_cluster", "passes")
@pytest.mark.parametrize("check", ALL)
def test_a_cluster_that_satisfies_everything(check: str, run: Run) -> None:
    result = run(check)
    assert (result.status, said(result)) == (Status.PASSED, [])


@pytest.mark.parametrize("check", ALL)
def test_nothing_is_asked_for_a_cluster_that_is_made(
    check: str, case_of: Any, run_check: Any, fake_aws: FakeAws
) -> None:
    assert run_check(check, case_of(), fake_aws).status is Status.NOT_NEEDED
    assert fake_aws.asked == []


@pytest.mark.check("existing_cluster_is_active", "skips")
@pytest.mark.check("existing_cluster_stands_in_the_network", "skips")
@pytest.mark.check("existing_cluster_has_the_stated_version", "skips")
@pytest.mark.check("existing_cluster_takes_access_entries", "skips")
@pytest.mark.check("existing_cluster_gives_pods_ipv4_addresses", "skips")
@pytest.mark.check("existing_cluster_has_a_new_enough_vpc_cni", "skips")
@pytest.mark.check("existing_cluster_has_no_kueue_of_its_own", "skips")
@pytest.mark.check("existing_addons_are_told_apart", "skips")
@pytest.mark.check("existing_cluster_can_be_reached", "skips")
@pytest.mark.check("oidc_provider_is_the_clusters", "skips")
@pytest.mark.check("existing_cluster_serves_no_other_hyperpod_cluster", "skips")
@pytest.mark.parametrize("check", ALL)
def test_without_an_answer_nothing_is_claimed(check: str, run: Run, cluster: Answers) -> None:
    cluster.eks_cluster = {"platform": NotAnswered("not allowed to ask", action="eks:DescribeCluster")}
    result = run(check)
    assert result.status is Status.SKIPPED
    assert [(each.reason, each.action) for each in result.skipped] == [("not allowed to ask", "eks:DescribeCluster")]


@pytest.mark.check("existing_cluster_is_active", "fails")
def test_a_cluster_that_does_not_exist_is_reported_once(run: Run, cluster: Answers) -> None:
    cluster.eks_cluster = {"platform": None}
    assert everything(run) == [
        (
            "error: eks.existing.cluster_name: needs an EKS cluster of account 111122223333 in us-east-1, got platform,"
            " which does not exist there; correct the name, the account or the region"
        )
    ]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (
            "UPDATING",
            (
                "warning: eks.existing.cluster_name: platform is being updated; wait until it is ACTIVE before you"
                " deploy"
            ),
        ),
        (
            "FAILED",
            (
                "error: eks.existing.cluster_name: needs an ACTIVE cluster, got platform, which is FAILED; wait for"
                " it or repair it"
            ),
        ),
        (
            "DELETING",
            (
                "error: eks.existing.cluster_name: needs an ACTIVE cluster, got platform, which is DELETING; wait"
                " for it or repair it"
            ),
        ),
    ],
)
def test_a_cluster_that_is_not_active(run: Run, cluster: Answers, status: str, message: str) -> None:
    changed(cluster, status=status)
    assert everything(run) == [message]


@pytest.mark.check("existing_cluster_stands_in_the_network", "fails")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"vpc_id": "vpc-0123456789abcdef0"},
            (
                "error: network.existing.vpc_id: needs the VPC of platform, which is vpc-0123456789abcdef0, got"
                f" {VPC}; set vpc_id: vpc-0123456789abcdef0 with subnets of it, or name another cluster"
            ),
        ),
        (
            {"cluster_security_group_id": "sg-0cccccccccccccccc"},
            (
                "error: eks.existing.security_group_id: must be a group that the control plane of platform has"
                f" (sg-0cccccccccccccccc, sg-0bbbbbbbbbbbbbbbb), got {EKS_SG}; set security_group_id:"
                " sg-0cccccccccccccccc, which EKS created for the cluster"
            ),
        ),
    ],
)
def test_a_cluster_in_another_network(run: Run, cluster: Answers, fields: Any, message: str) -> None:
    changed(cluster, **fields)
    assert everything(run) == [message]


def test_another_group_of_the_control_plane_will_do(run: Run) -> None:
    assert said(run(NETWORK, existing={"security_group_id": "sg-0bbbbbbbbbbbbbbbb"})) == []


@pytest.mark.check("existing_cluster_has_the_stated_version", "fails")
@pytest.mark.parametrize(
    ("version", "messages"),
    [
        ("1.34", []),
        (
            "1.33",
            [
                (
                    "warning: eks.kubernetes_version: must be the version of platform, 1.33, got 1.34; set"
                    " kubernetes_version:"
                    ' "1.33"'
                )
            ],
        ),
        (
            "1.35",
            [
                (
                    "warning: eks.kubernetes_version: must be the version of platform, 1.35, got 1.34; set"
                    " kubernetes_version:"
                    ' "1.35"'
                )
            ],
        ),
        (
            "1.32",
            [
                (
                    "error: eks.kubernetes_version: must be the version of platform, 1.32, got 1.34; set"
                    " kubernetes_version:"
                    ' "1.32"'
                )
            ],
        ),
        (
            "1.29",
            [
                (
                    "warning: eks.kubernetes_version: HyperPod documents Kubernetes 1.30 to 1.35 (table of"
                    " 2026-11-20), and platform has 1.29; choose another cluster, or update it to one of these"
                )
            ],
        ),
    ],
)
def test_versions(run: Run, cluster: Answers, version: str, messages: list[str]) -> None:
    changed(cluster, kubernetes_version=version)
    assert everything(run) == messages


@pytest.mark.check("existing_cluster_takes_access_entries", "fails")
def test_a_cluster_without_access_entries(run: Run, cluster: Answers) -> None:
    changed(cluster, authentication_mode="CONFIG_MAP")
    assert everything(run) == [
        (
            "error: eks.existing.cluster_name: needs authentication mode API or API_AND_CONFIG_MAP, got CONFIG_MAP on"
            " platform; run 'aws eks update-cluster-config --name platform --access-config"
            " authenticationMode=API_AND_CONFIG_MAP', which cannot be undone"
        )
    ]
    changed(cluster, authentication_mode="API")
    assert everything(run) == []


@pytest.mark.check("existing_cluster_gives_pods_ipv4_addresses", "fails")
def test_a_cluster_whose_pods_have_ipv6_addresses(run: Run, cluster: Answers) -> None:
    changed(cluster, ip_family="ipv6")
    of_pods = (
        "warning: eks.existing.cluster_name: should give pods IPv4 addresses, got ipv6 on platform, which the role of"
        " the nodes may not assign; give the VPC CNI a role of its own with ec2:AssignIpv6Addresses, or use an IPv4"
        " cluster"
    )
    assert everything(run) == [
        of_pods,
        (
            "warning: storage.lustre: is not supported by the EKS user guide in IPv6 clusters, such as platform;"
            " leave out the claims, or use an IPv4 cluster"
        ),
    ]
    assert everything(run, storage=None) == [of_pods]


@pytest.mark.check("existing_cluster_has_a_new_enough_vpc_cni", "fails")
@pytest.mark.parametrize(
    ("version", "ok"),
    [("v1.18.3-eksbuild.1", True), ("v1.19.0-eksbuild.1", True), ("v1.18.2-eksbuild.9", False), ("v1.9.3", False)],
)
def test_the_version_of_the_cni(run: Run, cluster: Answers, version: str, ok: bool) -> None:  # noqa: FBT001 - a parameter
    cluster.installed_addons = {"platform": (*without("vpc-cni"), addon("vpc-cni", version))}
    add_on = (
        f"error: eks.existing.cluster_name: needs the Amazon VPC CNI 1.18.3 or newer for HyperPod, got {version} on"
        " platform; update the add-on vpc-cni to it, which its owner can with 'aws eks update-addon'"
    )
    assert everything(run) == ([] if ok else [add_on])
    cluster.installed_addons = {"platform": without("vpc-cni")}
    cluster.kubernetes_daemon_sets = {
        ("platform", "kube-system"): {"aws-node": (f"{REGISTRY}/amazon-k8s-cni:{version}", f"{REGISTRY}/agent:v1")}
    }
    own = add_on.partition("; ")[0] + "; update the DaemonSet aws-node to it in the way it was installed"
    assert everything(run) == ([] if ok else [own])


def test_no_cni_at_all(run: Run, cluster: Answers) -> None:
    cluster.installed_addons = {"platform": without("vpc-cni")}
    cluster.kubernetes_daemon_sets = {("platform", "kube-system"): {"cilium": ("quay.io/cilium/cilium:v1",)}}
    assert everything(run) == [
        (
            "error: eks.existing.cluster_name: needs the Amazon VPC CNI 1.18.3 or newer, the only CNI that HyperPod"
            " supports, got neither the add-on vpc-cni nor the DaemonSet aws-node on platform; install the add-on"
        )
    ]


@pytest.mark.parametrize(
    ("version", "images", "reason"),
    [
        ("latest", None, "the VPC CNI of platform has the version latest, which cannot be compared"),
        (
            None,
            ("mirror/cni@sha256:0123",),
            "the images of aws-node on platform (mirror/cni@sha256:0123) show no version",
        ),
    ],
)
def test_a_cni_with_an_unknown_version(
    run: Run, cluster: Answers, version: str | None, images: Any, reason: str
) -> None:
    there = (addon("vpc-cni", version),) if version else ()
    cluster.installed_addons = {"platform": (*without("vpc-cni"), *there)}
    cluster.kubernetes_daemon_sets = {("platform", "kube-system"): {"aws-node": images or ()}}
    assert [each.reason for each in run(CNI).skipped] == [reason]


@pytest.mark.check("existing_cluster_has_no_kueue_of_its_own", "fails")
def test_a_kueue_installation_of_others(run: Run, cluster: Answers) -> None:
    cluster.kubernetes_api_groups = {"platform": frozenset({"apps", "kueue.x-k8s.io"})}
    assert everything(run) == [
        (
            "error: task_governance: needs platform without its own Kueue, got the API group kueue.x-k8s.io; leave out"
            " task_governance, or name another cluster: the users of that Kueue would lose their queues and workloads"
            " with it"
        )
    ]
    assert everything(run, task_governance=None, storage=None) == []
    cluster.installed_addons = {"platform": (*OWNERS, addon(GOVERNANCE))}
    assert said(run(KUEUE)) == []
    assert said(run(KUEUE, existing={"installed_addons": ["cert-manager", GOVERNANCE]})) == []


def test_an_api_server_that_does_not_answer(run: Run, cluster: Answers) -> None:
    cluster.kubernetes_api_groups = NotAnswered("the endpoint is private")
    assert [each.reason for each in run(KUEUE).skipped] == ["the endpoint is private"]


@pytest.mark.check("existing_addons_are_told_apart", "fails")
def test_an_addon_that_is_there_already(run: Run, cluster: Answers) -> None:
    cluster.installed_addons = {"platform": (*OWNERS, addon("aws-fsx-csi-driver"))}
    assert everything(run) == [
        (
            "error: storage.lustre[0].claim: needs to install aws-fsx-csi-driver on platform, got one that is"
            " installed already, which EKS refuses; add it to eks.existing.installed_addons to use it as it is"
        )
    ]
    assert everything(run, existing={"installed_addons": ["cert-manager", "aws-fsx-csi-driver"]}) == []
    cluster.stack = {
        "shared-platform": StackAnswer(name="shared-platform", status="CREATE_COMPLETE"),
        "shared-foundation": None,
    }
    assert everything(run) == []


def test_an_addon_that_the_file_expects(run: Run, cluster: Answers) -> None:
    cluster.installed_addons = {"platform": without("cert-manager")}
    assert everything(run) == [
        (
            "error: eks.existing.installed_addons[0]: must be an add-on of platform (coredns, eks-pod-identity-agent,"
            " kube-proxy, vpc-cni), got cert-manager; remove it from the list to have it installed"
        )
    ]


def test_a_pod_identity_agent_that_is_missing(run: Run, cluster: Answers) -> None:
    cluster.installed_addons = {"platform": without("eks-pod-identity-agent")}
    assert everything(run) == [
        (
            "error: eks.existing.cluster_name: needs the add-on eks-pod-identity-agent on platform for"
            " aws-fsx-csi-driver, got none; run 'aws eks create-addon"
            " --cluster-name platform --addon-name eks-pod-identity-agent'"
        )
    ]


def test_another_hyperpod_cluster_is_found_beside_one_that_was_not_read(run: Run, cluster: Answers) -> None:
    denied = Undescribed(name="b", why=NotAnswered("no permission"))
    cluster.hyperpod_clusters = Partial(read=(hyperpod_cluster("first-try", ARN),), unread=(denied,))
    result = run("existing_cluster_serves_no_other_hyperpod_cluster")
    assert len(said(result)) == 1
    assert [each.reason for each in result.skipped] == ["b: no permission"]


@pytest.mark.check("existing_cluster_can_be_reached", "fails")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"endpoint_public": False}, ""),
        ({"public_access_cidrs": ("198.51.100.7/32",)}, ""),
        ({"endpoint_private": False}, ""),
        ({"endpoint_private": False, "public_access_cidrs": ("128.0.0.0/1", "0.0.0.0/1")}, ""),
        (
            {"endpoint_private": False, "public_access_cidrs": ("8.8.8.0/24", "10.0.0.0/8")},
            (
                "warning: eks.existing.cluster_name: platform has no private endpoint, and its public endpoint allows"
                " 8.8.8.0/24,"
                " 10.0.0.0/8 only: nodes and kubectl reach it only if the address of their NAT gateway is in these"
                " blocks; run"
                " 'aws eks update-cluster-config --name platform --resources-vpc-config endpointPrivateAccess=true'"
            ),
        ),
        (
            {"endpoint_private": False, "public_access_cidrs": ("10.0.0.0/8",)},
            (
                "error: eks.existing.cluster_name: needs an API server that nodes and kubectl can reach, got platform,"
                " which has no private endpoint, and whose public endpoint allows 10.0.0.0/8; run"
                " 'aws eks update-cluster-config --name"
                " platform"
                " --resources-vpc-config endpointPrivateAccess=true'"
            ),
        ),
        (
            {"endpoint_private": False, "endpoint_public": False, "public_access_cidrs": ()},
            (
                "error: eks.existing.cluster_name: needs an API server that nodes and kubectl can reach, got platform,"
                " which has no private endpoint, and whose public endpoint allows no block; run"
                " 'aws eks update-cluster-config --name"
                " platform"
                " --resources-vpc-config endpointPrivateAccess=true'"
            ),
        ),
    ],
)
def test_who_reaches_the_api_server(run: Run, cluster: Answers, fields: Any, message: str) -> None:
    changed(cluster, **fields)
    assert everything(run) == ([message] if message else [])


@pytest.mark.check("oidc_provider_is_the_clusters", "fails")
def test_a_provider_of_another_cluster(run: Run, cluster: Answers) -> None:
    other = "oidc.eks.us-east-1.amazonaws.com/id/0000000000000000"
    changed(cluster, oidc_issuer=f"https://{other}")
    assert everything(run) == [
        (
            f"error: eks.existing.oidc_provider_arn: must be the provider of platform, whose issuer is {other}, got"
            f" {ISSUER}; set oidc_provider_arn: arn:aws:iam::111122223333:oidc-provider/{other}"
        )
    ]
    assert everything(run, existing={"oidc_provider_arn": None}) == []
    changed(cluster, oidc_issuer="")
    assert everything(run) == [
        (
            f"error: eks.existing.oidc_provider_arn: must be the provider of platform, whose issuer is none, got"
            f" {ISSUER};"
            " remove it"
        )
    ]


def hyperpod_cluster(name: str, eks_arn: str) -> HyperPodClusterAnswer:
    return HyperPodClusterAnswer(name=name, arn="", status="InService", eks_cluster_arn=eks_arn, groups=())


@pytest.mark.check("existing_cluster_serves_no_other_hyperpod_cluster", "fails")
def test_a_cluster_that_serves_another_hyperpod_cluster(run: Run, cluster: Answers) -> None:
    cluster.hyperpod_clusters = (
        hyperpod_cluster("shared-research", ARN),
        hyperpod_cluster("elsewhere", f"{ARN}-2"),
    )
    assert everything(run) == []
    cluster.hyperpod_clusters = (hyperpod_cluster("first-try", ARN),)
    assert everything(run) == [
        (
            "error: eks.existing.cluster_name: needs an EKS cluster without a HyperPod cluster, got platform, which"
            " serves first-try; use another one, or add the instance groups to first-try"
        )
    ]


INFERENCE = {"inference": {"enabled": True}}
TOO_OLD = (
    "error: eks.existing.installed_addons[0]: must be 1.18.2-eksbuild.2 or newer for"
    " amazon-sagemaker-hyperpod-inference, got cert-manager v1.18.2-eksbuild.1 on platform; run 'aws eks update-addon"
    " --cluster-name platform --addon-name cert-manager --addon-version VERSION'"
)


@pytest.mark.check("installed_addons_suit_the_operators", "fails")
@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("v1.18.2-eksbuild.2", []),
        ("v1.19.0-eksbuild.1", []),
        ("v1.18.2-eksbuild.1", [TOO_OLD]),
    ],
)
def test_an_addon_that_is_used_as_it_is_must_be_new_enough(
    version: str, found: list[str], run: Run, cluster: Answers
) -> None:
    cluster.installed_addons = {"platform": (*without("cert-manager"), addon("cert-manager", version))}
    provider = f"arn:aws:iam::111122223333:oidc-provider/{ISSUER}"
    result = run(SUITED, operators=INFERENCE, existing={"oidc_provider_arn": provider})
    assert said(result) == found


@pytest.mark.check("installed_addons_suit_the_operators", "skips")
def test_addons_that_cannot_be_listed_fit_no_version(run: Run, cluster: Answers) -> None:
    cluster.installed_addons = {"platform": NotAnswered("no permission")}
    assert run(SUITED).status is Status.SKIPPED
