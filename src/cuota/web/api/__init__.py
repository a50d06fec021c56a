"""The merchant REST API, with one resource in each file."""
