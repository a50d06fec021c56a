"""Risk decisions: a pure function of facts and a policy. The same facts and policy always give the same result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from cuota.core.risk.block import BLOCK_CODES, reason_code
from cuota.core.risk.facts import Facts
from cuota.core.risk.policy import Counted, Policy
from cuota.core.risk.signal import Signal

# A notice of adverse action gives at most this many principal reasons.
MOST_REASONS = 4
DAYS_A_MONTH = 30

# Reasons that decline an order whatever its score, the most important first.
REFUSALS = (
    *BLOCK_CODES,
    "overdue_payments",
    "over_limit",
    "velocity_phone",
    "velocity_card",
    "velocity_address",
    "velocity_device",
    "disputed_payments",
)
SANDBOX_DECLINE, SANDBOX_APPROVE = "sandbox_decline_requested", "sandbox_approve_requested"
SANDBOX_REVIEW = "sandbox_review_requested"
WITHIN_LIMIT, GOOD_HISTORY, KNOWN_TO_MERCHANT = "within_limit", "good_history", "known_to_merchant"
REVIEWED = "approved_by_reviewer"
# Reasons that only approvals have.
APPROVAL_CODES = (WITHIN_LIMIT, GOOD_HISTORY, KNOWN_TO_MERCHANT, REVIEWED, SANDBOX_APPROVE)
# Reasons that only declines and referrals have: REFUSALS, and the costs in the score.
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
    SANDBOX_REVIEW,
)
# The declines that a test surname of the sandbox asked for. They do not count in the consumer's history.
SANDBOX_DECLINES = (SANDBOX_DECLINE, SANDBOX_REVIEW)


@dataclass(frozen=True, slots=True)
class Decision:
    """Approved, declined or referred, with the codes of the reasons, the most important first.

    `referred`: a person decides. Then `approved` is False, and the reasons are those of a decline. `limit` is the most that the
    consumer may owe at once, in cents. `inputs` and the policy's version are enough to repeat the decision.
    """

    approved: bool
    reasons: tuple[str, ...]
    policy_version: str
    inputs: dict[str, object]
    score: int
    limit: int
    referred: bool = False

    @property
    def outcome(self) -> str:
        """`approved`, `declined` or `referred`."""
        if self.referred:
            return "referred"
        return "approved" if self.approved else "declined"


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A risk decision with the data that is stored with it: the consumer, and the signals of the order."""

    decision_id: UUID
    consumer_id: UUID
    decision: Decision
    signals: tuple[Signal, ...] = ()


class ScorePart(NamedTuple):
    """The points that one fact adds to the score or takes off; `most` is the most that it could add.

    `code` is the reason to give if it adds less than that. The base has no code, because it never changes.
    """

    name: str
    points: int
    most: int
    code: str = ""

    @property
    def missing(self) -> int:
        """Return by how many points the part is below its maximum."""
        return self.most - self.points


def decide(facts: Facts, policy: Policy) -> Decision:
    """Decide the order. The sandbox's test surnames override everything except a block.

    A reviewer's approval lowers the score that an approval needs to `refer_from`, and never overrules a limit. After a reviewer's
    decline the order is decided as if it could not be referred: its score is below the threshold.
    """
    refused, parts = refusals(facts, policy), score_parts(facts, policy)
    score, needed = sum(part.points for part in parts), _needed(facts, policy)
    approved = not refused and score >= needed
    referred = not approved and not refused and _may_refer(facts, policy, score)
    reasons: tuple[str, ...]
    if facts.steer and not facts.block:
        approved, referred, reasons = _steered(facts)
    elif approved and score < policy.score.threshold:
        reasons = (REVIEWED, WITHIN_LIMIT)
    elif approved:
        reasons = _carried_by(facts, policy, parts)
    else:
        reasons = principal_reasons(refused, parts, sum(part.most for part in parts) - needed)
    limit = policy.limit(facts.history)
    return Decision(approved, reasons, policy.version, facts.as_inputs(), score, limit, referred)


def _needed(facts: Facts, policy: Policy) -> int:
    """Return the score that an approval needs.

    If the policy has changed since the referral and refers no order any more, the reviewer's approval replaces the score.
    """
    if facts.review == "approved":
        return policy.score.refer_from or 0
    return policy.score.threshold


def _may_refer(facts: Facts, policy: Policy, score: int) -> bool:
    refer_from = policy.score.refer_from
    return not facts.review and refer_from is not None and score >= refer_from


def _steered(facts: Facts) -> tuple[bool, bool, tuple[str, ...]]:
    """Return what a test surname asks for: approved, referred, and the reasons."""
    if facts.steer != "refer":
        approved = facts.steer == "approve"
        return approved, False, (SANDBOX_APPROVE if approved else SANDBOX_DECLINE,)
    if facts.review == "approved":
        return True, False, (REVIEWED,)
    return False, not facts.review, (SANDBOX_REVIEW,)


def refusals(facts: Facts, policy: Policy) -> tuple[str, ...]:
    """Return the rules that decline this order whatever its score."""
    history, seen, most = facts.history, facts.velocity, policy.velocity
    broken = {
        **{code: facts.block != "" and code == reason_code(facts.block) for code in BLOCK_CODES},
        "overdue_payments": history.overdue_installments >= policy.refuse_overdue,
        "over_limit": max(0, history.outstanding) + max(0, facts.amount) > policy.limit(history),
        # The count is of earlier orders; this order would be one more than allowed.
        "velocity_phone": seen.phone >= most.phone.orders,
        "velocity_card": seen.card >= most.card.orders,
        "velocity_address": seen.address >= most.address.orders,
        "velocity_device": seen.device >= most.device.orders,
        "disputed_payments": history.disputes >= policy.refuse_disputes,
    }
    return tuple(code for code in REFUSALS if broken[code])


def score_parts(facts: Facts, policy: Policy) -> tuple[ScorePart, ...]:
    """Return all parts of the score."""
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
        # Rounded in favor of the consumer.
        ScorePart("amount", -(-score.amount * used // limit), 0, "high_amount"),
        *_mismatches(facts, policy),
        _approvals(facts, policy),
    )


def principal_reasons(refused: Sequence[str], parts: Sequence[ScorePart], slack: int) -> tuple[str, ...]:
    """Return at most four reasons: first the rules that refused, then the costs that took the most points.

    An order is approved if its score is at most `slack` points below the best score. A cost is a reason only if removing it
    can change the result. That is so if some of the other costs alone still leave the order approved, and this cost in
    addition makes it declined. A cost that is too small for that is not given as a reason.
    """
    costs = [part for part in parts if part.missing > 0 and part.code not in refused]
    telling = [part for part in costs if _matters(part, costs, slack)]
    telling.sort(key=lambda part: -part.missing)
    return (*refused, *(part.code for part in telling))[:MOST_REASONS]


def _matters(part: ScorePart, costs: Sequence[ScorePart], slack: int) -> bool:
    # Bit n of `sums` is set if some choice of the other costs takes exactly n points and the order is still approved.
    sums, within = 1, (1 << (slack + 1)) - 1
    for other in costs:
        if other is not part:
            sums |= (sums << other.missing) & within
    return sums.bit_length() - 1 + part.missing > slack


def _carried_by(facts: Facts, policy: Policy, parts: Sequence[ScorePart]) -> tuple[str, ...]:
    """Return the reasons of an approval: the good history, the merchant's data, or both, and the limit in any case.

    The order is decided again without the history, without the merchant's data, and without both.
    """
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
    # If either of two facts would suffice, both count; if only both together suffice, both count too.
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
    """Return the points from Advanced Approvals, if they are on.

    These points come on top of the normal score, so an order without them lacks nothing.
    """
    given = facts.approvals
    points = given.points if given is not None and given.mode == "on" else 0
    points = min(max(points, -policy.approvals_most), policy.approvals_most)
    return ScorePart("approvals", points, max(0, points), "merchant_information")
