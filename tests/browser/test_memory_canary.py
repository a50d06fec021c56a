"""A card that is typed into Stripe's fields is nowhere in the memory of the service and of its database."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import psutil
import pytest
from playwright.async_api import Page

from support.browser.shopper import DETAILS, fill, press
from support.browser.tabs import OpenTab
from support.commands import Cuota, on_a_folder
from support.memory_dump import family, holders
from support.serving import ORDER, serving
from support.stripe.stand_in import StandIn

pytestmark = pytest.mark.browser
# A valid number that is no test card of ours, so it can only come from the browser.
CANARY = "4539578763621486"
CVC = "917"
EMAIL = "canary.4471@example.com"


def forms_of(digits: str) -> dict[str, bytes]:
    """Return the texts that reveal a card, in the encodings that programs use."""
    groups = [digits[start : start + 4] for start in range(0, 16, 4)]
    texts = {
        "the digits": digits,
        "the digits with spaces": " ".join(groups),
        "the digits with dashes": "-".join(groups),
        "the digits in a form": "+".join(groups),
        "the first twelve": digits[:12],
        "the last ten": digits[-10:],
    }
    found = {name: text.encode() for name, text in texts.items()}
    return found | {f"{name} (UTF-16)": text.encode("utf-16-le") for name, text in texts.items()}


@pytest.fixture
async def service(stand_in: StandIn) -> AsyncIterator[tuple[Cuota, str, int]]:
    """Run a service in separate processes that charges cards with the stand-in. Yield the command, the address and the
    process."""
    keys = stand_in.stripe_keys
    settings = {
        "CUOTA_CARD_RAIL": "stripe",
        "CUOTA_STRIPE_SECRET_KEY": keys.secret,
        "CUOTA_STRIPE_PUBLISHABLE_KEY": keys.publishable,
        "CUOTA_STRIPE_WEBHOOK_SECRET": keys.webhook_secret,
        "CUOTA_STRIPE_API_URL": keys.api_url,
    }
    with on_a_folder() as cuota, serving(cuota, "--workers", "2", **settings) as (ready, process):
        yield cuota, str(ready["url"]), process.pid


def database_of(cuota: Cuota) -> list[psutil.Process]:
    """Return the process ids of the database server."""
    first = (cuota.data / "pg" / "postmaster.pid").read_text().split()[0]
    return family(int(first))


async def test_no_process_of_the_service_or_its_database_has_the_card_in_its_memory(
    open_tab: OpenTab, service: tuple[Cuota, str, int], stand_in: StandIn
) -> None:
    cuota, url, pid = service
    order = an_order(cuota, url)
    page = await open_tab()
    await page.goto(order["redirectUrl"])
    await fill(page, phone="(212) 555-0142")
    await fill(page, code="123456")
    await fill(page, **{**DETAILS, "email": EMAIL})
    await enter_card(page)
    await page.wait_for_url("**/docs?*")
    assert CANARY in stand_in.ledger.numbers.values(), "the processor got the card"

    processes = [*family(pid), *database_of(cuota)]
    assert len(processes) > 6
    # The same search must find a text that the service certainly has. Otherwise the test would prove nothing.
    control = {"the publishable key": stand_in.stripe_keys.publishable.encode(), "the e-mail": EMAIL.encode()}
    found = holders(processes, {**forms_of(CANARY), **control})
    assert all(found.pop(name) for name in control), "the search does not work"
    assert {name: where for name, where in found.items() if where} == {}


def an_order(cuota: Cuota, url: str) -> dict[str, Any]:
    """Create an order, as a merchant does."""
    made = json.loads(cuota("merchant", "create", "--name", "Canary", "--json").stdout)
    body = {
        "client_id": made["clientId"],
        "client_secret": made["clientSecret"],
        "audience": made["audience"],
        "grant_type": "client_credentials",
    }
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
        token = http.post("/oauth/token", json=body).json()["access_token"]
        back = {"redirectConfirmUrl": f"{url}/docs", "redirectCancelUrl": f"{url}/docs"}
        answer = http.post(
            "/order", json={**ORDER, "merchant": back}, headers={"Authorization": f"Bearer {token}"}
        )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def enter_card(page: Page) -> None:
    """Type the card into the processor's fields, and pay."""
    fields = (
        ("number", CANARY),
        ("exp_month", "12"),
        ("exp_year", "39"),
        ("cvc", CVC),
        ("postal_code", "94103"),
    )
    for name, text in fields:
        await page.locator(f"[data-stand-in={name}]").fill(text)
    await page.get_by_label("I have read and accept the payment agreement").check()
    await press(page, page.get_by_role("button", name="Pay $"))
