"""What the verbs of the command print and write."""
