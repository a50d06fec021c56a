"""Text that a person types or pastes into a field of a page.

A keyboard or another program may add characters that nobody sees, and use digits of another script. A person could not find
such an error.
"""

from __future__ import annotations

import unicodedata

# Some scripts need these two inside a word.
_JOINERS = frozenset("\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}")


def typed_text(text: str) -> str:
    """Return the text without invisible marks, such as those for the direction of writing, and with plain spaces."""
    return "".join(map(_seen, text)).strip()


def _seen(char: str) -> str:
    if char.isascii() and char.isprintable():
        return char
    kind = unicodedata.category(char)
    if kind == "Zs" or char == "\t":
        return " "
    return "" if kind == "Cf" and char not in _JOINERS else char


def typed_digits(text: str) -> str:
    """Return a number as `typed_text` does, with ASCII digits and dashes: a contact list copies dashes of other kinds."""
    return "".join(map(_plain, typed_text(text)))


def _plain(char: str) -> str:
    if char.isascii():
        return char
    if unicodedata.category(char) == "Nd":
        return str(unicodedata.decimal(char))
    return unicodedata.normalize("NFKC", char) if unicodedata.category(char) != "Pd" else "-"
