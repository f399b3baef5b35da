"""Existing resources that the stacks of an environment would create around the cluster, in the form of templates.

Add-ons, access entries and pod identity associations of the EKS cluster, the cluster policy and the compute quotas:
the service identifies each by properties that the template states, and refuses a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hyperpod_cdk.catalog import addons, governance
from hyperpod_cdk.living.drift import stated_of
from hyperpod_cdk.living.facts import aligned, canonical
from hyperpod_cdk.living.kinds import KINDS
from hyperpod_cdk.living.look import Look, reading
from hyperpod_cdk.review.deployed import Api
from hyperpod_cdk.templates.assembly import Assembly, Resource
from hyperpod_cdk.templates.values import resolve

UNSURE: Final = frozenset({governance.SCHEDULER_CONFIG, governance.COMPUTE_QUOTA})
"""Types that CloudFormation may not import: their schemas have all needed handlers, and its guide does not list them.

CloudFormation user guide, "Resource type support" (text of October 2026); registry schemas of cfn-lint 1.58.0.
"""

_ADD_ON: Final = "AWS::EKS::Addon"
_ASSOCIATION: Final = "AWS::EKS::PodIdentityAssociation"
_WRITE_ONLY: Final = {_ADD_ON: ("ResolveConflicts", "PreserveOnDelete")}
"""Properties that control the call of the service, and are not stored there (CloudFormation schemas)."""

_GONE: Final = "ResourceNotFoundException"
_ACTIVE: Final = "ACTIVE"
_FOR_PEOPLE: Final = "STANDARD"
"""Default type of an access entry (EKS API reference, CreateAccessEntry); it never changes, and entries of other types
are those of nodes, which take no access policy."""

_BEYOND_ROLE: Final = ("TargetRoleArn", "DisableSessionTags", "Policy")
"""Properties that say, in addition to the role, as whom a service account calls AWS (CloudFormation schema)."""

_READY: Final = frozenset({"Created", "Updated"})
_AS_IT_IS: Final = "add it to eks.existing.installed_addons to use it as it is, or remove that from it first"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One existing resource: ``identifier`` is how CloudFormation finds it, ``properties`` what the template says.

    ``refusals`` say why the stack cannot take it over.
    """

    resource: Resource
    id: str
    identifier: Mapping[str, str]
    properties: Mapping[str, Any] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()


def counterparts(aws: Api, head: Assembly, cluster_arn: str) -> Iterator[Standing]:
    """Yield the resources of ``head`` that exist; its references to existing resources are IDs. Raises NotAnswered."""
    for kind, find in _FINDERS.items():
        for resource in head.of_type(kind):
            properties = resolve(head, resource.stack, dict(resource.properties))
            if isinstance(properties, dict) and (found := find(aws, head, resource, properties)) is not None:
                yield found
    yield from _governed(aws, head, cluster_arn)


def _look(aws: Api, head: Assembly, resource: Resource, properties: Mapping[str, Any], physical: str) -> Look:
    return Look(aws=aws, deployed=head, resource=resource, stated=properties, id=physical)


Problems = Callable[[Mapping[str, Any]], Iterator[str]]


def _none(_: Mapping[str, Any]) -> Iterator[str]:
    yield from ()


def _standing(look: Look, identifier: Mapping[str, str], problems: Problems = _none) -> Standing | None:
    actual = KINDS[look.resource.type].read(look)
    if actual is None:
        return None
    return Standing(
        resource=look.resource,
        id=look.id,
        identifier=identifier,
        properties=_as_stated(look, actual),
        refusals=tuple(problems(actual)),
    )


def _as_stated(look: Look, actual: Mapping[str, Any]) -> dict[str, Any]:
    """Return AWS's values of the properties that the template states, and of those that only a person sets.

    All other properties are AWS's own, and no later template removes them.
    """
    kind, stated, told = look.resource.type, look.stated, aligned(look.stated, actual)
    compared = stated_of(look.deployed, look.resource, physical=look.id, ids={})
    by_hand = KINDS[kind].made_by_hand
    found: dict[str, Any] = {}
    for name in dict.fromkeys((*stated, *told)):
        is_same = name in stated and canonical(compared.get(name)) == canonical(told.get(name))
        if is_same or name in _WRITE_ONLY.get(kind, ()):
            found[name] = stated[name]
        elif name == "Tags":
            found[name] = [each for each in told.get(name, ()) if not str(each.get("Key")).startswith("aws:")]
        elif name in stated or by_hand.match(name):
            found[name] = _matched(stated.get(name), told.get(name))
    return {name: each for name, each in found.items() if each is not None and (each != [] or stated.get(name) == [])}


def _matched(stated: Any, actual: Any) -> Any:
    """Return what AWS has, without its values for something that is missing, and with those of ``stated``."""
    if canonical(stated) == canonical(actual):
        return stated
    if isinstance(actual, Mapping):
        ours: Mapping[str, Any] = stated if isinstance(stated, Mapping) else {}
        members = {name: _matched(ours.get(name), actual.get(name)) for name in dict.fromkeys((*ours, *actual))}
        return {
            name: each for name, each in members.items() if each is not None and (name in ours or each not in _NOTHING)
        }
    if isinstance(actual, list):
        rows = stated if isinstance(stated, list) and len(stated) == len(actual) else [None] * len(actual)
        return [_matched(row, each) for row, each in zip(rows, actual, strict=True)]
    return stated if actual is None and stated in _NOTHING else actual


_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {}, 0, "Disabled")
"""Values that mean that nothing is there, or that a switch is off by default: IdleResourceSharing of a policy, and the
accelerators that SageMaker adds to a quota of vCPU or memory."""


def _add_on(aws: Api, head: Assembly, resource: Resource, properties: Mapping[str, Any]) -> Standing | None:
    cluster, name = properties.get("ClusterName"), properties.get("AddonName")
    if not isinstance(cluster, str) or not isinstance(name, str):
        return None
    look = _look(aws, head, resource, properties, f"{cluster}|{name}")

    def problems(actual: Mapping[str, Any]) -> Iterator[str]:
        wanted = stated_of(head, resource, physical=look.id, ids={})
        described = look.found("eks", "describe_addon", _GONE, clusterName=cluster, addonName=name) or {}
        with reading("eks:DescribeAddon"):
            found = described["addon"]
            yield from _problems_of_add_on(found, f"the add-on {name} of {cluster}")
        for key in ("ServiceAccountRoleArn", "ConfigurationValues"):
            if canonical(actual.get(key)) != canonical(wanted.get(key)):
                yield (
                    f"the add-on {name} of {cluster}: {key} is {_short(actual.get(key))}, and the environment's is"
                    f" {_short(wanted.get(key))}; it is unknown how its pods react to another one: {_AS_IT_IS}"
                )
        if owned := found.get("podIdentityAssociations"):
            yield (
                f"the add-on {name} of {cluster}: it owns PodIdentityAssociations ({', '.join(owned)}). An environment"
                " has"
                f" them as resources of their own, and EKS accepts each service account once: {_AS_IT_IS}"
            )

    return _standing(look, {"ClusterName": cluster, "AddonName": name}, problems)


def _problems_of_add_on(found: Mapping[str, Any], called: str) -> Iterator[str]:
    """Say why no stack can take over an add-on as it is; its namespace is create-only (CloudFormation schema)."""
    if (status := found["status"]) != _ACTIVE:
        issues = (found.get("health") or {}).get("issues") or ()
        told = "; ".join(f"{each.get('code')}: {each.get('message')}" for each in issues)
        yield (
            f"{called}: Status is {status}{f' ({told})' if told else ''}: wait until it is {_ACTIVE}, or repair it; or"
            f" {_AS_IT_IS}"
        )
    row = addons.get(found["addonName"])
    namespace = (found.get("namespaceConfig") or {}).get("namespace")
    if row is not None and row.namespace and namespace not in (None, row.namespace):
        yield (
            f"{called}: NamespaceConfig is {namespace}, and the environment's is {row.namespace}, which EKS never"
            f" changes: {_AS_IT_IS}"
        )


def _entry(aws: Api, head: Assembly, resource: Resource, properties: Mapping[str, Any]) -> Standing | None:
    cluster, principal = properties.get("ClusterName"), properties.get("PrincipalArn")
    if not isinstance(cluster, str) or not isinstance(principal, str):
        # a role that the stack has not created yet has no entry
        return None
    look = _look(aws, head, resource, properties, f"{principal}|{cluster}")

    def problems(actual: Mapping[str, Any]) -> Iterator[str]:
        wanted = properties.get("Type", _FOR_PEOPLE)
        if actual.get("Type") != wanted:
            yield (
                f"the access entry of {principal} in {cluster}: Type is {actual.get('Type')}, and the environment's is"
                f" {wanted}, which EKS never changes: remove the role from eks.admin_role_arns or member_role_arns"
            )

    return _standing(look, {"PrincipalArn": principal, "ClusterName": cluster}, problems)


def _association(aws: Api, head: Assembly, resource: Resource, properties: Mapping[str, Any]) -> Standing | None:
    cluster, account = properties.get("ClusterName"), properties.get("ServiceAccount")
    if not isinstance(cluster, str):
        return None
    asked = {"clusterName": cluster, "namespace": properties["Namespace"], "serviceAccount": account}
    there = _look(aws, head, resource, properties, "")
    rows = there.listed("eks", "list_pod_identity_associations", "associations", _GONE, **asked)
    if not rows:
        return None
    with reading("eks:ListPodIdentityAssociations"):
        arn, owner = str(rows[0]["associationArn"]), rows[0].get("ownerArn")
        one = {"clusterName": cluster, "associationId": rows[0]["associationId"]}
    look = _look(aws, head, resource, properties, arn)

    def problems(_: Mapping[str, Any]) -> Iterator[str]:
        described = look.found("eks", "describe_pod_identity_association", _GONE, **one) or {}
        with reading("eks:DescribePodIdentityAssociation"):
            found = described["association"]
            for key in _BEYOND_ROLE:
                if found.get(f"{key[0].lower()}{key[1:]}"):
                    yield (
                        f"the pod identity association {arn} of {asked['namespace']}/{account}: it has {key}, and the"
                        " environment's has none; it is unknown how its pods react to that: add its add-on to"
                        " eks.existing.installed_addons"
                    )
        if owner:
            yield (
                f"the pod identity association {arn} of {asked['namespace']}/{account}: OwnerArn is {owner}, and EKS"
                " deletes it with that add-on: add the add-on to eks.existing.installed_addons"
            )

    return _standing(look, {"AssociationArn": arn}, problems)


_FINDERS: Final[Mapping[str, Callable[[Api, Assembly, Resource, Mapping[str, Any]], Standing | None]]] = {
    _ADD_ON: _add_on,
    "AWS::EKS::AccessEntry": _entry,
    _ASSOCIATION: _association,
}


@dataclass(frozen=True, kw_only=True)
class _Governed:
    """How the policy or the quotas of a cluster are listed, and how the one of a template is found."""

    lists: str
    noun: str
    called: str
    field: str

    def team(self, row: Mapping[str, Any]) -> Any:
        """Return the team of a quota, in a template and in a list alike; a cluster has one policy."""
        return (row.get("ComputeQuotaTarget") or {}).get("TeamName")


_GOVERNED: Final = {
    governance.SCHEDULER_CONFIG: _Governed(
        lists="list_cluster_scheduler_configs",
        noun="ClusterSchedulerConfig",
        called="the cluster policy",
        field="task_governance.policy_name",
    ),
    governance.COMPUTE_QUOTA: _Governed(
        lists="list_compute_quotas",
        noun="ComputeQuota",
        called="the compute quota",
        field="quota_name of the team in task_governance.teams",
    ),
}


def _governed(aws: Api, head: Assembly, cluster_arn: str) -> Iterator[Standing]:
    for kind, how in _GOVERNED.items():
        custom = f"Custom::{how.noun}"
        resources = [*head.of_type(kind), *head.of_type(custom)]
        if not resources:
            continue
        rows = aws.pages("sagemaker", how.lists, f"{how.noun}Summaries", ClusterArn=cluster_arn)
        for resource in resources:
            properties = resolve(head, resource.stack, dict(resource.properties))
            with reading(f"sagemaker:{how.lists}"):
                mine = [row for row in rows if how.team(row) == how.team(properties)]
                if mine:
                    look = _look(aws, head, resource, properties, str(mine[0][f"{how.noun}Arn"]))
                    if (found := _of_governance(look, mine[0], how)) is not None:
                        yield found


def _of_governance(look: Look, row: Mapping[str, Any], how: _Governed) -> Standing | None:
    """Return a listed policy or quota; None if it was deleted since."""
    resource, properties, arn = look.resource, look.stated, look.id
    name, status = row["Name"], row["Status"]
    identifier = {f"{how.noun}Arn": arn}
    if resource.type not in _GOVERNED:
        refusal = (
            f"{how.called} {name} ({arn}): the environment creates it with {resource.type}, which CloudFormation does"
            " not import, and SageMaker refuses a second one: remove task_governance, and it stays as it is; in a"
            " Region whose CloudFormation has the type, provider: native may work"
        )
        return Standing(resource=resource, id=arn, identifier=identifier, refusals=(refusal,))

    def problems(_: Mapping[str, Any]) -> Iterator[str]:
        if properties.get("Name") != name:
            yield (
                f"{how.called} {arn}: Name is {name}, and the file has {properties.get('Name')}. SageMaker never"
                " changes"
                f" the name: set {how.field} to {name}"
            )
        if status not in _READY:
            yield f"{how.called} {name} ({arn}): Status is {status}: wait until it is Created or Updated, or repair it"

    return _standing(look, identifier, problems)


def _short(value: Any) -> str:
    text = canonical(value) if value not in (None, "") else "none"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST: Final = 80
