"""The operator's dashboard, at `/operator`."""

from cuota.web.pages.operator import (
    books,
    consumers,
    disputes,
    enter,
    home,
    log,
    losses,
    merchants,
    new_merchant,
    orders,
    passkeys,
    payouts,
    policies,
    provider,
    risk,
    system,
    team,
    velocity,
)

__all__ = [
    "books", "consumers", "disputes", "enter", "home", "log", "losses", "merchants", "new_merchant", "orders", "passkeys", "payouts", "policies",
    "provider", "risk", "system", "team", "velocity",
]  # fmt: skip
