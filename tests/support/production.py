"""Settings of a production environment, whose rails do not exist."""

from __future__ import annotations

import base64

KEY = base64.b64encode(bytes(range(32))).decode()
RAIL = "somewhere.rails.CardRail"
PRODUCTION = {
    "CUOTA_ENVIRONMENT": "production",
    "CUOTA_PUBLIC_URL": "https://pay.example.com",
    "CUOTA_SECRET_KEY": KEY,
    "CUOTA_CARD_RAIL": RAIL,
    "CUOTA_MESSAGE_RAIL": RAIL,
    "CUOTA_CREDITOR": "Acme Lending LLC, 1 Main Street, Springfield, IL 62701",
}
