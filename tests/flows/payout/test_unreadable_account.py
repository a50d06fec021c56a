"""A payout whose bank account this process cannot decrypt: the operator sees why, and another machine or the right key sends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.payout.arrival import day_at_bank
from cuota.db.payout import operator_list
from cuota.db.vault import Vault
from cuota.flows.context import Context
from cuota.flows.payout.days import days_now
from cuota.flows.payout.send_payouts import UNREADABLE, send_payouts
from cuota.rails.bank.sandbox import SandboxBankRail
from support.own_service import Own
from support.payouts import make_payout, payout_row
from support.rails.bank import with_bank

OLD, NEW = b"o" * 32, b"n" * 32


def machine(own: Own, now: Callable[[], datetime], *keys: bytes) -> Context:
    """Return the context of a machine with the first of these keys as CUOTA_SECRET_KEY, and the others as CUOTA_SECRET_KEY_OLD."""
    context = replace(own.context, now=now, vault=Vault(keys[0], keys[1:], b"h" * 32))
    return with_bank(context, SandboxBankRail(context.settings.rails, context.pool, context.vault, now))


async def two_machines(own: Own, now: Callable[[], datetime]) -> tuple[Context, Context, UUID]:
    """Return a machine with both keys, one without the new key, and a payout to an account that is encrypted with the new key."""
    writes, lacks = machine(own, now, NEW, OLD), machine(own, now, OLD)
    merchant_id = own.merchant.merchant_id
    async with own.owner() as owner:
        await owner.execute("DELETE FROM bank_accounts WHERE merchant_id = $1", merchant_id)
    return writes, lacks, await make_payout(writes, merchant_id)


async def test_a_payout_to_an_account_of_another_key_is_listed_and_sent_by_a_machine_with_the_key(
    own: Own,
) -> None:
    at = own.context.now()

    def now() -> datetime:
        return at

    writes, lacks, payout_id = await two_machines(own, now)
    assert await send_payouts(lacks) == 1
    row = await payout_row(lacks, payout_id)
    assert (row["status"], row["problem"]) == ("created", UNREADABLE)
    assert await operator_list.count_troubled(lacks.pool, days_now(lacks)) == 1
    at = row["try_at"] + timedelta(seconds=1)
    assert await send_payouts(writes) == 1
    row = await payout_row(writes, payout_id)
    assert (row["status"], row["problem"]) == ("sent", None)


async def test_after_days_without_the_key_the_payout_is_sent_for_a_day_to_come(own: Own) -> None:
    at = own.context.now()

    def now() -> datetime:
        return at

    writes, lacks, payout_id = await two_machines(own, now)
    for tries in range(1, 20):
        assert await send_payouts(lacks) == 1
        row = await payout_row(lacks, payout_id)
        assert (row["status"], row["problem"], row["tries"]) == ("created", UNREADABLE, tries)
        assert timedelta(0) < row["try_at"] - at <= timedelta(hours=1)
        at = row["try_at"] + timedelta(hours=6)
    assert await send_payouts(writes) == 1
    row = await payout_row(writes, payout_id)
    assert (row["status"], row["problem"]) == ("sent", None)
    assert row["released_arrival"] > day_at_bank(at)
