"""Workloads for an instance group: manifests that fit its nodes, their admission to queues, and reports of tests."""
