"""How a change of access is described: names, the sides of a resource, and the grant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from hyperpod_cdk.catalog.arns import arn_parts
from hyperpod_cdk.review.model import Grant
from hyperpod_cdk.review.rights import reach as reaching
from hyperpod_cdk.review.rights import words
from hyperpod_cdk.review.rights.views import TOKEN, Place, View
from hyperpod_cdk.review.rights.words import Principal

Direction = Literal["added", "removed"]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Found:
    """A grant that differs, with its width, by which the widest come first."""

    grant: Grant
    width: int

    def order(self) -> tuple[Any, ...]:
        """Return the sort key of grants: gains of access first."""
        grant = self.grant
        is_gain = (grant.change == "added") == (grant.effect == "Allow")
        return not is_gain, -self.width, grant.kind, grant.who, grant.sentence, grant.stack, grant.logical_id


class Names:
    """Names of things, and on which of two sides they exist; ``old`` and ``new`` are the sides' tokens."""

    def __init__(self, before: View, after: View) -> None:
        self.before = before
        self.after = after
        self.old: set[str] = {before.token(each) for each in before.resources}
        self.new: set[str] = {after.token(each) for each in after.resources}

    def is_on_both(self, token: str) -> bool:
        """Whether something is on both sides, or in no template."""
        return not TOKEN.fullmatch(token) or (token in self.old and token in self.new)

    def who(self, who: Principal) -> str:
        """Name a principal."""
        return words.principal(self.before, who)

    def as_subject(self, name: str, token: str) -> str:
        """Return a name with ``new`` or ``former`` if it is only on one side."""
        if not TOKEN.fullmatch(token):
            return name
        if token not in self.old and token in self.new:
            return f"new {name}"
        return f"former {name}" if token in self.old and token not in self.new else name

    def token(self, value: str, kind: str) -> str:
        """Name a resource; one that is in no template by its ``kind``."""
        name = reaching.token_name(self.before, value)
        return name if TOKEN.search(value) or not kind else f"{kind} {name}"

    def policy_name(self, arn: str) -> str:
        """Name a managed policy, with its owner."""
        if TOKEN.fullmatch(arn):
            return self.token(arn, "")
        if arn.startswith("{"):
            return f"a policy that only the deployment shows ({arn})"
        name = words.shown(self.before, arn.rpartition("/")[2] if "/" in arn else arn)
        is_of_aws = arn_parts(arn).account == "aws"
        return f"AWS's policy {name}" if is_of_aws else f"policy {name} (not in the templates)"

    def group_name(self, value: str) -> str:
        """Name a group of IAM."""
        return self.token(value, "group")


def grant(
    *,
    change: Direction,
    kind: Literal["permission", "trust", "cluster access", "resource policy"],
    sentence: str,
    who: str,
    what: Iterable[str],
    which: Iterable[str],
    place: Place,
    width: int,
    properties: tuple[str, ...] = (),
    condition: str | None = None,
    effect: Literal["Allow", "Deny"] = "Allow",
    is_wide: bool = False,
    is_grave: bool = False,
    is_relied_on: bool = False,
    is_covered: bool = False,
    is_of_service: bool = False,
) -> Found:
    """Create a grant with a sentence and its place; ``width`` is how much access it gives."""
    told = Grant(
        change=change,
        kind=kind,
        sentence=sentence,
        who=who,
        what=tuple(what),
        which=tuple(which),
        condition=condition,
        effect=effect,
        is_wildcard=is_wide,
        is_grave=is_grave,
        is_relied_on=is_relied_on,
        is_covered=is_covered,
        is_of_service=is_of_service,
        stack=place[0],
        logical_id=place[1],
        properties=properties,
    )
    return Found(told, width)


def both(added: _T, removed: _T) -> tuple[tuple[Direction, _T], tuple[Direction, _T]]:
    """Return the pair to compare for each direction: what is added, and what is removed."""
    return ("added", added), ("removed", removed)


def phrase(change: Direction, added: str, removed: str) -> str:
    """Return the words for a direction."""
    return added if change == "added" else removed
