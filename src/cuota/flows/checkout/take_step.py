"""One browser in one checkout: opening it, and reading where it stands."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from cuota.core.checkout.start import Display, Flow, Start
from cuota.core.consumer import Consumer, Profile, zone_of
from cuota.core.installment import Installment, schedule
from cuota.core.merchant import Merchant
from cuota.core.order.order import Order
from cuota.core.plan.agreement import Agreement, agreement
from cuota.db.checkout import checkouts, consumers
from cuota.db.checkout.checkouts import CheckoutSession, SessionKey
from cuota.db.order import documents, orders
from cuota.db.order.documents import Document
from cuota.flows.checkout.days import local_day
from cuota.flows.context import Context, utc_now

# On the real clock, as everything that guards access: moving the sandbox's clock logs nobody out.
SESSION_LIFE = timedelta(hours=24)


class Problem(Exception):  # noqa: N818 - a fact for the consumer
    """Something the consumer can put right: texts by field, or a notice for the whole page."""

    def __init__(self, errors: dict[str, str] | None = None, notice: str | None = None) -> None:
        super().__init__(notice or "fields")
        self.errors = errors or {}
        self.notice = notice


class Forgotten(Exception):  # noqa: N818 - the same
    """The consumer was erased while they paid. Nothing was charged."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """Everything a page shows or a step decides on, as read at its start.

    `left`: an Abandoned order was ended by its customer; the others lapsed.
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

    @property
    def verified(self) -> bool:
        """Whether this browser proved its number: before that nothing personal is shown."""
        return self.session.verified_at is not None

    @property
    def express(self) -> bool:
        """Whether the consumer is asked where to send it."""
        return self.start is not None and self.start.flow is Flow.EXPRESS

    @property
    def display(self) -> Display:
        """Where this browser sees the pages: it is the merchant's script that listens, or nobody does."""
        listening = self.start is not None and self.start.in_page and self.start.origin is not None
        return self.session.display or Display.REDIRECT if listening else Display.REDIRECT


@dataclass(frozen=True, slots=True)
class ProposedTerms:
    """What the consumer is asked to agree to."""

    zone: str
    plan: list[Installment]
    agreement: Agreement


async def open_checkout(
    context: Context,
    merchant_id: UUID,
    token: UUID,
    display: Display | None = None,
    device: str | None = None,
) -> tuple[UUID, str] | None:
    """A browser follows the link: (order id, a new session secret). None for an unknown link.

    `device` is the browser's own word, the same at every merchant; None where it keeps none.
    """
    order_id = await orders.find_by_token(context.pool, merchant_id, token)
    if order_id is None:
        return None
    secret = secrets.token_urlsafe(32)
    key = session_key(context, merchant_id, order_id, secret)
    device_hash = context.vault.hash("device", device) if device else None
    await checkouts.open_session(context.pool, key, utc_now(), display, device_hash)
    return order_id, secret


def session_key(context: Context, merchant_id: UUID, order_id: UUID, secret: str) -> SessionKey:
    """The row's key: the secret itself is only in the browser."""
    return merchant_id, order_id, context.vault.hash("checkout-session", secret)


async def load(context: Context, merchant_id: UUID, order_id: UUID, secret: str) -> Checkout | None:
    """Read the checkout of this browser; None for a forged, forgotten or foreign session."""
    key = session_key(context, merchant_id, order_id, secret)
    found = await checkouts.read(context.pool, key)
    if found is None or utc_now() > found.session.created_at + SESSION_LIFE:
        return None
    document = documents.decode(found.document)
    return Checkout(
        found.merchant,
        found.order,
        found.token,
        document,
        found.plan,
        found.session,
        key,
        found.start,
        found.left,
    )


def preview_plan(context: Context, checkout: Checkout) -> list[Installment]:
    """The plan as it would be today, before anybody has agreed to it."""
    profile = checkout.session.profile
    zone = zone_of(profile.address.state if profile else checkout.document.address.get("state"))
    return schedule(checkout.order.amount, checkout.order.fee, local_day(context.now(), zone))


def propose(context: Context, checkout: Checkout, profile: Profile) -> ProposedTerms:
    """The terms for this consumer today."""
    zone = zone_of(profile.address.state)
    plan = schedule(checkout.order.amount, checkout.order.fee, local_day(context.now(), zone))
    settings = context.settings
    text = agreement(
        settings.brand_name,
        checkout.merchant.name,
        profile,
        plan,
        checkout.order.currency,
        settings.authorization_days,
        settings.creditor,
        f"{settings.public_url}/account",
    )
    return ProposedTerms(zone, plan, text)


async def known_consumer(context: Context, checkout: Checkout) -> Consumer | None:
    """Who this browser proved to be, if they were here before."""
    if not checkout.verified or checkout.session.consumer_id is None:
        return None
    return await consumers.read(context.pool, checkout.session.consumer_id)
