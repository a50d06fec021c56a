"""Adds a version to a merchant's terms: fees, and the schedule of payouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import asyncpg

from cuota.core import money
from cuota.core.merchant import Merchant
from cuota.core.payout.percent import percent_text
from cuota.core.payout.terms import PayoutSchedule, RefundFee, SettlementTerms
from cuota.db.payout import terms as versions
from cuota.db.pool import CONNECT_SECONDS, HANGS_SECONDS, WAIT_SECONDS
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import BadMerchant, find_merchant

# An instant that an operator typed a moment ago still counts as now.
JUST_NOW = timedelta(minutes=1)
# A capture reads the terms without a lock, so it pays by the terms that were committed before its read. A new version therefore begins
# when it has surely been committed: the pool waits for a session and for the statement less long than this. The rest is for clocks of
# other machines that are ahead.
LEAD = timedelta(seconds=30)
assert timedelta(seconds=WAIT_SECONDS + CONNECT_SECONDS + HANGS_SECONDS) < LEAD

_WORDS: dict[str, Callable[[Any], str]] = {
    "percent": lambda points: f"{percent_text(points)} %",
    "reserve": lambda points: f"{percent_text(points)} %",
    "fixed": money.text_of,
    "minimum": money.text_of,
    "cutoff": lambda at: f"{at:%H:%M}",
}


@dataclass(frozen=True, slots=True)
class TermsChange:
    """An operator's changes. None keeps the value of the previous version. Percentages are basis points, amounts cents."""

    percent: int | None = None
    fixed: int | None = None
    refund_fee: RefundFee | None = None
    payout: PayoutSchedule | None = None
    minimum: int | None = None
    reserve: int | None = None
    reserve_days: int | None = None
    time_zone: str | None = None
    cutoff: time | None = None

    @property
    def given(self) -> dict[str, object]:
        """Return the values that change."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}

    @property
    def words(self) -> dict[str, str]:
        """Return the values that change, as a person reads them in the log."""
        return _words(self, self.given)

    def words_before(self, latest: SettlementTerms | None) -> dict[str, str]:
        """Return the same values in the latest version."""
        if latest is None:
            return {}
        return _words(latest, self.given)


def _words(of: TermsChange | SettlementTerms, names: Iterable[str]) -> dict[str, str]:
    return {_key(name): _WORDS.get(name, str)(getattr(of, name)) for name in names}


def _key(name: str) -> str:
    """Return the name as in JSON, such as `refundFee`."""
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


async def change_terms(
    context: Context, name_or_id: str, change: TermsChange, valid_from: datetime | None = None
) -> tuple[Merchant, list[SettlementTerms]]:
    """Add a version, if anything is given, and return the merchant with all versions, the oldest first. Raises BadMerchant.

    Without `valid_from`, the version begins after LEAD, at a whole second. It applies to captures from then on. Captures until then pay by
    the previous version.
    """
    merchant = await find_merchant(context, name_or_id)
    found = await versions.read_all(context.pool, merchant.merchant_id)
    if not change.given:
        if valid_from is not None:
            raise BadMerchant(
                "Nothing was changed. Say what changes at that time, for example --percent 5.9."
            )
        return merchant, found
    now = context.now()
    begins = valid_from or now
    if begins < now - JUST_NOW:
        raise BadMerchant("Nothing was changed. Terms cannot be valid from a time in the past.")
    begins = _whole_second(max(begins, now + LEAD))
    if found and begins < found[-1].valid_from:
        raise BadMerchant(
            f"Nothing was changed. Version {found[-1].version} is valid from {found[-1].valid_from:%Y-%m-%d %H:%M:%S} UTC;"
            " a new version must not begin before it."
        )
    base = found[-1] if found else SettlementTerms(0, begins)
    new = replace(base, version=base.version + 1, valid_from=begins, **change.given)  # type: ignore[arg-type]
    _check(new)
    try:
        await versions.add(context.pool, merchant.merchant_id, new, now)
    except asyncpg.UniqueViolationError:
        raise BadMerchant(
            "Nothing was changed: another command changed these terms at the same moment. Look at them, and try again."
        ) from None
    if context.now() >= begins:
        raise BadMerchant(
            f"Version {new.version} was saved too late, after {begins:%Y-%m-%d %H:%M:%S} UTC, when it begins. Captures since then may"
            " have paid by the previous version: cuota verify lists them."
        )
    return merchant, [*found, new]


def _whole_second(at: datetime) -> datetime:
    """Return the time, rounded up to a whole second. The API cuts times to milliseconds, so a fraction would move captures across it."""
    return at if not at.microsecond else at.replace(microsecond=0) + timedelta(seconds=1)


def _check(terms: SettlementTerms) -> None:
    try:
        ZoneInfo(terms.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadMerchant(f"{terms.time_zone} is not a time zone such as America/New_York.") from None
    if bool(terms.reserve) != bool(terms.reserve_days):
        raise BadMerchant(
            "A reserve needs both --reserve and --reserve-days. To end a reserve, set both to 0."
        )
