"""Merchants and their credentials."""
