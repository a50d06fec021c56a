"""The bank account for a merchant's payouts.

The page shows the last four digits, changes the account with a delay, and withdraws a change.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.dates import moment
from cuota.core.desk.notice import ZONE
from cuota.core.desk.role import Action
from cuota.core.instant import timestamp
from cuota.core.payout.bank_account import (
    CHANGE_DELAY,
    BadBankAccount,
    BankAccount,
    BankDetails,
    read_bank_details,
)
from cuota.flows.context import Context
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import AuditNote, Cause, record
from cuota.flows.payout.change_bank_account import (
    BankStanding,
    cancel_change,
    change_bank_account,
    read_standing,
)
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.changes import once_of, proved_cause
from cuota.web.pages.desk.view import common, failed, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

BANK = f"{PATH}/payouts/bank"
_NONE_WAITS = "No change is waiting. The change has taken effect, or somebody withdrew it."


@allowed(Action.READ_PAYOUTS)
async def show(request: Request, desk: Desk) -> Response:
    """Show the current account, a change that waits, and earlier accounts."""
    return await _page(request, desk)


async def _page(request: Request, desk: Desk, errors: dict[str, str] | None = None) -> Response:
    context = service_of(request).context
    standing = await read_standing(context, desk.merchant_id)
    shown: PageContext = {
        **common(request, desk, "Bank account", here=f"{PATH}/payouts", lead="Where your payouts go."),
        "address": BANK,
        "in_force": _account(standing.in_force),
        "pending": _account(standing.pending),
        "earlier": [_account(each) for each in reversed(standing.earlier)],
        "paused": when(standing.paused_since) if standing.paused_since else None,
        "days": CHANGE_DELAY.days,
        "may_change": desk.may(Action.CHANGE_BANK),
        "asks_code": not desk.fresh,
        "once": str(context.new_id()),
    }
    if errors:
        # After an error, the person types the numbers again, because a page never shows them.
        return page(request, "desk/bank.html", failed(shown, errors, _typed(desk)), status=400)
    return page(request, "desk/bank.html", shown)


def _typed(desk: Desk) -> dict[str, str]:
    return {name: text for name, text in desk.form.items() if name in {"form", "reason"}}


def _account(each: BankAccount | None) -> PageContext | None:
    if each is None or each.effective_at is None:
        return None
    return {
        "last4": each.last4,
        "from": moment(each.effective_at.astimezone(ZONE)),
        "since": when(each.effective_at),
    }


@allowed(Action.READ_PAYOUTS, Action.CHANGE_BANK)
async def change(request: Request, desk: Desk) -> Response:
    """Change the account, or withdraw a change that waits. Each needs a reason and a fresh code."""
    context, do = service_of(request).context, desk.form.get("do", "")
    try:
        cause = await proved_cause(request, desk)
        if do == "withdraw":
            await _withdraw(context, desk, cause)
        else:
            await _change(context, desk, cause, _details(desk))
    except BadChange as bad:
        return await _page(request, desk, {bad.name: str(bad)})
    return see_other(f"{BANK}?said={'bank-withdrawn' if do == 'withdraw' else 'bank'}")


def _details(desk: Desk) -> BankDetails:
    """Return the numbers in the form. Raises BadChange."""
    given = [desk.form.get(name, "") for name in ("routing", "account", "again")]
    try:
        details = read_bank_details(given[0], given[1])
    except BadBankAccount as bad:
        name = "routing" if str(bad).startswith("The routing") else "account"
        raise BadChange(str(bad), name) from None
    if "".join(given[2].replace("-", " ").split()) != details.account:
        raise BadChange("The two account numbers differ. Type both again.", "again")
    return details


async def _change(context: Context, desk: Desk, cause: Cause, details: BankDetails) -> None:
    standing, once = await read_standing(context, desk.merchant_id), once_of(desk)
    at = context.now() + CHANGE_DELAY if standing.in_force else context.now()
    after = {"account": f"ending in {details.last4}", "takesEffect": timestamp(at)}
    await _logged(
        context,
        desk,
        AuditNote("bank.change", "Bank account", cause.reason, before=_before(standing), after=after),
    )
    try:
        await change_bank_account(context, desk.merchant_id, details, desk.actor, once)
    except BadChange as bad:
        await _logged(context, desk, AuditNote("bank.refused", "Bank account", str(bad)))
        raise


async def _withdraw(context: Context, desk: Desk, cause: Cause) -> None:
    standing = await read_standing(context, desk.merchant_id)
    if standing.pending is None:
        raise BadChange(_NONE_WAITS)
    before = {"change": f"to the account ending in {standing.pending.last4}"}
    await _logged(
        context, desk, AuditNote("bank.withdraw", "Bank account", cause.reason, before=before, after={})
    )
    if await cancel_change(context, desk.merchant_id, desk.actor) is None:
        await _logged(context, desk, AuditNote("bank.refused", "Bank account", _NONE_WAITS))
        raise BadChange(_NONE_WAITS)


def _before(standing: BankStanding) -> dict[str, str]:
    held = standing.pending or standing.in_force
    return {"account": f"ending in {held.last4}"} if held else {}


async def _logged(context: Context, desk: Desk, note: AuditNote) -> None:
    """Write the audit log entry. Call this before the change, so that a crash never leaves a change without an entry."""
    await record(context, desk.merchant_id, desk.actor, note)
