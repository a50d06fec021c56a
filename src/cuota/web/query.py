"""The query of calls on which a mistyped parameter must not be overlooked: `?dryrun=true` would move money."""

from __future__ import annotations

from starlette.requests import Request

from cuota.core.refusal import Code, FieldError, Refused
from cuota.web.api.unknown import HIDDEN, MOST_NAMED, near, shown


def parameters(request: Request, *known: str) -> dict[str, str]:
    """The query's parameters. Raises Refused(malformed_request) for one that is unknown, or given twice."""
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
    """Warnings for a call that reads no query: `POST /order?dryRun=true` creates an order."""
    if not request.scope["query_string"]:
        return []
    message = "is a query parameter; this call reads none, and it was ignored"
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
