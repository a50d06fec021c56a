"""The merchant's dashboard, at `/desk`."""

from cuota.web.pages.desk import audit, enter, export, home, move, orders, team, webhooks

__all__ = ["audit", "enter", "export", "home", "move", "orders", "team", "webhooks"]
