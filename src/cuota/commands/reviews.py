"""`cuota review`: list the orders that risk referred to a person, and approve or decline one."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from datetime import datetime
from uuid import UUID

from cuota.commands.common import changes, command_user, run, show
from cuota.commands.parsers import Add, add_reason
from cuota.core import money
from cuota.core.instant import timestamp
from cuota.core.order.order import Order
from cuota.core.risk.review import ReviewState
from cuota.db.risk import reviews
from cuota.db.risk.reviews import ListedReview
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.order.find_order import order_id_of
from cuota.flows.risk.answer_review import Reviewer, approve, decline, find_review
from cuota.flows.risk.tell_review import review_ended, review_facts

MOST_SHOWN = 1000
ReviewAct = Callable[[Context, UUID, UUID, Reviewer, str], Awaitable[Order]]


def list_all(options: argparse.Namespace) -> int:
    """`cuota review list`."""
    state = ReviewState(options.state)

    async def flow(context: Context) -> tuple[list[ListedReview], datetime]:
        merchant = None if options.merchant is None else await find_merchant(context, options.merchant)
        whose = None if merchant is None else merchant.merchant_id
        if state is ReviewState.WAITING:
            found = await reviews.waiting(context.pool, whose, MOST_SHOWN)
        else:
            found = await reviews.ended(context.pool, state, whose, MOST_SHOWN)
        return found, context.now()

    found, now = run(flow)
    waiting = state is ReviewState.WAITING and not options.merchant
    none = "No order waits for a review." if waiting else "No such reviews."
    lines = [_line(each, now) for each in found] or [none]
    if len(found) == MOST_SHOWN:
        lines.append(f"These are the first {MOST_SHOWN}. To see others, add --merchant or --state.")
    show(options, {"reviews": [_facts(each) for each in found]}, lines)
    return 0


def _line(each: ListedReview, now: datetime) -> str:
    if each.ended.state is ReviewState.WAITING:
        minutes = max(0, int((each.answer_by - now).total_seconds() // 60))
        told = f"answer by {timestamp(each.answer_by)}, in {minutes} minutes"
    else:
        told = review_ended(each.ended)
    amount = money.shown(each.amount, each.currency)
    return f"{each.order_id}  {amount} at {each.merchant} (reference {each.reference}), score {each.score}: {told}"


def _facts(each: ListedReview) -> dict[str, object]:
    return {
        "orderId": str(each.order_id),
        "merchantId": str(each.merchant_id),
        "merchant": each.merchant,
        "merchantReference": each.reference,
        "amount": money.text_of(each.amount),
        "score": each.score,
        "reasons": list(each.reasons),
        **review_facts(each),
    }


def approve_one(options: argparse.Namespace) -> int:
    """`cuota review approve`."""
    done = "approved. The consumer gets a message with a link, confirms once more, and pays."
    return _answer(options, approve, "approve", done)


def decline_one(options: argparse.Namespace) -> int:
    """`cuota review decline`."""
    done = "declined. The consumer gets a message, and the letter with the reasons."
    return _answer(options, decline, "decline", done)


def _answer(options: argparse.Namespace, act: ReviewAct, word: str, done: str) -> int:
    by = Reviewer(None, f"command line, user {command_user()}")

    async def flow(context: Context) -> Order:
        found = await find_review(context, await order_id_of(context, options.order))
        return await act(context, found.order.merchant_id, found.order.order_id, by, options.reason)

    order = run(flow, changes(f"review.{word}", f"Order {options.order}", options.reason))
    facts = {"orderId": str(order.order_id), "orderStatus": order.status.value, "review": order.review}
    show(options, facts, [f"Order {order.order_id} is {done}"])
    return 0


def register(add: Add) -> None:
    """Register the commands of the `cuota review` group."""
    listing = add("list", list_all, "list the orders that wait for a person, the earliest deadline first")
    listing.add_argument(
        "--state",
        choices=[each.value for each in ReviewState],
        default=ReviewState.WAITING.value,
        help="the reviews in this state, the newest first (default: those that wait)",
    )
    listing.add_argument("--merchant", metavar="NAME_OR_ID", help="only the orders of this merchant")
    for name, command, text in (
        ("approve", approve_one, "let the consumer complete the order; the limits are checked again"),
        ("decline", decline_one, "decline the order, and tell the consumer why"),
    ):
        parser = add(name, command, text)
        parser.add_argument("order", metavar="ORDER", help="the order's id, or the merchant's reference")
        add_reason(parser)
