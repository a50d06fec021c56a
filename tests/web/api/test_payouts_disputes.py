"""The money of disputes in payouts: in the totals, the lines, the files, the journals and the trial balance."""

from __future__ import annotations

import csv
import io
import subprocess
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from cuota.client import to_beancount, to_hledger
from cuota.core.ledger import Account
from cuota.db.payout.books import balances
from cuota.flows.dispute.answer_dispute import accept_dispute
from cuota.flows.dispute.close_disputes import settle_due_disputes
from support.dispute_walk import ProvenPayout, paid_out
from support.disputes import captured, charged_back, disputed
from support.needed import needed
from support.own_service import Own
from web.api.test_payouts import read


async def with_disputes(own: Own) -> ProvenPayout:
    """Make a payout with a lost dispute, an open dispute, and an open chargeback."""
    lost = await disputed(own.merchant, await captured(own.merchant, merchantReference="A-1"), 4000)
    await accept_dispute(own.context, own.merchant.merchant_id, lost.dispute_id)
    await settle_due_disputes(own.context)
    await disputed(own.merchant, await captured(own.merchant, merchantReference="A-2"), 1500)
    await charged_back(own.merchant, await captured(own.merchant, merchantReference="A-3"), 2500)
    return await paid_out(own)


def said(program: str, *arguments: str | Path) -> str:
    done = subprocess.run([needed(program), *arguments], check=True, capture_output=True, text=True)
    return done.stdout


async def test_totals_and_lines_have_the_types_of_disputes(own: Own) -> None:
    proven = await with_disputes(own)
    found = await read(own.merchant, f"/payouts/{proven.payout.payout_id}")
    totals = {name: (each["count"], each["net"]) for name, each in found["totals"].items()}
    assert totals == {
        "capture": (3, 300),
        "dispute_withheld": (3, -80),
        "dispute_released": (1, 40),
        "dispute_lost": (1, -40),
        "overall": (8, 220),
    }
    references = {line.type: line.reference for line in proven.lines}
    assert references["dispute_lost"] == references["dispute_released"]
    (refund,) = [event for event in proven.events if event["type"] == "refund.completed"]
    assert references["dispute_lost"] == refund["order"]["refunds"][0]["merchantReference"]
    opened = {event["dispute"]["disputeId"] for event in proven.events if event["type"] == "dispute.opened"}
    assert {line.reference for line in proven.lines if line.type == "dispute_withheld"} == opened


async def test_both_csv_files_have_the_money_of_disputes(own: Own) -> None:
    proven = await with_disputes(own)
    answer = await own.merchant.http.get("/payouts?format=csv")
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["captures"], row["refunds"], row["disputes"], row["amount"]) == (
        "300.00", "0.00", "-80.00", "220.00",
    )  # fmt: skip
    answer = await own.merchant.http.get(f"/payouts/{proven.payout.payout_id}/lines?format=csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert sum(Decimal(each["net"]) for each in rows) == 220
    (lost,) = [each for each in rows if each["type"] == "dispute_lost"]
    assert (lost["merchantReference"], lost["gross"]) == ("A-1", "-40.00")
    assert lost["refundReference"] == lost["reference"] != ""


async def test_the_accounting_programs_accept_the_journals_with_disputes(own: Own, tmp_path: Path) -> None:
    proven = await with_disputes(own)
    journal, ledger = tmp_path / "cuota.journal", tmp_path / "cuota.beancount"
    given = [(proven.payout, proven.lines)]
    journal.write_text(to_hledger(given))
    ledger.write_text(to_beancount(given))
    said("bean-check", ledger)
    shown = said("hledger", "balance", "-N", "--flat", "-f", journal, "Cuota:Disp", "Assets:Bank")
    sums = {line.split()[-1]: line.split()[0] for line in shown.splitlines()}
    assert sums == {
        "Assets:Bank": "220.00",
        "Assets:Cuota:Disputed": "40.00",
        "Expenses:Cuota:Disputes": "40.00",
    }


async def test_the_trial_balance_closes_with_withheld_and_charged_back_amounts(own: Own) -> None:
    await with_disputes(own)
    found = await balances(own.context.pool, own.context.now() + timedelta(days=1))
    assert sum(each.balance for each in found) == 0
    held = {each.account: each.balance for each in found}
    assert (held[Account.DISPUTES_WITHHELD], held[Account.CHARGEBACKS]) == (-4000, 2500)
