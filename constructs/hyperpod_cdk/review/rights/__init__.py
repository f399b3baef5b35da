"""Who may do what, and who reaches what: IAM, resource policies, EKS access entries, RBAC, changed routes and rules."""
