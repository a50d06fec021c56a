"""Decide an order, and review decisions."""
