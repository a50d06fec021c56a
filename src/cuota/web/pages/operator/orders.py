"""All facts about one order, in words: its history, the reasons, and the next step of each installment."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.operator.role import OperatorAction
from cuota.db.cluster.living import LivingNodes
from cuota.db.desk import webhooks
from cuota.db.desk.webhooks import ShownDelivery
from cuota.db.operator import operator_figures
from cuota.db.operator.operator_figures import SentMessage
from cuota.db.order import story
from cuota.db.risk import decisions
from cuota.db.risk.decisions import Made
from cuota.flows.context import Context
from cuota.flows.order.find_order import NothingToExplain
from cuota.flows.risk.explain_order import Explanation, explain_order, explain_plan, letter_of
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.view import when
from cuota.web.pages.desk.webhooks import DELIVERY_STATES
from cuota.web.pages.operator.parts import cell, section, state, table
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, id_in_path, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_ORDERS = f"{PATH}/orders"
_LONGEST = 200


@allowed(OperatorAction.READ_ORDERS)
async def orders(request: Request, desk: OperatorDesk) -> Response:
    """Find an order by its id, the merchant's reference, or the id of a decision about the order."""
    asked = request.query_params.get("q", "").strip()[:_LONGEST]
    found = await _found(service_of(request).context, desk.every, asked) if asked else []
    if len(found) == 1:
        return see_other(f"{_ORDERS}/{found[0][1]}")
    rows = [[cell(order_id, f"{_ORDERS}/{order_id}"), cell(merchant)] for _, order_id, merchant in found]
    shown: PageContext = {
        **common(request, desk, "Orders", here=_ORDERS, lead="Everything about one order, in words."),
        "values": {"q": asked},
        "sections": [table("Several orders have this reference", [cell("Order"), cell("Merchant")], rows, "")]
        if rows
        else [],
        "nothing": bool(asked) and not found,
    }
    return page(request, "operator/orders.html", shown)


async def _found(context: Context, every: LivingNodes, asked: str) -> list[tuple[UUID, UUID, str]]:
    """Return the orders that the text names, as merchant id, order id, and merchant's name."""
    try:
        named = UUID(asked)
    except ValueError:
        # References contain only printable characters. The database refuses some other characters.
        return await story.find(every, asked) if asked.isprintable() else []
    merchant_id = await decisions.whose(context.pool, named)
    if merchant_id is not None:
        return [(merchant_id, named, "")]
    made = await decisions.read(context.pool, named)
    return [] if made is None else [(made.merchant_id, made.order_id, "")]


@allowed(OperatorAction.READ_ORDERS)
async def order(request: Request, desk: OperatorDesk) -> Response:
    """Show one order."""
    context, order_id = service_of(request).context, id_in_path(request, "order_id")
    try:
        told = await explain_order(context, order_id)
    except NothingToExplain:
        return missing(request)
    facts = told.facts
    made = await decisions.read_of_order(context.pool, UUID(str(facts["merchantId"])), order_id)
    sections = [
        section(
            pairs=[
                ("Merchant", facts["merchant"]), ("Reference", facts["merchantReference"]),
                ("Status", facts["orderStatus"]), ("Amount", f"${facts['amount']}"),
            ],
            links=_links(desk, facts, made),
        ),
        _decisions(made),
        section("What happened, and why", lines=told.lines),
    ]  # fmt: skip
    try:
        sections.append(section("The plan", lines=(await explain_plan(context, order_id)).lines))
    except NothingToExplain:
        sections.append(section("The plan", texts=["There is no plan: the order was not approved."]))
    else:
        if desk.may(OperatorAction.CHANGE_PLANS):
            sections[-1]["links"] = [
                {"address": f"{_ORDERS}/{order_id}/hardship", "label": "Hardship: change the plan"}
            ]
    ids = UUID(str(facts["merchantId"])), order_id
    sections += [
        _messages(await operator_figures.messages(context.pool, *ids)),
        _webhooks(await webhooks.of_order(context.pool, *ids)),
    ]
    shown = {**common(request, desk, f"Order {order_id}", here=_ORDERS), "sections": sections}
    return page(request, "operator/page.html", shown)


def _links(desk: OperatorDesk, facts: PageContext, made: Sequence[Made]) -> list[tuple[str, str]]:
    links = [(f"{PATH}/merchants/{facts['merchantId']}", "The merchant")]
    if desk.may(OperatorAction.READ_CONSUMERS):
        known = {each.consumer_id for each in made if each.consumer_id}
        links += [(f"{PATH}/consumers/{each}", "The consumer") for each in sorted(known)]
    links += [
        (f"{PATH}/disputes/{each['disputeId']}", f"Dispute about ${each['amount']}: {each['status']}")
        for each in _list(facts, "disputes")
    ]
    return links


def _list(facts: PageContext, name: str) -> list[dict[str, object]]:
    return facts.get(name) or []  # type: ignore[return-value]


def _decisions(made: Sequence[Made]) -> PageContext:
    rows = [
        [
            cell(when(each.decided_at), None if each.approved else f"{_ORDERS}/letters/{each.decision_id}",
                 more="" if each.approved else "opens the letter to the consumer"),
            state("Approved", "done") if each.approved else state("Declined", "off"),
            cell(each.policy_version, wide=True),
            cell("none" if each.score is None else each.score, amount=True),
        ]
        for each in made
    ]  # fmt: skip
    columns = [cell("Decided"), cell("Result"), cell("Policy", wide=True), cell("Score", amount=True)]
    return table("Decisions", columns, rows, "No consumer has submitted the checkout.")


_SENT = {"sent": ("Sent", "done"), "pending": ("On its way", "wait"), "failed": ("Failed", "bad")}


def _messages(found: Sequence[SentMessage]) -> PageContext:
    rows = [
        [
            cell(each.kind.replace("_", " ").capitalize(), more=each.reason or ""),
            cell(when(each.settled_at or each.created_at), wide=True),
            state(*_SENT[each.state]),
        ]
        for each in found
    ]
    columns = [cell("Message"), cell("At", wide=True), cell("State")]
    return table("Messages to the consumer", columns, rows, "No message yet.")


_DELIVERED = {**DELIVERY_STATES, "pending": ("On its way", "wait")}


def _webhooks(found: Sequence[ShownDelivery]) -> PageContext:
    rows = [
        [
            cell(each.type or "event", more=urlsplit(each.url).netloc),
            # The number of tries was deleted with the delivery.
            cell("" if each.state == webhooks.DELETED else f"{each.tries} tries", wide=True),
            state(*_DELIVERED[each.state]),
        ]
        for each in found[-webhooks.MOST_OF_ORDER :]
    ]
    columns = [cell("Event"), cell("Tries", wide=True), cell("State")]
    newest = f": the newest {webhooks.MOST_OF_ORDER}" if len(found) > webhooks.MOST_OF_ORDER else ""
    return table(
        f"Webhooks to the merchant{newest}", columns, rows, "No webhook: the merchant has no endpoint."
    )


@allowed(OperatorAction.READ_ORDERS, OperatorAction.REVEAL_CONSUMERS)
async def letter(request: Request, desk: OperatorDesk) -> Response:
    """Show the letter that tells a consumer why an order was declined. The letter has the consumer's name."""
    decision_id = id_in_path(request, "decision_id")
    try:
        told: Explanation = await letter_of(service_of(request).context, decision_id)
    except NothingToExplain:
        return missing(request)
    shown = {
        **common(request, desk, "Letter to the consumer", here=_ORDERS),
        "sections": [section(texts=told.facts["letter"])],
    }
    return page(request, "operator/page.html", shown)
