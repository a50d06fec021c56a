"""Rate limits on charges and card changes by consumers, against card testing.

An attempt is counted before the card is charged. An error while the attempt is updated afterward never changes the result of
the payment.

For an IP address only declined attempts count, because many people may share the address. Scheduled charges are not counted and
never wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.plan.asking import Subject
from cuota.core.risk.signal import SignalKind
from cuota.db.checkout import consumers
from cuota.db.plan import asks
from cuota.flows.afterwards import afterwards
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context

# A card is known to pay for this long after a payment. Somebody who tests stolen cards learns nothing more from its next payment.
JUST_PAID = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Asker:
    """The consumer who makes the attempt: a verified phone number, and an IP address if it is known."""

    phone: str
    network: str | None = None


class Limited(Problem):
    """The rate limit is reached. Nothing was charged or changed; `again_at` is when the next attempt is allowed."""

    def __init__(self, again_at: datetime) -> None:
        super().__init__(notice="There were too many payments or card changes in a short time.")
        self.again_at = again_at


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """One counted attempt."""

    subjects: dict[Subject, bytes]
    at: datetime


async def count_ask(
    context: Context, order_id: UUID, asker: Asker, card: bytes | None = None
) -> CountedAttempt:
    """Count an attempt for a plan; raise Limited. `card` is the hash of the card that will be charged."""
    subjects = _subjects(context, order_id, asker, card)
    # Concurrent attempts wait for this lock before they take a database session.
    async with context.lock(order_id):
        return await _count(context, subjects)


def _subjects(context: Context, order_id: UUID, asker: Asker, card: bytes | None) -> dict[Subject, bytes]:
    hash_of = context.vault.hash
    subjects = {
        Subject.PLAN: hash_of("asks-plan", str(order_id)),
        # The signals of orders use the same hash, so risk counts both.
        Subject.PHONE: hash_of(f"signal-{SignalKind.PHONE}", asker.phone),
    }
    if asker.network is not None:
        subjects[Subject.NETWORK] = hash_of("asks-network", asker.network)
    if card is not None:
        subjects[Subject.CARD] = card
    return subjects


async def count_next(
    context: Context, merchant_id: UUID, order_id: UUID, asker: Asker, card: bytes | None
) -> CountedAttempt:
    """Count an attempt as `count_ask` does, but beyond the rate limit allow it if the consumer has just paid with this card here.

    A card whose bank confirms each payment needs one attempt for each. The exception ends with the first decline. The limit of
    the IP address has no exception.
    """
    try:
        return await count_ask(context, order_id, asker, card)
    except Limited:
        since = context.now() - JUST_PAID
        if not await asks.has_just_paid(context.pool, merchant_id, order_id, since):
            raise
        subjects = _subjects(context, order_id, asker, card)
        others = dict(subjects)
        network = others.pop(Subject.NETWORK, None)
        at = (await _count(context, {} if network is None else {Subject.NETWORK: network})).at
        # Risk subtracts the attempts that paid from all attempts. If this one were left out, its payment would hide a failed attempt.
        await asks.ask_beyond(context.pool, others, at)
        return CountedAttempt(subjects, at)


async def count_card(context: Context, card: bytes | None) -> CountedAttempt:
    """Count an attempt for a card that was not known before; raise Limited."""
    return await _count(context, {} if card is None else {Subject.CARD: card})


async def _count(context: Context, subjects: dict[Subject, bytes]) -> CountedAttempt:
    now = context.now()
    again_at = await asks.ask(context.pool, subjects, now) if subjects else None
    if again_at is not None:
        raise Limited(again_at)
    return CountedAttempt(subjects, now)


async def note_paid(context: Context, *made: CountedAttempt) -> None:
    """Record that the card paid, so that risk does not count the attempt as a failure."""
    for ask in made:
        others: dict[Subject, bytes] = {
            subject: value for subject, value in ask.subjects.items() if subject is not Subject.NETWORK
        }
        if others:
            with afterwards("that a card paid for an attempt"):
                await asks.paid(context.pool, others, ask.at)


async def note_paid_later(context: Context, order_id: UUID, consumer_id: UUID, card: bytes | None) -> None:
    """Record that a card paid after the consumer's request had ended, for example because the consumer confirmed it at the bank."""
    with afterwards("that a card paid for an attempt"):
        consumer = await consumers.read(context.pool, consumer_id)
        if consumer is not None:
            subjects = _subjects(context, order_id, Asker(consumer.phone), card)
            await asks.paid(context.pool, subjects, context.now())


async def free_network(context: Context, ask: CountedAttempt) -> None:
    """Remove the attempt from the count of the IP address, because no card was declined.

    Many people may share the address.
    """
    if Subject.NETWORK in ask.subjects:
        network = {Subject.NETWORK: ask.subjects[Subject.NETWORK]}
        with afterwards("that an attempt does not count for its IP address"):
            await asks.give_back(context.pool, network, ask.at)


async def give_back(context: Context, ask: CountedAttempt) -> None:
    """Remove the attempt from all counts, because no card was charged."""
    with afterwards("that an attempt does not count"):
        await asks.give_back(context.pool, ask.subjects, ask.at)
