"""Tests beyond the conformance suite: customers, declines, look-ups among many payments, unclear answers."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from cuota.core.plan.declines import is_hard
from cuota.rails.card.protocol import CardOutcome, UnknownToken
from cuota.rails.card.stripe import StripeCardRail
from cuota.rails.card.stripe_declines import reason_of
from cuota.rails.card.stripe_intents import answer_of
from cuota.rails.settings import StripeKeys
from cuota.rails.unavailable import RailUnavailable
from support.makers import Running
from support.rails.parts import rail_parts
from support.rails.processor import BACK, Bench, a_holder
from support.stripe.processor import StripeProcessor, a_bench
from support.stripe.stand_in import StandIn, enter_card


async def test_all_cards_of_a_person_belong_to_one_customer_at_stripe(processor: StripeProcessor) -> None:
    one = await a_bench(processor)
    again = a_holder(one.holder.consumer_id)
    two = await processor.rail.keep(await enter_card(processor.stand_in, "4000002500003155"), again)
    other = await a_bench(processor)
    customers = [card.token.partition("/")[0] for card in (one.card, two, other.card)]
    assert customers[0] == customers[1] != customers[2]


async def test_several_first_cards_at_the_same_time_create_one_customer(processor: StripeProcessor) -> None:
    holder = a_holder()
    tokens = [await enter_card(processor.stand_in, "4242424242424242") for _ in range(5)]
    cards = await asyncio.gather(*(processor.rail.keep(token, holder) for token in tokens))
    assert len({card.token.partition("/")[0] for card in cards}) == 1


async def test_a_customer_that_was_deleted_at_stripe_is_replaced(processor: StripeProcessor) -> None:
    one = await a_bench(processor)
    gone = one.card.token.partition("/")[0]
    await processor.rail._stripe.v1.customers.delete_async(gone)
    card = await processor.rail.keep(await enter_card(processor.stand_in, "4242424242424242"), one.holder)
    assert not card.token.startswith(gone)
    assert (await processor.rail.charge(Bench(card, one.holder).charge())).approved


async def test_a_card_of_another_consumer_is_not_stored(processor: StripeProcessor) -> None:
    one = await a_bench(processor)
    with pytest.raises(UnknownToken):
        await processor.rail.keep(one.card.token.partition("/")[2], a_holder())


async def test_storing_a_card_again_after_a_lost_answer_gives_the_same_card(
    processor: StripeProcessor,
) -> None:
    one = await a_bench(processor)
    assert await processor.rail.keep(one.card.token.partition("/")[2], one.holder) == one.card


async def test_the_order_is_named_on_the_card_and_on_the_payment(processor: StripeProcessor) -> None:
    one = await a_bench(processor)
    asked = one.charge()
    assert (await processor.rail.charge(asked)).approved
    names = {"merchant_id": str(asked.merchant_id), "order_id": str(asked.order_id)}
    methods = processor.rail._stripe.v1.payment_methods
    method = await methods.retrieve_async(one.card.token.partition("/")[2])
    assert method.to_dict()["metadata"] == names
    intent = await processor.rail._find(asked.token, asked.key)
    assert intent is not None
    assert intent["metadata"] == {**names, "charge_id": str(asked.key)}


async def test_a_charge_is_found_among_many_newer_ones(
    processor: StripeProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuota.rails.card.stripe.PAGE", 3)
    one = await a_bench(processor)
    first = one.charge(1_00)
    for asked in (first, *(one.charge(2_00) for _ in range(7))):
        assert (await processor.rail.charge(asked)).approved
    found = await processor.rail.find_charge(first)
    assert found is not None
    assert found.approved
    assert await processor.rail.find_charge(one.charge()) is None


async def test_a_charge_is_found_long_after_its_idempotency_key_expired(processor: StripeProcessor) -> None:
    one = await a_bench(processor)
    asked = one.charge()
    with processor.lost_answer(), pytest.raises(RailUnavailable):
        await processor.rail.charge(asked)
    processor.stand_in.keys.hours += 30
    found = await processor.rail.find_charge(asked)
    assert found is not None
    assert found.approved


async def test_a_refund_is_sent_once_although_its_idempotency_key_expired(processor: StripeProcessor) -> None:
    from support.rails.promises import refund_of

    asked = (await a_bench(processor)).charge(50_00)
    assert (await processor.rail.charge(asked)).approved
    refund = refund_of(asked, 10_00)
    with processor.lost_answer(), pytest.raises(RailUnavailable):
        await processor.rail.refund(refund)
    processor.stand_in.keys.hours += 30
    assert (await processor.rail.refund(refund)).approved
    assert await processor.books(asked) == (50_00, 10_00)


async def test_the_first_payment_authorizes_the_card_for_later_payments(processor: StripeProcessor) -> None:
    one = await a_bench(processor, "4000002500003155")
    first = one.charge(return_url=BACK)
    answer = await processor.rail.charge(first)
    assert answer.outcome is CardOutcome.REQUIRES_ACTION
    assert answer.action_url is not None
    assert await processor.confirm(answer.action_url, passed=True)
    assert (await processor.rail.charge(one.charge())).approved


@pytest.mark.parametrize("number", ["4000000000009995", "4000008260003178"])
async def test_a_payment_that_was_declined_in_the_consumer_s_presence_accepts_no_other_card(
    processor: StripeProcessor, number: str
) -> None:
    """The browser gets the payment's secret with the return address. With this secret, Stripe would accept another card
    for the payment."""
    asked = (await a_bench(processor, number)).charge(return_url=BACK)
    answer = await processor.rail.charge(asked)
    if answer.action_url is not None:
        await processor.confirm(answer.action_url, passed=True)
    found = await processor.rail.find_charge(asked)
    assert found is not None
    assert (found.outcome, found.reason) == (CardOutcome.DECLINED, "insufficient_funds")
    intent = await processor.rail._find(asked.token, asked.key)
    assert intent is not None
    assert intent["status"] == "canceled"
    assert intent["last_payment_error"] is None, "Stripe clears the error when the payment is canceled"
    assert await processor.rail.find_charge(asked) == found


async def test_the_card_network_s_reference_is_stored(processor: StripeProcessor) -> None:
    asked = (await a_bench(processor)).charge(return_url=BACK)
    answer = await processor.rail.charge(asked)
    assert answer.network_reference is not None
    assert await processor.rail.find_charge(asked) == answer


async def test_a_card_that_was_removed_at_stripe_is_a_hard_decline(processor: StripeProcessor) -> None:
    asked = (await a_bench(processor)).charge()
    removed = replace(asked, token=f"{asked.token.partition('/')[0]}/pm_removed")
    answer = await processor.rail.charge(removed)
    assert (answer.outcome, answer.reason) == (CardOutcome.DECLINED, "card_unknown")


async def test_a_card_whose_customer_was_deleted_at_stripe_is_a_hard_decline(
    processor: StripeProcessor,
) -> None:
    one = await a_bench(processor)
    await processor.rail._stripe.v1.customers.delete_async(one.card.token.partition("/")[0])
    asked = one.charge()
    assert await processor.rail.find_charge(asked) is None
    assert (await processor.rail.charge(asked)).reason == "card_unknown"


async def test_an_amount_below_stripe_s_minimum_is_a_decline_and_is_not_retried_forever(
    processor: StripeProcessor,
) -> None:
    asked = (await a_bench(processor)).charge(49)
    answer = await processor.rail.charge(asked)
    assert (answer.outcome, answer.reason) == (CardOutcome.DECLINED, "amount_too_small")
    assert await processor.rail.find_charge(asked) is None


async def test_with_the_keys_of_another_account_a_charge_gets_no_answer_and_no_decline(
    processor: StripeProcessor,
) -> None:
    asked = (await a_bench(processor)).charge()
    for token in ("cus_of_another_account/pm_1", "card_of_another_rail"):
        with pytest.raises(RailUnavailable):
            await processor.rail.charge(replace(asked, token=token))
        with pytest.raises(RailUnavailable):
            await processor.rail.find_charge(replace(asked, token=token))


@pytest.mark.parametrize(
    ("error", "reason", "hard"),
    [
        ({"code": "expired_card"}, "card_expired", True),
        ({"code": "card_declined", "decline_code": "stolen_card"}, "card_stolen", True),
        ({"code": "card_declined", "decline_code": "do_not_honor"}, "do_not_honor", False),
        ({"code": "card_declined", "decline_code": "do_not_honor", "advice_code": "do_not_try_again"}, "do_not_try_again", True),
        ({"code": "card_declined", "decline_code": "lost_card", "advice_code": "do_not_try_again"}, "card_lost", True),
        ({"code": "card_declined", "decline_code": "generic_decline", "network_decline_code": "R1"}, "revocation_of_authorization", True),
        ({"code": "card_declined", "decline_code": "fraudulent"}, "card_declined", False),
        ({"code": "card_declined", "decline_code": "insufficient_funds", "advice_code": "try_again_later"}, "insufficient_funds", False),
        ({}, "card_declined", False),
    ],
)  # fmt: skip
def test_a_decline_code_of_stripe_is_one_of_ours(error: dict[str, str], reason: str, *, hard: bool) -> None:
    assert reason_of(error) == reason
    assert is_hard(reason) is hard


@pytest.mark.parametrize(
    "intent",
    [
        {"status": "requires_capture"},
        {"status": "requires_action", "next_action": {"type": "use_stripe_sdk"}},
        {"status": "a_state_of_next_year"},
    ],
)
def test_an_unclear_state_of_a_payment_is_no_answer(intent: dict[str, Any]) -> None:
    with pytest.raises(RailUnavailable):
        answer_of(intent)


def test_a_payment_that_stripe_still_processes_is_in_progress() -> None:
    assert answer_of({"status": "processing"}).outcome is CardOutcome.PROCESSING


CANARY = "sk_test_canary0secret0key"
CANARY_WEBHOOK = "whsec_canary0signing0secret"


@pytest.mark.parametrize("reachable", [True, False], ids=["refused by Stripe", "no Stripe"])
async def test_no_key_is_in_a_log_or_an_error(
    service: Running, stand_in: StandIn, caplog: pytest.LogCaptureFixture, *, reachable: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    url = stand_in.intents.url if reachable else "http://127.0.0.1:9"
    keys = StripeKeys(CANARY, "pk_test_public0key", CANARY_WEBHOOK, url)
    rail = StripeCardRail(*rail_parts(service.context.pool, stripe=keys))
    token = f"pm_{uuid4().hex}"
    with pytest.raises(RailUnavailable) as kept:
        await rail.keep(token, a_holder())
    asked = Bench(replace((await a_card()), token=f"cus_1/{token}"), a_holder()).charge()
    with pytest.raises(RailUnavailable) as charged:
        await rail.charge(asked)
    http = rail._stripe._requestor._client
    assert http is not None
    await http.close_async()  # type: ignore[no-untyped-call]
    said = caplog.text + str(kept.value) + str(charged.value) + repr(keys) + repr(rail.fields())
    assert CANARY not in said
    assert CANARY_WEBHOOK not in said
    assert "ada@shop.test" not in said


async def a_card() -> Any:
    from cuota.rails.card.protocol import Card

    return Card("cus_1/pm_1", "visa", "4242")
