"""Onboarding: what the operator must know about a merchant, and what the operator decided about the merchant."""
