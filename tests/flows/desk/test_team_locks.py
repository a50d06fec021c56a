"""A change of a team locks people in the order of their ids, as `cuota keys rewrap` does. So the two never deadlock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from cuota.commands.desk import OPERATOR
from cuota.core.desk.role import Role
from cuota.core.operator.role import OperatorRole
from cuota.flows.desk import change_team
from cuota.flows.operator.change_operators import change_operator_role, invite_operator
from cuota.flows.operator.log_action import OperatorActor
from support.db.locks import holder
from support.own_service import Own

Team = tuple[str, UUID, UUID, Callable[[], Awaitable[None]]]


async def of_merchant(own: Own) -> Team:
    """The table, a person without rights, an owner who was added later, and a change of the first person's role."""
    context, merchant_id = own.context, own.merchant.merchant_id

    async def invited(email: str, role: Role) -> UUID:
        return (
            await change_team.invite(context, merchant_id, OPERATOR, "Ana", email, role, "new", mail=False)
        ).person_id

    person = await invited("ana@shop.example", Role.SUPPORT)
    owner = await invited("bo@shop.example", Role.OWNER)

    async def change() -> None:
        await change_team.change_role(context, merchant_id, OPERATOR, person, Role.FINANCE, "why")

    return "desk_people", person, owner, change


async def of_operator(own: Own) -> Team:
    """The same four values for the operator's team."""

    async def invited(email: str, role: OperatorRole) -> UUID:
        return (
            await invite_operator(own.context, OperatorActor(None), "Ana", email, role, "new", mail=False)
        ).person_id

    person = await invited("ana@pay.example", OperatorRole.SUPPORT)
    owner = await invited("bo@pay.example", OperatorRole.OWNER)

    async def change() -> None:
        await change_operator_role(own.context, OperatorActor(None), person, OperatorRole.FINANCE, "why")

    return "operator_people", person, owner, change


@pytest.mark.parametrize("team", [of_merchant, of_operator])
async def test_an_owner_is_not_locked_while_the_change_waits_for_a_person_with_a_lower_id(
    own: Own, team: Callable[[Own], Awaitable[Team]]
) -> None:
    table, person, owner, change = await team(own)
    assert person < owner
    lock = f"SELECT FROM {table} WHERE person_id = $1 FOR UPDATE NOWAIT"
    async with holder(own.where) as other:
        await other.run(lock, person)
        changing = asyncio.ensure_future(change())
        await other.until_waits(changing)
        await other.run(lock, owner)
    await changing
    async with own.owner() as connection:
        role = f"SELECT role FROM {table} WHERE person_id = $1"
        assert await connection.fetchval(role, person) == "finance"
