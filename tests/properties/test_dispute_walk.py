"""Refunds, disputes, chargebacks, voids, card refunds, payouts and payments in every order, against a small model."""

from __future__ import annotations

from hypothesis import settings

from support.long_run import LONG
from support.properties.disputed_walk import DisputeWalk
from support.properties.steady import WALK

# More examples than other walks: what two disputes do to each other needs many steps before it happens.
DisputeWalk.TestCase.settings = settings(WALK, max_examples=3000 if LONG else 300, stateful_step_count=40)
TestDisputeWalk = DisputeWalk.TestCase
