"""Computes signatures: the SDK's over a raw body, and Standard Webhooks' over id, time and body."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence

WEBHOOK_PREFIX = "whsec_"


def pay_signature(secret: str, body: bytes) -> str:
    """Return `X-Pay-Signature`: the base64 HMAC-SHA256 of the raw body. The key is the signing secret's UTF-8 bytes."""
    return base64.b64encode(hmac.digest(secret.encode(), body, "sha256")).decode()


def webhook_signature(secrets: Sequence[str], event_id: str, timestamp: int, body: bytes) -> str:
    """Return `webhook-signature`: one `v1,...` for each valid secret, separated by spaces (Standard Webhooks)."""
    signed = f"{event_id}.{timestamp}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(_key(secret), signed, "sha256")).decode() for secret in secrets
    )


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(WEBHOOK_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("a webhook secret is whsec_ and base64")
    return key
