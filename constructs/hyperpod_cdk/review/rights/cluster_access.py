"""Reads who can access EKS clusters, and with which rights: access entries, aws-auth, pod identities, RBAC in
manifests.

It also reads other access without a policy: the roles that functions and clusters assume, identity providers and
shares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import yaml

from hyperpod_cdk.catalog.kubernetes import SYSTEM_NAMESPACE
from hyperpod_cdk.review.rights import kubernetes, words
from hyperpod_cdk.review.rights.identities import sign_ins
from hyperpod_cdk.review.rights.statements import Block, Heading, Permissions, Term, items, text
from hyperpod_cdk.review.rights.views import TOKEN, Place, View, is_unknown, place_of
from hyperpod_cdk.review.rights.words import Principal
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.yaml_reading import read_inner

MANIFEST: Final = "Custom::AWSCDK-EKS-KubernetesResource"

Right = tuple[str, str, str]
"""One right of an entry: ``("policy", name, namespace)``, ``("group", name, "")``, ``("type", name, "")``.

A policy without a namespace applies to the whole cluster.
"""

_PATCH: Final = "Custom::AWSCDK-EKS-KubernetesPatch"
_CHART: Final = "Custom::AWSCDK-EKS-HelmChart"
_CARRIERS: Final = {
    MANIFEST: "Manifest",
    _CHART: "Values",
    "AWS::EKS::Addon": "ConfigurationValues",
    "AWSQS::Kubernetes::Resource": "Manifest",
    "AWSQS::Kubernetes::Helm": "Values",
}
"""The properties, by type, that contain Kubernetes objects."""

_RBAC: Final = "rbac.authorization.k8s.io"
_AGGREGATION: Final = f"{_RBAC}/aggregate-to-"
_ROLES: Final = ("Role", "ClusterRole")
ACTS_AS: Final = {
    "AWS::Lambda::Function": "Role",
    "AWS::SageMaker::Cluster": "ClusterRole",
    "AWS::StepFunctions::StateMachine": "RoleArn",
    "AWS::CodeBuild::Project": "ServiceRole",
}
"""The property with which an unchanged resource may assume another role."""
_ANYBODY: Final = ("system:unauthenticated", "system:authenticated", "system:anonymous", "system:serviceaccounts")


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One access that either exists or not; it is reported only if both sides have the token in ``needs``."""

    kind: Literal["trust", "cluster access"]
    who: str
    what: tuple[str, ...]
    which: tuple[str, ...]
    gained: str
    lost: str
    place: Place
    needs: str = ""
    is_grave: bool = False
    roles: tuple[Principal, ...] = ()
    """The roles that are assumed: the access is high-risk if one of them is."""
    properties: tuple[str, ...] = ()


@dataclass
class ClusterAccess:
    """What one side grants in its clusters."""

    entries: dict[tuple[Principal, str], dict[Right, Place]] = field(default_factory=dict)
    """The rights of each principal in each cluster, by the cluster's token or name; an entry without any has none."""
    facts: dict[tuple[str, ...], Fact] = field(default_factory=dict)
    guards: dict[tuple[str, ...], tuple[str, str, Place]] = field(default_factory=dict)
    """Objects that restrict something in a cluster: content, readable name, and place."""
    levels: dict[tuple[str, ...], tuple[int, str, Place]] = field(default_factory=dict)
    """How strict the Pod Security Standard of a namespace is."""
    left: dict[tuple[str, ...], tuple[str, Place]] = field(default_factory=dict)
    """Objects that are removed from their manifest and stay in the cluster: readable name, and earlier place."""


def cluster_access(view: View, permissions: Permissions, until_now: View | None = None) -> ClusterAccess:
    """Read one side; RBAC's permissions, and what could not be read, are added to ``permissions``.

    ``until_now`` is the earlier side, if there is one: objects that are removed from a manifest without pruning stay in
    the cluster, with all permissions that they give.
    """
    return _Reader(view, permissions, until_now).read()


def scope_name(namespace: str) -> str:
    """Return the scope of a right in words: a namespace, or none."""
    return f"namespace {namespace}" if namespace else "the whole cluster"


def is_anybody(who: Principal) -> bool:
    """Whether a Kubernetes subject is everyone who reaches the API server, or everyone that it authenticates."""
    return who[0].startswith("Kubernetes") and who[1] in _ANYBODY


class _Reader:
    def __init__(self, view: View, permissions: Permissions, until_now: View | None) -> None:
        self.view = view
        self.permissions = permissions
        self.until_now = until_now
        self.found = ClusterAccess()

    def read(self) -> ClusterAccess:
        for resource in self.view.of_type("AWS::EKS::Cluster"):
            self._cluster(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::EKS::AccessEntry"):
            self._entry(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::EKS::PodIdentityAssociation"):
            properties = self.view.properties(resource)
            account = f"{text(properties.get('Namespace'))}/{text(properties.get('ServiceAccount'))}"
            self._pod_identity(resource, properties, f"service account {account}", self._cluster_of(properties))
        for resource in self.view.of_type("AWS::EKS::Addon"):
            self._addon(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::EKS::IdentityProviderConfig"):
            self._identity_provider(resource, self.view.properties(resource))
        for resource in self.view.of_type("AWS::RAM::ResourceShare"):
            self._share(resource, self.view.properties(resource))
        for type_, name in ACTS_AS.items():
            for resource in self.view.of_type(type_):
                if role := self.view.properties(resource).get(name):
                    self._acts_as(resource, text(role), name)
        self._manifests()
        for each in sign_ins(self.view):
            self.found.facts[("sign-in", *each.key)] = Fact(
                kind="trust",
                who=each.who,
                what=(each.what,),
                which=(),
                is_grave=each.is_grave,
                roles=each.identities,
                gained=each.sentence,
                lost=f"no longer: {each.sentence}",
                place=place_of(each.resource),
                needs=each.needs,
            )
        return self.found

    def _identity_provider(self, resource: Resource, properties: dict[str, Any]) -> None:
        stated = properties.get("Oidc")
        oidc = stated if isinstance(stated, dict) else {}
        cluster = self._cluster_of(properties)
        name, issuer = self._cluster_name(cluster), words.shown(self.view, text(oidc.get("IssuerUrl")))
        audience = words.shown(self.view, text(oidc.get("ClientId")))
        who = f"everyone whom {issuer} authenticates for {audience}"
        self.found.facts["identity provider", cluster, issuer, audience] = Fact(
            kind="cluster access",
            who=who,
            what=("Kubernetes groups and users of the identity provider",),
            which=(name,),
            gained=f"{who} can access {name}",
            lost=f"{who} can no longer access {name}",
            place=place_of(resource),
        )

    def _share(self, resource: Resource, properties: dict[str, Any]) -> None:
        for each in items(properties.get("Principals")):
            who = f"AWS RAM principal {words.shown(self.view, text(each))}"
            for arn in items(properties.get("ResourceArns")):
                what = words.resource(self.view, text(arn))
                self.found.facts["share", who, what] = Fact(
                    kind="trust",
                    who=who,
                    what=("the permissions of the share",),
                    which=(what,),
                    is_grave=True,
                    gained=f"{who} gets a share of {what}",
                    lost=f"{who} no longer has a share of {what}",
                    place=place_of(resource),
                )

    def _acts_as(self, resource: Resource, role: str, property_: str) -> None:
        token, name = self.view.token(resource), self._role_name(role)
        who = self.view.label((resource.stack, resource.logical_id))
        self.found.facts["acts as", token, role] = Fact(
            kind="trust",
            who=who,
            what=("sts:AssumeRole",),
            which=(name,),
            roles=(self._principal(role),),
            gained=f"{who} acts as {name}",
            lost=f"{who} no longer acts as {name}",
            place=place_of(resource),
            needs=token,
            properties=(property_,),
        )

    def _cluster_of(self, properties: Mapping[str, Any]) -> str:
        stated = text(properties.get("ClusterName"))
        found = TOKEN.fullmatch(stated)
        return f"${{{found[1]}/{found[2]}}}" if found else self.view.named("AWS::EKS::Cluster", stated)

    def _cluster_name(self, cluster: str) -> str:
        found = TOKEN.fullmatch(cluster)
        return self.view.label((found[1], found[2]), with_stack=False) if found else f"EKS cluster {cluster}"

    def _role_name(self, arn: str) -> str:
        return words.principal(self.view, self._principal(arn))

    def _principal(self, arn: str) -> Principal:
        found = TOKEN.fullmatch(arn)
        return ("resource", f"${{{found[1]}/{found[2]}}}") if found else ("AWS", arn)

    def _cluster(self, resource: Resource, properties: dict[str, Any]) -> None:
        token, name = self.view.token(resource), self._cluster_name(self.view.token(resource))
        stated = properties.get("AccessConfig")
        config = stated if isinstance(stated, dict) else {}
        mode = text(config.get("AuthenticationMode", "CONFIG_MAP"))
        if text(config.get("BootstrapClusterCreatorAdminPermissions", True)) != "false":
            self.found.facts["creator", token] = Fact(
                kind="cluster access",
                who=f"the identity that creates {name}",
                what=("AmazonEKSClusterAdminPolicy",),
                which=(name,),
                gained=f"the identity that creates {name} is its administrator",
                lost=f"the identity that creates {name} is no longer its administrator",
                place=place_of(resource),
                properties=("BootstrapClusterCreatorAdminPermissions",),
            )
        for accepted, who in (("CONFIG_MAP", "whom the aws-auth ConfigMap lists"), ("API", "who has an access entry")):
            if accepted in mode.split("_AND_"):
                self.found.facts["mode", token, accepted] = Fact(
                    kind="cluster access",
                    who=f"everyone {who}",
                    what=(f"authentication mode {mode}",),
                    which=(name,),
                    gained=f"{name} gives access to everyone {who} (authentication mode {mode})",
                    lost=f"{name} no longer gives access to everyone {who} (authentication mode was {mode})",
                    place=place_of(resource),
                    needs=token if accepted == "API" else "",
                    properties=("AuthenticationMode",),
                )

    def _entry(self, resource: Resource, properties: dict[str, Any]) -> None:
        who = self._principal(text(properties.get("PrincipalArn")))
        rights = self.found.entries.setdefault((who, self._cluster_of(properties)), {})
        place = place_of(resource)
        rights.setdefault(("entry", "", ""), place)
        if (type_ := text(properties.get("Type", "STANDARD"))) != "STANDARD":
            rights.setdefault(("type", type_, ""), place)
        if name := properties.get("Username"):
            # everyone with a binding to that name, in the templates or not, is the one who signs in
            rights.setdefault(("user", text(name), ""), place)
        for group in items(properties.get("KubernetesGroups")):
            rights.setdefault(("group", text(group), ""), place)
        for policy in items(properties.get("AccessPolicies")):
            if not isinstance(policy, dict):
                self._unread(resource, policy)
                continue
            arn = text(policy.get("PolicyArn"))
            name = arn if is_unknown(arn) else arn.rpartition("/")[2]
            stated = policy.get("AccessScope")
            scope = stated if isinstance(stated, dict) else {}
            within = [text(each) for each in items(scope.get("Namespaces"))]
            for each in within if scope.get("Type") == "namespace" else [""]:
                rights.setdefault(("policy", name, each), place)

    def _pod_identity(self, resource: Resource, properties: Mapping[str, Any], who: str, cluster: str) -> None:
        name, role = self._cluster_name(cluster), text(properties.get("RoleArn"))
        target = text(properties["TargetRoleArn"]) if properties.get("TargetRoleArn") else ""
        roles = [self._role_name(each) for each in (role, target) if each]
        self.found.facts["pods", who, cluster, role, target] = Fact(
            kind="trust",
            who=f"{who} of {name}",
            what=("sts:AssumeRole",),
            which=tuple(roles),
            roles=tuple(self._principal(each) for each in (role, target) if each),
            gained=f"{who} of {name} acts as {', and through it as '.join(roles)}",
            lost=f"{who} of {name} no longer acts as {', and through it as '.join(roles)}",
            place=place_of(resource),
        )

    def _addon(self, resource: Resource, properties: dict[str, Any]) -> None:
        cluster, name = self._cluster_of(properties), text(properties.get("AddonName"))
        for each in items(properties.get("PodIdentityAssociations")):
            if isinstance(each, dict):
                who = f"service account {text(each.get('ServiceAccount'))} of add-on {name}"
                self._pod_identity(resource, each, who, cluster)
        if role := properties.get("ServiceAccountRoleArn"):
            self._pod_identity(resource, {"RoleArn": role}, f"add-on {name}", cluster)

    def _manifests(self) -> None:
        objects = [
            found
            for type_, where in _CARRIERS.items()
            for resource in self.view.of_type(type_)
            for found in self._objects(self.view, resource, where)
        ]
        objects += self._left({(cluster, kubernetes.called(each)) for _, cluster, each in objects})
        for resource in self.view.of_type(_PATCH):
            self._patch(resource)
        for resource in self.view.of_type(_CHART):
            self._chart(resource)
        rules: dict[tuple[str, ...], dict[str, Any]] = {
            (each["kind"], cluster, _namespace(each) if each["kind"] == "Role" else "", _name(each)): each
            for _, cluster, each in objects
            if each.get("kind") in _ROLES
        }
        bound = {
            (text(ref.get("kind")), cluster, text(ref.get("name")))
            for _, cluster, each in objects
            if isinstance(ref := each.get("roleRef"), dict)
        }
        for resource, cluster, each in objects:
            self._object(resource, cluster, each)
            kind = each.get("kind")
            if kind in _ROLES and (kind, cluster, _name(each)) not in bound and not any(_aggregates(each)):
                # a principal that no template names may have a binding to it
                where = f"the scope of the binding in {self._cluster_name(cluster)}"
                self._grant(resource, (f"anyone with a binding to {kind}", _name(each)), where, list(_rules(each)))
            if kind in ("RoleBinding", "ClusterRoleBinding"):
                self._binding(resource, cluster, each, rules)
            elif kind == "ClusterRole":
                self._aggregated(resource, cluster, each)
            elif kind == "ConfigMap" and (_namespace(each), _name(each)) == (SYSTEM_NAMESPACE, "aws-auth"):
                self._aws_auth(resource, cluster, each)

    def _left(self, stated: set[tuple[str, tuple[str, str, str]]]) -> list[tuple[Resource, str, dict[str, Any]]]:
        """Return the objects that are removed from their manifest and stay in the cluster: kubectl prunes only by a
        label.

        Source: aws-cdk-lib, the handler kubectl-handler/apply, which adds ``--prune -l`` if PruneLabel is stated.
        """
        found: list[tuple[Resource, str, dict[str, Any]]] = []
        if self.until_now is None:
            return found
        for before in self.until_now.of_type(MANIFEST):
            resource = self.view.find(self.until_now.token(before))
            if resource is None or resource.type != MANIFEST or self.view.properties(resource).get("PruneLabel"):
                continue
            for _, cluster, each in self._objects(self.until_now, before, "Manifest"):
                called = kubernetes.called(each)
                if cluster == self._cluster_of(self.view.properties(resource)) and (cluster, called) not in stated:
                    found.append((resource, cluster, each))
                    kind, namespace, name = called
                    where = f"{f' of namespace {namespace}' if namespace else ''} in {self._cluster_name(cluster)}"
                    self.found.left[cluster, kind, namespace, name] = f"{kind} {name}{where}", place_of(resource)
        return found

    def _objects(self, view: View, resource: Resource, where: str) -> Iterator[tuple[Resource, str, dict[str, Any]]]:
        properties = view.properties(resource)
        stated = properties.get(where)
        if resource.type == MANIFEST and isinstance(stated, str):
            try:
                stated = json.loads(stated)
            except ValueError:
                self._unread(resource, "its Manifest is not JSON")
                return
        for each in kubernetes.objects(stated):
            yield resource, self._cluster_of(properties), each

    def _object(self, resource: Resource, cluster: str, each: dict[str, Any]) -> None:
        kind, namespace, name = kubernetes.called(each)
        where = f"{f' of namespace {namespace}' if namespace else ''} in {self._cluster_name(cluster)}"
        said = f"{kind} {name}{where}"
        key = ("object", cluster, kind, namespace, name)
        if held := kubernetes.guard(each):
            self.found.guards[key] = held, said, place_of(resource)
        if (strictness := kubernetes.level(each)) is not None:
            self.found.levels[key] = strictness, said, place_of(resource)
        for power in kubernetes.powers(each, self.view.account):
            self.found.facts[(*key, power.what)] = Fact(
                kind="trust" if power.roles else "cluster access",
                who=said,
                what=(power.what,),
                which=(self._cluster_name(cluster),),
                roles=tuple(self._principal(arn) for arn in power.roles),
                gained=f"{said} {words.shown(self.view, power.what)}",
                lost=f"no longer: {said} {words.shown(self.view, power.what)}",
                place=place_of(resource),
            )

    def _chart(self, resource: Resource) -> None:
        """Read a chart that is not an asset of the assembly: its objects and their permissions are elsewhere."""
        properties = self.view.properties(resource)
        chart, source = text(properties.get("Chart") or ""), text(properties.get("Repository") or "")
        if not chart or (properties.get("ChartAssetURL") and not source):
            return
        cluster = self._cluster_of(properties)
        name = self._cluster_name(cluster)
        who = f"Helm chart {chart}{f' of {source}' if source else ''} in {name}"
        self.found.facts["chart", cluster, source, chart] = Fact(
            kind="cluster access",
            who=who,
            what=("installs its objects",),
            which=(name,),
            roles=(),
            gained=f"{who} installs objects that no template shows, with unknown permissions",
            lost=f"no longer installed: {who}",
            place=place_of(resource),
        )

    def _patch(self, resource: Resource) -> None:
        properties = self.view.properties(resource)
        cluster, what = self._cluster_of(properties), words.shown(self.view, text(properties.get("ResourceName")))
        name, patch = self._cluster_name(cluster), text(properties.get("ApplyPatchJson"))
        said = f"a patch of {what} in {name}"
        self.found.facts["patch", cluster, what, patch] = Fact(
            kind="cluster access",
            who=said,
            what=(f"patch of {what}",),
            which=(name,),
            gained=f"{said} is applied: its permissions are unknown",
            lost=f"{said} is no longer applied",
            place=place_of(resource),
        )

    def _binding(
        self, resource: Resource, cluster: str, binding: dict[str, Any], rules: Mapping[tuple[str, ...], dict[str, Any]]
    ) -> None:
        stated = binding.get("roleRef")
        ref = stated if isinstance(stated, dict) else {}
        kind, name = text(ref.get("kind")), text(ref.get("name"))
        namespace = _namespace(binding) if binding["kind"] == "RoleBinding" else ""
        role = rules.get((kind, cluster, namespace if kind == "Role" else "", name))
        granted = list(_rules(role)) if role is not None else [_by_name(kind, name)]
        where = f"{scope_name(namespace)} of {self._cluster_name(cluster)}"
        for subject in items(binding.get("subjects")):
            if isinstance(subject, dict):
                self._grant(resource, _subject(subject, namespace), where, granted, namespace)

    def _aggregated(self, resource: Resource, cluster: str, role: dict[str, Any]) -> None:
        for name in _aggregates(role):
            where = f"the scope of the binding in {self._cluster_name(cluster)}"
            self._grant(resource, ("anyone with a binding to ClusterRole", name), where, list(_rules(role)))

    def _grant(self, resource: Resource, who: Principal, scope: str, granted: list[Block], namespace: str = "") -> None:
        heading = Heading("cluster access", who, "Allow", "", scope, namespace)
        for block in granted:
            self.permissions.add(heading, block, place_of(resource))

    def _aws_auth(self, resource: Resource, cluster: str, config_map: dict[str, Any]) -> None:
        data = config_map.get("data")
        for name, key in (("mapRoles", "rolearn"), ("mapUsers", "userarn")):
            written = data.get(name) if isinstance(data, dict) else None
            if written is None:
                continue
            try:
                mapped = read_inner(written) if isinstance(written, str) else written
            except (yaml.YAMLError, RecursionError):
                self._unread(resource, f"aws-auth: {name} is not YAML")
                continue
            for each in items(mapped):
                if not isinstance(each, dict):
                    self._unread(resource, f"aws-auth: {text(each)}")
                    continue
                rights = self.found.entries.setdefault((self._principal(text(each.get(key))), cluster), {})
                rights.setdefault(("entry", "", ""), place_of(resource))
                for group in items(each.get("groups")):
                    rights.setdefault(("group", text(group), ""), place_of(resource))

    def _unread(self, resource: Resource, value: Any) -> None:
        self.permissions.unread.setdefault(place_of(resource), []).append(words.shown(self.view, text(value)))


def _aggregates(role: Mapping[str, Any]) -> Iterator[str]:
    """Return the built-in roles into which Kubernetes aggregates a role's rules."""
    metadata = role.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    for label, value in labels.items() if isinstance(labels, dict) else ():
        if str(label).startswith(_AGGREGATION) and text(value) == "true":
            yield str(label).removeprefix(_AGGREGATION)


def _name(each: Mapping[str, Any]) -> str:
    metadata = each.get("metadata")
    return text(metadata.get("name")) if isinstance(metadata, dict) else ""


def _namespace(each: Mapping[str, Any]) -> str:
    metadata = each.get("metadata")
    return text(metadata.get("namespace") or "default") if isinstance(metadata, dict) else "default"


def _subject(subject: Mapping[str, Any], namespace: str) -> Principal:
    kind, name = text(subject.get("kind")), text(subject.get("name"))
    if kind == "ServiceAccount":
        return "service account", f"{text(subject.get('namespace') or namespace or 'default')}/{name}"
    return f"Kubernetes {kind.lower()}", name


def _rules(role: Mapping[str, Any]) -> Iterator[Block]:
    for rule in items(role.get("rules")):
        if not isinstance(rule, dict):
            continue
        verbs = frozenset(("", (text(verb),)) for verb in items(rule.get("verbs")))
        named = [text(each) for each in items(rule.get("resourceNames"))] or [""]
        found: set[Term] = {
            ("", (kubernetes.named(_kind(text(group), text(kind)), name),))
            for group in items(rule.get("apiGroups"))
            for kind in items(rule.get("resources"))
            for name in named
        }
        found |= {("", (f"path {text(path)}",)) for path in items(rule.get("nonResourceURLs"))}
        yield Block(verbs, frozenset(found))


def _kind(group: str, kind: str) -> str:
    """Return a resource as kubectl names it: ``jobs.batch``, ``pods/log``."""
    if not group or (group == kind == "*"):
        return kind
    plural, _, below = kind.partition("/")
    return f"{plural}.{group}{'/' if below else ''}{below}"


def _by_name(kind: str, name: str) -> Block:
    return Block(frozenset({("role", (f"{kind} {name}",))}), frozenset({("role", ("",))}))
