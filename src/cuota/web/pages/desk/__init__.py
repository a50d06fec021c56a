"""The merchant's dashboard, at `/desk`."""

from cuota.web.pages.desk import (
    approvals,
    audit,
    developers,
    disputes,
    enter,
    export,
    home,
    move,
    orders,
    own_onboarding,
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
    "enter",
    "export",
    "home",
    "move",
    "orders",
    "own_onboarding",
    "passkeys",
    "payouts",
    "sandbox",
    "team",
    "webhooks",
]
