"""What an environment needs of Service Quotas, and the gate that asks before nodes are made."""
