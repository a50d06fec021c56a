"""The consumer's own page at `/account`: their plans at whatever shop, behind a one-time code."""

from cuota.web.pages.account import card, enter, pay, plans

__all__ = ["card", "enter", "pay", "plans"]
