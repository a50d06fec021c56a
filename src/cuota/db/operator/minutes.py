"""The requests that each process answered, minute by minute. All times are of the real clock."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.core.operator.traffic import BUCKETS, Traffic, TrafficTotals
from cuota.db.session import Session

_ADD = """INSERT INTO process_minutes (at, process_id, machine, pid, version, started_at, span, memory, figures)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::json) ON CONFLICT DO NOTHING"""
_SINCE = """SELECT at, process_id, machine, pid, version, started_at, span, memory, figures::text AS figures
    FROM process_minutes WHERE at > $1 ORDER BY at, process_id LIMIT $2"""
_FORGET = "DELETE FROM process_minutes WHERE at < $1"


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the service. `process_id` is new at each start."""

    process_id: UUID
    machine: str
    pid: int
    version: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Minute:
    """The counts of a process in the `span` seconds before `at`. `memory` is in bytes, or None if it is unknown."""

    at: datetime
    process: Process
    span: float
    memory: int | None
    counted: TrafficTotals


async def add(session: Session, minute: Minute) -> None:
    """Write the counts of a process."""
    process, counted = minute.process, minute.counted
    groups = {name: [each.answers, each.errors, list(each.buckets)] for name, each in counted.groups.items()}
    await session.fetchrow(
        _ADD, minute.at, process.process_id, process.machine, process.pid, process.version, process.started_at,
        minute.span, minute.memory, json.dumps({"groups": groups, "refused": counted.refused}),
    )  # fmt: skip


async def since(session: Session, after: datetime, most: int) -> list[Minute]:
    """Return the counts that the processes wrote after this time, at most `most` rows, the oldest first."""
    return [_minute(row) for row in await session.fetch(_SINCE, after, most)]


def _minute(row: Any) -> Minute:
    at, *process, span, memory, figures = row
    found = json.loads(figures)
    groups = {
        # Another release may use other buckets, so its figures cannot be added to these figures.
        name: Traffic(answers, errors, tuple(buckets))
        for name, (answers, errors, buckets) in found["groups"].items()
        if len(buckets) == BUCKETS
    }
    return Minute(at, Process(*process), span, memory, TrafficTotals(groups, found["refused"]))


async def forget(session: Session, before: datetime) -> None:
    """Delete the rows that were written before this time."""
    await session.fetch(_FORGET, before)
