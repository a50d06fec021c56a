"""The rules that the rows of one order must satisfy. Each rule yields the rows that disagree, with both numbers in cents."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from cuota.core import money
from cuota.core.installment import Installment, lost, next_at, owed, schedule
from cuota.core.ledger import Account, Transfer, balance
from cuota.core.plan.agreement import accepted_text
from cuota.core.plan.agreement_values import UnreadableAgreement
from cuota.core.plan.change import PlannedPayment, planned
from cuota.core.privacy.erasure import still_has
from cuota.db.plan.plan_changes import change_of
from cuota.db.verify import (
    dispute_rules,
    event_rules,
    fees,
    plan_changes,
    plan_replay,
    review_rules,
    work_rules,
)

Disagreements = Iterator[tuple[str, str]]
POSTING_OF = {
    "capture": ("capture",),
    "void": ("void", "expiry", "chargeback_void"),
    "refund": ("refund", "dispute_lost"),
}


def disagreements_of(facts: dict[str, Any]) -> Disagreements:
    """Yield every disagreement in one order's rows, as (row, problem)."""
    ledger = [Transfer(posting, cause, Account(debit), Account(credit), amount)
              for _, posting, cause, debit, credit, amount, _ in facts["ledger"]]  # fmt: skip
    yield from _numbers(facts)
    yield from _totals(facts, ledger)
    yield from _causes(facts, ledger)
    yield from _balances(facts, ledger)
    yield from fees.disagreements(facts, ledger)
    disputes = dispute_rules.disputes_of(facts)
    yield from dispute_rules.disagreements(facts, disputes, ledger)
    changes = [change_of(*row) for row in facts["changes"]]
    yield from plan_changes.disagreements(facts, changes, ledger)
    yield from plan_replay.disagreements(facts, changes, ledger)
    yield from _charges(facts)
    yield from _plan(facts)
    yield from event_rules.disagreements(facts, disputes)
    yield from _accepted(facts)
    yield from _decided(facts)
    yield from review_rules.disagreements(facts)
    yield from work_rules.disagreements(facts)


def _numbers(facts: dict[str, Any]) -> Disagreements:
    """Check that ledger and events are numbered without gaps up to the order's last numbers."""
    numbers = [row[0] for row in facts["ledger"]]
    if numbers != list(range(1, facts["transfers"] + 1)):
        yield "transfers", f"numbered {numbers}, the order counts {facts['transfers']}"
    if facts["sequences"] != list(range(1, facts["events"] + 1)):
        yield "events", f"numbered {facts['sequences']}, the order counts {facts['events']}"
    for row in facts["ledger"]:
        if row[6] != facts["currency"]:
            yield f"transfers {row[0]}", f"in {row[6]}, the order is in {facts['currency']}"


def _totals(facts: dict[str, Any], ledger: list[Transfer]) -> Disagreements:
    """Check that the order's totals are the sums of its ledger."""
    sums = Counter[str]()
    for transfer in ledger:
        if transfer.posting == "authorization" and transfer.credit is Account.PLAN_FEES:
            sums["fee"] += transfer.amount
        else:
            sums[transfer.posting] += transfer.amount
    approved = facts["status"] == "Approved"
    derived = {
        "amount": sums["authorization"] if approved else facts["amount"],
        "fee": sums["fee"] if approved else facts["fee"],
        "captured": sums["capture"],
        "voided": sums["void"] + sums["expiry"] + sums["chargeback_void"],
        "refunded": sums["refund"] + sums["dispute_lost"],
        "fee_returned": sums["fee_returned"] + sums["fee_waived"],
    }
    for name, expected in derived.items():
        if facts[name] != expected:
            yield f"orders.{name}", f"is {facts[name]}, the ledger says {expected}"
    # An order that is not approved has no ledger. Its amount must be the amount with which it was created.
    if facts["created_amount"] not in {None, facts["amount"]}:
        yield "orders.amount", f"is {facts['amount']}, order.created said {facts['created_amount']}"
    if money.cents_of(facts["created_fee"] or "0") != facts["fee"]:
        yield "orders.fee", f"is {facts['fee']}, the order was created with {facts['created_fee']}"
    if not approved and ledger:
        yield "transfers", f"the order is {facts['status']}, but money moved"


def _causes(facts: dict[str, Any], ledger: list[Transfer]) -> Disagreements:
    """Check that the ledger contains exactly the amount of each movement, charge and card refund, and nothing else."""
    posted = Counter[tuple[Any, str]]()
    for transfer in ledger:
        posted[transfer.cause, transfer.posting] += transfer.amount
    expected = Counter[tuple[Any, str]]()
    for kind, reference, movement_id, amount in facts["moved"]:
        name = next((p for p in POSTING_OF[kind] if (movement_id, p) in posted), kind)
        expected[movement_id, name] += amount
        if posted[movement_id, name] != amount:
            yield f"movements {kind} {reference}", f"is {amount}, the ledger says {posted[movement_id, name]}"
    for charge_id, number, amount, state in facts["charged"]:
        paid = amount if state == "succeeded" else 0
        expected[charge_id, "installment_paid"] += paid
        if posted[charge_id, "installment_paid"] != paid:
            yield (
                f"charges {number}",
                f"{state} {amount}, the ledger says {posted[charge_id, 'installment_paid']}",
            )
    yield from _card_refunds(facts, posted, expected)
    known = (
        {cause for cause, _ in expected}
        | {row[1] for row in facts["changes"]}
        | dispute_rules.causes(dispute_rules.disputes_of(facts))
    )
    for cause, name in posted:
        if cause not in known and name not in {"authorization", "write_off"}:
            yield f"transfers {name}", f"{posted[cause, name]} of a cause that does not exist ({cause})"


def _card_refunds(
    facts: dict[str, Any], posted: Counter[tuple[Any, str]], expected: Counter[tuple[Any, str]]
) -> Disagreements:
    for refund_id, _, amount, state in facts["returning"]:
        by_bank = posted[refund_id, "refund_charged_back"]
        left = amount - by_bank
        gone = left if state == "succeeded" else 0
        expected[refund_id, "card_refund"] += gone
        # A refund that failed after it had succeeded is posted in both directions.
        returned = posted[refund_id, "card_refund"] - posted[refund_id, "card_refund_failed"]
        if returned != gone or posted[refund_id, "card_refund"] not in {0, left, amount}:
            yield f"card_refunds {refund_id}", f"{state} {amount}, the ledger says {returned}"
        if by_bank > amount or (by_bank == amount) != (state == "charged_back"):
            yield f"card_refunds {refund_id}", f"{state} {amount}, the ledger says {by_bank} by a chargeback"
        otherwise = posted[refund_id, "refund_paid_otherwise"]
        if otherwise != (left if state == "paid_otherwise" else 0):
            yield f"card_refunds {refund_id}", f"{state} {amount}, the ledger says {otherwise} in another way"


def _balances(facts: dict[str, Any], ledger: list[Transfer]) -> Disagreements:
    """Check that the account balances match the order, the plan and the cards, and that all other accounts are empty."""
    if facts["status"] != "Approved":
        return
    paid = sum(amount for _, _, amount, state in facts["charged"] if state == "succeeded")
    by_bank = Counter[Any]()
    for transfer in ledger:
        by_bank[transfer.cause] += transfer.amount if transfer.posting == "refund_charged_back" else 0
    left = [(amount - by_bank[refund], state) for refund, _, amount, state in facts["returning"]]
    gone = sum(amount for amount, state in left if state == "succeeded")
    merchant_fee = fees.posted(ledger, "merchant_fee") - fees.posted(ledger, "merchant_fee_returned")
    plan = [Installment(*row) for row in facts["plan"]]
    unpaid = sum(item.total for item in owed(plan))
    waiting = sum(amount for amount, state in left if state in {"pending", "failed"})
    disputes = dispute_rules.disputes_of(facts)
    withheld = facts["disputed"] + facts["charged_back"]
    derived = {
        Account.CONSUMER_RECEIVABLE: unpaid - lost(plan),
        Account.AUTHORIZED_UNCAPTURED: -(facts["amount"] - facts["captured"] - facts["voided"]),
        Account.CONSUMER_REFUND_DUE: -waiting,
        Account.MERCHANT_PAYABLE: merchant_fee - (facts["captured"] - facts["refunded"]) + withheld,
        Account.MERCHANT_FEES: -merchant_fee,
        Account.CARD_CLEARING: paid - gone - dispute_rules.taken_back(disputes),
        Account.BANK_CLEARING: -fees.posted(ledger, "refund_paid_otherwise"),
        Account.DISPUTES_WITHHELD: -withheld,
        Account.CHARGEBACKS: dispute_rules.undecided(disputes),
        Account.LOSSES: lost(plan)
        + fees.posted(ledger, "chargeback_loss")
        - fees.posted(ledger, "refund_charged_back"),
        Account.PLAN_FEES: -(facts["fee"] - facts["fee_returned"]),
    }
    for account in Account:
        held, expected = balance(ledger, account), derived.get(account, 0)
        if held != expected:
            yield f"balance {account}", f"is {held}, order and plan say {expected}"


def _charges(facts: dict[str, Any]) -> Disagreements:
    """Check that the first charge had the agreed amount of the first installment, whether the card paid or not."""
    for _, number, amount, _ in facts["charged"]:
        agreed = _agreed(facts)
        if number == 1 and agreed and amount != agreed[0].total:
            yield f"charges {number}", f"is {amount}, the agreed amount is {agreed[0].total}"
        if not agreed:
            yield f"charges {number}", "belongs to no plan"


def _agreed(facts: dict[str, Any]) -> list[Installment]:
    return schedule(facts["amount"], facts["fee"], facts["first_day"]) if facts["first_day"] else []


def _plan(facts: dict[str, Any]) -> Disagreements:
    """Check the legal rules of the plan, the agreed dates, and each installment against the charge that paid it."""
    if facts["status"] != "Approved":
        if facts["plan"]:
            yield "installments", f"the order is {facts['status']}, but it has a plan"
        return
    owed = facts["amount"] - facts["voided"] - facts["refunded"]
    in_plan = sum(row[2] for row in facts["plan"])
    if in_plan != owed:
        yield "installments", f"sum to {in_plan}, the order owes {owed}"
    changes = [change_of(*row) for row in facts["changes"]]
    # What the consumer agreed to last: the first agreement, or the last change of it.
    agreed = changes[-1].after if changes else planned(_agreed(facts))
    if len(facts["plan"]) != len(agreed):
        yield "installments", f"there are {len(facts['plan'])}, the agreed number is {len(agreed)}"
    expected = next_at([Installment(*row) for row in facts["plan"]])
    if facts["collect_at"] != expected:
        yield "orders.collect_at", f"is {facts['collect_at']}, its plan says {expected}"
    charged = {charge_id: amount for charge_id, _, amount, _ in facts["charged"]}
    returning = Counter[Any]()
    for _, charge_id, amount, _ in facts["returning"]:
        returning[charge_id] += amount
    ledger = [Transfer(posting, cause, Account(debit), Account(credit), amount)
              for _, posting, cause, debit, credit, amount, _ in facts["ledger"]]  # fmt: skip
    disputes = dispute_rules.disputes_of(facts)
    returning += dispute_rules.returned_by_networks(disputes, ledger)
    may_wait = bool(disputes or facts["held_returns"])
    for row, first in zip(facts["plan"], agreed, strict=False):
        for problem in _installment(Installment(*row), first, charged, returning, may_wait=may_wait):
            yield f"installments {first.number}", problem


def _installment(
    item: Installment,
    first: PlannedPayment,
    charged: dict[Any, int],
    returning: Counter[Any],
    *,
    may_wait: bool,
) -> Iterator[str]:
    # A dispute or a return notice moves payments to later days, never to earlier ones.
    if item.due_on < first.due_on or (item.due_on > first.due_on and not may_wait):
        yield f"is due on {item.due_on}, the agreed day is {first.due_on}"
    if item.amount > first.amount or item.fee > first.fee:
        yield f"is {item.amount} and {item.fee} in fees, the agreed amounts are {first.amount} and {first.fee}"
    held = item.total + item.returned
    if item.paid and charged.get(item.charge_id) != held:
        yield f"holds {held}, its charge was {charged.get(item.charge_id)}"
    gone = returning[item.charge_id] if item.paid else 0
    if item.returned != gone:
        yield f"returned {item.returned}, its card refunds say {gone}"


def _accepted(facts: dict[str, Any]) -> Disagreements:
    """Check that the agreement has the hash that was accepted, and that the order's details exist."""
    if not facts["has_details"]:
        yield "order_details", "are missing"
    if facts["erased_document"] is not None:
        for name in still_has(json.loads(facts["erased_document"])):
            yield "order_details", f"was erased, but still has {name}"
    if facts["agreed"]:
        if facts["erased"]:
            # The agreement's text was erased; only its hash is left.
            if facts["agreement"] or facts["has_payer"]:
                yield "plans", "was erased, but still has its agreement or payer"
        else:
            yield from _agreement(facts["agreement"], facts["agreement_hash"])


def _agreement(stored: str, accepted_hash: str) -> Disagreements:
    try:
        text = accepted_text(stored)
    except UnreadableAgreement as problem:
        yield "plans.agreement", str(problem)
        return
    if hashlib.sha256(text.encode()).hexdigest() != accepted_hash:
        yield "plans.agreement", "does not have the hash that was accepted"


def _decided(facts: dict[str, Any]) -> Disagreements:
    """Check that risk approved every approved order, and that the decision was about this order."""
    made = facts["decided"]
    if facts["status"] == "Approved" and not (made and made[-1][0]):
        yield "decisions", "the last decision did not approve the order, but the order is Approved"
    asked = sum(number == 1 for _, number, _, _ in facts["charged"])
    if (said := sum(approved for approved, *_ in made)) != asked:
        yield "decisions", f"{said} approved the order, but the first installment was charged {asked} times"
    if any(not approved for approved, *_ in made) and facts["status"] != "Declined":
        yield "decisions", f"a decision declined the order, but the order is {facts['status']}"
    # What a consumer owes is read by the consumer of the plans. An early release stored no consumer with a decision.
    approver = next((consumer for approved, *_, consumer in reversed(made) if approved), None)
    if approver and facts["agreed"] and not facts["erased"] and facts["consumer_id"] != approver:
        yield "plans.consumer_id", f"is {facts['consumer_id']}, the decision was about {approver}"
    for number, (_, amount, intact, *_) in enumerate(made, start=1):
        if not intact:
            yield f"decisions {number}", "its inputs were changed after it was made"
        if amount is not None and amount != str(facts["amount"]):
            yield f"decisions {number}", f"was made about {amount}, the order is {facts['amount']}"
