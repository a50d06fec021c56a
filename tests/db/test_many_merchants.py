"""An operator may have thousands of merchants with hundreds of payouts and disputes each. A list reads about the rows that it shows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest

from cuota.commands import payouts as command
from cuota.core.desk.sort import DISPUTE_SORT_WORDS
from cuota.core.dispute.dispute import DisputeStatus
from cuota.core.payout.payout import PayoutStatus
from cuota.db.desk import figures, sorted_lists
from cuota.db.dispute import listing
from cuota.db.dispute import operator_list as dispute_list
from cuota.db.payout import operator_list
from support.db.rows_read import rows_read_by
from support.own_service import Own

MANY, SHOWN = 2000, 10
START = datetime(2026, 1, 1, tzinfo=UTC)
# Paid payouts, one a minute, the first at $2.
_PAYOUTS = """INSERT INTO payouts (merchant_id, payout_id, number, status, amount, currency, first_line, last_line, account_id, cutoff,
        closed_at, arrival_date)
    SELECT merchant_id, gen_random_uuid(), n, 'paid', 100, 'USD', n, n, account_id, $2, $2::timestamptz + n * interval '1 minute', $3
    FROM bank_accounts, generate_series(1, $4::int) n WHERE merchant_id = $1"""
_TROUBLE = """UPDATE payouts SET status = 'sent', try_at = now() WHERE merchant_id = $1 AND number = 1"""
# The ids of the disputes increase with time.
_DISPUTES = """INSERT INTO disputes (merchant_id, dispute_id, order_id, kind, reason, status, amount, withheld, opened_by, opened_at,
        respond_by, reminded, final)
    SELECT $1, ('00000000-0000-7000-8000-' || lpad(to_hex($3::int + n), 12, '0'))::uuid, gen_random_uuid(), 'dispute', 'not_received',
        'open', 100, 0, 'consumer', $2::timestamptz + n * interval '1 minute', $2, false, false FROM generate_series(1, $4::int) n"""
pytestmark = pytest.mark.plain_postgresql("the test reads the statistics of one PostgreSQL server")


async def with_payouts(own: Own) -> tuple[UUID, UUID]:
    """Give a merchant 5 payouts, and another one MANY newer ones. Return both merchants."""
    few, many = own.merchant.merchant_id, own.auto_merchant.merchant_id
    for merchant_id, count, start in ((few, 5, START), (many, MANY, START + timedelta(days=1))):
        async with own.owner() as owner:
            await owner.execute("SET session_replication_role = replica")
            await owner.execute(_PAYOUTS, merchant_id, start, date(2026, 1, 5), count)
    return few, many


async def test_the_payouts_of_a_merchant_are_listed_without_those_of_the_others(own: Own) -> None:
    few, _ = await with_payouts(own)
    read = await rows_read_by(own, lambda session: operator_list.payouts_of(session, few, None, SHOWN))
    assert read < MANY / 10
    found = await operator_list.payouts_of(own.context.pool, few, None, SHOWN)
    assert [each.number for each in found] == [5, 4, 3, 2, 1]


async def test_a_late_page_of_all_payouts_and_a_rare_status_do_not_read_the_newer_payouts(own: Own) -> None:
    few, _ = await with_payouts(own)
    pool, late = own.context.pool, (START + timedelta(days=1), UUID(int=0))
    read = await rows_read_by(own, lambda session: operator_list.payouts(session, None, SHOWN, late))
    assert read < MANY / 10
    assert {each.merchant_id for each in await operator_list.payouts(pool, None, SHOWN, late)} == {few}
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(_TROUBLE, few)
    read = await rows_read_by(own, lambda session: operator_list.payouts(session, PayoutStatus.SENT, SHOWN))
    assert read < MANY / 10
    assert [each.number for each in await operator_list.payouts(pool, PayoutStatus.SENT, SHOWN)] == [1]


async def test_a_nightly_job_notices_a_late_payout_behind_more_newer_ones_than_are_listed(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = await with_payouts(own)
    monkeypatch.setattr(command, "MOST_SHOWN", 3)
    assert (await command.read_payouts(own.context, None, None)).older == []
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(_TROUBLE, few)
    seen = await command.read_payouts(own.context, None, None)
    assert {each.merchant_id for each in seen.payouts} == {many}
    assert [(each.merchant_id, each.number) for each in seen.older] == [(few, 1)]
    assert (await command.read_payouts(own.context, None, PayoutStatus.PAID)).older == []
    assert [
        each.number for each in (await command.read_payouts(own.context, None, PayoutStatus.SENT)).payouts
    ] == [1]


async def with_disputes(own: Own) -> tuple[UUID, UUID]:
    """Give a merchant 5 disputes, and another one MANY newer ones. Return both merchants."""
    few, many = own.merchant.merchant_id, own.auto_merchant.merchant_id
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(_DISPUTES, few, START, 0, 5)
        await owner.execute(_DISPUTES, many, START + timedelta(days=1), 10, MANY)
    return few, many


async def test_the_disputes_of_a_merchant_and_a_late_page_are_listed_without_the_newer_ones(own: Own) -> None:
    few, _ = await with_disputes(own)
    read = await rows_read_by(
        own, lambda session: dispute_list.listed_of(session, few, DisputeStatus.OPEN, SHOWN)
    )
    assert read < MANY / 10
    late = (START + timedelta(days=1), UUID(int=0))
    read = await rows_read_by(own, lambda session: dispute_list.listed(session, None, SHOWN, late))
    assert read < MANY / 10


async def test_the_disputes_that_are_not_closed_are_listed_and_counted_without_the_closed_ones(
    own: Own,
) -> None:
    _, many = await with_disputes(own)
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        # Only the oldest one is still open.
        await owner.execute(
            "UPDATE disputes SET status = 'closed', outcome = 'won', closed_at = now() WHERE opened_at <> $1",
            START + timedelta(days=1, minutes=1),
        )
        await owner.execute("VACUUM disputes")
    is_open = (DisputeStatus.OPEN,)
    lists = [
        lambda session: listing.page(session, many, listing.NEWEST, is_open, None, SHOWN),
        lambda session: figures.waiting(session, many, START),
        *(
            lambda session, sort=sort: sorted_lists.disputes(session, many, sort, None, is_open, SHOWN)
            for sort in DISPUTE_SORT_WORDS
        ),
    ]
    for number, each in enumerate(lists):
        assert await rows_read_by(own, each) < MANY / 10, number
    pool = own.context.pool
    assert len(await listing.page(pool, many, listing.NEWEST, is_open, None, SHOWN)) == 1
    assert (await figures.waiting(pool, many, START)).disputes == 1
    for sort in DISPUTE_SORT_WORDS:
        assert len(await sorted_lists.disputes(pool, many, sort, None, is_open, SHOWN)) == 1


async def test_a_merchant_finds_the_disputes_of_one_order_without_reading_all_of_its_disputes(
    own: Own,
) -> None:
    _, many = await with_disputes(own)
    pool = own.context.pool
    (oldest,) = await pool.fetch(
        "SELECT order_id FROM disputes WHERE merchant_id = $1 ORDER BY dispute_id LIMIT 1", many
    )
    asked = many, listing.NEWEST, (), oldest["order_id"], SHOWN
    assert await rows_read_by(own, lambda session: listing.page(session, *asked)) < MANY / 10
    assert [each.order_id for each in await listing.page(pool, *asked)] == [oldest["order_id"]]
