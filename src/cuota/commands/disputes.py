"""`cuota dispute`: open, decide, list and show disputes, and act for one of the two sides.

The merchant's own audit log has an entry for each step.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from uuid import UUID

from cuota.commands.common import changes, run, show
from cuota.commands.dispute_text import detail_facts, detail_lines, list_line, listed_facts
from cuota.commands.parsers import Add
from cuota.core import money
from cuota.core.dispute.dispute import DisputeParty, DisputeReason, DisputeStatus
from cuota.db.cluster.living import LivingNodes
from cuota.db.dispute import operator_list
from cuota.db.dispute.operator_list import ListedDispute
from cuota.flows.context import Context
from cuota.flows.dispute.answer_dispute import accept_dispute, accepted_before, appeal_dispute, decide_dispute
from cuota.flows.dispute.find_dispute import merchant_of_dispute, order_named
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.flows.dispute.show_dispute import ShownDispute, show_dispute
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.operator.tell_dispute import tell_dispute

MOST_SHOWN = 1000
NO_TEXT = "Opened for the consumer by the payment provider."
DisputeAct = Callable[[Context, UUID, UUID], Awaitable[object]]
Seen = tuple[UUID, ShownDispute]


def open_one(options: argparse.Namespace) -> int:
    """`cuota dispute open`."""

    async def flow(context: Context) -> Seen:
        merchant_id, order_id = await order_named(context, options.order)
        given = options.reason, options.amount, options.text or NO_TEXT
        opened = await open_dispute(context, merchant_id, order_id, *given, party=DisputeParty.OPERATOR)
        amount = money.text_of(opened.amount)
        await tell_dispute(context, merchant_id, "dispute.open", opened.dispute_id, amount=amount)
        return merchant_id, await show_dispute(context, merchant_id, opened.dispute_id)

    opened = changes("dispute.open", options.order, amount=money.text_of(options.amount))
    return _shown(options, run(flow, opened))


def show_one(options: argparse.Namespace) -> int:
    """`cuota dispute show`."""

    async def nothing(context: Context, merchant_id: UUID, dispute_id: UUID) -> None:
        del context, merchant_id, dispute_id

    return _acted(options, nothing, None)


def decide(options: argparse.Namespace) -> int:
    """`cuota dispute decide`."""

    async def act(context: Context, merchant_id: UUID, dispute_id: UUID) -> None:
        for_consumer = options.side == DisputeParty.CONSUMER
        await decide_dispute(context, merchant_id, dispute_id, for_consumer=for_consumer)
        await tell_dispute(context, merchant_id, "dispute.decide", dispute_id, **{"for": options.side})

    return _acted(options, act, f"dispute.decide.{options.side}")


def accept(options: argparse.Namespace) -> int:
    """`cuota dispute accept`."""

    async def act(context: Context, merchant_id: UUID, dispute_id: UUID) -> None:
        before = (await show_dispute(context, merchant_id, dispute_id)).found.dispute
        await accept_dispute(context, merchant_id, dispute_id)
        if accepted_before(before):
            return
        await tell_dispute(context, merchant_id, "dispute.accept", dispute_id)

    return _acted(options, act, "dispute.accept")


def appeal(options: argparse.Namespace) -> int:
    """`cuota dispute appeal`."""

    async def act(context: Context, merchant_id: UUID, dispute_id: UUID) -> None:
        await appeal_dispute(context, merchant_id, dispute_id, options.side, options.text)
        await tell_dispute(context, merchant_id, "dispute.appeal", dispute_id, by=options.side)

    return _acted(options, act, "dispute.appeal")


def list_all(options: argparse.Namespace) -> int:
    """`cuota dispute list`."""
    status = None if options.status is None else DisputeStatus(options.status)

    async def flow(context: Context) -> tuple[list[ListedDispute], LivingNodes]:
        every = LivingNodes(context.pool)
        if options.merchant is None:
            return await operator_list.listed(every, status, MOST_SHOWN), every
        merchant = await find_merchant(context, options.merchant)
        return await operator_list.listed_of(context.pool, merchant.merchant_id, status, MOST_SHOWN), every

    found, every = run(flow)
    lines = [list_line(each) for each in found] or ["No such disputes."]
    if every.notice is not None:
        lines.insert(0, every.notice)
    if len(found) == MOST_SHOWN:
        lines.append(f"These are the newest {MOST_SHOWN}. To see others, add --merchant or --status.")
    disputes = [listed_facts(each) for each in found]
    show(options, {"disputes": disputes, "unreachableNodes": every.left_out}, lines)
    return 1 if every.left_out else 0


def _acted(options: argparse.Namespace, act: DisputeAct, action: str | None) -> int:
    async def flow(context: Context) -> Seen:
        merchant_id = await merchant_of_dispute(context, options.dispute)
        await act(context, merchant_id, options.dispute)
        return merchant_id, await show_dispute(context, merchant_id, options.dispute)

    subject = f"Dispute {options.dispute}"
    return _shown(options, run(flow, None if action is None else changes(action, subject)))


def _shown(options: argparse.Namespace, seen: Seen) -> int:
    merchant_id, shown = seen
    show(options, detail_facts(merchant_id, shown), detail_lines(shown))
    return 0


def _amount(text: str) -> int:
    try:
        found = money.cents_of(text)
    except money.BadAmount as bad:
        raise argparse.ArgumentTypeError(f"{text} is not an amount: it {bad}") from None
    if found <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not an amount: it must be greater than 0")
    return found


def _dispute_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        message = f"{text} is not the id of a dispute. cuota dispute list shows the ids"
        raise argparse.ArgumentTypeError(message) from None


def _side(text: str) -> DisputeParty:
    if text not in {DisputeParty.CONSUMER, DisputeParty.MERCHANT}:
        raise argparse.ArgumentTypeError(f"{text} is not a side: give consumer or merchant")
    return DisputeParty(text)


def register(add: Add) -> None:
    """Register the commands of the `cuota dispute` group."""
    opening = add("open", open_one, "open a dispute for a consumer: the amount is withheld from the merchant")
    opening.add_argument("order", metavar="ORDER", help="the order's id, or the merchant's reference")
    opening.add_argument(
        "--reason",
        required=True,
        type=DisputeReason,
        choices=[each for each in DisputeReason if each is not DisputeReason.OTHER],
        help="the consumer's reason",
    )
    opening.add_argument("--amount", required=True, type=_amount, metavar="AMOUNT", help="such as 20.00")
    opening.add_argument("--text", metavar="TEXT", help="what happened, at most 5000 characters")
    deciding = add("decide", decide, "decide a dispute; the side that lost may appeal once")
    deciding.add_argument(
        "--for", dest="side", required=True, type=_side, metavar="SIDE", help="consumer or merchant"
    )
    listing = add("list", list_all, "list disputes, the newest first, and what each waits for")
    listing.add_argument(
        "--status", choices=[each.value for each in DisputeStatus], help="only with this status"
    )
    listing.add_argument("--merchant", metavar="NAME_OR_ID", help="only the disputes of this merchant")
    showing = add("show", show_one, "show a dispute with everything that was written in it")
    accepting = add("accept", accept, "accept a dispute for the merchant, finally: the consumer is refunded")
    appealing = add("appeal", appeal, "appeal for the side that lost")
    appealing.add_argument(
        "--by", dest="side", required=True, type=_side, metavar="SIDE", help="consumer or merchant"
    )
    appealing.add_argument("--text", required=True, metavar="TEXT", help="why the decision is wrong")
    for parser in (deciding, showing, accepting, appealing):
        parser.add_argument("dispute", type=_dispute_id, metavar="ID")
