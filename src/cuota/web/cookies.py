"""Reads the cookies of a request in linear time.

Starlette uses the standard library's parser. Its time grows with the square of the length of a quoted value: 16 KB of
backslashes took it a second. Cuota's own cookies are never quoted.
"""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request


def cookie_of(request: Request, name: str) -> str | None:
    """Return the unchanged value of the last cookie with this name, or None."""
    value = None
    for given, text in _cookies(request):
        if given == name:
            value = text
    return value


def names_of(request: Request) -> set[str]:
    """Return the names of all cookies. A name may contain anything that a browser or a program sent."""
    return {name for name, _ in _cookies(request)}


def _cookies(request: Request) -> Iterator[tuple[str, str]]:
    for header in request.headers.getlist("cookie"):
        for part in header.split(";"):
            name, equals, text = part.partition("=")
            if equals:
                yield name.strip(), text.strip()
