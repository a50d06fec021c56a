"""The consumer's account at `/account`, with the consumer's plans at all merchants.

A consumer signs in with a phone number and a one-time code.
"""

from cuota.web.pages.account import card, disputes, enter, pay, plans, returns

__all__ = ["card", "disputes", "enter", "pay", "plans", "returns"]
