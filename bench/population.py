"""Simulates consumers, their orders, the merchant's data about them, and the outcome of each order, with a known truth.

The same seed gives the same population. Every order has an outcome, even a declined order. A real trial never sees the outcomes
of declined orders, so this data can check the statistics of a trial.

`python -m bench.population --seed 1 --orders 5000 [--noise]` prints one JSON object for each order. `--orders 6000
--html report.html` writes the report of a trial on these orders. No command loads them into a database, because they
have neither consumers nor money that moved.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path

from cuota.core.risk.approvals import read_fields
from cuota.core.risk.decision import decide, refusals
from cuota.core.risk.facts import Facts, History, Mismatches, Velocity
from cuota.core.risk.policy import Policy, load_policy
from cuota.trial import fit as risk_fit
from cuota.trial.page import calibration_html
from cuota.trial.trial import TrialOrder

FIRST_DAY = date(2026, 1, 1)
DAYS = 180
# The log-odds of a loss at SCORE, and the number of points of the score that equal one unit of log-odds.
SCORE, LOG_ODDS_THERE, POINTS_A_UNIT = 560, -3.4, 55
# The weights of a merchant's knowledge about a consumer (trust, a standard normal variable) and of unknown causes, in
# the same unit.
KNOWN, UNKNOWN = 1.0, 0.4
# The probabilities that the merchant's system omits a field, or fills it with an unreadable value.
LEFT_OUT, GARBLED = 0.04, 0.01


@dataclass(frozen=True, slots=True)
class SimulatedConsumer:
    """`trust` is everything that the merchant could know. `shown` is the variable that its data depends on: trust
    itself, or noise."""

    number: int
    careful: bool
    trust: float
    unknown: float
    shown: float
    joined: date
    average: int


@dataclass(frozen=True, slots=True)
class Placed:
    """One order, the merchant's data (as strings), and the truth: the order's risk, and whether its money would be lost."""

    order: int
    consumer: int
    placed_on: date
    facts: Facts
    additional: dict[str, str]
    risk: float
    lost: bool
    lost_amount: int

    def as_document(self) -> dict[str, object]:
        return {**asdict(self), "placed_on": self.placed_on.isoformat(), "facts": self.facts.as_inputs()}


def standard_policy() -> Policy:
    return load_policy(files("cuota.policies").joinpath("standard.toml").read_text())


def generate(seed: int, orders: int, *, helpful: bool, policy: Policy | None = None) -> list[Placed]:
    """Make the orders.

    With `helpful`, the merchant's data depends on what causes losses; otherwise it looks the same but is random.
    """
    chance = random.Random(f"{seed}-{helpful}")
    policy = policy or standard_policy()
    made: list[Placed] = []
    number = 0
    while len(made) < orders:
        consumer = _consumer(chance, number, helpful=helpful)
        number += 1
        for _ in range(1 + int(chance.expovariate(1.2))):
            made.append(_placed(chance, len(made), consumer, policy))
    return made[:orders]


def decided(placed: Iterable[Placed], policy: Policy, *, as_of: date, matures: int = 90) -> list[TrialOrder]:
    """Return the data that a real trial would have: outcomes only of approved orders that are at least `matures` days
    old."""
    return [_decided(each, policy, as_of=as_of, matures=matures) for each in placed]


def _decided(placed: Placed, policy: Policy, *, as_of: date, matures: int) -> TrialOrder:
    decision = decide(placed.facts, policy)
    matured = placed.placed_on + timedelta(days=matures) <= as_of
    known = decision.approved and matured
    return TrialOrder(
        group=str(placed.consumer),
        score=decision.score,
        threshold=policy.score.threshold,
        refused=bool(refusals(placed.facts, policy)),
        approved=decision.approved,
        amount=placed.facts.amount,
        fields=read_fields(placed.additional, placed.placed_on).fields,
        matured=matured,
        lost=known and placed.lost,
        lost_amount=placed.lost_amount if known else 0,
    )


def _consumer(chance: random.Random, number: int, *, helpful: bool) -> SimulatedConsumer:
    trust, other = chance.gauss(0, 1), chance.gauss(0, 1)
    shown = trust if helpful else other
    age = int(math.exp(5.2 + 0.9 * shown + chance.gauss(0, 0.9)))
    return SimulatedConsumer(
        number=number,
        careful=chance.random() < 0.45,
        trust=trust,
        unknown=chance.gauss(0, UNKNOWN),
        shown=shown,
        joined=FIRST_DAY - timedelta(days=min(age, 6_000)),
        average=int(100 * math.exp(4.6 + chance.gauss(0, 0.5))),
    )


def _placed(chance: random.Random, number: int, consumer: SimulatedConsumer, policy: Policy) -> Placed:
    day = FIRST_DAY + timedelta(days=chance.randrange(DAYS))
    amount = max(2_000, min(120_000, int(consumer.average * math.exp(chance.gauss(0, 0.6)))))
    facts = Facts(
        amount=amount,
        currency="USD",
        merchant_minimum=100,
        merchant_maximum=200_000,
        history=_history(chance, consumer),
        velocity=Velocity(phone=int(chance.expovariate(1)), address=int(chance.expovariate(1))),
        mismatches=_mismatches(chance, consumer),
    )
    score = decide(facts, policy).score
    odds = LOG_ODDS_THERE - (score - SCORE) / POINTS_A_UNIT - KNOWN * consumer.trust + consumer.unknown
    risk = 1 / (1 + math.exp(-odds))
    lost = chance.random() < risk
    additional = _additional(chance, consumer, day, amount)
    # Consumers who stop paying have usually paid the first installment, sometimes more.
    unpaid = chance.choice((amount, amount * 3 // 4, amount * 3 // 4, amount // 2)) if lost else 0
    return Placed(number, consumer.number, day, facts, additional, risk, lost, unpaid)


def _history(chance: random.Random, consumer: SimulatedConsumer) -> History:
    declined = 0 if consumer.careful else chance.randrange(6)
    if chance.random() < 0.55:
        return History(declined_orders=declined)
    paid = 1 + int(chance.expovariate(0.15))
    late = 0 if consumer.careful else min(paid, int(chance.expovariate(0.7)))
    return History(
        approved_orders=1 + paid // 4,
        paid_installments=paid,
        late_installments=late,
        overdue_installments=int(chance.random() < 0.02),
        outstanding=chance.randrange(0, 60_000),
        declined_orders=declined,
        days_known=10 + 9 * paid + chance.randrange(90),
    )


def _mismatches(chance: random.Random, consumer: SimulatedConsumer) -> Mismatches:
    often = 0.10 if consumer.careful else 0.75
    return Mismatches(
        order_phone=chance.random() < often,
        billing_state=chance.random() < often,
        shipping_state=chance.random() < often,
        surname=chance.random() < often / 2,
    )


def _additional(chance: random.Random, consumer: SimulatedConsumer, day: date, amount: int) -> dict[str, str]:
    """Return the data as a storefront would send it: strings, fewer fields for a guest, and sometimes an odd value."""

    def yes(base: float, slope: float) -> bool:
        return chance.random() < 1 / (1 + math.exp(-(base + slope * consumer.shown)))

    assessment = min(100, max(0, round(45 - 16 * consumer.shown + chance.gauss(0, 12))))
    sent = {
        "sameDevice": _word(yes(0.4, 1.1)),
        "merchantRiskAssessment": str(assessment),
        "fulfillmentMethod": "in-store pickup" if yes(-1.2, -0.8) else "online only",
    }
    if yes(1.0, 0.9):
        orders = int(math.exp(1.2 + 0.8 * consumer.shown + chance.gauss(0, 0.6)))
        sent |= {
            "customerLoggedIn": _word(yes(1.0, 1.2)),
            "customerIsMember": "true",
            "accountCreationDate": consumer.joined.isoformat(),
            "customerTransactionCount": str(orders),
            "customerFraudIncidents": _word(yes(-3.5, -1.0)),
        }
        if orders:
            ago = min(
                (day - consumer.joined).days,
                int(chance.expovariate(1) * 120 * math.exp(-0.6 * consumer.shown)),
            )
            average = amount if orders == 1 else consumer.average
            sent["lastTransactionDate"] = (day - timedelta(days=max(1, ago))).isoformat()
            sent["customerAverageOrderValue"] = f"{average / 100:,.2f}"
    else:
        sent |= {"customerLoggedIn": "false", "customerIsMember": "false"}
    return dict(_spoilt(chance, sent))


def _word(flag: bool) -> str:  # noqa: FBT001 - it is the word of a flag
    return "true" if flag else "false"


def _spoilt(chance: random.Random, sent: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in sent.items():
        draw = chance.random()
        if draw >= LEFT_OUT:
            yield name, "n/a" if draw < LEFT_OUT + GARBLED else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--orders", type=int, default=5_000)
    parser.add_argument("--noise", action="store_true", help="make data that is independent of the outcomes")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="the report of a trial on them, instead of JSON"
    )
    given = parser.parse_args()
    placed = generate(given.seed, given.orders, helpful=not given.noise)
    if given.html is not None:
        given.html.write_text(_page(placed), encoding="utf-8")
        print(f"The page was written to {given.html}.")
        return
    for each in placed:
        print(json.dumps(each.as_document()))


def _page(placed: list[Placed]) -> str:
    policy = standard_policy()
    orders = decided(placed, policy, as_of=FIRST_DAY + timedelta(days=2 * DAYS))
    found = risk_fit.trial(orders, bound=policy.approvals_most)
    return calibration_html(found.report, "A trial on made-up orders", found.model)


if __name__ == "__main__":
    main()
