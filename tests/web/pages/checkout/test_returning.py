"""A returning consumer pays with one click in the browser that bought before. Any other browser learns nothing."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any
from uuid import UUID

import httpx
import pytest

from cuota.core.plan.card import PlanCard
from cuota.db.checkout.remembered import Remembered, remember
from cuota.rails.card.protocol import CardAnswer, ChargeRequest, declined
from cuota.rails.card.sandbox import SandboxCardRail
from support.makers import Merchant, Running
from support.pages.beside import beside
from support.pages.returning import again, bought
from support.pages.visitor import CARD_DECLINED, STEPS, Visitor, charges
from support.phones import phone_number
from support.rails.parts import rail_parts
from support.signed import started

QUARTER = "Pay $25.00 today with Visa •••• 4242"
DAYS_90 = 90 * 24 * 3600


def token_given(answers: list[httpx.Response]) -> Any:
    """Return the cookie of the last answer that set a cookie."""
    texts = [
        text for answer in answers for text in answer.headers.get_list("set-cookie") if "remembered=" in text
    ]
    return SimpleCookie(texts[-1])


async def test_the_next_checkout_at_any_shop_is_paid_with_one_press(
    service: Running, merchant: Merchant, auto_merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    order, page = await again(auto_merchant, visitor)
    assert QUARTER in page.text
    assert "By pressing the button you accept this payment agreement." in page.text
    assert "Not you?" in page.text
    assert page.link("Use another card").endswith("?step=phone")
    shown_hash = page.form("again")[1]["agreement_hash"]
    page = await visitor.send("again")
    assert page.outcome == "approved"
    assert (await auto_merchant.read(order))["orderStatus"] == "Approved"
    assert await charges(service, order) == [(2500, True, None)]
    sql = """SELECT p.agreement_hash, d.approved, p.payer ->> 'surname' AS surname FROM plans p
        JOIN decisions d USING (merchant_id, order_id) WHERE order_id = $1"""
    row = await service.context.pool.fetchrow(sql, UUID(order["orderId"]))
    assert row is not None
    assert tuple(row) == (shown_hash, True, "Rivera")


async def test_the_page_shows_the_card_and_no_other_data_of_the_person(
    merchant: Merchant, visitor: Visitor
) -> None:
    phone = await bought(merchant, visitor)
    _, page = await again(merchant, visitor)
    for secret in (phone, "jordan@mail.example", "1480 Mission", "94103", "4242 4242"):
        assert secret not in page.answer.text


async def test_a_browser_with_only_the_link_sees_the_same_page_as_any_stranger(
    merchant: Merchant, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    await bought(merchant, visitor)
    order, _ = await again(merchant, visitor)
    page = await visit().open(order["redirectUrl"])
    assert page.form("phone")
    for secret in ("Visa", "4242", "Rivera", "Welcome back"):
        assert secret not in page.answer.text


async def test_scripts_cannot_read_the_cookie_and_it_lasts_90_days_and_the_database_has_only_its_hash(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    cookie = token_given(visitor.answers)["remembered"]
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "lax", str(DAYS_90))
    vault = service.context.vault
    sql = "SELECT to_jsonb(b)::text AS row FROM remembered_browsers b WHERE token_hash = $1"
    row = await service.context.pool.fetchrow(sql, vault.hash("remembered-browser", cookie.value))
    assert row is not None
    assert cookie.value not in row["row"]


async def test_on_https_the_cookie_is_secure_and_bound_to_the_host(
    service: Running, merchant: Merchant
) -> None:
    https = replace(service.context.settings, public_url="https://pay.example")
    secure = beside(service.context, service.clock, settings=https)
    async with secure.client() as http:
        visitor = Visitor(http)
        order = await merchant.create()
        order["redirectUrl"] = f"https://pay.example{httpx.URL(order['redirectUrl']).raw_path.decode()}"
        assert (await visitor.buy(order, phone=phone_number())).outcome == "approved"
    cookie = token_given(visitor.answers)["__Host-remembered"]
    assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")


async def test_each_purchase_sets_a_new_token_and_the_previous_one_is_refused(
    merchant: Merchant, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    await bought(merchant, visitor)
    first = visitor.http.cookies["remembered"]
    await again(merchant, visitor)
    await visitor.send("again")
    assert visitor.http.cookies["remembered"] != first
    _, page = await again(merchant, visit(cookies={"remembered": first}))
    assert page.form("phone")


async def test_after_90_days_the_browser_is_not_recognized(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    token = service.context.vault.hash("remembered-browser", visitor.http.cookies["remembered"])
    # Access uses the real clock, which no test can move. So the test stores the browser's access as expired.
    pool, sql = service.context.pool, "DELETE FROM remembered_browsers WHERE token_hash = $1 RETURNING *"
    row = await pool.fetchrow(sql, token)
    assert row is not None
    assert row["ends_at"] - row["created_at"] == timedelta(days=90)
    browser = Remembered(row["consumer_id"], row["merchant_id"], row["order_id"])
    await remember(pool, token, browser, row["created_at"], row["created_at"])
    _, page = await again(merchant, visitor)
    assert page.form("phone")


async def test_not_you_also_invalidates_a_copied_cookie(
    merchant: Merchant, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    await bought(merchant, visitor)
    kept = visitor.http.cookies["remembered"]
    await again(merchant, visitor)
    page = await visitor.send("forget")
    assert page.form("phone")
    assert "remembered" not in visitor.http.cookies
    _, page = await again(merchant, visit(cookies={"remembered": kept}))
    assert page.form("phone")


@pytest.mark.parametrize("token", ["A" * 43, "x", "", "%00", "x" * 4000])
async def test_a_forged_token_is_refused(
    merchant: Merchant, visit: Callable[..., Visitor], token: str
) -> None:
    _, page = await again(merchant, visit(cookies={"remembered": token}))
    assert (page.status, bool(page.form("phone"))) == (200, True)


async def test_with_another_card_the_checkout_has_all_its_steps(merchant: Merchant, visitor: Visitor) -> None:
    phone = await bought(merchant, visitor)
    order, page = await again(merchant, visitor)
    page = await visitor.open(page.link("Use another card"))
    assert page.form("phone")[1]["phone"] == ""
    assert (await visitor.buy(order, phone=phone)).outcome == "approved"


async def test_an_order_with_another_number_does_not_offer_this_card(
    merchant: Merchant, visitor: Visitor
) -> None:
    phone = await bought(merchant, visitor)
    _, page = await again(merchant, visitor, consumer={"phoneNumber": "2125550199"})
    assert page.form("phone")
    _, page = await again(merchant, visitor, consumer={"phoneNumber": phone})
    assert QUARTER in page.text


async def test_an_agreement_that_was_not_the_one_shown_charges_nothing(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    order, _ = await again(merchant, visitor)
    page = await visitor.send("again", agreement_hash="0" * 64)
    assert (page.status, "Something in the agreement has changed" in page.text) == (400, True)
    assert QUARTER in page.text
    assert await charges(service, order) == []


async def test_a_token_that_was_revoked_after_the_page_was_shown_charges_nothing(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    order, page = await again(merchant, visitor)
    action, held = page.form("again")
    await visitor.send("forget")
    answer = await visitor.http.post(action, data=held)
    assert (answer.status_code, "is no longer remembered in this browser" in answer.text) == (400, True)
    assert await charges(service, order) == []


async def test_five_presses_at_once_charge_once(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    order, page = await again(merchant, visitor)
    action, held = page.form("again")
    await asyncio.gather(*(visitor.http.post(action, data=held) for _ in range(5)))
    assert await charges(service, order) == [(2500, True, None)]


class PaysOnce(SandboxCardRail):
    """A network on which a card has no money left when it is charged again."""

    asked = 0

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        self.asked += 1
        return await super().charge(asked) if self.asked == 1 else declined("no_funds")


async def test_a_declined_card_is_reported_and_the_page_asks_for_another_one(
    service: Running, merchant: Merchant
) -> None:
    other = beside(service.context, service.clock, card=PaysOnce(*rail_parts(service.context.pool)))
    async with other.client() as http:
        visitor = Visitor(http)
        await bought(merchant, visitor)
        await again(merchant, visitor)
        page = await visitor.send("again")
        assert "was declined by its bank. Try another card" in page.text
        assert page.form("pay")


async def test_after_a_card_change_on_the_account_page_the_new_card_is_offered(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    row = await service.context.pool.fetchrow(
        "SELECT order_id FROM remembered_browsers WHERE token_hash = $1",
        service.context.vault.hash("remembered-browser", visitor.http.cookies["remembered"]),
    )
    assert row is not None
    card = PlanCard("card_other", "mastercard", "4444")
    sql = "UPDATE plans SET card_token = $2, card_brand = $3, card_last4 = $4 WHERE order_id = $1"
    await service.context.pool.fetchrow(sql, row["order_id"], card.token, card.brand, card.last4)
    _, page = await again(merchant, visitor)
    assert "Pay $25.00 today with Mastercard •••• 4444" in page.text


async def test_after_a_failed_first_purchase_the_browser_is_not_remembered(
    merchant: Merchant, visitor: Visitor
) -> None:
    await visitor.buy(await merchant.create(), card_number=CARD_DECLINED)
    assert "remembered" not in visitor.http.cookies


async def test_a_frame_without_cookies_has_all_steps_and_a_popup_offers_the_card(
    merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    order = await started(merchant)
    framed = str(order["checkoutUrl"]).replace("display=popup", "display=iframe")
    kept = visitor.http.cookies["remembered"]
    visitor.http.headers["sec-fetch-dest"] = "iframe"
    # This holds even if a browser sends the cookie into a frame.
    page = await visitor.open(framed)
    assert page.form("phone")
    for step in STEPS:
        page = await visitor.send(step)
    assert page.outcome == "approved"
    assert visitor.http.cookies["remembered"] == kept
    del visitor.http.headers["sec-fetch-dest"]
    order = await started(merchant, merchantReference=secrets.token_hex(8))
    page = await visitor.open(str(order["checkoutUrl"]))
    assert "today with Visa •••• 4242" in page.text
    assert (await visitor.send("again")).outcome == "approved"


async def test_an_express_order_still_asks_for_its_shipping_address(
    merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    order = await started(merchant, checkoutFlow="express", capture=False)
    assert (await visitor.open(str(order["checkoutUrl"]))).form("phone")
