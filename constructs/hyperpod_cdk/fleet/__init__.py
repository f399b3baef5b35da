"""Several environments: the result of each in one table, and what all of them use together."""
