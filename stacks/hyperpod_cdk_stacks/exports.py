"""What one stack gives to others stays exported, for any importing stack."""

from __future__ import annotations

import aws_cdk as cdk


def export_always(stack: cdk.Stack, *values: str) -> None:
    """Export what ``stack`` makes, under the names that CDK gives to what is imported.

    CDK makes an export where another stack refers to a value, and drops it with the last reference. The stack that
    exports is updated first, and CloudFormation refuses: the other one imports the value still. So what can leave that
    one is exported here in any case. Values that no resource of a stack gives, such as IDs out of the file, need none.
    """
    # one call into Node.js says of all of them whether they are references to resources, and nothing else
    for value, resolved in zip(values, stack.resolve(list(values)), strict=True):
        match resolved:
            case {"Ref": str(name)} if not name.startswith("AWS::"):
                stack.export_value(value)
            case {"Fn::GetAtt": _}:
                stack.export_value(value)
