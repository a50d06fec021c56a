"""The shop verifies webhooks, counts each once, and shows them. If a webhook is missing, the shop reads the order from
the provider."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from cuota_demo.records import WebhookEvent
from cuota_demo.settings import SettingsError, ShopSettings
from cuota_demo.store import ShopOperation, Store
from support.demo.shop_browser import Browser, provider
from support.demo.shop_network import ENVIRONMENT, MOVED, Network
from support.demo.told import ENVIRONMENT_TOLD, SIGNING_SECRET, WEBHOOK_SECRET, event, headers, raw

OTHER = "whsec_YW5vdGhlciBzZWNyZXQsIG9mIDMyIGJ5dGVzIHRvby4="


@pytest.fixture
def network() -> Network:
    return Network(provider)


@pytest.fixture
async def shop(tmp_path: Path, network: Network) -> AsyncIterator[Browser]:
    """A shop with both secrets, and a buyer in the checkout of an order."""
    browser = Browser(
        ShopSettings.from_environment({**ENVIRONMENT_TOLD, "SHOP_DATA": str(tmp_path)}), network
    )
    await browser.order()
    yield browser
    await browser.close()


async def tell(shop: Browser, told: dict[str, Any], **how: Any) -> httpx.Response:
    body = raw(told)
    return await shop.http.post("/webhooks", content=body, headers=headers(told, body, **how))


def types(shop: Browser) -> list[str]:
    return [told.type for told in shop.store.told("o-1")]


async def test_every_order_requests_webhooks_at_the_shop_s_own_origin(
    shop: Browser, network: Network
) -> None:
    assert (
        json.loads(network.calls[-1].content)["merchant"]["statusCallbackUrl"] == "http://shop.test/webhooks"
    )


async def test_a_shop_without_the_secrets_reads_orders_from_the_provider_and_accepts_no_webhook(
    settings: ShopSettings,
) -> None:
    network = Network(provider)
    browser = Browser(settings, network)
    await browser.order()
    assert "statusCallbackUrl" not in json.loads(network.calls[-1].content)["merchant"]
    assert (await tell(browser, event(2, "order.approved"))).status_code == 404
    assert "Declined" in (await browser.http.get("/orders/1001")).text
    await browser.close()


async def test_a_webhook_updates_the_shop_s_order_without_a_call_to_the_provider(
    shop: Browser, network: Network
) -> None:
    assert (await tell(shop, event(1, "order.created", "Created"))).status_code == 204
    assert (await tell(shop, event(2, "order.approved"))).status_code == 204
    network.calls.clear()
    page, listed, thanks = [
        (await shop.http.get(path)).text for path in ("/orders/1001", "/orders", "/confirm?order=1001")
    ]
    assert network.calls == []
    assert 'data-status="Approved"' in page
    assert 'data-source="webhook"' in page
    assert page.index("order.approved") < page.index("order.created")
    assert 'data-status="Approved"' in listed
    assert "Thank you" in thanks
    order = shop.store.order(1001)
    assert order is not None
    assert shop.store.cart(order.session).lines == ()


async def test_an_order_without_a_deciding_webhook_is_read_from_the_provider(
    shop: Browser, network: Network
) -> None:
    assert "no webhook has arrived" in (await shop.http.get("/orders/1001")).text
    await tell(shop, event(1, "order.created", "Created"))
    network.answers = [provider]
    network.calls.clear()
    page = (await shop.http.get("/orders/1001")).text
    assert [call.url.path for call in network.calls] == ["/order/o-1"]
    assert 'data-status="Declined"' in page
    assert 'data-source="asked"' in page


async def test_after_a_capture_by_the_shop_the_order_is_read_from_the_provider_until_the_webhook_arrives(
    shop: Browser, network: Network
) -> None:
    await tell(shop, event(2, "order.approved"))
    reference = str(uuid.uuid4())
    shop.store.write_down(ShopOperation(reference, 1001, "capture", 1250))
    network.calls.clear()
    await shop.http.get("/orders/1001")
    assert len(network.calls) == 1
    moved = {**MOVED, "merchantReference": reference}
    record = {"capturedAmount": 12.5, "captures": [moved]}
    await tell(shop, event(3, "capture.completed", amount=12.5, record=record))
    page = (await shop.http.get("/orders/1001")).text
    assert len(network.calls) == 1
    assert 'data-sum="captured">$12.50' in page
    assert shop.store.pending(1001) == []


async def test_the_staff_can_still_read_the_order_from_the_provider(shop: Browser, network: Network) -> None:
    await tell(shop, event(2, "order.approved"))
    network.calls.clear()
    assert 'data-source="asked"' in (await shop.http.get("/orders/1001?ask=1")).text
    assert len(network.calls) == 1


async def test_a_repeated_webhook_is_acknowledged_and_counts_once(shop: Browser) -> None:
    for _ in range(3):
        assert (await tell(shop, event(2, "order.approved"))).status_code == 204
    assert types(shop) == ["order.approved"]


async def test_a_late_webhook_is_shown_and_does_not_change_the_order(shop: Browser) -> None:
    record = {"capturedAmount": 89.95}
    await tell(shop, event(3, "capture.completed", record=record))
    await tell(shop, event(1, "order.created", "Created"))
    page = (await shop.http.get("/orders/1001")).text
    assert types(shop) == ["capture.completed", "order.created"]
    assert 'data-status="Approved"' in page
    assert 'data-sum="captured">$89.95' in page


async def test_a_refused_capture_shows_why(shop: Browser) -> None:
    await tell(shop, event(2, "order.approved"))
    await tell(shop, event(3, "capture.rejected", message="At most <b>89.95</b> can be captured."))
    assert "At most &lt;b&gt;89.95&lt;/b&gt; can be captured." in (await shop.http.get("/orders/1001")).text


@pytest.mark.parametrize(
    "how",
    [
        {"webhook": OTHER},
        {"signing": "another"},
        {"at": int(time.time()) - 3600},
        {"at": int(time.time()) + 3600},
    ],
    ids=["another webhook secret", "another signing secret", "an hour old", "an hour ahead"],
)
async def test_a_webhook_without_a_valid_signature_changes_nothing(
    shop: Browser, how: dict[str, Any]
) -> None:
    assert (await tell(shop, event(2, "order.approved"), **how)).status_code == 401
    assert types(shop) == []


@pytest.mark.parametrize(
    "missing", ["webhook-id", "webhook-timestamp", "webhook-signature", "X-Pay-Signature"]
)
async def test_a_webhook_without_one_of_its_headers_changes_nothing(shop: Browser, missing: str) -> None:
    told = event(2, "order.approved")
    sent = headers(told, raw(told))
    del sent[missing]
    assert (await shop.http.post("/webhooks", content=raw(told), headers=sent)).status_code == 401
    assert types(shop) == []


async def test_a_webhook_with_a_changed_byte_or_a_very_large_body_changes_nothing(shop: Browser) -> None:
    told = event(2, "order.approved")
    sent = headers(told, raw(told))
    changed = raw(told).replace(b"89.95", b"89.96", 1)
    assert (await shop.http.post("/webhooks", content=changed, headers=sent)).status_code == 401
    assert (await shop.http.post("/webhooks", content=b" " * 1_100_000, headers=sent)).status_code == 413
    assert types(shop) == []


async def test_a_test_webhook_is_acknowledged_and_belongs_to_no_order(shop: Browser) -> None:
    nothing = {"orderId": None, "order": None, "sequence": None, "amount": None}
    assert (await tell(shop, {**event(1, "webhook.test"), **nothing})).status_code == 204
    assert types(shop) == []


def test_a_webhook_that_arrives_before_the_answer_to_the_order_s_creation_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store._db.execute(
        "INSERT INTO orders (number, session, checkout_key, lines, shipping, amount, created)"
        " VALUES (1001, 's', 'k', '[]', 0, 8995, '')"
    )
    told = raw(event(1, "order.abandoned", "Abandoned"))
    assert store.keep_told(WebhookEvent.read(json.loads(told, parse_float=Decimal)), told.decode())
    store.created(1001, "o-1", "https://pay.test/c")
    order = store.order(1001)
    assert order is not None
    assert order.status == "Abandoned"
    store.close()


def test_a_folder_of_an_earlier_release_can_be_opened_and_stored_webhooks_survive_a_restart(
    tmp_path: Path,
) -> None:
    earlier = Store(tmp_path)
    earlier._db.execute("DROP TABLE told")
    earlier.close()
    told = json.loads(raw(event(2, "order.approved")), parse_float=Decimal)
    with_webhooks = Store(tmp_path)
    with_webhooks.keep_told(WebhookEvent.read(told), "{}")
    with_webhooks.close()
    again = Store(tmp_path)
    assert [each.event_id for each in again.told("o-1")] == ["evt_1_2"]
    again.close()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"SHOP_WEBHOOK_SECRET": WEBHOOK_SECRET}, "SHOP_SIGNING_SECRET"),
        ({"SHOP_SIGNING_SECRET": SIGNING_SECRET}, "SHOP_WEBHOOK_SECRET"),
        ({"SHOP_SIGNING_SECRET": SIGNING_SECRET, "SHOP_WEBHOOK_SECRET": "whsec_?"}, "SHOP_WEBHOOK_SECRET"),
    ],
)
def test_one_secret_without_the_other_is_refused(given: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        ShopSettings.from_environment({**ENVIRONMENT, **given})


def test_settings_do_not_show_webhook_secrets() -> None:
    shown = repr(ShopSettings.from_environment(ENVIRONMENT_TOLD))
    assert "secret, 32 bytes" not in shown
    assert SIGNING_SECRET not in shown
