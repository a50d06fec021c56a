"""A merchant: its limits and terms, its balance, and the operator's actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.merchant import Merchant
from cuota.core.operator.role import OperatorAction
from cuota.core.payout.terms import PayoutSchedule
from cuota.db.merchant import credentials
from cuota.db.payout import terms as versions
from cuota.flows.context import Context
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.merchant.manage_merchants import (
    BadMerchant,
    MerchantTerms,
    require_live,
    revoke_merchant,
    update_merchant,
)
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import OperatorNote, logged, tell_merchant
from cuota.flows.payout.adjust_merchant import adjust_merchant
from cuota.flows.payout.change_terms import change_terms
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.operator.merchant.listing import MERCHANTS
from cuota.web.pages.operator.merchant.money import money_sections
from cuota.web.pages.operator.merchant.view import facts_of, merchant_in_path, standing
from cuota.web.pages.operator.merchant_form import cents_of, once_of, read_terms
from cuota.web.pages.operator.parts import section
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import OperatorDesk, allowed, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of


@allowed(OperatorAction.READ_MERCHANTS)
async def merchant(request: Request, desk: OperatorDesk) -> Response:
    """Show one merchant."""
    return await _page(request, desk, await merchant_in_path(request))


async def _page(
    request: Request, desk: OperatorDesk, found: Merchant, errors: dict[str, str] | None = None
) -> Response:
    context = service_of(request).context
    held = await credentials.read_of_merchant(context.pool, found.merchant_id)
    live = [each for each in held if each.revoked_at is None]
    change = desk.may(OperatorAction.CHANGE_MERCHANTS)
    sections = [await standing(context, found, len(live)), section(pairs=facts_of(found, len(live)))]
    if desk.may(OperatorAction.READ_MONEY):
        sections += await money_sections(context, found)
    shown: PageContext = {
        **common(request, desk, found.name, here=MERCHANTS),
        "sections": sections,
        "address": f"{MERCHANTS}/{found.merchant_id}",
        "can_change": change,
        "can_revoke": change and bool(live),
        "can_suspend": desk.may(OperatorAction.SUSPEND_MERCHANTS),
        "suspended": found.suspended,
        "can_adjust": desk.may(OperatorAction.ADJUST_MONEY),
        "values": {
            "minimum": money.text_of(found.minimum),
            "maximum": money.text_of(found.maximum),
        },
        "once": str(context.new_id()),
        "schedules": [
            {"value": "", "label": "as before"},
            *({"value": each.value, "label": each.value} for each in PayoutSchedule),
        ],
    }
    if errors:
        return page(request, "operator/merchant.html", failed(shown, errors, desk.form), status=400)
    return page(request, "operator/merchant.html", shown)


@allowed(OperatorAction.READ_MERCHANTS)
async def change(request: Request, desk: OperatorDesk) -> Response:
    """Change the limits or terms, correct the balance, or revoke the credentials. Each needs a reason and a fresh code."""
    found, do = await merchant_in_path(request), desk.form.get("do", "")
    needed = OperatorAction.ADJUST_MONEY if do == "adjust" else OperatorAction.CHANGE_MERCHANTS
    if not desk.may(needed):
        return await _page(
            request, desk, found, {"": "Your role does not include this. Nothing was changed."}
        )
    if errors := await prove(request, desk):
        return await _page(request, desk, found, errors)
    try:
        said = await _changed(service_of(request).context, desk, found, do)
    except BadTeam as bad:
        return await _page(request, desk, found, {bad.name: str(bad)})
    except BadMerchant as bad:
        return await _page(request, desk, found, {"": str(bad)})
    return see_other(f"{MERCHANTS}/{found.merchant_id}?said={said}")


async def _changed(context: Context, desk: OperatorDesk, found: Merchant, do: str) -> str:
    """Log the change, make it, and return the key of the text for the next page. Raises BadTeam or BadMerchant."""
    form, named = desk.form, str(found.merchant_id)
    reason = reason_of(form.get("reason", ""))

    async def do_logged(
        action: str,
        act: Callable[[Context], Awaitable[object]],
        before: dict[str, str] | None = None,
        after: dict[str, str] | None = None,
    ) -> None:
        note = OperatorNote(action, found.name, reason, found.merchant_id, before, after)
        await logged(context, desk.actor, note, act)
        await tell_merchant(context, found.merchant_id, note)

    if do == "limits":
        low, high = cents_of(form, "minimum"), cents_of(form, "maximum")
        before = {"minimum": money.text_of(found.minimum), "maximum": money.text_of(found.maximum)}
        after = {"minimum": money.text_of(low), "maximum": money.text_of(high)}
        new = MerchantTerms(minimum=low, maximum=high)
        if before != after:
            await do_logged(
                "merchant.limits", lambda context: update_merchant(context, named, new), before, after
            )
        return "changed"
    if do == "adjust":
        cents, once = cents_of(form, "amount"), once_of(form)
        # The merchant sees the reason beside the amount.
        await do_logged(
            "money.adjust",
            lambda context: adjust_merchant(context, named, cents, reason, once),
            after={"amount": money.text_of(cents)},
        )
        return "adjusted"
    if do == "terms":
        change = read_terms(form)
        versions_now = await versions.read_all(context.pool, found.merchant_id)
        newest = versions_now[-1] if versions_now else None
        if newest is None or any(getattr(newest, name) != value for name, value in change.given.items()):
            words = change.words_before(newest), change.words
            await do_logged("merchant.terms", lambda context: change_terms(context, named, change), *words)
        return "terms"
    if do == "revoke":
        await require_live(context, found)
        await do_logged("merchant.revoke", lambda context: revoke_merchant(context, named))
        return "revoked"
    raise BadTeam("Choose what to change.")
