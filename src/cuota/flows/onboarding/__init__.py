"""Onboarding: a merchant's business and owners, the operator's decisions, and the screening of names."""
