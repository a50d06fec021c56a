"""Limits on a consumer's charges and card changes: three an hour, ten a day, also for concurrent requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from uuid import UUID

import pytest

from cuota.core.plan.asking import again_at
from cuota.core.risk.signal import SignalKind
from cuota.db.risk import history
from cuota.db.risk.history import HistoryQuery
from cuota.flows.charge_card import card_hash
from cuota.flows.plan.manage_plan import CHANGED
from cuota.rails.card.protocol import Card, CardHolder
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.unavailable import RailUnavailable
from support.makers import Merchant, Running
from support.pages.beside import beside
from support.pages.consumer import DECLINED, FAILS_LATER, NEW_CARD, Consumer, Plan, new_number
from support.pages.visitor import Page, charges
from support.rails.parts import rail_parts

TOO_OFTEN = "There were too many payments or card changes in a short time. Nothing was charged"
BAD_CARD = {"card_number": DECLINED, "card_expiry": "12/39", "card_cvc": "737"}


async def change(consumer: Consumer, plan: Plan, **card: str) -> Page:
    await consumer.open(f"{plan.path}/card")
    return await consumer.send("card", **(card or NEW_CARD))


async def test_sixty_cards_tried_at_once_on_a_plan_end_after_three(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=FAILS_LATER)
    await consumer.enter()
    async with service.clock.moved(days=15):
        await plan.collected()
        before = len(await charges(service, plan.order))
        action, held = (await consumer.open(f"{plan.path}/card")).form("card")
        data = {**held, **BAD_CARD}
        answers = await asyncio.gather(*(consumer.http.post(action, data=data) for _ in range(60)))
        # With 503, the service was busy and did not start the request.
        assert {answer.status_code for answer in answers} <= {303, 429, 503}
        while (await consumer.http.post(action, data=data)).status_code != 429:
            pass
        assert 1 <= len(await charges(service, plan.order)) - before <= 3
        plan_hash = service.context.vault.hash("asks-plan", plan.order["orderId"])
        sql = "SELECT cardinality(asked) AS asks FROM consumer_asks WHERE value_hash = $1"
        row = await service.context.pool.fetchrow(sql, plan_hash)
        assert row is not None
        assert row["asks"] == 3


async def test_at_the_limit_the_page_says_when_to_try_again_and_then_it_works(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=FAILS_LATER)
    await consumer.enter()
    for _ in range(3):
        assert "declined" in (await consumer.pay(plan)).text
    page = await consumer.pay(plan)
    assert page.status == 429
    assert TOO_OFTEN in page.text
    assert "You can try again at" in page.text
    assert "Scheduled payments are made as planned." in page.text
    assert page.form("pay")
    wait = int(page.answer.headers["retry-after"])
    assert 3000 < wait <= 3600
    async with service.clock.moved(seconds=wait):
        assert "declined" in (await consumer.pay(plan)).text


async def test_charges_and_card_changes_count_together_over_all_plans(
    consumer: Consumer, shop: Merchant
) -> None:
    first, second = await consumer.buy_at(shop), await consumer.buy_at(shop)
    await consumer.enter()
    await consumer.pay(first)
    await change(consumer, second)
    await change(consumer, first)
    page = await change(consumer, second)
    assert (page.status, TOO_OFTEN in page.text) == (429, True)
    assert NEW_CARD["card_number"] not in page.answer.text


async def test_the_scheduled_charge_is_made_even_if_the_consumer_has_reached_the_limit(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    async with service.clock.moved(days=14, hours=20):
        for _ in range(4):
            page = await change(consumer, plan)
        assert page.status == 429
        await plan.collected()
        assert [paid for _, paid, _ in await charges(service, plan.order)] == [True, True]


async def test_an_attempt_that_reached_no_bank_is_not_counted(
    sign_in: Callable[..., Consumer], service: Running, shop: Merchant
) -> None:
    class Silent(SandboxCardRail):
        async def keep(self, token: str, holder: CardHolder) -> Card:
            raise RailUnavailable

    consumer = sign_in(
        at=beside(service.context, service.clock, card=Silent(*rail_parts(service.context.pool)))
    )
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    for _ in range(5):
        assert (await change(consumer, plan)).status == 400


async def test_one_card_is_counted_over_all_consumers(
    sign_in: Callable[..., Consumer], service: Running, shop: Merchant
) -> None:
    card = {"card_number": new_number(), "card_expiry": "12/39", "card_cvc": "737"}
    said = []
    for _ in range(4):
        consumer = sign_in()
        plan = await consumer.buy_at(shop)
        await consumer.enter()
        said.append((await change(consumer, plan, **card)).status)
    assert said == [200, 200, 200, 429]


@pytest.mark.parametrize(
    ("named", "last"), [("198.51.100.7", 429), ("10.9.8.7, 198.51.100.8", 429), ("", 200)]
)
async def test_an_ip_address_from_a_trusted_proxy_is_counted_over_all_consumers(
    sign_in: Callable[..., Consumer], service: Running, shop: Merchant, named: str, last: int
) -> None:
    """A loopback address may stand for all consumers, so it is not counted. A header that a client writes itself is not
    counted either."""
    trusted = (ip_network("127.0.0.0/8"),)
    settings = replace(service.context.settings, trusted_proxies=trusted)
    proxied = beside(service.context, service.clock, settings=settings)
    said = []
    for _ in range(4):
        consumer = sign_in(at=proxied)
        plan = await consumer.buy_at(shop, card=FAILS_LATER)
        consumer.http.headers["X-Forwarded-For"] = f"203.0.113.9, {named}" if named else ""
        await consumer.enter()
        said.append((await consumer.pay(plan)).status)
    assert said == [200, 200, 200, last]


async def test_an_ip_address_with_successful_payments_is_not_limited(
    sign_in: Callable[..., Consumer], service: Running, shop: Merchant
) -> None:
    settings = replace(service.context.settings, trusted_proxies=(ip_network("127.0.0.0/8"),))
    proxied = beside(service.context, service.clock, settings=settings)
    for _ in range(5):
        consumer = sign_in(at=proxied)
        plan = await consumer.buy_at(shop)
        consumer.http.headers["X-Forwarded-For"] = "198.51.100.77"
        await consumer.enter()
        assert "Your payment went through" in (await consumer.pay(plan)).text


async def test_card_changes_without_a_decline_do_not_count_for_an_ip_address(
    sign_in: Callable[..., Consumer], service: Running, shop: Merchant
) -> None:
    """Attempts that end before a charge count too, such as those with an outdated page or at the card's own limit."""
    settings = replace(service.context.settings, trusted_proxies=(ip_network("127.0.0.0/8"),))
    proxied = beside(service.context, service.clock, settings=settings)

    async def visit() -> tuple[Consumer, Plan]:
        consumer = sign_in(at=proxied)
        plan = await consumer.buy_at(shop)
        consumer.http.headers["X-Forwarded-For"] = "198.51.100.78"
        await consumer.enter()
        return consumer, plan

    said = [
        (await change(*await visit(), **{**NEW_CARD, "card_number": new_number()})).status for _ in range(4)
    ]
    assert said == [200] * 4
    for _ in range(4):
        consumer, plan = await visit()
        action, held = (await consumer.open(f"{plan.path}/card")).form("card")
        data = {**held, **NEW_CARD, "card_number": new_number(), "expected": "1"}
        page = await consumer.http.post(action, data=data, follow_redirects=True)
        assert CHANGED in page.text
    said = [(await change(*await visit())).status for _ in range(6)]
    assert said == [200] * 3 + [429] * 3
    consumer, plan = await visit()
    assert "Your payment went through" in (await consumer.pay(plan)).text


async def test_declined_cards_count_toward_an_ip_address_s_limit_for_card_changes_too(
    sign_in: Callable[..., Consumer], service: Running, shop: Merchant
) -> None:
    settings = replace(service.context.settings, trusted_proxies=(ip_network("127.0.0.0/8"),))
    proxied = beside(service.context, service.clock, settings=settings)
    late = []
    for _ in range(4):
        consumer = sign_in(at=proxied)
        late.append((consumer, await consumer.buy_at(shop, card=FAILS_LATER)))
    async with service.clock.moved(days=15):
        said = []
        for consumer, plan in late:
            await plan.collected()
            consumer.http.headers["X-Forwarded-For"] = "198.51.100.79"
            await consumer.enter()
            said.append((await change(consumer, plan, **BAD_CARD)).status)
        assert [status == 429 for status in said] == [False, False, False, True]


async def test_a_consumer_gets_at_most_one_notice_a_day_about_a_changed_card_for_a_plan(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    sql = "SELECT count(*) AS told FROM messages WHERE order_id = $1 AND kind = 'card_changed'"
    order_id = UUID(plan.order["orderId"])

    async def told() -> int:
        row = await service.context.pool.fetchrow(sql, order_id)
        assert row is not None
        return int(row["told"])

    action, held = (await consumer.open(f"{plan.path}/card")).form("card")
    await asyncio.gather(*(consumer.http.post(action, data={**held, **NEW_CARD}) for _ in range(3)))
    assert await told() == 1
    async with service.clock.moved(hours=25):
        await change(consumer, plan)
        assert await told() == 2


async def test_an_attempt_that_did_not_pay_counts_as_velocity_but_a_payment_does_not(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    context = service.context
    card = new_number()
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    hashes = {
        SignalKind.PHONE: context.vault.hash("signal-phone", consumer.phone),
        SignalKind.CARD: card_hash(
            context, SandboxCardRail(*rail_parts(context.pool, context.vault))._fingerprint(card)
        ),
    }
    now = service.clock.now()
    since = dict.fromkeys(SignalKind, now - timedelta(hours=24))
    ids = shop.merchant_id, UUID(plan.order["orderId"]), context.vault.consumer_id(consumer.phone)
    asked = HistoryQuery(*ids, now, since, {kind: value for kind, value in hashes.items() if value})

    async def velocity() -> tuple[int, int]:
        seen = (await history.read(context.pool, asked)).velocity
        return seen.phone, seen.card

    assert await velocity() == (0, 0)
    assert "Your payment went through" in (await consumer.pay(plan)).text
    assert await velocity() == (0, 0)
    await change(consumer, plan, card_number=card, card_expiry="12/39", card_cvc="737")
    assert await velocity() == (1, 1)


@pytest.mark.parametrize(
    ("minutes_ago", "free_in"),
    [
        ([], None), ([1, 2], None), ([1, 2, 3], 57), ([1, 2, 3, 4], 57), ([61, 62, 63], None),
        ([70 * n for n in range(1, 11)], 1440 - 700), ([1, 2, 3, *(70 * n for n in range(1, 8))], 1440 - 490),
    ],
)  # fmt: skip
def test_the_next_attempt_is_allowed_when_the_window_is_over(
    minutes_ago: list[int], free_in: int | None
) -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    at = again_at([now - timedelta(minutes=ago) for ago in minutes_ago], now)
    assert at == (None if free_in is None else now + timedelta(minutes=free_in))
