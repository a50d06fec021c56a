"""Reading one cookie, in linear time.

The standard library's reader, which Starlette uses, takes time that grows with the square of a quoted value: 16 KB of
backslashes took it a second. Our own cookies are never quoted.
"""

from __future__ import annotations

from starlette.requests import Request


def cookie_of(request: Request, name: str) -> str | None:
    """The value of the last cookie of this name, as it was sent; None where there is none."""
    value = None
    for header in request.headers.getlist("cookie"):
        for part in header.split(";"):
            given, equals, text = part.partition("=")
            if equals and given.strip() == name:
                value = text.strip()
    return value
