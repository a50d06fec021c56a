"""`GET /events`, `GET /events/{eventId}`, its deliveries, and sending events again."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.merchant import Merchant
from cuota.core.refusal import Code, FieldError, Refused
from cuota.db import deliveries, events
from cuota.db.deliveries import Delivery, Tried
from cuota.db.documents import encode
from cuota.db.events import OWN_ADDRESS, Place
from cuota.flows.context import Context
from cuota.flows.move_money import timestamp
from cuota.flows.replay_webhooks import place_of, replay
from cuota.flows.show_event import event_body
from cuota.web.body import parse_object, read_bytes, require_json
from cuota.web.fields import WrongField, text
from cuota.web.service import merchant_of, service_of

MOST = 100


def _invalid(field: str, message: str) -> Refused:
    error = FieldError(field, "invalid", message)
    return Refused(Code.VALIDATION_FAILED, f"{field} {message}.", errors=(error,))


async def event_list(request: Request) -> Response:
    """The feed after an event: the same bodies as the webhooks', oldest first."""
    merchant = await merchant_of(request)
    context = service_of(request).context
    limit = _limit(request.query_params.get("limit"))
    after = request.query_params.get("after")
    position = (await place_of(context, merchant.merchant_id, after)).position if after else 0
    places = await events.page(context.pool, merchant.merchant_id, position, limit + 1)
    bodies = await _bodies(context, merchant, places[:limit])
    more = b"true" if len(places) > limit else b"false"
    content = b'{"events":[' + b",".join(bodies) + b'],"hasMore":' + more + b"}"
    return Response(content, media_type="application/json")


def _limit(given: str | None) -> int:
    if given is None:
        return 20
    if not given.isascii() or not given.isdigit() or not 1 <= int(given[:9]) <= MOST:
        raise _invalid("limit", f"must be a whole number from 1 to {MOST}")
    return int(given)


async def _bodies(context: Context, merchant: Merchant, places: list[Place]) -> list[bytes]:
    ids = list({place.order_id for place in places})
    facts = await events.facts(context.pool, merchant.merchant_id, ids)
    sandbox = context.settings.sandbox
    return [event_body(facts[place.order_id], place.sequence, sandbox=sandbox) for place in places]


async def event_item(request: Request) -> Response:
    """One event."""
    merchant = await merchant_of(request)
    context = service_of(request).context
    place = await place_of(context, merchant.merchant_id, request.path_params["event_id"])
    (body,) = await _bodies(context, merchant, [place])
    return Response(body, media_type="application/json")


async def event_deliveries(request: Request) -> Response:
    """How an event stands with each receiver, and every attempt."""
    merchant = await merchant_of(request)
    context = service_of(request).context
    place = await place_of(context, merchant.merchant_id, request.path_params["event_id"])
    found, tried = await deliveries.of_event(
        context.pool, merchant.merchant_id, place.order_id, place.sequence
    )
    content = [_delivery(item, [one for one in tried if one.receiver == item.receiver]) for item in found]
    return Response(encode({"deliveries": content}), media_type="application/json")


def _delivery(item: Delivery, tried: list[Tried]) -> dict[str, Any]:
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
            for one in tried
        ],
    }


async def event_replay(request: Request) -> Response:
    """Send one event again, to every receiver that it has."""
    merchant = await merchant_of(request)
    context = service_of(request).context
    again = await replay(context, merchant.merchant_id, event=request.path_params["event_id"])
    return Response(encode({"replayed": again}), media_type="application/json")


async def replay_range(request: Request) -> Response:
    """Send a range of events again: those after `after` up to and with `until`, both event ids, both optional."""
    merchant = await merchant_of(request)
    require_json(request)
    body = parse_object(await read_bytes(request))
    after, until = bound(body, "after"), bound(body, "until")
    again = await replay(service_of(request).context, merchant.merchant_id, after=after, until=until)
    return Response(encode({"replayed": again}), media_type="application/json")


def bound(body: dict[str, Any], name: str) -> str | None:
    """An event id that bounds a range, or None."""
    given = body.get(name)
    if given is None:
        return None
    try:
        checked: str = text(1, 100)(given)
    except WrongField as wrong:
        raise _invalid(name, str(wrong)) from None
    return checked
