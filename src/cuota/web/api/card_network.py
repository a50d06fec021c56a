"""`POST /sandbox/cards/...`: the simulated card network of virtual cards. It exists in the sandbox only.

In production, the merchant's own card processor sends these requests to a real card network.
"""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.money import decimal_from
from cuota.core.refusal import Code, Refused
from cuota.db.order.documents import encode
from cuota.flows.checkout.clear_card import LONGEST_REFERENCE, authorize_card, clear_card, network_of
from cuota.rails.card_network import Presented
from cuota.web.body import MOST_SMALL_BYTES, parse_object, read_bytes, require_json
from cuota.web.fields import Check, Reader, WrongField, cents, text, wrong_type
from cuota.web.service import service_of

_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_HEADERS = {"Cache-Control": "no-store"}
_reference = text(1, LONGEST_REFERENCE)


def _digits(low: int, high: int) -> Check:
    """Make a check for `low` to `high` digits, and remove spaces and dashes. The error never repeats the value."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_type("a string of digits")
        plain = re.sub(r"[ -]", "", value)
        if not re.fullmatch(rf"[0-9]{{{low},{high}}}", plain, re.ASCII):
            raise WrongField("invalid", f"must be {low} to {high} digits")
        return plain

    return check


def _whole(low: int, high: int) -> Check:
    """Make a check for a whole number from `low` to `high`. It may be a string, as in the checkout's result."""

    def check(value: Any) -> int:
        plain = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        if not re.fullmatch(r"[0-9]{1,4}", plain, re.ASCII) or not low <= int(plain) <= high:
            raise WrongField("invalid", f"must be a whole number from {low} to {high}")
        return int(plain)

    return check


def _guid(value: Any) -> UUID:
    if not isinstance(value, str) or not _GUID.fullmatch(value):
        raise WrongField("invalid", "must be a GUID")
    return UUID(value)


async def _body(request: Request) -> dict[str, Any]:
    network_of(service_of(request).context)
    require_json(request)
    return parse_object(await read_bytes(request, MOST_SMALL_BYTES))


async def authorize(request: Request) -> Response:
    """Authorize an amount on a card. A declined card is a normal answer (`approved: false`), not an error."""
    body, reader = await _body(request), Reader(lenient=False)
    number = reader.read(body, "number", _digits(12, 19), required=True)
    cvc = reader.read(body, "cvc", _digits(3, 4), required=True)
    month = reader.read(body, "expirationMonth", _whole(1, 12), required=True)
    year = reader.read(body, "expirationYear", _whole(2000, 2199), required=True)
    amount = reader.read(body, "amount", cents(low=1), required=True)
    merchant_id = reader.read(body, "merchantId", _guid)
    reference = reader.read(body, "reference", _reference)
    reader.finish()
    context = service_of(request).context
    card = Presented(number, cvc, month, year)
    answer = await authorize_card(context, card, amount, merchant_id, reference)
    shown: dict[str, object] = {"authorizationId": None, "approved": False, "reason": "unknown_card"}
    if answer is not None:
        shown = {
            "authorizationId": answer.authorization_id,
            "approved": answer.approved,
            "reason": answer.reason,
        }
    return _answer({**shown, "amount": decimal_from(amount)})


async def capture(request: Request) -> Response:
    """Capture part or all of the authorized amount."""
    return await _clear(request, "capture")


async def reverse(request: Request) -> Response:
    """Release part of the amount that is not captured yet. Without `amount`, release all of it."""
    return await _clear(request, "reverse")


async def refund(request: Request) -> Response:
    """Refund part or all of the captured amount."""
    return await _clear(request, "refund")


async def _clear(request: Request, kind: str) -> Response:
    body, reader = await _body(request), Reader(lenient=False)
    reference = reader.read(body, "reference", _reference, required=True)
    amount = reader.read(body, "amount", cents(low=1), required=kind != "reverse")
    reader.finish()
    name = request.path_params["authorization_id"]
    if not _GUID.fullmatch(name):
        raise Refused(Code.NOT_FOUND, "There is no such approved authorization.")
    done = await clear_card(service_of(request).context, UUID(name), kind, reference, amount)
    return _answer(
        {
            "id": done.clearing_id,
            "authorizationId": done.authorization_id,
            "operation": kind,
            "reference": done.reference,
            "amount": decimal_from(done.amount),
            "orderId": done.order_id,
        }
    )


def _answer(value: dict[str, object]) -> Response:
    return Response(encode(value), headers=_HEADERS, media_type="application/json")
