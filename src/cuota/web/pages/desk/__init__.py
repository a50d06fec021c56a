"""The merchant's dashboard, at `/desk`."""

from cuota.web.pages.desk import audit, enter, home, move, orders, team

__all__ = ["audit", "enter", "home", "move", "orders", "team"]
