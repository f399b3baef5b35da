"""The HyperPod cluster: instance groups, lifecycle scripts, roles, autoscaling, the wait for nodes."""
