"""Several environments as one: what a look at each says, beside the others, and what they take together."""
