"""`/events`: list events, show one event and its deliveries, and send events again (replay)."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cuota.core.instant import timestamp
from cuota.core.merchant import Merchant
from cuota.core.refusal import Code, FieldError, Refused
from cuota.db.order.documents import encode
from cuota.db.webhook import delivery_log, events
from cuota.db.webhook.delivery_log import AttemptRecord, Delivery
from cuota.db.webhook.events import OWN_ADDRESS, AnyFacts, FeedPosition
from cuota.flows.context import Context
from cuota.flows.webhook.replay_webhooks import place_of, position_of, replay
from cuota.flows.webhook.show_event import event_body
from cuota.web import idempotent
from cuota.web.api.cause import cause_of
from cuota.web.api.query import parameters
from cuota.web.api.unknown import shape, with_warnings
from cuota.web.body import parse_object, read_bytes, require_json
from cuota.web.fields import Reader, text
from cuota.web.service import merchant_of, service_of

# The fields of a range of events.
RANGE = shape("after", "until")
MOST = 100
# A page has at most this many bytes, even if `limit` allows more events.
MOST_PAGE_BYTES = 1024 * 1024
# How many events are read at a time. The order of each may have 256 KiB.
READ_AT_ONCE = 20
_LIMIT = re.compile(r"[1-9][0-9]?|100", re.ASCII)


def _invalid(field: str, message: str) -> Refused:
    error = FieldError(field, "invalid", message)
    return Refused(Code.VALIDATION_FAILED, f"{field} {message}.", errors=(error,))


async def event_list(request: Request) -> Response:
    """List the events after a given event, oldest first. Each has the same body as its webhook."""
    merchant = await merchant_of(request)
    context = service_of(request).context
    given = parameters(request, "after", "limit")
    limit, after = _limit(given.get("limit")), given.get("after")
    position = await position_of(context, merchant.merchant_id, "after", after) if after else 0
    places = await events.page(context.pool, merchant.merchant_id, position, limit + 1)
    bodies = await _fitting(context, merchant, places[:limit])
    more = b"true" if len(places) > len(bodies) else b"false"
    content = b'{"events":[' + b",".join(bodies) + b'],"hasMore":' + more + b"}"
    return Response(content, media_type="application/json")


def _limit(given: str | None) -> int:
    if given is None:
        return 20
    if not _LIMIT.fullmatch(given):
        raise _invalid("limit", f"must be a whole number from 1 to {MOST}")
    return int(given)


async def _fitting(context: Context, merchant: Merchant, places: list[FeedPosition]) -> list[bytes]:
    """Return the bodies of as many events as fit into MOST_PAGE_BYTES, but at least one."""
    fitting: list[bytes] = []
    size = 0
    for start in range(0, len(places), READ_AT_ONCE):
        some = places[start : start + READ_AT_ONCE]
        facts = await _facts(context, merchant, some)
        for place in some:
            # An order with thousands of movements makes a large body, which takes long. Only the bodies of this page are made,
            # and other requests run in between.
            await asyncio.sleep(0)
            body = _body(context, facts, place)
            size += len(body) + 1
            if fitting and size > MOST_PAGE_BYTES:
                return fitting
            fitting.append(body)
    return fitting


async def _facts(context: Context, merchant: Merchant, places: list[FeedPosition]) -> dict[UUID, AnyFacts]:
    ids = list({place.order_id for place in places})
    return await events.facts(context.pool, merchant.merchant_id, ids)


def _body(context: Context, facts: dict[UUID, AnyFacts], place: FeedPosition) -> bytes:
    return event_body(facts[place.order_id], place.sequence, sandbox=context.settings.sandbox)


async def event_item(request: Request) -> Response:
    """Return one event."""
    if request.path_params["event_id"] == "replay":
        # The path is /events/replay, which accepts only POST.
        raise HTTPException(405, headers={"Allow": "POST"})
    merchant = await merchant_of(request)
    context = service_of(request).context
    place = await place_of(context, merchant.merchant_id, request.path_params["event_id"])
    body = _body(context, await _facts(context, merchant, [place]), place)
    return Response(body, media_type="application/json")


async def event_deliveries(request: Request) -> Response:
    """Return the state of the event's delivery to each receiver, and all attempts."""
    merchant = await merchant_of(request)
    context = service_of(request).context
    place = await place_of(context, merchant.merchant_id, request.path_params["event_id"])
    log = await delivery_log.of_event(context.pool, merchant.merchant_id, place.order_id, place.sequence)
    content = [
        _delivery(item, [one for one in log.attempts if one.receiver == item.receiver])
        for item in log.deliveries
    ]
    body = encode({"deliveries": content, "complete": log.complete})
    return Response(body, media_type="application/json")


def _delivery(item: Delivery, attempts: list[AttemptRecord]) -> dict[str, Any]:
    return {
        "endpointId": None if item.receiver == OWN_ADDRESS else item.receiver,
        "url": item.url,
        "state": item.state,
        "tries": item.tries,
        "nextTryDateTime": timestamp(item.try_at) if item.try_at else None,
        "settledDateTime": timestamp(item.settled_at) if item.settled_at else None,
        "attempts": [
            {
                "dateTime": timestamp(one.at),
                "status": one.status,
                "milliseconds": one.ms,
                "error": one.error,
                "answer": (one.answer or b"").decode("utf-8", "replace"),
            }
            for one in attempts
        ],
    }


async def event_replay(request: Request) -> Response:
    """Send one event again, to each of its receivers."""
    merchant = await merchant_of(request)
    context, name = service_of(request).context, request.path_params["event_id"]

    async def act() -> bytes:
        return encode(
            {"replayed": await replay(context, merchant.merchant_id, event=name, cause=cause_of(request))}
        )

    return await idempotent.answer_plain(request, merchant.merchant_id, await read_bytes(request), act)


async def replay_range(request: Request) -> Response:
    """Send a range of events again: those after the event `after`, up to and including the event `until`.

    Both are event ids and optional.
    """
    merchant = await merchant_of(request)
    require_json(request)
    body = await read_bytes(request)
    context = service_of(request).context

    async def act() -> bytes:
        fields = parse_object(body)
        after, until = read_range(fields)
        again = await replay(context, merchant.merchant_id, after=after, until=until, cause=cause_of(request))
        return encode(with_warnings({"replayed": again}, fields, RANGE))

    return await idempotent.answer_plain(request, merchant.merchant_id, body, act)


def read_range(body: dict[str, Any]) -> tuple[str | None, str | None]:
    """Read the optional event ids `after` and `until`. Raises Refused with all failures."""
    reader = Reader(lenient=False)
    after, until = (reader.read(body, name, text(1, 100)) for name in ("after", "until"))
    reader.finish()
    return after, until
