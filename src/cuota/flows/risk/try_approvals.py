"""Advanced Approvals of one merchant: the trial, its report, and the change of the mode.

In a trial the data does not affect decisions; Cuota only records what it would have changed. Advanced Approvals can be turned
on only if the trial has proved that the data helps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from cuota.core.expected_failure import ExpectedFailure
from cuota.core.installment import COUNT, DAYS_BETWEEN
from cuota.core.order.order import Status
from cuota.core.plan.collection import RETRIES
from cuota.core.risk.decision import refusals, score_parts
from cuota.core.risk.facts import Facts
from cuota.core.risk.policy import Policy
from cuota.db.risk import approvals
from cuota.db.risk.approvals import ApprovalsState
from cuota.db.risk.decisions import Became
from cuota.flows.context import Context
from cuota.flows.risk.review_decisions import BEGINNING, END, Policies, last_of_each
from cuota.trial import fit as risk_fit
from cuota.trial.fit import Trial
from cuota.trial.trial import TrialOrder, Verdict, verdict

# The day of the last installment, plus the days of all retries of a failing card. Amounts that are unpaid by then count as
# lost.
_LAST_DAY = timedelta(days=DAYS_BETWEEN * (COUNT - 1))
MATURES_AFTER = _LAST_DAY + timedelta(days=18)
assert _LAST_DAY + sum(RETRIES, timedelta()) < MATURES_AFTER


class NotProved(ExpectedFailure):
    """Advanced Approvals cannot be turned on. `reasons` are sentences; the text contains each on its own line."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("\n  ".join(("The mode was not changed:", *reasons)))
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class TrialState:
    """A trial so far: its model and numbers, the verdict, the merchant's mode, and the policy that was used."""

    trial: Trial
    verdict: Verdict
    standing: ApprovalsState
    policy: str


async def report_trial(context: Context, merchant_id: UUID) -> TrialState:
    """Fit the model to the trial's orders, and judge the trial.

    The model is stored. While the trial continues, the model's points are recorded with each decision.
    """
    orders = await _orders(context, merchant_id)
    found = risk_fit.trial(orders, bound=context.policy.approvals_most)
    if found.model is not None:
        document = found.report.as_document()
        await approvals.keep(context.pool, merchant_id, found.model, document, context.now())
        await approvals.shadow(context.pool, merchant_id, found.model.version)
    standing = await approvals.read(context.pool, merchant_id)
    return TrialState(found, verdict(found.report), standing, context.policy.version)


async def move_approvals(context: Context, merchant_id: UUID, mode: str) -> ApprovalsState:
    """Change the mode. `on` is only possible if the trial, as of now, proves that the data helps. Raises NotProved."""
    model, was = None, None
    if mode == "on":
        was = (await approvals.read(context.pool, merchant_id)).mode
        tried = await report_trial(context, merchant_id)
        if tried.trial.model is None or not tried.verdict.ready:
            reasons = tried.verdict.reasons or ("There are too few lost orders to compute a model.",)
            raise NotProved(*reasons)
        model = tried.trial.model.version
    # Judging takes a while. If a person changes the mode during that time, their change stays.
    moved = await approvals.move(context.pool, merchant_id, mode, model, was=was)
    standing = await approvals.read(context.pool, merchant_id)
    if not moved:
        raise NotProved(
            f"Meanwhile the mode was changed from {was} to {standing.mode} by another command. Run this command again."
        )
    return standing


async def _orders(context: Context, merchant_id: UUID) -> list[TrialOrder]:
    """Return the orders decided in the trial. Each order appears once, with its last decision."""
    kept, now, found = Policies(context), context.now(), []
    for became in await last_of_each(context, BEGINNING, END, merchant_id):
        again = await kept.again(became.made)
        if again.facts is not None and again.policy is not None and _counts(became, again.facts):
            # A dispute or a change in hardship moves payments to later days.
            matured = became.made.decided_at + MATURES_AFTER <= now and not became.waits
            found.append(_decided(became, again.facts, again.policy, matured=matured))
    return found


def _counts(became: Became, facts: Facts) -> bool:
    """True if an order counts in the trial.

    Orders with a sandbox test name do not count, and neither do orders that a person decided. An approved order whose first
    charge then failed does not count either, because it has nothing to pay back.
    """
    in_trial = facts.approvals is not None and facts.approvals.mode == "trial" and not facts.steer
    in_trial = in_trial and facts.review not in {"approved", "declined"}
    return in_trial and became.made.approved == (became.status == Status.APPROVED)


def _decided(became: Became, facts: Facts, policy: Policy, *, matured: bool) -> TrialOrder:
    assert facts.approvals is not None
    without = replace(facts, approvals=None)
    approved = became.made.approved
    return TrialOrder(
        group=str(became.made.consumer_id or became.made.order_id),
        score=sum(part.points for part in score_parts(without, policy)),
        threshold=policy.score.threshold,
        refused=bool(refusals(without, policy)),
        approved=approved,
        amount=facts.amount,
        fields=facts.approvals.fields,
        matured=matured,
        lost=approved and matured and became.overdue > 0,
        lost_amount=became.overdue if approved and matured else 0,
    )
