"""Amounts that break payment services, for capture, void and refund."""

from __future__ import annotations

OPERATIONS = ["capture", "void", "refund"]


AMOUNTS = [
    "null", "0", "-0", "0.00", "-1", "1.005", '"1.005"', '"ten"', '""', '"1,000.00"', "1234567890123456789", "true",
    "[1]", "{}", "1" * 5_000, "1e-400", "1e400", '" 1"', '"1e1"',
]  # fmt: skip
