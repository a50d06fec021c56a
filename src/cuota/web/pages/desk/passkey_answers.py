"""The responses to the script for passkeys: options for the browser, or an error, as JSON."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

_HEADERS = {"Cache-Control": "no-store"}


def options_answer(options: str) -> Response:
    """Return the options for `navigator.credentials`, which are JSON already."""
    return Response(options, 200, _HEADERS, "application/json")


def refusal(text: str, name: str = "", *, status: int = 400) -> Response:
    """Return an error and the name of the wrong field."""
    return JSONResponse({"error": text, "name": name}, status, _HEADERS)


def confirmed() -> Response:
    """Return that the passkey was accepted."""
    return JSONResponse({}, 200, _HEADERS)
