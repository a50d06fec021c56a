"""Facts and policies that the tests of risk decisions share."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources
from typing import Any

from cuota.core.risk.facts import Approvals, Facts, History, Mismatches, Steer, Velocity
from cuota.core.risk.policy import Policy, load_policy

STANDARD_TEXT = (resources.files("cuota.policies") / "standard.toml").read_text()
STANDARD = load_policy(STANDARD_TEXT)
ALL_MISMATCHES = Mismatches(order_phone=True, billing_state=True, shipping_state=True, surname=True)
# A consumer of three years who paid every installment on time.
GOOD = History(approved_orders=10, paid_installments=40, days_known=1_100)


def facts(
    amount: int = 10_000,
    history: History | None = None,
    velocity: Velocity | None = None,
    mismatches: Mismatches | None = None,
    approvals: Approvals | None = None,
    steer: Steer = "",
) -> Facts:
    """Return an order of 100.00 by a new consumer, with these changes."""
    return Facts(
        amount,
        "USD",
        100,
        200_000,
        history or History(),
        velocity or Velocity(),
        mismatches or Mismatches(),
        approvals,
        steer,
    )


def on(points: int) -> Approvals:
    """Return Advanced Approvals data that changes a decision."""
    return Approvals("on", {"customerLoggedIn": True}, "m1", points, (("customerLoggedIn", points),))


def standard_but(**numbers: Any) -> Policy:
    """Return the standard policy with another base, threshold or amount of its score."""
    return replace(STANDARD, score=replace(STANDARD.score, **numbers))


def changed(table: str, key: str, value: str) -> tuple[str, int]:
    """Return the standard policy's text with one value changed, and that value's line. An empty value removes the key."""
    lines, inside = STANDARD_TEXT.split("\n"), not table
    for number, line in enumerate(lines, 1):
        if line.startswith("["):
            inside = re.match(rf"\[+{re.escape(table)}\]", line) is not None
        if inside and line.startswith(f"{key} ="):
            lines[number - 1] = f"{key} = {value}" if value else ""
            return "\n".join(lines), number
    raise AssertionError(f"{table}.{key} is not in the standard policy")
