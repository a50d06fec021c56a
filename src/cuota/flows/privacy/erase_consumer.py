"""An operator erases a consumer who asks for it, once nothing is owed any more."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn
from uuid import UUID

from cuota.core.privacy.erasure import reasons_against
from cuota.db.pool import Connection
from cuota.db.privacy import erasure
from cuota.db.risk import history
from cuota.db.sandbox import forks
from cuota.flows.context import Context
from cuota.rails import inbox


@dataclass(frozen=True, slots=True)
class Erasure:
    """What an erasure did, or would do. `reasons`: why it was refused. `forks` hold copies of the sandbox as it was."""

    consumer_id: UUID
    reasons: list[str]
    rows: dict[str, int]
    done: bool
    erased_before: datetime | None = None
    forks: list[str] = field(default_factory=list)


class _DryRunError(Exception):
    """Undoes the transaction of a dry run."""


def _take_back() -> NoReturn:
    raise _DryRunError


async def erase_consumer(
    context: Context, phone: str, *, dry_run: bool, refunds_settled: bool = False
) -> Erasure:
    """Erase in one transaction, or say why not. A dry run does the same and takes it back."""
    consumer_id = context.vault.consumer_id(phone)
    before = await erasure.erased_at(context.pool, consumer_id)
    copies = [fork.name for fork in await forks.read_all(context.pool)] if context.settings.sandbox else []
    found: tuple[list[str], dict[str, int]] = ([], {})
    try:
        async with erasure.patient(context.pool) as connection:
            found = await _erase(context, connection, consumer_id, phone, refunds_settled=refunds_settled)
            if dry_run or found[0]:
                _take_back()
    except _DryRunError:
        return Erasure(consumer_id, *found, done=False, erased_before=before, forks=copies)
    return Erasure(consumer_id, *found, done=True, erased_before=before, forks=copies)


async def _erase(
    context: Context, connection: Connection, consumer_id: UUID, phone: str, *, refunds_settled: bool
) -> tuple[list[str], dict[str, int]]:
    # Nobody begins a charge for this consumer until all is done.
    await history.lock(connection, consumer_id)
    theirs = await erasure.find(connection, consumer_id, phone)
    reasons = reasons_against(await erasure.standing(connection, theirs), refunds_settled=refunds_settled)
    if reasons:
        return reasons, {}
    recipients = [phone, *await erasure.mails(connection, consumer_id)]
    # A purchase that read the person before waits for this transaction: it must read again, and finds nobody.
    await history.changed(connection, consumer_id)
    rows = await erasure.erase(connection, theirs, consumer_id, phone, context.now())
    rows["inbox"] = await inbox.forget(connection, recipients)
    return [], rows
