"""Replaces a section of docs/proof.md with new measurements."""

from __future__ import annotations

from pathlib import Path

PROOF = Path(__file__).parents[1] / "docs" / "proof.md"


def write(title: str, text: str) -> None:
    """Write the section with this title (`## ...`). The other sections stay unchanged."""
    whole = PROOF.read_text() if PROOF.exists() else "# Proof\n"
    before, found, rest = whole.partition(f"\n{title}\n")
    _, following, after = rest.partition("\n## ")
    section = f"\n{title}\n\n{text}"
    PROOF.write_text(before.rstrip("\n") + "\n" + section + (f"\n## {after}" if found and following else ""))
