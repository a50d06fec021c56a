"""Calls a card rail for a charge that is already recorded, and records the answer. A lost answer is looked up later."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.checkout.ending import Charging
from cuota.core.order.order import Order
from cuota.core.plan.card import PlanCard
from cuota.core.plan.charge import Charge
from cuota.core.plan.declines import is_final
from cuota.core.risk.signal import SignalKind
from cuota.db.plan import charges, declines
from cuota.db.plan.charges import PendingCharge
from cuota.flows.afterwards import DATABASE_FAILED
from cuota.flows.context import Context
from cuota.rails.card.protocol import CardAnswer, CardHolder, CardOutcome, ChargeRequest
from cuota.rails.unavailable import RailUnavailable

RecordAnswer = Callable[[CardAnswer], Awaitable[Order]]
# Given the time of the look-up that did not find a charge, returns whether the charge may be requested again.
AllowRepeat = Callable[[datetime], Awaitable[bool]]
# How long a consumer has to confirm a charge with the bank (3-D Secure). A checkout stays open for an hour by default.
CONFIRM_WITHIN = timedelta(minutes=20)
log = logging.getLogger("cuota.request")


def card_hash(context: Context, fingerprint: str) -> bytes | None:
    """Return the keyed hash by which risk recognizes a card, or None if the card rail gives no fingerprint."""
    return context.vault.hash(f"signal-{SignalKind.CARD}", fingerprint) if fingerprint else None


async def keep_card(context: Context, token: str, holder: CardHolder) -> PlanCard:
    """Set up the card of a browser's token for later charges. Raises RailUnavailable or UnknownToken."""
    kept = await context.rails.card.keep(token, holder)
    return PlanCard(kept.token, kept.brand, kept.last4, card_hash(context, kept.fingerprint))


async def note_decline(context: Context, charge: Charge, answer: CardAnswer) -> None:
    """Record a decline for the card, which counts in all plans.

    This is done before the answer is recorded, so that no decline is lost.
    """
    if answer.approved or charge.card_hash is None:
        return
    hashed = context.vault.hash("card-decline", str(charge.charge_id))
    final = is_final(answer.reason or "")
    await declines.note(context.pool, charge.card_hash, hashed, context.now(), final=final)


async def note_chargeback(context: Context, merchant_id: UUID, order_id: UUID, charge_id: UUID) -> None:
    """Record the card if its owner did not make this charge, and the chargeback was lost. No consumer can enter the card again."""
    card = await charges.stolen_card(context.pool, merchant_id, order_id, charge_id)
    if card is not None:
        hashed = context.vault.hash("card-chargeback", str(charge_id))
        await declines.note_chargeback(context.pool, card, hashed, context.now())


def request_of(
    charge: Charge, merchant_id: UUID, order_id: UUID, return_url: str | None = None
) -> ChargeRequest:
    """Return a recorded charge as the card rail needs it."""
    return ChargeRequest(
        charge.charge_id, charge.card_token, charge.amount, charge.currency, merchant_id, order_id, return_url
    )


async def ask(context: Context, asked: ChargeRequest, record: RecordAnswer) -> Order:
    """Charge the card and record the rail's answer.

    Raises Charging if there is no final answer: it was lost, the consumer must confirm the charge, or the bank has not decided yet. Raises
    Charging too if the answer could not be recorded.
    """
    try:
        answer = await context.rails.card.charge(asked)
    except RailUnavailable:
        raise Charging from None
    if not answer.final:
        raise Charging
    return await _keep(context, asked, answer, record)


async def _keep(context: Context, asked: ChargeRequest, answer: CardAnswer, record: RecordAnswer) -> Order:
    """Record a final answer, and before that the card network's identifier if the processor reports it, so that neither is lost.

    Raises Charging if the database fails. The card may be charged by now, so nobody should try again: the charge is still in
    progress in our records, and a background job looks it up and records its answer.
    """
    ids = (asked.merchant_id, asked.order_id, asked.key)
    try:
        if answer.network_reference:
            await charges.keep_reference(context.pool, *ids, answer.network_reference)
        return await record(answer)
    except DATABASE_FAILED as problem:
        facts = {"orderId": str(asked.order_id), "problem": type(problem).__name__}
        log.warning("answer of a card rail not recorded yet", extra={"facts": facts})
        raise Charging from None


async def look_up(
    context: Context,
    asked: ChargeRequest,
    record: RecordAnswer,
    asked_at: datetime,
    allow_repeat: AllowRepeat,
) -> bool:
    """Look up a charge without a final answer. If the rail does not know the charge, request it again under the same key.

    `allow_repeat` says whether the charge may still be requested. A charge that the consumer has not
    confirmed in CONFIRM_WITHIN is canceled. Returns False if there is no final answer yet.
    """
    looked_up_at = context.now()
    try:
        answer = await context.rails.card.find_charge(asked)
        if answer is None:
            if not await allow_repeat(looked_up_at):
                return False
            await ask(context, asked, record)
            return True
        abandoned = context.now() >= asked_at + CONFIRM_WITHIN
        if answer.outcome is CardOutcome.REQUIRES_ACTION and abandoned:
            answer = await context.rails.card.give_up(asked)
        if not answer.final:
            return False
        await _keep(context, asked, answer, record)
    except (RailUnavailable, Charging):
        return False
    return True


async def look(context: Context, asked: ChargeRequest, record: RecordAnswer) -> str | None:
    """Look up a charge in progress for a page, and record its answer if that is final. This function never charges.

    Return the address at which the consumer confirms the charge, or None if there is nothing to confirm.
    """
    try:
        answer = await context.rails.card.find_charge(asked)
    except RailUnavailable:
        return None
    if answer is None:
        return None
    if answer.final:
        with contextlib.suppress(Charging):
            await _keep(context, asked, answer, record)
    return answer.action_url


async def give_up(context: Context, asked: ChargeRequest, record: RecordAnswer) -> None:
    """Cancel a charge that waits for the consumer, and record how it ended: the consumer may have confirmed it by now."""
    try:
        answer = await context.rails.card.find_charge(asked)
        if answer is not None and answer.outcome is CardOutcome.REQUIRES_ACTION:
            answer = await context.rails.card.give_up(asked)
    except RailUnavailable:
        return
    if answer is not None and answer.final:
        with contextlib.suppress(Charging):
            await _keep(context, asked, answer, record)


def request_again(pending: PendingCharge, merchant_id: UUID, order_id: UUID) -> ChargeRequest:
    """Return a charge without an answer as the card rail needs it, for a look-up."""
    return request_of(pending.charge, merchant_id, order_id)
