"""One order in memory, with its disputes and the payouts to its merchant."""

from __future__ import annotations

from datetime import UTC, timedelta
from uuid import UUID

from cuota.core.dispute import answer
from cuota.core.dispute.chargeback import (
    ChargebackReport,
    lose_chargeback,
    open_chargeback,
    win_chargeback,
)
from cuota.core.dispute.claims import Claims, after_refund
from cuota.core.dispute.close_dispute import MerchantFees, close_dispute, withdraw
from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeParty, DisputeReason
from cuota.core.dispute.evidence import Evidence
from cuota.core.dispute.notice_return import notice_return
from cuota.core.dispute.open_dispute import DisputeRequest, open_dispute
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.core.installment import Installment
from cuota.core.ledger import Account, balance
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.order.outcome import Outcome
from cuota.core.order.refund import refund
from cuota.core.payout.fee import OrderFees
from support.properties.book import Book

NO_FEES = MerchantFees((), OrderFees())


class DisputedBook(Book):
    """The order's rows, including disputes and return notices."""

    def __init__(self, amount: int, fee: int, *, auto: bool) -> None:
        super().__init__(amount, fee, auto=auto)
        self.disputes: dict[UUID, Dispute] = {}
        self.returns: dict[UUID, ReturnNotice] = {}
        self.paid_out = 0

    @property
    def parts(self) -> list[Installment]:
        """Return the installments in the order of their numbers."""
        return [self.plan[number] for number in sorted(self.plan)]

    @property
    def open(self) -> list[Dispute]:
        """Return the disputes that are not closed."""
        return [each for each in self.disputes.values() if each.is_open]

    @property
    def claims(self) -> Claims:
        """Return the order's open claims, as a flow reads them."""
        in_force = [each for each in self.returns.values() if each.ended_at is None]
        returned = in_force[-1] if in_force else None
        return Claims(UTC, tuple(self.open), returned)

    def save(self, outcome: Outcome) -> Outcome:
        """Apply an outcome, including its changes of disputes."""
        super().save(outcome)
        for moved in outcome.more_movements:
            assert (moved.kind, moved.reference) not in self.movements
            self.movements[moved.kind, moved.reference] = moved
        for each in outcome.disputes:
            before = self.disputes.get(each.dispute_id)
            assert before is None or (before.is_open and each.withheld <= before.withheld)
            self.disputes[each.dispute_id] = each
        if outcome.returned is not None:
            self.returns[outcome.returned.return_id] = outcome.returned
        return outcome

    def refund(self, amount: int) -> Outcome:
        """Refund as the flow does, limited by the open claims about the order."""
        asked = MovementRequest(MovementKind.REFUND, str(self.new_id()), amount)
        movement_id, claims = self.new_id(), self.claims
        done = refund(
            self.order, self.parts, asked, movement_id, self.now, self.new_id, taken_back=claims.taken_back
        )
        return self.save(after_refund(done, self.parts, claims, amount, movement_id))

    def dispute(self, amount: int) -> Outcome:
        """Open a dispute as the consumer."""
        asked = DisputeRequest(DisputeReason.NOT_RECEIVED, amount)
        return self.save(
            open_dispute(self.order, self.parts, asked, self.claims, self.new_id(), self.now, self.new_id)
        )

    def _evidence(self, dispute: Dispute) -> Evidence:
        return Evidence(self.new_id(), dispute.dispute_id, DisputeParty.MERCHANT, b"sealed")

    def submit(self, dispute: Dispute) -> Outcome:
        """Send evidence as the merchant."""
        return self.save(answer.submit_evidence(self.order, dispute, self._evidence(dispute), self.now))

    def decide(self, dispute: Dispute, move: str) -> Outcome:
        """Accept, expire or decide a dispute."""
        return self.save(answer.decide(self.order, dispute, move, UTC, self.now, self.new_id))

    def appeal(self, dispute: Dispute, party: DisputeParty) -> Outcome:
        """Appeal as one of the two parties."""
        evidence = self._evidence(dispute)
        return self.save(answer.appeal(self.order, dispute, party, evidence, self.now, self.new_id))

    def withdraw(self, dispute: Dispute) -> Outcome:
        """Withdraw the dispute as the consumer."""
        return self.save(withdraw(self.order, self.parts, dispute, self.claims, self.now, self.new_id))

    def close(self, dispute: Dispute) -> Outcome:
        """Close a dispute whose decision is final."""
        return self.save(
            close_dispute(self.order, self.parts, dispute, self.claims, NO_FEES, self.now, self.new_id)
        )

    def charge_back(self, charge_id: UUID, amount: int) -> Outcome:
        """Take a payment back as the card network."""
        report = ChargebackReport(
            charge_id, DisputeReason.NOT_MINE, amount, str(self.new_id()), self.now + timedelta(days=9)
        )
        return self.save(
            open_chargeback(self.order, self.parts, report, self.claims, self.new_id(), self.now)
        )

    def network_decides(self, dispute: Dispute, *, won: bool) -> Outcome:
        """Decide a chargeback as the card network."""
        if won:
            return self.save(
                win_chargeback(self.order, self.parts, dispute, self.claims, self.now, self.new_id)
            )
        return self.save(
            lose_chargeback(self.order, self.parts, dispute, self.claims, NO_FEES, self.now, self.new_id)
        )

    def send_back(self) -> Outcome:
        """Send the goods back as the consumer."""
        return self.save(
            notice_return(
                self.order, self.parts, UTC, "UPS", str(self.new_id()), self.new_id(), self.now, self.new_id
            )
        )

    def pay_out(self) -> int:
        """Pay the merchant the payable amount. Return its cents."""
        payable = -balance(self.transfers, Account.MERCHANT_PAYABLE) - self.paid_out
        self.paid_out += max(0, payable)
        return max(0, payable)

    def chargebacks(self) -> list[Dispute]:
        """Return all chargebacks, open and closed."""
        return [each for each in self.disputes.values() if each.kind is DisputeKind.CHARGEBACK]
