"""A merchant's name as consumers see it. Two names that look alike must not be different texts."""

from __future__ import annotations

import unicodedata
from uuid import UUID

# Characters that are printable and yet show nothing: joiners, fillers and variation selectors.
_INVISIBLE = frozenset(
    [
        0x034F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        0x2800,
        0x3164,
        0xFFA0,
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
    ]
)
# Scripts whose letters look alike.
_ALIKE = frozenset(["LATIN", "CYRILLIC", "GREEK"])


class ConfusingName(ValueError):
    """The text cannot be shown as a name. The message says why."""


def is_id(name: str) -> bool:
    """Return whether a name reads as an id. A command that takes a name or an id would then mean another merchant."""
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def shown_name(text: str, longest: int) -> str:
    """Return the name in its normal form, with single spaces; "" for an empty text. Raises ConfusingName.

    Full-width and other compatible letters become ordinary ones (NFKC), so that unique keys in the database compare them.
    """
    if not all((char.isprintable() or char.isspace()) and ord(char) not in _INVISIBLE for char in text):
        raise ConfusingName("Use only characters that can be seen.")
    name = " ".join(unicodedata.normalize("NFKC", text).split())
    if len(name) > longest:
        raise ConfusingName(f"Enter a name with at most {longest} characters.")
    scripts = {unicodedata.name(char, "").partition(" ")[0] for char in name if char.isalpha()}
    if len(scripts & _ALIKE) > 1:
        raise ConfusingName(
            "Use the letters of one alphabet: a name with similar letters of several is easily confused."
        )
    return name
