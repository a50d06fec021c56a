"""Capture, void and refund in the merchant's dashboard: the page first shows the effect, and then the button moves the money.

The flows are those of the API, so these pages cannot do anything that the API would refuse.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.desk.role import Action
from cuota.core.order.movement import Movement, MovementKind, MovementRequest
from cuota.core.order.order import Order
from cuota.core.refusal import Code, Refused
from cuota.db.order import orders
from cuota.db.order.documents import decode
from cuota.flows.context import Context
from cuota.flows.desk.approve_move import (
    CannotApprove,
    ask_approval,
    moved_alone,
    needs_second_person,
    record_alone,
    require_not_asked,
)
from cuota.flows.desk.record import AuditNote, record
from cuota.flows.order.capture_order import capture_order, preview_capture
from cuota.flows.order.move_money import Preview
from cuota.flows.order.refund_order import preview_refund, refund_order
from cuota.flows.order.void_order import preview_void, void_order
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.order_view import amount_left
from cuota.web.pages.desk.preview import preview_values
from cuota.web.pages.desk.team import prove
from cuota.web.pages.desk.view import common, shown
from cuota.web.pages.desk.visit import PATH, Desk, allowed, id_in_path, missing
from cuota.web.pages.items import line_cents
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

ApplyMove = Callable[[Context, UUID, UUID, MovementRequest], Awaitable[Movement]]
PreviewMove = Callable[[Context, UUID, UUID, MovementRequest], Awaitable[Preview]]
# The page makes the reference, so a second click finds the movement of the first click.
_REFERENCE = re.compile(r"desk-[0-9a-f]{12}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,4}", re.ASCII)
NO_REASON = "Say why, in a few words. The audit log keeps the reason."
CHANGED = "The amount has changed. Look at what will happen now, and confirm again."


@dataclass(frozen=True, slots=True)
class MoveForm:
    """The differences between the kinds of movement. `said` is the key of the text after the movement."""

    kind: MovementKind
    label: str
    action: Action
    apply: ApplyMove
    look: PreviewMove
    said: str


async def _capture(context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest) -> Movement:
    return await capture_order(context, merchant_id, order_id, asked)


async def _void(context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest) -> Movement:
    return await void_order(context, merchant_id, order_id, asked)


async def _refund(context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest) -> Movement:
    return await refund_order(context, merchant_id, order_id, asked)


_CAPTURE = MoveForm(MovementKind.CAPTURE, "Capture", Action.CAPTURE, _capture, preview_capture, "captured")
_VOID = MoveForm(MovementKind.VOID, "Void", Action.VOID, _void, preview_void, "voided")
_REFUND = MoveForm(MovementKind.REFUND, "Refund", Action.REFUND, _refund, preview_refund, "refunded")
MOVES = {each.kind: each for each in (_CAPTURE, _VOID, _REFUND)}


@dataclass(frozen=True, slots=True)
class Typed:
    """The fields of the form: the amount as a text, the reason, and the reference of this movement."""

    amount: str
    reason: str
    reference: str


def _pages(move: MoveForm) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the two handlers of one kind of movement: one shows the effect, the other makes the movement."""

    @allowed(Action.READ_ORDERS, move.action)
    async def show(request: Request, desk: Desk) -> Response:
        order, document = await _order(request, desk)
        given = request.query_params
        item = given.get("item", "")
        items = document.get("items") or []
        cents = amount_left(order, move.kind)
        if _NUMBER.fullmatch(item) and int(item) < len(items):
            asked = line_cents(items[int(item)]) or 0
            cents = min(cents, asked) if asked > 0 else cents
        amount = given.get("amount", "")[:40] or money.text_of(cents)
        reference = f"desk-{service_of(request).context.new_id().hex[-12:]}"
        return await _page(
            request, desk, move, order, Typed(amount, given.get("reason", "")[:500], reference)
        )

    @allowed(Action.READ_ORDERS, move.action)
    async def do(request: Request, desk: Desk) -> Response:
        order, _ = await _order(request, desk)
        form = desk.form
        typed = Typed(form.get("amount", "")[:40], form.get("reason", "")[:500], form.get("reference", ""))
        if form.get("look"):
            # This is not a GET, so that the reason and the form's token do not appear in the browser's history.
            return await _page(request, desk, move, order, typed)
        return await _do(request, desk, move, order, typed)

    return show, do


async def _order(request: Request, desk: Desk) -> tuple[Order, dict[str, Any]]:
    """Return the order in the path and its document. Raises Stop with the 404 page."""
    order_id = id_in_path(request, "order_id")
    found = await orders.read_record(service_of(request).context.pool, desk.merchant_id, order_id)
    if found is None or found.order.order_id != order_id:
        raise Stop(missing(request))
    return found.order, decode(found.document).value


async def _do(request: Request, desk: Desk, move: MoveForm, order: Order, typed: Typed) -> Response:
    form, errors = desk.form, {}
    try:
        cents = money.typed_payment(typed.amount)
    except money.BadAmount:
        return await _page(
            request, desk, move, order, typed, errors={"amount": "Enter an amount such as 12.50."}
        )
    if not typed.reason.strip():
        errors["reason"] = NO_REASON
    if not _REFERENCE.fullmatch(typed.reference):
        return await show_again(request, desk, move, order, typed)
    if form.get("previewed") != str(cents):
        return await _page(request, desk, move, order, typed, notice=CHANGED, tone="calm")
    if not errors and _steps_up(request, cents) and not desk.fresh:
        errors = await prove(request, desk)
    if errors:
        return await _page(request, desk, move, order, typed, errors=errors)
    asked = MovementRequest(move.kind, typed.reference, cents)
    return await _moved_or_asked(request, desk, move, order, typed, asked)


async def _moved_or_asked(
    request: Request, desk: Desk, move: MoveForm, order: Order, typed: Typed, asked: MovementRequest
) -> Response:
    context = service_of(request).context
    try:
        if not needs_second_person(context, asked.amount):
            await require_not_asked(context, desk.merchant_id, asked.reference)
            moved = await _moved(request, desk, move, order, typed, asked)
            if moved is not None:
                return moved
        await ask_approval(context, desk.merchant_id, desk.actor, order.order_id, asked, typed.reason.strip())
    except CannotApprove as used:
        return await show_again(request, desk, move, order, typed, str(used))
    return see_other(f"{PATH}/approvals?said=asked")


async def show_again(
    request: Request, desk: Desk, move: MoveForm, order: Order, typed: Typed, notice: str | None = None
) -> Response:
    """Show the page with a new reference, because the form's reference was not made by this page or was used before."""
    reference = f"desk-{service_of(request).context.new_id().hex[-12:]}"
    return await _page(
        request, desk, move, order, Typed(typed.amount, typed.reason, reference), notice=notice
    )


def _steps_up(request: Request, cents: int) -> bool:
    """Return whether this amount needs a fresh second factor."""
    return cents > service_of(request).settings.desk_fresh_above


async def _moved(
    request: Request, desk: Desk, move: MoveForm, order: Order, typed: Typed, asked: MovementRequest
) -> Response | None:
    """Write the entry of the audit log, and then move the money. Return None if the movement needs a second person.

    If the service is killed in between, the log has an entry, and the order has no movement with the entry's reference.
    """
    context, address = service_of(request).context, f"{PATH}/orders/{order.order_id}"
    name, subject = f"order.{move.kind}", f"{move.label} {shown(order, asked.amount)}"
    try:
        seen = await move.look(context, desk.merchant_id, order.order_id, asked)
        before, after = ({"captured": money.text_of(each.captured), "voided": money.text_of(each.voided),
                          "refunded": money.text_of(each.refunded)} for each in (seen.before, seen.after))  # fmt: skip
        done = AuditNote(
            name,
            f"{subject}, reference {asked.reference}",
            typed.reason.strip(),
            order.order_id,
            before,
            after,
        )
        if not await record_alone(context, desk.merchant_id, desk.actor, order.order_id, asked, done):
            return None
        await move.apply(context, desk.merchant_id, order.order_id, asked)
    except Refused as refused:
        if refused.code is Code.DUPLICATE_REFERENCE:
            return see_other(f"{address}?said=before")
        if refused.code is Code.UNAVAILABLE:
            raise
        text = f"{subject} was refused: {refused.message}"
        await record(
            context,
            desk.merchant_id,
            desk.actor,
            AuditNote(f"{name}.refused", text, typed.reason.strip(), order.order_id),
        )
        fresh, _ = await _order(request, desk)
        return await _page(request, desk, move, fresh, typed, notice=refused.message)
    return see_other(f"{address}?said={move.said}")


async def _page(
    request: Request,
    desk: Desk,
    move: MoveForm,
    order: Order,
    typed: Typed,
    *,
    errors: dict[str, str] | None = None,
    notice: str | None = None,
    tone: str = "error",
) -> Response:
    """Show the form, and the effect of the amount."""
    errors, cents, seen, second = dict(errors or {}), 0, None, False
    most = amount_left(order, move.kind)
    try:
        cents = money.typed_payment(typed.amount)
        asked = MovementRequest(move.kind, typed.reference, cents)
        seen = await move.look(service_of(request).context, desk.merchant_id, order.order_id, asked)
        second = await _needs_second(request, desk, order, asked)
    except money.BadAmount:
        if most:
            errors["amount"] = "Enter an amount such as 12.50."
    except Refused as refused:
        if refused.code is Code.UNAVAILABLE:
            raise
        errors["amount"] = refused.message
    status = 400 if errors or (notice and tone == "error") else 200
    values: PageContext = {
        **common(request, desk, f"{move.label} order", here=f"{PATH}/orders"),
        "order_address": f"{PATH}/orders/{order.order_id}",
        "address": f"{PATH}/orders/{order.order_id}/{move.kind}",
        "label": move.label,
        "kind": move.kind.value,
        "most": shown(order, most) if most else None,
        "cents": cents,
        "amount": shown(order, cents),
        "reference": typed.reference,
        "asks_code": bool(cents) and _steps_up(request, cents) and not desk.fresh,
        "second": second,
        "preview": preview_values(seen) if seen else None,
        "values": {"amount": typed.amount, "reason": typed.reason},
        "errors": errors,
        "notice": notice,
        "notice_tone": tone,
    }
    return page(request, "desk/move.html", values, status=status)


async def _needs_second(request: Request, desk: Desk, order: Order, asked: MovementRequest) -> bool:
    context = service_of(request).context
    alone = await moved_alone(context, desk.merchant_id, desk.actor, order.order_id, asked)
    return needs_second_person(context, alone + asked.amount)


show_capture, do_capture = _pages(_CAPTURE)
show_void, do_void = _pages(_VOID)
show_refund, do_refund = _pages(_REFUND)
