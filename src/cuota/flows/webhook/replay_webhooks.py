"""Sends events again: one event, a range of the feed, or all events of one endpoint."""

from __future__ import annotations

from uuid import UUID

from cuota.core.refusal import Code, FieldError, Refused
from cuota.db.desk.webhooks import PARKED_FOR
from cuota.db.pool import BUSY, GONE, unavailable
from cuota.db.webhook import events, replays
from cuota.db.webhook.events import FeedPosition
from cuota.flows.context import Context
from cuota.flows.desk.record import AuditNote, Cause, record
from cuota.flows.webhook.manage_endpoints import endpoint_not_found, find
from cuota.flows.webhook.show_event import parse_event_id

PARTLY = "Only some of these events will be sent again. Send the request again: your receiver recognizes repeated events by their webhook-id."


async def place_of(context: Context, merchant_id: UUID, name: str) -> FeedPosition:
    """Return the position of an event of this merchant; raise Refused(not_found), also for another merchant's event."""
    parsed = parse_event_id(name)
    position = await events.position(context.pool, merchant_id, *parsed) if parsed else None
    if parsed is None or position is None:
        raise Refused(Code.NOT_FOUND, "There is no such event. GET /events lists yours.")
    return FeedPosition(position, *parsed)


async def position_of(context: Context, merchant_id: UUID, field: str, name: str) -> int:
    """Return the position of the event that bounds a range; raise Refused(validation_failed), which names the field."""
    try:
        return (await place_of(context, merchant_id, name)).position
    except Refused:
        message = "must be the id of one of your events, as GET /events lists them"
        errors = (FieldError(field, "invalid", message),)
        raise Refused(Code.VALIDATION_FAILED, f"{field} {message}.", errors=errors) from None


async def replay(
    context: Context,
    merchant_id: UUID,
    event: str | None = None,
    endpoint: str | None = None,
    after: str | None = None,
    until: str | None = None,
    cause: Cause | None = None,
) -> int:
    """Replay events and return how many deliveries will be sent.

    `after` and `until` are event ids; `until` is included, `after` is not. With a `cause`, the replay is written to the
    merchant's audit log before anything is sent. Without one, the caller writes the entry.
    """
    low = await position_of(context, merchant_id, "after", after) if after else 0
    high = await position_of(context, merchant_id, "until", until) if until else replays.LAST
    if event:
        one = (await place_of(context, merchant_id, event)).position
        low, high = max(low, one - 1), min(high, one)
    receiver = None
    if endpoint is not None:
        try:
            receiver = (await find(context, merchant_id, UUID(endpoint))).endpoint_id
        except ValueError:
            raise endpoint_not_found() from None
    if cause is not None:
        words = f"Event {event}" if event else f"Events after {after or 'the first'}, until {until or 'now'}"
        note = AuditNote(
            "webhooks.replay", words, cause.reason, after={"endpoint": endpoint} if endpoint else None
        )
        await record(context, merchant_id, cause.actor, note)
    if high == replays.LAST:
        high = await events.last_position(context.pool, merchant_id)
    return await _in_parts(context, merchant_id, receiver, low, high)


async def replay_parked(context: Context, merchant_id: UUID, cause: Cause) -> int:
    """Send again what was parked within PARKED_FOR, to all receivers, and return how many deliveries. The audit log is written first.

    The count includes deliveries that another call sends at the same moment.
    """
    note = AuditNote("webhooks.replay", f"Deliveries parked in the last {PARKED_FOR.days} days", cause.reason)
    await record(context, merchant_id, cause.actor, note)
    now, replayed = context.now(), 0
    while sent := await replays.send_parked(context.pool, merchant_id, now, now - PARKED_FOR):
        replayed += sent
    return replayed


async def _in_parts(context: Context, merchant_id: UUID, receiver: UUID | None, low: int, high: int) -> int:
    """Replay a range, however long, by statements that each end in time."""
    replayed = 0
    for after in range(low, high, replays.POSITIONS_AT_ONCE):
        until = min(after + replays.POSITIONS_AT_ONCE, high)
        try:
            replayed += await replays.send_again(
                context.pool, merchant_id, context.now(), receiver=receiver, after=after, until=until
            )
        except (Refused, *BUSY, *GONE):
            if after == low:
                raise
            raise unavailable(PARTLY) from None
    return replayed
