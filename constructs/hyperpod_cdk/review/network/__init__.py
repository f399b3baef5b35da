"""Security groups, routes and endpoints, and the proof that EFA and Lustre traffic is possible."""
