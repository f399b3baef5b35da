"""Resources of a kind below a construct, picked inside Node.js: each construct that Python asks itself is a call."""

from __future__ import annotations

from typing import cast

from aws_cdk import CfnResource, ConstructSelector, Mixins
from constructs import IConstruct


def resources_of(scope: IConstruct, *types: str) -> list[CfnResource]:
    """Return the resources of these CloudFormation types that are below ``scope`` now, in the order of the tree."""
    found = Mixins.of(scope, ConstructSelector.resources_of_type(*types)).selected_constructs
    return cast("list[CfnResource]", found)
