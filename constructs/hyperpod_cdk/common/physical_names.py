"""Names of what outlives its stack: CloudFormation makes up names, but none that begin as a service asks."""

from __future__ import annotations

from functools import cache

from aws_cdk import Aws, Fn

STACK_PART_LENGTH = len("1a2b3c4d")


# a token says the same in every stack, and making it is five calls into Node.js
@cache
def stack_part() -> str:
    """Return the first group of the UUID in the stack's id, a token of ``STACK_PART_LENGTH`` characters.

    Every stack has another, also one of the same name that is made again: what is retained with this in its name is in
    no later stack's way.
    """
    stack_uuid = Fn.select(2, Fn.split("/", Aws.STACK_ID))
    return Fn.select(0, Fn.split("-", stack_uuid))
