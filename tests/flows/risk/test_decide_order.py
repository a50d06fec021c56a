"""Each press of the payment button is decided by the facts of that moment, which are stored with the decision."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from cuota import config
from cuota.core.consumer import Profile
from cuota.core.order.order import Order, Status
from cuota.core.risk.adverse import sentences
from cuota.core.risk.decision import decide
from cuota.core.risk.facts import Facts
from cuota.core.risk.model import Model, Weight
from cuota.flows.plan.send_messages import send_messages
from support.db.same_pool import SamePool
from support.makers import ADDRESS, PROFILE, complete
from support.own_service import Own, opened_own
from support.phones import phone_number
from support.signed import started

DECLINED_CARD, ANY_CARD = "4000 0000 0000 0002", "5555 5555 5555 4444"


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Own]:
    """A service with the policy of the release."""
    async with opened_own(replace(settings, policy=None), own_database) as opened:
        yield opened


async def buy(own: Own, amount: str = "100.00", *, order: dict[str, Any] | None = None, **how: Any) -> Order:
    order = order or await own.merchant.create(amount)
    return await complete(own.service, own.merchant.merchant_id, order, **{"phone": phone_number(), **how})


async def last(own: Own) -> dict[str, Any]:
    async with own.owner() as owner:
        row = dict(await owner.fetchrow("SELECT * FROM decisions ORDER BY decided_at DESC LIMIT 1"))
        return {**row, "inputs": json.loads(row["inputs"])}


async def rows(own: Own, sql: str, *values: object) -> list[Any]:
    async with own.owner() as owner:
        return list(await owner.fetch(sql, *values))


async def test_a_decision_is_stored_with_all_facts_needed_to_repeat_it(own: Own) -> None:
    phone = phone_number()
    order = await buy(own, "123.45", phone=phone)
    kept, policy = await last(own), own.context.policy
    again = decide(Facts.of_inputs(kept["inputs"]), policy)
    assert (kept["approved"], kept["reasons"]) == (again.approved, list(again.reasons))
    assert (kept["score"], kept["credit_limit"], kept["policy_version"]) == (
        again.score,
        again.limit,
        policy.version,
    )
    assert kept["order_id"] == order.order_id
    assert kept["consumer_id"] == own.context.vault.consumer_id(phone)
    [stored] = await rows(own, "SELECT text FROM policies WHERE version = $1", policy.version)
    assert policy.version in stored["text"]


async def test_no_name_number_or_address_is_in_a_decision_or_its_signals(own: Own) -> None:
    phone = phone_number()
    await buy(own, phone=phone, card=ANY_CARD)
    kept = json.dumps((await last(own))["inputs"]).casefold()
    hashes = "".join(row["value_hash"].hex() for row in await rows(own, "SELECT value_hash FROM signals"))
    for secret in (
        phone,
        PROFILE.surname,
        PROFILE.given_names,
        PROFILE.email,
        ADDRESS.line1,
        ADDRESS.postcode,
        "5555",
    ):
        assert secret.casefold() not in kept
        assert secret.encode().hex() not in hashes


async def test_phone_card_and_address_are_recognized_on_the_next_order(own: Own) -> None:
    same = {"phone": phone_number(), "card": ANY_CARD}
    for seen in range(3):
        await buy(own, **same)
        assert (await last(own))["inputs"]["velocity"] == {
            "phone": seen,
            "card": seen,
            "address": seen,
            "device": 0,
        }
    elsewhere = replace(PROFILE, address=replace(ADDRESS, line1="9 Other Street"))
    await buy(own, profile=elsewhere)
    assert (await last(own))["inputs"]["velocity"] == {"phone": 0, "card": 0, "address": 0, "device": 0}


async def test_a_second_card_for_the_same_order_does_not_count_as_another_order(own: Own) -> None:
    phone, order = phone_number(), await own.merchant.create()
    assert (await buy(own, order=order, card=DECLINED_CARD, phone=phone)).status is Status.CREATED
    assert (await buy(own, order=order, card=ANY_CARD, phone=phone)).status is Status.APPROVED
    assert (await last(own))["inputs"]["velocity"] == {"phone": 0, "card": 0, "address": 0, "device": 0}
    assert len(await rows(own, "SELECT FROM decisions")) == 2
    assert await rows(own, "SELECT FROM consumer_reservations") == []


async def test_the_sandbox_s_test_cards_are_not_counted_because_everybody_uses_them(own: Own) -> None:
    for _ in range(2):
        await buy(own)
    assert (await last(own))["inputs"]["velocity"]["card"] == 0
    kinds = await rows(own, "SELECT DISTINCT kind FROM signals ORDER BY kind")
    assert [row["kind"] for row in kinds] == ["address", "phone"]


PLACE = {"addressLine1": "1480 Mission Street", "city": "San Francisco", "state": "ca", "postcode": "94103"}
NOTHING = {"order_phone": False, "billing_state": False, "shipping_state": False, "surname": False}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"billing": PLACE, "consumer": {"phoneNumber": "2125550187"}}, {}),
        ({"billing": {**PLACE, "state": "NY"}}, {"billing_state": True}),
        ({"shipping": {**PLACE, "state": "NY"}}, {}),
        ({"consumer": {"phoneNumber": "2125550188"}}, {"order_phone": True}),
    ],
)
async def test_different_data_in_the_order_is_a_mismatch(
    own: Own, body: dict[str, Any], found: dict[str, bool]
) -> None:
    order = await own.merchant.create("100.00", **body)
    await buy(own, order=order, phone="2125550187")
    assert (await last(own))["inputs"]["mismatches"] == {**NOTHING, **found}


async def test_a_surname_that_differs_from_the_last_plan_s_is_a_mismatch(own: Own) -> None:
    phone = phone_number()
    for surname, differs in (
        ("Rivera-Lopez", False),
        ("RIVERA LOPEZ", False),
        ("Okafor", True),
        ("Okafor", False),
    ):
        await buy(own, phone=phone, profile=Profile("Jordan", surname, PROFILE.email, ADDRESS))
        assert (await last(own))["inputs"]["mismatches"]["surname"] is differs


@pytest.mark.parametrize(
    ("surname", "status", "reason"),
    [
        (" declinetest ", Status.DECLINED, "sandbox_decline_requested"),
        ("Approvetest", Status.APPROVED, "sandbox_approve_requested"),
    ],
)
async def test_the_sandbox_s_test_surnames_decide_the_result(
    own: Own, surname: str, status: Status, reason: str
) -> None:
    async with own.owner() as owner:
        await owner.execute("UPDATE merchants SET maximum = 500000")
    order = await buy(own, "4000.00", profile=replace(PROFILE, surname=surname))
    assert (order.status, (await last(own))["reasons"]) == (status, [reason])


async def test_an_order_above_the_limit_is_declined_before_any_card_is_charged(own: Own) -> None:
    phone = phone_number()
    await buy(own, "1500.00", phone=phone)
    order = await buy(own, "900.00", phone=phone)
    assert order.status is Status.DECLINED
    kept = await last(own)
    assert (kept["approved"], kept["reasons"][0]) == (False, "over_limit")
    assert kept["inputs"]["history"]["outstanding"] == 112_500
    assert await rows(own, "SELECT FROM charges WHERE order_id = $1", order.order_id) == []
    [event] = await rows(
        own, "SELECT type, success, message FROM events WHERE order_id = $1 AND sequence = 2", order.order_id
    )
    assert tuple(event) == ("order.declined", False, "The order was not approved.")


async def test_a_declined_consumer_gets_a_letter_with_the_reasons_by_mail(own: Own) -> None:
    phone = phone_number()
    await buy(own, "1500.00", phone=phone)
    order = await buy(own, "900.00", phone=phone)
    await send_messages(own.context)
    [letter] = await rows(
        own,
        "SELECT recipient, subject, text FROM message_simulator.inbox WHERE channel = 'mail' AND subject LIKE 'About%'",
    )
    assert letter["recipient"] == PROFILE.email
    assert letter["subject"] == f"About your order at {own.merchant.name}"
    [reason] = sentences((await last(own))["reasons"][:1], "$2,000.00")
    for words in ("Dear Jordan Rivera,", "$900.00", reason, "Equal Credit"):
        assert words in letter["text"]
    [kept] = await rows(own, "SELECT state FROM messages WHERE order_id = $1", order.order_id)
    assert kept["state"] == "sent"


MODEL = Model("m1", 60, (Weight("customer_is_member", 40_000, 500),))


async def _approvals(own: Own, mode: str) -> None:
    async with own.owner() as owner:
        await owner.execute(
            "INSERT INTO models VALUES ($1, 'm1', $2, '{}', now())",
            own.merchant.merchant_id, json.dumps(MODEL.as_document()),
        )  # fmt: skip
        await owner.execute("UPDATE merchants SET approvals = $1, approvals_model = 'm1'", mode)


async def _with_data(own: Own, **fields: object) -> dict[str, Any]:
    order = await own.merchant.create()
    async with own.owner() as owner:
        await owner.execute(
            "INSERT INTO sdk_checkouts (merchant_id, order_id, display, flow, integration, additional)"
            " VALUES ($1, $2, 'redirect', 'standard', 'gateway', $3)",
            own.merchant.merchant_id, UUID(order["orderId"]), json.dumps({"carrier": "gateway", "fields": fields}),
        )  # fmt: skip
    return order


async def test_in_the_mode_off_the_merchant_s_data_is_ignored(own: Own) -> None:
    await buy(own, order=await _with_data(own, customerIsMember="true"))
    assert (await last(own))["inputs"]["approvals"] is None


async def test_in_the_mode_trial_the_model_s_points_are_stored_and_change_no_decision(own: Own) -> None:
    await buy(own)
    without = await last(own)
    await _approvals(own, "trial")
    await buy(own, order=await _with_data(own, customerIsMember="false", accountCreationDate="rubbish"))
    kept = await last(own)
    said = kept["inputs"]["approvals"]
    assert (said["mode"], said["model"], said["fields"]) == ("trial", "m1", {"customer_is_member": False})
    assert (said["points"], said["contributions"]) == (-20, [["customer_is_member", -20]])
    assert {name: kept[name] for name in ("approved", "reasons", "score")} == {
        name: without[name] for name in ("approved", "reasons", "score")
    }


async def test_in_the_mode_on_the_model_s_points_count(own: Own) -> None:
    await buy(own)
    without = (await last(own))["score"]
    await _approvals(own, "on")
    await buy(own, order=await _with_data(own, customer_is_member="yes"))
    assert (await last(own))["score"] == without + 20


async def test_a_merchant_without_a_model_never_uses_the_model_of_another_merchant(own: Own) -> None:
    await _approvals(own, "on")
    order = await started(own.auto_merchant, additionalData={"customerIsMember": True})
    await complete(own.service, own.auto_merchant.merchant_id, order)
    said = (await last(own))["inputs"]["approvals"]
    assert (said["mode"], said["fields"]) == ("on", {"customer_is_member": True})
    assert (said["model"], said["points"], said["contributions"]) == (None, 0, [])


async def test_a_model_that_cannot_be_read_does_not_prevent_a_purchase(own: Own) -> None:
    await _approvals(own, "on")
    async with own.owner() as owner:
        await owner.execute(
            "INSERT INTO models VALUES ($1, 'm2', '{}', '{}', now())", own.merchant.merchant_id
        )
        await owner.execute("UPDATE merchants SET approvals_model = 'm2'")
    order = await buy(own, order=await _with_data(own, customer_is_member="yes"))
    assert order.status is Status.APPROVED
    assert (await last(own))["inputs"]["approvals"]["model"] is None


async def test_a_decision_costs_a_reservation_and_a_read_before_the_charge(own: Own) -> None:
    asked: list[str] = []

    class Counting(SamePool):
        async def fetchrow(self, sql: str, *values: object) -> Any:
            asked.append(" ".join(sql.split())[:60])
            return await super().fetchrow(sql, *values)

    from support.flows.buttons import opened, press

    [seen] = await opened(own, phone_number(), 1, "100.00")
    sealed = {own.context.policy.version}  # only a first decision also stores the policy's text
    await press(replace(own.context, pool=Counting(own.context.pool), sealed=sealed), seen)
    reserve, read, save, *after = asked
    begun = ("SELECT reserve_exposure(", "WITH agreed", "SELECT save_orders(")
    assert (reserve[:24], read[:11], save[:19]) == begun
    # Then come the card's answer and, at the same time, the end of the reservation.
    assert sorted(text[:13] for text in after) == ["SELECT finish", "SELECT o.merc", "SELECT save_o"]
