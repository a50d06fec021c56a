"""Finds card numbers in free text and masks them, except for the last four digits.

A card number has 13 to 19 digits that pass the Luhn check, possibly with spaces or dashes between them. One in ten other
numbers of that length also passes the check and is masked too.
"""

from __future__ import annotations

import re
from typing import Any

SHORTEST, LONGEST, SHOWN = 13, 19, 4
_GUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
# Printed MD5, SHA-1 and SHA-256 hashes, such as a shop's cart hash. A text of only digits is not a hash.
_DIGEST = r"(?<![0-9a-zA-Z])(?=[0-9]*[a-f])(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})(?![0-9a-zA-Z])"
# In the text of a signed form, a plus means a space.
_BETWEEN = "[ \t+\u00a0\u2000-\u2015\u202f-]{0,3}"
_FOUND = re.compile(f"(?P<name>{_GUID}|{_DIGEST})|[0-9](?:{_BETWEEN}[0-9]){{{SHORTEST - 1},}}")
# Every digit becomes 0 and every separator is removed. This works on single bytes, so it may find too many candidates.
_DIGITS = bytes(48 if 48 <= byte <= 57 else 120 for byte in range(256))
_GOES = b" \t+-\xc2\xa0\xe2\x80\xaf" + bytes(range(0x80, 0x96))
_ENOUGH = b"0" * SHORTEST
# Digits and separators may also be escaped in JSON.
_ESCAPED = re.compile(rb"\\(?:u(?:00[0239aA]|20[012])|t)")
# A run of this many digits is masked completely, without a search for card numbers in it.
_MOST_DIGITS = 200
_STARS = str.maketrans("0123456789", "*" * 10)
# Two digits between dashes are part of a date or an amount. Card numbers are not written like this.
_SHORTEST_GROUP = 3
_GROUP = re.compile("[0-9]+")
# An amount with the rounding noise of a binary float. The digits after its decimal point are not a card number.
_DECIMAL = re.compile(r"-?[0-9]{1,12}(?:,[0-9]{3})*\.[0-9]+")


def may_hold_card(body: bytes) -> bool:
    """Scan a raw body once, and return whether it may contain a card number."""
    if _ENOUGH in body.translate(_DIGITS, _GOES):
        return True
    return b"\\" in body and _ESCAPED.search(body) is not None


def masked(text: str) -> str:
    """Mask every card number in a text, without changing its length. A decimal such as `8.879999999999999` stays."""
    if _DECIMAL.fullmatch(text):
        return text
    return _FOUND.sub(_masked, text)


def masked_tree(value: Any, kept: frozenset[str] = frozenset()) -> Any:
    """Mask every text in a JSON value, including names. Members whose names are in `kept` stay unchanged."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [masked_tree(item, kept) for item in value]
    if isinstance(value, dict):
        return {
            masked(name): item if name in kept else masked_tree(item, kept) for name, item in value.items()
        }
    return value


def _masked(found: re.Match[str]) -> str:
    run = found[0]
    if found["name"]:
        return run
    if len(run) > _MOST_DIGITS:
        return run[:-SHOWN].translate(_STARS) + run[-SHOWN:]
    places = [place for place, char in enumerate(run) if char.isdigit()]
    letters = list(run)
    for start, end in _cards(run, places):
        for place in places[start : end - SHOWN]:
            letters[place] = "*"
    return "".join(letters)


def _cards(run: str, places: list[int]) -> list[tuple[int, int]]:
    """Return the start and end of card numbers, counted in digits. Running sums make every check equally cheap."""
    sums = _sums([int(run[place]) for place in places])
    count = len(places)
    if count <= LONGEST and _passes(sums, 0, count):
        return [(0, count)]
    cards, free, at = [], 0, 0
    groups = []
    for group in _GROUP.finditer(run):
        groups.append((at, at + len(group[0])))
        at = groups[-1][1]
    for index, (start, end) in enumerate(groups):
        if start < free or end - start < _SHORTEST_GROUP:
            continue
        ends = [last for _, last in groups[index : index + LONGEST] if SHORTEST <= last - start <= LONGEST]
        fitting = next((last for last in reversed(ends) if _passes(sums, start, last)), None)
        if fitting is not None:
            cards.append((start, fitting))
            free = fitting
    return cards


def _sums(digits: list[int]) -> tuple[list[int], list[int]]:
    """Return two running sums of the digits: one with the digits at even places doubled, one with those at odd places."""
    sums: tuple[list[int], list[int]] = ([0], [0])
    for place, digit in enumerate(digits):
        double = digit * 2 - 9 if digit > 4 else digit * 2
        for parity in (0, 1):
            sums[parity].append(sums[parity][-1] + (double if place % 2 == parity else digit))
    return sums


def _passes(sums: tuple[list[int], list[int]], start: int, end: int) -> bool:
    """Do the Luhn check, which doubles every second digit from the right."""
    of = sums[end % 2]
    return (of[end] - of[start]) % 10 == 0
