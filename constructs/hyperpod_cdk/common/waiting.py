"""Lets whole constructs wait for one resource."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CfnResource
from constructs import IConstruct


def wait_for(resource: CfnResource, scopes: Sequence[IConstruct], *, beside: Sequence[IConstruct]) -> None:
    """Let every resource that stands below ``scopes`` now wait for ``resource``; those ``beside`` do not."""
    free = [f"{each.node.path}/" for each in beside]
    for scope in scopes:
        node = scope.node
        # an app has no path
        path = f"{node.path}/".removeprefix("/")
        if any(path.startswith(each) for each in free):
            continue
        if any(each.startswith(path) for each in free):
            wait_for(resource, node.children, beside=beside)
        else:
            node.add_dependency(resource)
