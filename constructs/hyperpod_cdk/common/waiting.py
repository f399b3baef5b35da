"""Lets whole constructs wait for one resource."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from aws_cdk import CfnResource
from constructs import IConstruct, Node


def wait_for(resource: CfnResource, scopes: Sequence[IConstruct], *, beside: Sequence[IConstruct]) -> None:
    """Make every current resource below ``scopes`` depend on ``resource``, except those in ``beside``."""
    # each word with a construct is a call into Node.js; jsii gives the same object for the same construct
    free = {id(each) for each in beside}
    around = {id(above) for each in beside for above in each.node.scopes} - free
    nodes = [(each, each.node) for each in scopes]
    outside = [(each, node) for each, node in nodes if free.isdisjoint(map(id, node.scopes))]
    for node in _without(outside, free, around):
        node.add_dependency(resource)


def _without(
    scopes: Iterable[tuple[IConstruct, Node]], free: Collection[int], around: Collection[int]
) -> Iterator[Node]:
    """Yield the nodes of ``scopes``, but of what is ``around`` something free those of its parts that are not."""
    for scope, node in scopes:
        if id(scope) in around:
            parts = (each for each in node.children if id(each) not in free)
            yield from _without(((each, each.node) for each in parts), free, around)
        elif id(scope) not in free:
            yield node
