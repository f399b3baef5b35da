"""The Lambda behind Custom::HyperPodLogSettings."""
