"""The quota gate: the comparison that preflight makes, once more inside the deployment. Standard library and boto3."""
