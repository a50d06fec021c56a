"""Phones, cards, addresses and browsers that are close to the velocity limits of the policy, or above them."""

from __future__ import annotations

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.operator.role import OperatorAction
from cuota.core.risk.policy import Window
from cuota.core.risk.signal import SignalKind
from cuota.db.cluster.living import LivingNodes
from cuota.db.risk.shared_signals import SharedSignal, shared
from cuota.flows.context import Context
from cuota.flows.risk.keep_policy import policy_in_force
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.parts import cell, section, state, table
from cuota.web.pages.operator.risk import BUSY, RISK, one_simulation
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

MOST_SHOWN = 50
_WORDS = {
    SignalKind.PHONE: "phone number",
    SignalKind.CARD: "card",
    SignalKind.ADDRESS: "billing address",
    SignalKind.DEVICE: "browser",
}


@allowed(OperatorAction.READ_RISK)
async def velocity(request: Request, desk: OperatorDesk) -> Response:
    """List the values that were used by at least half as many orders as the policy allows."""
    context = service_of(request).context
    if one_simulation.locked():
        sections = [section(texts=[BUSY])]
    else:
        async with one_simulation:
            windows = (await policy_in_force(context)).velocity
            sections = [await _kind(context, desk.every, kind, getattr(windows, kind)) for kind in SignalKind]
    shown: PageContext = {
        **common(
            request,
            desk,
            "Velocity",
            here=RISK,
            lead="Values that orders of all merchants share, at half of the policy's limit or more.",
        ),
        "sections": [*sections, section(links=[(RISK, "Risk")])],
    }
    return page(request, "operator/page.html", shown)


async def _kind(context: Context, every: LivingNodes, kind: SignalKind, limit: Window) -> PageContext:
    since = context.now() - timedelta(hours=limit.hours)
    found = await shared(every, kind, since, at_least(limit), MOST_SHOWN)
    word = _WORDS[kind]
    hours = "1 hour" if limit.hours == 1 else f"{limit.hours} hours"
    columns = [
        cell("Latest order"), cell("First and last", wide=True), cell("Merchants", amount=True, wide=True),
        cell("Orders", amount=True), cell("The next order"),
    ]  # fmt: skip
    title = f"The same {word}: at most {limit.orders} orders in {hours}"
    empty = f"No {word} was used by {at_least(limit)} orders or more."
    return table(title, columns, [_row(each, limit) for each in found], empty)


def at_least(limit: Window) -> int:
    """Return the lowest number of orders for which a value is listed: half of the limit, but at least two."""
    return max(2, (limit.orders + 1) // 2)


def _row(each: SharedSignal, limit: Window) -> list[PageContext]:
    return [
        cell(each.latest, f"{PATH}/orders/{each.latest}"),
        cell(f"{when(each.first)} to {when(each.last)}", wide=True),
        cell(f"{each.merchants:,}", amount=True, wide=True),
        cell(f"{each.orders:,}", amount=True),
        state("Declined", "bad") if each.orders >= limit.orders else state("Decided as usual", "wait"),
    ]
