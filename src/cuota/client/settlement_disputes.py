"""Computes the amounts that an order's disputes withhold and release, event by event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuota.client.settlement_cents import cents_of

# The type, the reference and the gross amount of a line, in cents.
DisputeLine = tuple[str, str, int]


@dataclass
class Withheld:
    """The amounts that the disputes of one order withhold. Apply the order's events in sequence.

    `by_dispute` has the cents that each dispute withholds; `chargebacks` the disputes of card networks, in
    the order of their opening, each with the number of the payment that it took back. The number is None in events of
    earlier releases.
    """

    by_dispute: dict[str, int] = field(default_factory=dict)
    chargebacks: dict[str, int | None] = field(default_factory=dict)

    def opened(self, event: Mapping[str, Any]) -> list[DisputeLine]:
        """Return the lines of `dispute.opened`."""
        dispute_id, amount = str(event["dispute"]["disputeId"]), cents_of(event["amount"])
        lines = [("dispute_withheld", dispute_id, -amount)]
        if event["dispute"]["kind"] == "chargeback":
            lines = [("dispute_released", dispute_id, self._replaced(event, amount)), *lines]
            self.chargebacks[dispute_id] = event["dispute"].get("payment")
        self.by_dispute[dispute_id] = amount
        return _not_zero(lines)

    def closed(self, event: Mapping[str, Any]) -> list[DisputeLine]:
        """Return the lines of `dispute.closed`."""
        dispute = event["dispute"]
        dispute_id = str(dispute["disputeId"])
        # If a dispute is resolved, the refund before it or the chargeback after it releases the withheld amount.
        if dispute.get("outcome") != "resolved":
            self.by_dispute.pop(dispute_id, None)
        return _not_zero([("dispute_released", dispute_id, cents_of(event["amount"]))])

    def refunded(self, event: Mapping[str, Any], reference: str) -> list[DisputeLine]:
        """Return the lines of `refund.completed` for a refund during a dispute, or for a lost dispute."""
        amount = cents_of(event["amount"])
        if (lost := event.get("disputeId")) is None:
            return _not_zero([("dispute_released", reference, self._release(amount))])
        held = self.by_dispute.pop(str(lost), amount)
        released = held + self._lent(str(lost), event["order"], max(0, amount - held))
        return _not_zero([("dispute_released", reference, released), ("dispute_lost", reference, -amount)])

    def _lent(self, lost: str, order: Mapping[str, Any], need: int) -> int:
        """Release what other disputes withhold of the `need` cents that a lost chargeback took beyond its own.

        First come the other chargebacks of the same payment, the oldest first, then the customer's own dispute, as far as no other
        money is free. `order` includes the refund of the lost chargeback.
        """
        lent, payment = 0, self.chargebacks.get(lost)
        for dispute_id, other in self.chargebacks.items():
            if payment is not None and other is not None and payment != other:
                continue
            part = min(need - lent, self.by_dispute.get(dispute_id, 0))
            if part:
                self.by_dispute[dispute_id] -= part
                lent += part
        return lent + self._release(max(0, -self._free(order)))

    def _replaced(self, event: Mapping[str, Any], amount: int) -> int:
        """Release the part of the customer's own dispute that withholds the same money as a new chargeback, or that has no room left.

        A dispute has room as far as the banks have not taken the customer's payments back. The merchant cannot calculate this room,
        because the merchant sees neither the payments nor the refunds that did not arrive. So the event may report a larger release
        than the same money, but not a smaller one.
        """
        reported = cents_of(event["dispute"].get("released", 0))
        return self._release(max(reported, amount - self._free(event["order"])))

    def _free(self, order: Mapping[str, Any]) -> int:
        """Return the captured cents that are neither refunded nor withheld."""
        captured, refunded = (
            sum(cents_of(each["amount"]) for each in order[name]) for name in ("captures", "refunds")
        )
        return captured - refunded - sum(self.by_dispute.values())

    def _release(self, amount: int) -> int:
        """Release at most this much of the customer's own dispute. Return the released cents."""
        for dispute_id, held in self.by_dispute.items():
            if dispute_id not in self.chargebacks and held:
                self.by_dispute[dispute_id] = held - min(amount, held)
                return min(amount, held)
        return 0


def _not_zero(lines: list[DisputeLine]) -> list[DisputeLine]:
    return [line for line in lines if line[2]]
