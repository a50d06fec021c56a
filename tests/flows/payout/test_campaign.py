"""A campaign of random captures, refunds, disputes, chargebacks and adjustments over many days, with banks that pay,
return and reject.

Lines, ledger, payouts, bank files and the bank's own records agree to the cent with a small model, for each merchant
and in total. The suite runs a short campaign. `make faults` runs a long one; FAULTS_OPERATIONS sets its number of
operations, and FAULTS_SEED repeats one.
"""

from __future__ import annotations

import os
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import uuid4

from cuota.core import money
from cuota.core.ledger import Account
from cuota.core.payout.terms import PayoutSchedule, RefundFee, SettlementTerms
from cuota.db.payout import bank_accounts
from cuota.db.payout.books import balances
from cuota.db.verify.recalculate import verify
from cuota.flows.merchant.seal_bank_account import seal
from cuota.flows.payout.adjust_merchant import adjust_merchant
from cuota.flows.payout.change_bank_account import resume_payouts
from cuota.flows.payout.send_payouts import send_payouts
from support.db.settled import LINES, PAYOUTS, SETTLEMENT, closed, cutoff_of, give_terms, rows, settled
from support.dispute_campaign import NEXT, charge_back, close_due, dispute
from support.long_run import LONG, seed_of_campaign
from support.makers import make_merchant
from support.own_service import Own
from support.payout_files import amounts_in_files
from support.payout_model import Model, OrderModel
from support.payouts import CHANGED

OPERATIONS, DAYS = (int(os.environ.get("FAULTS_OPERATIONS", "20000")), 90) if LONG else (240, 16)
# What happens next. A number stands for the cutoff of the merchant with this number.
BANK, DISPUTES = -1, -2
BEHAVIOURS = ("pays", "pays", "pays", "returned", "rejected")
ENDS = {"pays": "paid", "returned": "returned", "rejected": "returned"}
BANK_DUE = "SELECT min(try_at) AS at FROM payouts"
BACK = "SELECT payout_id, amount, account_id FROM payouts WHERE merchant_id = $1 AND status = 'returned'"
AT_BANK = """SELECT p.status, p.amount, o.amount AS taken, o.behaviour FROM payouts p
    LEFT JOIN bank_simulator.orders o ON o.payout_id = p.payout_id WHERE p.merchant_id = $1 ORDER BY p.number"""


def every_kind_of_terms(begun: datetime) -> Sequence[SettlementTerms]:
    """Return terms for each refund policy, with different fees, reserves and schedules."""
    return (
        SettlementTerms(1, begun, 590, 30, RefundFee.KEPT, minimum=2500, reserve=750, reserve_days=3, time_zone="Asia/Kathmandu"),
        SettlementTerms(1, begun, 333, 0, RefundFee.RETURNED, PayoutSchedule.WEEKLY, reserve=10_000, reserve_days=2),
        SettlementTerms(1, begun, 275, 49, RefundFee.PRO_RATA, reserve=500, reserve_days=5, time_zone="America/Los_Angeles"),
        SettlementTerms(1, begun, 125, 15, RefundFee.RETURNED),
    )  # fmt: skip


@asynccontextmanager
async def merchants_of(own: Own) -> AsyncIterator[list[Model]]:
    """Give each kind of terms to a merchant, the second of which captures at once."""
    async with make_merchant(own.service) as third, make_merchant(own.service) as fourth:
        models = []
        shops = (own.merchant, own.auto_merchant, third, fourth)
        for shop, terms in zip(shops, every_kind_of_terms(own.service.clock.now()), strict=True):
            await give_terms(
                own, shop.merchant_id, percent=terms.percent, fixed=terms.fixed, refund_fee=terms.refund_fee.value,
                payout=terms.payout.value, minimum=terms.minimum, reserve=terms.reserve, reserve_days=terms.reserve_days,
                time_zone=terms.time_zone,
            )  # fmt: skip
            models.append(Model(shop, terms, uuid4()))
            await change_account(own, models[-1], "pays")
        yield models


async def change_account(own: Own, model: Model, behaviour: str) -> None:
    """Put another bank account in force, as after the delay of a change. Then paused payouts continue."""
    context, model.account = own.context, uuid4()
    sealed = seal(context.vault, model.account, CHANGED[behaviour])
    merchant_id = model.merchant.merchant_id
    await bank_accounts.add(context.pool, merchant_id, sealed, context.now(), timedelta(0), told=True)
    await resume_payouts(context)
    model.paused = False


async def operate(own: Own, model: Model, chance: random.Random) -> None:
    """Do one random operation with the merchant's money through the API, and update the model."""
    merchant = model.merchant
    what = chance.choices(("capture", "refund", "adjust", "dispute", "charge_back"), (10, 6, 1, 3, 1))[0]
    if what in {"dispute", "charge_back"}:
        if model.orders:
            await (dispute if what == "dispute" else charge_back)(own, model, chance)
        return
    if what == "adjust":
        net = chance.choice((-1, 1)) * chance.randint(1, 5000)
        await adjust_merchant(own.context, merchant.name, net, "By hand")
        model.line("adjustment", net)
        return
    left = "capturable" if what == "capture" else "refundable"
    possible = [each for each in model.orders if getattr(each, left)]
    if not possible:
        made = OrderModel(await merchant.approved("1000.00"))
        captured = money.cents_of(str((await merchant.read(made.order))["capturedAmount"]))
        model.orders.append(made)
        if captured:
            model.capture(made, captured)
        return
    chosen = chance.choice(possible)
    cents = min(getattr(chosen, left), chance.choice((1, chance.randint(1, 500), chance.randint(1, 20_000))))
    answer = await merchant.move(chosen.order, what, money.text_of(cents), secrets.token_hex(8))
    assert answer.status_code == 200, answer.text
    (model.capture if what == "capture" else model.refund)(chosen, cents)


async def reach(own: Own, models: list[Model], until: datetime, *, closes: bool = True) -> None:
    """Close every cutoff up to a time, and look up every payout at the bank, each at its own time."""
    while True:
        for model in models:
            await settled(own.context, model.merchant.merchant_id)
        ((bank_at,),) = [tuple(row) for row in await own.context.pool.fetch(BANK_DUE)]
        # A line waits until the previous cutoff is closed. While cutoffs are not closed, no operation may add a line.
        ((dispute_at,),) = [tuple(row) for row in await own.context.pool.fetch(NEXT)] if closes else [(None,)]
        coming = [(at, who) for at, who in ((bank_at, BANK), (dispute_at, DISPUTES)) if at is not None]
        for number, model in enumerate(models):
            cutoff = await cutoff_of(own, model.merchant.merchant_id) if closes else None
            coming += [] if cutoff is None else [(cutoff, number)]
        at, number = min(coming, default=(until + timedelta(1), BANK))
        if at > until:
            break
        own.service.clock.ahead += max(timedelta(0), at - own.service.clock.now())
        if number == DISPUTES:
            await close_due(own, models)
        elif number == BANK:
            await ask_bank(own, models)
        else:
            assert await closed(own.context, models[number].merchant.merchant_id) == 1
            models[number].close(at)
    own.service.clock.ahead += max(timedelta(0), until - own.service.clock.now())


async def ask_bank(own: Own, models: list[Model]) -> None:
    """Send or look up the due payouts, and update the models with the returned ones."""
    assert await send_payouts(own.context)
    for model in models:
        for row in await own.context.pool.fetch(BACK, model.merchant.merchant_id):
            if row["payout_id"] not in model.back:
                model.came_back(row["payout_id"], row["amount"], row["account_id"])


async def test_lines_ledger_payouts_and_the_bank_agree_to_the_cent_over_many_days(own: Own) -> None:
    chance, begun = random.Random(seed_of_campaign()), own.service.clock.now()
    async with merchants_of(own) as models:
        for day in range(DAYS):
            for _ in range(OPERATIONS // DAYS):
                await operate(own, chance.choice(models), chance)
            await reach(own, models, begun + timedelta(days=day + 1))
            for model in models:
                if model.paused or chance.random() < 0.1:
                    await change_account(own, model, chance.choice(BEHAVIOURS))
            if day % 13 == 12:
                # An authorization ends after 13 days.
                for model in models:
                    model.orders.clear()
        # Let the bank finish the payouts that it has.
        await reach(own, models, begun + timedelta(days=DAYS + 15), closes=False)
        for model in models:
            await agree(own, model)
        await agree_together(own, models)


async def agree(own: Own, model: Model) -> None:
    """Compare one merchant's lines, payouts and totals, and the bank's own records, with the model."""
    merchant_id = model.merchant.merchant_id
    payouts, lines = await rows(own, PAYOUTS, merchant_id), await rows(own, LINES, merchant_id)
    assert [row["amount"] for row in payouts] == model.payouts
    (held,) = await rows(own, SETTLEMENT, merchant_id)
    assert (held["open_net"], held["reserved"]) == (model.open_net, model.reserved)
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert all(line["gross"] + line["fee"] == line["net"] for line in lines)
    summed = Counter[str]()
    for line in lines:
        summed[line["type"]] += line["net"]
    assert {name: net for name, net in summed.items() if net} == {
        name: net for name, net in model.lines.items() if net
    }
    for row in payouts:
        paid = lines[row["first_line"] - 1 : row["last_line"]]
        assert sum(line["net"] for line in paid) == row["amount"]
        assert all(line["at"] < row["cutoff"] for line in paid if line["sequence"] is not None)
    assert sum(model.lines.values()) == sum(model.payouts) + model.open_net
    at_bank = await rows(own, AT_BANK, merchant_id)
    assert [row["taken"] for row in at_bank] == model.payouts
    assert [row["status"] for row in at_bank] == [ENDS[row["behaviour"]] for row in at_bank]
    arrived = sum(row["taken"] for row in at_bank if row["behaviour"] == "pays")
    assert arrived == sum(model.payouts) - sum(model.back.values())
    assert await amounts_in_files(payouts) == model.payouts


async def agree_together(own: Own, models: list[Model]) -> None:
    """Compare the trial balance of all merchants with the models, and run `cuota verify`."""
    # After a few random operations, one merchant may have a debt, but never all merchants.
    assert any(model.payouts for model in models)
    forever = datetime.max.replace(tzinfo=own.service.clock.now().tzinfo)
    books = {each.account: each.balance for each in await balances(own.context.pool, forever)}
    assert sum(books.values()) == 0
    lines = Counter[str]()
    for model in models:
        lines.update(model.lines)
    expected = {
        Account.MERCHANT_PAYABLE: sum(model.open_net for model in models),
        Account.MERCHANT_RESERVE: sum(model.reserved for model in models),
        Account.MERCHANT_FEES: -lines["fee"] - lines["fee_returned"],
        Account.PAYOUTS_IN_TRANSIT: 0,
        Account.DISPUTES_WITHHELD: -lines["dispute_withheld"] - lines["dispute_released"],
        Account.BANK_CLEARING: sum(sum(model.payouts) - sum(model.back.values()) for model in models),
    }
    assert {account: -books[account] for account in expected} == expected
    assert (await verify(own.context.pool)).disagreements == []
    assert not LONG or any(model.back for model in models)
