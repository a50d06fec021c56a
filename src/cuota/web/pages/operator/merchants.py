"""The merchants: their limits and terms, what they are owed, and the switches of the operator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.merchant import Merchant
from cuota.core.operator.role import OperatorAction
from cuota.core.payout.percent import percent_text
from cuota.core.payout.terms import PayoutSchedule
from cuota.db.merchant import credentials, merchants
from cuota.db.payout import balance, bank_accounts
from cuota.db.payout import terms as versions
from cuota.flows.context import Context
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.merchant.manage_merchants import (
    BadMerchant,
    MerchantTerms,
    revoke_merchant,
    update_merchant,
)
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import OperatorNote, logged, tell_merchant
from cuota.flows.payout.adjust_merchant import adjust_merchant
from cuota.flows.payout.change_terms import change_terms
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.merchant_form import cents_of, once_of, read_terms
from cuota.web.pages.operator.parts import cell, section, table
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, id_in_path, missing, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_MERCHANTS = f"{PATH}/merchants"
MOST_SHOWN = 500


@allowed(OperatorAction.READ_MERCHANTS)
async def listed(request: Request, desk: OperatorDesk) -> Response:
    """List the merchants, those whose name contains the search text."""
    asked = request.query_params.get("q", "").strip()[:100]
    every = await merchants.read_all(service_of(request).context.pool)
    found = sorted(
        (each for each in every if asked.lower() in each.name.lower() or asked == str(each.merchant_id)),
        key=lambda each: each.name.lower(),
    )
    columns = [
        cell("Name"), cell("Smallest order", amount=True, wide=True), cell("Largest order", amount=True),
    ]  # fmt: skip
    rows = [
        [
            cell(each.name, f"{_MERCHANTS}/{each.merchant_id}"),
            cell(money.shown(each.minimum, each.currency), amount=True, wide=True),
            cell(money.shown(each.maximum, each.currency), amount=True),
        ]
        for each in found[:MOST_SHOWN]
    ]
    count = "1 merchant" if len(found) == 1 else f"{len(found):,} merchants"
    more = f", the first {MOST_SHOWN} by name" if len(found) > MOST_SHOWN else ""
    empty = "No merchant has this in its name." if asked else "No merchant yet."
    shown: PageContext = {
        **common(request, desk, "Merchants", here=_MERCHANTS, lead=count + more),
        "sections": [table("", columns, rows, empty)],
        "values": {"q": asked},
        "can_add": desk.may(OperatorAction.CHANGE_MERCHANTS),
    }
    return page(request, "operator/merchants.html", shown)


async def _find(request: Request) -> Merchant:
    """Return the merchant in the path. Raises Stop with the 404 page."""
    found = await merchants.read(service_of(request).context.pool, id_in_path(request, "merchant_id"))
    if found is None:
        raise Stop(missing(request))
    return found


@allowed(OperatorAction.READ_MERCHANTS)
async def merchant(request: Request, desk: OperatorDesk) -> Response:
    """Show one merchant."""
    return await _page(request, desk, await _find(request))


async def _page(
    request: Request, desk: OperatorDesk, found: Merchant, errors: dict[str, str] | None = None
) -> Response:
    context = service_of(request).context
    held = await credentials.read_of_merchant(context.pool, found.merchant_id)
    live = [each for each in held if each.revoked_at is None]
    change = desk.may(OperatorAction.CHANGE_MERCHANTS)
    sections = [section(pairs=_facts(found, len(live)))]
    if desk.may(OperatorAction.READ_MONEY):
        sections += await _money(context, found)
    shown: PageContext = {
        **common(request, desk, found.name, here=_MERCHANTS),
        "sections": sections,
        "address": f"{_MERCHANTS}/{found.merchant_id}",
        "can_change": change,
        "can_revoke": change and bool(live),
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


def _facts(found: Merchant, live: int) -> Sequence[tuple[str, object]]:
    return [
        ("Merchant id", found.merchant_id),
        ("Smallest order", money.shown(found.minimum, found.currency)),
        ("Largest order", money.shown(found.maximum, found.currency)),
        ("Within these, the merchant takes", _own_limits(found)),
        ("Shown to consumers as", found.shown_name),
        ("Captured", "when the merchant says so" if found.defer_funds_capture else "when approved"),
        ("Web origins", ", ".join(found.origins) or "none"),
        ("API credentials", f"{live} in force" if live else "revoked: the merchant cannot call the API"),
    ]


def _own_limits(found: Merchant) -> str:
    own = money.shown(found.lowest, found.currency), money.shown(found.highest, found.currency)
    return f"{own[0]} to {own[1]}" if found.own.minimum or found.own.maximum else "all of them"


async def _money(context: Context, found: Merchant) -> list[PageContext]:
    merchant_id, pool = found.merchant_id, context.pool
    owed = await balance.read(pool, merchant_id, context.now())
    terms = await versions.read_all(pool, merchant_id)
    accounts = await bank_accounts.read_all(pool, merchant_id)
    paused = await bank_accounts.paused_since(pool, merchant_id)
    facts = [
        ("Available", _signed(owed.available)), ("Pending", _signed(owed.pending)),
        ("Kept back as a reserve", money.shown(owed.reserved)), ("Owed by the merchant", money.shown(owed.debt)),
        ("Bank account", f"ends in {accounts[-1].last4}" if accounts else "none: nothing is paid"),
        ("Payouts", f"paused since {when(paused)}, because one came back" if paused else "go on"),
    ]  # fmt: skip
    rows = [
        [
            cell(each.version, more=f"from {when(each.valid_from)}"),
            cell(f"{percent_text(each.percent)} % and {money.shown(each.fixed)}"),
            cell(each.payout.value, wide=True),
            cell(
                f"{percent_text(each.reserve)} % for {each.reserve_days} days" if each.reserve else "none",
                wide=True,
            ),
        ]
        for each in reversed(terms)
    ]
    columns = [
        cell("Version"), cell("A capture costs"), cell("Paid", wide=True), cell("Reserve", wide=True),
    ]  # fmt: skip
    empty = "No terms: captures cost nothing, and payouts are daily. Set them with: cuota merchant terms"
    return [section("Money", pairs=facts), table("Terms", columns, rows, empty)]


def _signed(cents: int) -> str:
    return f"-{money.shown(-cents)}" if cents < 0 else money.shown(cents)


@allowed(OperatorAction.READ_MERCHANTS)
async def change(request: Request, desk: OperatorDesk) -> Response:
    """Change the limits, correct the balance, or revoke the credentials. Each has a reason and needs a fresh code."""
    found, do = await _find(request), desk.form.get("do", "")
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
    return see_other(f"{_MERCHANTS}/{found.merchant_id}?said={said}")


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
        await do_logged(
            "merchant.limits", lambda context: update_merchant(context, named, new), before, after
        )
        return "changed"
    if do == "adjust":
        cents, once = cents_of(form, "amount"), once_of(form)
        # The merchant reads the reason beside the amount.
        await do_logged(
            "money.adjust",
            lambda context: adjust_merchant(context, named, cents, reason, once),
            after={"amount": money.text_of(cents)},
        )
        return "adjusted"
    if do == "terms":
        change = read_terms(form)
        versions_now = await versions.read_all(context.pool, found.merchant_id)
        if versions_now and all(
            getattr(versions_now[-1], name) == value for name, value in change.given.items()
        ):
            # Such as after a second click.
            return "terms"
        words = {name: str(value) for name, value in change.given.items()}
        await do_logged("merchant.terms", lambda context: change_terms(context, named, change), after=words)
        return "terms"
    if do == "revoke":
        await do_logged("merchant.revoke", lambda context: revoke_merchant(context, named))
        return "revoked"
    raise BadTeam("Choose what to change.")
