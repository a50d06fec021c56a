"""The rules that settlement lines, payouts, reserves and their ledger must satisfy. Each yields (row, problem), in cents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cuota.core.payout.posting import MERCHANT_POSTINGS, PAYABLE

RowProblems = Iterator[tuple[str, str]]


def settlement(row: Any) -> RowProblems:
    """Check a merchant's row in settlements against the merchant's lines, payouts and reserves."""
    if row["merchant_id"] is None:
        yield "settlements", "is missing, but the merchant has lines, payouts or reserves"
        return
    expected = {
        "lines": row["line_count"],
        "closed": row["last_paid_line"],
        "transfers": row["transfer_count"],
        "payouts": row["payout_count"],
        "open_net": row["sum_open"],
        "open_moved": row["sum_moved"],
        "carried": row["sum_carried"],
        "reserved": row["sum_reserved"],
    }
    for name, found in expected.items():
        if row[name] != found:
            yield f"settlements.{name}", f"is {row[name]}, the rows say {found}"
    if row["line_count"] != row["last_number"]:
        yield "settlement_lines", f"there are {row['line_count']}, the last is number {row['last_number']}"
    if row["transfer_count"] != row["last_transfer"]:
        yield (
            "merchant_transfers",
            f"there are {row['transfer_count']}, the last is number {row['last_transfer']}",
        )
    if not (row["last_sequence"] or 0) <= row["position"] <= (row["published"] or 0):
        yield (
            "settlements.position",
            f"is {row['position']}, the last line is of {row['last_sequence']}, the feed ends at {row['published']}",
        )
    if not row["closed"] <= row["carried_line"] <= row["lines"]:
        yield (
            "settlements.carried_line",
            f"is {row['carried_line']}, the open lines are {row['closed'] + 1} to {row['lines']}",
        )
    if (
        row["close_at"] is not None
        and row["closed_until"] is not None
        and row["close_at"] <= row["closed_until"]
    ):
        yield "settlements.close_at", f"is {row['close_at']}, but batch {row['closed_until']} is closed"


def line(row: Any) -> RowProblems:
    """Check a line against the movement that it stands for."""
    if row["number"] is None:
        yield "settlement_lines", f"the {row['type']} of {row['net']} at {row['position']} has no line"
        return
    is_fee = row["type"] in {"fee", "fee_returned"}
    expected = {
        "order": row["order_id"],
        "reference": row["reference"],
        "gross": 0 if is_fee else row["net"],
        "fee": row["net"] if is_fee else 0,
        "net": row["net"],
        "currency": row["currency"],
        "at": row["at"],
        "sequence": row["position"],
    }
    for name, said in expected.items():
        if row[f"line_{name}"] != said:
            yield (
                f"settlement_lines {row['number']}",
                f"{name} is {row[f'line_{name}']}, the ledger says {said}",
            )


def transfer(row: Any) -> RowProblems:
    """Check a ledger row of a merchant against its posting, its line, and the payout or reserve that caused it."""
    name = f"merchant_transfers {row['number']}"
    sides = (row["posting"], row["debit"], row["credit"])
    known = {(each.name, each.debit.value, each.credit.value): each for each in MERCHANT_POSTINGS}.get(sides)
    if known is None:
        yield name, f"posts {sides[0]} from {sides[1]} to {sides[2]}, which no recipe does"
        return
    if known.line is not None:
        net = row["amount"] if known.credit is PAYABLE else -row["amount"]
        said = (row["line_gross"], row["line_fee"], row["line_net"], row["line_currency"], row["line_at"])
        if said != (net, 0, net, row["currency"], row["created_at"]):
            yield name, f"is {net} {row['currency']} at {row['created_at']}, its line says {said}"
        if row["line_order"] is not None or row["line_sequence"] is not None:
            yield f"settlement_lines {row['line']}", "names an order, but its money belongs to none"
    for cause in ("reserve", "payout"):
        if known.name.startswith(cause) and row["amount"] != row[f"{cause}_amount"]:
            yield name, f"is {row['amount']}, its {cause} is {row[f'{cause}_amount']}"


def payout(row: Any) -> RowProblems:
    """Check a payout against its lines, its ledger rows and its events."""
    name, amount = f"payouts {row['number']}", row["amount"]
    if (row["summed"], row["counted"]) != (amount, row["last_line"] - row["first_line"] + 1):
        yield name, f"is {amount}, its {row['counted']} lines sum to {row['summed']}"
    if row["first_line"] != (row["before"] or 0) + 1 or (row["before"] is None) != (row["number"] == 1):
        yield name, f"begins with line {row['first_line']}, the payout before ended with {row['before']}"
    if row["foreign_lines"]:
        yield name, f"is in {row['currency']}, but {row['foreign_lines']} of its lines are not"
    if row["posted"] != amount:
        yield name, f"is {amount}, the ledger says {row['posted']}"
    if row["posted_at"] is not None and row["posted_at"] != row["closed_at"]:
        yield name, f"closed at {row['closed_at']}, the ledger says {row['posted_at']}"
    yield from _told(row)


def _told(row: Any) -> RowProblems:
    """Check a payout's events, its account and its status."""
    name, amount = f"payouts {row['number']}", row["amount"]
    if row["told"] != row["events"] or row["last_told"] != row["events"]:
        yield name, f"counts {row['events']} events, there are {row['told']}, the last is {row['last_told']}"
    if row["differ"]:
        yield name, f"is {amount}, {row['differ']} of its events say another amount"
    if not row["has_account"]:
        yield name, f"goes to the account {row['account_id']}, which the merchant does not have"
    status = row["status"]
    if (row["returned"] is not None) != (status == "returned"):
        yield name, f"is {status}, the ledger says that {row['returned'] or 0} came back"
    held = row["held_at"] is not None and row["released_at"] is None
    if status in {"created", "sent"} and row["try_at"] is None and not held:
        yield name, f"is {status}, but no time says when the bank is asked"
    if status in {"created", "sent", "paid"} and (row["paid"] is not None) != (status == "paid"):
        yield name, f"is {status}, the ledger says that {row['paid'] or 0} arrived"


def reserve(row: Any) -> RowProblems:
    """Check a reserve against its ledger rows."""
    name, amount = f"reserves {row['reserve_id']}", row["amount"]
    if row["held"] != amount or row["held_posted"] != row["held_at"]:
        yield (
            name,
            f"is {amount} held at {row['held_at']}, the ledger says {row['held']} at {row['held_posted']}",
        )
    gone = None if row["released_at"] is None else amount
    if row["released"] != gone or row["released_posted"] != row["released_at"]:
        yield (
            name,
            f"released {gone} at {row['released_at']}, the ledger says {row['released']} at {row['released_posted']}",
        )
