"""`GET /balance` and `GET /terms`: the amount that Cuota owes the merchant now, and the fees of captures."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.db.order.documents import encode
from cuota.db.payout import balance as balances
from cuota.db.payout import terms as versions
from cuota.web.api.payout_json import balance_json, terms_json
from cuota.web.service import merchant_of, service_of


async def balance(request: Request) -> Response:
    """Return the merchant's balance."""
    merchant = await merchant_of(request)
    context = service_of(request).context
    found = await balances.read(context.pool, merchant.merchant_id, context.now())
    return Response(encode(balance_json(found)), media_type="application/json")


async def terms(request: Request) -> Response:
    """Return all versions of the merchant's terms, the first one first."""
    merchant = await merchant_of(request)
    found = await versions.read_all(service_of(request).context.pool, merchant.merchant_id)
    return Response(encode({"data": [terms_json(each) for each in found]}), media_type="application/json")
