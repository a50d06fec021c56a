"""Compares everything that says something about a plan: the API, the pages of the consumer, the shop and the operator, the card
network's own records, and the webhooks."""

from __future__ import annotations

import html
import re
from typing import Any

from cuota.core import money
from cuota.core.dates import day
from cuota.core.installment import Installment, owed
from cuota.db.plan.plans import Agreed
from cuota.db.verify.recalculate import verify
from support.plan_life.life import PlanLife

# A check is repeated this many times while the background jobs change the plan meanwhile.
TRIES = 6
_ACCOUNT_ROW = re.compile(
    r'<tr>\s*<th scope="row"><span class="vh">Payment (\d+), </span>(.*?)</th>.*?<td class="amount">(.*?)</td>',
    re.DOTALL,
)
_DESK_ROW = re.compile(
    r'<tr><th scope="row">(\d+) of (\d+)</th> <td>(.*?)</td> <td>.*?</td>\s*<td class="amount">(.*?)</td>',
    re.DOTALL,
)
_OPERATOR_ROW = re.compile(r"(\d+)\. (\$[\d.,]+), due (\w+, \w+ \d+, \d+): ([^\n<]*)")
_NOW = re.compile(r'<h2 id="now-title">(.*?)</h2>\s*((?:<p>.*?</p>\s*)*)', re.DOTALL)
_CHARGES = """SELECT s.amount, s.refunded, c.state FROM card_simulator.charges s JOIN charges c ON c.charge_id = s.key
    WHERE c.order_id = $1 AND s.approved"""
_REFUNDS = "SELECT amount, state FROM card_refunds WHERE order_id = $1"
_CHARGED_BACK = """SELECT coalesce(sum(amount), 0)::bigint AS cents FROM disputes
    WHERE order_id = $1 AND kind = 'chargeback' AND (status <> 'closed' OR outcome = 'lost')"""


async def disagreements(life: PlanLife) -> list[str]:
    """Return what differs, now that the plan does not change."""
    found: list[str] = []
    for _ in range(TRIES):
        before = await life.agreed()
        found = [
            *await _record(life, before), *await _verified(life), *await _network(life, before),
            *await _account(life, before), *await _desk(life, before), *await _operator(life, before),
        ]  # fmt: skip
        if not found:
            return []
        after = await life.agreed()
        if (before.order, before.plan) == (after.order, after.plan):
            return found
    return found


async def _record(life: PlanLife, agreed: Agreed) -> list[str]:
    """The API's order against the order and the plan that are stored."""
    order, plan, record = agreed.order, agreed.plan, await life.shop.read(life.plan.order)

    def cents(name: str) -> int:
        return money.cents_of(str(record[name]))

    def sums(name: str) -> int:
        return sum(money.cents_of(str(each["amount"])) for each in record[name])

    compared = {
        "captured": (cents("capturedAmount"), order.captured, sums("captures")),
        "voided": (cents("voidedAmount"), order.voided, sums("voids")),
        "refunded": (cents("refundedAmount"), order.refunded, sums("refunds")),
        "amount": (cents("amount"), order.amount - order.voided),
        "plan": (sum(item.amount for item in plan), order.amount - order.voided - order.refunded),
        "fees": (sum(item.fee for item in plan), order.fee - order.fee_returned),
    }
    return [f"{name}: {values}" for name, values in compared.items() if len(set(values)) > 1]


async def _verified(life: PlanLife) -> list[str]:
    return [f"verify: {each}" for each in (await verify(life.sandbox.context.pool)).disagreements]


async def _network(life: PlanLife, agreed: Agreed) -> list[str]:
    """What the card network kept of the consumer's money against what the plan says that was paid."""
    order_id = life.ids[1]
    charges = await life.sandbox.fetch(_CHARGES, order_id)
    refunds = await life.sandbox.fetch(_REFUNDS, order_id)
    charged_back = (await life.sandbox.fetch(_CHARGED_BACK, order_id))[0]["cents"]
    if any(each["state"] != "succeeded" for each in charges):
        return []  # the answer to a charge is on its way
    waiting = sum(each["amount"] for each in refunds if each["state"] in {"pending", "failed"})
    held = sum(each["amount"] - each["refunded"] for each in charges) - waiting
    paid = sum(item.total for item in agreed.plan if item.paid)
    elsewhere = any(each["state"] in {"charged_back", "paid_otherwise"} for each in refunds)
    if charged_back or elsewhere:
        # The bank gave back a part, which the network's simulator does not subtract from its charges.
        return (
            [f"the network holds {held}, less than {paid} that was paid"]
            if held < 0 or paid > held + waiting
            else []
        )
    return [] if held == paid else [f"the network holds {held}, but {paid} was paid"]


async def _account(life: PlanLife, agreed: Agreed) -> list[str]:
    """The consumer's page of the plan."""
    order, plan = agreed.order, agreed.plan
    source = (await life.consumer.open(life.plan.path)).answer.text
    rows = _ACCOUNT_ROW.findall(source)
    shown = [(int(number), html.unescape(amount)) for number, _, amount in rows]
    expected = [(item.number, money.shown(item.total + item.returned, order.currency)) for item in plan]
    found = [] if shown == expected else [f"the consumer's page shows {shown}, not {expected}"]
    days = [(on, day(item.due_on)) for (_, on, _), item in zip(rows, plan, strict=False) if not item.paid]
    found += [f"the consumer's page shows {on} for {right}" for on, right in days if on != right]
    return found + _next_payment(source, agreed)


def _next_payment(source: str, agreed: Agreed) -> list[str]:
    """What the consumer's page announces against the earliest charge."""
    order, left = agreed.order, owed(agreed.plan)
    title = _NOW.search(source)
    words = re.sub("<[^>]+>", " ", title[2]) if title else ""
    if order.charging is not None or order.paused_at is not None:
        return []
    if not left:
        return (
            []
            if title and title[1] == "Nothing left to pay"
            else [f"nothing is left, but the page says {title and title[1]}"]
        )
    coming = [item for item in left if item.charge_at is not None]
    if any(item.failures for item in left) or not coming:
        return []
    first = min(coming, key=_charge_time)
    named = (day(first.due_on) in words or "today" in words) and money.shown(
        first.total, order.currency
    ) in words
    return (
        []
        if named
        else [f"payment {first.number} is next, on {first.due_on}, but the page says {words.strip()}"]
    )


def _charge_time(item: Installment) -> Any:
    return item.charge_at


async def _desk(life: PlanLife, agreed: Agreed) -> list[str]:
    """The page of the shop's staff."""
    page = await life.staff.open(f"/desk/orders/{life.plan.order['orderId']}")
    shown = [
        (int(number), int(count), on, html.unescape(re.sub("<.*", "", amount)))
        for number, count, on, amount in _DESK_ROW.findall(page.answer.text)
    ]
    plan, currency = agreed.plan, agreed.order.currency
    expected = [
        (item.number, len(plan), day(item.due_on, year=True), money.shown(item.total, currency))
        for item in plan
    ]
    return [] if shown == expected else [f"the shop's page shows {shown}, not {expected}"]


async def _operator(life: PlanLife, agreed: Agreed) -> list[str]:
    """The operator's page, which has the text of `cuota explain plan`."""
    page = await life.operator.open(f"/operator/orders/{life.plan.order['orderId']}")
    rows = _OPERATOR_ROW.findall(html.unescape(page.answer.text))
    shown = [(int(number), on, amount) for number, amount, on, _ in rows]
    currency = agreed.order.currency
    expected = [
        (item.number, day(item.due_on, year=True), money.shown(item.total, currency)) for item in agreed.plan
    ]
    unpaid = [
        number for number, _, _, said in rows if "paid" not in said and agreed.plan[int(number) - 1].paid
    ]
    found = [] if shown == expected else [f"the operator's page shows {shown}, not {expected}"]
    return found + [f"the operator's page does not say that payment {number} is paid" for number in unpaid]


async def told_by_webhooks(life: PlanLife) -> list[str]:
    """Compare the webhooks with the order, after two quiet hours."""
    await life.sandbox.advance("2h")
    order = (await life.agreed()).order
    mine = [event for _, event in life.receiver.got if event["orderId"] == life.plan.order["orderId"]]
    sequences = sorted({event["sequence"] for event in mine})

    def told(*kinds: str) -> int:
        return sum(money.cents_of(str(event["amount"])) for event in mine if event["type"] in kinds)

    compared = {
        "sequences": (sequences, list(range(1, len(sequences) + 1))),
        "captured": (told("capture.completed"), order.captured),
        "refunded": (told("refund.completed"), order.refunded),
        "voided": (told("void.completed", "authorization.expired"), order.voided),
    }
    return [f"webhooks, {name}: {values}" for name, values in compared.items() if values[0] != values[1]]
