"""The output of the commands: what they print and which files they write."""
