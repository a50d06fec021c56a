"""The settings can name the rail `stripe` for new cards or for the cards of existing plans."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuota.rails.card.stripe import StripeCardRail
from cuota.rails.load import NoSuchRail, load
from cuota.rails.settings import StripeKeys
from support.makers import Running
from support.rails.parts import rail_parts

KEYS = StripeKeys("sk_test_canary0secret", "pk_test_public00", "whsec_canary0signing")


def test_the_rail_is_loaded_by_its_name(service: Running) -> None:
    cards = load(*rail_parts(service.context.pool, card="stripe", stripe=KEYS)).card
    assert isinstance(cards.active, StripeCardRail)
    assert cards.sandbox is None


def test_the_rail_is_loaded_for_the_cards_of_existing_plans(service: Running) -> None:
    parts = rail_parts(service.context.pool, card="sandbox", cards_kept=("stripe",), stripe=KEYS)
    assert list(load(*parts).card.by_name) == ["stripe", "sandbox"]


def test_the_rail_needs_its_keys_even_if_it_is_named_by_its_class(service: Running) -> None:
    parts = rail_parts(service.context.pool, card="cuota.rails.card.stripe.StripeCardRail")
    with pytest.raises(NoSuchRail, match=r"CUOTA_CARD_RAIL: .* needs CUOTA_STRIPE_SECRET_KEY"):
        load(*parts)


def test_the_page_gets_only_stripe_s_addresses_and_the_publishable_key(service: Running) -> None:
    fields = StripeCardRail(*rail_parts(service.context.pool, stripe=KEYS)).fields()
    assert fields.scripts == ("https://js.stripe.com/v3/", "/static/stripe-card.js")
    assert fields.options == {"key": "pk_test_public00"}
    assert fields.sources == {
        "script-src": ("https://js.stripe.com",),
        "frame-src": ("https://js.stripe.com", "https://hooks.stripe.com"),
        "connect-src": ("https://api.stripe.com",),
    }


def test_stripe_s_library_is_imported_only_for_its_rail() -> None:
    script = "import sys, cuota.run.runtime, cuota.web.app; print('stripe' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_docs_name_the_api_version_and_the_events_of_stripe_s_endpoint() -> None:
    import stripe

    from cuota.rails.card.stripe_events import TYPES

    page = (Path(__file__).parents[3] / "docs/card-rails.md").read_text()
    assert stripe.api_version in page
    assert [kind for kind in TYPES if f"`{kind}`" not in page] == []
