"""Reviews stored decisions: repeats them from the stored facts, and simulates another policy."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from cuota.core.risk.decision import Decision, decide
from cuota.core.risk.facts import BadInputs, Facts
from cuota.core.risk.policy import BadPolicy, Policy, load_policy
from cuota.db.merchant import merchants
from cuota.db.risk import decisions, policies, reviews
from cuota.db.risk.decisions import Became, Made
from cuota.flows.context import Context

BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
END = datetime(2200, 1, 1, tzinfo=UTC)
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class ReplayedDecision:
    """A stored decision that was repeated. `decision` is None if it cannot be repeated; `why` gives the reason."""

    policy: Policy | None
    facts: Facts | None
    decision: Decision | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A decision with a different result: each differing value by its name, as stored and as repeated."""

    made: Made
    values: dict[str, tuple[object, object]]


@dataclass(slots=True)
class Replayed:
    """The result of a replay.

    `referrals` counts the orders that were referred to a person. `before` counts decisions made before facts and policies were
    stored, which cannot be repeated.
    """

    decisions: int = 0
    referrals: int = 0
    before: int = 0
    differences: list[Difference] = field(default_factory=list)


@dataclass(slots=True)
class DecisionTally:
    """A number of orders and their amounts in cents. `unpaid` is the part that is due and was not paid."""

    orders: int = 0
    amount: int = 0
    unpaid: int = 0

    def add(self, became: Became) -> None:
        """Add one order."""
        self.orders += 1
        self.amount += became.amount
        self.unpaid += became.overdue


@dataclass(slots=True)
class Simulated:
    """The stored decisions, and the results of another policy for the same orders. Each order counts once, by its last decision.

    `referred`: orders that were referred to a person and have no decision, such as when the consumer left. A person's answer
    counts as approved or declined. The other policy decides without that answer. `reasons`: the other policy's reasons for its
    additional declines. `before`: decisions made before facts were stored.
    """

    approved: DecisionTally = field(default_factory=DecisionTally)
    declined: DecisionTally = field(default_factory=DecisionTally)
    referred: DecisionTally = field(default_factory=DecisionTally)
    would_approve: DecisionTally = field(default_factory=DecisionTally)
    would_decline: DecisionTally = field(default_factory=DecisionTally)
    would_refer: DecisionTally = field(default_factory=DecisionTally)
    newly_approved: DecisionTally = field(default_factory=DecisionTally)
    newly_declined: DecisionTally = field(default_factory=DecisionTally)
    newly_referred: DecisionTally = field(default_factory=DecisionTally)
    reasons: Counter[str] = field(default_factory=Counter)
    before: int = 0

    def add(self, became: Became, decision: Decision) -> None:
        """Add one order."""
        was, would = became.made.outcome, decision.outcome
        then = {"approved": self.approved, "declined": self.declined, "referred": self.referred}
        now = {"approved": self.would_approve, "declined": self.would_decline, "referred": self.would_refer}
        newly = {
            "approved": self.newly_approved,
            "declined": self.newly_declined,
            "referred": self.newly_referred,
        }
        then[was].add(became)
        now[would].add(became)
        # A person has reviewed an order that was referred, even if the order was decided later.
        if would not in {was, "referred" if became.made.reviewed else was}:
            newly[would].add(became)
            if would == "declined":
                self.reasons.update(decision.reasons[:1])


class Policies:
    """Stored policies by version. Each policy is read once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._loaded: dict[str, Policy | str] = {}

    async def find(self, version: str) -> Policy | str:
        """Return the policy, or the reason why the policy is missing."""
        if version not in self._loaded:
            text = await policies.read(self._context.pool, version)
            self._loaded[version] = _load(version, text)
        return self._loaded[version]

    async def has(self, version: str) -> bool:
        """Whether the policy is stored and can be read."""
        return isinstance(await self.find(version), Policy)

    async def again(self, made: Made) -> ReplayedDecision:
        """Repeat a decision from the facts that were stored with it."""
        policy = await self.find(made.policy_version)
        try:
            facts = Facts.of_inputs(made.inputs)
        except BadInputs as bad:
            usable = policy if isinstance(policy, Policy) else None
            return ReplayedDecision(usable, None, None, f"the stored facts cannot be read: {bad}")
        if not isinstance(policy, Policy):
            return ReplayedDecision(None, facts, None, policy)
        return ReplayedDecision(policy, facts, decide(facts, policy))


def _load(version: str, text: str | None) -> Policy | str:
    if text is None:
        return f"policy {version} was in force before Cuota stored policies"
    try:
        return load_policy(text)
    except BadPolicy as bad:
        return f"this release cannot read policy {version}: {bad}"


def differences(made: Made, decision: Decision) -> dict[str, tuple[object, object]]:
    """Return the values that differ between the stored and the repeated decision."""
    pairs = {
        "approved": (made.approved, decision.approved),
        "reasons": (list(made.reasons), list(decision.reasons)),
        "score": (made.score, decision.score),
        "limit": (made.limit, decision.limit),
        "referred": (made.referred, decision.referred),
        "inputs": ("altered" if not made.intact else "as they were", "as they were"),
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


async def _range(
    context: Context, since: datetime, until: datetime, merchant_id: UUID | None
) -> AsyncIterator[Became]:
    for merchant in await merchants.read_all(context.pool):
        if merchant_id in {None, merchant.merchant_id}:
            found = decisions.between(context.pool, merchant.merchant_id, since, until)
            async for became in found:
                yield became


async def last_of_each(
    context: Context, since: datetime, until: datetime, merchant_id: UUID | None
) -> Collection[Became]:
    """Return the last decision of each order. A second card of the same order leads to a new decision."""
    found = _range(context, since, until, merchant_id)
    return {became.made.order_id: became async for became in found}.values()


async def replay(context: Context, since: datetime, until: datetime, merchant_id: UUID | None) -> Replayed:
    """Repeat every decision and every referral in a time range, each under its own policy."""
    done, stored = Replayed(), Policies(context)
    async for made in _made(context, since, until, merchant_id):
        done.referrals += made.referred
        done.decisions += not made.referred
        again = await stored.again(made)
        if again.decision is not None:
            if found := differences(made, again.decision):
                done.differences.append(Difference(made, found))
        elif made.score is None and not await stored.has(made.policy_version):
            done.before += 1
        else:
            done.differences.append(Difference(made, {"again": ("possible", again.why)}))
    return done


async def _made(
    context: Context, since: datetime, until: datetime, merchant_id: UUID | None
) -> AsyncIterator[Made]:
    async for became in _range(context, since, until, merchant_id):
        yield became.made
    async for became, _ in _referrals(context, since, until, merchant_id):
        yield became.made


async def _referrals(
    context: Context, since: datetime, until: datetime, merchant_id: UUID | None
) -> AsyncIterator[tuple[Became, bool]]:
    for merchant in await merchants.read_all(context.pool):
        if merchant_id in {None, merchant.merchant_id}:
            async for found in reviews.between(context.pool, merchant.merchant_id, since, until):
                yield found


async def simulate(
    context: Context, policy: Policy, since: datetime, until: datetime, merchant_id: UUID | None
) -> Simulated:
    """Decide every order in a time range under another policy, and report the results of these orders."""
    found = Simulated()
    decided = await last_of_each(context, since, until, merchant_id)
    undecided = [
        became async for became, followed in _referrals(context, since, until, merchant_id) if not followed
    ]
    for number, became in enumerate((*decided, *undecided)):
        if number % _AT_ONCE == 0:
            # A page of the dashboard runs this while the service answers other requests.
            await asyncio.sleep(0)
        facts = _facts(became.made)
        if facts is None:
            found.before += 1
            continue
        # The other policy might not have referred the order, so the person's answer is removed from the facts.
        asked = facts if facts.review == "unavailable" else replace(facts, review="")
        found.add(became, decide(asked, policy))
    return found


def _facts(made: Made) -> Facts | None:
    try:
        return Facts.of_inputs(made.inputs)
    except BadInputs:
        return None
