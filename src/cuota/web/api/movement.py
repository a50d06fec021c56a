"""The common part of `capture`, `void` and `refund`: reads the request, applies or previews it, and answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.merchant import BodyProfile, Merchant
from cuota.core.order.movement import Movement, MovementKind, MovementRequest, shown_balances
from cuota.core.refusal import Code, FieldError, Refused
from cuota.core.wire.loose_amount import plain_amount
from cuota.db.order import orders
from cuota.flows.context import Context
from cuota.flows.order.move_money import Preview
from cuota.flows.settle import MakeAnswer, order_not_found
from cuota.web import idempotent
from cuota.web.api import answers
from cuota.web.api.profile import read_by_profile
from cuota.web.api.query import parameters
from cuota.web.api.unknown import shape, unknown_fields
from cuota.web.body import parse_object, read_bytes, require_json
from cuota.web.fields import WrongField, cents, reference
from cuota.web.ids import guid
from cuota.web.service import merchant_of, service_of

Apply = Callable[[Context, UUID, UUID, MovementRequest, MakeAnswer | None], Awaitable[Movement]]
Look = Callable[[Context, UUID, UUID, MovementRequest], Awaitable[Preview]]

_reference = reference(1)
_amount = cents(low=1)
_COMMON = ("amount", "merchantReference", "currency")
SHAPES = {
    MovementKind.CAPTURE: shape(*_COMMON),
    MovementKind.VOID: shape(*_COMMON),
    MovementKind.REFUND: shape(*_COMMON, "merchantRefundReference"),
}


async def answer(request: Request, kind: MovementKind, apply: Apply, look: Look) -> Response:
    """Answer a capture, void or refund. `apply` carries it out; `look` only previews it, for `?dryRun=true`."""
    merchant = await merchant_of(request)
    require_json(request)
    body = await read_bytes(request)
    order_id_or_token = guid(request.path_params["order_id"])
    dry_run = _flag(parameters(request, "dryRun").get("dryRun"))
    context = service_of(request).context

    async def run(keep: idempotent.Keep | None) -> bytes:
        order_id = await orders.find_id(context.pool.entry, merchant.merchant_id, order_id_or_token)
        if order_id is None:
            raise order_not_found()
        try:
            fields = parse_object(body)
            movement = read_asked(fields, kind, merchant)
        except Refused as refused:
            raise await _with_balances(context, merchant.merchant_id, order_id, refused) from None
        warnings = unknown_fields(fields, SHAPES[kind])
        if dry_run:
            return answers.preview(await look(context, merchant.merchant_id, order_id, movement), warnings)
        keep_moved = (lambda moved: keep(answers.moved(moved, warnings))) if keep else None
        moved = await apply(context, merchant.merchant_id, order_id, movement, keep_moved)
        return answers.moved(moved, warnings)

    return await idempotent.answer(request, merchant.merchant_id, body, run)


async def _with_balances(context: Context, merchant_id: UUID, order_id: UUID, refused: Refused) -> Refused:
    """Add the order's balances to a refusal with status 422 that was raised before the order was read."""
    if refused.code not in {Code.MISSING_REFERENCE, Code.INVALID_AMOUNT}:
        return refused
    found = await orders.read_with_plan(context.pool.entry, merchant_id, order_id)
    if found is None:
        return order_not_found()
    refused.facts["balances"] = shown_balances(found.order)
    return refused


def read_asked(body: dict[str, Any], kind: MovementKind, merchant: Merchant) -> MovementRequest:
    """Read the merchant's reference and the amount, by the rules of the merchant's profile.

    Raises Refused: missing_reference or invalid_amount (422), or malformed_request or validation_failed (400) for a wrong
    currency. If both the reference and the amount are invalid, the refusal is about the reference.
    """
    _require_currency(body.get("currency"), merchant)

    def read(profile: BodyProfile) -> MovementRequest:
        if profile is BodyProfile.LENIENT:
            return _movement({**body, "amount": plain_amount(body.get("amount"))}, kind)
        return _movement(body, kind)

    return read_by_profile(merchant, read)


def _require_currency(value: object, merchant: Merchant) -> None:
    """Refuse a currency that is not the merchant's, because the amount would move in the wrong currency.

    It may be absent.
    """
    if value is None or value == merchant.currency:
        return
    message = f"must be {merchant.currency}, the currency of this merchant"
    code = "invalid" if isinstance(value, str) else "wrong_type"
    kind = Code.VALIDATION_FAILED if isinstance(value, str) else Code.MALFORMED_REQUEST
    raise Refused(kind, f"currency {message}.", errors=(FieldError("currency", code, message),))


def _movement(body: dict[str, Any], kind: MovementKind) -> MovementRequest:
    reference = _key(body, kind)
    try:
        amount = _amount(body.get("amount"))
    except WrongField as wrong:
        absent = body.get("amount") is None
        message = "is required" if absent else str(wrong)
        error = FieldError("amount", "required" if absent else wrong.code, message)
        raise Refused(Code.INVALID_AMOUNT, f"amount {message}.", errors=(error,)) from None
    return MovementRequest(kind, reference, amount)


def _key(body: dict[str, Any], kind: MovementKind) -> str:
    names = (
        ("merchantRefundReference", "merchantReference")
        if kind is MovementKind.REFUND
        else ("merchantReference",)
    )
    given = {name: body[name] for name in names if body.get(name) is not None}
    if not given:
        raise _bad_key(names[-1], "required", "is required: a reference of your own, unique for this order")
    try:
        keys = {_reference(value) for value in given.values()}
    except WrongField as wrong:
        raise _bad_key(next(iter(given)), wrong.code, str(wrong)) from None
    if len(keys) > 1:
        message = "and merchantReference differ: send one of them, or both with the same value"
        raise _bad_key("merchantRefundReference", "invalid", message)
    key: str = keys.pop()
    return key


def _bad_key(name: str, code: str, message: str) -> Refused:
    return Refused(Code.MISSING_REFERENCE, f"{name} {message}.", errors=(FieldError(name, code, message),))


def _flag(text: str | None) -> bool:
    if text is None or text in {"false", "0"}:
        return False
    if text in {"true", "1"}:
        return True
    error = FieldError("dryRun", "invalid", "must be true or false")
    raise Refused(Code.VALIDATION_FAILED, "dryRun must be true or false.", errors=(error,))
