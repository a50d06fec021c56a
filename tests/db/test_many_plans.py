"""A consumer may have thousands of plans, and a merchant millions of orders. What reads a consumer's plans reads each of them a few times."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.privacy.erasure import MOST_REASONS
from cuota.db.plan import accounts, consumer_messages
from cuota.db.privacy import ownership, person
from cuota.db.risk import history
from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.flows.risk.show_exposure import show_exposure
from cuota.web.pages.operator.consumers import MOST_SHOWN, exposure_section
from support.db.many_plans import many_plans
from support.db.rows_read import rows_read
from support.own_service import Own

# In a smaller table, all indexes look equally cheap to the planner.
FEW, MANY = 40, 1000
# For each plan: the plan, its order and its four installments.
EACH = 7
# For each plan on a page, all of its rows.
SHOWN, OF_SHOWN = 21, 20


@pytest.mark.plain_postgresql("the test reads the statistics of one PostgreSQL server")
async def test_a_page_of_plans_reads_each_plan_once_and_all_rows_of_the_shown_ones_only(own: Own) -> None:
    _, consumer_id = await many_plans(own, MANY)
    assert await rows_read(own, accounts._PAGE, consumer_id, SHOWN, 0) < EACH * MANY
    keys = await own.context.pool.fetch(accounts._PAGE, consumer_id, SHOWN, 0)
    orders = [row["order_id"] for row in keys]
    assert len(orders) == SHOWN
    assert await rows_read(own, accounts._PLANS, consumer_id, orders) < MANY + OF_SHOWN * SHOWN


@pytest.mark.plain_postgresql("the test reads the statistics of one PostgreSQL server")
async def test_a_page_of_one_consumer_s_plans_does_not_read_the_orders_of_the_others(own: Own) -> None:
    await many_plans(own, MANY)
    _, consumer_id = await many_plans(own, 2)
    assert await rows_read(own, accounts._PAGE, consumer_id, SHOWN, 0) < 2 * EACH
    orders = [row["order_id"] for row in await own.context.pool.fetch(accounts._PAGE, consumer_id, SHOWN, 0)]
    assert await rows_read(own, accounts._PLANS, consumer_id, orders) < 2 * OF_SHOWN


async def test_the_pages_have_each_plan_once_in_their_order(own: Own) -> None:
    _, consumer_id = await many_plans(own, FEW)
    pool = own.context.pool
    found = [
        each.order.order_id
        for skip in (0, 15, 30)
        for each in await accounts.plans_of(pool, consumer_id, 15, skip)
    ]
    assert len(set(found)) == len(found) == FEW
    assert found == sorted(found, key=lambda order: order.bytes)


async def test_the_operator_sees_what_is_overdue_in_all_plans_not_only_in_the_listed_ones(own: Own) -> None:
    _, consumer_id = await many_plans(own, MOST_SHOWN + FEW)
    assert (await show_exposure(own.context, consumer_id)).late == 0
    async with own.owner() as owner:
        await owner.execute("UPDATE installments SET failures = 1 WHERE number = 2")
        await owner.execute("UPDATE installments SET failures = 1 WHERE charge_id IS NOT NULL")
    exposure = await show_exposure(own.context, consumer_id)
    assert exposure.late == (MOST_SHOWN + FEW) * 2500
    assert ("of this overdue or written off", "$3,500.00") in exposure_section(exposure)["pairs"]


@pytest.mark.plain_postgresql("the test reads the statistics of one PostgreSQL server")
async def test_a_decision_and_the_list_of_messages_read_each_plan_a_few_times(own: Own) -> None:
    now, nobody = own.context.now(), UUID(int=0)
    _, consumer_id = await many_plans(own, MANY)
    assert await rows_read(own, accounts._LATE, consumer_id) < EACH * MANY
    past = nobody, nobody, consumer_id, now, now, [], []
    assert await rows_read(own, history._READ_PAST, *past) < 2 * EACH * MANY
    assert await rows_read(own, consumer_messages._PAGE, consumer_id, None, None, 5) < EACH * MANY


async def test_an_erasure_that_is_refused_names_20_of_very_many_reasons_and_counts_the_rest(own: Own) -> None:
    phone, _ = await many_plans(own, MANY)
    reasons = (await erase_consumer(own.context, phone, dry_run=True)).reasons
    # Each order has something to pay and something to capture.
    assert len(reasons) == MOST_REASONS + 1
    assert reasons[-1] == f"There are {2 * MANY - MOST_REASONS:,} more reasons like these."


async def test_an_export_reads_many_orders_with_one_statement_for_each_table(own: Own) -> None:
    phone, consumer_id = await many_plans(own, MANY)
    asked: list[str] = []
    async with own.context.pool.session() as session:
        theirs = await ownership.find(session, consumer_id, phone)
        session.add_query_logger(lambda record: asked.append(record.query))
        orders = await person.read_orders(session, theirs, consumer_id, phone)
    assert len(asked) <= MANY / person.AT_ONCE * (len(person._LISTED) + 1)
    assert len({order["order_id"] for order in orders}) == MANY
    for order in orders:
        assert [item["number"] for item in order["installments"]] == [1, 2, 3, 4]
        assert {item["order_id"] for item in order["installments"]} == {order["order_id"]}
        assert order["plan"]["order_id"] == order["order_id"]
