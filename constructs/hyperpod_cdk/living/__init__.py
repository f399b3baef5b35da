"""The living cluster: what stands beside what is written, and what its nodes do."""
