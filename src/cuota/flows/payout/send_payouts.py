"""Sends payouts to the bank, and looks up their results, outside of any transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

from cuota.core.payout.arrival import business_days_after, day_at_bank, retry_at
from cuota.core.payout.calendar import next_business_day
from cuota.core.payout.payout import PayoutStatus
from cuota.db.payout import holds, queued, sending
from cuota.db.payout.sending import DuePayout
from cuota.db.vault import WrongKey
from cuota.flows.context import Context
from cuota.flows.merchant.seal_bank_account import bound_to
from cuota.flows.payout.settle_payouts import settle_payout
from cuota.rails.bank.protocol import BankAnswer, BankOrder, BankState
from cuota.rails.bank.rails import BoundedBankRail
from cuota.rails.bounded import SECONDS
from cuota.rails.unavailable import RailUnavailable

BATCH = 40
AT_ONCE = 8
# Even the slowest rail finishes a batch before the lease of its claims ends. A payout may need two calls.
assert sending.LEASE.total_seconds() > BATCH / AT_ONCE * 2 * SECONDS
NO_BANK_RAIL = "No bank rail is configured (CUOTA_BANK_RAIL): payouts are not sent and stay `created`."
NEVER_ARRIVED = "the bank does not know this payout, although it was sent"
CLAIMED = "another worker has claimed this payout"
HELD = "the payout is held, and no bank knows it"
REPLACED = "the bank account changed before the bank was asked"
JUST_REPLACED = "the bank account changed within the last hour, and an earlier order may still reach the bank"
UNREADABLE = (
    "the bank account is encrypted with a key that is not in CUOTA_SECRET_KEY or CUOTA_SECRET_KEY_OLD"
)
# An order whose answer was lost may reach the bank late. To give its amount back before that would pay it twice.
ON_ITS_WAY = timedelta(hours=1)
log = logging.getLogger("cuota.work")


async def send_payouts(context: Context) -> int:
    """Handle the payouts that are due. Return how many were claimed; none without a bank rail.

    If there are only kept rails, the payouts that they may have sent are looked up, and none is sent.
    """
    rail = context.rails.bank
    if not context.rails.banks:
        return 0
    claimed = await sending.claim(context.pool, context.now(), BATCH, None if rail is None else rail.name)
    places = asyncio.Semaphore(AT_ONCE)

    async def settle(due: DuePayout) -> None:
        async with places:
            try:
                await _settle_one(context, rail, due)
            except Exception:
                # A payout that fails must not delay the others. Its lease ends, and it is retried.
                log.exception("payout failed", extra={"facts": {"payoutId": str(due.payout_id)}})

    await asyncio.gather(*(settle(due) for due in claimed))
    return len(claimed)


async def _settle_one(context: Context, rail: BoundedBankRail | None, due: DuePayout) -> None:
    try:
        asked, answer = await _ask(context, rail, due)
    except RailUnavailable as problem:
        at = retry_at(due.tries, context.now())
        await sending.later(context.pool, due, at, str(problem)[:200])
        return
    arrival = answer.arrival_date or due.arrival_date
    confirm_by = answer.confirm_by or business_days_after(arrival, asked.patience)
    await sending.expect(context.pool, due, asked.name, confirm_by, arrival)
    await settle_payout(context, replace(due, arrival_date=arrival), answer)


async def _ask(
    context: Context, rail: BoundedBankRail | None, due: DuePayout
) -> tuple[BoundedBankRail, BankAnswer]:
    """Return the bank's answer, and the rail that gave it.

    An earlier attempt may have reached the bank, so the payout is looked up before it is sent again. Only the rail of that attempt
    knows, also if the settings name another rail by now.
    """
    is_first = due.status is PayoutStatus.CREATED and due.tries == 1
    if rail is None or not is_first or due.bank_rail != rail.name:
        for earlier in _rails_of(context, due):
            found = await earlier.find(due.payout_id, due.amount)
            if found is not None:
                return earlier, found
        if due.status is not PayoutStatus.CREATED:
            raise RailUnavailable(NEVER_ARRIVED)
        if rail is None:
            raise RailUnavailable(NO_BANK_RAIL)
    # After an outage, the day of arrival that the payout has had since its closing may be over.
    arrival = max(due.arrival_date, next_business_day(day_at_bank(context.now())))
    is_new = is_first and due.bank_rail == rail.name and arrival == due.arrival_date
    if not is_new:
        await _stop_if_held(context, due, rail)
    if await _is_replaced(context, due):
        return rail, BankAnswer(BankState.REJECTED, due.amount, REPLACED)
    if not is_new and not await sending.assign(context.pool, due, rail.name, arrival):
        raise RailUnavailable(CLAIMED)
    answer = await rail.send(_order(context, due, arrival))
    return rail, replace(answer, arrival_date=answer.arrival_date or arrival)


def _order(context: Context, due: DuePayout, arrival: date) -> BankOrder:
    """Return the order for the bank. Raises RailUnavailable if this process has no key for the account: another machine may have it."""
    bound = bound_to(due.account_id)
    try:
        routing, account = (context.vault.decrypt(each, bound) for each in (due.routing, due.account))
    except WrongKey:
        raise RailUnavailable(UNREADABLE) from None
    return BankOrder(
        due.payout_id, due.merchant_id, due.merchant_name, due.number, due.amount, due.currency, routing, account, arrival
    )  # fmt: skip


async def _is_replaced(context: Context, due: DuePayout) -> bool:
    """Return whether another account is in force, so that the next payout pays the amount of this one, which no bank knows.

    Every order is preceded by this question. So ON_ITS_WAY after the change, all orders to the old account are at the bank or lost.
    Before that, the payout is neither sent nor given back: raises RailUnavailable.
    """
    now = context.now()
    ids = due.merchant_id, due.payout_id
    if not await holds.gives_back(context.pool, *ids, now):
        return False
    if not await holds.gives_back(context.pool, *ids, now - ON_ITS_WAY):
        raise RailUnavailable(JUST_REPLACED)
    return True


async def _stop_if_held(context: Context, due: DuePayout, rail: BoundedBankRail) -> None:
    """Hold a payout that no bank knows, if its merchant's payouts are held by now. Raises RailUnavailable if it must not be sent.

    The beginning of a hold stops only payouts that no worker has claimed, because a claimed one may have reached a bank.
    """
    [payout] = await queued.read(context.pool, [due.payout_id])
    if payout.tries != due.tries:
        raise RailUnavailable(CLAIMED)
    if await queued.must_wait(context.pool, payout):
        await queued.hold(context.pool, payout, context.now(), due.bank_rail or rail.name)
        raise RailUnavailable(HELD)


def _rails_of(context: Context, due: DuePayout) -> Sequence[BoundedBankRail]:
    """Return the rail that may have sent the payout, or all if that is not known. Raises RailUnavailable if it is not loaded."""
    if due.bank_rail is None:
        return context.rails.banks
    named = [rail for rail in context.rails.banks if rail.name == due.bank_rail]
    if not named:
        raise RailUnavailable(
            f"the bank rail {due.bank_rail} is not loaded; name it in CUOTA_BANK_RAILS_KEPT"
        )
    return named
