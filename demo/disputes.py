"""The staff's page of a dispute: the buyer's statement, and the shop's answer.

A webhook reports a new dispute to the shop. The shop reads a dispute from the provider only after such a webhook, so an order
without a dispute needs no call.
"""

from __future__ import annotations

import uuid

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cuota.client import Dispute

from . import words
from .money import from_json
from .payments import PaymentError
from .records import WebhookEvent
from .staff import for_staff
from .store import ShopOrder
from .web import Shop, form, go, page, shop_of

REASONS = {
    "not_received": "It never came",
    "not_as_described": "It is not as described",
    "not_refunded": "It was sent back and not refunded",
    "wrong_amount": "The amount is wrong",
    "not_mine": "Somebody else ordered it",
    "other": "Told to the card's bank",
}
STATES = {
    "open": "Waits for our answer",
    "under_review": "Being decided",
    "won": "Decided for us",
    "lost": "Decided for the buyer",
    "appealed": "Being decided once more",
    "closed": "Over",
}
# The shop's possible actions, by the status of the dispute.
ANSWERS = {
    "open": ("evidence", "accept"),
    "under_review": ("evidence", "accept"),
    "lost": ("appeal",),
    "appealed": ("evidence", "accept"),
}
DONE = {
    "evidence": "The evidence was sent.",
    "accept": "The dispute was accepted. The buyer gets the money back.",
    "appeal": "The appeal was sent.",
}


async def disputes_of(shop: Shop, order_id: str, told: list[WebhookEvent]) -> list[Dispute]:
    """Return the disputes of an order, if webhooks reported any; an empty list if the provider cannot be reached."""
    if not any(event.type.startswith("dispute.") for event in told):
        return []
    try:
        return await shop.payments.disputes(order_id)
    except PaymentError:
        return []


async def show_dispute(request: Request) -> Response:
    """Show one dispute of an order, with all statements."""
    order, dispute = await _found(request)
    answers = ANSWERS.get(dispute.status, ())
    if dispute.kind == "chargeback" or dispute.final:
        answers = tuple(answer for answer in answers if answer != "appeal")
    return page(
        request,
        "dispute.html",
        order=order,
        dispute=dispute,
        amount=from_json(dispute.amount),
        withheld=from_json(dispute.withheld),
        reasons=REASONS,
        states=STATES,
        answers=answers,
        key=str(uuid.uuid4()),
    )


async def answer_dispute(request: Request) -> Response:
    """Send the shop's answer. The form's own key makes a second click harmless."""
    fields = await form(request)
    order, dispute = await _found(request)
    here = f"/orders/{order.number}/disputes/{dispute.dispute_id}"
    answer, text = fields.get("answer", ""), fields.get("text", "").strip()
    try:
        key = str(uuid.UUID(fields.get("key", "")))
    except ValueError:
        raise HTTPException(400) from None
    if answer not in DONE:
        raise HTTPException(400)
    if answer != "accept" and not text:
        return go(request, here, "bad", "Write what happened.")
    try:
        await shop_of(request).payments.answer_dispute(dispute.dispute_id, answer, text, key)
    except PaymentError as error:
        unsure = "The payment provider did not answer. Please try again in a minute."
        return go(request, here, "bad", unsure if error.undecided else words.refused(error))
    return go(request, here, "good", DONE[answer])


async def _found(request: Request) -> tuple[ShopOrder, Dispute]:
    shop = shop_of(request)
    order = shop.store.order(request.path_params["number"])
    if order is None:
        raise HTTPException(404)
    try:
        dispute = await shop.payments.dispute(request.path_params["dispute_id"])
    except PaymentError as error:
        raise HTTPException(503 if error.undecided else 404) from error
    if dispute.order_id != order.provider_order_id:
        raise HTTPException(404)
    return order, dispute


routes = [
    Route("/orders/{number:int}/disputes/{dispute_id:uuid}", for_staff(show_dispute)),
    Route("/orders/{number:int}/disputes/{dispute_id:uuid}", for_staff(answer_dispute), methods=["POST"]),
]
