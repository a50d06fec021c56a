"""All messages that were sent to a consumer, newest first. They are masked until a person with the right reveals them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.consumer import Consumer
from cuota.core.operator.role import OperatorAction
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import OperatorNote, log_action
from cuota.flows.plan.read_messages import read_messages
from cuota.web.pages.operator.consumers import CONSUMERS, find_consumer
from cuota.web.pages.operator.message_list import shown_messages
from cuota.web.pages.operator.parts import ListPage
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import OperatorDesk, allowed, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

A_PAGE = 20


@allowed(OperatorAction.READ_CONSUMERS)
async def messages(request: Request, desk: OperatorDesk) -> Response:
    """List the messages, 20 on a page, with masked texts."""
    return await _page(request, desk, await find_consumer(request))


@allowed(OperatorAction.READ_CONSUMERS, OperatorAction.REVEAL_CONSUMERS)
async def reveal(request: Request, desk: OperatorDesk) -> Response:
    """Show this page of the messages once, unmasked. The log records the person and the reason."""
    found = await find_consumer(request)
    if errors := await prove(request, desk):
        return await _page(request, desk, found, errors)
    try:
        reason = reason_of(desk.form.get("reason", ""))
    except BadTeam as bad:
        return await _page(request, desk, found, {bad.name: str(bad)})
    note = OperatorNote("consumer.messages", f"Consumer {found.consumer_id}", reason, found.consumer_id)
    await log_action(service_of(request).context, desk.actor, note)
    return await _page(request, desk, found, revealed=True)


async def _page(
    request: Request,
    desk: OperatorDesk,
    found: Consumer,
    errors: dict[str, str] | None = None,
    *,
    revealed: bool = False,
) -> Response:
    address = f"{CONSUMERS}/{found.consumer_id}/messages"
    at = ListPage.of(request, address)
    held = await read_messages(service_of(request).context, found.consumer_id, at.after, A_PAGE + 1)
    shown: PageContext = {
        **common(request, desk, "Messages to the consumer", here=CONSUMERS),
        "messages": shown_messages(held[:A_PAGE], revealed=revealed),
        "pages": [
            {"address": link, "label": label}
            for link, label in at.links(held, A_PAGE, lambda each: (each.created_at, each.message_id))
        ],
        "address": f"{address}?{request.url.query}" if request.url.query else address,
        "consumer_address": f"{CONSUMERS}/{found.consumer_id}",
        "can_reveal": desk.may(OperatorAction.REVEAL_CONSUMERS) and not revealed and bool(held),
    }
    if errors:
        return page(request, "operator/messages.html", failed(shown, errors, desk.form), status=400)
    return page(request, "operator/messages.html", shown)
