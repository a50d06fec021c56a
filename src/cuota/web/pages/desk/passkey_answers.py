"""The answers for the script of passkeys: options for the browser, or what is wrong, as JSON."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

_HEADERS = {"Cache-Control": "no-store"}


def options_answer(options: str) -> Response:
    """Return the options for `navigator.credentials`, which are JSON already."""
    return Response(options, 200, _HEADERS, "application/json")


def refusal(text: str, name: str = "", *, status: int = 400) -> Response:
    """Return what is wrong, and the name of the form's field that is wrong."""
    return JSONResponse({"error": text, "name": name}, status, _HEADERS)


def confirmed() -> Response:
    """Return that the passkey was accepted."""
    return JSONResponse({}, 200, _HEADERS)
