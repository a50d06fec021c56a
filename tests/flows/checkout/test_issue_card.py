"""An approved virtual-card order shows its card to one browser for some minutes. Interrupted steps are completed
later."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.refusal import Code, Refused
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.clear_card import clear_card, finish_clearings
from cuota.flows.checkout.issue_card import hide_cards, reveal_card, tell_limits
from cuota.flows.order.capture_order import capture_order
from cuota.flows.order.expire_authorizations import expire_authorization
from cuota.rails.issuing import IssuingRail, VirtualCard
from cuota.rails.unavailable import RailUnavailable
from cuota.run.json_lines import JsonLines
from support.makers import Merchant, checkout, read_checkout
from support.own_service import Own
from support.time.machine import set_clock
from support.virtual_card import everything, opened, paid, virtual_order


async def test_the_page_gets_the_card_the_cardholder_and_the_customer(merchant: Merchant) -> None:
    virtual = await virtual_order(merchant, merchantFeeForPaymentPlan="4.00")
    result = await virtual.reveal()
    assert result is not None
    home = {
        "address1": "1480 Mission Street", "address2": "", "city": "San Francisco", "state": "CA",
        "postalCode": "94103", "country": "US",
    }  # fmt: skip
    names = {"firstName": "Jordan", "lastName": "Rivera"}
    assert set(result["card"]) == {"number", "cvc", "expirationMonth", "expirationYear", "brand"}
    assert result["cardholder"] == {"name": "Jordan Rivera", **names, **home}
    phone = virtual.seen.session.phone
    assert result["customer"] == {**names, "email": "jordan@mail.example", "phoneNumber": phone, **home}
    assert result["orderId"] == virtual.created["orderId"]
    assert float(result["merchantFeeForPaymentPlan"]) == 4.0


async def test_only_the_same_browser_can_fetch_the_card_again_after_a_lost_answer(merchant: Merchant) -> None:
    service, created = merchant.service, await opened(merchant)
    _, secret = await checkout(service, merchant.merchant_id, created)
    virtual = await paid(merchant, created)
    first, *more = await asyncio.gather(*(virtual.reveal() for _ in range(8)))
    assert first is not None
    assert all(result == first for result in more)
    other = await read_checkout(service.context, merchant.merchant_id, virtual.order_id, secret)
    assert other.verified
    assert await reveal_card(service.context, other) is None
    assert await virtual.reveal() == first


async def test_after_its_minutes_the_card_is_not_shown_again_and_the_issuer_deletes_the_number(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual = await virtual_order(merchant)
    card = await virtual.card()
    assert (await virtual.book())["sealed"] is not None
    set_clock(monkeypatch, timedelta(minutes=9, seconds=50))
    await hide_cards(merchant.service.context)
    assert await virtual.card() == card
    set_clock(monkeypatch, timedelta(minutes=10, seconds=10))
    assert await virtual.reveal() is None
    await hide_cards(merchant.service.context)
    assert (await virtual.book())["sealed"] is None
    assert (await virtual.authorize(card, "100.00"))["approved"]


async def test_only_an_approved_virtual_card_order_with_a_valid_authorization_has_a_card(
    merchant: Merchant,
) -> None:
    context = merchant.service.context
    plain = await merchant.create()
    seen, _ = await checkout(merchant.service, merchant.merchant_id, plain)
    assert await reveal_card(context, seen) is None
    virtual = await virtual_order(merchant)
    assert await reveal_card(context, virtual.seen) is None  # the checkout as it was read before the approval
    unproved = await virtual.again()
    unproved = replace(unproved, session=replace(unproved.session, verified_at=None))
    assert await reveal_card(context, unproved) is None
    await merchant.move(virtual.created, "void", "100.00")
    assert await virtual.reveal() is None


class Flaky:
    """The simulator on a bad line: it acts, but the first answers of each call are lost."""

    def __init__(self, rail: IssuingRail) -> None:
        self.rail = rail
        self.lost = {"issue", "reveal", "limit"}

    async def _answer(self, name: str, act: Any) -> Any:
        answer = await act
        if name in self.lost:
            self.lost.remove(name)
            raise RailUnavailable("the answer was lost")
        return answer

    async def issue(self, *given: Any) -> None:
        await self._answer("issue", self.rail.issue(*given))

    async def reveal(self, key: Any) -> VirtualCard | None:
        return await self._answer("reveal", self.rail.reveal(key))

    async def limit(self, *given: Any) -> None:
        await self._answer("limit", self.rail.limit(*given))

    async def hide(self, key: Any) -> None:
        await self.rail.hide(key)


async def test_an_issuer_whose_answers_get_lost_makes_one_card_and_finally_gets_the_new_limit(
    own: Own,
) -> None:
    virtual = await virtual_order(own.merchant)
    rail = own.context.rails.issuing
    assert rail is not None
    context = replace(own.context, rails=replace(own.context.rails, issuing=Flaky(rail)))
    seen = await virtual.again()
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await reveal_card(context, seen)
        assert refused.value.code is Code.UNAVAILABLE
    assert await reveal_card(context, seen) is not None
    assert (await own.context.pool.fetchrow("SELECT count(*) FROM issuing_simulator.cards"))[0] == 1
    await own.merchant.move(virtual.created, "void", "30.00")
    assert await tell_limits(context) == 1
    assert await tell_limits(context) == 0
    async with own.service.clock.moved(minutes=2):
        assert await tell_limits(context) == 1
        assert await tell_limits(context) == 0
    assert (await virtual.book())["spend_limit"] == 7000


async def test_the_end_of_the_authorization_closes_the_card(own: Own) -> None:
    virtual = await virtual_order(own.merchant)
    name = (await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"]
    assert (await virtual.clear(name, "capture", "40.00")).status_code == 200
    async with own.service.clock.moved(days=13, minutes=1):
        await expire_authorization(own.context, own.merchant.merchant_id, virtual.order_id)
        await tell_limits(own.context)
        late = await virtual.clear(name, "capture", "1.00")
    assert (late.status_code, late.json()["code"]) == (422, "capture_exceeds_authorized")
    assert (await virtual.book())["spend_limit"] == 4000
    assert (await verify(own.context.pool)).disagreements == []


class _Dies(BaseException):  # as the end of a process, which no code survives
    pass


class Dying:
    """The card network of a process that dies after a card movement began, or before the movement is recorded as
    applied."""

    def __init__(self, network: Any, at: str) -> None:
        self._network, self._at = network, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    async def begin(self, *given: Any) -> bool:
        begun: bool = await self._network.begin(*given)
        if self._at == "begin":
            raise _Dies
        return begun

    async def done(self, clearing: object) -> None:
        raise _Dies


@pytest.mark.parametrize("by", ["repeat", "worker"])
@pytest.mark.parametrize("at", ["begin", "done"])
async def test_an_interrupted_card_movement_is_completed_by_a_repeated_request_or_by_the_worker(
    own: Own, at: str, by: str
) -> None:
    virtual = await virtual_order(own.merchant)
    name = (await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"]
    network = Dying(own.context.rails.card_network, at)
    dying = replace(own.context, rails=replace(own.context.rails, card_network=network))
    with pytest.raises(_Dies):
        await clear_card(dying, UUID(name), "capture", "ship", 4_000)
    assert ((await virtual.book())["held"], (await virtual.book())["captured"]) == (4_000, 0)
    taken = (await own.merchant.read(virtual.created))["capturedAmount"]
    assert taken == (0 if at == "begin" else 40)
    at_once = await virtual.clear(name, "capture", "40.00", "ship")
    assert (at_once.status_code, at_once.json()["code"]) == (409, "idempotency_in_progress")
    async with own.service.clock.moved(minutes=1):
        if by == "worker":
            assert await finish_clearings(own.context) == 1
            assert (await virtual.book())["captured"] == 4_000
        answer = await virtual.clear(name, "capture", "40.00", "ship")
        assert answer.status_code == 200, answer.text
    assert ((await virtual.book())["held"], (await virtual.book())["captured"]) == (0, 4_000)
    assert (await own.merchant.read(virtual.created))["capturedAmount"] == 40
    assert (await verify(own.context.pool)).disagreements == []


async def test_an_amount_that_the_order_refuses_is_no_longer_held_on_the_card(own: Own) -> None:
    virtual = await virtual_order(own.merchant)
    name = (await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"]
    await capture_order(
        own.context,
        own.merchant.merchant_id,
        virtual.order_id,
        MovementRequest(MovementKind.CAPTURE, "mine", 8_000),
    )
    refused = await virtual.clear(name, "capture", "30.00", "late")
    assert refused.json()["code"] == "capture_exceeds_authorized"
    assert (await virtual.book())["held"] == 0
    assert (await virtual.clear(name, "capture", "20.00", "late")).status_code == 200


@pytest.fixture
def logs() -> AsyncIterator[io.StringIO]:
    """Return every line that the service logs at log level debug, as the server prints them."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda record: not record.name.startswith(("http", "asyncio")))
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    for logger in (root, logging.getLogger("cuota"), logging.getLogger("asyncpg")):
        logger.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)
    for name in ("cuota", "asyncpg"):
        logging.getLogger(name).setLevel(logging.NOTSET)


async def test_the_card_number_and_the_security_code_are_in_no_table_and_in_no_log_line(
    own: Own, logs: io.StringIO
) -> None:
    virtual = await virtual_order(own.merchant)
    card = await virtual.card()
    await virtual.authorize(card, "100.00", cvc="000" if card["cvc"] != "000" else "001")
    await virtual.authorize(card, "100.01")
    name = (await virtual.authorize(card, "100.00"))["authorizationId"]
    await virtual.clear(name, "capture", "60.00")
    number = card["number"].encode()
    forms = [
        number.decode(), number.hex(), base64.b64encode(number).decode().rstrip("=")[:-1],
        hashlib.sha256(number).hexdigest(), hashlib.sha1(number).hexdigest(), hashlib.md5(number).hexdigest(),
        # The encrypted value is JSON. Neither this JSON nor its hexadecimal form, as bytea is printed, may occur.
        json.dumps([card["number"], card["cvc"]]), f'"{card["cvc"]}"'.encode().hex(), number[6:].hex(),
    ]  # fmt: skip
    tables = await everything(own.where)
    assert tables["issuing_simulator.cards"]
    assert logs.getvalue().count("/sandbox/cards/authorize") == 3
    for form in forms:
        assert [table for table, text in tables.items() if form in text] == []
        assert form not in logs.getvalue()
    assert not [table for table, text in tables.items() if f': "{card["cvc"]}"' in text]
