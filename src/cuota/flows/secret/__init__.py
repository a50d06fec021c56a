"""The secret key: opened at the start, and replaced."""
