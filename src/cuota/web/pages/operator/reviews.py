"""The review queue: the orders that risk referred to a person, and the person's answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.merchant import may_sell
from cuota.core.operator.role import OperatorAction
from cuota.core.order.order import Status
from cuota.core.refusal import Refused
from cuota.core.risk.explanation import because
from cuota.core.risk.review import ReviewState
from cuota.db.checkout import consumers
from cuota.db.cluster.living import LivingNodes
from cuota.db.merchant import merchants
from cuota.db.plan import accounts
from cuota.db.position import Position
from cuota.db.risk import reviews as db_reviews
from cuota.db.risk.reviews import RUNNING_OUT, ListedReview, ReviewedOrder
from cuota.flows.context import Context
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import OperatorNote, logged
from cuota.flows.risk.answer_review import (
    NoReview,
    ReviewEnded,
    Reviewer,
    approve,
    decline,
    find_review,
    how_ended,
)
from cuota.flows.risk.block_consumer import blocks_of
from cuota.flows.risk.explain_order import explain_referral
from cuota.flows.risk.show_exposure import show_exposure
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.block_view import in_force
from cuota.web.pages.operator.consumers import MOST_SHOWN, exposure_section, person_pairs, plans_table
from cuota.web.pages.operator.parts import ListPage, cell, section, state, table
from cuota.web.pages.operator.risk import RISK
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, id_in_path, missing, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

A_PAGE = 50
_REVIEWS = f"{RISK}/reviews"
_STATES = {
    ReviewState.WAITING: ("Waiting", "wait"),
    ReviewState.APPROVED: ("Approved", "done"),
    ReviewState.DECLINED: ("Declined", "off"),
    ReviewState.UNANSWERED: ("Not answered", "bad"),
    ReviewState.CLOSED: ("Canceled", "off"),
}
_ANSWERS = {"approve": approve, "decline": decline}


@allowed(OperatorAction.READ_REVIEWS)
async def reviews(request: Request, desk: OperatorDesk) -> Response:
    """List reviews, 50 on a page: waiting ones with the earliest deadline first, or ended ones with the newest first."""
    context, asked = service_of(request).context, request.query_params
    view = ReviewState(asked["state"]) if asked.get("state") in set(ReviewState) else ReviewState.WAITING
    merchant_id = _merchant(asked.get("merchant", ""))
    kept = {
        "state": "" if view is ReviewState.WAITING else view.value,
        "merchant": str(merchant_id or ""),
    }
    at, now = ListPage.of(request, _REVIEWS, **kept), context.now()
    if view is ReviewState.WAITING:
        found = await db_reviews.waiting(desk.every, merchant_id, A_PAGE + 1, at.after)
    else:
        found = await db_reviews.ended(desk.every, view, merchant_id, A_PAGE + 1, at.after)
    links = at.links(found, A_PAGE, _position)
    if merchant_id is not None:
        links = [(f"{_REVIEWS}?state={view}", "All merchants"), *links]
    columns = [
        cell("Order"), cell("Merchant", wide=True), cell("Referred", wide=True), cell("Answer"),
        cell("Score", amount=True, wide=True), cell("Amount", amount=True),
    ]  # fmt: skip
    empty = "No order waits for you." if view is ReviewState.WAITING else "No review ended like this."
    rows = [_row(each, view, now) for each in found[:A_PAGE]]
    shown: PageContext = {
        **common(request, desk, "Reviews", here=RISK, lead=await _lead(desk.every, now)),
        "tabs": [
            {"address": _tab(each, merchant_id), "label": word, "here": each is view}
            for each, (word, _) in _STATES.items()
        ],
        "sections": [table("", columns, rows, empty, links)],
    }
    return page(request, "operator/page.html", shown)


def _merchant(named: str) -> UUID | None:
    try:
        return guid(named) if named else None
    except Refused:
        return None


def _tab(view: ReviewState, merchant_id: UUID | None) -> str:
    merchant = f"&merchant={merchant_id}" if merchant_id else ""
    return f"{_REVIEWS}?state={view}{merchant}"


def _position(each: ListedReview) -> Position:
    waits = each.ended.state is ReviewState.WAITING
    return each.answer_by if waits else each.referred_at, each.order_id


async def _lead(every: LivingNodes, now: datetime) -> str:
    found = await db_reviews.count(every, now)
    if found.first is None:
        return "Orders whose score is neither good enough to approve nor bad enough to decline."
    soon = f", {found.running_out:,} of them soon" if found.running_out else ""
    verb = "waits" if found.waiting == 1 else "wait"
    return (
        f"{found.waiting:,} {verb} at all merchants{soon}. An order that nobody answers in time is declined."
    )


def _row(each: ListedReview, view: ReviewState, now: datetime) -> list[PageContext]:
    word, mark = _STATES[view]
    if view is ReviewState.WAITING:
        word, mark = time_left(each.answer_by, now), "bad" if each.answer_by - now < RUNNING_OUT else "wait"
    return [
        cell(each.reference or f"…{str(each.order_id)[-12:]}", f"{_REVIEWS}/{each.order_id}", more=because(each.reasons[0]).partition(": ")[2]),
        cell(each.merchant, f"{_REVIEWS}?state={view}&merchant={each.merchant_id}", wide=True),
        cell(when(each.referred_at), wide=True),
        state(word, mark),
        cell(each.score, amount=True, wide=True),
        cell(money.shown(each.amount, each.currency), amount=True),
    ]  # fmt: skip


def time_left(until: datetime, now: datetime) -> str:
    """Return a text with the time that is left."""
    seconds = (until - now).total_seconds()
    if seconds <= 0:
        return "Time is over"
    minutes = int(seconds // 60)
    if minutes < 1:
        return "Less than a minute"
    return f"{minutes} minute{'' if minutes == 1 else 's'} left"


async def _find(request: Request) -> ReviewedOrder:
    """Return the order in the path with its review. Raises Stop with the 404 page."""
    try:
        return await find_review(service_of(request).context, id_in_path(request, "order_id"))
    except NoReview:
        raise Stop(missing(request)) from None


@allowed(OperatorAction.READ_REVIEWS, OperatorAction.READ_CONSUMERS)
async def review(request: Request, desk: OperatorDesk) -> Response:
    """Show one order that was referred, with the form for the answer if the order still waits."""
    return await _page(request, desk, await _find(request))


async def _page(
    request: Request,
    desk: OperatorDesk,
    found: ReviewedOrder,
    errors: dict[str, str] | None = None,
    status: int = 400,
) -> Response:
    context, order = service_of(request).context, found.order
    amount = money.shown(order.amount, order.currency)
    told = await explain_referral(context, found)
    waits = found.ended.state is ReviewState.WAITING
    shown: PageContext = {
        **common(request, desk, f"Review an order of {amount}", here=RISK),
        "sections": [
            section(pairs=_facts(found, amount, context.now()), links=_links(found)),
            *await _consumer(context, found),
            section("Why it was referred", lines=told.lines),
        ],
        "address": f"{_REVIEWS}/{order.order_id}",
        "amount": amount,
        "ends": when(order.expires_at),
        "stops": await _stops(context, found) if waits else [],
        "can_answer": waits and desk.may(OperatorAction.ANSWER_REVIEWS),
    }
    if errors:
        return page(request, "operator/review.html", failed(shown, errors, desk.form), status=status)
    return page(request, "operator/review.html", shown)


async def _stops(context: Context, found: ReviewedOrder) -> list[str]:
    """Return the reasons why an approval does not help now: the merchant may make no new orders, or the consumer is blocked."""
    merchant = await merchants.read(context.pool, found.order.merchant_id)
    blocks = await blocks_of(context, found.review.consumer_id)
    stops = []
    if merchant is not None and not may_sell(merchant, sandbox=context.settings.sandbox):
        why = "is suspended" if merchant.suspended else "is not approved"
        stops.append(
            f"{found.merchant} {why}. After an approval, the consumer cannot confirm the order before that changes."
        )
    if in_force(blocks, context.now()):
        stops.append(
            "The consumer is blocked. After an approval, the order is declined when the consumer confirms it."
        )
    return stops


def _facts(found: ReviewedOrder, amount: str, now: datetime) -> Sequence[tuple[str, object]]:
    review_, ended = found.review, found.ended
    facts: list[tuple[str, object]] = [
        ("Merchant", found.merchant),
        ("Reference", found.reference),
        ("Amount", amount),
        ("Referred", when(review_.referred_at)),
    ]
    if ended.answered_at is None:
        return [
            *facts,
            ("Answer by", f"{when(review_.answer_by)}: {time_left(review_.answer_by, now).lower()}"),
        ]
    facts += [("Answer", f"{how_ended(ended)}, {when(ended.answered_at)}")]
    facts += [("Reason", ended.reason)] if ended.reason else []
    return [*facts, ("The order now", _now(found))]


def _now(found: ReviewedOrder) -> str:
    order = found.order
    if order.status is Status.CREATED:
        return f"the consumer can confirm it until {when(order.expires_at)}"
    return order.status.value


def _links(found: ReviewedOrder) -> list[tuple[str, str]]:
    order = found.order
    return [
        (f"{PATH}/orders/{order.order_id}", "The order"),
        (f"{PATH}/merchants/{order.merchant_id}", "The merchant"),
        (_REVIEWS, "All reviews"),
    ]


async def _consumer(context: Context, found: ReviewedOrder) -> list[PageContext]:
    """Return the masked consumer, with the debt and the plans, and a link to the page that can show the name."""
    consumer_id = found.review.consumer_id
    known = await consumers.read(context.pool, consumer_id)
    if known is None:
        return [section("The consumer", texts=["The personal data was erased."])]
    plans = await accounts.plans_of(context.pool, consumer_id, MOST_SHOWN, 0)
    return [
        section(
            "The consumer",
            pairs=person_pairs(known),
            links=[(f"{PATH}/consumers/{consumer_id}", "The consumer's page")],
        ),
        exposure_section(await show_exposure(context, consumer_id)),
        plans_table(plans),
    ]


@allowed(OperatorAction.READ_REVIEWS, OperatorAction.READ_CONSUMERS, OperatorAction.ANSWER_REVIEWS)
async def answer(request: Request, desk: OperatorDesk) -> Response:
    """Approve or decline, with a reason for the log. If another person answered first, the page says so and nothing changes."""
    found, given = await _find(request), desk.form.get("answer", "")
    if given not in _ANSWERS:
        return await _page(request, desk, found, {"": "Choose to approve or to decline."})
    if errors := await prove(request, desk):
        return await _page(request, desk, found, errors)
    try:
        reason = reason_of(desk.form.get("reason", ""))
    except BadTeam as bad:
        return await _page(request, desk, found, {bad.name: str(bad)})
    order, person = found.order, desk.visit.person
    amount = money.shown(order.amount, order.currency)
    note = OperatorNote(f"review.{given}", f"Order of {amount} at {found.merchant}", reason, order.order_id)
    by = Reviewer(person.person_id, desk.actor.words)

    async def act(context: Context) -> None:
        await _ANSWERS[given](context, order.merchant_id, order.order_id, by, reason)

    try:
        await logged(service_of(request).context, desk.actor, note, act)
    except ReviewEnded as ended:
        return await _page(request, desk, await _find(request), {"": str(ended)}, 409)
    done = "review-approved" if given == "approve" else "review-declined"
    return see_other(f"{_REVIEWS}/{order.order_id}?said={done}")
