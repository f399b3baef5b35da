"""The Lambda behind Custom::HyperPodDeletionProtection."""
