"""The times when merchants' names are screened, and the possible matches that were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.onboarding.screening import Finding, FindingState, SubjectKind
from cuota.db.cluster.across import claim_across
from cuota.db.pool import Row
from cuota.db.session import Session

# The lease of a claim. If the worker dies, another worker continues after this time. The lease is longer than the calls for one
# merchant take.
LEASE = timedelta(minutes=10)

_SOON = "UPDATE merchant_onboarding SET screen_at = $2, screen_tries = 0 WHERE merchant_id = $1"
_MERCHANTS_DUE = (
    "SELECT merchant_id FROM merchant_onboarding WHERE screen_at <= $1 ORDER BY screen_at LIMIT 200"
)
# A claim sets screen_at to the end of its lease. The UPDATE repeats the condition, because SKIP LOCKED alone would claim some
# rows twice.
_CLAIM = """WITH due AS MATERIALIZED (
    SELECT merchant_id FROM merchant_onboarding WHERE merchant_id = $1 AND screen_at <= $2 LIMIT $4 FOR UPDATE SKIP LOCKED
)
UPDATE merchant_onboarding m SET screen_at = $3, screen_tries = least(screen_tries + 1, 1000) FROM due
    WHERE m.merchant_id = $1 AND m.merchant_id = due.merchant_id AND m.screen_at <= $2 RETURNING m.merchant_id, m.screen_tries"""
_DONE = """UPDATE merchant_onboarding SET names_hash = $2, rail = $3, screened_at = $4, screen_at = $5, screen_tries = 0,
    screen_problem = NULL WHERE merchant_id = $1"""
_FAILED = """UPDATE merchant_onboarding SET screen_at = $2, screen_problem = $3 WHERE merchant_id = $1"""
_NOTHING = """UPDATE merchant_onboarding SET names_hash = NULL, rail = NULL, screened_at = NULL, screen_at = NULL, screen_tries = 0,
    screen_problem = NULL WHERE merchant_id = $1"""
_COLUMNS = """finding_id, subject_hash, kind, owner_id, list_name, entry, listed_name, detail, score, found_at, state, reason, decider,
    decided_at"""
# A confirmed match counts until a person clears it, even if the merchant has removed the name.
_FINDINGS = f"""SELECT {_COLUMNS} FROM screening_findings
    WHERE merchant_id = $1 AND (subject_hash = ANY ($2::bytea[]) OR state = 'confirmed') ORDER BY score DESC, finding_id"""
_ADD = """INSERT INTO screening_findings (merchant_id, finding_id, subject_hash, kind, owner_id, list_name, entry, listed_name, detail,
        score, found_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (merchant_id, subject_hash, list_name, entry) DO NOTHING RETURNING 1"""
_DECIDE = """UPDATE screening_findings SET state = $3, reason = $4, decided_by = $5, decider = $6, decided_at = $7
    WHERE merchant_id = $1 AND finding_id = $2 AND state = $8 RETURNING 1"""


@dataclass(frozen=True, slots=True)
class DueScreening:
    """A merchant whose names are due for screening. `tries` includes this claim."""

    merchant_id: UUID
    tries: int


async def soon(session: Session, merchant_id: UUID, at: datetime) -> None:
    """Schedule the screening of the names for this time."""
    await session.fetchrow(_SOON, merchant_id, at)


async def claim(session: Session, now: datetime, limit: int) -> list[DueScreening]:
    """Claim at most `limit` merchants whose names are due, in random order."""
    rows = await claim_across(session, _MERCHANTS_DUE, _CLAIM, now, LEASE, limit)
    return [DueScreening(*row) for row in rows]


async def done(
    session: Session, merchant_id: UUID, names: bytes, rail: str, now: datetime, next_at: datetime
) -> None:
    """Store that these names were screened."""
    await session.fetchrow(_DONE, merchant_id, names, rail, now, next_at)


async def failed(session: Session, merchant_id: UUID, next_at: datetime, problem: str) -> None:
    """Record that the rail did not answer, and when to retry."""
    await session.fetchrow(_FAILED, merchant_id, next_at, problem)


async def nothing(session: Session, merchant_id: UUID) -> None:
    """Record that there is no name to screen."""
    await session.fetchrow(_NOTHING, merchant_id)


async def findings(session: Session, merchant_id: UUID, subjects: Sequence[bytes]) -> list[Finding]:
    """Return the findings about these names, and all confirmed ones, the most similar first."""
    rows = await session.fetch(_FINDINGS, merchant_id, list(subjects))
    return [_finding(row) for row in rows]


def _finding(row: Row) -> Finding:
    return Finding(
        row["finding_id"], row["subject_hash"], SubjectKind(row["kind"]), row["owner_id"], row["list_name"], row["entry"],
        row["listed_name"], row["detail"], row["score"], row["found_at"], FindingState(row["state"]), row["reason"],
        row["decider"], row["decided_at"],
    )  # fmt: skip


async def add(session: Session, merchant_id: UUID, found: Finding) -> bool:
    """Add a finding. Return False if this entry was found for this name before; then the earlier decision still counts."""
    row = await session.fetchrow(
        _ADD, merchant_id, found.finding_id, found.subject, found.kind, found.owner_id, found.list_name, found.entry,
        found.listed_name, found.detail, found.score, found.found_at,
    )  # fmt: skip
    return row is not None


async def decide(
    session: Session,
    merchant_id: UUID,
    seen: Finding,
    state: FindingState,
    reason: str,
    decided_by: UUID | None,
    decider: str,
    now: datetime,
) -> bool:
    """Store the decision about a finding. Return False if another person has decided in the meantime."""
    row = await session.fetchrow(
        _DECIDE, merchant_id, seen.finding_id, state, reason, decided_by, decider, now, seen.state
    )
    return row is not None
