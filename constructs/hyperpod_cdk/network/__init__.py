"""The VPC, its endpoints and security groups, made or existing."""
