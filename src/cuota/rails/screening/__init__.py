"""Screening: whether a name is on a list of sanctioned people and companies."""
