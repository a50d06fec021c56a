"""An order with chargebacks in memory, the events that its merchant gets, and the lines of its payout: each event's body is made by
the service's own code, and each line from the ledger, as `settle_movements` does in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cuota.client import PayoutLine, SettlementVerdict, cents, verify_payout
from cuota.core.dispute.dispute import DisputeKind
from cuota.core.ledger import Account, Transfer
from cuota.core.order.capture import capture
from cuota.core.order.event import MOVED, Event, event_type
from cuota.core.order.movement import Movement, MovementKind, MovementRequest
from cuota.core.order.outcome import Outcome
from cuota.db.dispute.opened_chargebacks import OpenedChargeback
from cuota.db.order.orders import OrderRecord
from cuota.db.webhook.events import EventFacts
from cuota.db.webhook.happened import Happened
from cuota.flows.webhook.show_event import event_body
from support.core.chargeback_model import CHARGES, ChargebackModel
from support.settlement_book import payout_of

REFERENCE = "A-9"
_SETTLED = frozenset({"capture.completed", "refund.completed", "dispute.opened", "dispute.closed"})


@dataclass
class ReportedChargebacks(ChargebackModel):
    """The model of an order that also stores its events, its movements and its settlement lines."""

    happened: list[Happened] = field(default_factory=list)
    movements: list[Movement] = field(default_factory=list)
    lines: list[PayoutLine] = field(default_factory=list)

    @classmethod
    def approved(cls, captured: int, payments: int, fee: int) -> ReportedChargebacks:
        """Return an approved order of which some payments are paid and some cents are captured, with its events."""
        model = cls.begun(0, payments, fee)
        assert isinstance(model, ReportedChargebacks)
        for name in ("order.created", "order.approved"):
            model.report(Event(name, model.order.amount))
        if captured:
            asked = MovementRequest(MovementKind.CAPTURE, "first", captured)
            model.save(capture(model.order, asked, model.new_id(), model.now))
        return model

    def report(self, event: Event) -> None:
        self.happened.append(
            Happened(
                len(self.happened) + 1,
                event_type(event.type),
                None,
                event.amount,
                event.reference,
                success=True,
                message=event.message,
                at=self.now,
            )
        )

    def save(self, outcome: Outcome | None) -> None:
        super().save(outcome)
        if outcome is None:
            return
        if outcome.movement is not None:
            self.movements += [outcome.movement, *outcome.more_movements]
        for event in outcome.events:
            self.report(event)
            if event.type in _SETTLED:
                self._settle(event, outcome)

    def _settle(self, event: Event, outcome: Outcome) -> None:
        """Write the lines of one event: the sums of its transfers, by posting."""
        cause = next(
            (
                moved.movement_id
                for moved in self.movements
                if moved.kind is MOVED.get(event.type) and moved.reference == event.reference
            ),
            None,
        )
        for each in self.disputes.values():
            if event.type.startswith("dispute.") and str(each.dispute_id) == event.reference:
                cause = each.dispute_id if event.type == "dispute.opened" else each.release_id
        sums: dict[str, int] = {}
        for transfer in outcome.transfers:
            if transfer.cause == cause and (cents_ := _paid_to_merchant(transfer)):
                sums[transfer.posting] = sums.get(transfer.posting, 0) + cents_
        for posting, amount in sums.items():
            self.lines.append(
                PayoutLine(
                    str(len(self.lines) + 1), posting, str(self.order.order_id), REFERENCE, event.reference or "",
                    cents(amount), Decimal(0), cents(amount), outcome.at, len(self.happened), {},
                )
            )  # fmt: skip

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of all events."""
        opened = {
            each.dispute_id: OpenedChargeback(
                CHARGES.index(each.charge_id) + 1, self._released_by(each.dispute_id)
            )
            for each in self.disputes.values()
            if each.kind is DisputeKind.CHARGEBACK and each.charge_id is not None
        }
        record = OrderRecord(self.order, self.order.order_id, '{"metadata":{}}', tuple(self.movements))
        facts = EventFacts(
            record, REFERENCE, None, tuple(self.happened), tuple(self.disputes.values()), (), opened
        )
        texts = (event_body(facts, each.sequence, sandbox=True) for each in self.happened)
        return [json.loads(text, parse_float=Decimal) for text in texts]

    def _released_by(self, cause: object) -> int:
        found = (each for each in self.ledger if each.cause == cause and each.posting == "dispute_released")
        return sum(each.amount for each in found)

    def verdict(self, bodies: Sequence[Mapping[str, Any]]) -> SettlementVerdict:
        """Check the lines by these events."""
        return verify_payout(payout_of(self.lines), self.lines, bodies, [], settled=())


def _paid_to_merchant(transfer: Transfer) -> int:
    if transfer.credit is Account.MERCHANT_PAYABLE:
        return transfer.amount
    return -transfer.amount if transfer.debit is Account.MERCHANT_PAYABLE else 0
