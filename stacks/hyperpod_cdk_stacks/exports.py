"""Keeps the exports of a stack, even if no other stack imports them any more."""

from __future__ import annotations

import aws_cdk as cdk


def export_always(stack: cdk.Stack, *values: str) -> None:
    """Export attributes of the resources in ``stack``, under the names that CDK uses for imported values.

    CDK creates an export if another stack refers to a value, and removes it with the last reference. The exporting
    stack is updated first, which CloudFormation refuses while the other stack still imports the value. Values that the
    other stack may stop using are therefore always exported here. Values that are not attributes of a resource, such as
    IDs in the file, need no export.
    """
    # a single call into Node.js finds out which of them are only references to resources
    for value, resolved in zip(values, stack.resolve(list(values)), strict=True):
        match resolved:
            case {"Ref": str(name)} if not name.startswith("AWS::"):
                stack.export_value(value)
            case {"Fn::GetAtt": _}:
                stack.export_value(value)
