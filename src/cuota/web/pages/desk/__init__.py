"""The merchant's dashboard, at `/desk`."""

from cuota.web.pages.desk import (
    audit,
    developers,
    disputes,
    enter,
    export,
    home,
    move,
    orders,
    payouts,
    team,
    webhooks,
)

__all__ = [
    "audit",
    "developers",
    "disputes",
    "enter",
    "export",
    "home",
    "move",
    "orders",
    "payouts",
    "team",
    "webhooks",
]
