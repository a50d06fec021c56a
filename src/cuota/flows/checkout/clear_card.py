"""A virtual card moves its order's money: a capture captures the order, a reversal voids it, a refund refunds it.

There are three separate commits: the card network reserves the amount (pending), the order applies it under the
clearing's id, and the network records the result (done). If the process dies in between, the clearing stays pending.
Then a repeated request with the same reference continues it, or the background job does after the lease has ended. The
order knows the clearing's id, so nothing is applied twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg

from cuota.core import money
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.order.order import Order, Status
from cuota.core.refusal import Code, Refused
from cuota.db.order import orders
from cuota.db.pool import CONNECT_SECONDS, HANGS_SECONDS, WAIT_SECONDS
from cuota.flows.afterwards import afterwards
from cuota.flows.context import Context
from cuota.flows.order.capture_order import capture_order
from cuota.flows.order.refund_order import refund_order
from cuota.flows.order.void_order import void_order
from cuota.rails.card_network import LEASE, Authorization, CardNetwork, Clearing, NetworkCard, Presented

# The limit leaves room for `card-` within the 100 characters of a movement's reference.
LONGEST_REFERENCE = 95
BATCH = 50
assert LEASE.total_seconds() > WAIT_SECONDS + CONNECT_SECONDS + HANGS_SECONDS
_KINDS = {"capture": MovementKind.CAPTURE, "reverse": MovementKind.VOID, "refund": MovementKind.REFUND}
_APPLY = {
    MovementKind.CAPTURE: capture_order,
    MovementKind.VOID: void_order,
    MovementKind.REFUND: refund_order,
}
_OVER = {
    "capture": Code.CAPTURE_EXCEEDS_AUTHORIZED,
    "reverse": Code.VOID_EXCEEDS_UNCAPTURED,
    "refund": Code.REFUND_EXCEEDS_CAPTURED,
}
# After these refusals, it is unknown whether the order applied the clearing, so the call is repeated.
_UNKNOWN = {Code.UNAVAILABLE, Code.IDEMPOTENCY_IN_PROGRESS, Code.INTERNAL_ERROR}
log = logging.getLogger("cuota.work")


def network_of(context: Context) -> CardNetwork:
    """Return the sandbox's card network; raise Refused(not_found) if there is none."""
    if context.rails.card_network is None or not context.settings.sandbox:
        raise Refused(Code.NOT_FOUND, "There is nothing at this path. The API is described at /docs.")
    return context.rails.card_network


async def authorize_card(
    context: Context, card: Presented, amount: int, merchant_id: UUID | None, reference: str | None
) -> Authorization | None:
    """Authorize a payment with a virtual card. Return None for a number that was never issued.

    Raises Refused if the reference was used for another amount.
    """
    network = network_of(context)
    issued = await network.find(card)
    if issued is None:
        return None
    if not issued.fits or merchant_id not in {None, issued.merchant_id}:
        # The stored response contains the authorization's id, which is a secret. Somebody who knows only the card number
        # must not get it.
        reference = None
    earlier = await network.earlier(issued.key, reference) if reference is not None else None
    if earlier is None:
        found = await orders.read_with_plan(context.pool, issued.merchant_id, issued.order_id)
        reason = "order_expired" if found is None else _no(context, issued, found.order, amount, merchant_id)
        async with context.lock(issued.order_id):
            earlier = await network.authorize(issued.key, amount, reason, reference)
    if earlier.amount != amount:
        raise _reused()
    return earlier


def _no(
    context: Context, issued: NetworkCard, order: Order, amount: int, merchant_id: UUID | None
) -> str | None:
    now = context.now()
    ended = order.authorization_expires_at is not None and now >= order.authorization_expires_at
    if not issued.fits:
        return "incorrect_details"
    if merchant_id is not None and merchant_id != issued.merchant_id:
        return "wrong_merchant"
    if (now.year, now.month) > (issued.year, issued.month):
        return "expired_card"
    if order.status is not Status.APPROVED or order.lapsed or (order.capturable and ended):
        return "order_expired"
    if order.voided == order.amount:
        return "order_voided"
    return "exceeds_limit" if amount > order.amount - order.voided else None


def _reused() -> Refused:
    return Refused(
        Code.IDEMPOTENCY_KEY_REUSED,
        "This reference was already used for another amount. Use a new reference.",
    )


async def clear_card(
    context: Context, authorization_id: UUID, kind: str, reference: str, amount: int | None
) -> Clearing:
    """Capture, reverse or refund.

    With `amount` None, take the whole remaining amount. A repeated reference gives the same result.

    Raises Refused. Except after a code in `_UNKNOWN`, nothing was applied, and the reference can be used again.
    """
    network = network_of(context)
    clearing = await network.clearing(authorization_id, kind, reference)
    if clearing is None:
        clearing = await _begin(context, network, authorization_id, kind, reference, amount)
    else:
        if amount is not None and amount != clearing.amount:
            raise _reused()
        if clearing.state == "done":
            return clearing
        clearing = replace(clearing, lease=uuid4())
        if not await network.take_over(clearing, clearing.lease, context.now()):
            raise _in_progress()
    await _finish(context, network, clearing)
    return replace(clearing, state="done")


async def _begin(
    context: Context,
    network: CardNetwork,
    authorization_id: UUID,
    kind: str,
    reference: str,
    amount: int | None,
) -> Clearing:
    left = await network.left(authorization_id, kind)
    if left is None:
        raise Refused(Code.NOT_FOUND, "There is no such approved authorization.")
    merchant_id, order_id, most = left
    asked = most if amount is None else amount
    clearing = Clearing(
        context.new_id(), authorization_id, kind, reference, asked, "pending", uuid4(), merchant_id, order_id
    )
    try:
        async with context.lock(order_id):
            begun = 0 < asked <= most and await network.begin(clearing, context.now())
    except asyncpg.UniqueViolationError:
        # The same reference arrived twice at the same moment.
        raise _in_progress() from None
    if not begun:
        message = f"Only {money.text_of(most)} of this authorization can be taken by a {kind}."
        raise Refused(_OVER[kind], message)
    return clearing


def _in_progress() -> Refused:
    return Refused(
        Code.IDEMPOTENCY_IN_PROGRESS,
        "Another request with this reference is in progress. Try again shortly.",
        retry_after=1,
    )


async def _finish(context: Context, network: CardNetwork, clearing: Clearing) -> None:
    """Apply the clearing to the order. Raises Refused; a final refusal deletes the clearing."""
    kind = _KINDS[clearing.kind]
    asked = MovementRequest(kind, f"card-{clearing.reference}", clearing.amount)
    ours = replace(context, new_id=_first(clearing.clearing_id, context.new_id))
    try:
        await _APPLY[kind](ours, clearing.merchant_id, clearing.order_id, asked, None)
    except Refused as refused:
        if refused.code not in _UNKNOWN:
            with afterwards("that a clearing was refused"):
                await network.dropped(clearing)
        raise
    # If this fails, the clearing stays pending, and the background job finds that the order has applied it.
    with afterwards("that a clearing was applied"):
        await network.done(clearing)


def _first(movement_id: UUID, then: Callable[[], UUID]) -> Callable[[], UUID]:
    """Return a source of ids whose first id is `movement_id`.

    The movement is stored under the clearing's id, so a repeated call finds it and knows that it was applied.
    """
    first = [movement_id]
    return lambda: first.pop() if first else then()


async def finish_clearings(context: Context) -> int:
    """Continue clearings that stayed pending, as a background job. Return how many were claimed."""
    network = context.rails.card_network
    if network is None:
        return 0
    due = await network.due(context.now(), BATCH)
    for clearing in due:
        try:
            await _finish(context, network, clearing)
        except Refused as refused:
            facts = {"orderId": str(clearing.order_id), "code": refused.code}
            log.warning("card clearing refused", extra={"facts": facts})
    return len(due)
