"""Advanced Approvals of one merchant: tried in shadow, reported on, and turned on only where the trial says that it helps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

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

# The last installment's day, and then all tries of a card that fails: what is not paid by then is lost.
_LAST_DAY = timedelta(days=DAYS_BETWEEN * (COUNT - 1))
MATURES_AFTER = _LAST_DAY + timedelta(days=18)
assert _LAST_DAY + sum(RETRIES, timedelta()) < MATURES_AFTER


class NotProved(Exception):
    """It cannot be turned on; `reasons` are sentences, and the text is all of them, one a line."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("\n  ".join(("It stays as it is:", *reasons)))
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class TrialState:
    """A trial as it stands: its model and numbers, whether it may be turned on, the merchant's mode, and by which policy."""

    trial: Trial
    verdict: Verdict
    standing: ApprovalsState
    policy: str


async def report_trial(context: Context, merchant_id: UUID) -> TrialState:
    """Fit and judge. The model is kept, and while the trial goes on its word is recorded with each decision."""
    orders = await _orders(context, merchant_id)
    found = risk_fit.trial(orders, bound=context.policy.approvals_most)
    if found.model is not None:
        document = found.report.as_document()
        await approvals.keep(context.pool, merchant_id, found.model, document, context.now())
        await approvals.shadow(context.pool, merchant_id, found.model.version)
    standing = await approvals.read(context.pool, merchant_id)
    return TrialState(found, verdict(found.report), standing, context.policy.version)


async def move_approvals(context: Context, merchant_id: UUID, mode: str) -> ApprovalsState:
    """Off or trial at once; on only where a trial as of now says that it helps. Raises NotProved."""
    model, was = None, None
    if mode == "on":
        was = (await approvals.read(context.pool, merchant_id)).mode
        tried = await report_trial(context, merchant_id)
        if tried.trial.model is None or not tried.verdict.ready:
            reasons = tried.verdict.reasons or ("There are too few losses to learn from.",)
            raise NotProved(*reasons)
        model = tried.trial.model.version
    # Judging takes a while: whoever turned it off meanwhile has the last word.
    moved = await approvals.move(context.pool, merchant_id, mode, model, was=was)
    standing = await approvals.read(context.pool, merchant_id)
    if not moved:
        raise NotProved(
            f"It was moved from {was} to {standing.mode} meanwhile, and not by this. Say it again."
        )
    return standing


async def _orders(context: Context, merchant_id: UUID) -> list[TrialOrder]:
    """What the trial decided in shadow, each order once, by its last decision."""
    kept, now, found = Policies(context), context.now(), []
    for became in await last_of_each(context, BEGINNING, END, merchant_id):
        again = await kept.again(became.made)
        if again.facts is not None and again.policy is not None and _counts(became, again.facts):
            matured = became.made.decided_at + MATURES_AFTER <= now
            found.append(_decided(became, again.facts, again.policy, matured=matured))
    return found


def _counts(became: Became, facts: Facts) -> bool:
    """Of the trial, by no test surname; and an approved one whose card then failed has nothing to pay back."""
    in_trial = facts.approvals is not None and facts.approvals.mode == "trial" and not facts.steer
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
