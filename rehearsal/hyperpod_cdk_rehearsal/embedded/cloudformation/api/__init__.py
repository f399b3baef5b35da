"""CloudFormation's API operations; importing this package registers all of them."""

from hyperpod_cdk_rehearsal.embedded.cloudformation.api import change_sets, resources, stacks, templates

__all__ = ["change_sets", "resources", "stacks", "templates"]
