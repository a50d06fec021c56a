"""The operator's losses by month: written-off amounts, recoveries, amounts that card networks took, and corrections."""

from __future__ import annotations

from datetime import date
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.dates import month
from cuota.core.operator.role import OperatorAction
from cuota.db.payout.losses import MonthlyLoss, losses
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.books import BOOKS, ledger_reader, ledger_taken
from cuota.web.pages.operator.parts import cell, section, table
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

# The texts for the postings that change the account `losses` (docs/ledger.md).
_WORDS = {
    "write_off": "Installments written off",
    "write_off_reversed": "Written off before, then voided or refunded",
    "recovery": "Written off before, then paid",
    "chargeback_loss": "Chargebacks that no merchant bears",
    "refund_charged_back": "Refunds that a chargeback returned instead",
    "adjustment": "Corrections of merchants' balances",
}


@allowed(OperatorAction.READ_MONEY)
async def shown_losses(request: Request, desk: OperatorDesk) -> Response:
    """Show every month with losses, the newest first."""
    context = service_of(request).context
    if ledger_reader.locked():
        return ledger_taken(request)
    async with ledger_reader:
        now = context.now()
        found = await losses(context.pool, now)
    total = sum(each.lost for each in found)
    sections = [
        _month(first, currency, list(rows))
        for (first, currency), rows in groupby(found, key=lambda each: (each.month, each.currency))
    ]
    text = (
        f"All months together: {_signed(total, found[0].currency)}." if found else "Nothing was lost so far."
    )
    shown: PageContext = {
        **common(request, desk, "Losses", here=BOOKS, lead=f"All merchants, {when(now)}"),
        "sections": [section(texts=[text], links=[(BOOKS, "Books")]), *sections],
    }
    return page(request, "operator/page.html", shown)


def _month(first: date, currency: str, found: list[MonthlyLoss]) -> PageContext:
    rows = [
        [
            cell(_WORDS.get(each.posting, each.posting.replace("_", " "))),
            cell(f"{each.count:,}", amount=True, wide=True),
            cell(_signed(each.lost, currency), amount=True),
        ]
        for each in found
    ]
    rows.append(
        [
            cell("Together"),
            cell("", amount=True, wide=True),
            cell(_signed(sum(each.lost for each in found), currency), amount=True),
        ]
    )
    columns = [cell("Cause"), cell("Entries", amount=True, wide=True), cell("Lost", amount=True)]
    return table(month(first), columns, rows, "")


def _signed(cents: int, currency: str) -> str:
    """Return the amount. A minus sign means that money came back."""
    text = money.shown(abs(cents), currency)
    return f"-{text}" if cents < 0 else text
