"""`verify_payout` proves the lines of disputes and chargebacks from the merchant's own events, and names what is wrong."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from cuota.client import PayoutLine, cents
from cuota.flows.dispute.answer_dispute import accept_dispute, withdraw_dispute
from cuota.flows.dispute.close_disputes import settle_due_disputes
from support.dispute_walk import ProvenPayout, paid_out, walk, without_payments
from support.disputes import captured, charged_back, disputed, network_decides, paid_twice
from support.own_service import Own
from support.settlement_book import payout_of
from support.settlement_rows import write_terms

DISPUTED = {"dispute_withheld", "dispute_released", "dispute_lost"}


def shown(proven: ProvenPayout) -> list[tuple[str, str]]:
    return [(line.type, str(int(line.net))) for line in proven.lines if line.type in DISPUTED]


async def lost(own: Own) -> None:
    order = await captured(own.merchant)
    dispute = await disputed(own.merchant, order, 4000)
    await accept_dispute(own.context, own.merchant.merchant_id, dispute.dispute_id)
    await settle_due_disputes(own.context)


async def withdrawn_after_a_refund(own: Own) -> None:
    order = await captured(own.merchant)
    dispute = await disputed(own.merchant, order, 4000)
    await own.merchant.move(order, "refund", "15.00")
    await withdraw_dispute(own.context, own.merchant.merchant_id, dispute.dispute_id)


async def resolved_by_refunds(own: Own) -> None:
    order = await captured(own.merchant)
    await disputed(own.merchant, order, 4000)
    for amount in ("15.00", "30.00", "5.00"):
        assert (await own.merchant.move(order, "refund", amount)).status_code == 200


async def charged_back_instead(own: Own) -> None:
    """The chargeback takes over the whole amount that the consumer's dispute withheld, and is won: there are two
    releases with its reference."""
    order = await captured(own.merchant)
    await disputed(own.merchant, order, 10000)
    chargeback = await charged_back(own.merchant, order, 2500)
    await network_decides(own.merchant, order, chargeback, for_consumer=False)


async def resolved_by_a_chargeback(own: Own) -> None:
    order = await own.merchant.approved("100.00")
    assert (await own.merchant.move(order, "capture", "20.00")).status_code == 200
    await disputed(own.merchant, order, 2000)
    chargeback = await charged_back(own.merchant, order, 2500)
    await network_decides(own.merchant, order, chargeback, for_consumer=True)


async def taken_from_another_chargeback(own: Own) -> None:
    """Two chargebacks of the payment of 25.00 withhold 20.00 and 5.00. The lost one needs 10.00, and all other money is disputed."""
    order = await captured(own.merchant)
    first = await charged_back(own.merchant, order, 2000)
    second = await charged_back(own.merchant, order, 1000)
    await disputed(own.merchant, order, 7500)
    await network_decides(own.merchant, order, second, for_consumer=True)
    await network_decides(own.merchant, order, first, for_consumer=False)


async def lost_beside_another_payment(own: Own) -> None:
    """The second payment is charged back before its capture. Its loss takes captured money, not what the first payment withholds."""
    order = await paid_twice(own.merchant)
    assert (await own.merchant.move(order, "capture", "20.00")).status_code == 200
    first = await charged_back(own.merchant, order, 2500)
    second = await charged_back(own.merchant, order, 2500, payment=2)
    assert (await own.merchant.move(order, "capture", "80.00")).status_code == 200
    await network_decides(own.merchant, order, second, for_consumer=True)
    await network_decides(own.merchant, order, first, for_consumer=False)


async def no_room_for_the_dispute(own: Own) -> None:
    """The banks took back 50.00 and the first chargeback withholds only 20.00, so the plan has room for 50.00 of the dispute of 75.00."""
    order = await paid_twice(own.merchant)
    assert (await own.merchant.move(order, "capture", "20.00")).status_code == 200
    await charged_back(own.merchant, order, 2500)
    assert (await own.merchant.move(order, "capture", "80.00")).status_code == 200
    await disputed(own.merchant, order, 7500)
    await charged_back(own.merchant, order, 2500, payment=2)


NEW_CASES = [
    (lost_beside_another_payment, [("dispute_withheld", "-20"), ("dispute_lost", "-25"), ("dispute_released", "20")]),
    (no_room_for_the_dispute, [("dispute_withheld", "-20"), ("dispute_withheld", "-75"), ("dispute_released", "25"), ("dispute_withheld", "-25")]),
]  # fmt: skip
CASES = [
    (taken_from_another_chargeback, [("dispute_withheld", "-20"), ("dispute_withheld", "-5"), ("dispute_withheld", "-75"), ("dispute_released", "10"), ("dispute_lost", "-10"), ("dispute_released", "15")]),
    (lost, [("dispute_withheld", "-40"), ("dispute_released", "40"), ("dispute_lost", "-40")]),
    (withdrawn_after_a_refund, [("dispute_withheld", "-40"), ("dispute_released", "15"), ("dispute_released", "25")]),
    (resolved_by_refunds, [("dispute_withheld", "-40"), ("dispute_released", "15"), ("dispute_released", "25")]),
    (charged_back_instead, [("dispute_withheld", "-100"), ("dispute_released", "25"), ("dispute_withheld", "-25"), ("dispute_released", "25")]),
    (resolved_by_a_chargeback, [("dispute_withheld", "-20"), ("dispute_released", "20"), ("dispute_withheld", "-20"), ("dispute_released", "20"), ("dispute_lost", "-20")]),
]  # fmt: skip


@pytest.mark.parametrize(("story", "lines"), [*CASES, *NEW_CASES])
async def test_the_lines_of_a_dispute_are_proved_from_the_merchant_s_own_events(
    own: Own, story: Callable[[Own], Awaitable[None]], lines: list[tuple[str, str]]
) -> None:
    await write_terms(own.merchant, refund_fee="returned")
    await story(own)
    await captured(own.merchant, "500.00")
    proven = await paid_out(own)
    assert shown(proven) == lines
    verdict = proven.verdict(settled=())
    assert (verdict.problems, verdict.waiting, verdict.unproven) == ((), (), ())


@pytest.mark.parametrize("story", [story for story, _ in CASES])
async def test_events_of_a_release_without_payment_and_released_amount_prove_the_same_lines(
    own: Own, story: Callable[[Own], Awaitable[None]]
) -> None:
    await story(own)
    await captured(own.merchant, "500.00")
    proven = await paid_out(own)
    earlier = replace(proven, events=without_payments(proven.events))
    assert earlier.verdict(settled=()) == proven.verdict(settled=())
    assert earlier.verdict(settled=()).problems == ()


async def test_a_lost_chargeback_of_an_uncaptured_order_has_no_line(own: Own) -> None:
    await captured(own.merchant, "500.00")
    order = await own.merchant.approved("100.00")
    chargeback = await charged_back(own.merchant, order, 2500)
    await network_decides(own.merchant, order, chargeback, for_consumer=True)
    proven = await paid_out(own)
    assert [line.type for line in proven.lines] == ["capture"]
    assert proven.verdict(settled=()).problems == ()


@pytest.mark.parametrize("seed", range(6))
async def test_a_random_payout_is_proved_and_each_wrong_line_is_named(own: Own, seed: int) -> None:
    chance = random.Random(seed)
    await write_terms(own.merchant, refund_fee=chance.choice(["kept", "pro_rata", "returned"]))
    orders = [await captured(own.merchant, "100.00") for _ in range(3)]
    orders += [await own.merchant.approved("100.00"), await paid_twice(own.merchant)]
    await captured(own.merchant, "2000.00")
    await walk(own, chance, orders, 45)
    proven = await paid_out(own)
    chance.shuffle(proven.events)
    verdict = proven.verdict(settled=())
    assert (verdict.problems, verdict.waiting) == ((), ())
    places = [place for place, line in enumerate(proven.lines) if line.type in DISPUTED]
    assert places, "the walk had no dispute"
    for place in places:
        lines = altered(proven.lines, place)
        wrong = replace(proven, lines=lines, payout=payout_of(lines))
        assert proven.lines[place].line_id in wrong.named(settled=()), proven.lines[place]
        left = [line for at, line in enumerate(proven.lines) if at != place]
        renumbered = [replace(line, line_id=str(number)) for number, line in enumerate(left, 1)]
        verdict = replace(proven, lines=renumbered, payout=payout_of(renumbered)).verdict(settled=())
        # The last event of an order may be paid later. Then it is reported as waiting, and the next check names it as
        # missing.
        assert verdict.waiting or "missing" in {problem.kind for problem in verdict.problems}


def altered(lines: list[PayoutLine], place: int) -> list[PayoutLine]:
    """Return the same lines, one of which has one cent more."""
    line = lines[place]
    other = replace(line, gross=line.gross + cents(1), net=line.net + cents(1))
    return [*lines[:place], other, *lines[place + 1 :]]


async def test_a_second_line_for_the_same_release_is_named_as_doubled(own: Own) -> None:
    await withdrawn_after_a_refund(own)
    proven = await paid_out(own)
    for line in [line for line in proven.lines if line.type in DISPUTED]:
        again = replace(line, line_id=str(len(proven.lines) + 1))
        lines = [*proven.lines, again]
        verdict = replace(proven, lines=lines, payout=payout_of(lines)).verdict(settled=())
        assert ("doubled", again.line_id) in {(each.kind, each.line_id) for each in verdict.problems}


async def test_a_dispute_whose_opening_was_never_received_is_named(own: Own) -> None:
    await captured(own.merchant, "500.00")
    await withdrawn_after_a_refund(own)
    proven = await paid_out(own)
    opened = next(event for event in proven.events if event["type"] == "dispute.opened")
    without: list[Any] = [event for event in proven.events if event is not opened]
    problems = replace(proven, events=without).verdict(settled=()).problems
    assert {problem.kind for problem in problems} == {"unreported"}
    assert all(opened["id"] in problem.message for problem in problems)
    assert {problem.line_id for problem in problems} == {
        line.line_id
        for line in proven.lines
        if line.type == "dispute_withheld" or (line.type == "dispute_released" and line.net == 15)
    }


async def test_lines_of_a_dispute_in_a_later_payout_are_compared_with_the_events_settled_before(
    own: Own,
) -> None:
    order = await captured(own.merchant, "100.00")
    await captured(own.merchant, "500.00")
    await disputed(own.merchant, order, 10000)
    chargeback = await charged_back(own.merchant, order, 2500)
    first = await paid_out(own)
    settled = first.verdict(settled=()).settled
    await network_decides(own.merchant, order, chargeback, for_consumer=False)
    second = await paid_out(own)
    assert shown(second) == [("dispute_released", "25")]
    verdict = second.verdict(settled=settled)
    assert (verdict.problems, verdict.waiting) == ((), ())
    assert "doubled" in {each.kind for each in second.verdict(settled=settled | verdict.settled).problems}
