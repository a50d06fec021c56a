"""Records up to which time the events of each card rail's processor were fetched. One worker at a time fetches them."""

from __future__ import annotations

from datetime import datetime, timedelta

from cuota.db.session import Session

# The fetch is due by the real clock or by the service's clock: a move of the sandbox's clock stops once a day to fetch
# events.
EVERY = timedelta(minutes=5)
AT_LEAST_EVERY = timedelta(days=1)

_BEGIN = """INSERT INTO card_rails (name, reconciled_until, due_at, checked_at)
    SELECT name, $2, $2, '-infinity' FROM unnest($1::text[]) AS n (name)
    WHERE NOT EXISTS (SELECT FROM card_rails r WHERE r.name = n.name) ON CONFLICT DO NOTHING"""
# The new due_at is the claim: for another worker, the row is then not due.
_CLAIM = """UPDATE card_rails SET due_at = $2::timestamptz + $5, checked_at = $3
    WHERE name = ANY ($1::text[]) AND (due_at <= $2 OR checked_at <= $3::timestamptz - $4::interval)
    RETURNING name, coalesce(newest_event_at, least(reconciled_until, $3)) AS since"""
_MOVED = """UPDATE card_rails SET reconciled_until = greatest(reconciled_until, $2),
    newest_event_at = greatest(newest_event_at, $3), problem = NULL WHERE name = $1"""
_ADVANCED = "UPDATE card_rails SET newest_event_at = greatest(newest_event_at, $2) WHERE name = $1"
_FAILED = "UPDATE card_rails SET problem = $2 WHERE name = $1"
_SOON = "UPDATE card_rails SET due_at = least(due_at, $1)"


async def begin(session: Session, names: list[str], now: datetime) -> None:
    """Add the rails that have no row yet. Their events are fetched from now on."""
    await session.fetch(_BEGIN, names, now)


async def claim(session: Session, names: list[str], now: datetime, real: datetime) -> dict[str, datetime]:
    """Claim the rails whose events are due to be fetched. Return, by rail name, the time from which to fetch.

    That is the time of the newest event that was fetched: a processor has a clock of its own, and the sandbox moves ours. Before
    the first event it is the time of the first fetch, by the earlier of the two clocks here.
    """
    rows = await session.fetch(_CLAIM, names, now, real, EVERY, AT_LEAST_EVERY)
    return {row["name"]: row["since"] for row in rows}


async def fetched(session: Session, name: str, until: datetime, newest: datetime) -> None:
    """Record that all events up to `until` are stored. `newest` is the time of the newest one, by the processor's clock."""
    await session.fetchrow(_MOVED, name, until, newest)


async def advanced(session: Session, name: str, newest: datetime) -> None:
    """Record that all events up to `newest` are stored, by the processor's clock, and that there are more."""
    await session.fetchrow(_ADVANCED, name, newest)


async def failed(session: Session, name: str, problem: str) -> None:
    """Record why the events could not be fetched. The next fetch begins where this one began."""
    await session.fetchrow(_FAILED, name, problem)


async def fetch_soon(session: Session, at: datetime) -> None:
    """Make the fetch of every rail's events due at this instant at the latest."""
    await session.fetchrow(_SOON, at)
