"""The EKS control plane, its add-ons, and the HyperPod dependency chart."""
