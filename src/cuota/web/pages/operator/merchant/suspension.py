"""Suspends and resumes a merchant. The page shows the effect before the person presses the button."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.merchant import Merchant
from cuota.core.operator.role import OperatorAction
from cuota.db.merchant import merchants
from cuota.db.payout import holds
from cuota.db.payout.holds import Holds
from cuota.flows.context import Context
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.merchant.suspend_merchant import require_change, resume_merchant, suspend_merchant
from cuota.flows.operator.log_action import OperatorNote, logged, tell_merchant
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.acting import acted
from cuota.web.pages.operator.merchant.listing import MERCHANTS
from cuota.web.pages.operator.merchant.view import hold_words, merchant_address, merchant_in_path
from cuota.web.pages.operator.parts import section
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_GO_ON = (
    "Captures, voids, refunds, plans, disputes, webhooks and the dashboard of the merchant's team still work."
)


@allowed(OperatorAction.READ_MERCHANTS, OperatorAction.SUSPEND_MERCHANTS)
async def ask(request: Request, desk: OperatorDesk) -> Response:
    """Return a text with the effect of a suspension, or of its end."""
    return await _page(request, desk, await merchant_in_path(request))


async def _page(
    request: Request, desk: OperatorDesk, found: Merchant, errors: dict[str, str] | None = None
) -> Response:
    context = service_of(request).context
    held = await holds.read(context.pool, found.merchant_id)
    title = f"{'Resume' if found.suspended else 'Suspend'} {found.name}"
    shown: PageContext = {
        **common(request, desk, title, here=MERCHANTS),
        "sections": [section(texts=await _texts(context, found, held))],
        "address": merchant_address(found),
        "suspended": found.suspended,
        "can_hold": held.held_since is None,
        "values": {},
    }
    if errors:
        return page(request, "operator/suspension.html", failed(shown, errors, desk.form), status=400)
    return page(request, "operator/suspension.html", shown)


async def _texts(context: Context, found: Merchant, held: Holds) -> list[str]:
    count, amount = await holds.could_stop(context.pool, found.merchant_id)
    waits = f"{count:,} payout{'' if count == 1 else 's'}, {money.shown(amount, found.currency)} together"
    now = f"{waits}, which were not sent to the bank yet, and " if count else ""
    stops = f"A hold of payouts stops {now}every payout that closes from now on."
    if not found.suspended:
        refused = "New orders and checkouts are refused within 5 seconds. Shoppers in an open checkout read that the shop cannot take the payment."
        return [refused, _GO_ON, stops]
    since = await merchants.suspended_since(context.pool, found.merchant_id)
    texts = [f"Suspended since {when(since)}. {_GO_ON}" if since else _GO_ON]
    if words := hold_words(held):
        texts.append(
            f"Payouts are {words}. Held payouts stay held after that, until a person releases each of them."
        )
        return texts
    return [*texts, stops]


@allowed(OperatorAction.READ_MERCHANTS, OperatorAction.SUSPEND_MERCHANTS)
async def change(request: Request, desk: OperatorDesk) -> Response:
    """Suspend the merchant, also hold its payouts, or resume the merchant."""
    found, do = await merchant_in_path(request), desk.form.get("do", "")

    async def act(reason: str) -> None:
        await _change(service_of(request).context, desk, found, do, reason)

    if errors := await acted(request, desk, act):
        return await _page(request, desk, found, errors)
    said = {"suspend": "suspended", "hold": "held", "resume": "resumed"}[do]
    return see_other(f"{merchant_address(found)}?said={said}")


async def _change(context: Context, desk: OperatorDesk, found: Merchant, do: str, reason: str) -> None:
    """Log the change, and make it. Raises BadTeam or BadMerchant."""
    named = str(found.merchant_id)
    hold = do == "hold" or desk.form.get("hold") == "yes"
    if do not in {"suspend", "hold", "resume"}:
        raise BadTeam("Choose what to change.")
    # A second click has no entry in the log.
    await require_change(context, found, suspend=do != "resume", hold=hold)
    action = "merchant.resume" if do == "resume" else "merchant.suspend"
    after = {"payouts": "held"} if hold and do != "resume" else None
    note = OperatorNote(action, found.name, reason, found.merchant_id, after=after)

    async def act(context: Context) -> None:
        if do == "resume":
            await resume_merchant(context, named)
        else:
            await suspend_merchant(context, named, hold=hold, suspended=do == "hold")

    await logged(context, desk.actor, note, act)
    await tell_merchant(context, found.merchant_id, note)
