"""The rules for deciding about consumers: the current policy, and a simulation with other limits."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.operator.role import OperatorAction
from cuota.core.risk.explanation import because
from cuota.core.risk.policy import Policy
from cuota.flows.risk.keep_policy import policy_in_force
from cuota.flows.risk.review_decisions import DecisionTally, Simulated, simulate
from cuota.web.pages.operator.parts import cell, section, table
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

RISK = f"{PATH}/risk"
DAYS = (1, 7, 30)
MOST_POINTS = 10_000
BUSY = "Another page is reading the decisions right now. Open this page again in a moment."
# A simulation reads every decision of its days. Each process allows one simulation at a time.
one_simulation = asyncio.Lock()


@allowed(OperatorAction.READ_RISK)
async def risk(request: Request, desk: OperatorDesk) -> Response:
    """Show the current policy."""
    policy = await policy_in_force(service_of(request).context)
    return _page(request, desk, policy, None)


def _values(policy: Policy) -> dict[str, str]:
    exposure = policy.exposure
    return {
        "threshold": str(policy.score.threshold),
        "refer_from": "" if policy.score.refer_from is None else str(policy.score.refer_from),
        "new": money.text_of(exposure.new),
        "ceiling": money.text_of(exposure.ceiling),
        "days": "7",
    }


def _page(
    request: Request,
    desk: OperatorDesk,
    policy: Policy,
    found: Simulated | None,
    errors: dict[str, str] | None = None,
) -> Response:
    exposure = policy.exposure
    facts = [
        ("Policy in force", policy.version),
        ("An approval needs a score of at least", policy.score.threshold),
        (
            "Referred to a person",
            "nobody"
            if (refer_from := policy.score.refer_from) is None
            else f"with a score of {refer_from} or more",
        ),
        ("A new consumer starts with", policy.score.base),
        ("A new consumer may owe at most", money.shown(exposure.new)),
        ("Any consumer may owe at most", money.shown(exposure.ceiling)),
    ]
    shown: PageContext = {
        **common(request, desk, "Risk", here=RISK),
        "sections": [
            *([simulated(found)] if found else []),
            section(pairs=facts),
            section(
                links=[
                    *(
                        [(f"{RISK}/reviews", "Reviews: orders that wait for a person")]
                        if desk.may(OperatorAction.READ_REVIEWS)
                        else []
                    ),
                    (f"{RISK}/policies", "Policies: compare versions, try a whole policy"),
                    (f"{RISK}/velocity", "Velocity"),
                ]
            ),
            section("The whole policy", lines=policy.text.splitlines()),
        ],
        "values": {**_values(policy), **desk.form},
        "days": day_options(),
    }
    if errors:
        return page(request, "operator/risk.html", failed(shown, errors, desk.form), status=400)
    return page(request, "operator/risk.html", shown)


def day_options() -> list[PageContext]:
    """Return the options for the number of days that are decided again."""
    return [{"value": str(each), "label": "1 day" if each == 1 else f"{each} days"} for each in DAYS]


def simulated(found: Simulated, by: str = "these limits") -> PageContext:
    """Return the table of a simulation. `by` names the policy or limits that were used."""
    rows = (
        ("Approved then", found.approved), ("Declined then", found.declined), ("Referred then, and not decided", found.referred),
        (f"Approved with {by}", found.would_approve), (f"Declined with {by}", found.would_decline),
        (f"Referred to a person with {by}", found.would_refer), ("Newly approved", found.newly_approved),
        ("Newly declined", found.newly_declined), ("Newly referred", found.newly_referred),
    )  # fmt: skip
    columns = [
        cell("Orders of these days"), cell("Orders", amount=True), cell("Amount", amount=True),
        cell("Overdue now", amount=True, wide=True),
    ]  # fmt: skip
    shown = table(f"What {by} would have decided", columns, [_row(*each) for each in rows], "")
    shown["texts"] = [
        "Nothing was changed. Whether newly approved orders would have been paid is not known.",
        *(f"{count} newly declined for {because(code)}" for code, count in found.reasons.most_common()),
    ]
    return shown


def _row(label: str, tally: DecisionTally) -> list[PageContext]:
    return [
        cell(label),
        cell(f"{tally.orders:,}", amount=True),
        cell(money.shown(tally.amount), amount=True),
        cell(money.shown(tally.unpaid), amount=True, wide=True),
    ]


@allowed(OperatorAction.READ_RISK)
async def try_limits(request: Request, desk: OperatorDesk) -> Response:
    """Decide the orders of the chosen days again with other limits. Nothing is changed."""
    context = service_of(request).context
    policy = await policy_in_force(context)
    errors: dict[str, str] = {}
    points, refer_from = _points(desk.form.get("threshold", "")), None
    if points is None:
        errors["threshold"] = f"Enter a whole number from 0 to {MOST_POINTS}."
    if desk.form.get("refer_from", "") and points is not None:
        refer_from = _points(desk.form["refer_from"])
        if refer_from is None or refer_from >= points:
            errors["refer_from"] = f"Enter a whole number below {points}, or leave the field empty."
    new, ceiling = (_cents(desk.form.get(name, "")) for name in ("new", "ceiling"))
    for name, cents in (("new", new), ("ceiling", ceiling)):
        if cents is None:
            errors[name] = "Enter an amount such as 500.00."
    days = desk.form.get("days", "")
    if days not in {str(each) for each in DAYS}:
        errors["days"] = "Choose a number of days."
    if points is None or new is None or ceiling is None or errors:
        return _page(request, desk, policy, None, errors)
    exposure = replace(policy.exposure, new=new, ceiling=ceiling)
    score = replace(policy.score, threshold=points, refer_from=refer_from)
    other = replace(policy, exposure=exposure, score=score)
    if one_simulation.locked():
        text = "Another person is trying other limits right now. Send the form again in a moment."
        return _page(request, desk, policy, None, {"": text})
    async with one_simulation:
        now = context.now()
        found = await simulate(context, other, now - timedelta(days=int(days)), now, None)
    return _page(request, desk, policy, found)


def _points(typed: str) -> int | None:
    """Return a typed score, or None if the text is not a score."""
    points = int(typed) if typed.isascii() and typed.isdigit() and len(typed) <= 5 else MOST_POINTS + 1
    return points if points <= MOST_POINTS else None


def _cents(typed: str) -> int | None:
    """Return a typed amount in cents, or None if the text is not an amount of at least one cent."""
    try:
        return money.typed_payment(typed)
    except money.BadAmount:
        return None
