"""On a Citus cluster (CUOTA_TEST_CITUS), the operator's pages show the merchants of the other nodes while a node is down."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from cuota.commands.payouts import read_payouts
from cuota.core.operator.role import OperatorRole
from support.disputes import captured, disputed
from support.makers import Merchant, make_merchant
from support.own_service import Own
from support.pages.operator_staff import OperatorStaff
from support.payouts import make_payout

NODE_OF = """SELECT groupid FROM pg_dist_placement
    WHERE shardid = get_shard_id_for_distribution_column('orders', $1::uuid)"""
# Simulate a node that is down: no process listens on that port.
DOWN = "UPDATE pg_dist_node SET nodeport = nodeport - 10000 WHERE groupid = 1"
SAYS = "Node 1 of the database cannot be reached"
PAGES = {
    "/operator": False,
    "/operator/payouts": True,
    "/operator/payouts?status=created": True,
    "/operator/payouts?status=look": False,
    "/operator/payouts?status=held": False,
    "/operator/disputes": True,
    "/operator/disputes?view=decide": False,
    "/operator/risk/reviews": False,
    "/operator/risk/reviews?state=declined": False,
    "/operator/risk/velocity": False,
    "/operator/merchants": True,
    "/operator/books": False,
    "/operator/orders?q=A-1": False,
    "/operator/system": False,
}


@pytest.fixture
async def shops(on_citus: str, own: Own) -> AsyncIterator[dict[int, Merchant]]:
    """Yield one merchant of each worker, with a payout and a dispute."""
    found: dict[int, Merchant] = {}
    async with own.owner() as owner, AsyncExitStack() as stack:
        while len(found) < 2:
            made = await stack.enter_async_context(make_merchant(own.service))
            node = await owner.fetchval(NODE_OF, made.merchant_id)
            if node not in found:
                found[node] = made
                await disputed(made, await captured(made), 4000)
                await make_payout(own.context, made.merchant_id)
        yield found


@pytest.fixture
async def staff(own: Own) -> AsyncIterator[OperatorStaff]:
    async with own.service.client() as http:
        person = OperatorStaff(http, own.service)
        await person.enter(OperatorRole.OWNER)
        yield person


async def test_the_pages_of_all_merchants_leave_out_those_of_the_dead_node_and_say_so(
    own: Own, shops: dict[int, Merchant], staff: OperatorStaff
) -> None:
    for path in PAGES:
        page = await staff.open(path)
        assert page.status == 200, path
        assert SAYS not in page.text
    async with own.owner() as owner:
        await owner.execute(DOWN)
    for path, lists in PAGES.items():
        page = await staff.open(path)
        assert (page.status, SAYS in page.text) == (200, True), path
        if lists:
            assert shops[2].name in page.text, path
            # The names of the merchants are on every node, so their list is whole.
            assert (shops[1].name in page.text) == path.startswith("/operator/merchants"), path


async def test_the_list_of_payouts_names_the_dead_node_and_has_the_other_payouts(
    own: Own, shops: dict[int, Merchant]
) -> None:
    async with own.owner() as owner:
        await owner.execute(DOWN)
    seen = await read_payouts(own.context, None, None)
    assert {each.merchant_id for each in seen.payouts} == {shops[2].merchant_id}
    assert seen.every.left_out == [1]


async def test_a_page_of_a_merchant_on_the_dead_node_says_that_it_cannot_be_shown_now(
    own: Own, shops: dict[int, Merchant], staff: OperatorStaff
) -> None:
    async with own.owner() as owner:
        await owner.execute(DOWN)
    here, gone = shops[2], shops[1]
    assert (await staff.open(f"/operator/merchants/{here.merchant_id}")).status == 200
    answer: httpx.Response = await staff.http.get(f"/operator/merchants/{gone.merchant_id}")
    assert answer.status_code == 503
    assert "We cannot answer right now" in answer.text
