"""A team's objects in Kubernetes: access entries and roles of its members, its default queue, its ResourceQuota."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from hyperpod_cdk.catalog import governance
from hyperpod_cdk.common.stack_arns import arn_of_aws
from hyperpod_cdk.config.arguments import is_token
from hyperpod_cdk.governance.teams import Team

POD_SECURITY = "PodSecurity"
"""The namespace itself, which SageMaker deletes: only its labels are from here."""

_MEMBERS = "hyperpod-members"
_READ = ["get", "list", "watch"]
_EVERY = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_JOBS = ["sagemaker.amazonaws.com", "kubeflow.org", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io", "ray.io"]


def access_entries(scope: Construct, teams: Sequence[Team], *, eks_cluster_name: str) -> list[eks.CfnAccessEntry]:
    """Return one access entry for each member and all of its teams, because EKS allows one access entry per role.

    Teams with ``access="rbac"`` give the entry Kubernetes groups, which ``team_objects`` binds to roles; the others
    give it AWS's access policies in their namespaces.
    """
    teams_of: dict[str, list[Team]] = {}
    for team in teams:
        for arn in dict.fromkeys(team.member_role_arns):
            teams_of.setdefault(arn, []).append(team)
    return [
        eks.CfnAccessEntry(
            scope,
            _entry_id(arn, index),
            cluster_name=eks_cluster_name,
            principal_arn=arn,
            type="STANDARD",
            kubernetes_groups=_groups(own),
            access_policies=_access_policies(own),
        )
        for index, (arn, own) in enumerate(teams_of.items())
    ]


def shared_objects(teams: Sequence[Team]) -> list[dict[str, Any]]:
    """Return the objects that members of all teams share: what `kubectl` and `hyp` read across namespaces."""
    return _cluster_wide_role() if any(_has_roles(team) for team in teams) else []


def team_objects(team: Team, *, queue_api: str) -> dict[str, list[dict[str, Any]]]:
    """Return a team's namespace with its level of Pod Security, and the objects that the team requests in it.

    The keys are: PodSecurity, Members, DefaultQueue, ResourceQuota.

    Each belongs in its own manifest: an object that is removed from a remaining manifest is not deleted. ``queue_api``
    is the API version of Kueue's local queues.
    """
    labels = governance.pod_security_labels(team.pod_security)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team.namespace, "labels": labels}}
    found: dict[str, list[dict[str, Any]]] = {POD_SECURITY: [namespace]}
    if _has_roles(team):
        found["Members"] = _role(team.namespace)
    if team.default_queue:
        queue = {
            "apiVersion": queue_api,
            "kind": "LocalQueue",
            "metadata": {"name": governance.DEFAULT_QUEUE, "namespace": team.namespace},
            "spec": {"clusterQueue": governance.cluster_queue(team.name)},
        }
        found["DefaultQueue"] = [queue]
    if team.resource_quota:
        limits = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": governance.RESOURCE_QUOTA_NAME, "namespace": team.namespace},
            "spec": {"hard": dict(team.resource_quota)},
        }
        found["ResourceQuota"] = [limits]
    return found


def _has_roles(team: Team) -> bool:
    return team.access == "rbac" and bool(team.member_role_arns)


def _groups(teams: Sequence[Team]) -> list[str] | None:
    own = [team.namespace for team in teams if team.access == "rbac"]
    return [_MEMBERS, *own] if own else None


def _access_policies(teams: Sequence[Team]) -> list[eks.CfnAccessEntry.AccessPolicyProperty]:
    def policy(name: str, scope: eks.CfnAccessEntry.AccessScopeProperty) -> eks.CfnAccessEntry.AccessPolicyProperty:
        arn = arn_of_aws("eks", f"cluster-access-policy/{name}")
        return eks.CfnAccessEntry.AccessPolicyProperty(policy_arn=arn, access_scope=scope)

    def within(namespaces: list[str]) -> eks.CfnAccessEntry.AccessScopeProperty:
        return eks.CfnAccessEntry.AccessScopeProperty(type="namespace", namespaces=namespaces)

    policies = [policy("AmazonEKSEditPolicy", within([team.namespace for team in teams]))]
    covered = [team.namespace for team in teams if team.access == "access_policies"]
    if covered:
        everywhere = eks.CfnAccessEntry.AccessScopeProperty(type="cluster")
        policies.append(policy("AmazonSagemakerHyperpodTrainingPolicy", within(covered)))
        policies.append(policy("AmazonSagemakerHyperpodUserClusterPolicy", everywhere))
    return policies


def _cluster_wide_role() -> list[dict[str, Any]]:
    rules = [
        {"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": _READ},
        {
            "apiGroups": ["kueue.x-k8s.io"],
            "resources": ["clusterqueues", "resourceflavors", "workloadpriorityclasses", "topologies"],
            "verbs": _READ,
        },
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": _READ},
        {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": _READ},
    ]
    return _role_and_binding("ClusterRole", {"name": _MEMBERS}, rules, group=_MEMBERS)


def _role(namespace: str) -> list[dict[str, Any]]:
    """The job types that AmazonEKSEditPolicy, which covers only Kubernetes' own types, does not include."""
    rules = [
        {"apiGroups": _JOBS, "resources": ["*"], "verbs": _EVERY},
        {
            "apiGroups": ["kueue.x-k8s.io"],
            "resources": ["localqueues", "workloads", "workloads/status"],
            "verbs": _READ,
        },
    ]
    return _role_and_binding("Role", {"name": _MEMBERS, "namespace": namespace}, rules, group=namespace)


def _role_and_binding(
    kind: str, metadata: Mapping[str, str], rules: Sequence[Mapping[str, Any]], *, group: str
) -> list[dict[str, Any]]:
    api = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": f"{api}/v1", "kind": kind, "metadata": dict(metadata), "rules": list(rules)},
        {
            "apiVersion": f"{api}/v1",
            "kind": f"{kind}Binding",
            "metadata": dict(metadata),
            "subjects": [{"kind": "Group", "name": group, "apiGroup": api}],
            "roleRef": {"kind": kind, "name": metadata["name"], "apiGroup": api},
        },
    ]


def _entry_id(role_arn: str, index: int) -> str:
    # a token has no text for the entry's name, so its position is used
    known = not is_token(role_arn)
    return f"Member-{hashlib.sha256(role_arn.encode()).hexdigest()[:12]}" if known else f"Member-{index}"
