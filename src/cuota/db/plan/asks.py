"""Counts of consumers' attempts to pay or change a card, by phone, card and IP address. All values are keyed hashes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.plan.asking import LIMITS, Subject, again_at
from cuota.core.plan.charge import Origin
from cuota.db.old_rows import deleting
from cuota.db.plan.plans import CARD_JOIN, SAME_CARD
from cuota.db.pool import Pool
from cuota.db.session import Session

Subjects = Mapping[Subject, bytes]

_THESE = "unnest($1::text[], $2::bytea[]) AS q (subject, value_hash)"
# $5 and the parameters after it are the times at which the windows of LIMITS begin. The row is locked while its windows
# are counted, so concurrent attempts cannot exceed the limit. There is one statement for each subject, with VALUES,
# because Citus does not pass parameters on to the SET of an INSERT ... SELECT. All attempts take the subjects in the
# same order, so that two attempts never deadlock.
_FULL = " OR ".join(
    f"cardinality(later_than(t.asked, ${number}::timestamptz)) >= {most}"
    for number, (_, most) in enumerate(LIMITS, 5)
)
_ASK = f"""INSERT INTO consumer_asks AS t (subject, value_hash, asked, last_at)
    VALUES ($1, $2, ARRAY[$3::timestamptz], $3::timestamptz) ON CONFLICT (subject, value_hash) DO UPDATE SET
        asked = later_than(t.asked, $4::timestamptz) || $3::timestamptz,
        paid = later_than(t.paid, $4::timestamptz), last_at = $3::timestamptz
    WHERE NOT ({_FULL}) RETURNING subject"""
_ASKED = f"SELECT t.asked FROM consumer_asks t JOIN {_THESE} USING (subject, value_hash)"
# One statement for each subject, and no transaction around them: a statement that holds one row at a time cannot deadlock with _ASK.
_ONE = "WHERE subject = $1 AND value_hash = $2"
_PAID = f"UPDATE consumer_asks SET paid = paid || $3::timestamptz {_ONE}"
_BEYOND = f"UPDATE consumer_asks SET asked = asked || $3::timestamptz {_ONE}"
_GIVEN_BACK = f"UPDATE consumer_asks SET asked = array_remove(asked, $3::timestamptz) {_ONE}"
# The payments of one plan are few, and are read by the primary key.
_LATEST = f"""SELECT c.state = 'succeeded' AND c.origin = '{Origin.CONSUMER}' AND c.settled_at > $3 AND {SAME_CARD} AS paid
    FROM charges c JOIN plans p ON p.merchant_id = $1 AND p.order_id = $2 {CARD_JOIN}
    WHERE c.merchant_id = $1 AND c.order_id = $2 ORDER BY c.created_at DESC, c.settled_at DESC LIMIT 1"""
_FORGET = deleting("consumer_asks", "subject, value_hash", "last_at < $1")
# Attempts are kept as long as risk decisions look back (work/tidy).
KEPT = timedelta(days=60)


async def ask(pool: Pool, subjects: Subjects, now: datetime) -> datetime | None:
    """Count one attempt for all subjects, or for none.

    Return None if it is allowed, otherwise when the next attempt is allowed.
    """
    since = [now - window for window, _ in LIMITS]
    async with pool.session() as connection:
        begun = connection.transaction()
        await begun.start()
        try:
            allowed = True
            for subject, value_hash in sorted(subjects.items()):
                asked = (subject.value, value_hash, now, now - KEPT, *since)
                allowed = await connection.fetchrow(_ASK, *asked) is not None and allowed
        except BaseException:
            await begun.rollback()
            raise
        await (begun.commit() if allowed else begun.rollback())
    if allowed:
        return None
    rows = await pool.fetch(_ASKED, [subject.value for subject in subjects], list(subjects.values()))
    free = [at for row in rows if (at := again_at(row["asked"], now))]
    return max(free, default=now + timedelta(seconds=1))


async def ask_beyond(session: Session, subjects: Subjects, at: datetime) -> None:
    """Count an attempt beyond the limit, for the subjects that have attempts already."""
    for subject, value_hash in subjects.items():
        await session.fetch(_BEYOND, subject.value, value_hash, at)


async def paid(session: Session, subjects: Subjects, at: datetime) -> None:
    """Record that a card paid for the attempt of that time, so that risk does not count it as a failure."""
    for subject, value_hash in subjects.items():
        await session.fetch(_PAID, subject.value, value_hash, at)


async def give_back(session: Session, subjects: Subjects, at: datetime) -> None:
    """Remove the attempt of that time from the counts, because no card was charged."""
    for subject, value_hash in subjects.items():
        await session.fetch(_GIVEN_BACK, subject.value, value_hash, at)


async def forget(session: Session, before: datetime) -> None:
    """Delete counts that are no longer used."""
    await session.fetch(_FORGET, before)


async def has_just_paid(session: Session, merchant_id: UUID, order_id: UUID, since: datetime) -> bool:
    """Return whether the consumer made the plan's latest charge, and the card that pays the plan now paid it after `since`."""
    row = await session.fetchrow(_LATEST, merchant_id, order_id, since)
    return row is not None and bool(row["paid"])
