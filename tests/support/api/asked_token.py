"""The body of a token request."""

from __future__ import annotations

from support.makers import Merchant


def asked(merchant: Merchant, **changes: object) -> dict[str, object]:
    body: dict[str, object] = {
        "client_id": merchant.client_id,
        "client_secret": merchant.client_secret,
        "audience": merchant.service.settings.audience,
        "grant_type": "client_credentials",
    }
    body |= changes
    return {name: value for name, value in body.items() if value is not None}
