"""Simulates how Kueue admits and preempts the jobs in manifests under the environment's quotas."""
