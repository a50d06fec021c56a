"""The stand-in for Stripe in a real browser: a plan from its first to its last payment, with no digit of a card in our
processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Page, Request, expect

from cuota import config
from cuota.db.verify.recalculate import verify
from cuota.flows.order.return_money import return_money
from cuota.flows.plan.apply_card_events import apply_card_events
from cuota.work.due_orders import settle_due_orders
from support.browser.shopper import DETAILS, fill, press
from support.browser.tabs import OpenTab
from support.flows.due import settle_all_due
from support.makers import Merchant, Running, make_merchant
from support.ports import free_port
from support.running import running
from support.stripe.stand_in import StandIn

pytestmark = pytest.mark.browser
PAYS, DECLINED, ALWAYS, NO_FUNDS, LOST = (
    "4242424242424242", "4000000000000002", "4000002760003184", "4000000000009995", "4000000000009987",
)  # fmt: skip


@dataclass
class StripeShop:
    """A service that charges cards with Stripe, a merchant, and everything that the browser sent to the service."""

    service: Running
    merchant: Merchant
    stand_in: StandIn
    where: dict[str, Any]
    sent: list[str]

    async def until_due(self, order_id: UUID, number: int) -> None:
        """Move the clock to a payment's time, and run the worker's jobs."""
        sql = "SELECT charge_at FROM installments WHERE order_id = $1 AND number = $2"
        row = await self.service.context.pool.fetchrow(sql, order_id, number)
        assert row is not None
        if row["charge_at"] is not None:
            clock = self.service.clock
            clock.ahead += max(row["charge_at"] - clock.now(), timedelta()) + timedelta(seconds=1)
        await settle_all_due(self.service.context)

    async def charges(self, order_id: UUID) -> list[tuple[int, str, str | None]]:
        sql = "SELECT installment, state, reason FROM charges WHERE order_id = $1 ORDER BY created_at"
        return [tuple(row) for row in await self.service.context.pool.fetch(sql, order_id)]

    async def texts(self) -> str:
        """Return every row of every table of the service's database."""
        found = []
        tables = await self.service.context.pool.fetch(
            "SELECT schemaname || '.' || tablename AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            " AND has_table_privilege(schemaname || '.' || tablename, 'SELECT')"
        )
        for table in tables:
            found += [
                row["t"]
                for row in await self.service.context.pool.fetch(
                    f"SELECT t::text AS t FROM {table['name']} t"
                )
            ]
        return "\n".join(found)


@pytest.fixture
async def shop(
    settings: config.Settings, own_database: dict[str, Any], stand_in: StandIn
) -> AsyncIterator[StripeShop]:
    url = f"http://127.0.0.1:{free_port()}"
    given = replace(
        settings, public_url=url, auth_url=url, audience=url, card_rail="stripe", stripe=stand_in.stripe_keys
    )
    async with (
        running(given, own_database) as service,
        make_merchant(service, defer_funds_capture=False) as merchant,
    ):
        yield StripeShop(service, merchant, stand_in, own_database, [])


async def at_card(open_tab: OpenTab, shop: StripeShop) -> tuple[Page, UUID]:
    """A browser at the last step of a checkout. Its requests to the service are recorded."""
    home = f"{shop.service.settings.public_url}/docs"
    back = {"redirectConfirmUrl": home, "redirectCancelUrl": home}
    order = await shop.merchant.create("100.00", merchant=back)
    page = await open_tab()

    def keep(request: Request) -> None:
        if request.url.startswith(shop.service.settings.public_url):
            shop.sent.append(f"{request.url} {request.post_data or ''}")

    page.on("request", keep)
    await page.goto(order["redirectUrl"])
    await fill(page, phone="(212) 555-0142")
    await fill(page, code="123456")
    await fill(page, **DETAILS)
    return page, UUID(order["orderId"])


async def pay(page: Page, number: str) -> None:
    await enter(page, number)
    await page.get_by_label("I have read and accept the payment agreement").check()
    await press(page, page.get_by_role("button", name="Pay $"))


async def enter(page: Page, number: str) -> None:
    """Fill in the processor's fields."""
    for name, text in (
        ("number", number),
        ("exp_month", "12"),
        ("exp_year", "39"),
        ("cvc", "737"),
        ("postal_code", "94103"),
    ):
        await page.locator(f"[data-stand-in={name}]").fill(text)


async def status(shop: StripeShop, order_id: UUID) -> str:
    return str((await shop.merchant.read({"orderId": str(order_id)}))["orderStatus"])


async def test_a_plan_is_paid_collected_three_times_and_refunded_and_no_digit_reaches_the_service(
    open_tab: OpenTab, shop: StripeShop, caplog: pytest.LogCaptureFixture
) -> None:
    page, order_id = await at_card(open_tab, shop)
    await pay(page, PAYS)
    await page.wait_for_url("**/docs?*")
    assert await status(shop, order_id) == "Approved"
    for number in (2, 3, 4):
        await shop.until_due(order_id, number)
    assert await shop.charges(order_id) == [(number, "succeeded", None) for number in (1, 2, 3, 4)]
    refunded = await shop.merchant.move({"orderId": str(order_id)}, "refund", "100.00", "all of it")
    assert refunded.status_code == 200, refunded.text
    await return_money(shop.service.context)
    sql = "SELECT state, count(*)::int AS n, sum(amount)::int AS cents FROM card_refunds WHERE order_id = $1 GROUP BY 1"
    assert [tuple(row) for row in await shop.service.context.pool.fetch(sql, order_id)] == [
        ("succeeded", 4, 10000)
    ]
    assert (await verify(shop.service.context.pool)).disagreements == []
    everywhere = "\n".join([*shop.sent, caplog.text, await shop.texts()])
    assert "card_token=pm_" in everywhere
    for written in (PAYS, "4242 4242 4242 4242", "4242424242"):
        assert written not in everywhere
    secrets = shop.stand_in.stripe_keys
    assert secrets.secret not in everywhere
    assert secrets.webhook_secret not in everywhere


async def test_a_declined_card_is_reported_and_another_one_pays(open_tab: OpenTab, shop: StripeShop) -> None:
    page, order_id = await at_card(open_tab, shop)
    await pay(page, DECLINED)
    await expect(page.get_by_role("alert").first).to_be_visible()
    assert await status(shop, order_id) == "Created"
    await pay(page, PAYS)
    await page.wait_for_url("**/docs?*")


async def test_a_card_with_a_hard_decline_is_refused_and_another_one_pays(
    open_tab: OpenTab, shop: StripeShop
) -> None:
    page, order_id = await at_card(open_tab, shop)
    await pay(page, LOST)
    await expect(page.get_by_role("alert").first).to_contain_text("was declined by its bank")
    await pay(page, LOST)
    await expect(page.get_by_role("alert").first).to_contain_text("This card can no longer be used")
    assert await shop.charges(order_id) == [
        (1, "failed", "card_lost")
    ]  # the second time, Stripe got no request
    await pay(page, PAYS)
    await page.wait_for_url("**/docs?*")
    assert (await shop.charges(order_id))[1:] == [(1, "succeeded", None)]


@pytest.mark.parametrize("passed", [True, False], ids=["passed", "failed"])
async def test_a_confirmation_at_the_bank_succeeds_or_fails(
    open_tab: OpenTab, shop: StripeShop, *, passed: bool
) -> None:
    page, order_id = await at_card(open_tab, shop)
    await pay(page, ALWAYS)
    await page.wait_for_url(f"{shop.stand_in.stripe_keys.api_url}/bank/*")
    name = "Complete authentication" if passed else "Fail authentication"
    await press(page, page.get_by_role("button", name=name))
    if passed:
        await page.wait_for_url("**/docs?*")
        assert await shop.charges(order_id) == [(1, "succeeded", None)]
    else:
        await expect(page.get_by_text("was declined by its bank")).to_be_visible()
        assert (await shop.charges(order_id))[0][1] == "failed"
        assert await status(shop, order_id) == "Created"


async def test_an_abandoned_confirmation_ends_after_twenty_minutes(
    open_tab: OpenTab, shop: StripeShop
) -> None:
    page, order_id = await at_card(open_tab, shop)
    await pay(page, ALWAYS)
    await page.wait_for_url(f"{shop.stand_in.stripe_keys.api_url}/bank/*")
    async with shop.service.clock.moved(seconds=21 * 60):
        await settle_due_orders(shop.service.context)
    assert (await shop.charges(order_id))[0][:2] == (1, "failed")
    assert await status(shop, order_id) == "Created"


async def test_a_dispute_and_a_renewed_card_arrive_as_signed_events(
    open_tab: OpenTab, shop: StripeShop
) -> None:
    page, order_id = await at_card(open_tab, shop)
    await pay(page, PAYS)
    await page.wait_for_url("**/docs?*")
    pool, ledger = shop.service.context.pool, shop.stand_in.ledger
    row = await pool.fetchrow("SELECT card_token FROM charges WHERE order_id = $1", order_id)
    assert row is not None
    customer, _, method_id = row["card_token"].removeprefix("stripe:").partition("/")
    _, listed = await shop.stand_in.intents.listed({"customer": customer})
    (intent,) = [each for each in listed["data"] if each["metadata"].get("order_id") == str(order_id)]
    ledger.untold.clear()
    ledger.happened(
        "charge.dispute.created",
        {
            "id": "dp_1", "object": "dispute", "amount": 2500, "reason": "fraudulent", "status": "needs_response",
            "metadata": {}, "payment_intent": intent["id"],
        },
    )  # fmt: skip
    ledger.happened(
        "payment_method.automatically_updated",
        {
            "id": method_id, "object": "payment_method", "customer": customer, "metadata": intent["metadata"],
            "card": {"brand": "visa", "last4": "4444", "fingerprint": "f"},
        },
    )  # fmt: skip
    for _ in range(2):
        ledger.untold += ledger.events[-2:] if not ledger.untold else []
        assert set(await shop.stand_in.deliver(f"{shop.service.settings.public_url}/rails/card/events")) == {
            200
        }
    await apply_card_events(shop.service.context)
    sql = "SELECT kind, amount, reference, try_at FROM card_events WHERE order_id = $1 ORDER BY kind"
    assert [tuple(each) for each in await pool.fetch(sql, order_id)] == [
        ("card.updated", None, None, None), ("dispute.opened", 2500, "dp_1", None),
    ]  # fmt: skip
    plan = await pool.fetchrow("SELECT card_last4, card_token FROM plans WHERE order_id = $1", order_id)
    assert plan is not None
    assert tuple(plan) == ("4444", row["card_token"])


async def test_a_card_that_is_declined_later_is_retried_on_its_day(
    open_tab: OpenTab, shop: StripeShop
) -> None:
    page, order_id = await at_card(open_tab, shop)
    await pay(page, PAYS)
    await page.wait_for_url("**/docs?*")
    shop.stand_in.ledger.numbers[await method_of(shop, order_id)] = NO_FUNDS
    await shop.until_due(order_id, 2)
    assert (await shop.charges(order_id))[1] == (2, "failed", "insufficient_funds")
    shop.stand_in.ledger.numbers[await method_of(shop, order_id)] = PAYS
    await shop.until_due(order_id, 2)
    assert (await shop.charges(order_id))[2] == (2, "succeeded", None)


async def method_of(shop: StripeShop, order_id: UUID) -> str:
    sql = "SELECT card_token FROM charges WHERE order_id = $1 AND installment = 1"
    row = await shop.service.context.pool.fetchrow(sql, order_id)
    assert row is not None
    return str(row["card_token"]).rpartition("/")[2]
