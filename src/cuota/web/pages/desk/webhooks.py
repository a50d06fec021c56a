"""Webhooks in the merchant's dashboard: endpoints, failing deliveries, the attempts of an event, and sending it again."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.role import Action
from cuota.core.refusal import Refused
from cuota.db.desk import webhooks
from cuota.db.desk.webhooks import ShownDelivery
from cuota.db.webhook import delivery_log, endpoints
from cuota.db.webhook.endpoints import Endpoint
from cuota.db.webhook.events import OWN_ADDRESS
from cuota.flows.desk.record import Cause
from cuota.flows.webhook.replay_webhooks import place_of, replay, replay_parked
from cuota.flows.webhook.show_event import event_id
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.view import common, failed, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

SHOWN = 50
WEBHOOKS = f"{PATH}/webhooks"
PARKED = f"{PATH}/parked"
# The word and the kind of each state that a delivery may have in a list.
DELIVERY_STATES = {
    "pending": ("Waiting", "wait"),
    "delivered": ("Delivered", "done"),
    "parked": ("Parked", "bad"),
    webhooks.DELETED: ("No longer kept", "off"),
}


@allowed(Action.READ_WEBHOOKS)
async def show(request: Request, desk: Desk) -> Response:
    """List the endpoints, and the deliveries that have failed so far."""
    return await webhooks_page(request, desk)


async def webhooks_page(request: Request, desk: Desk, errors: dict[str, str] | None = None) -> Response:
    """Return the page. `errors` are those of the form that adds an endpoint."""
    context = service_of(request).context
    pool = context.pool
    registered = await endpoints.read_all(pool, desk.merchant_id)
    failing = await webhooks.failing(pool, desk.merchant_id, SHOWN)
    # The list of failing deliveries ends at SHOWN, and one endpoint may fill it.
    fails = await webhooks.failing_receivers(pool, desk.merchant_id)
    parked = await webhooks.parked(pool, desk.merchant_id, SHOWN, context.now())
    shown: PageContext = {
        **common(request, desk, "Webhooks", here=WEBHOOKS),
        "endpoints": [endpoint_row(each, fails=each.endpoint_id in fails) for each in registered],
        "may_change": desk.may(Action.CHANGE_WEBHOOKS),
        "asks_code": not desk.fresh,
        "once": str(context.new_id()),
        "rows": [delivery_row(each) for each in failing],
        "parked": [delivery_row(each) for each in parked],
        "most": SHOWN,
        "days": webhooks.PARKED_FOR.days,
        "send_parked": PARKED if desk.may(Action.REPLAY_WEBHOOKS) else None,
    }
    if errors:
        return page(request, "desk/webhooks.html", failed(shown, errors, desk.form), status=400)
    return page(request, "desk/webhooks.html", shown)


def endpoint_row(each: Endpoint, *, fails: bool) -> PageContext:
    """Return the values of one endpoint. `fails` is true if a delivery to it has failed and is retried."""
    word, kind = each.state.capitalize(), "done" if each.state == "active" else "off"
    if each.state == "active" and fails:
        word, kind = "Failing", "bad"
    return {
        "address": f"{PATH}/endpoints/{each.endpoint_id}",
        "id": str(each.endpoint_id),
        "url": each.url,
        "about": each.description,
        "state": {"word": word, "kind": kind},
        "since": when(each.created_at),
    }


def delivery_row(each: ShownDelivery) -> PageContext:
    """Return the values of one delivery in a list."""
    word, kind = DELIVERY_STATES[each.state]
    if each.state == "pending" and each.failed:
        word, kind = f"Failed {each.failed} times" if each.failed > 1 else "Failed once", "bad"
    return {
        "type": each.type or "event of a payout",
        "host": urlsplit(each.url).netloc,
        "own": each.receiver == OWN_ADDRESS,
        "state": {"word": word, "kind": kind},
        "next": when(each.try_at) if each.try_at else None,
        "since": when(each.settled_at) if each.settled_at else None,
        "address": f"{WEBHOOKS}/{event_id(each.order_id, each.sequence)}",
    }


@allowed(Action.READ_WEBHOOKS)
async def event(request: Request, desk: Desk) -> Response:
    """Show the deliveries of one event with every attempt."""
    name = request.path_params["event_id"]
    context = service_of(request).context
    try:
        place = await place_of(context, desk.merchant_id, name)
    except Refused:
        return missing(request)
    log = await delivery_log.of_event(context.pool, desk.merchant_id, place.order_id, place.sequence)
    shown: PageContext = {
        **common(request, desk, "Deliveries of one event", here=WEBHOOKS),
        "event_id": name,
        "address": f"{WEBHOOKS}/{name}",
        "may_send": desk.may(Action.REPLAY_WEBHOOKS) and bool(log.deliveries or not log.complete),
        "complete": log.complete,
        "deliveries": [
            {
                "url": each.url,
                "state": dict(zip(("word", "kind"), DELIVERY_STATES[each.state], strict=True)),
                "next": when(each.try_at) if each.try_at else None,
                "attempts": [
                    {
                        "at": when(one.at),
                        "result": f"status {one.status}" if one.status else one.error or "no answer",
                        "ms": one.ms,
                        "answer": (one.answer or b"").decode("utf-8", "replace")[:500],
                    }
                    for one in log.attempts
                    if one.receiver == each.receiver
                ],
            }
            for each in log.deliveries
        ],
    }
    return page(request, "desk/event.html", shown)


@allowed(Action.READ_WEBHOOKS, Action.REPLAY_WEBHOOKS)
async def send_again(request: Request, desk: Desk) -> Response:
    """Send one event again to each of its receivers."""
    name = request.path_params["event_id"]
    context = service_of(request).context
    try:
        cause = Cause(desk.actor, "sent again by hand")
        replayed = await replay(context, desk.merchant_id, event=name, cause=cause)
    except Refused as refused:
        if refused.retry_after:
            raise
        return missing(request)
    return see_other(f"{WEBHOOKS}/{name}?said={'sent-again' if replayed else 'sent-nowhere'}")


@allowed(Action.READ_WEBHOOKS, Action.REPLAY_WEBHOOKS)
async def send_parked(request: Request, desk: Desk) -> Response:
    """Send all events again that were parked lately."""
    cause = Cause(desk.actor, "parked events sent again by hand")
    replayed = await replay_parked(service_of(request).context, desk.merchant_id, cause)
    return see_other(f"{WEBHOOKS}?said={'parked-again' if replayed else 'none-parked'}")
