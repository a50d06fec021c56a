"""The merchant's dashboard, at `/desk`."""

from cuota.web.pages.desk import (
    audit,
    disputes,
    enter,
    export,
    home,
    move,
    orders,
    payouts,
    sandbox,
    team,
    webhooks,
)

__all__ = [
    "audit",
    "disputes",
    "enter",
    "export",
    "home",
    "move",
    "orders",
    "payouts",
    "sandbox",
    "team",
    "webhooks",
]
