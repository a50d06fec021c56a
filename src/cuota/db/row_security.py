"""Row-level security by merchant: a second protection in addition to every `WHERE merchant_id = ...`. It is off by default.

If an operator turns it on, the statements of a merchant's request see only that merchant's rows. Statements across merchants
(background jobs, the account page, the risk history) see all rows. A setting of the session names the merchant. It is sent
together with the statement, so it needs no extra round trip; if row-level security is off, it is not sent.
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
# PostgreSQL evaluates this once for each statement. Without the setting, no rows are visible.
_OURS = f"""(SELECT current_setting('{SETTING}', true)) = '{EVERYONE}'
    OR merchant_id = (SELECT nullif(nullif(current_setting('{SETTING}', true), '{EVERYONE}'), '')::uuid)"""
_TABLES = """SELECT c.oid::regclass::text AS name, c.relrowsecurity AS secured FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'merchant_id' AND NOT a.attisdropped
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1"""
_IS_ON = (
    "SELECT coalesce((SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass('public.orders')), false)"
)
# None means the rows of all merchants.
_scope: ContextVar[UUID | None] = ContextVar("merchant", default=None)


def narrow(merchant_id: UUID) -> None:
    """From now on, this request sees only one merchant's rows, if row-level security is on."""
    _scope.set(merchant_id)


def widen() -> None:
    """Let this request see the rows of all merchants. Call this at the start of a request.

    Otherwise a pipelined request would keep the merchant of the previous request.
    """
    if _scope.get() is not None:
        _scope.set(None)


@contextlib.contextmanager
def everyone() -> Iterator[None]:
    """Let statements inside the block see the rows of all merchants, for questions about a consumer."""
    before = _scope.set(None)
    try:
        yield
    finally:
        _scope.reset(before)


async def is_on(connection: asyncpg.Connection) -> bool:
    """Return whether row-level security is on in this database."""
    return bool(await connection.fetchval(_IS_ON))


async def turn(connection: asyncpg.Connection, *, on: bool) -> list[str]:
    """Turn row-level security on or off for every table with merchants' rows. Return the tables that changed.

    The session must belong to the owner of the tables.
    """
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
    """Return the protocol messages of a SET without a sync, so that it commits together with the next statement."""
    parse = _message(b"P", b"\0" + _sql(merchant_id).encode() + b"\0\0\0")
    return parse + _message(b"B", b"\0\0" + b"\0\0" * 3) + _message(b"E", b"\0" + b"\0" * 4)


class Narrowed(Honest):
    """A session whose statements see only the rows of the request's merchant."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # The current value of the setting on the server, if it is known.
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
                # The driver refused the statement, perhaps before sending it. The server may still answer our SET, and the
                # driver does not expect that answer.
                if getattr(problem, "severity", None) is None:
                    self.terminate()
                raise
            # A rollback would also undo the setting.
            self._merchant, self._certain = wanted, not inside
            return found

        return await super()._do_execute(query, narrowed, *arguments, **more)

    async def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109
        """Do the same as asyncpg's method. A statement without arguments is sent together with the setting in one text."""
        if not arguments and not self.is_in_transaction():
            self._certain = False
            query = f"{_sql(_scope.get())}; {query}"
        tag: str = await super().execute(query, *arguments, timeout=timeout)
        return tag
