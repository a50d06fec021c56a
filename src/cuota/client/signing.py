"""The two signatures: yours over what `openCheckout` is given, and the service's over its webhooks."""

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

TOLERANCE = 300  # seconds that a webhook's timestamp may be off
_NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature", "x-pay-signature")


def sign(body: bytes | str | Mapping[str, Any], signing_secret: str) -> tuple[str, str]:
    """Sign the body of `openCheckout`: the exact JSON string to hand to the page, and its signature.

    Hand over the string as it is. Parsed and printed anew by anybody it is another string, which does not fit.
    """
    text = json_text(body) if isinstance(body, Mapping) else _as_text(body)
    if isinstance(json.loads(text), dict):
        return text, _signature(_key_of(signing_secret), text.encode())
    raise ValueError("The body of openCheckout is a JSON object.")


def _as_text(body: bytes | str) -> str:
    return body if isinstance(body, str) else bytes(body).decode("utf-8")


def verify_webhook(
    body: bytes | str,
    headers: Mapping[str, str],
    webhook_secrets: str | Iterable[str],
    signing_secret: str | Iterable[str] | None = None,
    now: float | datetime | None = None,
) -> dict[str, Any]:
    """The event that a webhook brings, once it is proved; raises BadWebhook otherwise.

    `body`: the raw bytes as they came. `webhook_secrets`: one (`whsec_...`) or several, as while a secret rotates: one
    must fit. `signing_secret`: where given, one or several, `X-Pay-Signature` must fit one too. Acting once on each event's `id` is yours.
    """
    raw = _raw(body)
    keys = [_webhook_key(secret) for secret in _several(webhook_secrets)]
    if not keys:
        raise ValueError("webhook_secrets is empty: without a secret nothing is proved.")
    signing_keys = None if signing_secret is None else [_key_of(each) for each in _several(signing_secret)]
    if signing_keys == []:
        raise ValueError("signing_secret is empty: leave it out, or give one.")
    got = _headers(headers)
    name, sent_at = got["webhook-id"], got["webhook-timestamp"]
    if not re.fullmatch(r"[\w.-]{1,100}", name, re.ASCII) or not re.fullmatch(r"[0-9]{1,12}", sent_at):
        raise BadWebhook("webhook-id or webhook-timestamp is missing or unreadable.")
    if abs(_seconds(now) - int(sent_at)) > TOLERANCE:
        raise BadWebhook("The webhook's timestamp is more than five minutes off.")
    signed = f"{name}.{sent_at}.".encode() + raw
    wanted = ["v1," + _signature(key, signed) for key in keys]
    # Every pair is compared, each in constant time: how long it takes tells nothing.
    fits = [_same(given, each) for given in got["webhook-signature"].split(" ") for each in wanted]
    paid = [_same(got["x-pay-signature"], _signature(key, raw)) for key in signing_keys or []]
    if not any(fits) or (signing_keys is not None and not any(paid)):
        raise BadWebhook("The webhook's signature does not fit its body and your secrets.")
    return _event(raw)


def _event(raw: bytes) -> dict[str, Any]:
    """Read it with its decimals exact."""
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
    raise TypeError("body is to be the raw bytes of the request, before anything has parsed them.")


def _several(secrets: str | Iterable[str]) -> list[str]:
    return [secrets] if isinstance(secrets, str) else list(secrets)


def _webhook_key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError("A webhook secret is whsec_ and base64; this one is not.")
    return key


def _key_of(signing_secret: str) -> bytes:
    if not signing_secret:
        raise ValueError("The signing secret is empty: that proves nothing.")
    return signing_secret.encode()


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The four that count, by lower-case name; one that is missing is empty, one that comes twice is refused."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in _NAMES and lower in found:
            raise BadWebhook(f"The header {lower} came twice.")
        if lower in _NAMES:
            found[lower] = value
    return {name: found.get(name, "") for name in _NAMES}


def _seconds(now: float | datetime | None) -> float:
    if now is None:
        return time.time()
    return now.timestamp() if isinstance(now, datetime) else float(now)


def _signature(key: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.digest(key, message, "sha256")).decode()


def _same(given: str, wanted: str) -> bool:
    """In constant time; as bytes, since a stranger may send anything."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())
