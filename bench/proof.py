"""A section of docs/proof.md, as a measurement writes it anew."""

from __future__ import annotations

from pathlib import Path

PROOF = Path(__file__).parents[1] / "docs" / "proof.md"


def write(title: str, text: str) -> None:
    """Put the section of this title (`## ...`) there; the others stay as they are."""
    whole = PROOF.read_text() if PROOF.exists() else "# Proof\n"
    before, found, rest = whole.partition(f"\n{title}\n")
    _, following, after = rest.partition("\n## ")
    section = f"\n{title}\n\n{text}"
    PROOF.write_text(before.rstrip("\n") + "\n" + section + (f"\n## {after}" if found and following else ""))
