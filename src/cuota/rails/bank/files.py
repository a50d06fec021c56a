"""The rail `files`, for a bank that accepts files: payouts wait for the next file, and the bank's reports give their results.

`cuota bank make` writes a file, `cuota bank report` reads a report of the bank. A payment follows the rules of the format of its own
file, also if the format of later files is another one. NACHA has no report of a successful
payment, so a payment counts as paid when the time for a return has passed.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from uuid import UUID

from cuota.core import money
from cuota.core.payout.arrival import BANK_ZONE, business_days_after
from cuota.core.payout.bank_order import Credit
from cuota.core.payout.late import WAITS_FOR_FILE
from cuota.core.payout.nacha import MOST_CENTS
from cuota.rails.bank.file_books import MOST_IN_A_PAYMENT, FileBooks, Ordered
from cuota.rails.bank.protocol import BankAnswer, BankOrder, BankState
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault
from cuota.rails.unavailable import RailUnavailable

RETURN_DAYS = 2
"""The business days within which the merchant's bank must return an ACH credit (Nacha Operating Rules)."""

TOO_LARGE = f"a NACHA payment is at most {money.text_of(MOST_CENTS)}: set CUOTA_BANK_FORMAT=pain001 until cuota bank make has written its file"
# By the format of the payment's file. A return of an ACH credit may arrive on the last of its days, and the payment counts as paid on
# the next one.
_PATIENCE = {"nacha": RETURN_DAYS + 1, "pain001": 0}


class FileBankRail:
    """`CUOTA_BANK_RAIL=files`."""

    name = "files"

    def __init__(self, settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> None:
        if settings.bank_files is None:
            raise ValueError("needs CUOTA_BANK_COMPANY and the other settings of bank files")
        self.format = settings.bank_files.format
        self.books = FileBooks(books, vault, settings.bank_files.originator)
        self._now = now
        self.patience = _PATIENCE[self.format]

    async def send(self, order: BankOrder) -> BankAnswer:
        """Queue the payment.

        Raises RailUnavailable until the payment is in a file, because the payout is not sent before that.
        """
        # A rejection would pause the merchant's payouts, although the bank account is not the problem.
        if order.amount > MOST_IN_A_PAYMENT[self.format]:
            raise RailUnavailable(TOO_LARGE)
        credit = Credit(
            order.payout_id,
            0,
            order.merchant_name,
            order.routing,
            order.account,
            order.amount,
            order.currency,
        )
        await self.books.order(credit, self._now())
        found = await self.find(order.payout_id)
        assert found is not None
        return found

    async def find(self, payout_id: UUID) -> BankAnswer | None:
        """Return the bank's report of the payment. Raises RailUnavailable while the payment waits for the next file."""
        found = await self.books.find(payout_id)
        if found is None:
            return None
        if found.file_number is None:
            large = found.amount > MOST_IN_A_PAYMENT[self.format]
            raise RailUnavailable(TOO_LARGE if large else WAITS_FOR_FILE)
        state = BankState.ACCEPTED
        if found.returned_at is not None:
            state = BankState.RETURNED
        elif found.paid_at is not None or self._counts_as_paid(found):
            state = BankState.PAID
        named = f"file {found.file_number}"
        return BankAnswer(state, found.amount, found.reason, named, _confirm_by(found), found.effective)

    def _counts_as_paid(self, found: Ordered) -> bool:
        if found.format != "nacha" or found.effective is None:
            return False
        last = business_days_after(found.effective, RETURN_DAYS)
        return self._now() >= datetime.combine(last + timedelta(days=1), time.min, BANK_ZONE)


def _confirm_by(found: Ordered) -> date | None:
    if found.effective is None or found.format is None:
        return None
    return business_days_after(found.effective, _PATIENCE[found.format])
