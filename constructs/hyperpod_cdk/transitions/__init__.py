"""From the deployed stacks to those of a file: which stacks are deployed in which order, and what prevents it."""
