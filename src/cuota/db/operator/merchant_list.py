"""The operator's list of merchants: page by page, by name or the newest first, all or those in one state."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from cuota.core.merchant import Onboarding
from cuota.db.pool import Row
from cuota.db.session import Session

# Counted up to here. More than that is "more than 1,000".
MOST_COUNTED = 1_000
_LAST_ID, _LAST_TIME = UUID(int=2**128 - 1), datetime(2299, 12, 31, tzinfo=UTC)


class MerchantState(StrEnum):
    """What a merchant is in the list. `TO_CHECK` is no state of its own: the operator has something to check."""

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
    """A merchant in the list. Amounts are cents. `live`: it has a credential that is not revoked."""

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
        """The one state that says most. A revoked merchant can do nothing, whatever else it is."""
        if not self.live:
            return MerchantState.REVOKED
        if self.suspended:
            return MerchantState.SUSPENDED
        return MerchantState.ONBOARDING if self.onboarding is Onboarding.OPEN else MerchantState.ACTIVE


@dataclass(frozen=True, slots=True)
class MerchantQuery:
    """What to list: merchants in a state, or in any, with this text in their name. An empty text is in every name."""

    text: str = ""
    state: MerchantState | None = None
    sort: MerchantSort = MerchantSort.NAME


# One look at an index for each row that is shown. As an EXISTS, PostgreSQL would read all credentials first.
_LIVE = """LEFT JOIN LATERAL (SELECT true AS live FROM credentials c WHERE c.merchant_id = m.merchant_id AND c.revoked_at IS NULL
    LIMIT 1) l ON true"""
# Each condition is the same as `ListedMerchant.state`. A merchant always has a credential, so a revoked one has a revoked credential:
# the index credentials_revoked holds few rows.
_IN_STATE = {
    None: "true",
    MerchantState.ACTIVE: "m.suspended_at IS NULL AND m.onboarding <> 'open' AND l.live",
    MerchantState.ONBOARDING: "m.onboarding = 'open' AND m.suspended_at IS NULL AND l.live",
    MerchantState.SUSPENDED: "m.suspended_at IS NOT NULL AND l.live",
    # As an array, PostgreSQL looks each of them up instead of reading all merchants.
    MerchantState.REVOKED: """m.merchant_id = ANY (ARRAY(SELECT r.merchant_id FROM credentials r WHERE r.revoked_at IS NOT NULL))
        AND l.live IS NULL""",
    MerchantState.TO_CHECK: """m.merchant_id IN (SELECT o.merchant_id FROM merchant_onboarding o WHERE o.to_check_since IS NOT NULL)""",
}
# Reads at most every name once (bench/merchants.py). With LIKE, unlike strpos, PostgreSQL expects few rows, and reads them in no order.
_NAMED = "($1 = '' OR lower(m.name) LIKE lower($1))"
_SHOWN = f"""SELECT m.merchant_id, m.name, m.minimum, m.maximum, m.currency, m.created_at, m.onboarding,
    m.suspended_at IS NOT NULL AS suspended, l.live IS NOT NULL AS live FROM merchants m {_LIVE}"""
# A name is unique without its case, so it is the position of its row.
_BY_NAME = f"{_SHOWN} WHERE {{}} AND {_NAMED} AND lower(m.name) > lower($2) ORDER BY lower(m.name) LIMIT $3"
_NEWEST = f"""{_SHOWN} WHERE {{}} AND {_NAMED} AND (m.created_at, m.merchant_id) < ($2, $3)
    ORDER BY m.created_at DESC, m.merchant_id DESC LIMIT $4"""
_COUNT = f"SELECT count(*) AS found FROM (SELECT 1 FROM merchants m {_LIVE} WHERE {{}} AND {_NAMED} LIMIT $2) counted"
_ONE = f"{_SHOWN} WHERE m.merchant_id = $1"
_TO_CHECK = "SELECT merchant_id FROM merchant_onboarding WHERE merchant_id = ANY ($1::uuid[]) AND to_check_since IS NOT NULL"


async def by_name(session: Session, asked: MerchantQuery, after: str, limit: int) -> list[ListedMerchant]:
    """Return merchants by name, those after the name `after`."""
    sql = _BY_NAME.format(_IN_STATE[asked.state])
    return [_listed(row) for row in await session.fetch(sql, _pattern(asked.text), after, limit)]


async def newest(
    session: Session, asked: MerchantQuery, after: tuple[datetime, UUID] | None, limit: int
) -> list[ListedMerchant]:
    """Return the newest merchants first, those further back than `after`."""
    sql, position = _NEWEST.format(_IN_STATE[asked.state]), after or (_LAST_TIME, _LAST_ID)
    return [_listed(row) for row in await session.fetch(sql, _pattern(asked.text), *position, limit)]


async def count(session: Session, asked: MerchantQuery) -> int:
    """Return how many merchants there are, but at most MOST_COUNTED + 1."""
    sql = _COUNT.format(_IN_STATE[asked.state])
    row = await session.fetchrow(sql, _pattern(asked.text), MOST_COUNTED + 1)
    return row["found"] if row else 0


async def read_one(session: Session, merchant_id: UUID) -> ListedMerchant | None:
    """Return one merchant, or None."""
    row = await session.fetchrow(_ONE, merchant_id)
    return None if row is None else _listed(row)


async def to_check(session: Session, merchant_ids: list[UUID]) -> set[UUID]:
    """Return those of the merchants about which the operator has something to check."""
    return {row["merchant_id"] for row in await session.fetch(_TO_CHECK, merchant_ids)}


def _pattern(text: str) -> str:
    """Return the pattern of LIKE that finds the text anywhere; empty for an empty text."""
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    return f"%{escaped}%" if text else ""


def _listed(row: Row) -> ListedMerchant:
    merchant_id, name, minimum, maximum, currency, created_at, onboarding, *rest = row
    return ListedMerchant(
        merchant_id, name, minimum, maximum, currency, created_at, Onboarding(onboarding), *rest
    )
