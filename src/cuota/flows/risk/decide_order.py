"""Risk decides about one order: everything that is known, in one read; the decision; and what is kept of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from cuota.core.consumer import Profile, address_key
from cuota.core.order.order import Order
from cuota.core.order.outcome import PlanCard, Signal, SignalKind, StoredDecision
from cuota.core.risk.approvals import read_fields, risk_level
from cuota.core.risk.decision import decide
from cuota.core.risk.facts import Approvals, Facts, FieldValue, Mismatches, Mode, Steer
from cuota.core.risk.model import BadModel, Model, model_of, points
from cuota.core.sandbox import APPROVED_SURNAME, DECLINED_SURNAME
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.risk import history
from cuota.db.risk.history import HistoryQuery, RiskHistory
from cuota.db.row_security import everyone
from cuota.db.session import Session
from cuota.flows.checkout.take_step import Checkout, Forgotten
from cuota.flows.context import Context

log = logging.getLogger("cuota.risk")
ASSESSMENT = "merchant_risk_assessment"


class Case:
    """One press of the button: who asks, for which order, with which card. Reads for `settle`, then decides."""

    def __init__(
        self, context: Context, checkout: Checkout, profile: Profile, card: PlanCard, now: datetime
    ) -> None:
        session, order = checkout.session, checkout.order
        assert session.consumer_id is not None
        self._context = context
        self._checkout = checkout
        self._profile = profile
        self._decision_id = context.new_id()
        self._seen: RiskHistory | None = None
        self._asked = HistoryQuery(
            order.merchant_id,
            order.order_id,
            session.consumer_id,
            now,
            _since(context, now),
            _signals(context, checkout, profile, card),
            checkout.key[2],
        )

    @property
    def consumer_id(self) -> UUID:
        """Whose exposure it is decided on."""
        return self._asked.consumer_id

    async def read(self, session: Session) -> Found | None:
        """The order, and one more read: all that the decision is made from."""
        # A consumer's past at all merchants.
        with everyone():
            self._seen = await history.read(session, self._asked)
        return await orders.read_with_plan(session, self._asked.merchant_id, self._asked.order_id)

    def decide(self, order: Order) -> StoredDecision:
        """On what was read last. Raises Forgotten where that no longer includes this browser's checkout."""
        assert self._seen is not None
        if not self._seen.known:
            raise Forgotten
        decision = decide(self._facts(order, self._seen), self._context.policy)
        kept = tuple(Signal(kind, value) for kind, value in self._asked.signals.items())
        return StoredDecision(self._decision_id, self.consumer_id, decision, kept, self._seen.exposure)

    def _facts(self, order: Order, seen: RiskHistory) -> Facts:
        merchant = self._checkout.merchant
        return Facts(
            amount=order.amount,
            currency=order.currency,
            merchant_minimum=merchant.minimum,
            merchant_maximum=merchant.maximum,
            history=seen.history,
            velocity=seen.velocity,
            mismatches=_mismatches(self._checkout, self._profile, seen.surname),
            approvals=_approvals(seen, order.amount, self._asked.at),
            steer=_steer(self._profile.surname) if self._context.settings.sandbox else "",
        )


def _since(context: Context, now: datetime) -> dict[SignalKind, datetime]:
    """Each kind of signal has a window of its own."""
    windows = context.policy.velocity
    return {kind: now - timedelta(hours=getattr(windows, kind).hours) for kind in SignalKind}


def _signals(
    context: Context, checkout: Checkout, profile: Profile, card: PlanCard
) -> Mapping[SignalKind, bytes]:
    """What the order is tried with, as keyed hashes: the same thing is known again, and cannot be read."""
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
    """What the order's own words, the consumer's, and those of an earlier visit do not agree on."""
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
    """What the merchant says about its customer, and what its model makes of it; None where it is off."""
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
    """A decision is kept for good, so that no free text may be in it: an assessment may name somebody."""
    said = fields.get(ASSESSMENT)
    free = isinstance(said, str) and risk_level(said) is None
    return {**fields, ASSESSMENT: "other"} if free else fields


def _model(text: str | None) -> Model | None:
    """The merchant's model; one that another release wrote and this one cannot read is none: it costs no sale."""
    try:
        return None if text is None else model_of(json.loads(text))
    except BadModel:
        log.exception("model cannot be read")
        return None


def _steer(surname: str) -> Steer:
    """The sandbox's test surnames decide, and only there."""
    steers: dict[str, Steer] = {
        DECLINED_SURNAME.casefold(): "decline",
        APPROVED_SURNAME.casefold(): "approve",
    }
    return steers.get(surname.strip().casefold(), "")
