"""Who enters EKS clusters and what RBAC permits, as sentences."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hyperpod_cdk.review.model import Access
from hyperpod_cdk.review.rights.access import access
from hyperpod_cdk.templates.assembly import Assembly, Stack
from hyperpod_cdk.templates.difference import compare
from tests.support.tables import row_by_row

ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
EDIT = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSEditPolicy"
ROLE = "arn:aws:iam::111122223333:role/team"
QUIET = {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False}


def cluster(**config: Any) -> dict[str, Any]:
    """Return a cluster named eks; ``config`` is its AccessConfig."""
    return {"Type": "AWS::EKS::Cluster", "Properties": {"Name": "eks", "AccessConfig": config or QUIET}}


def entry(principal: Any = ROLE, **properties: Any) -> dict[str, Any]:
    """Return an access entry in it."""
    stated = {"ClusterName": {"Ref": "Cluster"}, "PrincipalArn": principal, **properties}
    return {"Type": "AWS::EKS::AccessEntry", "Properties": stated}


def policy(arn: str, *namespaces: str) -> dict[str, Any]:
    """Return an access policy, in the whole cluster without namespaces."""
    scope = {"Type": "namespace", "Namespaces": list(namespaces)} if namespaces else {"Type": "cluster"}
    return {"PolicyArn": arn, "AccessScope": scope}


def manifest(*objects: dict[str, Any]) -> dict[str, Any]:
    """Return objects that CDK's kubectl handler applies."""
    properties = {"Manifest": json.dumps(objects), "ClusterName": {"Ref": "Cluster"}}
    return {"Type": "Custom::AWSCDK-EKS-KubernetesResource", "Properties": properties}


def judged(before: dict[str, Any], after: dict[str, Any]) -> Access:
    """Compare two sets of resources, each with the quiet cluster unless it has its own."""
    base, head = (
        Assembly(
            environment="prod",
            stacks=(
                Stack(
                    name="prod-eks",
                    template={"Resources": {"Cluster": cluster(), **each}},
                    account="111122223333",
                    region="us-east-1",
                ),
            ),
        )
        for each in (before, after)
    )
    return access(base, head, compare(base, head))


def grants(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the sentences about grants."""
    return [grant.sentence for grant in judged(before, after).grants]


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({}, "can access EKS cluster eks, without any permission of its own"),
        (
            {"AccessPolicies": [policy(ADMIN)]},
            "can access EKS cluster eks with AmazonEKSClusterAdminPolicy in the whole cluster",
        ),
        (
            {"AccessPolicies": [policy(EDIT, "b", "a")], "KubernetesGroups": ["team", "all"]},
            (
                "can access EKS cluster eks with AmazonEKSEditPolicy in namespace a and namespace b, in Kubernetes "
                "groups all and team"
            ),
        ),
        ({"Type": "HYPERPOD_LINUX"}, "can access EKS cluster eks as HYPERPOD_LINUX"),
    ],
)
def test_access_entry(properties: dict[str, Any], sentence: str) -> None:
    found = judged({}, {"Entry": entry(**properties)})
    assert [grant.sentence for grant in found.grants] == [f"role team {sentence}"]
    assert found.grants[0].kind == "cluster access"
    gone = grants({"Entry": entry(**properties)}, {})
    assert gone == [f"role team {sentence.replace('can access', 'can no longer access')}"]


def test_only_the_difference_of_an_entry_is_reported() -> None:
    before = {"Entry": entry(AccessPolicies=[policy(EDIT, "a", "b")], KubernetesGroups=["team"])}
    after = {"Other": entry(AccessPolicies=[policy(EDIT, "c"), policy(EDIT, "a")], KubernetesGroups=["team"])}
    assert grants(before, after) == [
        "role team enters EKS cluster eks with AmazonEKSEditPolicy in namespace c",
        "role team no longer enters EKS cluster eks with AmazonEKSEditPolicy in namespace b",
    ]


def test_cluster_by_name_or_by_reference_is_one_cluster() -> None:
    by_name = entry()
    by_name["Properties"]["ClusterName"] = "eks"
    assert not grants({"Entry": entry()}, {"Entry": by_name})


def test_pod_identities_and_addons() -> None:
    role = {"Type": "AWS::IAM::Role", "Metadata": {"aws:cdk:path": "prod/eks/Fsx/Role"}}
    arn = {"Fn::GetAtt": ["Role", "Arn"]}
    association: dict[str, Any] = {
        "Type": "AWS::EKS::PodIdentityAssociation",
        "Properties": {"ClusterName": "eks", "Namespace": "kube-system", "ServiceAccount": "fsx", "RoleArn": arn},
    }
    addon = {
        "Type": "AWS::EKS::Addon",
        "Properties": {
            "ClusterName": {"Ref": "Cluster"},
            "AddonName": "aws-ebs-csi-driver",
            "ServiceAccountRoleArn": arn,
            "PodIdentityAssociations": [{"ServiceAccount": "ebs", "RoleArn": ROLE}],
        },
    }
    assert grants({"Role": role}, {"Role": role, "Pods": association, "Addon": addon}) == [
        "add-on aws-ebs-csi-driver of EKS cluster eks acts as role Fsx (prod-eks)",
        "service account ebs of add-on aws-ebs-csi-driver of EKS cluster eks acts as role team",
        "service account kube-system/fsx of EKS cluster eks acts as role Fsx (prod-eks)",
    ]
    other = {**association, "Properties": {**association["Properties"], "RoleArn": ROLE, "TargetRoleArn": arn}}
    assert grants({"Role": role, "Pods": association}, {"Role": role, "Pods": other}) == [
        "service account kube-system/fsx of EKS cluster eks acts as role team, and through it as role Fsx (prod-eks)",
        "service account kube-system/fsx of EKS cluster eks no longer acts as role Fsx (prod-eks)",
    ]


@pytest.mark.parametrize(
    ("before", "after", "sentences"),
    [
        (
            QUIET,
            {**QUIET, "AuthenticationMode": "API_AND_CONFIG_MAP"},
            [
                (
                    "EKS cluster eks gives access to everyone whom the aws-auth ConfigMap lists (authentication "
                    "mode API_AND_CONFIG_MAP)"
                )
            ],
        ),
        (
            {**QUIET, "AuthenticationMode": "CONFIG_MAP"},
            QUIET,
            [
                "EKS cluster eks gives access to everyone who has an access entry (authentication mode API)",
                (
                    "EKS cluster eks no longer gives access to everyone whom the aws-auth ConfigMap lists "
                    "(authentication mode was CONFIG_MAP)"
                ),
            ],
        ),
        (
            QUIET,
            {"AuthenticationMode": "API"},
            ["the identity that creates EKS cluster eks is its administrator"],
        ),
        (QUIET, {**QUIET, "BootstrapClusterCreatorAdminPermissions": "false"}, []),
    ],
)
def test_authentication(before: dict[str, Any], after: dict[str, Any], sentences: list[str]) -> None:
    assert grants({"Cluster": cluster(**before)}, {"Cluster": cluster(**after)}) == sentences


def test_aws_auth() -> None:
    config_map = {
        "kind": "ConfigMap",
        "metadata": {"name": "aws-auth", "namespace": "kube-system"},
        "data": {"mapRoles": f"- rolearn: {ROLE}\n  groups: [system:masters]\n- odd\n", "mapUsers": "{"},
    }
    found = judged({}, {"Auth": manifest(config_map)})
    assert [grant.sentence for grant in found.grants] == [
        "Kubernetes manifest Auth (prod-eks): what this permits is unknown: aws-auth: mapUsers is not YAML",
        "Kubernetes manifest Auth (prod-eks): what this permits is unknown: aws-auth: odd",
        "role team can access EKS cluster eks in Kubernetes group system:masters",
    ]
    assert found.notes == (
        "Kubernetes manifest Auth (prod-eks): not judged: aws-auth: odd",
        "Kubernetes manifest Auth (prod-eks): not judged: aws-auth: mapUsers is not YAML",
    )


def binding(kind: str, role: tuple[str, str], *subjects: dict[str, str], namespace: str = "") -> dict[str, Any]:
    """Return a binding of subjects to a role."""
    metadata = {"name": "b", **({"namespace": namespace} if namespace else {})}
    ref = {"kind": role[0], "name": role[1]}
    return {"kind": kind, "metadata": metadata, "subjects": list(subjects), "roleRef": ref}


TEAM = {"kind": "Group", "name": "team"}
RULES = [
    {"apiGroups": ["", "apps"], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["update"]},
    {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
]


def test_rbac() -> None:
    role = {"kind": "Role", "metadata": {"name": "r", "namespace": "a"}, "rules": RULES}
    bound = binding("RoleBinding", ("Role", "r"), TEAM, namespace="a")
    where = "in namespace a of EKS cluster eks"
    assert grants({}, {"Members": manifest(role, bound)}) == [
        f"Kubernetes group team may get and list pods, pods.apps, pods.apps/log and pods/log {where}",
        f"Kubernetes group team may get path /metrics {where}",
        f"Kubernetes group team may update configmaps named mine {where}",
    ]
    # the same rights in another manifest, split into two rules
    split = [{**RULES[0], "verbs": [verb]} for verb in ("list", "get")] + RULES[1:]
    other = {"One": manifest({**role, "rules": split}), "Two": manifest(bound)}
    assert not grants({"Members": manifest(role, bound)}, other)


@pytest.mark.parametrize(
    ("bound", "sentence"),
    [
        (
            binding("ClusterRoleBinding", ("ClusterRole", "cluster-admin"), {"kind": "User", "name": "ann"}),
            "Kubernetes user ann has ClusterRole cluster-admin in the whole cluster of EKS cluster eks",
        ),
        (
            binding("RoleBinding", ("ClusterRole", "edit"), {"kind": "ServiceAccount", "name": "sa"}, namespace="a"),
            "service account a/sa has ClusterRole edit in namespace a of EKS cluster eks",
        ),
    ],
)
def test_roles_that_no_manifest_holds(bound: dict[str, Any], sentence: str) -> None:
    assert grants({}, {"Bound": manifest(bound)}) == [sentence]
    assert grants({"Bound": manifest(bound)}, {}) == [sentence.replace(" has ", " no longer has ")]


def test_anybody_comes_first() -> None:
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    role = {"kind": "ClusterRole", "metadata": {"name": "all"}, "rules": [everything]}
    anonymous = {"kind": "Group", "name": "system:unauthenticated"}
    found = judged(
        {}, {"Bound": manifest(role, binding("ClusterRoleBinding", ("ClusterRole", "all"), TEAM, anonymous))}
    )
    assert [(grant.sentence, grant.is_wildcard) for grant in found.grants] == [
        (
            (
                "Kubernetes group system:unauthenticated may use every verb (*) on every kind (*)"
                " in the whole cluster of EKS cluster eks"
            ),
            True,
        ),
        (
            "Kubernetes group team may use every verb (*) on every kind (*) in the whole cluster of EKS cluster eks",
            True,
        ),
    ]


def test_a_name_that_reads_like_a_sentence_changes_none() -> None:
    role = {"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": RULES[1:2]}
    user = {"kind": "User", "name": "those who use every day"}
    found = grants({}, {"Bound": manifest(role, binding("ClusterRoleBinding", ("ClusterRole", "r"), user))})
    who, where = "Kubernetes user those who use every day", "in the whole cluster of EKS cluster eks"
    assert found == [f"{who} may update configmaps named mine {where}"]


def test_aggregated_role() -> None:
    metadata = {"name": "jobs", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
    role = {"kind": "ClusterRole", "metadata": metadata, "rules": [RULES[2]]}
    assert grants({}, {"Jobs": manifest(role)}) == [
        "anyone with a binding to ClusterRole view may get path /metrics in the scope of the binding in EKS cluster eks"
    ]


def test_manifest_that_is_not_json_is_noted() -> None:
    broken = {"Type": "Custom::AWSCDK-EKS-KubernetesResource", "Properties": {"Manifest": "[Role", "ClusterName": "x"}}
    assert judged({}, {"Broken": broken}).notes == (
        "Kubernetes manifest Broken (prod-eks): not judged: its Manifest is not JSON",
    )


@row_by_row(
    "after, is_grave",
    [
        (entry(AccessPolicies=[policy(ADMIN)]), True),
        (entry(AccessPolicies=[policy(EDIT)]), True),
        (entry(AccessPolicies=[policy(EDIT, "kube-system")]), True),
        # to edit a namespace of one's own is no administration
        (entry(AccessPolicies=[policy(EDIT, "a")]), False),
        (entry(KubernetesGroups=["system:nodes"]), False),
        (entry(KubernetesGroups=["system:masters"]), True),
        (entry(), False),
        # nodes join as what they are
        (entry(Type="HYPERPOD_LINUX"), False),
    ],
)
def test_a_way_into_a_cluster_is_to_be_looked_at(after: dict[str, Any], is_grave: bool) -> None:  # noqa: FBT001 - a table
    assert [grant.is_grave for grant in judged({}, {"Entry": after}).grants] == [is_grave]
    assert [grant.is_grave for grant in judged({"Entry": after}, {}).grants] == [False]


@pytest.mark.parametrize(("name", "is_grave"), [("cluster-admin", True), ("admin", True), ("view", False)])
def test_a_binding_that_administers_is_to_be_looked_at(name: str, is_grave: bool) -> None:  # noqa: FBT001 - a table
    bound = manifest(binding("ClusterRoleBinding", ("ClusterRole", name), TEAM))
    assert [grant.is_grave for grant in judged({}, {"Bound": bound}).grants] == [is_grave]


def test_an_identity_provider_lets_in_whom_it_signs_in() -> None:
    properties = {
        "ClusterName": {"Ref": "Cluster"},
        "Oidc": {"IssuerUrl": "https://id.example.com", "ClientId": "kubernetes"},
    }
    found = judged({}, {"Oidc": {"Type": "AWS::EKS::IdentityProviderConfig", "Properties": properties}})
    assert [(grant.sentence, grant.is_grave) for grant in found.grants] == [
        ("everyone whom https://id.example.com authenticates for kubernetes can access EKS cluster eks", True)
    ]


def test_a_function_that_takes_on_another_role() -> None:
    def function(role: str) -> dict[str, Any]:
        return {
            "F": {"Type": "AWS::Lambda::Function", "Properties": {"Role": f"arn:aws:iam::111122223333:role/{role}"}}
        }

    assert grants(function("quiet"), function("admin")) == [
        "function F (prod-eks) acts as role admin",
        "function F (prod-eks) no longer acts as role quiet",
    ]
    # of a new one no template says what its role may do
    assert grants({}, function("admin")) == [
        "new function F (prod-eks) acts as role admin, of which no template says what it may do"
    ]


def test_a_share_lets_another_account_in() -> None:
    share = {"Principals": ["999988887777"], "ResourceArns": ["arn:aws:ec2:us-east-1:111122223333:subnet/subnet-1"]}
    assert grants({}, {"Share": {"Type": "AWS::RAM::ResourceShare", "Properties": share}}) == [
        "AWS RAM principal 999988887777 gets a share of arn:aws:ec2:us-east-1:111122223333:subnet/subnet-1"
    ]
