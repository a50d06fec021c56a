"""`verify_payout` accepts every correct payout, and names each altered, removed or doubled line or cent."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.client import cents, verify_payout
from cuota.core.payout.terms import RefundFee
from support.properties.steady import steady
from support.settlement_book import Book, book, payout_of

AMOUNTS = st.integers(1, 500_000)
MOVES = st.lists(st.tuples(st.integers(1, 3), st.booleans(), AMOUNTS), max_size=12).map(
    lambda moves: [(1, False, 10_000), *moves]
)
BOOKS = st.builds(
    book, MOVES, st.sampled_from(RefundFee), st.integers(0, 1500), st.integers(0, 100), st.sampled_from([0, 500, 10_000])
)  # fmt: skip


@given(BOOKS, st.randoms(use_true_random=False))
@steady(750)
def test_an_honest_payout_is_accepted_in_whatever_order_its_parts_came(honest: Book, chance: Any) -> None:
    honest.events += honest.events[:2]  # webhooks come at least once
    chance.shuffle(honest.events)
    chance.shuffle(honest.lines)
    verdict = verify_payout(honest.payout, honest.lines, honest.events, honest.terms, settled=())
    assert verdict.problems == ()
    assert verdict.net == verdict.gross + verdict.fees == honest.payout.amount
    assert verdict.settled == {event["id"] for event in honest.events}
    assert verdict.waiting == ()


@given(BOOKS, st.data())
@steady(750)
def test_a_removed_line_is_named(honest: Book, data: Any) -> None:
    gone = data.draw(st.sampled_from(honest.lines))
    honest.lines.remove(gone)
    assert gone.line_id in honest.named()
    assert "missing" in honest.kinds()


@given(BOOKS, st.data())
@steady(750)
def test_a_doubled_line_is_named_also_under_a_number_of_its_own(honest: Book, data: Any) -> None:
    twice = data.draw(st.sampled_from(honest.lines))
    dishonest = replace(twice, line_id=str(int(honest.lines[-1].line_id) + 1))
    kinds = Book(honest.payout, [*honest.lines, twice], honest.events, honest.terms).kinds()
    assert "doubled" in kinds
    # If the provider also renumbers the line and changes the payout, the events reveal it.
    lines = [*honest.lines, dishonest]
    lied = Book(payout_of(lines), lines, honest.events, honest.terms)
    assert dishonest.line_id in lied.named()


@given(BOOKS, st.data(), st.sampled_from(["gross", "fee", "net"]), st.sampled_from([-1, 1]))
@steady(1000)
def test_one_altered_cent_is_named_also_if_the_payout_is_altered_with_it(
    honest: Book, data: Any, part: str, by: int
) -> None:
    place = data.draw(st.integers(0, len(honest.lines) - 1))
    was = honest.lines[place]
    altered = replace(was, **{part: getattr(was, part) + cents(by)})
    honest.lines[place] = altered
    assert was.line_id in honest.named()
    if part != "net":
        honest.lines[place] = replace(altered, net=altered.gross + altered.fee)
        honest.payout = payout_of(honest.lines)
        assert was.line_id in honest.named()


@given(BOOKS, st.sampled_from([-1, 1]))
@steady(250)
def test_a_payout_of_another_amount_is_found(honest: Book, by: int) -> None:
    honest.payout = replace(honest.payout, amount=honest.payout.amount + cents(by))
    assert honest.kinds() == {"wrong"}


@given(BOOKS, st.data())
@steady(500)
def test_an_event_that_was_never_received_is_named(honest: Book, data: Any) -> None:
    lost = data.draw(st.sampled_from(honest.events))
    reported = {
        each.line_id
        for each in honest.lines
        if each.order_id == lost["orderId"] and each.reference == lost_reference(lost)
    }
    honest.events.remove(lost)
    assert reported <= honest.named()
    assert honest.kinds() == {"unreported"}


def lost_reference(event: dict[str, Any]) -> str:
    return str(event["order"][f"{event['type'].partition('.')[0]}s"][-1]["merchantReference"])


@pytest.mark.parametrize("field", ["order_id", "reference", "merchant_reference", "type", "sequence"])
def test_a_line_with_another_field_is_named(field: str) -> None:
    moves = [(1, False, 10_000), (1, False, 5_000), (1, True, 100), (2, False, 700)]
    honest = book(moves, RefundFee.RETURNED, 590, 30)
    others: dict[str, Any] = {
        "order_id": str(UUID(int=2)), "reference": "other", "merchant_reference": "A-9", "type": "adjustment", "sequence": 99,
    }  # fmt: skip
    honest.lines[0] = replace(honest.lines[0], **{field: others[field]})
    honest.payout = payout_of(honest.lines)
    assert verify_payout(honest.payout, honest.lines, honest.events, honest.terms, settled=()).problems


def test_a_left_out_line_is_found_by_the_settled_events_even_if_the_lines_are_renumbered() -> None:
    honest = book([(1, False, 10_000), (1, False, 5_000)], RefundFee.KEPT, 0, 0)
    kept = [replace(honest.lines[1], line_id="5")]
    lied = Book(payout_of(kept), kept, honest.events, honest.terms)
    assert lied.kinds(settled=()) == {"missing"}
    assert lied.kinds(settled=[honest.events[0]["id"]]) == set()
    assert lied.kinds(settled=[event["id"] for event in honest.events]) == {"doubled"}


def test_events_that_a_later_payout_pays_are_reported_as_waiting() -> None:
    honest = book([(1, False, 10_000), (2, False, 5_000)], RefundFee.KEPT, 0, 0)
    lines = honest.lines[:1]
    verdict = verify_payout(payout_of(lines), lines, honest.events, honest.terms, settled=())
    assert (verdict.problems, verdict.waiting) == ((), (honest.events[1]["id"],))


def test_events_may_be_given_as_raw_stored_bodies() -> None:
    honest = book([(1, False, 11_996)], RefundFee.KEPT, 590, 30)
    stored = [json.dumps(event, default=float) for event in honest.events]
    for events in (stored, [text.encode() for text in stored], [json.loads(text) for text in stored]):
        assert verify_payout(honest.payout, honest.lines, events, honest.terms).agrees


def test_a_payout_from_a_list_is_refused_because_it_has_no_totals() -> None:
    honest = book([(1, False, 1)], RefundFee.KEPT, 0, 0)
    with pytest.raises(ValueError, match=r"payout\(id\)"):
        verify_payout(replace(honest.payout, first_line_id=""), honest.lines, honest.events, honest.terms)


def test_a_reserve_is_right_if_the_service_was_stopped_and_the_reserve_changed_meanwhile() -> None:
    honest = book([(1, False, 10_000)], RefundFee.KEPT, 590, 30, 500)
    stopped = timedelta(days=3)
    for place, line in enumerate(honest.lines):
        if line.type == "reserve_held" and line.at is not None:
            honest.lines[place] = replace(line, at=line.at + stopped)
            changed = line.at + stopped - timedelta(hours=26)
            newer = replace(honest.terms[-1], version=99, valid_from=changed, reserve=Decimal(10))
    assert verify_payout(honest.payout, honest.lines, honest.events, [*honest.terms, newer]).problems == ()
    before = replace(newer, valid_from=honest.terms[-1].valid_from)
    [problem] = verify_payout(honest.payout, honest.lines, honest.events, [*honest.terms, before]).problems
    assert "not the percentage of your terms" in problem.message
