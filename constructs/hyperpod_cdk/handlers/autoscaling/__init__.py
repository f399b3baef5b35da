"""The Lambda behind Custom::HyperPodNodeCounts and Custom::HyperPodAutoscaler."""
