"""One browser in one checkout: open the checkout, and load its state."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.checkout.start import Display
from cuota.core.consumer import Consumer, Profile, zone_of
from cuota.core.installment import Installment, schedule
from cuota.core.plan.agreement import Agreement, agreement
from cuota.db.checkout import checkouts, consumers
from cuota.db.checkout.checkouts import SessionKey
from cuota.db.checkout.loaded import Checkout
from cuota.db.order import documents, orders
from cuota.flows.checkout.days import local_day
from cuota.flows.context import Context

# This uses the real clock, like everything that guards access. So moving the sandbox's clock logs nobody out.
SESSION_LIFE = timedelta(hours=24)


class Problem(Exception):
    """A problem that the consumer can correct: texts for each field, or a notice for the whole page."""

    def __init__(self, errors: dict[str, str] | None = None, notice: str | None = None) -> None:
        super().__init__(notice or "fields")
        self.errors = errors or {}
        self.notice = notice

    def as_notice(self) -> Problem:
        """Return the same problem as a notice, for a page that does not show the field."""
        return Problem(notice=next(iter(self.errors.values()), self.notice))


@dataclass(frozen=True, slots=True)
class ProposedTerms:
    """The plan and the agreement to which the consumer is asked to agree. `stored` is the form in which a plan has the agreement."""

    zone: str
    plan: list[Installment]
    agreement: Agreement
    stored: str


async def open_checkout(
    context: Context,
    merchant_id: UUID,
    token: UUID,
    display: Display | None = None,
    device: str | None = None,
    *,
    order_id: UUID | None = None,
) -> tuple[UUID, str] | None:
    """Open a checkout by its link. Return the order id and a new session secret, or None for an unknown link.

    `device` is the browser's own id, the same at every merchant, or None if the browser stores none. `order_id` is the
    link's order, if the caller has already found it.
    """
    order_id = order_id or await orders.find_by_token(context.pool, merchant_id, token)
    if order_id is None:
        return None
    secret = secrets.token_urlsafe(32)
    key = session_key(context, merchant_id, order_id, secret)
    device_hash = context.vault.hash("device", device) if device else None
    await checkouts.open_session(context.pool, key, context.real_now(), display, device_hash)
    return order_id, secret


def session_key(context: Context, merchant_id: UUID, order_id: UUID, secret: str) -> SessionKey:
    """Return the key of the session's row. Only the browser has the secret itself."""
    return merchant_id, order_id, context.vault.hash("checkout-session", secret)


async def load(context: Context, merchant_id: UUID, order_id: UUID, secret: str) -> Checkout | None:
    """Read the checkout of this browser. Return None for a forged or expired session, or one of another checkout."""
    key = session_key(context, merchant_id, order_id, secret)
    found = await checkouts.read(context.pool, key)
    if found is None or context.real_now() > found.session.created_at + SESSION_LIFE:
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
        found.reviewed,
        found.payer_id,
        found.paid_in,
    )


def preview_plan(context: Context, checkout: Checkout) -> list[Installment]:
    """Return the plan as it would be today, before anybody has agreed to it."""
    return schedule(checkout.order.amount, checkout.order.fee, consumer_day(context, checkout))


def consumer_day(context: Context, checkout: Checkout) -> date:
    """Return today's date where the consumer lives, as far as is known."""
    return local_day(context.now(), consumer_zone(checkout).key)


def consumer_zone(checkout: Checkout) -> ZoneInfo:
    """Return the time zone where the consumer lives, as far as is known."""
    profile = checkout.session.profile
    return ZoneInfo(zone_of(profile.address.state if profile else checkout.document.address.get("state")))


def propose(context: Context, checkout: Checkout, profile: Profile) -> ProposedTerms:
    """Return the terms for this consumer today."""
    zone = zone_of(profile.address.state)
    plan = schedule(checkout.order.amount, checkout.order.fee, local_day(context.now(), zone))
    settings = context.settings
    text = agreement(
        settings.brand_name,
        checkout.merchant.shown_name,
        profile,
        plan,
        checkout.order.currency,
        settings.authorization_days,
        settings.creditor,
        f"{settings.public_url}/account",
    )
    # Not the sandbox's clock, because the time is about processes of the previous release.
    stored = text.values if context.real_now() >= context.agreement_values_from else text.text
    return ProposedTerms(zone, plan, text, stored)


def details_hash(checkout: Checkout) -> str:
    """Return a hash of the details that the page shows before the payment: who pays, and where an express order is sent.

    The form contains the hash, so that a page never pays with details that were changed in another tab.
    """
    session = checkout.session
    shown = (session.profile, session.shipping if checkout.express else None)
    text = json.dumps([asdict(each) if each else None for each in shown], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


async def known_consumer(context: Context, checkout: Checkout) -> Consumer | None:
    """Return the consumer with the phone number that this browser verified, if that consumer already exists."""
    if not checkout.verified or checkout.session.consumer_id is None:
        return None
    return await consumers.read(context.pool, checkout.session.consumer_id)
