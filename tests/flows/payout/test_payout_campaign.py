"""A campaign of lost answers: whatever is lost, the bank's records and ours agree at the end, payout by payout.

The suite runs a few seeds. FAULTS_LONG runs many.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from cuota.flows.payout.send_payouts import REPLACED, send_payouts
from cuota.rails.bank.protocol import BankAnswer, BankOrder
from cuota.rails.bank.sandbox import SandboxBankRail
from cuota.rails.unavailable import RailUnavailable
from support.long_run import LONG
from support.own_service import Own
from support.payouts import NUMBERS, event_types, make_payout, payout_row, postings, returned_lines
from support.rails.bank import with_bank

SEEDS = range(200) if LONG else range(3)
PAYOUTS = 12
START = datetime(2026, 11, 20, 21, 0, tzinfo=UTC)
ENDS = {"pays": "paid", "returned": "returned", "rejected": "returned", "silent": "sent"}


class LossyBank:
    """Loses calls before they arrive and answers on the way back."""

    name = "lossy"

    def __init__(self, rail: SandboxBankRail, chance: random.Random) -> None:
        self._rail, self._chance = rail, chance
        self.sent: Counter[UUID] = Counter()

    def _lose(self) -> None:
        if self._chance.random() < 0.3:
            raise RailUnavailable("lost")

    async def send(self, order: BankOrder) -> BankAnswer:
        self._lose()
        self.sent[order.payout_id] += 1
        answer = await self._rail.send(order)
        self._lose()
        return answer

    async def find(self, payout_id: UUID) -> BankAnswer | None:
        self._lose()
        answer = await self._rail.find(payout_id)
        self._lose()
        return answer


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_bank_s_records_and_ours_agree_whatever_answers_are_lost(own: Own, seed: int) -> None:
    chance, at = random.Random(seed), START
    base, merchant_id = own.context, own.merchant.merchant_id
    bank = LossyBank(SandboxBankRail(base.settings.rails, base.pool, base.vault, lambda: at), chance)
    context = with_bank(replace(base, now=lambda: at), bank)
    async with own.owner() as owner:
        await owner.execute("UPDATE bank_accounts SET effective_at = $1", START - timedelta(days=1))
    made: dict[UUID, tuple[str, int]] = {}
    for _ in range(PAYOUTS):
        behaviour, amount = chance.choice(list(NUMBERS)), chance.randint(1, 10_000_000)
        payout_id = await make_payout(context, merchant_id, amount, behaviour)
        # The payout also pays the amounts that came back before.
        made[payout_id] = (behaviour, (await payout_row(context, payout_id))["amount"])
        at += timedelta(hours=chance.randint(0, 30))
        await send_payouts(context)
    for _ in range(60):
        at += timedelta(hours=chance.randint(1, 24))
        while await send_payouts(context):
            pass
    for payout_id, (behaviour, amount) in made.items():
        row = await payout_row(context, payout_id)
        # A later payout may have another account. Then this payout comes back, if it had not reached the bank.
        reached = row["return_reason"] != REPLACED
        end = ENDS[behaviour] if reached else "returned"
        assert row["status"] == end, behaviour
        rows = await context.pool.fetch(
            "SELECT amount FROM bank_simulator.orders WHERE payout_id = $1", payout_id
        )
        assert [row["amount"] for row in rows] == [amount] * reached
        # An order that reached the bank is looked up and never sent again.
        assert bank.sent[payout_id] == reached
        assert await returned_lines(context, payout_id) == ([amount] if end == "returned" else [])
        names = [posting for posting, *_ in await postings(context, payout_id)]
        assert len(names) == len(set(names))
        told = await event_types(context, payout_id)
        assert len(told) == len(set(told))
        assert told[-1] == f"payout.{end}"
    held = await context.pool.fetch(
        """SELECT coalesce(sum(CASE WHEN debit = 'merchant_payable' THEN -amount ELSE amount END), 0)::bigint AS held
        FROM merchant_transfers WHERE merchant_id = $1 AND 'merchant_payable' IN (debit, credit)""",
        merchant_id,
    )
    lines = await context.pool.fetch("SELECT open_net FROM settlements WHERE merchant_id = $1", merchant_id)
    assert held[0]["held"] == lines[0]["open_net"]
