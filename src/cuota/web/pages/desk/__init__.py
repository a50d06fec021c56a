"""The merchant's dashboard, at `/desk`."""

from cuota.web.pages.desk import (
    approvals,
    audit,
    developers,
    disputes,
    endpoints,
    enter,
    export,
    home,
    move,
    orders,
    origins,
    passkeys,
    payouts,
    sandbox,
    team,
    webhooks,
)

__all__ = [
    "approvals",
    "audit",
    "developers",
    "disputes",
    "endpoints",
    "enter",
    "export",
    "home",
    "move",
    "orders",
    "origins",
    "passkeys",
    "payouts",
    "sandbox",
    "team",
    "webhooks",
]
