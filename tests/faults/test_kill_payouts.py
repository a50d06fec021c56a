"""`kill -9` of a worker at random moments while batches close and payouts go to the bank: each payout is paid once.

The suite kills a few times. `make faults` kills 200 times; FAULTS_SEED repeats its moments.
"""

from __future__ import annotations

import os
import random
import signal
import time
from uuid import uuid4

import pytest

from support.faults.served import until
from support.faults.struck_shop import Shop, struck_shop
from support.long_run import LONG, seed_of_campaign

pytestmark = pytest.mark.faults

KILLS = 200 if LONG else 8
CENTS = 4711
MERCHANT = "SELECT merchant_id::text FROM bank_accounts ORDER BY created_at LIMIT 1"
EARN = """SELECT post_merchant_transfer($1::text::uuid, 'adjustment', $2::text::uuid, 'losses', 'merchant_payable', 4711, 'USD',
    now() + (SELECT ahead FROM sandbox_clock), 'adjustment', 4711)"""
PAID = "SELECT sum(amount)::bigint = $1 AND bool_and(status = 'paid') FROM payouts"
BOOKS = """SELECT (SELECT count(*) FROM payouts) AS payouts,
    (SELECT count(*) FROM bank_simulator.orders b JOIN payouts p USING (payout_id) WHERE p.amount = b.amount) AS at_bank,
    (SELECT count(*) FROM bank_simulator.orders) AS all_at_bank,
    (SELECT sum(amount)::bigint FROM bank_simulator.orders) AS paid,
    (SELECT count(*) FROM events WHERE type = 'payout.paid') AS told,
    (SELECT sum(amount)::bigint FROM merchant_transfers WHERE posting = 'payout_paid') AS posted"""


def test_each_payout_is_paid_once_however_often_and_whenever_a_worker_is_killed() -> None:
    chance = random.Random(seed_of_campaign())
    with struck_shop() as shop:
        shop.later("1 second")
        merchant = shop.books.one(MERCHANT)
        for _ in range(KILLS):
            shop.books.rows(EARN, merchant, str(uuid4()))
            # The next cutoff passes, and the bank pays the payouts that were sent before.
            shop.later("1 day")
            time.sleep(chance.uniform(0, 1.5))
            kill_a_worker(shop, chance)
        earned = KILLS * CENTS
        for _ in range(12):
            # The leases of claims end, the last cutoff passes, and the bank pays.
            shop.later("1 day")
            until(lambda: len(shop.service.workers()) == 2)
            time.sleep(1)
        shop.until(PAID, earned)
        (found,) = shop.books.rows(BOOKS)
        count = found["payouts"]
        assert tuple(found.values()) == (count, count, count, earned, count, earned)
        shop.verified()
        assert shop.service.run("books").returncode == 0


def kill_a_worker(shop: Shop, chance: random.Random) -> None:
    """Kill one of the workers; the parent starts another one."""
    until(shop.service.workers)
    os.kill(chance.choice(shop.service.workers()), signal.SIGKILL)
