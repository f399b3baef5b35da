"""Who gains and who loses access, in plain words: IAM, trust, resource policies, Kubernetes, the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hyperpod_cdk.review.model import Access, Change, Grant, Reach
from hyperpod_cdk.review.nouns import only_if
from hyperpod_cdk.review.rights import reach as reaching
from hyperpod_cdk.review.rights.cluster_access import cluster_access
from hyperpod_cdk.review.rights.cluster_changes import ClusterChanges
from hyperpod_cdk.review.rights.identity_changes import IdentityChanges
from hyperpod_cdk.review.rights.power import Power
from hyperpod_cdk.review.rights.reach_changes import ReachChanges
from hyperpod_cdk.review.rights.statement_changes import StatementChanges
from hyperpod_cdk.review.rights.statements import permissions
from hyperpod_cdk.review.rights.telling import Found, Names
from hyperpod_cdk.review.rights.views import View, place_of, views
from hyperpod_cdk.templates.assembly import Assembly
from hyperpod_cdk.templates.difference import ResourceChange
from hyperpod_cdk.templates.groups import unknown_condition

_T = TypeVar("_T", Grant, Reach)


def access(base: Assembly, head: Assembly, changes: Sequence[ResourceChange]) -> Access:
    """Compare the permissions of both sides, action by action and resource by resource.

    The order of statements, and how they are split, merged or distributed over policies of one principal, does not
    matter. Additions come first, the widest first: newly allowed actions, and removed denials.
    """
    before, after = views(base, head, changes)
    old, new = _Side(before), _Side(after, before)
    power = Power(after, new.permissions)
    names = Names(before, after)
    statements, clusters = StatementChanges(names, power), ClusterChanges(names)
    identities, reached = IdentityChanges(names, power), ReachChanges(names)
    grants = [
        *statements.permissions(old.permissions, new.permissions),
        *statements.boundaries(old.permissions, new.permissions),
        *clusters.entries(old.clusters, new.clusters),
        *clusters.facts(old.clusters, new.clusters, power),
        *identities.acting(old.permissions),
        *identities.acting_as_others(changes),
        *identities.code(changes),
        *clusters.addons(changes),
        *clusters.left(new.clusters),
        *clusters.guards(old.clusters, new.clusters),
        *statements.unread(old.permissions, new.permissions, changes),
    ]
    reach = [
        *reached.rules(old.network, new.network),
        *reached.egress(old.network, new.network),
        *reached.paths(old.network, new.network),
        *reached.openings(old.network, new.network),
        *reached.memberships(new.network, changes),
        *reached.blocks(changes),
        *reached.exposures(changes),
    ]
    return Access(
        grants=tuple(_with_condition(found.grant, base, head) for found in sorted(grants, key=Found.order)),
        reach=tuple(_with_condition(each, base, head) for each in sorted(reach, key=_order_of_reach)),
        wildcards=Change(before=old.permissions.wildcards, after=new.permissions.wildcards),
        notes=tuple(_notes(old, new, changes)),
    )


def _with_condition(given: _T, base: Assembly, head: Assembly) -> _T:
    """Return what a resource gives or gave, with its condition if the template does not show whether it exists."""
    side = head if given.change == "added" else base
    condition = unknown_condition(side, side.find(given.stack, given.logical_id))
    return given if condition is None else given.model_copy(update={"sentence": only_if(condition, given.sentence)})


@dataclass
class _Side:
    view: View
    until_now: View | None = None

    def __post_init__(self) -> None:
        self.permissions = permissions(self.view)
        self.clusters = cluster_access(self.view, self.permissions, self.until_now)
        self.network = reaching.network(self.view)


def _order_of_reach(found: Reach) -> tuple[bool, bool, bool, str, str, str]:
    return (
        found.change != "added",
        not found.is_grave,
        not found.is_world,
        found.sentence,
        found.stack,
        found.logical_id,
    )


def _notes(old: _Side, new: _Side, changes: Sequence[ResourceChange]) -> Iterator[str]:
    """Yield notes on changing resources whose access the templates do not show: an invalid statement, a parameter."""
    for change in changes:
        side, resource = (new, change.after) if change.after is not None else (old, change.before)
        if resource is None:
            continue
        place, label = place_of(resource), ""
        unread = [*side.permissions.unread.get(place, ()), *side.network.unread.get(place, ())]
        # often only a subnet's zone is known at deployment, and it gives no access
        is_subnet = resource.type == "AWS::EC2::Subnet"
        unknown = [
            each for each in side.view.unknown.get(place, ()) if not is_subnet and not each.startswith("${AWS::")
        ]
        for said in dict.fromkeys((*unread, *unknown)):
            label = label or side.view.name(resource)
            yield f"{label}: only the deployment shows: {said}" if said in unknown else f"{label}: not judged: {said}"
