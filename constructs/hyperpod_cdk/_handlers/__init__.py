"""Code that runs in Lambda; nothing in the library imports it."""
