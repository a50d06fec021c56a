"""Sign-in links that are asked for at the same moment count for each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from cuota.commands.desk import OPERATOR
from cuota.core.desk.role import Role
from cuota.core.operator.role import OperatorRole
from cuota.flows.desk.change_team import invite
from cuota.flows.desk.sign_in import LINKS_AN_HOUR, ask_link
from cuota.flows.operator.change_operators import invite_operator
from cuota.flows.operator.log_action import OperatorActor
from cuota.flows.operator.operator_sign_in import ask_operator_link
from support.db.locks import holder
from support.own_service import Own

# Fewer than the service's database sessions.
AT_ONCE = 12


async def at_once(own: Own, table: str, ask: Callable[[], Awaitable[None]]) -> None:
    """Ask many times. The requests wait for a lock, and then continue at the same moment."""
    async with holder(own.where) as other:
        await other.run(f"LOCK TABLE {table} IN SHARE MODE")
        asking = asyncio.gather(*(ask() for _ in range(AT_ONCE)))
        await other.until_waits(asking, AT_ONCE)
    await asking


async def count(own: Own, table: str) -> int:
    async with own.owner() as connection:
        return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))


async def test_many_requests_at_once_give_a_person_no_more_links_than_one_after_the_other(own: Own) -> None:
    email = "ana@shop.example"
    ids = own.context, own.merchant.merchant_id
    await invite(*ids, OPERATOR, "Ana", email, Role.SUPPORT, "new", mail=False)
    await at_once(own, "desk_links", lambda: ask_link(own.context, email))
    assert await count(own, "desk_links") == LINKS_AN_HOUR


async def test_many_requests_at_once_give_an_operator_no_more_links_than_one_after_the_other(
    own: Own,
) -> None:
    email, nobody = "ana@pay.example", OperatorActor(None)
    await invite_operator(own.context, nobody, "Ana", email, OperatorRole.SUPPORT, "new", mail=False)
    await at_once(own, "operator_links", lambda: ask_operator_link(own.context, email))
    assert await count(own, "operator_links") == LINKS_AN_HOUR
