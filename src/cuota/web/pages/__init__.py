"""The hosted checkout pages."""
