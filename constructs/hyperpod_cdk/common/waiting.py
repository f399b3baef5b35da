"""Lets whole constructs wait for one resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import CfnResource
from constructs import IConstruct


def wait_for(resource: CfnResource, scopes: Sequence[IConstruct], *, beside: Sequence[IConstruct]) -> None:
    """Make every current resource below ``scopes`` depend on ``resource``, except those in ``beside``."""
    # each word with a construct is a call into Node.js; jsii gives the same object for the same construct
    free = {id(each) for each in beside}
    around = {id(above) for each in beside for above in each.node.scopes} - free
    outside = [each for each in scopes if free.isdisjoint(map(id, each.node.scopes))]
    for scope in _without(outside, free, around):
        scope.node.add_dependency(resource)


def _without(scopes: Sequence[IConstruct], free: set[int], around: set[int]) -> Iterator[IConstruct]:
    """Yield ``scopes``, but what is ``around`` something free as its parts that are not."""
    for scope in scopes:
        if id(scope) in around:
            yield from _without(scope.node.children, free, around)
        elif id(scope) not in free:
            yield scope
