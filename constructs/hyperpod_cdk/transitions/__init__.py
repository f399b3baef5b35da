"""From what is deployed to what a file says: which stacks are deployed in which order, and what stands in the way."""
