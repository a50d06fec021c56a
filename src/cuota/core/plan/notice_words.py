"""The texts of the notices to consumers about their plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

from cuota.core import money
from cuota.core.dates import day
from cuota.core.installment import COUNT
from cuota.core.plan.notice import Notice, NoticeKind, PlanStanding


@dataclass(frozen=True, slots=True)
class Words:
    """A message's subject and text, without markup. `attached` follows the text in an e-mail, which has room for it."""

    subject: str
    text: str
    attached: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """The shop, the order and the cards that a message names. `page` is the address of the consumer's account page.

    `card` is the card that pays the plan, such as `Visa ending 4242`; `cards` are the cards that paid, by charge.
    `agreement` is the full text of the agreement, or of the change of the plan. `overtaken` is true if a later message about
    the order says what is left to pay. `payments` is how many payments the plan has. `changed_on` is the day on which the plan was
    last changed for a consumer in hardship. `checkout` is the address of an open checkout, `until` the time of day at which it ends.
    `charged` is the card of the charge that the message is about, if it is about one. `paused` is true while a dispute is open.
    """

    merchant: str
    reference: str
    currency: str
    page: str
    card: str = ""
    cards: Mapping[UUID, str] = field(default_factory=dict)
    agreement: str | None = None
    overtaken: bool = False
    payments: int = COUNT
    changed_on: date | None = None
    checkout: str = ""
    until: str = ""
    charged: str = ""
    paused: bool = False

    @property
    def order(self) -> str:
        """Return `order A-1042 at Alder & Oak`."""
        return f"{self.order_alone} at {self.merchant}"

    @property
    def order_alone(self) -> str:
        """Return `order A-1042`, for a sentence that already names the shop."""
        return f"order {self.reference}" if self.reference else "order"

    @property
    def paying(self) -> str:
        """Return the card that pays, with its last digits if they are known."""
        return self.card or "your card"

    @property
    def charged_card(self) -> str:
        """Return the card of the charge that the message is about. The plan may have another card by now."""
        return self.charged or self.paying

    def shown(self, cents: int) -> str:
        """Return an amount in the order's currency."""
        return money.shown(cents, self.currency)


def letter_words(paragraphs: list[str], merchant: str) -> Words:
    """Return the letter about a declined order (`core/risk/adverse.py`) as a message."""
    return Words(f"About your order at {merchant}", "\n\n".join(paragraphs))


def words(notice: Notice, about: About) -> Words:
    """Write a message. Its text can be understood without its subject."""
    return _WORDS[notice.kind](notice, about)


def _which(notice: Notice, about: About) -> str:
    return f"payment {notice.installment} of {about.payments} for your {about.order}"


def _left(stands: PlanStanding | None, about: About) -> str:
    """Return the sentence about the remaining payments: their amounts, days and card."""
    if stands is None or about.overtaken:
        return ""
    if not stands.left:
        return " Nothing is left to pay."
    if about.paused:  # the days are known only after the dispute
        return f" Still to pay: {about.shown(sum(cents for _, cents in stands.left))}. Payments are paused while a dispute is open."
    parts = "; ".join(f"{about.shown(cents)} on {day(due_on)}" for due_on, cents in stands.left)
    return f" Still to pay, by {about.paying}: {parts}."


def _back(stands: PlanStanding | None, about: About) -> str:
    """Return the sentence about the amounts that go back, and their cards."""
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
    text = f"We charged {amount} to {about.charged_card}: {_which(notice, about)}."
    if notice.standing is None:  # a notice of the previous release
        left = f" The next is due on {day(notice.day)}."
    kept = f"Your payment agreement, as you accepted it:\n\n{about.agreement}" if about.agreement else ""
    return Words(f"We received {amount}", f"{text}{left} Your plan and receipts: {about.page}", kept)


def _reminder(notice: Notice, about: About) -> Words:
    amount, when = about.shown(notice.amount), day(notice.day)
    text = f"On {when} we charge {amount} to {about.paying}: {_which(notice, about)}."
    if about.changed_on is not None:
        text += f" This is the plan that we agreed on with you on {day(about.changed_on)}."
    return Words(f"{amount} is due on {when}", f"{text} Pay early or change the card: {about.page}")


def _payment_received(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"We charged {amount} to {about.charged_card}: {_which(notice, about)}."
    text += _back(notice.standing, about) + _left(notice.standing, about)
    return Words(f"We received {amount}", f"{text} Your plan and receipts: {about.page}")


def _plan_paid_off(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"We charged {amount} to {about.charged_card}: {_which(notice, about)}.{_back(notice.standing, about)}"
    text += " Your plan is paid off: nothing is left to pay. Thank you."
    return Words("Your plan is paid off", f"{text} Your receipts: {about.page}")


def _payment_failed(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"The bank of {about.charged_card} declined {amount}: {_which(notice, about)}. We try again on {day(notice.day)}."
    subject = f"Your payment of {amount} did not go through"
    return Words(subject, f"{text} Change the card or pay now: {about.page}")


def _confirmation_needed(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"The bank of {about.charged_card} wants you to confirm {amount}: {_which(notice, about)}."
    text += f" Nothing was charged. Pay it here, and confirm it with your bank: {about.page}"
    return Words(f"Confirm your payment of {amount}", text)


def _card_needed(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = f"{about.charged or about.card or 'Your card'} cannot pay {amount}: {_which(notice, about)}."
    text += f" We do not try it again. Give us another card: {about.page}"
    return Words(f"Your payment of {amount} needs another card", text)


def _card_changed(notice: Notice, about: About) -> Words:
    del notice
    text = f"From now on {about.card or 'another card'} pays for your {about.order}."
    return Words("Your plan has another card", f"{text} Was that not you? See your plan: {about.page}")


def _moved(subject: str, cause: str, notice: Notice, about: About) -> Words:
    """Describe a void or refund: the cause, the amount that goes back, and the remaining payments."""
    back = _back(notice.standing, about)
    smaller = notice.amount and notice.standing is not None and notice.standing.left
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


def _dispute_opened(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = (
        f"We have your dispute of {amount} about your {about.order}. Until it is decided we charge you nothing for this order."
        f" {about.merchant} has until {day(notice.day)} to answer. See it: {about.page}"
    )
    return Words(f"We have your dispute with {about.merchant}", text)


def _dispute_upheld(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = (
        f"We decided for you: {amount} of your {about.order_alone} is to be refunded."
        f" {about.merchant} can appeal until {day(notice.day)}; after that you get your money. See it: {about.page}"
    )
    return Words(f"Your dispute with {about.merchant}: we decided for you", text)


def _dispute_rejected(notice: Notice, about: About) -> Words:
    text = (
        f"We decided for {about.merchant} in your dispute about your {about.order_alone}."
        f" You can appeal once, until {day(notice.day)}: {about.page}"
    )
    return Words(f"Your dispute with {about.merchant}: we decided for the shop", text)


def _dispute_appealed(notice: Notice, about: About) -> Words:
    del notice
    text = (
        f"{about.merchant} has appealed our decision about your {about.order_alone}. We look at it once more and tell you;"
        f" nothing is charged meanwhile. You can add to your dispute: {about.page}"
    )
    return Words(f"{about.merchant} has appealed", text)


def _dispute_ended(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    cause = f"Your dispute with {about.merchant} about your {about.order_alone} is closed."
    if notice.amount:
        cause += f" {amount} is refunded."
    return _moved(f"Your dispute with {about.merchant} is closed", cause, notice, about)


def _return_noted(notice: Notice, about: About) -> Words:
    told = f"Thank you: we told {about.merchant} that you sent your {about.order_alone} back."
    if not notice.amount:  # no payment is due so soon that it waits
        return Words("Thank you for sending it back", f"{told} Your plan: {about.page}")
    waits = f"Your payment of {about.shown(notice.amount)} waits"
    text = f"{told} {waits} until {day(notice.day)}, or until the refund. Your plan: {about.page}"
    return Words(f"{waits} for the refund", text)


def _plan_changed(notice: Notice, about: About) -> Words:
    # The second paragraph of the agreed text is its one-sentence summary.
    said = (about.agreement or "").split("\n\n")[1:2]
    text = f"We changed your plan for your {about.order}, as agreed with you. {''.join(said)}".rstrip()
    text += f"{_left(notice.standing, about)} Your plan: {about.page}"
    return Words(f"Your plan at {about.merchant} has changed", text, about.agreement or "")


def _review_approved(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = (
        f"You can complete your {about.order} ({amount}) now. Nothing was charged so far: confirm it and pay by {about.until}."
        f" {about.checkout}"
    )
    return Words(f"Your order at {about.merchant}: you can complete it now", text)


def _review_declined(notice: Notice, about: About) -> Words:
    amount = about.shown(notice.amount)
    text = (
        f"We could not approve your {about.order} ({amount}). Nothing was charged. You get the reasons in writing. You can choose"
        " another way to pay in the shop."
    )
    return Words(f"Your order at {about.merchant} was not approved", text)


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
    NoticeKind.DISPUTE_OPENED: _dispute_opened,
    NoticeKind.DISPUTE_UPHELD: _dispute_upheld,
    NoticeKind.DISPUTE_REJECTED: _dispute_rejected,
    NoticeKind.DISPUTE_APPEALED: _dispute_appealed,
    NoticeKind.DISPUTE_ENDED: _dispute_ended,
    NoticeKind.RETURN_NOTED: _return_noted,
    NoticeKind.PLAN_CHANGED: _plan_changed,
    NoticeKind.REVIEW_APPROVED: _review_approved,
    NoticeKind.REVIEW_DECLINED: _review_declined,
}
