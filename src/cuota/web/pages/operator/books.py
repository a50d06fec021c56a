"""The operator's books: the trial balance, overdue amounts, refunds that cards refused, and the last checks."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.operator.role import OperatorAction
from cuota.core.payout.arrival import day_at_bank
from cuota.db.operator import operator_figures
from cuota.db.operator.operator_figures import VerifyRun
from cuota.db.payout.books import AccountBalance, balances
from cuota.db.plan.charges import FailedRefund, failed_refunds
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.parts import cell, section, state, table
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed
from cuota.web.pages.render import PageContext, page, problem
from cuota.web.service import service_of

MOST_SHOWN = 200
BOOKS = f"{PATH}/books"
# The trial balance and the losses read the whole ledger. Each process allows one such read at a time, so that many clicks do
# not run many reads.
ledger_reader = asyncio.Lock()


@allowed(OperatorAction.READ_MONEY)
async def books(request: Request, desk: OperatorDesk) -> Response:
    """Show the books without the trial balance, which has its own page because it takes long for a large ledger."""
    context = service_of(request).context
    aging = await operator_figures.aging(desk.every, day_at_bank(context.now()))
    rows = [
        [
            cell(each.label),
            cell(f"{each.installments:,}", amount=True),
            cell(money.shown(each.amount), amount=True),
        ]
        for each in aging
    ]
    columns = [cell("Overdue for"), cell("Installments", amount=True), cell("Amount", amount=True)]
    shown: PageContext = {
        **common(request, desk, "Books", here=BOOKS),
        "sections": [
            section(
                links=[
                    (f"{BOOKS}/balance", "Trial balance of all accounts"),
                    (f"{BOOKS}/losses", "Losses by month"),
                ]
            ),
            table("Overdue installments", columns, rows, ""),
            _refused(await failed_refunds(desk.every, MOST_SHOWN)),
            _runs(await operator_figures.runs(context.pool, 10)),
        ],
    }
    return page(request, "operator/page.html", shown)


def _refused(found: list[FailedRefund]) -> PageContext:
    rows = [
        [
            cell(each.order_id, f"{PATH}/orders/{each.order_id}", more=each.reason or ""),
            cell(when(each.failed_at), wide=True),
            cell(f"{each.card_brand} {each.card_last4}", wide=True),
            cell(money.shown(each.amount), amount=True),
        ]
        for each in found
    ]
    columns = [
        cell("Order"),
        cell("Refused", wide=True),
        cell("Card", wide=True),
        cell("Amount", amount=True),
    ]
    newest = f" (the newest {MOST_SHOWN})" if len(found) == MOST_SHOWN else ""
    title = f"Refunds that a card refused: pay them to the consumer in another way{newest}"
    return table(title, columns, rows, "No card has refused money back.")


def _runs(found: list[VerifyRun]) -> PageContext:
    rows = [
        [
            cell(when(each.at)),
            state(f"{each.problems:,} differences", "bad")
            if each.problems
            else state("No difference", "done"),
            cell(f"{each.orders:,}", amount=True),
            cell(f"{each.transfers:,}", amount=True, wide=True),
        ]
        for each in found
    ]
    columns = [
        cell("Checked"),
        cell("Result"),
        cell("Orders", amount=True),
        cell("Transfers", amount=True, wide=True),
    ]
    empty = "The books were never checked. Run cuota verify every night: it calculates every order again from the ledger."
    return table("The last checks", columns, rows, empty)


def ledger_taken(request: Request) -> Response:
    """Return the page that asks to try again, because another page is reading the whole ledger."""
    text = "Another person has opened a page that reads the whole ledger. Open this page again in a moment."
    return problem(request, 503, "One moment", text, back=(BOOKS, "Books"))


@allowed(OperatorAction.READ_MONEY)
async def balance(request: Request, desk: OperatorDesk) -> Response:
    """Show the current balance of every account."""
    context = service_of(request).context
    if ledger_reader.locked():
        return ledger_taken(request)
    async with ledger_reader:
        now = context.now()
        found = await balances(context.pool, now)
    rows = [
        [
            cell(each.account.value.replace("_", " ")),
            cell(money.shown(each.debits, each.currency), amount=True, wide=True),
            cell(money.shown(each.credits, each.currency), amount=True, wide=True),
            cell(_signed(each), amount=True),
        ]
        for each in found
        if each.debits or each.credits
    ]
    columns = [
        cell("Account"), cell("Debits", amount=True, wide=True), cell("Credits", amount=True, wide=True),
        cell("Debits less credits", amount=True),
    ]  # fmt: skip
    closes = sum(each.balance for each in found) == 0
    verdict = (
        "Debits and credits are equal." if closes else "Debits and credits are NOT equal. Run cuota verify."
    )
    shown: PageContext = {
        **common(request, desk, "Trial balance", here=BOOKS, lead=f"All merchants, {when(now)}"),
        "sections": [
            table("", columns, rows, "The ledger is empty."),
            section(texts=[verdict], links=[(BOOKS, "Books")]),
        ],
    }
    return page(request, "operator/page.html", shown)


def _signed(each: AccountBalance) -> str:
    text = money.shown(abs(each.balance), each.currency)
    return f"-{text}" if each.balance < 0 else text
