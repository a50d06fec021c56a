"""The operator's dashboard, at `/operator`."""

from cuota.web.pages.operator import (
    blocks,
    books,
    consumers,
    disputes,
    enter,
    hardship,
    home,
    log,
    losses,
    merchants,
    messages,
    new_merchant,
    orders,
    passkeys,
    payouts,
    policies,
    provider,
    reviews,
    risk,
    system,
    team,
    velocity,
)

__all__ = [
    "blocks", "books", "consumers", "disputes", "enter", "hardship", "home", "log", "losses", "merchants", "messages", "new_merchant",
    "orders", "passkeys", "payouts", "policies", "provider", "reviews", "risk", "system", "team", "velocity",
]  # fmt: skip
