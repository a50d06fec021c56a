"""The effect of a decline on later charges of the same card: a table of the card networks' rules.

Sources: Visa Core Rules 7.3.6 ("Visa decline response code categories": category 1 is never retried, categories 2 to 4 at most
15 times in 30 days); Mastercard Transaction Processing Rules 5.2.1 and the merchant advice codes (03 and 21: do not try
again; at most 35 attempts in 30 days).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

# The stricter of the two networks' limits, for declined attempts with one card.
MOST_ATTEMPTS = 15
ATTEMPTS_WITHIN = timedelta(days=30)
AUTHENTICATION_REQUIRED = "authentication_required"
# The issuer will never approve this card: charging it again breaks the networks' rules.
HARD_DECLINES = frozenset(
    {
        "card_expired",
        "card_lost",
        "card_stolen",
        "card_closed",
        "card_unknown",
        "card_restricted",
        "do_not_try_again",
        "revocation_of_authorization",
        "invalid_account",
        "transaction_not_allowed",
    }
)
# The consumer can enter the same card again with its new expiration date, so an expired card is final in its own plan only.
FINAL_FOR_CARD = HARD_DECLINES - {"card_expired"}
# Final declines are deleted after this time, because the card has expired by then.
FINAL_KEPT = timedelta(days=5 * 366)


def next_allowed(declined_at: Sequence[datetime], now: datetime) -> datetime | None:
    """Return when a card that was declined at these times may be charged again, or None if that is allowed now."""
    recent = sorted(at for at in declined_at if at > now - ATTEMPTS_WITHIN)
    return recent[-MOST_ATTEMPTS] + ATTEMPTS_WITHIN if len(recent) >= MOST_ATTEMPTS else None


def is_final(reason: str) -> bool:
    """Return whether no plan may charge the card again after a decline with this code."""
    return reason in FINAL_FOR_CARD


def is_hard(reason: str) -> bool:
    """Return whether the same plan may not charge the card again after a decline with this code."""
    return reason in HARD_DECLINES
