"""Finds fields of a request that the API does not know. They are ignored, and the warnings name them.

So a merchant notices a typo. A warning never repeats a value, or a name that looks like a misplaced value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

CODE = "unknown_field"
MOST_NAMED = 20
HIDDEN = "?"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\[\]-]{0,49}", re.ASCII)
# A name with more digits is hidden: it could be a card number (at least 13 digits) or a phone number (10 digits).
_MOST_DIGITS = 7
_CLOSE = 0.8
# The path before the name, the name, and the known names at that path.
Unread = tuple[str, str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Shape:
    """The known fields of an object. `inner` has the shapes of fields that hold an object or a list of objects."""

    names: frozenset[str]
    inner: Mapping[str, Shape] = field(default_factory=dict)


def shape(*names: str, **inner: Shape) -> Shape:
    """Make a shape: fields by name, and fields that hold objects as keyword arguments with their shapes."""
    return Shape(frozenset((*names, *inner)), inner)


def unknown_fields(body: Mapping[str, Any], known: Shape) -> list[dict[str, str]]:
    """Return a warning for each unknown field of the body, at every level."""
    found: list[Unread] = []
    _look(body, known, "", found)
    return named(found)


def with_warnings(content: dict[str, Any], body: Mapping[str, Any], known: Shape) -> dict[str, Any]:
    """Return the content of an answer, with `warnings` if the body has unknown fields."""
    warnings = unknown_fields(body, known)
    return {**content, "warnings": warnings} if warnings else content


def named(found: Iterable[Unread]) -> list[dict[str, str]]:
    """Return a warning for each of the first MOST_NAMED fields, and one with the number of further fields."""
    warnings: list[dict[str, str]] = []
    more = 0
    for prefix, name, known in found:
        if len(warnings) < MOST_NAMED:
            warnings.append(_warning(prefix, name, known))
        else:
            more += 1
    if more:
        message = f"{more} more fields are unknown to this call; they were ignored"
        warnings.append({"field": HIDDEN, "code": CODE, "message": message})
    return warnings


def shown(name: str) -> str:
    """Return a name that an answer may repeat, or HIDDEN if the name could be a misplaced value."""
    readable = _NAME.fullmatch(name) and sum(letter.isdigit() for letter in name) <= _MOST_DIGITS
    return name if readable else HIDDEN


@lru_cache(maxsize=2048)
def near(name: str, known: frozenset[str]) -> str | None:
    """Return the known name that was probably meant, or None."""
    plain = {_plain(each): each for each in sorted(known)}
    close = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=_CLOSE)
    return plain[close[0]] if close else None


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _warning(prefix: str, name: str, known: frozenset[str]) -> dict[str, str]:
    label = shown(name)
    message = "is not read by this call; it was ignored"
    if label != HIDDEN and (meant := near(name, known)) is not None:
        message += f". Did you mean {meant}?"
    return {"field": f"{prefix}{label}", "code": CODE, "message": message}


def _look(body: Mapping[str, Any], known: Shape, prefix: str, found: list[Unread]) -> None:
    """Collect the unknown fields of an object, and of the objects inside it."""
    if not known.names.issuperset(body):
        # null counts as absent.
        unread = (name for name, value in body.items() if name not in known.names and value is not None)
        found.extend((prefix, name, known.names) for name in unread)
    for name, inner in known.inner.items():
        value = body.get(name)
        if isinstance(value, dict):
            _look(value, inner, f"{prefix}{name}.", found)
        elif isinstance(value, list):
            _look_in_list(value, inner, f"{prefix}{name}", found)


def _look_in_list(values: list[Any], known: Shape, path: str, found: list[Unread]) -> None:
    """Collect the unknown fields of a list's items. Each name is reported only once, at the first item that has it."""
    seen = set(known.names)
    for index, value in enumerate(values):
        if not isinstance(value, dict) or seen.issuperset(value):
            continue
        for name, entry in value.items():
            if name not in seen and entry is not None:
                seen.add(name)
                found.append((f"{path}[{index}].", name, known.names))
