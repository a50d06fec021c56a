"""Adds a merchant. The response to the form shows the merchant's credentials and secrets once."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.desk.role import Role
from cuota.core.operator.role import OperatorAction
from cuota.flows.context import Context
from cuota.flows.desk import change_team
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.desk.record import Actor
from cuota.flows.merchant.manage_merchants import (
    BadMerchant,
    MerchantTerms,
    NewCredentials,
    create_merchant,
    find_merchant,
)
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import OperatorNote, log_action, logged
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.operator.merchant_form import cents_of
from cuota.web.pages.operator.parts import section
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, id_in_path, missing, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_MERCHANTS = f"{PATH}/merchants"


@allowed(OperatorAction.READ_MERCHANTS, OperatorAction.CHANGE_MERCHANTS)
async def ask(request: Request, desk: OperatorDesk) -> Response:
    """Show the form for the merchant's name and limits."""
    return _page(request, desk)


def _page(request: Request, desk: OperatorDesk, errors: dict[str, str] | None = None) -> Response:
    lead = "The credentials are shown once, on the next page."
    shown: PageContext = {
        **common(request, desk, "New merchant", here=_MERCHANTS, lead=lead),
        "values": {"minimum": "1.00", "maximum": "2000.00", "capture": "approved"},
        "captures": [
            {"value": "approved", "label": "When the order is approved"},
            {"value": "merchant", "label": "When the merchant says so, such as when it ships"},
        ],
    }
    if errors:
        return page(request, "operator/new_merchant.html", failed(shown, errors, desk.form), status=400)
    return page(request, "operator/new_merchant.html", shown)


@allowed(OperatorAction.READ_MERCHANTS, OperatorAction.CHANGE_MERCHANTS)
async def add(request: Request, desk: OperatorDesk) -> Response:
    """Add the merchant and show its credentials. After a second click, the name is already taken."""
    context = service_of(request).context
    if errors := await prove(request, desk):
        return _page(request, desk, errors)
    try:
        new = await _added(context, desk)
    except BadTeam as bad:
        return _page(request, desk, {bad.name: str(bad)})
    except BadMerchant as bad:
        return _page(request, desk, {"name": str(bad)})
    secrets = [
        ("Merchant id", new.merchant.merchant_id),
        ("client_id", new.client_id),
        ("client_secret", new.client_secret),
        ("audience", new.audience),
        ("Signing secret", new.signing_secret),
        ("Webhook secret", new.webhook_secret),
    ]
    texts = [
        "Give these to the merchant's developer in a safe way. They are not shown again: only new ones can be made."
    ]
    links = [
        (
            f"{_MERCHANTS}/{new.merchant.merchant_id}",
            "Continue to the merchant: terms, and the first owner of its team",
        )
    ]
    shown = {
        **common(request, desk, f"Credentials of {new.merchant.name}", here=_MERCHANTS),
        "sections": [section(texts=texts, pairs=secrets, links=links)],
    }
    return page(request, "operator/page.html", shown)


async def _added(context: Context, desk: OperatorDesk) -> NewCredentials:
    """Log and add the merchant. Raises BadTeam or BadMerchant."""
    form = desk.form
    reason = reason_of(form.get("reason", ""))
    terms = MerchantTerms(
        name=" ".join(form.get("name", "").split()),
        minimum=cents_of(form, "minimum"),
        maximum=cents_of(form, "maximum"),
        defer_funds_capture=form.get("capture") == "merchant",
    )
    facts = {"minimum": money.text_of(terms.minimum or 0), "maximum": money.text_of(terms.maximum or 0)}
    note = OperatorNote("merchant.create", terms.name or "", reason, after=facts)
    return await logged(context, desk.actor, note, lambda context: create_merchant(context, terms))


@allowed(OperatorAction.READ_MERCHANTS, OperatorAction.CHANGE_MERCHANTS)
async def invite_owner(request: Request, desk: OperatorDesk) -> Response:
    """Invite a person to the merchant's own dashboard, as an owner."""
    context, merchant_id = service_of(request).context, id_in_path(request, "merchant_id")
    try:
        merchant = await find_merchant(context, str(merchant_id))
    except BadMerchant:
        return missing(request)
    errors, form = await prove(request, desk), desk.form
    if not errors:
        try:
            reason = reason_of(form.get("reason", ""))
            # The merchant's audit log gets a neutral reason, without the operator's address.
            given = (
                form.get("name", ""),
                form.get("email", ""),
                Role.OWNER,
                "invited by your payment provider",
            )
            await change_team.invite(context, merchant_id, Actor(None), *given)
            note = OperatorNote(
                "merchant.invite", merchant.name, reason, merchant_id, after={"role": Role.OWNER}
            )
            await log_action(context, desk.actor, note)
        except BadTeam as bad:
            errors = {bad.name: str(bad)}
    if not errors:
        return see_other(f"{_MERCHANTS}/{merchant_id}?said=invited")
    shown = common(request, desk, f"Invite an owner to {merchant.name}", here=_MERCHANTS)
    shown |= {"address": f"{_MERCHANTS}/{merchant_id}"}
    return page(request, "operator/invite_owner.html", failed(shown, errors, form), status=400)


@allowed(OperatorAction.READ_MERCHANTS, OperatorAction.CHANGE_MERCHANTS)
async def ask_owner(request: Request, desk: OperatorDesk) -> Response:
    """Show the form for the invitation."""
    context, merchant_id = service_of(request).context, id_in_path(request, "merchant_id")
    try:
        merchant = await find_merchant(context, str(merchant_id))
    except BadMerchant:
        return missing(request)
    lead = "The link in the mail works for seven days. The owner then invites the rest of the team."
    shown = common(request, desk, f"Invite an owner to {merchant.name}", here=_MERCHANTS, lead=lead)
    shown |= {"address": f"{_MERCHANTS}/{merchant_id}"}
    return page(request, "operator/invite_owner.html", shown)
