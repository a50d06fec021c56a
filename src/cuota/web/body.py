"""Reading request bodies: bounded, JSON only, strictly.

A body that comes with a token may have 256 KiB. Whatever is read before anything is known of its sender has smaller
bounds: what it costs is what a stranger can make the service spend.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from cuota.core.refusal import Code, Refused
from cuota.core.wire.spared_json import read_sparing
from cuota.core.wire.strict_json import BadJson, read_json

MOST_BYTES = 256 * 1024
# A signed request, read up to here before its signature is verified.
MOST_SIGNED_BYTES = 128 * 1024
# The same as a form, which costs more to read: its names are sorted before the signature is made over them.
MOST_FORM_BYTES = 48 * 1024
# A form of our own pages, a token request, and what the sandbox's card network is asked.
MOST_SMALL_BYTES = 16 * 1024
_LONGEST_TYPE = 200


def _too_large(most: int) -> Refused:
    return Refused(Code.BODY_TOO_LARGE, f"The body may have at most {most} bytes.")


async def read_bytes(request: Request, most: int = MOST_BYTES) -> bytes:
    """The raw body; refused by its declared length before it is read, or at the limit while it is.

    Raises Refused(unsupported_media_type) where it is compressed: nobody here unpacks anything.
    """
    refuse_encoded(request)
    declared = request.headers.get("content-length")
    if declared is not None and declared.isdigit() and (len(declared) > 12 or int(declared) > most):
        raise _too_large(most)
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        chunks.append(chunk)
    return b"".join(chunks)


def refuse_encoded(request: Request) -> None:
    """Refuse any Content-Encoding but identity."""
    for given in request.headers.getlist("content-encoding"):
        if given.strip().lower() not in {"", "identity"}:
            message = "Send the body as it is, without Content-Encoding."
            raise Refused(Code.UNSUPPORTED_MEDIA_TYPE, message)


def media_type(request: Request) -> tuple[str, str]:
    """Media type and charset of the Content-Type header, lower case; empty where absent."""
    # Longer than any media type; so that thousands of parameters cost nothing.
    given = request.headers.get("content-type", "")[:_LONGEST_TYPE]
    kind, _, rest = given.partition(";")
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
