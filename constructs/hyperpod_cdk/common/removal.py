"""What becomes of resources that cost by the hour when their stack goes, or when an update replaces them."""

from __future__ import annotations

from aws_cdk import CfnResource, RemovalPolicy


def goes_with_its_stack(*resources: CfnResource) -> None:
    """Have these deleted with their stack, and kept where an update replaces them (docs/decisions/0003).

    A cluster that outlives its stack costs money until somebody finds it; what keeps it from being deleted by mistake
    is the protection of its stack. An update that replaces one takes running nodes away: the old one stays, named in
    the stack's events.
    """
    for resource in resources:
        # `cfn_options` is an interface to Python: each of its two policies is three calls into Node.js
        resource.apply_removal_policy(RemovalPolicy.RETAIN)
        resource.apply_removal_policy(RemovalPolicy.DESTROY, apply_to_update_replace_policy=False)
