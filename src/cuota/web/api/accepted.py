"""Decides between JSON and CSV, by the parameter `format` or else by the Accept header."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

from cuota.web.fields import Reader, WrongField

CSV_PARAMETERS = ("format",)
_PAGING = ("limit", "after")


def wants_csv(request: Request, reader: Reader, given: Mapping[str, str]) -> bool:
    """Return whether the answer is CSV.

    A CSV file has all entries, so its request must not have `limit` or `after`: they are recorded as errors.
    """
    chosen = reader.read(dict(given), "format", _format)
    csv = accepts_csv(request.headers.get("accept", "")) if chosen is None else chosen == "csv"
    if csv:
        for name in _PAGING:
            if name in given:
                message = "is only for JSON pages; a CSV file has all entries: leave it out"
                reader.fail(name, WrongField("invalid", message))
    return csv


def _format(text: str) -> str:
    if text not in {"json", "csv"}:
        raise WrongField("invalid", "must be json or csv")
    return text


def accepts_csv(accept: str) -> bool:
    """Return whether an Accept header names text/csv, and does not prefer JSON (RFC 9110, section 12.5.1)."""
    weights: dict[str, float] = {}
    for part in accept.lower().split(",")[:100]:
        name, *options = (piece.strip() for piece in part.split(";"))
        weights[name] = 1.0
        for option in options:
            key, _, value = option.partition("=")
            if key.strip() == "q":
                try:
                    weights[name] = float(value)
                except ValueError:
                    weights[name] = 0.0
    csv, json = weights.get("text/csv", 0.0), weights.get("application/json", 0.0)
    return csv > 0 and csv >= json
