"""Merchants, their credentials and tokens."""
