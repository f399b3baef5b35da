"""What a change does to each resource, and which line of the environment file caused it."""
