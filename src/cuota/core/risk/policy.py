"""A risk policy: the numbers that determine decisions, as versioned data.

Loading a policy refuses every policy in which a good history would count against a consumer. So every policy in force
is fair in this sense, not only the tested one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from cuota.core.risk.facts import History
from cuota.core.risk.policy_text import BadPolicy, PolicyTable, Text

__all__ = ["BadPolicy", "Policy", "load_policy"]

# Bounds that catch typing errors. They are far beyond the numbers of a sensible policy.
MOST_POINTS = 1_000
MOST_COUNTED = 100
MOST_SCORE = 10_000
MOST_ORDERS = 1_000
MOST_HOURS = 24 * 30


@dataclass(frozen=True, slots=True)
class LimitStep:
    """The limit for a consumer with at least this many paid installments and at most this many late ones (None: any).

    In cents.
    """

    paid_installments: int
    late_at_most: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class Exposure:
    """The most that a consumer may owe at once, in cents. `new` applies before any step is reached."""

    new: int
    ceiling: int
    steps: tuple[LimitStep, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """At most this many orders with the same value, in this many hours."""

    orders: int
    hours: int


@dataclass(frozen=True, slots=True)
class VelocityLimits:
    """The windows for phone, card, address and device."""

    phone: Window
    card: Window
    address: Window
    device: Window


@dataclass(frozen=True, slots=True)
class MismatchPoints:
    """The points that each mismatch takes off the score: 0 or less."""

    order_phone: int
    billing_state: int
    shipping_state: int
    surname: int


@dataclass(frozen=True, slots=True)
class Counted:
    """`points` for each item, for at most `most` items."""

    points: int
    most: int


@dataclass(frozen=True, slots=True)
class Score:
    """How the score is made: `base`, and points. Below `threshold` an order is declined.

    From `refer_from` up to the threshold an order is referred to a person instead; None refers no order. `amount` is the points
    that an order of the consumer's whole limit takes off; a smaller order takes off proportionally less.
    """

    base: int
    threshold: int
    amount: int
    paid_installments: Counted
    months_known: Counted
    late_installments: Counted
    overdue_installments: Counted
    declined_orders: Counted
    disputes: Counted
    refer_from: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """All numbers of one version.

    `refuse_overdue` and `refuse_disputes`: with at least this many, an order is declined whatever its score.
    `approvals_most`: the most points that Advanced Approvals may add or take. `text` is the exact text of the policy.
    """

    version: str
    refuse_overdue: int
    refuse_disputes: int
    exposure: Exposure
    velocity: VelocityLimits
    mismatch: MismatchPoints
    score: Score
    approvals_most: int
    text: str = field(default="", repr=False, compare=False)

    def limit(self, history: History) -> int:
        """Return the cents that a consumer with this history may owe at once: the highest step that the consumer has reached."""
        reached = [
            step.limit
            for step in self.exposure.steps
            if history.paid_installments >= step.paid_installments
            and (step.late_at_most is None or history.late_installments <= step.late_at_most)
        ]
        return min(max([self.exposure.new, *reached]), self.exposure.ceiling)


def load_policy(text: str) -> Policy:
    """Read a policy. Raises BadPolicy; its message names the line and says what to write there."""
    root = Text(text).root()
    root.only("version", "refuse_from", "exposure", "velocity", "mismatch", "score", "approvals")
    refuse = root.table("refuse_from").only("overdue_installments", "disputes")
    return Policy(
        version=root.version("version"),
        refuse_overdue=refuse.integer("overdue_installments", 1, MOST_COUNTED),
        refuse_disputes=refuse.integer("disputes", 1, MOST_COUNTED),
        exposure=_exposure(root.table("exposure")),
        velocity=_velocity(root.table("velocity")),
        mismatch=_mismatch(root.table("mismatch")),
        score=_score(root.table("score")),
        approvals_most=root.table("approvals").only("most_points").integer("most_points", 0, MOST_POINTS),
        text=text,
    )


def _exposure(table: PolicyTable) -> Exposure:
    table.only("new", "ceiling", "step")
    new, ceiling = table.cents("new"), table.cents("ceiling")
    if ceiling < new:
        raise table.refuse("ceiling", "must be at least what a new consumer may owe (exposure.new)")
    steps: list[LimitStep] = []
    for each in table.tables("step"):
        each.only("paid_installments", "late_at_most", "limit")
        before = steps[-1] if steps else LimitStep(0, None, new)
        step = LimitStep(
            each.integer("paid_installments", 1, MOST_COUNTED),
            each.optional_integer("late_at_most", 0, MOST_COUNTED),
            each.cents("limit"),
        )
        if step.paid_installments <= before.paid_installments:
            raise each.refuse("paid_installments", "must be more than that of the step before")
        if step.limit < before.limit:
            raise each.refuse(
                "limit",
                "must not be lower than that of the step before: a consumer who has paid more must not get a lower limit",
            )
        if step.limit > ceiling:
            raise each.refuse("limit", "must not be above exposure.ceiling")
        steps.append(step)
    return Exposure(new, ceiling, tuple(steps))


def _velocity(table: PolicyTable) -> VelocityLimits:
    def window(kind: str) -> Window:
        inside = table.table(kind).only("orders", "hours")
        return Window(inside.integer("orders", 1, MOST_ORDERS), inside.integer("hours", 1, MOST_HOURS))

    kinds = _names(VelocityLimits)
    table.only(*kinds)
    return VelocityLimits(**{kind: window(kind) for kind in kinds})


def _mismatch(table: PolicyTable) -> MismatchPoints:
    kinds = _names(MismatchPoints)
    table.only(*kinds)
    return MismatchPoints(**{kind: table.integer(kind, -MOST_POINTS, 0) for kind in kinds})


def _score(table: PolicyTable) -> Score:
    def counted(name: str, low: int, high: int) -> Counted:
        inside = table.table(name).only("points", "most")
        return Counted(inside.integer("points", low, high), inside.integer("most", 0, MOST_COUNTED))

    table.only(*_names(Score))
    score = Score(
        base=table.integer("base", 0, MOST_SCORE),
        threshold=table.integer("threshold", 0, MOST_SCORE),
        amount=table.integer("amount", -MOST_POINTS, 0),
        # Good facts never take points, and bad facts never add any.
        paid_installments=counted("paid_installments", 0, MOST_POINTS),
        months_known=counted("months_known", 0, MOST_POINTS),
        late_installments=counted("late_installments", -MOST_POINTS, 0),
        overdue_installments=counted("overdue_installments", -MOST_POINTS, 0),
        declined_orders=counted("declined_orders", -MOST_POINTS, 0),
        disputes=counted("disputes", -MOST_POINTS, 0),
        refer_from=table.optional_integer("refer_from", 0, MOST_SCORE),
    )
    if score.refer_from is not None and score.refer_from >= score.threshold:
        raise table.refuse(
            "refer_from",
            f"must be below the threshold of {score.threshold}: from the threshold on, orders are approved",
        )
    best = score.base + sum(each.points * each.most for each in (score.paid_installments, score.months_known))
    if score.threshold > best:
        raise table.refuse(
            "threshold",
            f"must be at most {best}, the highest possible score; otherwise nobody could be approved",
        )
    return score


def _names(kind: type[VelocityLimits | MismatchPoints | Score]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))
