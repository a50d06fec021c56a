"""The two logs of actions grow without a limit. What reads them for one order or one subject does not read the rest."""

from __future__ import annotations

from uuid import uuid4

import pytest

from cuota.core.order.id_bounds import BEYOND
from cuota.db.desk import audit
from cuota.db.operator import operator_log
from support.db.long_logs import audited, logged
from support.db.rows_read import rows_read_by
from support.own_service import Own

FEW, MANY = 3, 2000


@pytest.mark.plain_postgresql("the test reads the statistics of one PostgreSQL server")
async def test_the_entries_of_one_order_are_read_without_the_rest_of_the_audit_log(own: Own) -> None:
    merchant_id, order_id = own.merchant.merchant_id, uuid4()
    pool = own.context.pool
    await audited(pool, merchant_id, "Ana", range(1, 1 + FEW), order_id)
    await audited(pool, merchant_id, "Bo", range(100, 100 + MANY), uuid4())
    read = await rows_read_by(own, lambda session: audit.of_order(session, merchant_id, order_id, 50))
    assert read < MANY / 10
    found = await audit.of_order(pool, merchant_id, order_id, 50)
    assert [each.entry_id.int & 0xFF for each in found] == [3, 2, 1]


@pytest.mark.plain_postgresql("the test reads the statistics of one PostgreSQL server")
async def test_the_entries_about_one_subject_are_read_without_the_rest_of_the_operator_s_log(
    own: Own,
) -> None:
    about = uuid4()
    pool = own.context.pool
    await logged(pool, "Ana", range(1, 1 + FEW), about)
    await logged(pool, "Bo", range(100, 100 + MANY), uuid4())
    read = await rows_read_by(own, lambda session: operator_log.page(session, BEYOND, 50, about=about))
    assert read < MANY / 10
    assert len(await operator_log.page(pool, BEYOND, 50, about=about)) == FEW


async def test_a_search_of_a_log_says_where_it_stopped_and_continues_there(own: Own) -> None:
    pool, merchant_id = own.context.pool, own.merchant.merchant_id
    for actor, numbers in (("Ana", range(1, 2)), ("Bo", range(2, 2 + audit.SCANNED))):
        await audited(pool, merchant_id, actor, numbers)
        await logged(pool, actor, numbers)
    assert await audit.page(pool, merchant_id, BEYOND, 50, actor="ana") == []
    last = await audit.last_scanned(pool, merchant_id, BEYOND)
    assert last is not None
    assert [each.actor for each in await audit.page(pool, merchant_id, last, 50, actor="ana")] == ["Ana"]
    assert await audit.last_scanned(pool, merchant_id, last) is None
    assert await operator_log.page(pool, BEYOND, 50, actor="ana") == []
    last = await operator_log.last_scanned(pool, BEYOND)
    assert last is not None
    assert [each.actor for each in await operator_log.page(pool, last, 50, actor="ana")] == ["Ana"]
    assert await operator_log.last_scanned(pool, last) is None
