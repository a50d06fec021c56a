"""`cuota card-refunds` lists the refunds that a card refused. `cuota card-refunds settle` marks one as paid in another way."""

from __future__ import annotations

import argparse
from uuid import UUID

from cuota.commands.common import changes, require_database, run, show
from cuota.commands.parsers import Add, add_reason, adder
from cuota.core import money
from cuota.db.plan.charges import failed_refunds
from cuota.flows.order.pay_refund_otherwise import pay_refund_otherwise

MOST_SHOWN = 1000


def card_refunds(options: argparse.Namespace) -> int:
    """`cuota card-refunds`: exit 1 if any refund failed, so that a nightly job notices."""
    require_database()
    found = run(lambda context: failed_refunds(context.pool, MOST_SHOWN))
    facts = [
        {
            "merchantId": str(each.merchant_id),
            "orderId": str(each.order_id),
            "cardRefundId": str(each.card_refund_id),
            "amount": money.text_of(each.amount),
            "card": f"{each.card_brand} {each.card_last4}",
            "reason": each.reason,
            "failedAt": each.failed_at.isoformat(),
        }
        for each in found
    ]
    lines = [" ".join(str(value) for value in fact.values()) for fact in facts]
    if len(found) == MOST_SHOWN:
        lines.append(f"These are the newest {MOST_SHOWN}. Settle them to see the older ones.")
    show(options, facts, lines or ["No card has refused money back."])
    return 1 if found else 0


def settle(options: argparse.Namespace) -> int:
    """`cuota card-refunds settle`: record that the operator has paid the consumer in another way."""
    require_database()
    note = changes("card-refunds.settle", f"Card refund {options.refund}", options.reason)
    paid = run(lambda context: pay_refund_otherwise(context, options.refund), note)
    settled = (
        "was settled before" if paid is None else f"is settled: {money.text_of(paid)} is not owed any more"
    )
    line = f"Card refund {options.refund} {settled}. `cuota card-refunds` no longer lists it."
    show(options, {"cardRefundId": str(options.refund), "settledNow": paid is not None}, [line])
    return 0


def register(add: Add) -> None:
    """Register `cuota card-refunds`."""
    parser = add(
        "card-refunds",
        card_refunds,
        "list refunds that a card refused; pay them to the consumer in another way",
    )
    more = adder(parser.add_subparsers(metavar="COMMAND"))
    done = more("settle", settle, "record that you have paid a refund to the consumer in another way")
    done.add_argument(
        "refund", metavar="REFUND", type=UUID, help="the refund's id, as `cuota card-refunds` shows it"
    )
    add_reason(done, "how you paid the consumer, for the log")
