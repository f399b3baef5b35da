"""Resources that newly run with another identity, or run other code with the same identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hyperpod_cdk.review.rights import words
from hyperpod_cdk.review.rights.cluster_access import ACTS_AS
from hyperpod_cdk.review.rights.code import other_code
from hyperpod_cdk.review.rights.power import Power, acting, elsewhere, role_properties
from hyperpod_cdk.review.rights.statements import Permissions, text
from hyperpod_cdk.review.rights.telling import Found, Names, grant
from hyperpod_cdk.review.rights.views import TOKEN, place_of
from hyperpod_cdk.review.rights.words import Principal
from hyperpod_cdk.templates.assembly import Resource
from hyperpod_cdk.templates.difference import ResourceChange


class IdentityChanges:
    """Resources that newly act with a role, or newly decide what a role does."""

    def __init__(self, names: Names, power: Power) -> None:
        self.power = power
        self._names = names

    def acting(self, old: Permissions) -> Iterator[Found]:
        """Find what newly runs with a powerful existing role; some types are reported for any role."""
        until_now = acting(self._names.before, old)
        for token in self.power.acting:
            resource = self._names.after.find(token)
            if resource is None:
                continue
            told = self._role_of_access(resource) if self._names.is_on_both(token) else ()
            for role in sorted(self.power.acts(token) - until_now.get(token, frozenset())):
                if role[1] in told or not self._names.is_on_both(role[1]):
                    continue
                yield self._acts_as(resource, role, width=5)

    def acting_as_others(self, changes: Sequence[ResourceChange]) -> Iterator[Found]:
        """Find what newly runs with a role that is in no template: its permissions are unknown."""
        for change in changes:
            resource, old = change.after, change.before
            if resource is None:
                continue
            is_same = old is not None and old.type == resource.type
            until_now = elsewhere(self._names.before, old) if old is not None and is_same else frozenset[Principal]()
            told = self._role_of_access(resource) if is_same else ()
            for role in sorted(
                each for each in elsewhere(self._names.after, resource) - until_now if each[1] not in told
            ):
                yield self._acts_as(resource, role, width=4, but=", of which no template says what it may do")

    def code(self, changes: Sequence[ResourceChange]) -> Iterator[Found]:
        """Find resources that run other code: who decides it has the permissions of their identity, or of root."""
        for found in other_code(self._names.before, self._names.after, changes, self.power):
            roles = [self._names.who(each) for each in found.roles]
            by = ": " if found.is_grave else " as "
            yield grant(
                change="added",
                kind="trust" if found.is_grave else "permission",
                sentence=f"{found.sentence}{by}{words.listed(roles, 'roles')}" if roles else found.sentence,
                who=found.subject,
                what=("other code",),
                which=roles,
                properties=found.properties,
                place=found.place,
                width=5 if found.is_grave else 0,
                is_grave=found.is_grave,
            )

    def _role_of_access(self, resource: Resource) -> tuple[str, ...]:
        """Return the role, as written and by its token, that ``cluster_access`` reports for a type in any case."""
        written = text(self._names.after.properties(resource).get(ACTS_AS.get(resource.type, ""), ""))
        found = TOKEN.match(written)
        return (written, f"${{{found[1]}/{found[2]}}}") if found else (written,)

    def _acts_as(self, resource: Resource, role: Principal, *, width: int, but: str = "") -> Found:
        name = self._names.who(role)
        who = self._names.as_subject(self._names.after.name(resource), self._names.after.token(resource))
        return grant(
            change="added",
            kind="trust",
            sentence=f"{who} acts as {name}{but}",
            who=who,
            what=("sts:AssumeRole",),
            which=(name,),
            properties=role_properties(self._names.after.properties(resource)),
            place=place_of(resource),
            width=width,
            is_grave=True,
        )
