"""The limit of the database: pgbench with the same statements that the service sends.

The statements are recorded while the service's own flows run once, so they cannot become outdated. Values that differ
between requests become expressions of pgbench's counter; the others become parameters.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from bench.bare import MERCHANT
from bench.work import CAPTURED_PREFIX, CREATED_PREFIX, ORDER_JSON, order_id, order_id_sql
from cuota import config
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.db.embedded.server import binaries
from cuota.db.order import orders
from cuota.db.pool import SESSION, Pool
from cuota.flows.order.capture_order import capture_order
from cuota.flows.order.create_order import create_order
from cuota.flows.order.refund_order import refund_order
from cuota.run import runtime
from cuota.web.api.order_body import read_order_body
from cuota.web.body import parse_object

THREADS = 2


@dataclass
class StatementRecorder:
    """Wraps a pool, or a session of it, and records its statements."""

    inner: Any
    asked: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    async def fetchrow(self, sql: str, *values: Any) -> Any:
        self.asked.append((sql, values))
        return await self.inner.fetchrow(sql, *values)

    async def fetch(self, sql: str, *values: Any) -> Any:
        self.asked.append((sql, values))
        return await self.inner.fetch(sql, *values)

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[StatementRecorder]:
        async with self.inner.session() as connection:
            yield StatementRecorder(connection, self.asked)


@dataclass(frozen=True)
class Script:
    """A pgbench script with its parameters, and the number of its statements."""

    text: str
    parameters: dict[str, str]
    statements: int


async def record(settings: config.Settings, where: dict[str, Any], merchant_id: UUID) -> dict[str, Script]:
    """Return one script for each operation that sends statements, and `save` for a capture without its read.

    Uses up order 1 of both pools.
    """
    model, whole = order_id(1), order_id(1, CAPTURED_PREFIX)
    async with runtime.opened(settings, where, pool_size=2) as opened:
        pool = StatementRecorder(opened.pool)
        # The recorder has every method of the pool that these flows call.
        context = replace(opened, pool=cast("Pool", pool))
        merchant = replace(MERCHANT, merchant_id=merchant_id)
        body = read_order_body(parse_object(ORDER_JSON), merchant, https_only=False)
        created = await create_order(context, merchant, body)
        create, pool.asked = pool.asked, []
        await orders.read_record(pool, merchant_id, model)
        read, pool.asked = pool.asked, []
        moved = await capture_order(
            context, merchant_id, model, MovementRequest(MovementKind.CAPTURE, "bench", 2500)
        )
        capture, pool.asked = pool.asked, []
        back = await refund_order(
            context, merchant_id, whole, MovementRequest(MovementKind.REFUND, "bench", 2500)
        )
        refund = pool.asked
    new: dict[Any, str] = {
        created.order_id: order_id_sql(":n", CREATED_PREFIX),
        created.token: "md5(:n::text)::uuid",
    }
    key = "('pgbench-' || :n::bigint)"
    same: dict[Any, str] = {model: order_id_sql(":n")}
    captured: dict[Any, str] = {**same, moved.movement_id: "md5(:n::text)::uuid", "bench": key}
    refunded: dict[Any, str] = {
        whole: order_id_sql(":n", CAPTURED_PREFIX),
        back.movement_id: "md5(:n::text)::uuid",
        "bench": key,
    }
    return {
        "create": _script(create, new),
        "read": _script(read, same),
        "capture": _script(capture, captured),
        "save": _script(capture[-1:], captured),
        "refund": _script(refund, refunded),
        "dry run": _script(capture[:1], captured),
    }


def _script(asked: list[tuple[str, tuple[Any, ...]]], changing: dict[Any, str]) -> Script:
    # Each client has its own counter. Together they use every number from :first on once, in order.
    lines = ["\\set n :first + :i * :clients + :client_id", "\\set i :i + 1"]
    parameters: dict[str, str] = {}

    def place(value: Any) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, list) and any(_is_in(item, changing) for item in value):
            return f"ARRAY[{', '.join(place(item) for item in value)}]"
        if _is_in(value, changing):
            return changing[value]
        name = f"p{len(parameters)}"
        parameters[name] = _text(value)
        return f":{name}"

    for sql, values in asked:
        parts = re.split(r"\$(\d+)", sql)
        parts[1::2] = [place(values[int(number) - 1]) for number in parts[1::2]]
        filled = "".join(parts)
        lines.append(" ".join(filled.split()) + ";")
    return Script("\n".join(lines) + "\n", parameters, len(asked))


def _is_in(value: Any, changing: dict[Any, str]) -> bool:
    return not isinstance(value, list) and value in changing


def _text(value: Any) -> str:
    """Return a value in the text form that PostgreSQL reads."""
    if isinstance(value, list | tuple):
        return "{" + ",".join("NULL" if item is None else _quoted(_text(item)) for item in value) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def pgbench(
    script: Script, where: dict[str, Any], folder: Path, *, clients: int, first: int, count: int
) -> float:
    """Run a script `count` times over this many sessions, with prepared statements. Return transactions a second."""
    file = folder / "script.sql"
    file.write_text(script.text)
    given = {"first": str(first), "i": "0", "clients": str(clients), **script.parameters}
    defines = [part for name, value in given.items() for part in ("-D", f"{name}={value}")]
    options = " ".join(f"-c {name}={value}" for name, value in {**SESSION, "role": "cuota_app"}.items())
    reach = [
        "-h",
        str(where["host"]),
        "-p",
        str(where["port"]),
        "-U",
        str(where["user"]),
        str(where["database"]),
    ]
    threads = min(THREADS, clients)
    done = subprocess.run(
        [str(binaries() / "pgbench"), "-n", "-M", "prepared", "-f", str(file), "-c", str(clients),
         "-j", str(threads), "-t", str(count // clients), *defines, *reach],
        env={**os.environ, "PGOPTIONS": options}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    found = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
    if done.returncode or found is None:
        raise RuntimeError(f"pgbench failed: {done.stderr.strip()[-600:]}")
    return float(found[1])
