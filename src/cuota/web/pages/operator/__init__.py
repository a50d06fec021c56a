"""The operator's dashboard, at `/operator`."""

from cuota.web.pages.operator import (
    books,
    consumers,
    disputes,
    enter,
    held_payout,
    home,
    log,
    losses,
    merchant,
    merchants,
    new_merchant,
    orders,
    passkeys,
    payouts,
    policies,
    risk,
    system,
    team,
    velocity,
)

__all__ = [
    "books", "consumers", "disputes", "enter", "held_payout", "home", "log", "losses", "merchant", "merchants", "new_merchant", "orders", "passkeys", "payouts", "policies",
    "risk", "system", "team", "velocity",
]  # fmt: skip
