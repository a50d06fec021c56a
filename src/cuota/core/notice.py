"""The words of what consumers are told about their plan."""

from __future__ import annotations

from dataclasses import dataclass

from cuota.core import money
from cuota.core.dates import day
from cuota.core.installment import COUNT
from cuota.core.outcome import Notice, NoticeKind


@dataclass(frozen=True, slots=True)
class Words:
    """A message's subject line and text, plain."""

    subject: str
    text: str


def letter_words(paragraphs: list[str], merchant: str) -> Words:
    """A letter about an order that was not approved (`core/adverse`), as a message."""
    return Words(f"About your order at {merchant}", "\n\n".join(paragraphs))


def words(notice: Notice, merchant: str, currency: str, page: str) -> Words:
    """Write a notice. `page` is the address of the consumer's own page. The text alone says everything."""
    assert notice.kind is not NoticeKind.DECLINED, "that one is a letter"
    amount, when = money.shown(notice.amount, currency), day(notice.day)
    which = f"payment {notice.installment} of {COUNT} for your order at {merchant}"
    subject, text = {
        NoticeKind.PLAN_STARTED: (
            f"We received {amount}",
            f"We charged {amount} to your card: {which}. The next is due on {when}. Your plan and receipts: {page}",
        ),
        NoticeKind.REMINDER: (
            f"{amount} is due on {when}",
            f"On {when} we charge {amount} to your card: {which}. Pay early or change the card: {page}",
        ),
        NoticeKind.PAYMENT_RECEIVED: (
            f"We received {amount}",
            f"We charged {amount} to your card: {which}. Your plan and receipts: {page}",
        ),
        NoticeKind.PAYMENT_FAILED: (
            f"Your payment of {amount} did not go through",
            f"Your bank declined {amount}: {which}. We try again on {when}. Change the card or pay now: {page}",
        ),
        NoticeKind.CARD_NEEDED: (
            f"Your payment of {amount} needs another card",
            f"Your card cannot pay {amount}: {which}. We do not try it again. Give us another card: {page}",
        ),
        NoticeKind.CARD_CHANGED: (
            "Your plan has another card",
            f"From now on another card pays for your order at {merchant}. Was that not you? See your plan: {page}",
        ),
    }[notice.kind]
    return Words(subject, text)
