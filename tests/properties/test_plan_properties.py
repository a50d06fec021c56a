"""Properties of every plan: its sums, the order in which installments are cut, and the share of the fee that is
returned."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cuota.core.installment import Installment, cut, schedule, total
from cuota.core.order.movement import MovementKind
from cuota.core.order.order import Order
from cuota.core.order.refund import refund
from support.core.values import MOVEMENT, NOW, TODAY, after, approved, asked, charge_id, ids, plan, to_cards
from support.properties.steady import STEADY

PAID = st.sets(st.integers(1, 4))
AMOUNT = st.integers(1, 10**9)


@st.composite
def cuts(draw: st.DrawFn) -> tuple[list[Installment], int, int]:
    """Draw a plan that may have been cut before, and the amount and fee of the next cut."""
    amount, fee = draw(AMOUNT), draw(st.integers(0, 10**6))
    agreed = plan(amount, fee, draw(PAID))
    gone = cut(agreed, draw(st.integers(0, amount)), draw(st.integers(0, fee))).plan
    left, left_fee = total(gone), sum(item.fee for item in gone)
    return list(gone), draw(st.integers(0, left)), draw(st.integers(0, left_fee))


@STEADY
@given(AMOUNT, st.integers(0, 10**9))
def test_an_agreed_plan_adds_up_to_the_order_and_its_fee(amount: int, fee: int) -> None:
    agreed = schedule(amount, fee, TODAY)
    assert (total(agreed), sum(item.fee for item in agreed)) == (amount, fee)
    assert agreed[0].total == max(item.total for item in agreed)


@STEADY
@given(cuts())
def test_a_cut_takes_exactly_its_amount_and_fee_and_no_amount_becomes_negative(
    case: tuple[list[Installment], int, int],
) -> None:
    before, amount, fee = case
    done = cut(before, amount, fee)
    assert total(done.plan) == total(before) - amount
    assert sum(item.fee for item in done.plan) == sum(item.fee for item in before) - fee
    assert (done.unpaid + done.to_card, done.fee_unpaid + done.fee_to_card) == (amount, fee)
    assert all(item.amount >= 0 and item.fee >= 0 and item.returned >= 0 for item in done.plan)
    assert min(done.unpaid, done.to_card, done.fee_unpaid, done.fee_to_card) >= 0


@STEADY
@given(cuts())
def test_unpaid_installments_are_cut_first_beginning_with_the_last_one(
    case: tuple[list[Installment], int, int],
) -> None:
    before, amount, fee = case
    done = cut(before, amount, fee)
    pairs = sorted(zip(before, done.plan, strict=True), key=lambda pair: (pair[0].paid, -pair[0].number))
    for part in ("amount", "fee"):
        touched = [getattr(new, part) != getattr(old, part) for old, new in pairs]
        for index, (_, new) in enumerate(pairs):
            # If a later installment in this order is cut, all earlier ones must be zero.
            assert not any(touched[index + 1 :]) or getattr(new, part) == 0


@STEADY
@given(cuts())
def test_money_that_goes_back_to_cards_is_listed_by_charge_and_recorded_in_the_installment(
    case: tuple[list[Installment], int, int],
) -> None:
    before, amount, fee = case
    done = cut(before, amount, fee)
    assert sum(done.by_charge.values()) == done.to_card + done.fee_to_card
    assert all(done.by_charge.values())
    for old, new in zip(before, done.plan, strict=True):
        went = done.by_charge.get(charge_id(old.number), 0)
        assert new.returned - old.returned == went == (old.total - new.total if old.paid else 0)
        assert replace(new, amount=0, fee=0, returned=0) == replace(old, amount=0, fee=0, returned=0)


@STEADY
@given(cuts(), st.data())
def test_two_cuts_have_the_same_result_as_one_cut_of_their_sum(
    case: tuple[list[Installment], int, int], data: st.DataObject
) -> None:
    before, amount, fee = case
    first, first_fee = data.draw(st.integers(0, amount)), data.draw(st.integers(0, fee))
    half = cut(before, first, first_fee)
    rest = cut(half.plan, amount - first, fee - first_fee)
    whole = cut(before, amount, fee)
    assert rest.plan == whole.plan
    assert half.to_card + rest.to_card == whole.to_card


def _refund_all(
    order: Order, agreed: list[Installment], parts: list[int]
) -> tuple[Order, list[Installment], int]:
    back = 0
    for part in parts:
        outcome = refund(order, agreed, asked(MovementKind.REFUND, part), MOVEMENT, NOW, ids())
        order, agreed = outcome.order, after(agreed, outcome)
        back += sum(to_cards(outcome).values())
    return order, agreed, back


@STEADY
@given(
    st.lists(st.integers(1, 10**5), min_size=1, max_size=8),
    st.integers(0, 10**5),
    st.integers(0, 10**5),
    PAID,
)
def test_partial_refunds_return_the_same_as_one_refund_of_their_sum(
    parts: list[int], more: int, fee: int, paid: set[int]
) -> None:
    amount = sum(parts) + more
    order, agreed = approved(amount, fee, captured=amount), plan(amount, fee, paid)
    assert _refund_all(order, agreed, parts) == _refund_all(order, agreed, [sum(parts)])


@STEADY
@given(AMOUNT, st.integers(0, 10**6), PAID)
def test_a_full_refund_returns_the_whole_fee_and_everything_that_was_paid(
    amount: int, fee: int, paid: set[int]
) -> None:
    agreed = plan(amount, fee, paid)
    order, left, back = _refund_all(approved(amount, fee, captured=amount), agreed, [amount])
    assert order.fee_returned == fee
    assert sum(item.total for item in left) == 0
    assert back == sum(item.total for item in agreed if item.paid)
