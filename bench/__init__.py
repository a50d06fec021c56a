"""Benchmarks. Each operation is measured beside its theoretical limit: `python -m bench`."""
