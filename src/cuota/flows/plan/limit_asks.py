"""Charges and card changes that a consumer asks for are counted before a card is asked: card testing ends here.

A network address keeps only the asks in which a card was declined: many people may share it.
What is charged by schedule is not counted and never waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.order.outcome import SignalKind
from cuota.core.plan.asking import Subject
from cuota.db.plan import asks
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: a proved phone number, from a network address, where one is known."""

    phone: str
    network: str | None = None


class Limited(Problem):
    """Asked too often. Nothing was charged or changed; `again_at` is when the next ask is allowed."""

    def __init__(self, again_at: datetime) -> None:
        super().__init__(notice="Too many payments or card changes were asked for in a short time.")
        self.again_at = again_at


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """One ask as it was counted."""

    subjects: dict[Subject, bytes]
    at: datetime


def card_hash(context: Context, fingerprint: str) -> bytes | None:
    """The keyed hash by which risk knows a card; None where its rail gives no fingerprint."""
    return context.vault.hash(f"signal-{SignalKind.CARD}", fingerprint) if fingerprint else None


async def count_ask(
    context: Context, order_id: UUID, asker: Asker, card: bytes | None = None
) -> CountedAttempt:
    """Count an ask about a plan; raises Limited. `card` is the hash of the card that will be asked."""
    hash_of = context.vault.hash
    subjects = {
        Subject.PLAN: hash_of("asks-plan", str(order_id)),
        # The same hash as the signals of orders have: risk counts both.
        Subject.PHONE: hash_of(f"signal-{SignalKind.PHONE}", asker.phone),
    }
    if asker.network is not None:
        subjects[Subject.NETWORK] = hash_of("asks-network", asker.network)
    if card is not None:
        subjects[Subject.CARD] = card
    # Contenders wait here, not each with a session in hand.
    async with context.lock(order_id):
        return await _count(context, subjects)


async def count_card(context: Context, card: bytes | None) -> CountedAttempt:
    """Count an ask about a card that is known only by now; raises Limited."""
    return await _count(context, {} if card is None else {Subject.CARD: card})


async def _count(context: Context, subjects: dict[Subject, bytes]) -> CountedAttempt:
    now = context.now()
    again_at = await asks.ask(context.pool, subjects, now) if subjects else None
    if again_at is not None:
        raise Limited(again_at)
    return CountedAttempt(subjects, now)


async def note_paid(context: Context, *made: CountedAttempt) -> None:
    """The card paid: risk does not hold the ask against anybody."""
    for ask in made:
        others: dict[Subject, bytes] = {
            subject: value for subject, value in ask.subjects.items() if subject is not Subject.NETWORK
        }
        if others:
            await asks.paid(context.pool, others, ask.at)


async def free_network(context: Context, ask: CountedAttempt) -> None:
    """No card was declined. A network address may be a whole office's or a mobile carrier's: its count is given back."""
    if Subject.NETWORK in ask.subjects:
        network = {Subject.NETWORK: ask.subjects[Subject.NETWORK]}
        await asks.give_back(context.pool, network, ask.at)


async def give_back(context: Context, ask: CountedAttempt) -> None:
    """No card was asked after all."""
    await asks.give_back(context.pool, ask.subjects, ask.at)
