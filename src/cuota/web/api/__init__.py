"""The merchant REST API: one resource a file."""
