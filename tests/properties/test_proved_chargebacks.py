"""Random chargebacks, refunds and disputes of one order with several payments: the merchant proves each line of the payout from the
events alone."""

from __future__ import annotations

import random
from dataclasses import replace

from cuota.client import PayoutLine, cents
from support.dispute_walk import without_payments
from support.properties.reported_chargebacks import ReportedChargebacks

WALKS, STEPS = 500, 14
DISPUTED = {"dispute_withheld", "dispute_released", "dispute_lost"}


def walked(chance: random.Random) -> ReportedChargebacks:
    model = ReportedChargebacks.approved(
        chance.choice([0, 8, 20, 40]), chance.choice([2, 3]), chance.choice([0, 8])
    )
    for _ in range(STEPS):
        model.step(chance)
    return model


def test_the_lines_of_chargebacks_of_several_payments_are_proved_from_the_events() -> None:
    chance, unproved_before = random.Random(1), 0
    for _ in range(WALKS):
        model = walked(chance)
        if not model.lines:
            continue
        verdict = model.verdict(model.bodies)
        assert (verdict.problems, verdict.waiting) == ((), ())
        unproved_before += not model.verdict(without_payments(model.bodies)).agrees
    assert unproved_before, "no walk needed the payment or the released amount of a chargeback"


def test_one_altered_cent_of_a_line_of_a_dispute_is_named() -> None:
    chance, altered = random.Random(2), 0
    for _ in range(WALKS // 10):
        model = walked(chance)
        right: list[PayoutLine] = list(model.lines)
        for place, line in enumerate(right):
            if line.type not in DISPUTED:
                continue
            by = cents(chance.choice([-1, 1]))
            model.lines = [*right]
            model.lines[place] = replace(line, gross=line.gross + by, net=line.net + by)
            named = {each.line_id for each in model.verdict(model.bodies).problems}
            assert line.line_id in named, line
            altered += 1
    assert altered
