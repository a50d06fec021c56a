"""A checkout as one request loads it: the order, its merchant, and the session of one browser."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core.checkout.start import Display, Flow, Start
from cuota.core.installment import Installment
from cuota.core.merchant import Merchant
from cuota.core.order.order import Order
from cuota.db.checkout.checkouts import CheckoutSession, SessionKey
from cuota.db.order.documents import Document


@dataclass(frozen=True, slots=True)
class Checkout:
    """The data for a page or a step, as it was read at the start of the request.

    `left` is true for an Abandoned order that its consumer canceled; other Abandoned orders timed out. `reviewed` is the consumer
    whose order was referred to a person; None if the order was not referred. `payer_id` is the consumer who agreed to pay last,
    and `paid_in` the hash of that consumer's session. Both are None while nobody has agreed. After an erasure of the payer, `payer_id` belongs
    to nobody.
    """

    merchant: Merchant
    order: Order
    token: UUID
    document: Document
    plan: tuple[Installment, ...]
    session: CheckoutSession
    key: SessionKey
    start: Start | None = None
    left: bool = False
    reviewed: UUID | None = None
    payer_id: UUID | None = None
    paid_in: bytes | None = None

    @property
    def verified(self) -> bool:
        """True if this browser has verified a phone number. Until then, no personal data is shown.

        Anybody with the link can open a checkout and verify an own number, so this says nothing about who pays.
        """
        return self.session.verified_at is not None

    @property
    def is_payer(self) -> bool:
        """True if this browser has verified the number of the consumer who pays. Only it sees the charge, the card and the plan."""
        return self.verified and self.payer_id is not None and self.payer_id == self.session.consumer_id

    @property
    def paid_here(self) -> bool:
        """True if the consumer pays in this browser, and not in another one that has verified the same number."""
        return self.is_payer and self.paid_in == self.session.session_hash

    @property
    def express(self) -> bool:
        """True if the consumer is asked for a shipping address."""
        return self.start is not None and self.start.flow is Flow.EXPRESS

    @property
    def display(self) -> Display:
        """Return whether this browser shows the pages in a window, a frame or neither.

        A window or frame counts only if the merchant's script can receive the result.
        """
        listening = self.start is not None and self.start.in_page and self.start.origin is not None
        return self.session.display or Display.REDIRECT if listening else Display.REDIRECT
