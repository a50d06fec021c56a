"""Risk decisions: a pure function of facts under a policy. The same facts and policy give the same outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cuota.core.risk.facts import Facts
from cuota.core.risk.policy import Counted, Policy

# An adverse action notice names at most so many principal reasons.
MOST_REASONS = 4
DAYS_A_MONTH = 30

# Why an order is declined whatever its score, the weightiest first.
REFUSALS = (
    "overdue_payments",
    "over_limit",
    "velocity_phone",
    "velocity_card",
    "velocity_address",
    "velocity_device",
    "disputed_payments",
)
SANDBOX_DECLINE, SANDBOX_APPROVE = "sandbox_decline_requested", "sandbox_approve_requested"
WITHIN_LIMIT, GOOD_HISTORY, KNOWN_TO_MERCHANT = "within_limit", "good_history", "known_to_merchant"
# What only approvals say.
APPROVAL_CODES = (WITHIN_LIMIT, GOOD_HISTORY, KNOWN_TO_MERCHANT, SANDBOX_APPROVE)
# What only declines say: REFUSALS, and what cost points.
DECLINE_CODES = (
    *REFUSALS,
    "late_payments",
    "recently_declined",
    "high_amount",
    "few_payments_yet",
    "known_for_short_time",
    "other_phone",
    "other_billing_state",
    "other_shipping_state",
    "other_surname",
    "merchant_information",
    SANDBOX_DECLINE,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Approved or declined, with its reasons by their codes, the weightiest first.

    `limit` is what the consumer may owe at once, in cents. `inputs` and the policy's version make it again.
    """

    approved: bool
    reasons: tuple[str, ...]
    policy_version: str
    inputs: dict[str, object]
    score: int
    limit: int


class ScorePart(NamedTuple):
    """What one thing gives to the score or takes off it; `most` is the best it could be.

    `code` is the reason where it is not at its best; empty for the base, which always is.
    """

    name: str
    points: int
    most: int
    code: str = ""

    @property
    def missing(self) -> int:
        """How far it is from its best."""
        return self.most - self.points


def decide(facts: Facts, policy: Policy) -> Decision:
    """Decide. What the sandbox's test surnames ask for comes before everything else."""
    refused, parts = refusals(facts, policy), score_parts(facts, policy)
    score = sum(part.points for part in parts)
    approved = not refused and score >= policy.score.threshold
    if facts.steer:
        approved = facts.steer == "approve"
        reasons: tuple[str, ...] = (SANDBOX_APPROVE if approved else SANDBOX_DECLINE,)
    elif approved:
        reasons = _carried_by(facts, policy, parts)
    else:
        slack = sum(part.most for part in parts) - policy.score.threshold
        reasons = principal_reasons(refused, parts, slack)
    limit = policy.limit(facts.history)
    return Decision(approved, reasons, policy.version, facts.as_inputs(), score, limit)


def refusals(facts: Facts, policy: Policy) -> tuple[str, ...]:
    """Which rules decline this order whatever its score."""
    history, seen, most = facts.history, facts.velocity, policy.velocity
    broken = {
        "overdue_payments": history.overdue_installments >= policy.refuse_overdue,
        "over_limit": max(0, history.outstanding) + max(0, facts.amount) > policy.limit(history),
        # Others were tried before; with this one there would be more than may be.
        "velocity_phone": seen.phone >= most.phone.orders,
        "velocity_card": seen.card >= most.card.orders,
        "velocity_address": seen.address >= most.address.orders,
        "velocity_device": seen.device >= most.device.orders,
        "disputed_payments": history.disputes >= policy.refuse_disputes,
    }
    return tuple(code for code in REFUSALS if broken[code])


def score_parts(facts: Facts, policy: Policy) -> tuple[ScorePart, ...]:
    """All that the score is the sum of."""
    history, score, limit = facts.history, policy.score, policy.limit(facts.history)
    months = (history.days_known or 0) // DAYS_A_MONTH
    used = min(max(0, facts.amount), limit)
    return (
        ScorePart("base", score.base, score.base),
        _counted("paid_installments", score.paid_installments, history.paid_installments, "few_payments_yet"),
        _counted("months_known", score.months_known, months, "known_for_short_time"),
        _counted("late_installments", score.late_installments, history.late_installments, "late_payments"),
        _counted(
            "overdue_installments",
            score.overdue_installments,
            history.overdue_installments,
            "overdue_payments",
        ),
        _counted("declined_orders", score.declined_orders, history.declined_orders, "recently_declined"),
        _counted("disputes", score.disputes, history.disputes, "disputed_payments"),
        # Rounded towards nothing taken.
        ScorePart("amount", -(-score.amount * used // limit), 0, "high_amount"),
        *_mismatches(facts, policy),
        _approvals(facts, policy),
    )


def principal_reasons(refused: Sequence[str], parts: Sequence[ScorePart], slack: int) -> tuple[str, ...]:
    """At most four: what refused, then what cost most points, and nothing that does not matter.

    `slack` is how many points below the best score an order is still approved. A cost matters where there is some
    choice of the other costs that leaves the order approved without it and declined with it: put right alone, or
    after others, it changes the outcome. One that is too small for that is not told, however real it is.
    """
    costs = [part for part in parts if part.missing > 0 and part.code not in refused]
    telling = [part for part in costs if _matters(part, costs, slack)]
    telling.sort(key=lambda part: -part.missing)
    return (*refused, *(part.code for part in telling))[:MOST_REASONS]


def _matters(part: ScorePart, costs: Sequence[ScorePart], slack: int) -> bool:
    # Bit n of `sums`: some of the other costs together take exactly n points, and the order is still approved.
    sums, within = 1, (1 << (slack + 1)) - 1
    for other in costs:
        if other is not part:
            sums |= (sums << other.missing) & within
    return sums.bit_length() - 1 + part.missing > slack


def _carried_by(facts: Facts, policy: Policy, parts: Sequence[ScorePart]) -> tuple[str, ...]:
    """What an approval rests on, found by leaving it out; being within the limit always does."""
    newcomer = replace(facts.history, paid_installments=0, days_known=None)
    points = {part.name: part.points for part in parts}
    given = points["approvals"]

    def holds(*, history: bool, merchant: bool) -> bool:
        left = replace(
            facts,
            history=facts.history if history else newcomer,
            approvals=facts.approvals if merchant or given <= 0 else None,
        )
        total = sum(part.points for part in score_parts(left, policy))
        return not refusals(left, policy) and total >= policy.score.threshold

    if holds(history=False, merchant=False):
        return (WITHIN_LIMIT,)
    by_history, by_merchant = holds(history=True, merchant=False), holds(history=False, merchant=True)
    carriers = []
    # Where either would do, both carry it; where only both do, too.
    if by_history or not by_merchant:
        carriers.append((points["paid_installments"] + points["months_known"], GOOD_HISTORY))
    if by_merchant or not by_history:
        carriers.append((given, KNOWN_TO_MERCHANT))
    carriers.sort(key=lambda carrier: -carrier[0])
    return (*(code for _, code in carriers), WITHIN_LIMIT)


def _counted(name: str, rule: Counted, count: int, code: str) -> ScorePart:
    points = rule.points * min(max(0, count), rule.most)
    return ScorePart(name, points, max(0, rule.points * rule.most), code)


def _mismatches(facts: Facts, policy: Policy) -> tuple[ScorePart, ...]:
    found, cost = facts.mismatches, policy.mismatch
    return (
        ScorePart("order_phone", cost.order_phone * found.order_phone, 0, "other_phone"),
        ScorePart("billing_state", cost.billing_state * found.billing_state, 0, "other_billing_state"),
        ScorePart("shipping_state", cost.shipping_state * found.shipping_state, 0, "other_shipping_state"),
        ScorePart("surname", cost.surname * found.surname, 0, "other_surname"),
    )


def _approvals(facts: Facts, policy: Policy) -> ScorePart:
    """Only what is on counts. What it adds is more than anybody needs: without it nothing is missing."""
    given = facts.approvals
    points = given.points if given is not None and given.mode == "on" else 0
    points = min(max(points, -policy.approvals_most), policy.approvals_most)
    return ScorePart("approvals", points, max(0, points), "merchant_information")
