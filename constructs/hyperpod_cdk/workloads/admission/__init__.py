"""What Kueue would say to manifests under the environment's quotas: read, counted, admitted, preempted."""
