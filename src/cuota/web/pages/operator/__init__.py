"""The operator's dashboard, at `/operator`."""

from cuota.web.pages.operator import (
    blocks,
    books,
    consumers,
    disputes,
    enter,
    hardship,
    held_payout,
    home,
    log,
    losses,
    merchant,
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
    sandbox,
    system,
    team,
    velocity,
)

__all__ = [
    "blocks", "books", "consumers", "disputes", "enter", "hardship", "held_payout", "home", "log", "losses", "merchant", "merchants",
    "messages", "new_merchant", "orders", "passkeys", "payouts", "policies", "provider", "reviews", "risk", "sandbox", "system", "team", "velocity",
]  # fmt: skip
