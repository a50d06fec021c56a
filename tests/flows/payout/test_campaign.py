"""Random captures, refunds and adjustments over many days: lines, payouts and ledger agree to the cent with a small model."""

from __future__ import annotations

import random
import secrets
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cuota.core import money
from cuota.core.ledger import Account
from cuota.core.payout.cutoff import pays_at
from cuota.core.payout.terms import PayoutSchedule, SettlementTerms
from cuota.db.payout.books import balances
from cuota.db.verify.recalculate import verify
from cuota.flows.payout.adjust_merchant import adjust_merchant
from support.db.settled import (
    LINES,
    PAYOUTS,
    SETTLEMENT,
    closed,
    cutoff_of,
    give_account,
    give_terms,
    rows,
    settled,
)
from support.long_run import LONG
from support.makers import Merchant
from support.own_service import Own

OPERATIONS, DAYS = (100_000, 90) if LONG else (240, 16)


@dataclass
class Model:
    """What a merchant must be paid, computed without the database: a list of payouts, and what is still open."""

    merchant: Merchant
    terms: SettlementTerms
    open_net: int = 0
    open_moved: int = 0
    held: deque[tuple[datetime, int]] = field(default_factory=deque)
    payouts: list[int] = field(default_factory=list)
    total: int = 0
    operations: int = 0
    # Order, what may still be captured, what may still be refunded.
    orders: list[list[Any]] = field(default_factory=list)

    def changed(self, net: int, *, moved: bool = True) -> None:
        self.open_net += net
        self.total += net
        self.operations += 1
        if moved:
            self.open_moved += net

    def close(self, cutoff: datetime) -> None:
        if not pays_at(self.terms, cutoff):
            return
        due = [item for item in self.held if item[0] <= cutoff]
        released = sum(amount for _, amount in due)
        kept = money.share(max(0, self.open_moved), self.terms.reserve, 10_000)
        amount = self.open_net + released - kept
        pays = amount > 0 and amount >= self.terms.minimum
        if not pays and not (amount <= 0 < amount + kept):
            return
        for item in due:
            self.held.remove(item)
        if kept:
            self.held.append((cutoff + timedelta(days=self.terms.reserve_days), kept))
        self.open_net, self.open_moved = (0 if pays else amount), 0
        if pays:
            self.payouts.append(amount)

    @property
    def reserved(self) -> int:
        return sum(amount for _, amount in self.held)


async def operate(own: Own, model: Model, chance: random.Random) -> None:
    """Do one random thing with the merchant's money through the API, and tell the model."""
    merchant = model.merchant
    what = chance.choices(("capture", "refund", "adjust"), (10, 6, 1))[0]
    if what == "adjust":
        net = chance.choice((-1, 1)) * chance.randint(1, 5000)
        await adjust_merchant(own.context, merchant.name, net, "By hand")
        model.changed(net, moved=False)
        return
    column = 1 if what == "capture" else 2
    possible = [each for each in model.orders if each[column]]
    if not possible:
        order = await merchant.approved("1000.00")
        record = await merchant.read(order)
        captured = money.cents_of(str(record["capturedAmount"]))
        model.orders.append([order, 100_000 - captured, captured])
        if captured:
            model.changed(captured)
        return
    chosen = chance.choice(possible)
    cents = min(chosen[column], chance.choice((1, chance.randint(1, 500), chance.randint(1, 20_000))))
    answer = await merchant.move(chosen[0], what, money.text_of(cents), secrets.token_hex(8))
    assert answer.status_code == 200, answer.text
    chosen[column] -= cents
    chosen[2] += cents if what == "capture" else 0
    model.changed(cents if what == "capture" else -cents)


async def reach(own: Own, models: dict[UUID, Model], until: datetime) -> None:
    """Close every cutoff up to a time, of all merchants, each at its own instant."""
    while True:
        for model in models.values():
            await settled(own.context, model.merchant.merchant_id)
        cutoffs = {merchant_id: await cutoff_of(own, merchant_id) for merchant_id in models}
        coming = [(at, merchant_id) for merchant_id, at in cutoffs.items() if at is not None and at <= until]
        if not coming:
            break
        cutoff, merchant_id = min(coming)
        own.service.clock.ahead += max(timedelta(0), cutoff - own.service.clock.now())
        assert await closed(own.context, merchant_id) == 1
        models[merchant_id].close(cutoff)
    own.service.clock.ahead += max(timedelta(0), until - own.service.clock.now())


async def test_lines_payouts_and_ledger_agree_to_the_cent_over_many_days(own: Own) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    begun = own.service.clock.now()
    daily = SettlementTerms(1, begun, minimum=2500, reserve=750, reserve_days=3, time_zone="Asia/Kathmandu")
    weekly = SettlementTerms(1, begun, payout=PayoutSchedule.WEEKLY, reserve=10_000, reserve_days=2)
    pairs = ((own.merchant, daily), (own.auto_merchant, weekly))
    models = {merchant.merchant_id: Model(merchant, terms) for merchant, terms in pairs}
    for merchant_id, model in models.items():
        await give_account(own, merchant_id)
        await give_terms(
            own, merchant_id, payout=model.terms.payout.value, minimum=model.terms.minimum, reserve=model.terms.reserve,
            reserve_days=model.terms.reserve_days, time_zone=model.terms.time_zone,
        )  # fmt: skip
    for day in range(DAYS):
        for _ in range(OPERATIONS // DAYS):
            await operate(own, chance.choice(list(models.values())), chance)
        await reach(own, models, begun + timedelta(days=day + 1))
        if day % 13 == 12:
            # An authorization ends after 13 days.
            for model in models.values():
                model.orders.clear()
    await agree(own, models)


async def agree(own: Own, models: dict[UUID, Model]) -> None:
    """Compare lines, payouts, totals and the trial balance with the model, of each merchant and together."""
    for merchant_id, model in models.items():
        payouts, lines = await rows(own, PAYOUTS, merchant_id), await rows(own, LINES, merchant_id)
        assert [row["amount"] for row in payouts] == model.payouts
        (held,) = await rows(own, SETTLEMENT, merchant_id)
        assert (held["open_net"], held["reserved"]) == (model.open_net, model.reserved)
        assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
        for row in payouts:
            paid = lines[row["first_line"] - 1 : row["last_line"]]
            assert sum(line["net"] for line in paid) == row["amount"]
            assert all(line["at"] < row["cutoff"] for line in paid if line["sequence"] is not None)
        assert sum(line["net"] for line in lines) == sum(model.payouts) + model.open_net
        assert model.total == sum(model.payouts) + model.open_net + model.reserved
    together = list(models.values())
    books = {
        each.account: each.balance
        for each in await balances(
            own.context.pool, datetime.max.replace(tzinfo=own.service.clock.now().tzinfo)
        )
    }
    assert sum(books.values()) == 0
    assert -books[Account.MERCHANT_PAYABLE] == sum(model.open_net for model in together)
    assert -books[Account.MERCHANT_RESERVE] == sum(model.reserved for model in together)
    assert -books[Account.PAYOUTS_IN_TRANSIT] == sum(sum(model.payouts) for model in together)
    assert (await verify(own.context.pool)).disagreements == []
    assert all(model.payouts for model in together)
