"""The Lambda behind Custom::ClusterSchedulerConfig and Custom::ComputeQuota."""
