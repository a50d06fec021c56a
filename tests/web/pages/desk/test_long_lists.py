"""Lists that are sorted by amount or deadline leave out the oldest rows of a very long list, and say so."""

from __future__ import annotations

from cuota.core.desk.sort import Sort
from cuota.core.dispute.dispute import DisputeStatus
from cuota.db.desk import sorted_lists
from support.own_service import Own
from support.pages.staff import Staff

_DISPUTES = """INSERT INTO disputes (merchant_id, dispute_id, order_id, kind, reason, status, amount, withheld, opened_by, opened_at,
        respond_by, reminded, final)
    SELECT $1, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), 'dispute', 'not_received', 'open',
        100, 0, 'consumer', now(), now(), false, false FROM generate_series($2::int, $3::int) n"""


async def test_the_page_says_when_only_the_newest_disputes_are_sorted(own: Own) -> None:
    merchant_id, most = own.merchant.merchant_id, sorted_lists.MOST_SORTED
    async with own.owner() as owner, own.service.client() as http:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(_DISPUTES, merchant_id, 1, most)
        staff = Staff(http, own.merchant)
        await staff.enter()
        assert "are sorted in this way" not in (await staff.open("/desk/disputes?sort=deadline")).text
        await owner.execute(_DISPUTES, merchant_id, most + 1, most + 1)
        page = await staff.open("/desk/disputes?sort=deadline")
        assert "Only the newest 5,000 disputes are sorted in this way. Sort by time to see all." in page.text
        assert "are sorted in this way" not in (await staff.open("/desk/disputes")).text
    left_out = sorted_lists.leaves_out_disputes
    assert await left_out(own.context.pool, merchant_id, Sort.LARGEST, (DisputeStatus.OPEN,))
    assert not await left_out(own.context.pool, merchant_id, Sort.LARGEST, (DisputeStatus.CLOSED,))
    assert not await left_out(own.context.pool, merchant_id, Sort.OLDEST, ())


async def test_a_short_list_of_payouts_says_nothing(own: Own) -> None:
    async with own.service.client() as http:
        staff = Staff(http, own.merchant)
        await staff.enter()
        assert "are sorted in this way" not in (await staff.open("/desk/payouts?sort=largest")).text
