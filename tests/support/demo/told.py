"""Makes the provider's webhooks, for the shop's tests."""

from __future__ import annotations

import json
import time
from typing import Any

from cuota.core.webhook.signature import pay_signature, webhook_signature
from support.demo.shop_network import ENVIRONMENT, RECORD

WEBHOOK_SECRET = "whsec_c2hvcCdzIHdlYmhvb2sgc2VjcmV0LCAzMiBieXRlcy4="
SIGNING_SECRET = "signing_of_the_shop"
ENVIRONMENT_TOLD = {
    **ENVIRONMENT, "SHOP_WEBHOOK_SECRET": WEBHOOK_SECRET, "SHOP_SIGNING_SECRET": SIGNING_SECRET,
}  # fmt: skip


def event(sequence: int, kind: str, status: str = "Approved", **more: Any) -> dict[str, Any]:
    """Return one event of order o-1. `record` changes the order's record in it."""
    record = more.pop("record", {})
    return {
        "id": f"evt_1_{sequence}",
        "type": kind,
        "timestamp": f"2026-11-21T10:00:{sequence:02d}.000Z",
        "orderId": "o-1",
        "amount": 89.95,
        "message": None,
        "sequence": sequence,
        "order": {**RECORD, "orderStatus": status, "originalAmount": 89.95, **record},
        **more,
    }


def raw(told: dict[str, Any]) -> bytes:
    return json.dumps(told).encode()


def headers(
    told: dict[str, Any], body: bytes, at: int | None = None, webhook: str = WEBHOOK_SECRET,
    signing: str = SIGNING_SECRET,
) -> dict[str, str]:  # fmt: skip
    sent_at = int(time.time()) if at is None else at
    return {
        "webhook-id": told["id"],
        "webhook-timestamp": str(sent_at),
        "webhook-signature": webhook_signature([webhook], told["id"], sent_at, body),
        "X-Pay-Signature": pay_signature(signing, body),
    }
