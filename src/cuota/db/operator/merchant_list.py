"""The operator's list of merchants, in pages, by name or the newest first, filtered by state."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from cuota.core.merchant import Merchant, Onboarding
from cuota.db.pool import Row
from cuota.db.session import Session

# The count stops here. The page shows a higher count as "more than 1,000".
MOST_COUNTED = 1_000
_LAST_ID, _LAST_TIME = UUID(int=2**128 - 1), datetime(2299, 12, 31, tzinfo=UTC)


class MerchantState(StrEnum):
    """A filter of the list.

    `TO_CHECK` is not a state of a merchant: it finds merchants with an item that waits for the operator.
    """

    ACTIVE = "active"
    ONBOARDING = "onboarding"
    SUSPENDED = "suspended"
    REVOKED = "revoked"
    TO_CHECK = "check"


class MerchantSort(StrEnum):
    """The order of the list."""

    NAME = "name"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class ListedMerchant:
    """A merchant in the list. Amounts are in cents. `live`: the merchant has a credential that is not revoked."""

    merchant_id: UUID
    name: str
    minimum: int
    maximum: int
    currency: str
    created_at: datetime
    onboarding: Onboarding
    suspended: bool
    live: bool

    @property
    def state(self) -> MerchantState:
        """The most important state."""
        return state_of(self, live=self.live)


def state_of(merchant: Merchant | ListedMerchant, *, live: bool) -> MerchantState:
    """Return the most important state. A revoked merchant can do nothing, whatever its other states are."""
    if not live:
        return MerchantState.REVOKED
    if merchant.suspended:
        return MerchantState.SUSPENDED
    return MerchantState.ONBOARDING if merchant.onboarding is Onboarding.OPEN else MerchantState.ACTIVE


@dataclass(frozen=True, slots=True)
class MerchantQuery:
    """The filter: merchants in one state or in any state, whose name contains this text. Every name contains the empty text."""

    text: str = ""
    state: MerchantState | None = None
    sort: MerchantSort = MerchantSort.NAME


# One index lookup for each row that is shown. With EXISTS, PostgreSQL would read all credentials first.
_LIVE = """LEFT JOIN LATERAL (SELECT true AS live FROM credentials c WHERE c.merchant_id = m.merchant_id AND c.revoked_at IS NULL
    LIMIT 1) l ON true"""
# Each condition is the same as in `ListedMerchant.state`. A merchant always has a credential, so a revoked merchant has a
# revoked credential: the index credentials_revoked contains few rows.
_IN_STATE = {
    None: "true",
    MerchantState.ACTIVE: "m.suspended_at IS NULL AND m.onboarding <> 'open' AND l.live",
    MerchantState.ONBOARDING: "m.onboarding = 'open' AND m.suspended_at IS NULL AND l.live",
    MerchantState.SUSPENDED: "m.suspended_at IS NOT NULL AND l.live",
    # With an array, PostgreSQL looks each merchant up instead of reading all merchants.
    MerchantState.REVOKED: """m.merchant_id = ANY (ARRAY(SELECT r.merchant_id FROM credentials r WHERE r.revoked_at IS NOT NULL))
        AND l.live IS NULL""",
    MerchantState.TO_CHECK: """m.merchant_id IN (SELECT o.merchant_id FROM merchant_onboarding o WHERE o.to_check_since IS NOT NULL)""",
}
# Reads each name at most once (bench/merchants.py). With LIKE, PostgreSQL expects few rows and reads them in no order. With
# strpos, PostgreSQL would read the names in order.
_NAMED = "($1 = '' OR lower(m.name) LIKE lower($1))"
_SHOWN = f"""SELECT m.merchant_id, m.name, m.minimum, m.maximum, m.currency, m.created_at, m.onboarding,
    m.suspended_at IS NOT NULL AS suspended, l.live IS NOT NULL AS live FROM merchants m {_LIVE}"""
# A name is unique regardless of case, so the name is the position of its row in the list.
_BY_NAME = f"{_SHOWN} WHERE {{}} AND {_NAMED} AND lower(m.name) > lower($2) ORDER BY lower(m.name) LIMIT $3"
_NEWEST = f"""{_SHOWN} WHERE {{}} AND {_NAMED} AND (m.created_at, m.merchant_id) < ($2, $3)
    ORDER BY m.created_at DESC, m.merchant_id DESC LIMIT $4"""
_COUNT = f"SELECT count(*) AS found FROM (SELECT 1 FROM merchants m {_LIVE} WHERE {{}} AND {_NAMED} LIMIT $2) counted"
_ONE = f"{_SHOWN} WHERE m.merchant_id = $1"
_TO_CHECK = "SELECT merchant_id FROM merchant_onboarding WHERE merchant_id = ANY ($1::uuid[]) AND to_check_since IS NOT NULL"


async def by_name(session: Session, asked: MerchantQuery, after: str, limit: int) -> list[ListedMerchant]:
    """Return the merchants whose names follow the name `after`, by name."""
    sql = _BY_NAME.format(_IN_STATE[asked.state])
    return [_listed(row) for row in await session.fetch(sql, _pattern(asked.text), after, limit)]


async def newest(
    session: Session, asked: MerchantQuery, after: tuple[datetime, UUID] | None, limit: int
) -> list[ListedMerchant]:
    """Return the merchants that are older than `after`, newest first."""
    sql, position = _NEWEST.format(_IN_STATE[asked.state]), after or (_LAST_TIME, _LAST_ID)
    return [_listed(row) for row in await session.fetch(sql, _pattern(asked.text), *position, limit)]


async def count(session: Session, asked: MerchantQuery) -> int:
    """Return the number of merchants, at most MOST_COUNTED + 1."""
    sql = _COUNT.format(_IN_STATE[asked.state])
    row = await session.fetchrow(sql, _pattern(asked.text), MOST_COUNTED + 1)
    return row["found"] if row else 0


async def read_one(session: Session, merchant_id: UUID) -> ListedMerchant | None:
    """Return one merchant, or None."""
    row = await session.fetchrow(_ONE, merchant_id)
    return None if row is None else _listed(row)


async def to_check(session: Session, merchant_ids: list[UUID]) -> set[UUID]:
    """Return which of the merchants have an item that waits for the operator."""
    return {row["merchant_id"] for row in await session.fetch(_TO_CHECK, merchant_ids)}


def _pattern(text: str) -> str:
    """Return the LIKE pattern that finds the text anywhere in a name; empty for an empty text."""
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    return f"%{escaped}%" if text else ""


def _listed(row: Row) -> ListedMerchant:
    merchant_id, name, minimum, maximum, currency, created_at, onboarding, *rest = row
    return ListedMerchant(
        merchant_id, name, minimum, maximum, currency, created_at, Onboarding(onboarding), *rest
    )
