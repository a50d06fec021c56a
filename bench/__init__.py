"""Benchmarks. `python -m bench` compares each operation with its theoretical limit."""
