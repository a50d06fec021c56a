"""Reading request bodies: at most 256 KiB, JSON only, strictly."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from cuota.core.refusal import Code, Refused
from cuota.core.spared_json import read_sparing
from cuota.core.strict_json import BadJson, read_json

MOST_BYTES = 256 * 1024


def _too_large() -> Refused:
    return Refused(Code.BODY_TOO_LARGE, f"The body may have at most {MOST_BYTES} bytes.")


async def read_bytes(request: Request) -> bytes:
    """The raw body; refused by its declared length before it is read, or at the limit while it is."""
    declared = request.headers.get("content-length")
    if declared is not None and declared.isdigit() and (len(declared) > 12 or int(declared) > MOST_BYTES):
        raise _too_large()
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MOST_BYTES:
            raise _too_large()
        chunks.append(chunk)
    return b"".join(chunks)


def media_type(request: Request) -> tuple[str, str]:
    """Media type and charset of the Content-Type header, lower case; empty where absent."""
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    charset = ""
    for parameter in rest.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
    return kind.strip().lower(), charset


def require_json(request: Request) -> None:
    """Refuse anything but JSON in UTF-8."""
    kind, charset = media_type(request)
    if kind != "application/json" or charset not in {"", "utf-8", "utf8"}:
        message = "Send the body as Content-Type: application/json, in UTF-8."
        raise Refused(Code.UNSUPPORTED_MEDIA_TYPE, message)


def parse_object(body: bytes, spared: str | None = None) -> dict[str, Any]:
    """The JSON object of a body; numbers exact. Raises Refused(malformed_request).

    `spared`: members of this name may hold anything.
    """
    try:
        value = read_json(body) if spared is None else read_sparing(body, spared)
    except BadJson as problem:
        raise Refused(Code.MALFORMED_REQUEST, f"The body is not readable as JSON: {problem}.") from None
    if not isinstance(value, dict):
        raise Refused(Code.MALFORMED_REQUEST, "The body must be a JSON object.")
    return value
