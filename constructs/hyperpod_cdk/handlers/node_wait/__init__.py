"""Code of the Lambda behind the custom resource that waits for nodes of a HyperPod cluster."""
