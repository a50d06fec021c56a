"""Alder & Oak: a small shop that takes pay in four, with the public API only."""
