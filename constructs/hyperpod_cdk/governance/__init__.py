"""Task governance: teams, their quotas, their access to the cluster."""
