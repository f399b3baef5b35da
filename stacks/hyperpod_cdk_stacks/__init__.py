"""Deployable stacks: composition of constructs only, no resource of their own."""
