"""What an environment needs of Service Quotas, and the gate that checks them before nodes are created."""
