"""Alder & Oak: a small demo shop that offers Pay in four. It uses only the public API of the service."""
