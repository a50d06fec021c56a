"""A decision in words and numbers, for the operator: what was known, what the policy says, and the result."""

from __future__ import annotations

from collections.abc import Sequence

from cuota.core import money
from cuota.core.risk.decision import Decision, refusals, score_parts
from cuota.core.risk.facts import Approvals, Facts, FieldValue, ReviewFact
from cuota.core.risk.model import BOUND, SHIFT
from cuota.core.risk.policy import Policy

APPROVED_BECAUSE = {
    "within_limit": "the consumer would owe no more than their limit",
    "good_history": "the consumer's payment history is good",
    "known_to_merchant": "the merchant's data about its customer is favorable",
    "approved_by_reviewer": "a person looked at the order and approved it",
    "sandbox_approve_requested": "the last name is the sandbox's test name for an approval",
}
_DECLINED_BECAUSE = {
    "blocked_identity": "the operator has blocked the consumer, whose identity could not be confirmed",
    "blocked_misuse": "the operator has blocked the consumer after activity that nobody could explain",
    "blocked_unpaid": "the operator has blocked the consumer, who has not paid earlier plans as agreed",
    "blocked_own_request": "the operator has blocked the consumer, who asked for it",
    "overdue_payments": "the consumer has overdue payments",
    "over_limit": "the consumer would owe more than their limit",
    "velocity_phone": "too many orders with the same phone number",
    "velocity_card": "too many orders with the same card",
    "velocity_address": "too many orders from the same address",
    "velocity_device": "too many orders from the same device",
    "disputed_payments": "earlier payments were disputed",
    "late_payments": "earlier installments were paid late",
    "recently_declined": "orders were declined in the last 30 days",
    "high_amount": "the order uses much of the consumer's limit",
    "few_payments_yet": "the consumer has paid few installments so far",
    "known_for_short_time": "the consumer's first approved order was not long ago",
    "other_phone": "the merchant's order has a different phone number",
    "other_billing_state": "the merchant's order has a different billing state",
    "other_shipping_state": "the shipping state differs from the billing state",
    "other_surname": "the last name differs from the one in earlier orders",
    "merchant_information": "the merchant's data about its customer is unfavorable",
    "sandbox_decline_requested": "the last name is the sandbox's test name for a decline",
    "sandbox_review_requested": "the last name is the sandbox's test name for a review",
}
_REVIEWS: dict[ReviewFact, str] = {
    "unavailable": "The order could not be referred to a person.",
    "approved": "A person had looked at the order and approved it. The limits were checked again.",
    "declined": "The order was referred to a person and not approved. The facts are those of the referral.",
}
PARTS = {
    "base": "starting score of every order",
    "paid_installments": "installments paid",
    "months_known": "months since the first approved order",
    "late_installments": "installments paid late",
    "overdue_installments": "installments overdue",
    "declined_orders": "orders declined in 30 days",
    "disputes": "payments disputed",
    "amount": "amount of the order, relative to the limit",
    "order_phone": "different phone number in the order",
    "billing_state": "different billing state in the order",
    "shipping_state": "shipped to a different state",
    "surname": "different last name than before",
    "approvals": "Advanced Approvals",
}
_CONTRIBUTIONS = {
    SHIFT: "shift: added whenever there is data, to keep losses as low as without the data",
    BOUND: "bound: the sum is cut off at the highest value allowed",
}
_FLAGS = {
    "customer_logged_in": "customer is logged in",
    "customer_is_member": "customer is a member",
    "same_device": "same device as before",
    "customer_fraud_incidents": "customer had fraud incidents",
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
    if facts.block:
        lines.append("A block declines every order, whatever the numbers below say.")
    if facts.steer and not facts.block:
        lines.append("Without the test last name, the numbers below would have decided.")
    if facts.review:
        lines.append(_REVIEWS[facts.review])
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
    first_order = (
        "no approved order before this one"
        if history.days_known is None
        else f"the first approved order was {counted(history.days_known, 'day')} ago"
    )
    return [
        f"Limit: {shown(limit)}, based on {counted(history.paid_installments, 'installment')} paid, {history.late_installments} of them late.",
        f"Owed:  {shown(history.outstanding)} already, plus {shown(facts.amount)} for this order, is {shown(owed)}: {verdict} the limit.",
        f"Past:  {counted(history.approved_orders, 'order')} approved, {history.declined_orders} declined in the last 30 days; {first_order}.",
        f"       {counted(history.overdue_installments, 'installment')} overdue; {counted(history.disputes, 'payment')} disputed.",
        _of_merchant(facts),
    ]


def _of_merchant(facts: Facts) -> str:
    seen = facts.merchant_disputes
    rate = f", {seen.per_thousand} of 1,000" if seen.per_thousand is not None else ""
    return f"Shop:  {counted(seen.disputes, 'dispute')} in the last 90 days, for {counted(seen.captures, 'capture')}{rate}."


def _score(facts: Facts, policy: Policy) -> list[str]:
    parts = score_parts(facts, policy)
    total, threshold = sum(part.points for part in parts), policy.score.threshold
    verdict, refer_from = "enough" if total >= threshold else "not enough", policy.score.refer_from
    referring = "" if refer_from is None else f" From {refer_from} on, a person decides."
    listed = [part for part in parts if part.points or part.missing]
    return [
        f"Score: {total}, which is {verdict}: an approval needs at least {threshold}.{referring}",
        *(
            f"  {part.points:+5d}  {PARTS.get(part.name, part.name)}{_best(part.missing, part.most)}"
            for part in listed
        ),
    ]


def _best(missing: int, most: int) -> str:
    return f" (at most {most:+d})" if missing and most else ""


def _seen(facts: Facts, policy: Policy) -> list[str]:
    seen, most, broken = facts.velocity, policy.velocity, refusals(facts, policy)
    kinds = (
        ("phone", seen.phone, most.phone), ("card", seen.card, most.card),
        ("address", seen.address, most.address), ("device", seen.device, most.device),
    )  # fmt: skip
    return [
        "Earlier orders with the same phone, card, address or device:",
        *(
            f"  {kind:8} {count} in the last {counted(window.hours, 'hour')}; {window.orders} or more lead to a decline"
            f"{'  <- reason for the decline' if f'velocity_{kind}' in broken else ''}"
            for kind, count, window in kinds
        ),
    ]


def _merchant_says(facts: Facts, policy: Policy, unreadable: Sequence[str]) -> list[str]:
    given = facts.approvals
    if given is None:
        return []
    lines = [
        "",
        f"Advanced Approvals ({given.mode}): the merchant sent{' this data:' if given.fields else ' no data.'}",
    ]
    lines += [f"  {_said(name, value, facts.currency)}" for name, value in sorted(given.fields.items())]
    if unreadable:
        lines.append(f"  not readable, and therefore not used: {', '.join(unreadable)}")
    if given.model is not None:
        lines += _model_says(given, policy)
    return lines


def _model_says(given: Approvals, policy: Policy) -> list[str]:
    counts = (
        "They count in the score." if given.mode == "on" else "They do not count, because this is a trial."
    )
    return [
        f"Model {given.model} gives {given.points:+d} points (at most {policy.approvals_most} in either direction). {counts}",
        *(f"  {points:+5d}  {_CONTRIBUTIONS.get(name, name)}" for name, points in given.contributions),
    ]


def _said(name: str, value: FieldValue, currency: str) -> str:
    """Describe a field's value in words."""
    if isinstance(value, bool):
        return f"{_FLAGS.get(name, name)}: {'yes' if value else 'no'}"
    if not isinstance(value, int):
        words = {
            "merchant_risk_assessment": "the merchant's own risk assessment",
            "fulfillment_method": "fulfillment",
        }
        return f"{words.get(name, name)}: {value}"
    words = {
        "account_creation_date": f"the customer's account is {counted(value, 'day')} old",
        "last_transaction_date": f"the last purchase at this merchant was {counted(value, 'day')} ago",
        "customer_transaction_count": f"{counted(value, 'earlier purchase')} at this merchant",
        "customer_average_order_value": f"the average order at this merchant is {money.shown(value, currency)}",
    }
    return words.get(name, f"{name}: {value}")
