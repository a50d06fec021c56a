"""A decision in words and numbers, for the operator: what was known, what the policy says, and the result."""

from __future__ import annotations

from collections.abc import Sequence

from cuota.core import money
from cuota.core.risk.decision import Decision, refusals, score_parts
from cuota.core.risk.facts import Approvals, Facts, FieldValue
from cuota.core.risk.model import BOUND, SHIFT
from cuota.core.risk.policy import Policy

APPROVED_BECAUSE = {
    "within_limit": "what the consumer would owe is within their limit",
    "good_history": "what the consumer has paid here speaks for them",
    "known_to_merchant": "what the shop says of its customer speaks for them",
    "sandbox_approve_requested": "the sandbox's test last name asks for it",
}
_DECLINED_BECAUSE = {
    "overdue_payments": "payments are overdue",
    "over_limit": "the consumer would owe more than their limit",
    "velocity_phone": "too many orders with the same phone number",
    "velocity_card": "too many orders with the same card",
    "velocity_address": "too many orders from the same address",
    "velocity_device": "too many orders from the same device",
    "disputed_payments": "earlier payments were disputed",
    "late_payments": "earlier installments were paid late",
    "recently_declined": "orders were declined in the last 30 days",
    "high_amount": "the order takes much of the limit",
    "few_payments_yet": "few installments were paid so far",
    "known_for_short_time": "the consumer has not been here for long",
    "other_phone": "the order named another phone number",
    "other_billing_state": "the order named another billing state",
    "other_shipping_state": "it goes to another state than it is billed to",
    "other_surname": "the last name is not the one of before",
    "merchant_information": "what the shop says of its customer",
    "sandbox_decline_requested": "the sandbox's test last name asks for it",
}
PARTS = {
    "base": "everybody begins with",
    "paid_installments": "installments paid",
    "months_known": "months known",
    "late_installments": "installments paid late",
    "overdue_installments": "installments overdue",
    "declined_orders": "orders declined in 30 days",
    "disputes": "payments disputed",
    "amount": "the amount, measured by the limit",
    "order_phone": "another phone number in the order",
    "billing_state": "another billing state in the order",
    "shipping_state": "shipped to another state",
    "surname": "another last name than before",
    "approvals": "Advanced Approvals",
}
_CONTRIBUTIONS = {
    SHIFT: "shift: added wherever there is data, so that as much is lost as without it",
    BOUND: "bound: cut off, since the sum may not pass the most",
}
_FLAGS = {
    "customer_logged_in": "logged in",
    "customer_is_member": "a member",
    "same_device": "the same device as before",
    "customer_fraud_incidents": "fraud incidents",
}


def counted(number: int, noun: str) -> str:
    """Return `1 order` or `2 orders`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def because(code: str) -> str:
    """Return a reason's code and meaning. An unknown code, from another release, is returned as it is."""
    meaning = {**_DECLINED_BECAUSE, **APPROVED_BECAUSE}.get(code)
    return f"{code}: {meaning}" if meaning else code


def explain(decision: Decision, facts: Facts, policy: Policy, unreadable: Sequence[str] = ()) -> list[str]:
    """Explain line by line, with every number that was used. The policy must be the one that made this decision.

    `unreadable` are the names of the fields whose values could not be read.
    """
    lines = [f"Why: {because(decision.reasons[0])}."]
    lines += [f"     {because(code)}." for code in decision.reasons[1:]]
    if facts.steer:
        lines.append("Without the test last name it would have gone by what follows.")
    return [
        *lines,
        "",
        *_limit(facts, policy),
        "",
        *_score(facts, policy),
        "",
        *_seen(facts, policy),
        *_merchant_says(facts, policy, unreadable),
    ]


def _limit(facts: Facts, policy: Policy) -> list[str]:
    history, limit = facts.history, policy.limit(facts.history)

    def shown(cents: int) -> str:
        return money.shown(cents, facts.currency)

    owed = history.outstanding + facts.amount
    verdict = "within" if owed <= limit else "above"
    known = (
        "no approved order before"
        if history.days_known is None
        else f"known for {counted(history.days_known, 'day')}"
    )
    return [
        f"Limit: {shown(limit)}, for {counted(history.paid_installments, 'installment')} paid, {history.late_installments} of them late.",
        f"Owed:  {shown(history.outstanding)} before and {shown(facts.amount)} with this order: {shown(owed)}, {verdict} the limit.",
        f"Past:  {counted(history.approved_orders, 'order')} approved, {history.declined_orders} declined in 30 days; {known}.",
        f"       {counted(history.overdue_installments, 'installment')} overdue; {counted(history.disputes, 'payment')} disputed.",
    ]


def _score(facts: Facts, policy: Policy) -> list[str]:
    parts = score_parts(facts, policy)
    total = sum(part.points for part in parts)
    verdict = "enough" if total >= policy.score.threshold else "not enough"
    told = [part for part in parts if part.points or part.missing]
    return [
        f"Score: {total}; {policy.score.threshold} is needed: {verdict}.",
        *(
            f"  {part.points:+5d}  {PARTS.get(part.name, part.name)}{_best(part.missing, part.most)}"
            for part in told
        ),
    ]


def _best(missing: int, most: int) -> str:
    return f" (at best {most:+d})" if missing and most else ""


def _seen(facts: Facts, policy: Policy) -> list[str]:
    seen, most, broken = facts.velocity, policy.velocity, refusals(facts, policy)
    kinds = (
        ("phone", seen.phone, most.phone), ("card", seen.card, most.card),
        ("address", seen.address, most.address), ("device", seen.device, most.device),
    )  # fmt: skip
    return [
        "Earlier orders with the same:",
        *(
            f"  {kind:8} {count} in {counted(window.hours, 'hour')}; declined from {window.orders} on"
            f"{'  <- declined' if f'velocity_{kind}' in broken else ''}"
            for kind, count, window in kinds
        ),
    ]


def _merchant_says(facts: Facts, policy: Policy, unreadable: Sequence[str]) -> list[str]:
    given = facts.approvals
    if given is None:
        return []
    lines = ["", f"Advanced Approvals ({given.mode}): the shop said{':' if given.fields else ' nothing.'}"]
    lines += [f"  {_said(name, value, facts.currency)}" for name, value in sorted(given.fields.items())]
    if unreadable:
        lines.append(f"  could not be read, and does not count: {', '.join(unreadable)}")
    if given.model is not None:
        lines += _model_says(given, policy)
    return lines


def _model_says(given: Approvals, policy: Policy) -> list[str]:
    counts = "counts" if given.mode == "on" else "does not count in a trial"
    return [
        f"Its model {given.model} gives {given.points:+d} points, of {policy.approvals_most} at the most; that {counts}.",
        *(f"  {points:+5d}  {_CONTRIBUTIONS.get(name, name)}" for name, points in given.contributions),
    ]


def _said(name: str, value: FieldValue, currency: str) -> str:
    """Describe a field's value in words."""
    if isinstance(value, bool):
        return f"{_FLAGS.get(name, name)}: {'yes' if value else 'no'}"
    if not isinstance(value, int):
        words = {
            "merchant_risk_assessment": "its own assessment of the risk",
            "fulfillment_method": "handed over",
        }
        return f"{words.get(name, name)}: {value}"
    words = {
        "account_creation_date": f"the account is {counted(value, 'day')} old",
        "last_transaction_date": f"the last purchase there is {counted(value, 'day')} ago",
        "customer_transaction_count": f"{counted(value, 'purchase')} there before",
        "customer_average_order_value": f"an order there is {money.shown(value, currency)} on average",
    }
    return words.get(name, f"{name}: {value}")
