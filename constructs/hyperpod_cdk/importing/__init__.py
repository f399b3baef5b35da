"""Environment files from what exists: requests of CreateCluster, AWS's set-up stacks, AWS's Terraform module."""
