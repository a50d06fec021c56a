"""The operator's dashboard, at `/operator`."""

from cuota.web.pages.operator import (
    books,
    consumers,
    disputes,
    enter,
    home,
    log,
    merchants,
    new_merchant,
    orders,
    passkeys,
    payouts,
    risk,
    system,
    team,
)

__all__ = [
    "books", "consumers", "disputes", "enter", "home", "log", "merchants", "new_merchant", "orders", "passkeys", "payouts", "risk", "system", "team",
]  # fmt: skip
