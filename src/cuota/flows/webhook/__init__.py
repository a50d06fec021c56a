"""Deliver and replay webhooks."""
