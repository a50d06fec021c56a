"""Two people confirm their numbers in the same checkout. An export or an erasure of one leaves the data of the other alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from cuota.db.risk.history import past
from cuota.db.verify.recalculate import verify
from cuota.flows.plan.read_messages import read_messages
from cuota.flows.plan.send_messages import send_messages
from cuota.flows.privacy.erase_consumer import TRIED, erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer
from support.own_service import Own
from support.pages.visitor import CARD_DECLINED, Visitor, address_of

ALICE, BOB = "2125550111", "2125550222"
# What the shop says about its customer.
GIVEN = {"phoneNumber": ALICE, "givenNames": "Avery", "surname": "Rivera", "email": "avery@mail.example"}
OF_ALICE = ("2125550111", "Avery", "avery@mail.example", "77 Zephyr Lane")


@dataclass
class Shared:
    """One order, and the browsers of Alice and Bob in its checkout."""

    own: Own
    order: dict[str, Any]
    alice: Visitor
    bob: Visitor

    async def opened(self, surname: str = "Rivera") -> None:
        """Let both reach the payment page."""
        await self.alice.until(
            "pay", self.order, phone=ALICE, given_names="Avery", surname=surname, email="avery@mail.example",
            address_line1="77 Zephyr Lane",
        )  # fmt: skip
        await self.bob.until("pay", self.order, phone=BOB, given_names="Blake")

    async def export(self, phone: str) -> tuple[dict[str, Any], list[str]]:
        """Return the export, and the words in it that are about Alice."""
        found = await export_consumer(self.own.context, phone)
        return found, [word for word in OF_ALICE if word in json.dumps(found)]

    async def erased(self, phone: str) -> None:
        done = await erase_consumer(self.own.context, phone, dry_run=False)
        assert (done.done, done.reasons) == (True, [])
        assert (await verify(self.own.context.pool)).disagreements == []


@pytest.fixture
async def shared(own: Own) -> AsyncIterator[Shared]:
    async with own.service.client() as one, own.service.client() as other:
        yield Shared(own, await own.auto_merchant.create("100.00"), Visitor(one), Visitor(other))


async def test_of_an_open_order_each_gets_only_the_own_data(shared: Shared) -> None:
    await shared.opened()
    found, words = await shared.export(BOB)
    assert words == []
    (part,) = found["orders_of_others"]
    assert part["order_id"] == shared.order["orderId"]
    assert [each["profile"]["given_names"] for each in part["checkout_sessions"]] == ["Blake"]


async def test_an_erasure_does_not_end_the_checkout_of_somebody_else(shared: Shared) -> None:
    await shared.opened()
    await shared.erased(BOB)
    assert (await shared.alice.send("pay")).outcome == "approved"
    found, _ = await shared.export(BOB)
    assert not found["orders"]
    assert not found["orders_of_others"]


async def test_the_data_of_the_one_who_paid_is_not_exported_for_the_other(shared: Shared) -> None:
    await shared.opened()
    assert (await shared.alice.send("pay")).outcome == "approved"
    assert (await shared.export(BOB))[1] == []
    found, words = await shared.export(ALICE)
    assert words == list(OF_ALICE)
    assert found["orders"][0]["plan"]["payer"]["given_names"] == "Avery"
    assert len(found["orders"][0]["checkout_sessions"]) == 1


async def test_the_letter_to_the_one_who_was_declined_is_neither_exported_nor_erased_for_the_other(
    shared: Shared,
) -> None:
    await shared.opened(surname="Declinetest")
    assert (await shared.alice.send("pay")).outcome == "declined"
    await send_messages(shared.own.context)
    assert (await shared.export(BOB))[1] == []
    await shared.erased(BOB)
    found, words = await shared.export(ALICE)
    assert words == list(OF_ALICE)
    (order,) = found["orders"]
    assert "Dear Avery Declinetest" in order["messages"][0]["said"]["text"]
    assert len(order["decisions"]) == 1
    await shared.erased(ALICE)
    # The export still begins with the number for which it was requested.
    assert (await shared.export(ALICE))[1] == [ALICE]


async def test_data_that_the_shop_gave_belongs_to_the_owner_of_the_number_that_it_gave(own: Own) -> None:
    order = await own.auto_merchant.create("100.00", consumer=GIVEN)
    async with own.service.client() as http:
        await Visitor(http).until("pay", order, phone=BOB, given_names="Blake")
        found = await export_consumer(own.context, BOB)
        assert [word for word in OF_ALICE if word in json.dumps(found)] == []
        await erase_consumer(own.context, BOB, dry_run=False)
    async with own.owner() as owner:
        document = await owner.fetchval(
            "SELECT document::text FROM order_details WHERE order_id = $1", UUID(order["orderId"])
        )
    assert json.loads(document)["consumer"]["phoneNumber"] == ALICE


async def test_data_of_a_named_person_is_left_out_of_the_export_of_another_payer_and_erased_for_the_named_one(
    own: Own,
) -> None:
    order = await own.auto_merchant.create("100.00", consumer=GIVEN)
    async with own.service.client() as http:
        assert (await Visitor(http).buy(order, phone=BOB, given_names="Blake")).outcome == "approved"
    found = await export_consumer(own.context, BOB)
    assert [word for word in OF_ALICE if word in json.dumps(found)] == []
    assert found["orders"][0]["document"]["consumer"] is None
    named = await export_consumer(own.context, ALICE)
    assert [each["order_id"] for each in named["orders_naming_this_number"]] == [order["orderId"]]
    assert (await erase_consumer(own.context, ALICE, dry_run=False)).done
    async with own.owner() as owner:
        document = await owner.fetchval(
            "SELECT document::text FROM order_details WHERE order_id = $1", UUID(order["orderId"])
        )
    assert ALICE not in document
    assert (await export_consumer(own.context, BOB))["orders"][0]["plan"]["payer"]["given_names"] == "Blake"


async def test_one_whose_card_failed_is_erased_when_the_checkout_of_the_named_person_has_ended(
    own: Own,
) -> None:
    order = await own.auto_merchant.create("100.00", consumer={"phoneNumber": ALICE})
    async with own.service.client() as one, own.service.client() as other:
        alice, bob = Visitor(one), Visitor(other)
        await alice.until("pay", order, phone=ALICE, given_names="Avery")
        await bob.buy(order, phone=BOB, given_names="Blake", card_number=CARD_DECLINED)
        refused = await erase_consumer(own.context, BOB, dry_run=False)
        assert (refused.done, refused.reasons) == (False, [TRIED])
        assert (await alice.send("pay")).outcome == "approved"
    assert (await erase_consumer(own.context, BOB, dry_run=False)).done
    assert (await verify(own.context.pool)).disagreements == []
    found = await export_consumer(own.context, ALICE)
    assert found["orders"][0]["plan"]["payer"]["given_names"] == "Avery"


async def test_a_decline_of_another_person_counts_against_nobody_else(shared: Shared) -> None:
    await shared.opened()
    await shared.alice.send("pay", card_number=CARD_DECLINED)
    await shared.bob.open(address_of(shared.order))
    await shared.bob.open(f"{address_of(shared.order)}?step=details")
    await shared.bob.send("details", surname="Declinetest", given_names="Blake")
    assert (await shared.bob.send("pay")).outcome == "declined"
    await send_messages(shared.own.context)
    context = shared.own.context
    found = await past(context.pool, context.vault.consumer_id(ALICE), context.now())
    assert found.declined_orders == 0
    listed = await read_messages(context, context.vault.consumer_id(ALICE), None, 10)
    assert listed == []
    (letter,) = await read_messages(context, context.vault.consumer_id(BOB), None, 10)
    assert letter.text is not None
    assert "Dear Blake Declinetest" in letter.text.text
    assert (await shared.export(BOB))[1] == []
