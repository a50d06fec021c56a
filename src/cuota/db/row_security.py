"""Row-level security by merchant, the second net under every `WHERE merchant_id = ...`: off unless an operator turns it on.

A merchant's own request narrows its statements to that merchant's rows. What reads across merchants (the background work,
a consumer's page, the risk history) is not narrowed. The database is told by a setting, in the same write as the statement:
no round trip more, and none of it where it is off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any
from uuid import UUID

import asyncpg

from cuota.db.hosts import Honest

EVERYONE = "*"
SETTING = "cuota.merchant"
# Evaluated once a statement. Without the setting nothing is seen.
_OURS = f"""(SELECT current_setting('{SETTING}', true)) = '{EVERYONE}'
    OR merchant_id = (SELECT nullif(nullif(current_setting('{SETTING}', true), '{EVERYONE}'), '')::uuid)"""
_TABLES = """SELECT c.oid::regclass::text AS name, c.relrowsecurity AS secured FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'merchant_id' AND NOT a.attisdropped
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1"""
_IS_ON = (
    "SELECT coalesce((SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass('public.orders')), false)"
)
# None: every merchant's.
_scope: ContextVar[UUID | None] = ContextVar("merchant", default=None)


def narrow(merchant_id: UUID) -> None:
    """From here on this request sees one merchant's rows, where row-level security is on."""
    _scope.set(merchant_id)


def widen() -> None:
    """A request begins: it is nobody's yet. One that was sent ahead on the same connection would go on as the last."""
    if _scope.get() is not None:
        _scope.set(None)


@contextlib.contextmanager
def everyone() -> Iterator[None]:
    """Inside, statements see every merchant's rows again: for what is asked about a consumer, not a merchant."""
    before = _scope.set(None)
    try:
        yield
    finally:
        _scope.reset(before)


async def is_on(connection: asyncpg.Connection) -> bool:
    """Whether this database narrows."""
    return bool(await connection.fetchval(_IS_ON))


async def turn(connection: asyncpg.Connection, *, on: bool) -> list[str]:
    """Turn it on or off for every table of a merchant's rows, as their owner; answers which tables that changed."""
    changed = []
    async with connection.transaction():
        await connection.execute("SET LOCAL lock_timeout = '2s'")
        for row in await connection.fetch(_TABLES):
            name = row["name"]
            if row["secured"] is on:
                continue
            if on:
                policy = f"CREATE POLICY merchant ON {name} TO cuota_app USING ({_OURS}) WITH CHECK ({_OURS})"
                await connection.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY; {policy}")
            else:
                off = f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY"
                await connection.execute(f"DROP POLICY IF EXISTS merchant ON {name}; {off}")
            changed.append(name)
    return changed


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4) + body


def _sql(merchant_id: UUID | None) -> str:
    return f"SET {SETTING} = '{merchant_id or EVERYONE}'"


def _set(merchant_id: UUID | None) -> bytes:
    """Parse, bind and execute of a SET, without a sync: it is answered and committed with the statement that follows."""
    parse = _message(b"P", b"\0" + _sql(merchant_id).encode() + b"\0\0\0")
    return parse + _message(b"B", b"\0\0" + b"\0\0" * 3) + _message(b"E", b"\0" + b"\0" * 4)


class Narrowed(Honest):
    """A session whose statements are narrowed to the merchant of the request that they belong to."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # What the server's setting is, where that is certain.
        self._merchant: UUID | None = None
        self._certain = False

    async def _do_execute(
        self, query: str, executor: Callable[..., Awaitable[Any]], *arguments: Any, **more: Any
    ) -> Any:
        async def narrowed(statement: Any, timeout: float | None) -> Any:  # noqa: ASYNC109 - the driver's
            wanted, inside = _scope.get(), self.is_in_transaction()
            if inside or not self._certain or wanted != self._merchant:
                self._transport.write(_set(wanted))
            self._certain = False
            try:
                found = await executor(statement, timeout)
            except Exception as problem:
                # Refused by the driver itself, perhaps before it wrote anything: an answer is on its way that it does not await.
                if getattr(problem, "severity", None) is None:
                    self.terminate()
                raise
            # A transaction may be rolled back, and this with it.
            self._merchant, self._certain = wanted, not inside
            return found

        return await super()._do_execute(query, narrowed, *arguments, **more)

    async def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109
        """As asyncpg's. What has no arguments goes another way, in one text with the setting."""
        if not arguments and not self.is_in_transaction():
            self._certain = False
            query = f"{_sql(_scope.get())}; {query}"
        tag: str = await super().execute(query, *arguments, timeout=timeout)
        return tag
