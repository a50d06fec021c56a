"""Onboarding: what the operator knows about a merchant, what was decided, and the screening of names."""
