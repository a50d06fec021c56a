"""A sign-in link that is used at the same moment as a reset of the second factor: the reset ends the link or the new session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from cuota.commands.desk import OPERATOR
from cuota.core.desk.role import Role
from cuota.core.operator.role import OperatorRole
from cuota.flows.desk.change_team import invite
from cuota.flows.desk.sign_in import Place, enter, make_link
from cuota.flows.operator.change_operators import invite_operator
from cuota.flows.operator.log_action import OperatorActor
from cuota.flows.operator.operator_sign_in import enter_operator, make_operator_link
from support.db.locks import holder
from support.own_service import Own

HERE = Place("", "")
# The prefix of the tables, the person, and the use of the person's link.
Entering = tuple[str, UUID, Callable[[], Awaitable[str | None]]]


def parts_of(address: str | None) -> tuple[UUID, str]:
    assert address is not None
    *_, link_id, code = address.split("/")
    return UUID(link_id), code


async def of_merchant(own: Own) -> Entering:
    context, merchant_id = own.context, own.merchant.merchant_id
    person = await invite(
        context, merchant_id, OPERATOR, "Ana", "ana@shop.example", Role.SUPPORT, "new", mail=False
    )
    link = parts_of(await make_link(context, person, mail=False))
    return "desk", person.person_id, lambda: enter(context, merchant_id, *link, HERE)


async def of_operator(own: Own) -> Entering:
    person = await invite_operator(
        own.context, OperatorActor(None), "Ana", "ana@pay.example", OperatorRole.SUPPORT, "new", mail=False
    )
    link = parts_of(await make_operator_link(own.context, person, mail=False))
    return "operator", person.person_id, lambda: enter_operator(own.context, *link, HERE)


@pytest.mark.parametrize("make", [of_merchant, of_operator])
async def test_a_link_that_is_used_during_a_reset_opens_no_session(
    own: Own, make: Callable[[Own], Awaitable[Entering]]
) -> None:
    tables, person_id, use = await make(own)
    async with holder(own.where) as other:
        # The statements of a reset, in their order.
        await other.run(f"UPDATE {tables}_people SET factor = NULL WHERE person_id = $1", person_id)
        using = asyncio.ensure_future(use())
        await other.until_waits(using)
        await other.run(f"UPDATE {tables}_links SET ends_at = now() WHERE person_id = $1", person_id)
        await other.run(f"DELETE FROM {tables}_sessions WHERE person_id = $1", person_id)
    assert await using is None
    async with own.owner() as connection:
        assert await connection.fetchval(f"SELECT count(*) FROM {tables}_sessions") == 0
