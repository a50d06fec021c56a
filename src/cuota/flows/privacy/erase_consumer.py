"""Erases a consumer's personal data at the consumer's request. The consumer must not owe anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn
from uuid import UUID

from cuota.core.privacy.erasure import reasons_against
from cuota.db.deadlock import once_more
from cuota.db.pool import Connection
from cuota.db.privacy import card_erasures, erasure, ownership
from cuota.db.risk import history, reservations
from cuota.db.sandbox import forks
from cuota.flows.afterwards import afterwards
from cuota.flows.context import Context
from cuota.flows.privacy.forget_cards import forget_cards
from cuota.rails import inbox

TRIED = "This consumer's card failed in the open checkout of another person, who may still pay there. Try again when that checkout has ended."
DECIDING = "An order of this consumer is being decided right now. Try again in a minute."


@dataclass(frozen=True, slots=True)
class Erasure:
    """The result of an erasure or of its dry run.

    `reasons` say why it was refused. `forks` are copies that still contain the data.

    `waiting` are the card rails whose processors have not deleted the consumer yet; a background job tries again.
    """

    consumer_id: UUID
    reasons: list[str]
    rows: dict[str, int]
    done: bool
    erased_before: datetime | None = None
    forks: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)


class _DryRunError(Exception):
    """Rolls back the transaction of a dry run."""


def _take_back() -> NoReturn:
    raise _DryRunError


async def erase_consumer(
    context: Context, phone: str, *, dry_run: bool, refunds_settled: bool = False
) -> Erasure:
    """Erase in one transaction, or return the reasons against it. A dry run does the same and rolls back."""
    consumer_id = context.vault.consumer_id(phone)
    before = await erasure.erased_at(context.pool, consumer_id)
    copies = [fork.name for fork in await forks.read_all(context.pool)] if context.settings.sandbox else []
    found: tuple[list[str], dict[str, int]] = ([], {})

    async def erase() -> None:
        nonlocal found
        async with erasure.patient(context.pool) as connection:
            found = await _erase(context, connection, consumer_id, phone, refunds_settled=refunds_settled)
            if dry_run or found[0]:
                _take_back()

    try:
        # Two consumers that are erased at the same moment may have used the same checkouts, in any order.
        await once_more(erase)
    except _DryRunError:
        return Erasure(consumer_id, *found, done=False, erased_before=before, forks=copies)
    with afterwards("which cards of an erased consumer are deleted"):
        await forget_cards(context)
    waiting = await card_erasures.waiting(context.pool, consumer_id)
    return Erasure(consumer_id, *found, done=True, erased_before=before, forks=copies, waiting=waiting)


async def _erase(
    context: Context, connection: Connection, consumer_id: UUID, phone: str, *, refunds_settled: bool
) -> tuple[list[str], dict[str, int]]:
    # This lock prevents new charges for the consumer until the transaction ends, because a charge needs a reservation
    # first.
    await history.lock(connection, consumer_id)
    theirs = await ownership.find(connection, consumer_id, phone)
    reasons = reasons_against(await erasure.standing(connection, theirs), refunds_settled=refunds_settled)
    if theirs.tried:
        reasons.append(TRIED)
    if await reservations.count(connection, consumer_id):
        reasons.append(DECIDING)
    if reasons:
        return reasons, {}
    recipients = [phone, *await erasure.mails(connection, consumer_id)]
    # A purchase waits for this transaction before it reads the consumer's history, and then finds no consumer. A purchase of the
    # previous release may have read the history; its save is refused, because the version has changed.
    await history.changed(connection, consumer_id)
    rows = await erasure.erase(connection, theirs, consumer_id, phone, context.now())
    if any(rows.values()):
        await card_erasures.add(connection, list(context.rails.card.by_name), consumer_id, context.real_now())
    rows["inbox"] = await inbox.forget(connection, recipients)
    return [], rows
