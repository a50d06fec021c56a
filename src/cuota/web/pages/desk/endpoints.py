"""The webhook endpoints in the merchant's dashboard: add, edit, pause, replace the secret, remove, send a test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.role import Action
from cuota.core.refusal import Code, Refused
from cuota.core.webhook.delivery import Attempt
from cuota.db.desk import webhooks as listing
from cuota.db.webhook.endpoints import Endpoint
from cuota.flows.context import Context
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import AuditNote, Cause, record
from cuota.flows.webhook import manage_endpoints as manage
from cuota.web.addresses import BadAddress
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.changes import once_of, proved_cause
from cuota.web.pages.desk.view import common, failed, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed, id_in_path, missing
from cuota.web.pages.desk.webhooks import SHOWN, WEBHOOKS, delivery_row, endpoint_row, webhooks_page
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of
from cuota.web.webhook_address import read_webhook_address

_TWO_WORK = (
    "The secret was replaced recently, and the old secret is still valid. If you lost the new secret, replace the lost secret."
    " Otherwise end the old secret first: at most two secrets are valid at a time."
)
_NONE_OLD = "Only one secret is valid. Nothing was changed."
_LEAD = "Copy this now. It is not shown again."


def _url(request: Request, desk: Desk) -> str:
    """Return the checked address of the form. Raises BadChange."""
    try:
        return read_webhook_address(desk.form.get("url", ""), service_of(request).settings)
    except BadAddress as bad:
        raise BadChange(f"The address {bad}.", "url") from None


def _description(desk: Desk) -> str:
    text = desk.form.get("description", "")
    if len(text) > manage.LONGEST_DESCRIPTION or not text.isprintable():
        most = f"Use at most {manage.LONGEST_DESCRIPTION} printable characters."
        raise BadChange(most, "description")
    return text


@allowed(Action.READ_WEBHOOKS, Action.CHANGE_WEBHOOKS)
async def add(request: Request, desk: Desk) -> Response:
    """Add an endpoint, and show its secret once."""
    context = service_of(request).context
    try:
        cause = await proved_cause(request, desk)
        url, description, once = _url(request, desk), _description(desk), once_of(desk)
        made, secret = await manage.register(context, desk.merchant_id, url, description, cause, once)
    except BadChange as bad:
        return await webhooks_page(request, desk, {bad.name: str(bad)})
    except Refused as refused:
        if refused.code is not Code.VALIDATION_FAILED:
            raise
        return await webhooks_page(request, desk, {"": refused.message})
    return _new_secret(request, desk, made, secret)


def _new_secret(request: Request, desk: Desk, endpoint: Endpoint, secret: str) -> Response:
    shown: PageContext = {
        **common(request, desk, "New secret", here=WEBHOOKS, lead=_LEAD),
        "secrets": [("Endpoint", endpoint.url), ("Secret", secret)],
        "back": f"{PATH}/endpoints/{endpoint.endpoint_id}",
    }
    return page(request, "desk/new_secret.html", shown)


async def _find(request: Request, desk: Desk) -> Endpoint:
    """Return the endpoint in the path. Raises Stop with the 404 page."""
    try:
        return await manage.find(
            service_of(request).context, desk.merchant_id, id_in_path(request, "endpoint_id")
        )
    except Refused as refused:
        if refused.code is not Code.NOT_FOUND:
            raise
        raise Stop(missing(request)) from None


@allowed(Action.READ_WEBHOOKS)
async def endpoint(request: Request, desk: Desk) -> Response:
    """Show one endpoint."""
    return await _page(request, desk, await _find(request, desk))


async def _page(
    request: Request,
    desk: Desk,
    found: Endpoint,
    errors: dict[str, str] | None = None,
    tested: PageContext | None = None,
) -> Response:
    old = manage.old_secret_ends_at(found)
    context = service_of(request).context
    failing = await listing.failing(context.pool, desk.merchant_id, SHOWN, found.endpoint_id)
    parked = await listing.parked(context.pool, desk.merchant_id, SHOWN, context.now(), found.endpoint_id)
    shown: PageContext = {
        **common(request, desk, "Webhook endpoint", here=WEBHOOKS),
        "one": endpoint_row(found, fails=bool(failing)),
        "old": when(old) if old else None,
        "paused": found.state == "paused",
        "may_change": desk.may(Action.CHANGE_WEBHOOKS),
        "asks_code": not desk.fresh,
        "tested": tested,
        "rows": [delivery_row(each) for each in failing],
        "parked": [delivery_row(each) for each in parked],
        "days": listing.PARKED_FOR.days,
        "most": SHOWN,
        "values": {"url": found.url, "description": found.description},
    }
    if errors:
        return page(request, "desk/endpoint.html", failed(shown, errors, desk.form), status=400)
    return page(request, "desk/endpoint.html", shown)


@allowed(Action.READ_WEBHOOKS, Action.CHANGE_WEBHOOKS)
async def change(request: Request, desk: Desk) -> Response:
    """Edit, pause, resume, replace the secret, remove, or send a test. All except the test need a reason and a fresh code."""
    found, do, context = await _find(request, desk), desk.form.get("do", ""), service_of(request).context
    if do == "test":
        return await _send_test(request, desk, found)
    try:
        cause = await proved_cause(request, desk)
        asked = (
            manage.Change(url=_url(request, desk), description=_description(desk)) if do == "edit" else None
        )
        made = await _changed(context, found, do, cause, asked)
    except BadChange as bad:
        return await _page(request, desk, found, {bad.name: str(bad)})
    if made is not None:
        return _new_secret(request, desk, *made)
    here = f"{PATH}/endpoints/{found.endpoint_id}?said=endpoint"
    return see_other(f"{WEBHOOKS}?said=endpoint-removed" if do == "remove" else here)


async def _send_test(request: Request, desk: Desk, found: Endpoint) -> Response:
    """Send a test, and show the endpoint's response."""
    context = service_of(request).context
    note = AuditNote("webhooks.test", f"Webhook endpoint {found.url}")
    await record(context, desk.merchant_id, desk.actor, note)
    attempt = await manage.send_test(context, desk.merchant_id, found.endpoint_id)
    return await _page(request, desk, found, tested=_tested(attempt))


async def _changed(
    context: Context, found: Endpoint, do: str, cause: Cause, asked: manage.Change | None
) -> tuple[Endpoint, str] | None:
    """Make the change. Return the endpoint and its new secret, if it has one. Raises BadChange."""
    ids: tuple[Context, UUID, UUID] = (context, found.merchant_id, found.endpoint_id)
    asked = asked or {"pause": manage.Change(paused=True), "resume": manage.Change(paused=False)}.get(do)
    if asked is not None:
        await manage.change(*ids, asked, cause)
        return None
    act = _ACTS.get(do)
    try:
        if do in {"replace", "again"}:
            return await manage.rotate(*ids, again=do == "again", once=True, cause=cause)
        if act is not None:
            await act(*ids, cause)
            return None
    except manage.OldSecretWorks:
        raise BadChange(_TWO_WORK) from None
    except manage.NoOldSecret:
        raise BadChange(_NONE_OLD) from None
    raise BadChange("Choose what to change.")


_ACTS: dict[str, Callable[[Context, UUID, UUID, Cause], Awaitable[None]]] = {
    "end": manage.end_old,
    "remove": manage.remove,
}


def _tested(attempt: Attempt) -> PageContext:
    """Return the result of a test in words."""
    seconds = f"in {attempt.ms:,} ms"
    if attempt.status is None:
        words, kind = f"No answer: {attempt.error or 'the connection ended'} ({seconds}).", "bad"
    elif attempt.acknowledged:
        words, kind = f"Your server answered {attempt.status} {seconds}. Webhooks arrive.", "done"
    else:
        problem = f", and then: {attempt.error}" if attempt.error else ""
        words = f"Your server answered {attempt.status} {seconds}{problem}. Only a status from 200 to 299 counts as delivered."
        kind = "bad"
    return {
        "words": words,
        "state": {"word": "Delivered" if kind == "done" else "Not delivered", "kind": kind},
        "answer": attempt.answer.decode("utf-8", "replace")[:500],
    }
