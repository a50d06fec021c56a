"""Signs the body of `openCheckout`, and verifies the signatures of webhooks."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from cuota.client.errors import BadWebhook
from cuota.client.money import json_text

TOLERANCE = 300  # how many seconds a webhook's timestamp may differ from now
_NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature", "x-pay-signature")


def sign(body: bytes | str | Mapping[str, Any], signing_secret: str) -> tuple[str, str]:
    """Sign the body of `openCheckout`. Returns the exact JSON string to pass to the page, and its signature.

    Do not change the string. If it is parsed and encoded again, the result may differ, and the signature is not valid for it.
    Raises ValueError if the body is not a JSON object.
    """
    text = json_text(body) if isinstance(body, Mapping) else _as_text(body)
    if isinstance(json.loads(text), dict):
        return text, _signature(_key_of(signing_secret), text.encode())
    raise ValueError("The body of openCheckout must be a JSON object.")


def _as_text(body: bytes | str) -> str:
    return body if isinstance(body, str) else bytes(body).decode("utf-8")


def verify_webhook(
    body: bytes | str,
    headers: Mapping[str, str],
    webhook_secrets: str | Iterable[str],
    signing_secret: str | Iterable[str] | None = None,
    now: float | datetime | None = None,
) -> dict[str, Any]:
    """Verify a webhook and return its event. Raises BadWebhook if a signature or the timestamp is not valid.

    `body`: the raw bytes of the request. `webhook_secrets`: one or several secrets (`whsec_...`); the signature must match
    one of them. Use several while you rotate a secret. `signing_secret`: if given (one or several), `X-Pay-Signature` must
    match one of them too. `now`: the current time, for tests.

    A webhook may arrive more than once. Your code must act only once on each event's `id`.
    """
    raw = _raw(body)
    keys = [_webhook_key(secret) for secret in _several(webhook_secrets)]
    if not keys:
        raise ValueError("webhook_secrets is empty: a webhook cannot be verified without a secret.")
    signing_keys = None if signing_secret is None else [_key_of(each) for each in _several(signing_secret)]
    if signing_keys == []:
        raise ValueError("signing_secret is empty: leave it out, or pass at least one secret.")
    received = _headers(headers)
    name, sent_at = received["webhook-id"], received["webhook-timestamp"]
    if not re.fullmatch(r"[\w.-]{1,100}", name, re.ASCII) or not re.fullmatch(r"[0-9]{1,12}", sent_at):
        raise BadWebhook("webhook-id or webhook-timestamp is missing or unreadable.")
    if abs(_seconds(now) - int(sent_at)) > TOLERANCE:
        raise BadWebhook("The webhook's timestamp differs from the current time by more than five minutes.")
    signed = f"{name}.{sent_at}.".encode() + raw
    expected = ["v1," + _signature(key, signed) for key in keys]
    # Compare every pair, each in constant time, so that the duration reveals nothing about a secret.
    matches = [_same(given, each) for given in received["webhook-signature"].split(" ") for each in expected]
    pay_matches = [_same(received["x-pay-signature"], _signature(key, raw)) for key in signing_keys or []]
    if not any(matches) or (signing_keys is not None and not any(pay_matches)):
        raise BadWebhook("The webhook's signature does not match its body and your secrets.")
    return _event(raw)


def _event(raw: bytes) -> dict[str, Any]:
    """Parse the event, with exact decimals."""
    try:
        event = json.loads(raw, parse_float=Decimal)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise BadWebhook("The webhook's body is not a JSON object.")
    return event


def _raw(body: bytes | str) -> bytes:
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise TypeError("body must be the raw bytes of the request, before anything has parsed them.")


def _several(secrets: str | Iterable[str]) -> list[str]:
    return [secrets] if isinstance(secrets, str) else list(secrets)


def _webhook_key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError("This is not a webhook secret: a webhook secret is whsec_ followed by base64.")
    return key


def _key_of(signing_secret: str) -> bytes:
    if not signing_secret:
        raise ValueError("The signing secret is empty: nothing can be signed or verified with it.")
    return signing_secret.encode()


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the four headers that matter, by lower-case name; "" for a missing one. Raises BadWebhook for a repeated one."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in _NAMES and lower in found:
            raise BadWebhook(f"The webhook has the header {lower} twice.")
        if lower in _NAMES:
            found[lower] = value
    return {name: found.get(name, "") for name in _NAMES}


def _seconds(now: float | datetime | None) -> float:
    if now is None:
        return time.time()
    return now.timestamp() if isinstance(now, datetime) else float(now)


def _signature(key: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.digest(key, message, "sha256")).decode()


def _same(given: str, expected: str) -> bool:
    """Compare in constant time, as bytes, because `compare_digest` refuses non-ASCII text, which anybody may send."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
