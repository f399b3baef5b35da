"""The VPC, its endpoints and security groups, new or existing."""
