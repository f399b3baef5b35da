"""What becomes of resources that cost by the hour when their stack goes, or when an update replaces them."""

from __future__ import annotations

from aws_cdk import CfnDeletionPolicy, CfnResource


def goes_with_its_stack(*resources: CfnResource) -> None:
    """Have these deleted with their stack, and kept where an update replaces them (docs/decisions/0003).

    A cluster that outlives its stack costs money until somebody finds it; what keeps it from being deleted by mistake
    is the protection of its stack. An update that replaces one takes running nodes away: the old one stays, named in
    the stack's events.
    """
    for resource in resources:
        resource.cfn_options.deletion_policy = CfnDeletionPolicy.DELETE
        resource.cfn_options.update_replace_policy = CfnDeletionPolicy.RETAIN
