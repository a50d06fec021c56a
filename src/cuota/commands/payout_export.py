"""`cuota payout-export`: print a payout with its lines as a journal for an accounting program."""

from __future__ import annotations

import argparse
import json
import sys
from decimal import Decimal
from typing import Any
from uuid import UUID

from cuota.client.ledger import to_beancount, to_hledger
from cuota.client.settled import Payout, PayoutLine
from cuota.commands.common import require_database, run
from cuota.commands.parsers import Add
from cuota.core.refusal import Code, Refused
from cuota.db.order.documents import encode
from cuota.db.payout import listing
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.web.api.payout_json import line_json, payout_detail

FORMATS = {"hledger": to_hledger, "beancount": to_beancount}
AT_ONCE = 1000


def export(options: argparse.Namespace) -> int:
    """`cuota payout-export`."""
    require_database()

    async def flow(context: Context) -> tuple[Payout, list[PayoutLine]]:
        merchant = await find_merchant(context, options.merchant)
        found = await listing.payout(context.pool, merchant.merchant_id, options.payout)
        if found is None:
            raise Refused(Code.NOT_FOUND, f"{merchant.name} has no payout {options.payout}.")
        totals = await listing.totals(context.pool, merchant.merchant_id, [found.payout_id])
        lines: list[PayoutLine] = []
        after = found.first_line - 1
        while page := await listing.lines(
            context.pool, merchant.merchant_id, after, found.last_line, AT_ONCE
        ):
            lines += [PayoutLine.read(_as_answered(line_json(each.line))) for each in page]
            after = page[-1].line.number
        return Payout.read(_as_answered(payout_detail(found, totals[found.payout_id]))), lines

    sys.stdout.write(FORMATS[options.format]([run(flow)]))
    return 0


def _as_answered(content: dict[str, object]) -> dict[str, Any]:
    """Return the payout and its lines as a merchant reads them from the API."""
    answer: dict[str, Any] = json.loads(encode(content), parse_float=Decimal)
    return answer


def _payout_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is not the id of a payout; `cuota payouts` lists them"
        ) from None


def register(add: Add) -> None:
    """Register `cuota payout-export`."""
    parser = add("payout-export", export, "print a payout as a journal for hledger or beancount", json=False)
    parser.add_argument("--merchant", required=True, metavar="NAME_OR_ID")
    parser.add_argument("--payout", required=True, type=_payout_id, metavar="ID")
    parser.add_argument("--format", choices=sorted(FORMATS), default="hledger", help="default: hledger")
