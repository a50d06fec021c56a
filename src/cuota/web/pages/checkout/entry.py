"""`GET /checkout/{merchant_id}?token=`: the entry to a checkout. The merchant sends its consumer to this address."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.start import Display, Start
from cuota.core.order.order import Order, Status
from cuota.core.refusal import Refused
from cuota.db.checkout.checkouts import read_by_link, read_end, shown_as
from cuota.db.order import documents
from cuota.flows.checkout.take_step import load, open_checkout, session_key
from cuota.web.ids import guid
from cuota.web.pages.checkout.known_browser import token_of
from cuota.web.pages.checkout.session import (
    FRAMED,
    base_path,
    device_of,
    keep_device,
    secret_of,
    see_other,
    set_secret,
    unknown,
)
from cuota.web.pages.checkout.view import Ended, expired_words, merchant_address
from cuota.web.pages.render import problem
from cuota.web.service import service_of

# The first step, with which a new browser starts. Without `?step=`, the page shows the checkout's current step.
FIRST = "phone"


async def enter(request: Request) -> Response:
    """Open a session, and redirect to an address without the token. A HEAD request opens no session."""
    context = service_of(request).context
    try:
        merchant_id = guid(request.path_params["merchant_id"])
        token = guid(request.query_params.get("token", ""))
    except Refused:
        return unknown(request)
    found = await read_by_link(context.pool, merchant_id, token)
    if found is None:
        return unknown(request)
    request.scope["merchant_id"] = merchant_id
    if request.method == "HEAD":
        return Response(headers={"Cache-Control": "no-store"}, media_type="text/html")
    return await _open(request, *found, token)


async def _open(request: Request, order: Order, start: Start | None, token: UUID) -> Response:
    context = service_of(request).context
    address = base_path(order.merchant_id, order.order_id)
    listening = start is not None and start.in_page and start.origin is not None
    display = _display(request) if listening else None
    if display is Display.IFRAME:
        return await _frame(request, order, token)
    secret = secret_of(request, order.order_id)
    if secret and await load(context, order.merchant_id, order.order_id, secret):
        # The browser already has a session (a second tab, or the Back button), so continue with it.
        if display is not None:
            key = session_key(context, order.merchant_id, order.order_id, secret)
            await shown_as(context.pool, key, display)
        return see_other(address)  # shows the current step
    # In a popup, the pages of the session send the result of the checkout to the merchant's page. Otherwise, a final
    # order gets a separate page, without a session.
    over = None if display is Display.POPUP else await _over(request, order, token, start)
    if over is not None:
        return over
    device = device_of(request)
    opened = await open_checkout(context, order.merchant_id, token, display, device, order_id=order.order_id)
    if opened is None:
        return unknown(request)
    # A remembered browser may see the consumer's card first. Every other browser starts with the phone number.
    response = see_other(address if token_of(request) else f"{address}?step={FIRST}")
    set_secret(request, response, order.order_id, opened[1])
    keep_device(request, response, device)
    return response


async def _over(request: Request, order: Order, token: UUID, start: Start | None) -> Response | None:
    """Return the page for a final order, or None if the order is still open.

    The browser has no session, so the page shows only whether the order's time ran out.
    """
    context = service_of(request).context
    if order.status in {Status.APPROVED, Status.DECLINED}:
        return _finished(request)
    late = order.charging is None and context.now() >= order.expires_at
    if order.status is Status.CREATED and not late:
        return None
    document, left = await read_end(context.pool, order.merchant_id, order.order_id)
    if left:
        return _finished(request)
    ended = Ended(order, token, documents.decode(document), start, left)
    back = merchant_address(ended, success=False, expired=True)
    text = f"{expired_words(order)} Go back to the shop to start again."
    return problem(request, 410, "This checkout expired", text, back=(back, "Back to the shop"))


def _finished(request: Request) -> Response:
    text = "This payment was completed or has ended. Check your order in the shop."
    return problem(request, 410, "This payment is finished", text)


def _display(request: Request) -> Display:
    try:
        return Display(request.query_params.get("display", ""))
    except ValueError:
        return Display.REDIRECT


async def _frame(request: Request, order: Order, token: UUID) -> Response:
    """Open a new session for a frame. Browsers keep no cookie there, so the secret is in the addresses of the pages."""
    context = service_of(request).context
    opened = await open_checkout(context, order.merchant_id, token, Display.IFRAME, order_id=order.order_id)
    if opened is None:
        return unknown(request)
    return see_other(
        f"{base_path(order.merchant_id, order.order_id)}?{urlencode({'step': FIRST, FRAMED: opened[1]})}"
    )
