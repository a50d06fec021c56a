"""The declines and lost chargebacks for fraud of each card, over all plans of all merchants of this installation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cuota.core.plan.declines import MOST_ATTEMPTS
from cuota.db.session import Session

_NOTE = """INSERT INTO card_declines (card_hash, charge_hash, at, final) VALUES ($1, $2, $3, $4)
    ON CONFLICT (card_hash, charge_hash) DO NOTHING"""
_NOTE_CHARGEBACK = """INSERT INTO card_declines (card_hash, charge_hash, at, final, charged_back) VALUES ($1, $2, $3, false, true)
    ON CONFLICT (card_hash, charge_hash) DO NOTHING"""
_OF_CARD = f"""SELECT ARRAY(SELECT at FROM card_declines WHERE card_hash = $1 AND NOT charged_back
        ORDER BY at DESC LIMIT {MOST_ATTEMPTS}) AS declined_at,
    EXISTS (SELECT FROM card_declines WHERE card_hash = $1 AND final) AS final,
    EXISTS (SELECT FROM card_declines WHERE card_hash = $1 AND charged_back) AS charged_back"""
_FORGET = "DELETE FROM card_declines WHERE at < $1 AND (NOT (final OR charged_back) OR at < $2)"


@dataclass(frozen=True, slots=True)
class CardDeclines:
    """The latest times at which a card was declined.

    `final`: a decline said that the card must never be charged again. `charged_back`: a chargeback of the card was lost, because somebody
    else had used the card.
    """

    declined_at: tuple[datetime, ...] = ()
    final: bool = False
    charged_back: bool = False


async def note(session: Session, card_hash: bytes, charge_hash: bytes, at: datetime, *, final: bool) -> None:
    """Record that a charge of the card was declined. Recording the same charge again changes nothing."""
    await session.fetchrow(_NOTE, card_hash, charge_hash, at, final)


async def note_chargeback(session: Session, card_hash: bytes, charge_hash: bytes, at: datetime) -> None:
    """Record that a chargeback was lost because somebody else had used the card. Recording the same charge again changes nothing."""
    await session.fetchrow(_NOTE_CHARGEBACK, card_hash, charge_hash, at)


async def of_card(session: Session, card_hash: bytes) -> CardDeclines:
    """Return the card's declines, in one statement."""
    row = await session.fetchrow(_OF_CARD, card_hash)
    assert row is not None
    return CardDeclines(tuple(row["declined_at"]), row["final"], row["charged_back"])


async def forget(session: Session, before: datetime, final_before: datetime) -> None:
    """Delete declines that no longer count."""
    await session.fetchrow(_FORGET, before, final_before)
