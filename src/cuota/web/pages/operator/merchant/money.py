"""A merchant's balance and terms: the part of the merchant's page for people who may see money."""

from __future__ import annotations

from cuota.core import money
from cuota.core.merchant import Merchant
from cuota.core.payout.percent import percent_text
from cuota.db.payout import balance, holds
from cuota.db.payout import terms as versions
from cuota.flows.context import Context
from cuota.flows.payout.change_bank_account import BankStanding, read_standing
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.merchant.view import hold_words
from cuota.web.pages.operator.parts import cell, section, table
from cuota.web.pages.render import PageContext


async def money_sections(context: Context, found: Merchant) -> list[PageContext]:
    """Return the sections about the merchant's balance and terms."""
    merchant_id, pool = found.merchant_id, context.pool
    owed = await balance.read(pool, merchant_id, context.now())
    terms = await versions.read_all(pool, merchant_id)
    bank = await read_standing(context, merchant_id)
    held = hold_words(await holds.read(pool, merchant_id))
    returned = (
        f"paused since {when(bank.paused_since)}, because one came back" if bank.paused_since else "go on"
    )
    facts = [
        ("Available", _signed(owed.available)), ("Pending", _signed(owed.pending)),
        ("Kept back as a reserve", money.shown(owed.reserved)), ("Owed by the merchant", money.shown(owed.debt)),
        ("Bank account", _account(bank)),
        ("Payouts", held or returned),
    ]  # fmt: skip
    rows = [
        [
            cell(each.version, more=f"from {when(each.valid_from)}"),
            cell(f"{percent_text(each.percent)} % and {money.shown(each.fixed)}"),
            cell(each.payout.value, wide=True),
            cell(
                f"{percent_text(each.reserve)} % for {each.reserve_days} days" if each.reserve else "none",
                wide=True,
            ),
        ]
        for each in reversed(terms)
    ]
    columns = [
        cell("Version"), cell("A capture costs"), cell("Paid", wide=True), cell("Reserve", wide=True),
    ]  # fmt: skip
    empty = "No terms: captures cost nothing, and payouts are daily. Set them with: cuota merchant terms"
    return [section("Money", pairs=facts), table("Terms", columns, rows, empty)]


def _account(bank: BankStanding) -> str:
    words = f"ends in {bank.in_force.last4}" if bank.in_force else "none: nothing is paid"
    if bank.pending is None or bank.pending.effective_at is None:
        return words
    return f"{words}, from {when(bank.pending.effective_at)} the one that ends in {bank.pending.last4}"


def _signed(cents: int) -> str:
    return f"-{money.shown(-cents)}" if cents < 0 else money.shown(cents)
