"""Reads and writes disputes, their evidence and files, and return notices."""
