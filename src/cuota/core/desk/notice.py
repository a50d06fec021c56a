"""The e-mails that tell a merchant's own people about changes that a thief would make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from cuota.core.dates import moment

# The time zone of the dashboard.
ZONE = ZoneInfo("America/New_York")


class StaffNoticeKind(StrEnum):
    """What a notice is about."""

    BANK_CHANGED = "bank-changed"
    BANK_WITHDRAWN = "bank-withdrawn"
    NOTIFY_CHANGED = "notify-changed"


@dataclass(frozen=True, slots=True)
class StaffMail:
    """The subject and the text of an e-mail."""

    subject: str
    text: str


def notice_text(
    kind: StaffNoticeKind, facts: Mapping[str, str | None], merchant: str, dashboard: str
) -> StaffMail:
    """Return the e-mail about a change of the merchant named `merchant`. `dashboard` is the dashboard's address.

    `facts` has `who` (empty for the operator) and `place` (an IP address, or empty). For a bank account, also `last4`, `before`
    (the last four digits of the account in force, or None) and `effectiveAt` (an ISO time); for the address for notices, also
    `email` and `before`.
    """
    who = facts.get("who") or "Your payment provider"
    by = f"{who} (from the IP address {facts['place']})" if facts.get("place") else who
    if kind is StaffNoticeKind.BANK_CHANGED:
        subject = f"The bank account of {merchant} was changed"
        return StaffMail(subject, _changed(by, facts, merchant, f"{dashboard}/payouts/bank"))
    if kind is StaffNoticeKind.BANK_WITHDRAWN:
        stays = f"Payouts go on to the account ending in {facts['before']}." if facts.get("before") else ""
        return StaffMail(
            f"The change of the bank account of {merchant} was withdrawn",
            f"{by} withdrew the change of the bank account to which {merchant} is paid. The account ending in {facts['last4']}"
            f" is not used. {stays}\n\nThe bank account: {dashboard}/payouts/bank\n",
        )
    return StaffMail(
        f"Notices about {merchant} go to another address",
        f"{by} changed the address for notices about {merchant} from {facts.get('before') or 'none'} to"
        f" {facts.get('email') or 'none'}.\n\nIf you did not expect this, look at the audit log of the dashboard, and change"
        f" the address back: {dashboard}/settings\n",
    )


def _changed(by: str, facts: Mapping[str, str | None], merchant: str, page: str) -> str:
    first = f"{by} changed the bank account to which {merchant} is paid. The new account ends in {facts['last4']}."
    if not facts.get("before"):
        return f"{first} It is used from now on.\n\nIf you did not expect this, call your payment provider now.\n\nThe bank account: {page}\n"
    at = moment(datetime.fromisoformat(facts["effectiveAt"] or "").astimezone(ZONE))
    return (
        f"{first}\n\nIt takes effect on {at}. Until then, payouts go to the account ending in {facts['before']}.\n\nIf you did not"
        f" expect this, withdraw the change before it takes effect: {page}\n\nIf you cannot sign in, call your payment provider"
        " now.\n"
    )
