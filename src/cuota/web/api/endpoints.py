"""`/webhook-endpoints`: the addresses that get a merchant's webhooks.

A merchant can register, list, change, pause and remove an endpoint, rotate its secret, test it, and replay events to it.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.config import Settings
from cuota.core.instant import timestamp
from cuota.core.refusal import Refused
from cuota.db.order.documents import encode
from cuota.db.webhook import endpoints
from cuota.db.webhook.endpoints import Endpoint
from cuota.flows.webhook import manage_endpoints as manage
from cuota.flows.webhook.replay_webhooks import replay
from cuota.web import idempotent
from cuota.web.addresses import BadAddress
from cuota.web.api.cause import cause_of
from cuota.web.api.events import RANGE, read_range
from cuota.web.api.unknown import shape, with_warnings
from cuota.web.body import parse_object, read_bytes, require_json
from cuota.web.fields import Reader, WrongField, text, wrong_type
from cuota.web.ids import guid
from cuota.web.service import merchant_of, service_of
from cuota.web.webhook_address import read_webhook_address

_NEW = shape("url", "description")
_CHANGE = shape("url", "description", "paused")


def _shown(endpoint: Endpoint, secret: str | None = None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": endpoint.endpoint_id,
        "url": endpoint.url,
        "description": endpoint.description,
        "state": endpoint.state,
        "createdDateTime": timestamp(endpoint.created_at),
    }
    return shown if secret is None else {**shown, "secret": secret}


def _json(content: dict[str, Any]) -> Response:
    return Response(encode(content), media_type="application/json")


def _id_of(request: Request) -> UUID:
    try:
        return guid(request.path_params["endpoint_id"])
    except Refused:
        raise manage.endpoint_not_found() from None


def _read(body: dict[str, Any], settings: Settings, *, new: bool) -> manage.Change:
    reader = Reader(lenient=False)

    def address(value: Any) -> str:
        if not isinstance(value, str):
            raise wrong_type("a string")
        try:
            return read_webhook_address(value, settings)
        except BadAddress as bad:
            raise WrongField("invalid", str(bad)) from None

    def flag(value: Any) -> bool:
        if not isinstance(value, bool):
            raise wrong_type("true or false")
        return value

    change = manage.Change(
        url=reader.read(body, "url", address, required=new),
        description=reader.read(body, "description", text(0, manage.LONGEST_DESCRIPTION)),
        paused=None if new else reader.read(body, "paused", flag),
    )
    reader.finish()
    return change


async def endpoint_collection(request: Request) -> Response:
    """List the merchant's endpoints, or register a new one. Only the answer to the registration shows the secret."""
    merchant = await merchant_of(request)
    context = service_of(request).context
    if request.method == "POST":
        return await _register(request, merchant.merchant_id)
    found = await endpoints.read_all(context.pool, merchant.merchant_id)
    return _json({"endpoints": [_shown(endpoint) for endpoint in found]})


async def _register(request: Request, merchant_id: UUID) -> Response:
    require_json(request)
    body = await read_bytes(request)
    context = service_of(request).context

    async def act() -> bytes:
        fields = parse_object(body)
        new = _read(fields, context.settings, new=True)
        assert new.url is not None
        endpoint, secret = await manage.register(
            context, merchant_id, new.url, new.description or "", cause_of(request)
        )
        return encode(with_warnings(_shown(endpoint, secret), fields, _NEW))

    return await idempotent.answer_plain(request, merchant_id, body, act, secret=True)


async def endpoint_item(request: Request) -> Response:
    """Show, change, pause, resume or remove one endpoint."""
    merchant = await merchant_of(request)
    context, endpoint_id = service_of(request).context, _id_of(request)
    if request.method == "PATCH":
        require_json(request)
        body = parse_object(await read_bytes(request))
        change = _read(body, context.settings, new=False)
        changed = await manage.change(context, merchant.merchant_id, endpoint_id, change, cause_of(request))
        return _json(with_warnings(_shown(changed), body, _CHANGE))
    if request.method == "DELETE":
        await manage.remove(context, merchant.merchant_id, endpoint_id, cause_of(request))
        return _json({"id": endpoint_id, "state": "deleted"})
    return _json(_shown(await manage.find(context, merchant.merchant_id, endpoint_id)))


async def endpoint_rotate(request: Request) -> Response:
    """Give the endpoint a new secret. For a day, webhooks are signed with both the old and the new secret."""
    merchant = await merchant_of(request)
    context, endpoint_id = service_of(request).context, _id_of(request)

    async def act() -> bytes:
        made = await manage.rotate(context, merchant.merchant_id, endpoint_id, cause=cause_of(request))
        return encode(_shown(*made))

    body = await read_bytes(request)
    return await idempotent.answer_plain(request, merchant.merchant_id, body, act, secret=True)


async def endpoint_test(request: Request) -> Response:
    """Send a `webhook.test` event to the endpoint now, and return the endpoint's answer."""
    merchant = await merchant_of(request)
    context, endpoint_id = service_of(request).context, _id_of(request)

    async def act() -> bytes:
        attempt = await manage.send_test(context, merchant.merchant_id, endpoint_id)
        return encode(
            {
                "acknowledged": attempt.acknowledged,
                "status": attempt.status,
                "milliseconds": attempt.ms,
                "error": attempt.error,
                "answer": attempt.answer.decode("utf-8", "replace"),
            }
        )

    return await idempotent.answer_plain(request, merchant.merchant_id, await read_bytes(request), act)


async def endpoint_replay(request: Request) -> Response:
    """Send events to this endpoint again: all events, or a range of events."""
    merchant = await merchant_of(request)
    require_json(request)
    context, endpoint_id, body = service_of(request).context, _id_of(request), await read_bytes(request)

    async def act() -> bytes:
        fields = parse_object(body)
        after, until = read_range(fields)
        again = await replay(
            context,
            merchant.merchant_id,
            endpoint=str(endpoint_id),
            after=after,
            until=until,
            cause=cause_of(request),
        )
        return encode(with_warnings({"replayed": again}, fields, RANGE))

    return await idempotent.answer_plain(request, merchant.merchant_id, body, act)
