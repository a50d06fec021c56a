"""A consumer is erased while they press the button: either the purchase is first, or nothing is charged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from typing import Any
from uuid import UUID

import httpx
import pytest

from cuota.core.checkout.card import read_card
from cuota.core.privacy.erasure import Forgotten
from cuota.core.sandbox import DECLINED_SURNAME
from cuota.db.checkout.loaded import Checkout
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.identify_consumer import give_details
from cuota.flows.checkout.recognize_consumer import pay_again
from cuota.flows.checkout.remember_browser import remember_browser
from cuota.flows.checkout.take_step import Problem, details_hash, open_checkout, propose
from cuota.flows.privacy.erase_consumer import Erasure, erase_consumer
from cuota.rails.card.protocol import Card, CardAnswer, CardHolder, ChargeRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.web.app import make_app
from cuota.web.pages.checkout import session as pages
from support.card import BACK, pay
from support.db.locks import count_waiting
from support.flows.people import PERSON, PHONE, PREFILL, bought, paid_off, words_left
from support.makers import checkout, read_checkout
from support.own_service import InProcess, Own
from support.rails.parts import rail_parts

CARD = read_card("4242 4242 4242 4242", "12/39", "123", date(2030, 1, 1))


async def waiting(own: Own, most: int) -> None:
    """Wait until this many sessions wait for a lock."""
    async with own.owner() as owner:
        while True:
            if await count_waiting(owner) >= most:
                return
            await asyncio.sleep(0.01)


def sessions_of(own: Own) -> str:
    """Return SQL for the checkout sessions of one merchant."""
    return f"checkout_sessions WHERE merchant_id = '{own.auto_merchant.merchant_id}'"


@asynccontextmanager
async def erasing(own: Own, rows: str) -> AsyncIterator[asyncio.Task[Erasure]]:
    """Inside the block, an erasure has locked the consumer and waits for one of these rows."""
    async with own.owner() as owner:
        async with owner.transaction():
            await owner.fetch(f"SELECT 1 FROM {rows} AND consumer_id IS NOT NULL FOR UPDATE")
            task = asyncio.create_task(erase_consumer(own.context, PHONE, dry_run=False))
            await waiting(own, 1)
            yield task
        await task


async def nothing_of_it(own: Own, order: dict[str, Any]) -> None:
    """Check that no card was charged, that the consumer is erased, and that the ledger agrees."""
    row = await own.context.pool.fetchrow(
        """SELECT (SELECT count(*) FROM charges WHERE order_id = $1) AS charges,
            (SELECT count(*) FROM plans WHERE order_id = $1) AS plans""",
        UUID(order["orderId"]),
    )
    assert row is not None
    assert tuple(row) == (0, 0)
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Created"
    assert await words_left(own) == []
    assert (await verify(own.context.pool)).disagreements == []


async def at_the_pay_step(own: Own) -> tuple[dict[str, Any], Checkout, str, str]:
    """An order, the checkout of one browser, the browser's secret, and the hash of the agreement."""
    order = await own.auto_merchant.create("100.00", **PREFILL)
    seen, secret = await checkout(own.service, own.auto_merchant.merchant_id, order, PERSON, PHONE)
    return order, seen, secret, propose(own.context, seen, PERSON).agreement.hash


async def test_a_purchase_that_waits_for_an_erasure_is_refused_and_charges_nothing(own: Own) -> None:
    order, seen, _, agreed = await at_the_pay_step(own)
    async with erasing(own, sessions_of(own)) as erasure:
        paying = asyncio.create_task(pay(own.context, seen, CARD, agreed))
        await waiting(own, 2)
    assert (await erasure).done
    with pytest.raises(Forgotten):
        await paying
    await nothing_of_it(own, order)


async def test_an_order_that_is_declined_during_an_erasure_stores_no_data_of_the_person(
    own: Own,
) -> None:
    order = await own.auto_merchant.create("100.00", **PREFILL)
    merchant_id, declined = own.auto_merchant.merchant_id, replace(PERSON, surname=DECLINED_SURNAME)
    seen, _ = await checkout(own.service, merchant_id, order, declined, PHONE)
    agreed = propose(own.context, seen, declined).agreement.hash
    async with erasing(own, sessions_of(own)) as erasure:
        paying = asyncio.create_task(pay(own.context, seen, CARD, agreed))
        # The payment must wait for the erasure. If it does not wait, it saves its decision too early, and the test fails.
        both_wait = asyncio.create_task(waiting(own, 2))
        await asyncio.wait({paying, both_wait}, return_when=asyncio.FIRST_COMPLETED)
        both_wait.cancel()
    assert (await erasure).done
    with pytest.raises(Forgotten):
        await paying
    await nothing_of_it(own, order)
    for table in ("decisions", "signals", "messages"):
        rows = await own.context.pool.fetch(
            f"SELECT FROM {table} WHERE order_id = $1", UUID(order["orderId"])
        )
        assert rows == [], table


async def test_details_that_are_entered_during_an_erasure_are_not_stored(own: Own) -> None:
    order, seen, _, _ = await at_the_pay_step(own)
    async with erasing(own, sessions_of(own)) as erasure:
        giving = asyncio.create_task(give_details(own.context, seen, PERSON))
        await waiting(own, 2)
    assert (await erasure).done
    with pytest.raises(Forgotten):
        await giving
    await nothing_of_it(own, order)


class Meanwhile(SandboxCardRail):
    """A card network that tries to erase the consumer before it answers."""

    def __init__(self, own: Own, during: str) -> None:
        super().__init__(*rail_parts(own.context.pool))
        self.own, self.during = own, during
        self.erasure: Erasure | None = None

    async def _erase(self, at: str) -> None:
        if at == self.during:
            self.erasure = await erase_consumer(self.own.context, PHONE, dry_run=False)

    async def keep(self, token: str, holder: CardHolder) -> Card:
        await self._erase("keep")
        return await super().keep(token, holder)

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        await self._erase("charge")
        return await super().charge(asked)


async def test_the_page_of_an_erased_purchase_tells_the_person_to_start_again_at_the_shop(own: Own) -> None:
    order, seen, secret, agreed = await at_the_pay_step(own)
    rail = Meanwhile(own, "keep")
    context = replace(own.context, rails=replace(own.context.rails, card=CardRails(rail)))
    service = InProcess(own.service.settings, context, own.service.clock, make_app(context))
    address = pages.base_path(seen.order.merchant_id, seen.order.order_id)
    form = {
        "csrf": context.vault.hash("csrf", secret).hex(), "agree": "yes", "agreement_hash": agreed,
        "details_hash": details_hash(seen),
        "card_number": "4242 4242 4242 4242", "card_expiry": "12/39", "card_cvc": "737",
    }  # fmt: skip
    cookies = {f"checkout-{order['orderId']}": secret}
    async with service.client(cookies=cookies) as http:
        answer: httpx.Response = await http.post(f"{address}/pay", data=form)
    assert rail.erasure is not None
    assert rail.erasure.done
    assert answer.status_code == 404
    assert "Start again from the shop" in answer.text
    assert "Nothing was charged." in answer.text
    await nothing_of_it(own, order)


async def test_an_erasure_after_a_charge_began_is_refused_and_the_purchase_continues(own: Own) -> None:
    order, seen, _, agreed = await at_the_pay_step(own)
    rail = Meanwhile(own, "charge")
    context = replace(own.context, rails=replace(own.context.rails, card=CardRails(rail)))
    await pay(context, seen, CARD, agreed)
    assert rail.erasure is not None
    assert not rail.erasure.done
    assert rail.erasure.reasons
    record = await own.auto_merchant.read(order)
    assert (record["orderStatus"], record["shipping"]["city"]) == ("Approved", "Xenia")


async def link_followed(own: Own, order: dict[str, Any]) -> Checkout:
    """A browser that has only opened the link."""
    opened = await open_checkout(own.context, own.auto_merchant.merchant_id, UUID(order["token"]))
    assert opened is not None
    return await read_checkout(own.context, own.auto_merchant.merchant_id, *opened)


async def test_a_single_press_that_waits_for_an_erasure_is_refused_and_stores_no_person_in_the_session(
    own: Own,
) -> None:
    first = await bought(own)
    await paid_off(own)
    consumer_id, merchant_id = own.context.vault.consumer_id(PHONE), own.auto_merchant.merchant_id
    token = await remember_browser(own.context, consumer_id, merchant_id, UUID(first["orderId"]), None)
    order = await own.auto_merchant.create("60.00")
    opened = await link_followed(own, order)
    agreed = propose(own.context, opened, PERSON).agreement.hash
    async with erasing(own, "remembered_browsers WHERE true") as erasure:
        paying = asyncio.create_task(pay_again(own.context, opened, token, agreed, BACK))
        await waiting(own, 2)
    assert (await erasure).done
    with pytest.raises(Problem, match="is no longer remembered in this browser"):
        await paying
    await nothing_of_it(own, order)
