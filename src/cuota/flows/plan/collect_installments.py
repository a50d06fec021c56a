"""Plans are collected: reminders ahead, the charge on its day, another try after a failed one."""

from __future__ import annotations

from uuid import UUID

from cuota.core.checkout.ending import Charging
from cuota.core.order.order import Order
from cuota.core.order.outcome import Charge, Outcome
from cuota.core.plan import collection
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.plan import plans
from cuota.db.plan.charges import PendingCharge
from cuota.db.plan.plans import Agreed
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.plan import charge_card
from cuota.flows.plan.charge_card import RecordAnswer
from cuota.flows.settle import settle
from cuota.rails.card import CardAnswer


class _NothingToDo(Exception):  # noqa: N818 - a fact: somebody was quicker
    pass


class _Recorded(Exception):  # noqa: N818 - a fact: by the worker, or by a save whose answer was lost
    pass


class _Plan:
    """Reads a plan for `settle`, and keeps what the decision needs besides the order: its zone and its card."""

    def __init__(self, merchant_id: UUID, order_id: UUID) -> None:
        self._ids = (merchant_id, order_id)
        self._agreed: Agreed | None = None

    async def read(self, session: Session) -> Found | None:
        self._agreed = await plans.read(session, *self._ids)
        return None if self._agreed is None else self._agreed.found

    @property
    def agreed(self) -> Agreed:
        assert self._agreed is not None
        return self._agreed


async def collect(context: Context, merchant_id: UUID, order_id: UUID) -> None:
    """Do what is due for a plan now: remind, or charge its card. What somebody else is at is left to them."""
    plan, charge_id = _Plan(merchant_id, order_id), context.new_id()

    def decide(found: Found) -> Outcome:
        now, agreed = context.now(), plan.agreed
        outcome = collection.remind(found.order, found.plan, agreed.zone, now, context.new_id)
        if outcome is None:
            outcome = collection.give_up(found.order, found.plan, agreed.zone, now, context.new_id)
        if outcome is None:
            outcome = collection.begin(found.order, found.plan, None, agreed.card, charge_id, now)
        if outcome is None:
            outcome = collection.reschedule(found.order, found.plan, now)
        if outcome is None:
            raise _NothingToDo
        return outcome

    try:
        outcome = await settle(context, merchant_id, order_id, plan.read, decide)
        if outcome.charge is not None:
            await ask_for(context, merchant_id, order_id, outcome.charge)
    except (_NothingToDo, collection.CardBusy, Charging):
        return


async def pay_now(context: Context, merchant_id: UUID, order_id: UUID, number: int, expected: int) -> Order:
    """The consumer pays one installment now with the plan's card; answers the order as it then is.

    `expected` is what they were shown, in cents. Raises CardBusy, NothingOwed (also where it is another amount by now),
    or Charging where the rail has not answered yet.
    """
    plan, charge_id = _Plan(merchant_id, order_id), context.new_id()

    def decide(found: Found) -> Outcome:
        outcome = collection.begin(
            found.order, found.plan, number, plan.agreed.card, charge_id, context.now()
        )
        assert outcome is not None
        assert outcome.charge is not None
        if outcome.charge.amount != expected:
            raise collection.NothingOwed
        return outcome

    outcome = await settle(context, merchant_id, order_id, plan.read, decide)
    assert outcome.charge is not None
    return await ask_for(context, merchant_id, order_id, outcome.charge)


async def ask_for(context: Context, merchant_id: UUID, order_id: UUID, charge: Charge) -> Order:
    """Ask the rail for a charge that is written down."""
    return await charge_card.ask(context, charge, _recorder(context, merchant_id, order_id, charge))


async def finish_collection(
    context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge
) -> bool:
    """The worker's way for a charge without an answer. False where the rail still has none."""
    record = _recorder(context, merchant_id, order_id, pending.charge)
    return await charge_card.look_up(context, pending.charge, record)


def _recorder(context: Context, merchant_id: UUID, order_id: UUID, charge: Charge) -> RecordAnswer:
    plan = _Plan(merchant_id, order_id)

    async def record(answer: CardAnswer) -> Order:
        def decide(found: Found) -> Outcome:
            if found.order.charging != charge.charge_id:
                raise _Recorded
            now, new_id = context.now(), context.new_id
            if answer.approved:
                return collection.paid(found.order, found.plan, charge, plan.agreed.zone, now, new_id)
            reason = answer.reason or "card_declined"
            return collection.failed(found.order, found.plan, charge, reason, plan.agreed.zone, now, new_id)

        try:
            return (await settle(context, merchant_id, order_id, plan.read, decide)).order
        except _Recorded:
            return plan.agreed.found.order

    return record


async def wait_longer(context: Context, merchant_id: UUID, order_id: UUID, charge_id: UUID) -> None:
    """The rail has no answer yet: others have their turn before it is asked again."""

    async def read(session: Session) -> Found | None:
        return await orders.read_with_plan(session, merchant_id, order_id)

    def decide(found: Found) -> Outcome:
        if found.order.charging != charge_id:
            raise _Recorded
        return collection.wait_longer(found.order, context.now())

    try:
        await settle(context, merchant_id, order_id, read, decide)
    except _Recorded:
        return
