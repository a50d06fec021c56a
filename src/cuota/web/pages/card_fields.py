"""Shows the fields of a card on a page.

The fields need the scripts of the card rail, their settings, and sources in the page's security policy.
"""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

from cuota.core.money import CURRENCY
from cuota.core.sandbox import TEST_CARDS
from cuota.flows.context import Context
from cuota.rails.card.protocol import CardFields
from cuota.web.pages.render import PageContext

# The characters of an origin, a keyword or a wildcard. Any other character could change another directive of the policy.
_SOURCE = re.compile(r"[A-Za-z0-9'*.:/_-]+", re.ASCII)


def card_form(context: Context, cents: int | None) -> PageContext:
    """Return the values of the macro `card_fields`.

    `cents` is the amount that is charged now, or None if the page only stores the card for later payments. The fields
    of the simulated processor are part of the page (`simulated`), so that they work without a script too.
    """
    fields = context.rails.card.fields()
    simulated = context.rails.card.sandbox is not None
    asked: dict[str, object] = {"purpose": "setup" if cents is None else "payment", "currency": CURRENCY}
    if cents is not None:
        asked["amount"] = cents
    return {
        "simulated": simulated,
        "scripts": fields.scripts,
        "options": json.dumps({**fields.options, **asked}, sort_keys=True),
        "test_cards": [(card.number, card.meaning.capitalize()) for card in TEST_CARDS if simulated],
    }


def policy_of(fields: CardFields) -> dict[str, list[str]]:
    """Return the sources that a page with these fields needs, by directive of the Content-Security-Policy."""
    allowed: dict[str, list[str]] = {}
    for script in fields.scripts:
        parts = urlsplit(script)
        if parts.netloc:
            allowed.setdefault("script-src", []).append(f"{parts.scheme}://{parts.netloc}")
    for directive, sources in fields.sources.items():
        allowed.setdefault(directive, []).extend(sources)
    for directive, words in allowed.items():
        if not all(_SOURCE.fullmatch(word) for word in (directive, *words)):
            raise ValueError(
                f"the card rail allows {directive} {words}: not the form of a directive and its sources"
            )
    return allowed
