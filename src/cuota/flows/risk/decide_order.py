"""The risk decision about one order: reserve the amount, read the consumer's history in one statement, decide."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from cuota.core.checkout.ending import require_open
from cuota.core.checkout.start import Integration
from cuota.core.consumer import Profile, address_key
from cuota.core.order.order import Order
from cuota.core.plan.card import PlanCard
from cuota.core.privacy.erasure import Forgotten
from cuota.core.risk.approvals import read_fields, risk_level
from cuota.core.risk.decision import Decision, StoredDecision, decide
from cuota.core.risk.facts import Approvals, Facts, FieldValue, Mismatches, Mode, ReviewFact, Steer
from cuota.core.risk.model import BadModel, Model, model_of, points
from cuota.core.risk.review import ReviewState, has_time
from cuota.core.risk.signal import Signal, SignalKind
from cuota.core.sandbox import APPROVED_SURNAME, DECLINED_SURNAME, REFERRED_SURNAME
from cuota.db.checkout.loaded import Checkout
from cuota.db.order import orders
from cuota.db.risk import history
from cuota.db.risk.history import HistoryQuery, RiskHistory
from cuota.db.row_security import everyone
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.risk.reserve_limit import Hold

log = logging.getLogger("cuota.risk")
ASSESSMENT = "merchant_risk_assessment"
# How long a submission waits for the results of the consumer's other orders, if its decision depends on them, and the pauses
# between its checks.
PATIENCE_SECONDS = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5


class OtherPurchase(Exception):
    """The decision depends on another order of this consumer that has no result yet."""


@dataclass(frozen=True, slots=True)
class Considered:
    """The data for a decision: an order, and the consumer's history, which was read after the order's amount was reserved.

    `reserved` are the cents of other orders that are being decided, if the decision counts them as owed.
    """

    order: Order
    seen: RiskHistory
    reserved: int = 0


class Case:
    """One submitted checkout: the consumer, the order, and the card. It reads the data for `settle`, then decides."""

    def __init__(
        self, context: Context, checkout: Checkout, profile: Profile, card: PlanCard, now: datetime
    ) -> None:
        session, order = checkout.session, checkout.order
        assert session.consumer_id is not None
        self._context = context
        self._checkout = checkout
        self._profile = profile
        self._decision_id = context.new_id()
        self._now = now
        self._read_before: Order | None = order
        self.hold = Hold(context, session.consumer_id)
        self._asked = HistoryQuery(
            order.merchant_id,
            order.order_id,
            session.consumer_id,
            now,
            _since(context, now),
            _signals(context, checkout, profile, card),
            checkout.key[2],
        )

    async def read(self, session: Session, merchant_id: UUID, order_id: UUID) -> Considered | None:
        """Read the facts for the decision: the order, then the reserved amounts, then the consumer's history.

        Raises OtherPurchase if the decision depends on another order of the consumer that has no result in time.
        """
        order = await self._order(session, merchant_id, order_id)
        if order is None:
            return None
        require_open(order, self._now)
        pause, patient_until = FIRST_PAUSE, asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            earlier = await self.hold.take(order)
            # A consumer's history at all merchants.
            with everyone():
                seen = await history.read(session, replace(self._asked, reserved=tuple(earlier)))
            reserved = sum(cents for order_id, cents in earlier.items() if order_id not in seen.counted)
            considered = self._decidable(Considered(order, seen, reserved))
            if considered is not None:
                return considered
            if asyncio.get_running_loop().time() > patient_until:
                raise OtherPurchase
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _order(self, session: Session, merchant_id: UUID, order_id: UUID) -> Order | None:
        """Return the order: on the first call, as the page was loaded with it. A save of an outdated order fails."""
        order, self._read_before = self._read_before, None
        if order is None:
            found = await orders.read_with_plan(session, merchant_id, order_id)
            order = None if found is None else found.order
        return order

    def _decidable(self, considered: Considered) -> Considered | None:
        """Return the facts to decide on, or None if the decision depends on orders whose results are not known yet.

        A consumer is never declined because of a reservation, because the reservation may end without an approval.
        """
        if not considered.reserved or not considered.seen.known or self._decision(considered).approved:
            return considered
        without = replace(considered, reserved=0)
        return None if self._decision(without).approved else without

    def decide(self, considered: Considered) -> StoredDecision:
        """Decide on these facts. Raises Forgotten if this browser's checkout session is gone."""
        if not considered.seen.known:
            raise Forgotten
        kept = tuple(Signal(kind, value) for kind, value in self._asked.signals.items())
        return StoredDecision(self._decision_id, self._asked.consumer_id, self._decision(considered), kept)

    def _decision(self, considered: Considered) -> Decision:
        return decide(self._facts(considered), self._context.policy)

    def _facts(self, considered: Considered) -> Facts:
        order, seen, merchant = considered.order, considered.seen, self._checkout.merchant
        owed = seen.history.outstanding + considered.reserved
        return Facts(
            amount=order.amount,
            currency=order.currency,
            merchant_minimum=merchant.lowest,
            merchant_maximum=merchant.highest,
            history=replace(seen.history, outstanding=owed),
            velocity=seen.velocity,
            mismatches=_mismatches(self._checkout, self._profile, seen.surname),
            approvals=_approvals(seen, order.amount, self._asked.at),
            merchant_disputes=seen.merchant_disputes,
            block=seen.block,
            steer=_steer(self._profile.surname) if self._context.settings.sandbox else "",
            review=self._review(order, seen),
        )

    def _review(self, order: Order, seen: RiskHistory) -> ReviewFact:
        """Return a reviewer's answer for this consumer, or whether the order can be referred to a person.

        An order of a virtual card is never referred. Its card is shown only in the window that the shop opened, and a consumer
        does not keep that window open for an hour.
        """
        if order.review is ReviewState.APPROVED and seen.reviewed == self._asked.consumer_id:
            return "approved"
        start = self._checkout.start
        virtual = start is not None and start.integration is Integration.VIRTUAL_CARD
        referable = order.review is None and not virtual and has_time(order.expires_at, self._now)
        return "" if referable else "unavailable"


def _since(context: Context, now: datetime) -> dict[SignalKind, datetime]:
    """Return the start of the window for each kind of signal."""
    windows = context.policy.velocity
    return {kind: now - timedelta(hours=getattr(windows, kind).hours) for kind in SignalKind}


def _signals(
    context: Context, checkout: Checkout, profile: Profile, card: PlanCard
) -> Mapping[SignalKind, bytes]:
    """Return the phone, card, address and device as keyed hashes: equal values can be recognized, but not read."""
    tried = {
        SignalKind.PHONE: checkout.session.phone or "",
        SignalKind.ADDRESS: address_key(profile.address),
    }
    hashed = {kind: context.vault.hash(f"signal-{kind}", text) for kind, text in tried.items() if text}
    if card.card_hash is not None:
        hashed[SignalKind.CARD] = card.card_hash
    if checkout.session.device_hash is not None:
        hashed[SignalKind.DEVICE] = checkout.session.device_hash
    return hashed


def _mismatches(checkout: Checkout, profile: Profile, earlier_surname: str | None) -> Mismatches:
    """Compare the order's data, the consumer's data, and the data of earlier visits."""
    document, state = checkout.document, profile.address.state.upper()
    ordered_from = (document.value["billing"] or {}).get("state")
    named = document.consumer.get("phoneNumber")
    shipping = checkout.session.shipping if checkout.express else None
    return Mismatches(
        order_phone=bool(named) and named != checkout.session.phone,
        billing_state=bool(ordered_from) and str(ordered_from).upper() != state,
        shipping_state=shipping is not None and shipping.address.state.upper() != state,
        surname=earlier_surname is not None and _plain(earlier_surname) != _plain(profile.surname),
    )


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("-", " ").split())


def _approvals(seen: RiskHistory, amount: int, now: datetime) -> Approvals | None:
    """Return the merchant's data about its customer, and the points of its model. None if Advanced Approvals is off."""
    if seen.approvals not in {"trial", "on"}:
        return None
    mode: Mode = "on" if seen.approvals == "on" else "trial"
    raw = json.loads(seen.additional, parse_float=Decimal)["fields"] if seen.additional else {}
    fields = _of_nobody(read_fields(raw, now.date()).fields)
    model = _model(seen.model)
    if model is None:
        return Approvals(mode, fields)
    total, contributions = points(model, fields, amount)
    return Approvals(mode, fields, model.version, total, contributions)


def _of_nobody(fields: dict[str, FieldValue]) -> dict[str, FieldValue]:
    """Remove free text. A decision is stored permanently, and free text might contain a person's name."""
    said = fields.get(ASSESSMENT)
    free = isinstance(said, str) and risk_level(said) is None
    return {**fields, ASSESSMENT: "other"} if free else fields


def _model(text: str | None) -> Model | None:
    """Return the merchant's model.

    If a model of another release cannot be read, the result is None, so that no sale is lost.
    """
    try:
        return None if text is None else model_of(json.loads(text))
    except BadModel:
        log.exception("model cannot be read")
        return None


def _steer(surname: str) -> Steer:
    """Return the result that a test surname asks for, in the sandbox only."""
    steers: dict[str, Steer] = {
        DECLINED_SURNAME.casefold(): "decline",
        APPROVED_SURNAME.casefold(): "approve",
        REFERRED_SURNAME.casefold(): "refer",
    }
    return steers.get(surname.strip().casefold(), "")
