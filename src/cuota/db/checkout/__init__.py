"""Checkout sessions, consumers and virtual cards."""
