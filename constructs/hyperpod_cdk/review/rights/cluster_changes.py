"""Changes in clusters: access entries, other access, add-ons, objects that stay, restrictions."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final

from hyperpod_cdk.catalog.sentences import plural
from hyperpod_cdk.review.rights import addons, grave, kubernetes, words
from hyperpod_cdk.review.rights import reach as reaching
from hyperpod_cdk.review.rights.cluster_access import ClusterAccess, Fact, Right, scope_name
from hyperpod_cdk.review.rights.telling import Direction, Found, Names, both, grant, phrase
from hyperpod_cdk.review.rights.views import TOKEN, Place, place_of
from hyperpod_cdk.review.rights.words import Principal
from hyperpod_cdk.templates.difference import ResourceChange

_ADDON: Final = "AWS::EKS::Addon"
_SETTINGS: Final = "ConfigurationValues"


class ClusterChanges:
    """Differences in who may do what in Kubernetes."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def entries(self, old: ClusterAccess, new: ClusterAccess) -> Iterator[Found]:
        for key in dict.fromkeys((*new.entries, *old.entries)):
            was, will = old.entries.get(key, {}), new.entries.get(key, {})
            for change, (rights, others) in both((will, was), (was, will)):
                different = {right: place for right, place in rights.items() if right not in others}
                if different:
                    yield self._entry(change, key, different, is_whole=not others)

    def facts(self, old: ClusterAccess, new: ClusterAccess, powerful: Container[Principal]) -> Iterator[Found]:
        for change, (some, others) in both((new.facts, old.facts), (old.facts, new.facts)):
            for key, fact in some.items():
                if key not in others and (
                    not fact.needs or (fact.needs in self._names.old and fact.needs in self._names.new)
                ):
                    is_grave = (
                        fact.kind == "cluster access"
                        or fact.is_grave
                        or any(each in powerful or not self._names.after.find(each[1]) for each in fact.roles)
                    )
                    yield self._fact(change, fact, is_grave=is_grave and change == "added")

    def addons(self, changes: Sequence[ResourceChange]) -> Iterator[Found]:
        """Find add-ons that are not AWS's own, and settings that may give add-ons more permissions."""
        for change in changes:
            resource, old = change.after, change.before
            if resource is None or resource.type != _ADDON:
                continue
            properties, name = self._names.after.properties(resource), self._names.after.name(resource)
            is_same = old is not None and old.type == _ADDON
            was = (
                addons.settings(self._names.before.properties(old).get(_SETTINGS))
                if old is not None and is_same
                else {}
            )
            will = addons.settings(properties.get(_SETTINGS))
            different = [path for path in dict.fromkeys((*will, *was)) if will.get(path) != was.get(path)]
            if not is_same:
                different = [path for path in different if addons.gives(path)]
            said = []
            if not is_same and not addons.is_of_eks(str(properties.get("AddonName"))):
                said.append(("AddonName", f"new {name} runs code of an unknown publisher in the cluster"))
            if different:
                what = words.listed(different, "settings")
                said.append((_SETTINGS, f"{name} gets other settings ({what}): their permissions are not judged"))
            for property_, sentence in said:
                yield grant(
                    change="added",
                    kind="cluster access",
                    sentence=sentence,
                    who=name,
                    what=(sentence,),
                    which=(),
                    properties=(property_,),
                    place=place_of(resource),
                    width=4,
                    is_grave=True,
                )

    def left(self, new: ClusterAccess) -> Iterator[Found]:
        """Find objects that are removed from their manifest and stay in the cluster, with their permissions and
        Pods."""
        for (_, kind, *_), (said, place) in new.left.items():
            yield grant(
                change="added",
                kind="cluster access",
                sentence=f"{said} is removed from its manifest and stays in the cluster: "
                "the manifest has no prune label",
                who=said,
                what=("its permissions stay",),
                which=(),
                place=place,
                width=3,
                is_grave=kind not in kubernetes.HARMLESS,
            )

    def guards(self, old: ClusterAccess, new: ClusterAccess) -> Iterator[Found]:
        """Find restrictions in a cluster that are removed or may restrict less."""
        found: list[tuple[str, str, Place]] = []
        for key, (content, said, place) in old.guards.items():
            now = new.guards.get(key)
            if now is None:
                found.append((said, f"{said} is removed: what it restricted is now allowed", place))
            elif now[0] != content:
                found.append((said, f"{said} changes: what it allows is not judged", now[2]))
        for key, (strictness, said, _) in old.levels.items():
            level = new.levels.get(key)
            if level is not None and level[0] < strictness:
                found.append((said, f"{said} enforces a weaker Pod Security Standard", level[2]))
        for who, sentence, place in found:
            yield grant(
                change="added",
                kind="cluster access",
                sentence=sentence,
                who=who,
                what=(sentence,),
                which=(),
                place=place,
                width=4,
                is_grave=True,
            )

    def _entry(
        self, change: Direction, key: tuple[Principal, str], rights: Mapping[Right, Place], *, is_whole: bool
    ) -> Found:
        found = TOKEN.fullmatch(key[1])
        cluster = (
            reaching.token_name(self._names.before, key[1], with_stack=False) if found else f"EKS cluster {key[1]}"
        )
        who = self._names.who(key[0])
        policies: dict[str, list[str]] = {}
        for kind, name, namespace in sorted(rights):
            if kind == "policy":
                policies.setdefault(name, []).append(scope_name(namespace))
        having = [f"{name} in {words.listed(sorted(scopes), 'namespaces')}" for name, scopes in policies.items()]
        groups = sorted(name for kind, name, _ in rights if kind == "group")
        users = sorted(name for kind, name, _ in rights if kind == "user")
        types = sorted(name for kind, name, _ in rights if kind == "type")
        parts = [f"with {words.listed(having, 'policies')}"] if having else []
        if groups:
            parts.append(f"in Kubernetes {plural(len(groups), 'group')} {words.listed(groups, 'groups')}")
        if users:
            parts.append(f"as Kubernetes user {words.listed(users, 'users')}")
        if types:
            parts.append(f"as {types[0]}")
        enters = "can access" if is_whole else "enters"
        no_longer = "can no longer access" if is_whole else "no longer enters"
        rest = f" {', '.join(parts)}" if parts else ", without any permission of its own"
        is_whole_cluster = any(kind == "policy" and not namespace for kind, _, namespace in rights)
        is_admin = any(kind == "policy" and "ClusterAdmin" in name for kind, name, _ in rights)
        return grant(
            change=change,
            kind="cluster access",
            sentence=f"{who} {phrase(change, enters, no_longer)} {cluster}{rest}",
            who=who,
            what=(*having, *(f"Kubernetes group {group}" for group in groups), *types),
            which=(cluster,),
            place=min(rights.items(), key=lambda item: item[0])[1],
            is_grave=change == "added" and grave.entry_is_grave(rights),
            is_relied_on=change == "removed",
            width=(5 if is_admin or "system:masters" in groups else 2) + is_whole_cluster,
        )

    def _fact(self, change: Direction, fact: Fact, *, is_grave: bool) -> Found:
        return grant(
            change=change,
            kind=fact.kind,
            sentence=fact.gained if change == "added" else fact.lost,
            who=fact.who,
            what=fact.what,
            which=fact.which,
            properties=fact.properties,
            place=fact.place,
            is_grave=is_grave,
            width=3 if fact.kind == "cluster access" else 1,
        )
