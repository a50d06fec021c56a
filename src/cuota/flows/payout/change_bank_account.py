"""A merchant's bank account: set it, change it after a delay, or withdraw a change.

The owners of the merchant's dashboard get an e-mail about each of these. The e-mail is queued in the same transaction as the change.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from cuota.core.order.event import Event
from cuota.core.payout.bank_account import CHANGE_DELAY, BankAccount, BankDetails
from cuota.db.payout import bank_accounts
from cuota.db.payout.bank_accounts import ToldBy
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import OPERATOR, Actor
from cuota.flows.merchant.seal_bank_account import seal
from cuota.flows.onboarding.change_checklist import note_change

CHANGED_BEFORE = "Your first click already made this change. Nothing was changed twice."


@dataclass(frozen=True, slots=True)
class BankStanding:
    """A merchant's accounts. `pending` is a change that has not taken effect yet; `paused_since` is set while payouts are paused."""

    in_force: BankAccount | None
    pending: BankAccount | None
    earlier: tuple[BankAccount, ...]
    paused_since: datetime | None


async def change_bank_account(
    context: Context,
    merchant_id: UUID,
    details: BankDetails,
    actor: Actor = OPERATOR,
    account_id: UUID | None = None,
) -> datetime:
    """Store an account and return when it takes effect: the first one now, a change after CHANGE_DELAY.

    A change that has not taken effect yet is replaced. The merchant gets the event bank_account.changed at once. `account_id` is
    the id that a form has: a second click changes nothing, and raises BadChange.
    """
    sealed = seal(context.vault, account_id or context.new_id(), details)
    try:
        effective_at = await bank_accounts.change(
            context.pool, merchant_id, sealed, context.now(), CHANGE_DELAY, _told(actor)
        )
    except asyncpg.UniqueViolationError:
        raise BadChange(CHANGED_BEFORE) from None
    context.happened(Event("bank_account.changed", 0))
    # If the operator has accepted another account, this one must be checked.
    await note_change(context, merchant_id)
    return effective_at


def _told(actor: Actor) -> ToldBy:
    return ToldBy("" if actor == OPERATOR else actor.words, actor.address, utc_now())


async def cancel_change(context: Context, merchant_id: UUID, actor: Actor = OPERATOR) -> str | None:
    """Withdraw a change that has not taken effect. Return the account's last four digits, or None if there is no change."""
    last4 = await bank_accounts.withdraw_change(context.pool, merchant_id, context.now(), _told(actor))
    if last4 is not None:
        context.happened(Event("bank_account.changed", 0))
        await note_change(context, merchant_id)
    return last4


async def read_standing(context: Context, merchant_id: UUID) -> BankStanding:
    """Return a merchant's accounts as of now."""
    now = context.now()
    found = await bank_accounts.read_all(context.pool, merchant_id)
    begun = [each for each in found if each.effective_at is not None and each.effective_at <= now]
    coming = [each for each in found if each.effective_at is not None and each.effective_at > now]
    in_force = max(begun, key=lambda each: (each.effective_at, each.created_at), default=None)
    return BankStanding(
        in_force,
        coming[-1] if coming else None,
        tuple(each for each in begun if each is not in_force),
        await bank_accounts.paused_since(context.pool, merchant_id),
    )


async def resume_payouts(context: Context) -> int:
    """Let payouts continue for merchants that have another account in force since a payout came back.

    Return how many merchants there were.
    """
    now = context.now()

    async def resume(merchant_id: UUID) -> int:
        return await bank_accounts.resume(context.pool, merchant_id, now)

    return await context.each_apart(
        "resumption of payouts", await bank_accounts.to_resume(context.pool, now), resume
    )
