"""Access entries, roles, default queues and ResourceQuotas of teams."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_cdk.governance.team_access import shared_objects, team_objects
from hyperpod_cdk.governance.teams import QuotaRow, Team

ALICE = "arn:aws:iam::111122223333:role/alice"
API = "kueue.x-k8s.io/v1beta2"


def team(name: str = "research", **rest: Any) -> Team:
    return Team(name=name, quota=[QuotaRow(instance_type="ml.p5.48xlarge", count=2)], **rest)


def namespace(level: str = "baseline") -> dict[str, Any]:
    labels = {f"pod-security.kubernetes.io/{mode}": level for mode in ("audit", "enforce", "warn")}
    metadata = {"name": "hyperpod-ns-research", "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def test_a_team_that_asks_for_nothing_gets_its_level_of_pod_security() -> None:
    plain = team(member_role_arns=[ALICE])
    assert (shared_objects([plain]), team_objects(plain, queue_api=API)) == ([], {"PodSecurity": [namespace()]})
    memberless = team(access="rbac")
    assert (shared_objects([memberless]), team_objects(memberless, queue_api=API)) == (
        [],
        {"PodSecurity": [namespace()]},
    )


@pytest.mark.parametrize("level", ["privileged", "restricted"])
def test_a_team_may_have_another_level(level: str) -> None:
    assert team_objects(team(pod_security=level), queue_api=API) == {"PodSecurity": [namespace(level)]}


def test_a_level_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="pod_security") as refusal:
        team(pod_security="none")
    assert str(refusal.value) == (
        'team research: pod_security: must be baseline, privileged or restricted, got "none"; set pod_security to one'
        " of these"
    )


def test_the_default_queue_leads_to_the_teams_cluster_queue() -> None:
    assert team_objects(team(default_queue=True), queue_api=API) == {
        "PodSecurity": [namespace()],
        "DefaultQueue": [
            {
                "apiVersion": API,
                "kind": "LocalQueue",
                "metadata": {"name": "default", "namespace": "hyperpod-ns-research"},
                "spec": {"clusterQueue": "hyperpod-ns-research-clusterqueue"},
            }
        ],
    }


def test_the_resource_quota_holds_the_limits() -> None:
    limits = {"requests.nvidia.com/gpu": "16"}
    assert team_objects(team(resource_quota=limits), queue_api=API) == {
        "PodSecurity": [namespace()],
        "ResourceQuota": [
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "hyperpod-team", "namespace": "hyperpod-ns-research"},
                "spec": {"hard": limits},
            }
        ],
    }


def test_roles_cover_kubeflow_hyperpod_and_kueue() -> None:
    role, binding = team_objects(team(access="rbac", member_role_arns=[ALICE]), queue_api=API)["Members"]
    assert (role["kind"], binding["kind"]) == ("Role", "RoleBinding")
    verbs = {group: rule["verbs"] for rule in role["rules"] for group in rule["apiGroups"]}
    assert {"kubeflow.org", "sagemaker.amazonaws.com", "jobset.x-k8s.io"} <= verbs.keys()
    assert "create" in verbs["sagemaker.amazonaws.com"]
    assert verbs["kueue.x-k8s.io"] == ["get", "list", "watch"], "queues are the administrator's"


@pytest.mark.parametrize("access", ["rbac", "access_policies"])
def test_what_members_of_all_teams_share(access: str) -> None:
    kinds = [each["kind"] for each in shared_objects([team(access=access, member_role_arns=[ALICE])])]
    assert kinds == (["ClusterRole", "ClusterRoleBinding"] if access == "rbac" else [])
