"""Reads request bodies: JSON objects of limited size.

A body with a valid access token may have 256 KiB. A body that is read before its sender is authenticated has a lower
limit, because anybody can make the service spend the time to read it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request

from cuota.core.refusal import Code, Refused
from cuota.core.wire.spared_json import read_sparing
from cuota.core.wire.strict_json import BadJson, read_json

MOST_BYTES = 256 * 1024
# A signed request in JSON. It is read before its signature is verified.
MOST_SIGNED_BYTES = 128 * 1024
# A signed request as a form. Reading it takes longer, because its fields are sorted before the signature is verified.
MOST_FORM_BYTES = 48 * 1024
# A form of Cuota's own pages, a token request, or a request to the sandbox's card network.
MOST_SMALL_BYTES = 16 * 1024
_LONGEST_TYPE = 200
# The name of the function in a request's scope that raises the limits of the connection for this body.
ALLOW_BODY = "cuota.allow_body"
# The name of the function in a request's scope that checks the caller again: after the body has arrived, and during a long answer.
CHECK_CALLER = "cuota.check_caller"


def _too_large(most: int) -> Refused:
    return Refused(Code.BODY_TOO_LARGE, f"The body may have at most {most} bytes.")


async def read_bytes(request: Request, most: int = MOST_BYTES) -> bytes:
    """Read the raw body, of at most `most` bytes.

    Raises Refused(body_too_large) as soon as the declared or the actual length exceeds the limit, and
    Refused(unsupported_media_type) for a compressed body, because the service decompresses nothing. Raises
    Refused(unauthorized) if the caller's credential was revoked while the body arrived.
    """
    _begin(request, most)
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        chunks.append(chunk)
    body = b"".join(chunks)
    if (record := request.scope.get("record")) is not None:
        record.asked(body)
    if (check := request.scope.get(CHECK_CALLER)) is not None:
        await check()
    return body


async def read_chunks(request: Request, most: int) -> AsyncIterator[bytes]:
    """Read the raw body as `read_bytes` does, in pieces as they arrive."""
    _begin(request, most)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        if chunk:
            yield chunk


def _begin(request: Request, most: int) -> None:
    """Refuse a body by its headers. Let the connection take a body that is larger than MOST_BYTES, and give it more time."""
    refuse_encoded(request)
    declared = request.headers.get("content-length")
    if declared is not None and declared.isdigit() and (len(declared) > 12 or int(declared) > most):
        raise _too_large(most)
    allow = request.scope.get(ALLOW_BODY)
    if most > MOST_BYTES and allow is not None:
        allow(most)


def refuse_encoded(request: Request) -> None:
    """Refuse every Content-Encoding except identity. Raises Refused(unsupported_media_type)."""
    for given in request.headers.getlist("content-encoding"):
        if given.strip().lower() not in {"", "identity"}:
            message = "Send the body uncompressed, without a Content-Encoding header."
            raise Refused(Code.UNSUPPORTED_MEDIA_TYPE, message)


def media_type(request: Request) -> tuple[str, str]:
    """Return the media type and the charset of the Content-Type header, in lower case; "" if absent."""
    # The cut is longer than any real value, and keeps thousands of parameters from taking time.
    given = request.headers.get("content-type", "")[:_LONGEST_TYPE]
    kind, _, rest = given.partition(";")
    charset = ""
    for parameter in rest.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
    return kind.strip().lower(), charset


def require_json(request: Request) -> None:
    """Refuse a Content-Type that is not JSON in UTF-8. Raises Refused(unsupported_media_type)."""
    kind, charset = media_type(request)
    if kind != "application/json" or charset not in {"", "utf-8", "utf8"}:
        message = "Send the body as Content-Type: application/json, in UTF-8."
        raise Refused(Code.UNSUPPORTED_MEDIA_TYPE, message)


def parse_object(body: bytes, spared: str | None = None) -> dict[str, Any]:
    """Parse a body that is a JSON object, with exact numbers. Raises Refused(malformed_request).

    `spared`: the value of a member with this name may break the rules of strict JSON.
    """
    try:
        value = read_json(body) if spared is None else read_sparing(body, spared)
    except BadJson as problem:
        raise Refused(Code.MALFORMED_REQUEST, f"The body is not readable as JSON: {problem}.") from None
    if not isinstance(value, dict):
        raise Refused(Code.MALFORMED_REQUEST, "The body must be a JSON object.")
    return value
