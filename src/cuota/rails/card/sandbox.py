"""The sandbox's card processor: real code with its own tables and transactions, like an external company."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote
from uuid import UUID, uuid5

from cuota.core.checkout.card import CardEntry
from cuota.core.money import CURRENCY
from cuota.core.plan.declines import AUTHENTICATION_REQUIRED
from cuota.core.sandbox import TEST_CARDS
from cuota.rails.card import sandbox_disputes
from cuota.rails.card.protocol import (
    APPROVED,
    PROCESSING,
    BadEvent,
    Card,
    CardAnswer,
    CardEvent,
    CardEventKind,
    CardFields,
    CardHolder,
    ChargebackReply,
    ChargeRequest,
    RefundRequest,
    UnknownToken,
    declined,
    requires_action,
)
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault

# The processor's own paths. The page's script sends the card to the first; a browser confirms a charge at the second.
TOKENS_PATH = "/sandbox-processor/cards"
CONFIRM_PATH = "/sandbox-processor/confirm"
SCRIPT_PATH = "/static/sandbox-card.js"
# How long a charge of the processing test card is in progress, and when the renewed test card is renewed.
PROCESSING_TIME = timedelta(minutes=1)
RENEWED_AFTER = timedelta(days=21)
RENEWED_LAST4 = "4444"
SIGNATURE = "x-sandbox-signature"

_BEHAVIOURS = {card.number.replace(" ", ""): card.behaviour for card in TEST_CARDS}
_REASONS = json.dumps(
    {
        "declined": "card_declined",
        "no_funds": "insufficient_funds",
        "pays_once": "card_declined",
        "lost_later": "card_lost",
    }
)

_CARD = """INSERT INTO card_simulator.cards (token, brand, last4, behaviour, fingerprint, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)"""
_KEEP = """UPDATE card_simulator.cards SET consumer_id = $2 WHERE token = $1 AND NOT forgotten
    RETURNING token, brand, last4, fingerprint"""
_FORGET = """UPDATE card_simulator.cards SET forgotten = true, fingerprint = '', consumer_id = NULL WHERE consumer_id = $1"""
# $5 says whether the consumer is at the page and can confirm.
_CHARGE = """
INSERT INTO card_simulator.charges (key, token, amount, approved, waits, reason, return_url, merchant_id, order_id, created_at)
SELECT $1, token, $3, said.word = 'approved', CASE WHEN said.word IN ('action', 'processing') THEN said.word END,
    CASE said.word WHEN 'declined' THEN $4::jsonb ->> behaviour WHEN 'unconfirmed' THEN $6 END, $5, $7, $8, $9
FROM card_simulator.cards,
    LATERAL (SELECT EXISTS (SELECT FROM card_simulator.charges c WHERE c.token = cards.token AND c.approved) AS before) paid,
    LATERAL (SELECT CASE
        WHEN behaviour IN ('pays', 'disputed', 'renewed') THEN 'approved'
        WHEN behaviour IN ('pays_once', 'lost_later') AND NOT paid.before THEN 'approved'
        WHEN behaviour = 'processing' THEN 'processing'
        WHEN behaviour = 'action_once' AND paid.before THEN 'approved'
        WHEN behaviour IN ('action', 'action_once', 'action_declined')
            THEN CASE WHEN $5::text IS NULL THEN 'unconfirmed' ELSE 'action' END
        ELSE 'declined' END AS word) said
WHERE token = $2 AND NOT forgotten ON CONFLICT (key) DO NOTHING RETURNING approved, reason, waits, created_at
"""
_FIND = "SELECT approved, reason, waits, created_at FROM card_simulator.charges WHERE key = $1"
_PROCESSED = """UPDATE card_simulator.charges SET waits = NULL, approved = true WHERE key = $1 AND waits = 'processing'
    RETURNING approved, reason, waits, created_at"""
_WAITING = """SELECT c.amount, c.return_url, k.brand, k.last4 FROM card_simulator.charges c JOIN card_simulator.cards k USING (token)
    WHERE c.key = $1 AND c.waits = 'action'"""
_CONFIRMED = """UPDATE card_simulator.charges c SET waits = NULL, approved = $2 AND k.behaviour <> 'action_declined',
        reason = CASE WHEN NOT $2 THEN 'authentication_failed' WHEN k.behaviour = 'action_declined' THEN 'card_declined' END
    FROM card_simulator.cards k WHERE k.token = c.token AND c.key = $1 AND c.waits = 'action' RETURNING c.return_url"""
_WAY_BACK = "SELECT return_url FROM card_simulator.charges WHERE key = $1 AND return_url IS NOT NULL"
_GIVEN_UP = """UPDATE card_simulator.charges SET waits = NULL, reason = 'authentication_abandoned'
    WHERE key = $1 AND waits = 'action'"""
_REFUND = """
WITH taken AS (
    INSERT INTO card_simulator.refunds (key, charge, amount)
    SELECT $1, key, $3 FROM card_simulator.charges WHERE key = $2 AND approved AND amount - refunded >= $3
    ON CONFLICT (key) DO NOTHING RETURNING charge, amount
), counted AS (
    UPDATE card_simulator.charges c SET refunded = refunded + t.amount FROM taken t WHERE c.key = t.charge RETURNING 1
)
SELECT EXISTS (SELECT FROM taken) OR EXISTS (SELECT FROM card_simulator.refunds WHERE key = $1) AS approved
"""
_RENEWED = """SELECT DISTINCT k.token, k.brand, k.fingerprint, c.merchant_id, c.order_id, k.created_at
    FROM card_simulator.cards k JOIN card_simulator.charges c USING (token)
    WHERE k.behaviour = 'renewed' AND k.created_at > $1 AND k.created_at <= $2"""


@dataclass(frozen=True, slots=True)
class WaitingCharge:
    """A charge that the consumer must confirm on the page of the simulated bank. The amount is in cents."""

    amount: int
    return_url: str
    brand: str
    last4: str


class SandboxCardRail:
    """A simulated card processor. The table of test cards says how each number behaves; any other valid number pays."""

    name = "sandbox"

    def __init__(self, settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> None:
        self._settings = settings
        self._books = books
        self._vault = vault
        self._now = now

    def fields(self) -> CardFields:
        """Return the simulated processor's script, which sends the card to the processor's own path."""
        return CardFields((SCRIPT_PATH,), {"tokens": TOKENS_PATH}, {"connect-src": ("'self'",)})

    async def tokenize(self, card: CardEntry) -> str:
        """Store how the card behaves, but never its number, and return a token for the browser.

        The processor's own path calls this.
        """
        token = f"card_{secrets.token_urlsafe(18)}"
        behaviour = _BEHAVIOURS.get(card.number, "pays")
        fingerprint = self._fingerprint(card.number)
        await self._books.execute(_CARD, token, card.brand, card.last4, behaviour, fingerprint, self._now())
        return token

    def _fingerprint(self, number: str) -> str:
        """Return the card's fingerprint. Test cards have none, because everybody uses them."""
        return "" if number in _BEHAVIOURS else self._vault.hash("card-fingerprint", number).hex()

    async def keep(self, token: str, holder: CardHolder) -> Card:
        """Return the card that was sent to the processor."""
        row = await self._books.fetchrow(_KEEP, token, holder.consumer_id)
        if row is None:
            raise UnknownToken
        return Card(row["token"], row["brand"], row["last4"], row["fingerprint"])

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        """Charge the card according to its behavior, once for each key."""
        assert asked.currency == CURRENCY
        row = await self._books.fetchrow(
            _CHARGE, asked.key, asked.token, asked.amount, _REASONS, asked.return_url, AUTHENTICATION_REQUIRED,
            asked.merchant_id, asked.order_id, self._now(),
        )  # fmt: skip
        if row is not None:
            return self._answer(asked.key, row)
        return await self.find_charge(asked) or declined("card_unknown")

    def _answer(self, key: UUID, row: Mapping[str, object]) -> CardAnswer:
        if row["waits"] == "action":
            return requires_action(f"{self._settings.public_url}{CONFIRM_PATH}/{quote(str(key))}")
        if row["waits"] == "processing":
            return PROCESSING
        return APPROVED if row["approved"] else declined(str(row["reason"]))

    async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
        """Look up the charge in the simulator's table. A charge in progress ends after its time."""
        row = await self._books.fetchrow(_FIND, asked.key)
        if (
            row is not None
            and row["waits"] == "processing"
            and row["created_at"] + PROCESSING_TIME <= self._now()
        ):
            row = await self._books.fetchrow(_PROCESSED, asked.key) or await self._books.fetchrow(
                _FIND, asked.key
            )
        return None if row is None else self._answer(asked.key, row)

    async def find_waiting(self, key: UUID) -> WaitingCharge | None:
        """Return a charge that waits for the consumer, or None. The page of the simulated bank calls this."""
        row = await self._books.fetchrow(_WAITING, key)
        return (
            None
            if row is None
            else WaitingCharge(row["amount"], row["return_url"], row["brand"], row["last4"])
        )

    async def confirm(self, key: UUID, *, passed: bool) -> str | None:
        """Record the consumer's answer on the page of the simulated bank.

        Return the return address, or None if it is too late.
        """
        row = await self._books.fetchrow(_CONFIRMED, key, passed)
        return None if row is None else str(row["return_url"])

    async def way_back(self, key: UUID) -> str | None:
        """Return the return address of the page of the simulated bank, or None for an unknown charge."""
        row = await self._books.fetchrow(_WAY_BACK, key)
        return None if row is None else str(row["return_url"])

    async def give_up(self, asked: ChargeRequest) -> CardAnswer:
        """End a charge that waits for the consumer."""
        await self._books.execute(_GIVEN_UP, asked.key)
        return await self.find_charge(asked) or declined("card_unknown")

    async def refund(self, asked: RefundRequest) -> CardAnswer:
        """Refund at most what was charged, once for each key."""
        row = await self._books.fetchrow(_REFUND, asked.key, asked.charge, asked.amount)
        return APPROVED if row and row["approved"] else declined("exceeds_charge")

    async def answer_chargeback(self, reply: ChargebackReply) -> None:
        """Record evidence, or the acceptance of the chargeback."""
        await sandbox_disputes.answer(self._books, reply, self._now())

    async def forget(self, consumer_id: UUID) -> None:
        """Forget whose cards these were. They cannot be charged any more."""
        await self._books.execute(_FORGET, consumer_id)

    def _signature(self, body: bytes) -> str:
        key = self._vault.hash("sandbox-card-events", "key")
        return hmac.new(key, body, hashlib.sha256).hexdigest()

    def sign_event(self, charge: ChargeRequest) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of a signed event that reports a changed charge."""
        event = {
            "id": f"evt_{secrets.token_urlsafe(12)}", "at": self._now().isoformat(), "charge": str(charge.key),
            "merchant": str(charge.merchant_id), "order": str(charge.order_id),
        }  # fmt: skip
        body = json.dumps(event).encode()
        return {SIGNATURE: self._signature(body)}, body

    async def read_event(self, headers: Mapping[str, str], body: bytes) -> CardEvent | None:
        """Read a message that `sign_event` made."""
        if not hmac.compare_digest(headers.get(SIGNATURE, "").encode(), self._signature(body).encode()):
            raise BadEvent("the signature is not the sandbox processor's")
        said = json.loads(body)
        return CardEvent(
            said["id"], CardEventKind.CHARGE_CHANGED, datetime.fromisoformat(said["at"]),
            UUID(said["merchant"]), UUID(said["order"]), UUID(said["charge"]),
        )  # fmt: skip

    async def events_since(self, since: datetime) -> Sequence[CardEvent]:
        """Return the events of disputes and of renewed cards that happened since then."""
        now = self._now()
        renewed = await self._books.fetch(_RENEWED, since - RENEWED_AFTER, now - RENEWED_AFTER)
        events = await sandbox_disputes.events_since(self._books, since, now)
        events += [
            CardEvent(
                f"renewed_{uuid5(row['order_id'], row['token'])}", CardEventKind.CARD_UPDATED,
                row["created_at"] + RENEWED_AFTER, row["merchant_id"], row["order_id"],
                card=Card(row["token"], row["brand"], RENEWED_LAST4, row["fingerprint"]),
            )
            for row in renewed
        ]  # fmt: skip
        return sorted(events, key=lambda event: event.at)
