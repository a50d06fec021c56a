"""Stores merchants' onboarding: business, owners, documents, decisions, screening."""
