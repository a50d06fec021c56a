"""The consumer's account at `/account`: their plans at all merchants. It opens with a phone number and a one-time code."""

from cuota.web.pages.account import card, disputes, enter, pay, plans, returns

__all__ = ["card", "disputes", "enter", "pay", "plans", "returns"]
