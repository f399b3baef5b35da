"""Lets whole constructs wait for one resource."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CfnResource
from constructs import IConstruct


def wait_for(resource: CfnResource, scopes: Sequence[IConstruct], *, beside: Sequence[IConstruct]) -> None:
    """Let every resource that stands below ``scopes`` now wait for ``resource``; those ``beside`` do not."""
    _wait_for(resource, scopes, [f"{each.node.path}/" for each in beside])


def _wait_for(resource: CfnResource, scopes: Sequence[IConstruct], free: Sequence[str]) -> None:
    """Skip what stands below one of the paths ``free``; each word with a construct is a call into Node.js."""
    for scope in scopes:
        node = scope.node
        if not free:
            node.add_dependency(resource)
            continue
        # an app has no path
        path = f"{node.path}/".removeprefix("/")
        if any(path.startswith(each) for each in free):
            continue
        below = [each for each in free if each.startswith(path)]
        if below:
            _wait_for(resource, node.children, below)
        else:
            node.add_dependency(resource)
