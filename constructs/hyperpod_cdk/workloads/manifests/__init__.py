"""Renders the manifests of each kind of job, and the pods that they have in common."""
