"""The notices to consumers about their plans, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from cuota.core import money
from cuota.core.dates import day
from cuota.core.installment import COUNT


class NoticeKind(StrEnum):
    """The kinds of notices that the message rail sends to consumers."""

    PLAN_STARTED = "plan_started"  # the first payment succeeded; `day` is the day of the next payment
    REMINDER = "reminder"  # a payment is due in a few days
    PAYMENT_RECEIVED = "payment_received"  # a scheduled payment succeeded
    PAYMENT_FAILED = "payment_failed"  # a scheduled payment failed; it is retried on `day`
    CONFIRMATION_NEEDED = (
        "confirmation_needed"  # the card's bank wants the consumer to confirm a scheduled payment
    )
    CARD_NEEDED = "card_needed"  # a scheduled payment failed, and this card is not charged again
    PLAN_PAID_OFF = "plan_paid_off"  # a payment succeeded, and nothing is left to pay
    CARD_CHANGED = "card_changed"  # somebody who proved the phone number changed the plan's card
    REFUNDED = "refunded"  # the merchant refunded part or all of the captured amount
    VOIDED = "voided"  # the merchant voided part or all of the uncaptured amount
    EXPIRED = "expired"  # the authorization ended, and the uncaptured amount was voided
    DECLINED = "declined"  # risk declined the order; the notice is a letter with the reasons


@dataclass(frozen=True, slots=True)
class PlanStanding:
    """The state of a plan after the change that a notice reports. Amounts are cents.

    `left` are the remaining payments with their days. `back` is the amount refunded to the card of each charge.
    """

    left: tuple[tuple[date, int], ...] = ()
    back: tuple[tuple[UUID, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to the consumer, in cents. It is saved with the change that it reports, and sent from `send_at` on."""

    notice_id: UUID
    kind: NoticeKind
    installment: int
    amount: int
    day: date
    send_at: datetime
    standing: PlanStanding | None = None


# Notices about actions of the merchant, which may happen at any hour, are sent in the consumer's daytime.
MOVED = frozenset({NoticeKind.REFUNDED, NoticeKind.VOIDED, NoticeKind.EXPIRED})


@dataclass(frozen=True, slots=True)
class Words:
    """A message's subject and text, without markup. `attached` follows the text in an e-mail, which has room for it."""

    subject: str
    text: str
    attached: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """What a message is about. `page` is the address of the consumer's account page.

    `card` is the card that pays the plan, such as `Visa ending 4242`; `cards` are the cards that paid, by charge.
    `overtaken` is true if a later message about the order says what is left to pay.
    """

    merchant: str
    reference: str
    currency: str
    page: str
    card: str = ""
    cards: Mapping[UUID, str] = field(default_factory=dict)
    agreement: str | None = None
    overtaken: bool = False

    @property
    def order(self) -> str:
        """Return `order A-1042 at Alder & Oak`."""
        return f"{self.order_alone} at {self.merchant}"

    @property
    def order_alone(self) -> str:
        """Return `order A-1042`, for a sentence that names the shop already."""
        return f"order {self.reference}" if self.reference else "order"

    @property
    def paying(self) -> str:
        """Return the card that pays, with its last digits if they are known."""
        return self.card or "your card"

    def shown(self, cents: int) -> str:
        """Return an amount in the order's currency."""
        return money.shown(cents, self.currency)


def letter_words(paragraphs: list[str], merchant: str) -> Words:
    """Return the letter about a declined order (`core/risk/adverse.py`) as a message."""
    return Words(f"About your order at {merchant}", "\n\n".join(paragraphs))


def words(notice: Notice, about: About) -> Words:
    """Write a message. The text alone says everything."""
    return _WORDS[notice.kind](notice, about)


def _which(notice: Notice, about: About) -> str:
    return f"payment {notice.installment} of {COUNT} for your {about.order}"


def _left(stands: PlanStanding | None, about: About) -> str:
    """Return what is still to pay, on which days, by which card."""
    if stands is None or about.overtaken:
        return ""
    if not stands.left:
        return " Nothing is left to pay."
    parts = "; ".join(f"{about.shown(cents)} on {day(due_on)}" for due_on, cents in stands.left)
    return f" Still to pay, by {about.paying}: {parts}."


def _back(stands: PlanStanding | None, about: About) -> str:
    """Return what goes back, and to which card."""
    by_card: dict[str, int] = {}
    for charge, cents in stands.back if stands else ():
        card = about.cards.get(charge, "your card")
        by_card[card] = by_card.get(card, 0) + cents
    if not by_card:
        return ""
    parts = " and ".join(f"{about.shown(cents)} to {card}" for card, cents in by_card.items())
    return f" We are sending back {parts}. Your bank may take a few days to show it."


def _plan_started(notice: Notice, about: About) -> Words:
    amount, left = about.shown(notice.amount), _left(notice.standing, about)
    text = f"We charged {amount} to {about.paying}: {_which(notice, about)}."
    if notice.standing is None:  # written by the previous release
        left = f" The next is due on {day(notice.day)}."
    kept = f"Your payment agreement, as you accepted it:\n\n{about.agreement}" if about.agreement else ""
    return Words(f"We received {amount}", f"{text}{left} Your plan and receipts: {about.page}", kept)


def _reminder(notice: Notice, about: About) -> Words:
    amount, when = about.shown(notice.amount), day(notice.day)
    text = f"On {when} we charge {amount} to {about.paying}: {_which(notice, about)}."
    return Words(f"{amount} is due on {when}", f"{text} Pay early or change the card: {about.page}")


def _payment_received(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"We charged {amount} to {about.paying}: {_which(notice, about)}."
    text += _back(notice.standing, about) + _left(notice.standing, about)
    return Words(f"We received {amount}", f"{text} Your plan and receipts: {about.page}")


def _plan_paid_off(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"We charged {amount} to {about.paying}: {_which(notice, about)}.{_back(notice.standing, about)}"
    text += " Your plan is paid off: nothing is left to pay. Thank you."
    return Words("Your plan is paid off", f"{text} Your receipts: {about.page}")


def _payment_failed(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"The bank of {about.paying} declined {amount}: {_which(notice, about)}. We try again on {day(notice.day)}."
    subject = f"Your payment of {amount} did not go through"
    return Words(subject, f"{text} Change the card or pay now: {about.page}")


def _confirmation_needed(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"The bank of {about.paying} wants you to confirm {amount}: {_which(notice, about)}."
    text += f" Nothing was charged. Pay it here, and confirm it with your bank: {about.page}"
    return Words(f"Confirm your payment of {amount}", text)


def _card_needed(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"{about.card or 'Your card'} cannot pay {amount}: {_which(notice, about)}."
    text += f" We do not try it again. Give us another card: {about.page}"
    return Words(f"Your payment of {amount} needs another card", text)


def _card_changed(notice: Notice, about: About) -> Words:
    del notice
    text = f"From now on {about.card or 'another card'} pays for your {about.order}."
    return Words("Your plan has another card", f"{text} Was that not you? See your plan: {about.page}")


def _moved(subject: str, cause: str, notice: Notice, about: About) -> Words:
    """Describe a void or refund: what happened, what goes back, what is left to pay."""
    back = _back(notice.standing, about)
    smaller = notice.standing is not None and notice.standing.left
    changed = (
        " Your plan has changed: your last payments are smaller or gone." if smaller and not back else ""
    )
    text = f"{cause}{back or changed}{_left(notice.standing, about)} Your plan: {about.page}"
    return Words(subject, text)


def _refunded(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    cause = f"{about.merchant} refunded {amount} of your {about.order_alone}."
    return _moved(f"{about.merchant} refunded {amount}", cause, notice, about)


def _voided(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    cause = f"{about.merchant} canceled {amount} of your {about.order_alone}."
    return _moved(f"{about.merchant} canceled {amount} of your order", cause, notice, about)


def _expired(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    cause = f"{about.merchant} did not ship in time, so {amount} of your {about.order_alone} is canceled."
    return _moved(f"{amount} of your order at {about.merchant} is canceled", cause, notice, about)


_WORDS: Mapping[NoticeKind, Callable[[Notice, About], Words]] = {
    NoticeKind.PLAN_STARTED: _plan_started,
    NoticeKind.REMINDER: _reminder,
    NoticeKind.PAYMENT_RECEIVED: _payment_received,
    NoticeKind.PLAN_PAID_OFF: _plan_paid_off,
    NoticeKind.PAYMENT_FAILED: _payment_failed,
    NoticeKind.CONFIRMATION_NEEDED: _confirmation_needed,
    NoticeKind.CARD_NEEDED: _card_needed,
    NoticeKind.CARD_CHANGED: _card_changed,
    NoticeKind.REFUNDED: _refunded,
    NoticeKind.VOIDED: _voided,
    NoticeKind.EXPIRED: _expired,
}
