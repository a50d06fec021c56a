"""What card processors report: receive it, fetch what was never delivered, and apply each event once.

An event is a hint. The truth about a charge is what `find_charge` says, so events may arrive in any order, late, or never.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from cuota.core.order.order import Status
from cuota.core.plan.card_event import CardEvent, CardEventKind
from cuota.core.refusal import Refused
from cuota.db.order import orders
from cuota.db.plan import card_events, charges
from cuota.db.plan.card_events import ClaimedEvent
from cuota.flows.checkout.submit_checkout import finish_charge
from cuota.flows.context import Context, utc_now
from cuota.flows.plan.collect_installments import finish_collection
from cuota.rails.unavailable import RailUnavailable

BATCH = 50
# Seconds between two fetches of what was never delivered.
FETCH_EVERY = 120.0
# Fetch again what is younger than this: processors list events a little late, and not always in order.
OVERLAP = timedelta(hours=1)
FIRST = datetime(2020, 1, 1, tzinfo=UTC)
FETCH_TURN = timedelta(minutes=2)
LONGEST_WAIT = timedelta(hours=1)
log = logging.getLogger("cuota.work")


async def receive_event(context: Context, rail: str, event: CardEvent) -> bool:
    """Store an event, to be applied by a worker. Return False if it was stored before, or is not about one of our orders."""
    if event.merchant_id is None or event.order_id is None:
        return False
    return await card_events.store(context.pool, rail, event, utc_now())


async def fetch_events(context: Context) -> int:
    """Fetch what every rail's processor has reported, as a background job. Return how many events were new."""
    return sum([await _fetch(context, name) for name in context.rails.card.by_name])


async def _fetch(context: Context, name: str) -> int:
    now = utc_now()
    since = await card_events.take_fetch_turn(context.pool, name, FIRST, now, now + FETCH_TURN)
    if since is None:
        return 0
    try:
        events = await context.rails.card.events_since(name, max(FIRST, since - OVERLAP))
    except RailUnavailable as problem:
        await card_events.fetch_failed(context.pool, name, utc_now(), str(problem)[:200])
        return 0
    new = sum([await receive_event(context, name, event) for event in events])
    until = max((event.at for event in events), default=since)
    await card_events.fetched(context.pool, name, until, utc_now())
    return new


async def apply_events(context: Context) -> int:
    """Apply the events that were not applied yet, as a background job. Return how many were claimed."""
    claimed = await card_events.claim(context.pool, utc_now(), BATCH)
    for event in claimed:
        facts = {
            "rail": event.rail,
            "eventId": event.event_id,
            "kind": str(event.kind),
            "orderId": str(event.order_id),
        }
        try:
            await _apply(context, event)
        except (Refused, RailUnavailable):
            log.warning("card event waits", extra={"facts": facts})
        except Exception:
            # An event that fails must not delay the others.
            log.exception("card event failed", extra={"facts": facts})
        else:
            await card_events.applied(context.pool, event)
            continue
        wait = min(timedelta(seconds=10) * 2 ** min(event.tries, 10), LONGEST_WAIT)
        await card_events.later(context.pool, event, utc_now() + wait)
    return len(claimed)


async def _apply(context: Context, event: ClaimedEvent) -> None:
    if event.kind is CardEventKind.CHARGE_CHANGED:
        await _look_up(context, event)
    elif event.kind is CardEventKind.CARD_UPDATED:
        await card_events.renew_card(context.pool, event)
    elif event.kind in {CardEventKind.REFUND_FAILED, CardEventKind.REFUNDED_ELSEWHERE}:
        # The books do not change by themselves: `cuota rails` lists it for an operator.
        facts = {"kind": str(event.kind), "orderId": str(event.order_id), "eventId": event.event_id}
        log.warning("a card refund needs an operator", extra={"facts": facts})


async def _look_up(context: Context, event: ClaimedEvent) -> None:
    """Look the event's charge up now, if it still has no final answer. If it has none yet, a later look-up finds it."""
    ids = (event.merchant_id, event.order_id)
    pending = await charges.pending(context.pool, *ids)
    if pending is None or pending.charge.charge_id != event.charge_id:
        return
    found = await orders.read_with_plan(context.pool, *ids)
    if found is not None:
        finish = finish_charge if found.order.status is Status.CREATED else finish_collection
        await finish(context, *ids, pending)
