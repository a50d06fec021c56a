"""A table on which writes fail for a while, as when the rows are locked or the database is busy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.own_service import Own

# The error code for a lock that was not available in time. PostgreSQL has not applied the statement.
BUSY = """CREATE FUNCTION is_busy() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the test lets this fail' USING ERRCODE = 'lock_not_available'; END $$"""


@asynccontextmanager
async def failing(own: Own, table: str, event: str, when: str = "true") -> AsyncIterator[None]:
    """Inside the block, each such write fails: `event` is INSERT, UPDATE or DELETE, `when` a condition on NEW and OLD."""
    async with own.owner() as owner:
        await owner.execute(BUSY)
        await owner.execute(
            f"CREATE TRIGGER is_busy BEFORE {event} ON {table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION is_busy()"
        )
        try:
            yield
        finally:
            await owner.execute("DROP FUNCTION is_busy CASCADE")
