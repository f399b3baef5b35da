"""Workloads for an instance group: manifests that fit its nodes, what they would be admitted to, what they measured."""
