"""`cuota keys rewrap`: encrypts again, with the current key, everything that an old key encrypted, while the service runs.

No progress is stored, because each encrypted text names its key. After an interruption, run the command again: it skips the
texts that the current key has encrypted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from cuota.core.refusal import Refused
from cuota.db import sealed
from cuota.db.pool import BUSY, GONE, Row
from cuota.db.sealed import HASH_KEY, SESSION_NAME, Sealed
from cuota.db.session import Session
from cuota.db.vault import Vault, WrongKey

# Another process may still write with an old key in a column that was already done. So repeat until a round finds nothing.
MOST_ROUNDS = 5
_TRIES = 20
_REST = 0.25

ResultT = TypeVar("ResultT")
ReportRewrapped = Callable[[str, int, int], None]


@dataclass
class Rewrapped:
    """The result. `unreadable` names the texts that no key decrypts; `others` counts sessions of processes with another key."""

    key_id: str
    held: int = 0
    rewrapped: int = 0
    left: int = 0
    unreadable: list[str] = field(default_factory=list)
    others: dict[str, int] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """True if nothing needs an old key any more."""
        return not self.left and not self.unreadable and not self.others


async def rewrap(
    session: Session, vault: Vault, places: Sequence[tuple[Session, Sealed]], tell: ReportRewrapped
) -> Rewrapped:
    """Encrypt every column in `places` with the current key. Each column comes with the session that may change it.

    `tell` is called with a column's name, the number of texts seen, and the total number.
    The hash key is last: without its key no process starts. So an old key that is removed before the end is noticed at once.
    Nothing is written while a process with another key is connected, because it might not be able to read the new texts.
    """
    others = await sealed.other_sessions(session, vault.key_id)
    if others:
        return Rewrapped(vault.key_id, others=others)
    total = 0
    ordered = sorted(places, key=lambda each: each[1].table == HASH_KEY)
    for _ in range(MOST_ROUNDS):
        found = Rewrapped(vault.key_id, rewrapped=total)
        for by, place in ordered:
            await _column(by, vault, place, found, tell)
        total = found.rewrapped
        if not found.left:
            break
    found.others = await sealed.other_sessions(session, vault.key_id)
    return found


async def _column(
    session: Session, vault: Vault, place: Sealed, found: Rewrapped, tell: ReportRewrapped
) -> None:
    name, seen, after = f"{place.table}.{place.column}", 0, None
    held = await _patiently(partial(sealed.count, session, place))
    while rows := await _patiently(partial(sealed.page, session, place, after)):
        after = rows[-1]
        old = _old(vault, place, rows, found)
        written = await _patiently(partial(sealed.replace, session, place, old)) if old else 0
        seen += len(rows)
        found.held += len(rows)
        found.rewrapped += written
        # Texts that were written in this round count as remaining, until the next round has found all of them
        # unchanged.
        found.left += len(old)
        tell(name, seen, max(held, seen))


def _old(vault: Vault, place: Sealed, rows: list[Row], found: Rewrapped) -> list[tuple[Row, bytes]]:
    """Return the rows that an old key encrypted, each with its new text."""
    old = []
    for row in rows:
        bound, text = place.bound(row), bytes(row["text"])
        try:
            if not vault.is_current(text, bound):
                old.append((row, vault.rewrap(text, bound)))
        except WrongKey:
            if not place.lasting:
                continue
            key = " ".join(str(row[name]) for name, _ in place.key)
            found.unreadable.append(f"{place.table}.{place.column} {key}")
    return old


async def _patiently(step: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Run a step. If another session has locked a row, wait and retry, so that the service is not delayed.

    A step is also repeated if the connection was lost: it reads, or it writes only the rows that are still unchanged.
    """
    for _ in range(_TRIES - 1):
        try:
            return await step()
        except (Refused, *BUSY, *GONE):
            await asyncio.sleep(_REST)
    return await step()


def who(name: str) -> str:
    """Describe the process of a database session."""
    if name.startswith(SESSION_NAME):
        return f"a process that encrypts with key {name.removeprefix(SESSION_NAME)}"
    return "a process of an earlier release"
