"""Stripe's card fields on our pages (docs.stripe.com/security/guide, "Content Security Policy")."""

from __future__ import annotations

from urllib.parse import urlsplit

from cuota.rails.card.protocol import CardFields
from cuota.rails.settings import StripeKeys

SCRIPT_PATH = "/static/stripe-card.js"
_SOURCES = {
    "script-src": ("https://js.stripe.com",),
    "frame-src": ("https://js.stripe.com", "https://hooks.stripe.com"),
    "connect-src": ("https://api.stripe.com",),
}


def card_fields(keys: StripeKeys) -> CardFields:
    """Return Stripe's script, our script that mounts the Payment Element, and the origins of Stripe or of its stand-in."""
    options = {"key": keys.publishable}
    if not keys.api_url:
        return CardFields(("https://js.stripe.com/v3/", SCRIPT_PATH), options, _SOURCES)
    parts = urlsplit(keys.api_url)
    sources = dict.fromkeys(_SOURCES, (f"{parts.scheme}://{parts.netloc}",))
    return CardFields((f"{keys.api_url}/js.stripe.com/v3/", SCRIPT_PATH), options, sources)
