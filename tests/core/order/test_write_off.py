"""core/order/write_off: an amount that stays unpaid for too long becomes a loss. Later payments and refunds reduce the
loss."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest

from cuota.core.installment import Installment, lost, plan_state
from cuota.core.ledger import Account, Transfer
from cuota.core.order import posting
from cuota.core.order.movement import MovementKind
from cuota.core.order.order import Order
from cuota.core.order.refund import refund
from cuota.core.order.void import void
from cuota.core.order.write_off import last_day, write_off
from cuota.core.plan import collection, new_card
from cuota.core.plan.charge import Charge
from cuota.core.plan.collection import needs_card
from support.core.collecting import CARD, ZONE
from support.core.values import MOVEMENT, after, approved, asked, charge_id, held, ids, plan

DAYS = 120
# The second installment is due on 2026-12-05.
AT = datetime(2027, 4, 4, 12, tzinfo=UTC)
OWED, LOSS = Account.CONSUMER_RECEIVABLE, Account.LOSSES


def overdue(fee: int = 0, *numbers: int) -> list[Installment]:
    """Return a plan whose first installment is paid, and whose others (or `numbers`) are overdue."""
    late = numbers or (2, 3, 4)
    return [replace(item, failures=6) if item.number in late else item for item in plan(fee=fee)]


def opened(fee: int = 0) -> list[Transfer]:
    return [
        *posting.authorization(charge_id(1), 10_000, fee),
        *posting.installment_paid(charge_id(1), 2500 + fee // 4),
    ]


def written_off(
    agreed: list[Installment], order: Order, at: datetime = AT
) -> tuple[Order, list[Installment], list[Transfer]]:
    outcome = write_off(order, agreed, DAYS, at, ids())
    assert outcome is not None
    return outcome.order, after(agreed, outcome), list(outcome.transfers)


@pytest.mark.parametrize(
    ("at", "day"),
    [(AT, date(2026, 12, 5)), (AT - timedelta(seconds=1), date(2026, 12, 4))],
    ids=["at noon UTC", "a second earlier"],
)
def test_an_installment_is_written_off_at_noon_utc_after_the_number_of_days(at: datetime, day: date) -> None:
    assert last_day(at, DAYS) == day


def test_only_an_installment_that_is_overdue_for_that_long_is_written_off_with_its_part_of_the_fee() -> None:
    agreed = overdue(400)
    assert write_off(approved(fee=400), agreed, DAYS, AT - timedelta(seconds=1), ids()) is None
    order, then, lines = written_off(agreed, approved(fee=400))
    assert [item.state for item in then] == ["paid", "written_off", "overdue", "overdue"]
    assert [(line.posting, line.debit, line.credit, line.amount) for line in lines] == [
        ("write_off", LOSS, OWED, 2600)
    ]
    assert sum(item.amount for item in then) == 10_000
    assert lost(then) == 2600
    assert plan_state(then) == "overdue"
    assert order.collect_at is None


def test_each_of_several_installments_is_posted_as_a_separate_loss() -> None:
    _, then, lines = written_off(overdue(), approved(), AT + timedelta(days=28))
    assert [line.amount for line in lines] == [2500] * 3
    assert len({line.cause for line in lines}) == 3
    assert held([*opened(), *lines]) == {
        LOSS: 7500, Account.CARD_CLEARING: 2500, Account.AUTHORIZED_UNCAPTURED: -10_000
    }  # fmt: skip
    assert write_off(approved(), then, DAYS, AT + timedelta(days=60), ids()) is None


def test_an_installment_without_a_failed_charge_is_not_overdue_and_not_written_off() -> None:
    assert write_off(approved(), plan(), DAYS, AT, ids()) is None


def test_a_canceled_installment_is_not_written_off() -> None:
    agreed = [replace(item, amount=0) if item.number == 2 else item for item in overdue()]
    assert write_off(approved(), agreed, DAYS, AT, ids()) is None


def test_an_installment_is_not_written_off_before_a_charge_that_is_due_or_in_progress_has_ended() -> None:
    due = [replace(item, charge_at=AT) if item.number == 2 else item for item in overdue()]
    assert write_off(approved(), due, DAYS, AT, ids()) is None
    charging = approved(charging=charge_id(2), charging_since=AT)
    assert write_off(charging, overdue(), DAYS, AT, ids()) is None
    later = [
        replace(item, charge_at=AT + timedelta(days=1)) if item.number == 2 else item for item in overdue()
    ]
    _, then, _ = written_off(later, approved())
    assert (then[1].charge_at, then[1].remind_at) == (None, None)


@pytest.mark.parametrize(("amount", "back"), [(4000, 0), (6000, 1000), (10_000, 2500)])
def test_a_refund_of_a_written_off_installment_reduces_the_losses_by_the_same_amount(
    amount: int, back: int
) -> None:
    order, then, lines = written_off(overdue(), approved(captured=10_000))
    outcome = refund(order, then, asked(MovementKind.REFUND, amount), MOVEMENT, AT, ids())
    ledger = [*opened(), *posting.capture(UUID(int=4), 10_000), *lines, *outcome.transfers]
    assert [t.amount for t in outcome.transfers if t.posting == "write_off_reversed"] == [back] * bool(back)
    balances, left = held(ledger), after(then, outcome)
    assert balances.get(LOSS, 0) == lost(left) == 2500 - back
    assert balances.get(OWED, 0) == max(0, 5000 - amount)
    never_negative(ledger)


def never_negative(ledger: list[Transfer]) -> None:
    """Check both balances after each change. A change is all transfers with the same cause."""
    ends = [n for n in range(1, len(ledger)) if ledger[n - 1].cause != ledger[n].cause]
    for end in (*ends, len(ledger)):
        balances = held(ledger[:end])
        assert balances.get(OWED, 0) >= 0
        assert balances.get(LOSS, 0) >= 0


def test_a_void_also_reduces_the_losses_with_its_part_of_the_fee() -> None:
    valid = approved(fee=400, authorization_expires_at=AT + timedelta(days=1))
    order, then, lines = written_off(overdue(400), valid)
    outcome = void(order, then, asked(MovementKind.VOID, 10_000), MOVEMENT, AT, ids())
    assert [t.amount for t in outcome.transfers if t.posting == "write_off_reversed"] == [2600]
    ledger = [*opened(400), *lines, *outcome.transfers]
    never_negative(ledger)
    assert held(ledger) == {Account.CARD_CLEARING: 2600, Account.CONSUMER_REFUND_DUE: -2600}


def payment(amount: int) -> Charge:
    return Charge(charge_id(2), 2, amount, "USD", CARD.token, CARD.brand, CARD.last4)


@pytest.mark.parametrize("meanwhile", [0, 900])
def test_a_later_payment_is_posted_as_a_recovery_of_the_remaining_loss(meanwhile: int) -> None:
    order, then, lines = written_off(overdue(0, 2), approved(captured=10_000))
    order = replace(order, charging=charge_id(2))
    ledger = [*opened(), *posting.capture(UUID(int=4), 10_000), *lines]
    if meanwhile:
        back = refund(order, then, asked(MovementKind.REFUND, 5000 + meanwhile), MOVEMENT, AT, ids())
        order, then, ledger = back.order, after(then, back), [*ledger, *back.transfers]
    outcome = collection.paid(order, then, payment(2500), ZONE, AT, ids())
    assert [t.amount for t in outcome.transfers if t.posting == "recovery"] == [2500 - meanwhile]
    ledger += outcome.transfers
    never_negative(ledger)
    assert LOSS not in held(ledger)
    paid = after(then, outcome)[1]
    assert (paid.state, paid.written_off_at, paid.returned) == ("paid", AT, meanwhile)


def test_a_new_card_is_not_charged_automatically_for_a_written_off_installment() -> None:
    lost_card = [replace(item, failures=1) if item.number > 1 else item for item in plan()]
    order, then, _ = written_off(lost_card, approved())
    assert needs_card(then)
    outcome = new_card.change_card(order, then, CARD, ZONE, AT, ids())
    changed = after(then, outcome)
    assert [item.charge_at for item in changed] == [None, None, AT, AT]
    assert not needs_card([changed[1]])
    assert [item.number for item in changed if item.state == "written_off"] == [2]
