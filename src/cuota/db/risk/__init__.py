"""Decisions, history, policies and trials."""
