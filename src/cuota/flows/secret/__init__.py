"""The secret key: reading it at the start, and replacing it."""
