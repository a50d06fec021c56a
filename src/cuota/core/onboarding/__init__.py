"""Onboarding: what the operator must know about a merchant, and what was decided about it."""
