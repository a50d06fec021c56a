"""The hosted checkout."""
