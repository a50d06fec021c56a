"""Reads the query of a request.

An unknown parameter is refused: with a typo such as `?dryrun=true`, the call would move money.
"""

from __future__ import annotations

from starlette.requests import Request

from cuota.core.refusal import Code, FieldError, Refused
from cuota.web.api.unknown import HIDDEN, MOST_NAMED, near, shown


def parameters(request: Request, *known: str) -> dict[str, str]:
    """Return the query's parameters. Raises Refused(malformed_request) for an unknown or repeated parameter."""
    if not request.scope["query_string"]:
        return {}
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise _refused(name, "unknown_parameter", _unknown(name, known))
        if name in found:
            raise _refused(name, "duplicate", "is given twice: send it once")
        found[name] = value
    return found


def unread_query(request: Request) -> list[dict[str, str]]:
    """Return warnings for the query of a call that has no parameters: `POST /order?dryRun=true` does create an order."""
    if not request.scope["query_string"]:
        return []
    message = "is a query parameter, and was ignored: this call has no query parameters"
    names = list(dict.fromkeys(request.query_params.keys()))[:MOST_NAMED]
    return [{"field": shown(name), "code": "unknown_parameter", "message": message} for name in names]


def _unknown(name: str, known: tuple[str, ...]) -> str:
    meant = near(shown(name), frozenset(known)) if shown(name) != HIDDEN else None
    if meant is not None:
        return f"is not a parameter of this call: did you mean {meant}?"
    return f"is not a parameter of this call, which has {', '.join(known)}"


def _refused(name: str, code: str, message: str) -> Refused:
    end = "" if message.endswith("?") else "."
    sentence = f"The query parameter {shown(name)} {message}{end} Nothing was done."
    return Refused(Code.MALFORMED_REQUEST, sentence, errors=(FieldError(shown(name), code, message),))
