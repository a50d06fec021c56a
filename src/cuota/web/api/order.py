"""`POST /order`, `GET /order?token=` and `GET /order/{orderId}`: create an order and read its record."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.merchant import Merchant
from cuota.core.refusal import Code, FieldError, Refused
from cuota.db.order import orders
from cuota.flows.order import show_order
from cuota.flows.order.create_order import create_order
from cuota.flows.settle import order_not_found
from cuota.web import idempotent
from cuota.web.api import answers
from cuota.web.api.order_body import read_order_body
from cuota.web.api.query import unread_query
from cuota.web.body import parse_object, read_bytes, require_json
from cuota.web.free_text import without_cards
from cuota.web.ids import guid
from cuota.web.service import merchant_of, service_of


async def order_collection(request: Request) -> Response:
    """Create an order, or look one up by its checkout token."""
    merchant = await merchant_of(request)
    if request.method == "POST":
        return await _create(request, merchant)
    token = request.query_params.get("token")
    if not token:
        error = FieldError("token", "required", "is required")
        message = "Send the checkout token, as in /order?token=..., or the order id, as in /order/{orderId}."
        raise Refused(Code.VALIDATION_FAILED, message, errors=(error,))
    return await _record(request, merchant, token)


async def order_item(request: Request) -> Response:
    """Return the record of an order. The path has the order id or the checkout token."""
    merchant = await merchant_of(request)
    return await _record(request, merchant, request.path_params["order_id"])


async def _record(request: Request, merchant: Merchant, name: str) -> Response:
    found = await orders.read_record(service_of(request).context.pool, merchant.merchant_id, guid(name))
    if found is None:
        raise order_not_found()
    return Response(show_order.record(found), media_type="application/json")


async def _create(request: Request, merchant: Merchant) -> Response:
    require_json(request)
    body = await read_bytes(request)
    service = service_of(request)

    async def run(keep: idempotent.Keep | None) -> bytes:
        fields = without_cards(parse_object(body), body)
        order = read_order_body(fields, merchant, https_only=not service.settings.sandbox)
        order.warnings.extend(unread_query(request))
        remember = (lambda new: keep(answers.created(new))) if keep else None
        return answers.created(await create_order(service.context, merchant, order, remember))

    return await idempotent.answer(request, merchant.merchant_id, body, run)
