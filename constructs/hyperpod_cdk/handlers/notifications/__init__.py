"""Tells a team what happens to its cluster."""
