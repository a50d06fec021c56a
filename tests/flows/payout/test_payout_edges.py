"""A payout takes the edges of PAYOUT_EDGES and no others, and each edge writes its event once."""

from __future__ import annotations

import itertools
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from cuota.core.order.event import EVENT_TYPES
from cuota.core.payout.payout import PAYOUT_EDGES, PayoutStatus
from cuota.db.payout import sending
from cuota.db.payout.sending import DuePayout
from cuota.flows.payout.settle_payouts import settle_payout
from cuota.rails.bank.protocol import BankAnswer, BankState
from support.makers import Merchant
from support.own_service import Own
from support.payouts import event_types, make_payout, payout_row, postings, returned_lines

ALLOWED = {(edge.before, edge.after): edge.event for edge in PAYOUT_EDGES if edge.before is not None}
WAYS = {
    PayoutStatus.CREATED: (),
    PayoutStatus.SENT: (BankState.ACCEPTED,),
    PayoutStatus.PAID: (BankState.ACCEPTED, BankState.PAID),
    PayoutStatus.RETURNED: (BankState.ACCEPTED, BankState.RETURNED),
}
SAYS = {
    PayoutStatus.SENT: BankState.ACCEPTED,
    PayoutStatus.PAID: BankState.PAID,
    PayoutStatus.RETURNED: BankState.RETURNED,
}

# A created payout may get each of these answers.
NOWHERE = [
    (before, after)
    for before, after in itertools.product(PayoutStatus, SAYS)
    if (before, after) not in ALLOWED and before is not PayoutStatus.CREATED
]


async def at(merchant: Merchant, status: PayoutStatus) -> DuePayout:
    """Make a payout, bring it to this status, and return its claim."""
    context = merchant.service.context
    payout_id = await make_payout(context, merchant.merchant_id)
    (due,) = [
        each
        for each in await sending.claim(context.pool, context.now() + timedelta(1), 99, "sandbox")
        if each.payout_id == payout_id
    ]
    for state in WAYS[status]:
        await settle_payout(context, due, BankAnswer(state, due.amount, "R03"))
    assert (await payout_row(context, payout_id))["status"] == status
    return due


@pytest.mark.parametrize(("before", "after"), list(ALLOWED), ids=str)
async def test_an_edge_of_the_table_is_taken_and_writes_its_event(
    merchant: Merchant, before: PayoutStatus, after: PayoutStatus
) -> None:
    context, due = merchant.service.context, await at(merchant, before)
    told = await event_types(context, due.payout_id)
    state = (
        BankState.REJECTED
        if before is PayoutStatus.CREATED and after is PayoutStatus.RETURNED
        else SAYS[after]
    )
    assert await settle_payout(context, due, BankAnswer(state, due.amount, "R03")) == [after]
    assert (await payout_row(context, due.payout_id))["status"] == after
    assert await event_types(context, due.payout_id) == [*told, ALLOWED[before, after]]


@pytest.mark.parametrize(("before", "after"), NOWHERE, ids=str)
async def test_an_answer_that_leads_to_no_edge_changes_nothing(
    merchant: Merchant, before: PayoutStatus, after: PayoutStatus
) -> None:
    context, due = merchant.service.context, await at(merchant, before)
    told, posted = await event_types(context, due.payout_id), await postings(context, due.payout_id)
    assert await settle_payout(context, due, BankAnswer(SAYS[after], due.amount, "R03")) == []
    assert (await payout_row(context, due.payout_id))["status"] == before
    assert (await event_types(context, due.payout_id), await postings(context, due.payout_id)) == (
        told,
        posted,
    )


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(PayoutStatus, 2)), ids=str)
async def test_the_database_refuses_every_other_edge_in_a_hand_written_update(
    own: Own, before: PayoutStatus, after: PayoutStatus
) -> None:
    due = await at(own.merchant, before)
    async with own.owner() as owner:
        change = owner.execute("UPDATE payouts SET status = $2 WHERE payout_id = $1", due.payout_id, after)
        if (before, after) in ALLOWED:
            assert await change == "UPDATE 1"
        else:
            with pytest.raises(asyncpg.CheckViolationError, match="cannot become"):
                await change


@pytest.mark.parametrize("column", ["amount", "number", "last_line", "account_id"])
async def test_the_database_refuses_to_change_what_a_payout_pays(own: Own, column: str) -> None:
    due = await at(own.merchant, PayoutStatus.CREATED)
    new = "gen_random_uuid()" if column == "account_id" else f"{column} + 1"
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError, match="cannot change what it pays"):
            await owner.execute(f"UPDATE payouts SET {column} = {new} WHERE payout_id = $1", due.payout_id)


REPORTS = (BankState.ACCEPTED, BankState.PAID, BankState.RETURNED)


@pytest.mark.parametrize("reports", sorted(set(itertools.permutations((*REPORTS, *REPORTS[1:])))), ids=str)
async def test_a_return_is_credited_once_whatever_the_order_and_number_of_the_bank_s_reports(
    merchant: Merchant, reports: tuple[BankState, ...]
) -> None:
    context, due = merchant.service.context, await at(merchant, PayoutStatus.CREATED)
    for state in reports:
        await settle_payout(context, due, BankAnswer(state, due.amount, "R03"))
    assert (await payout_row(context, due.payout_id))["status"] == "returned"
    assert await returned_lines(context, due.payout_id) == [due.amount]
    assert await _left_in_transit(context.pool, due.payout_id) == 0
    told = await event_types(context, due.payout_id)
    assert told.count("payout.returned") == 1
    assert len(told) == len(set(told))


async def _left_in_transit(pool: asyncpg.Pool, payout_id: UUID) -> int:
    (row,) = await pool.fetch(
        """SELECT sum(CASE WHEN debit = 'payouts_in_transit' THEN amount WHEN credit = 'payouts_in_transit' THEN -amount
            ELSE 0 END)::bigint AS held FROM merchant_transfers WHERE cause = $1""",
        payout_id,
    )
    return int(row["held"])


def test_every_edge_s_event_is_an_event_type() -> None:
    assert {edge.event for edge in PAYOUT_EDGES} <= {each.name for each in EVENT_TYPES}
