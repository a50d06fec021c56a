"""`POST /checkouts` and `GET /checkouts/{checkoutId}`: the checkout API for shop systems (SMI)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.smi_state import CheckoutState, state_of
from cuota.core.instant import timestamp
from cuota.core.refusal import Refused
from cuota.db.checkout import sdk_checkouts
from cuota.db.order.documents import encode
from cuota.flows.order.create_order import Created, checkout_url, create_order
from cuota.flows.settle import order_not_found
from cuota.web import idempotent
from cuota.web.api.query import unread_query
from cuota.web.api.smi_body import read_smi_body
from cuota.web.body import parse_object, read_bytes, require_json
from cuota.web.free_text import without_cards
from cuota.web.ids import guid
from cuota.web.service import merchant_of, service_of


async def checkout_collection(request: Request) -> Response:
    """Start a checkout."""
    merchant = await merchant_of(request)
    require_json(request)
    body = await read_bytes(request)
    service = service_of(request)

    async def run(keep: idempotent.Keep | None) -> bytes:
        today = service.context.now().date()
        fields = without_cards(parse_object(body, "additional_data"), body)
        checkout = read_smi_body(fields, merchant, today, https_only=not service.settings.sandbox)
        checkout.order.warnings.extend(unread_query(request))
        remember = (lambda new: keep(_created(new))) if keep else None
        try:
            return _created(
                await create_order(service.context, merchant, checkout.order, remember, checkout.start)
            )
        except Refused as refused:
            # The errors of `create_order` use the field names of `POST /order`. Here the amount is `order.amount`.
            errors = (
                replace(error, field="order.amount" if error.field == "amount" else error.field)
                for error in refused.errors
            )
            refused.errors = tuple(errors)
            raise

    return await idempotent.answer(request, merchant.merchant_id, body, run)


async def checkout_item(request: Request) -> Response:
    """Return the state of a checkout. Raises Refused(order_not_found) unless the merchant started it with this API."""
    merchant = await merchant_of(request)
    context = service_of(request).context
    order_id = guid(request.path_params["checkout_id"])
    found = await sdk_checkouts.read_shop_checkout(context.pool, merchant.merchant_id, order_id)
    if found is None:
        raise order_not_found()
    uri = checkout_url(context, merchant.merchant_id, found.token)
    state = state_of(found.order, left=found.left)
    return Response(_shown(order_id, uri, found.order.created_at, state), media_type="application/json")


def _created(new: Created) -> bytes:
    return _shown(new.order_id, new.redirect_url, new.created_at, CheckoutState.CREATED, new.warnings)


def _shown(
    checkout_id: UUID,
    uri: str,
    created_at: datetime,
    state: CheckoutState,
    warnings: Sequence[dict[str, str]] = (),
) -> bytes:
    shown = {
        "id": checkout_id,
        "uri": uri,
        "type": "checkout",
        "created": timestamp(created_at),
        "state": state,
        **({"warnings": warnings} if warnings else {}),
    }
    return encode(shown)
