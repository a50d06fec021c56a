"""A role that is lowered while its person acts: the action is refused, because it waits for the change and reads the role again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from cuota.core.desk.person import Person
from cuota.core.desk.role import Role
from cuota.core.operator.person import Operator
from cuota.core.operator.role import OperatorRole
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.db.desk import approvals
from cuota.flows.desk import change_team
from cuota.flows.desk.approve_move import CannotApprove, ask_approval, decide_approval
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.desk.record import OPERATOR, Actor
from cuota.flows.operator import change_operators
from cuota.flows.operator.log_action import OperatorActor
from support.db.locks import holder
from support.own_service import Own

# The second person owns the team, so that the first one may lose the role.
TEAM = ("actor@shop.example", "other@shop.example", "changed@shop.example")
Act = Callable[[Own, Any, UUID], Awaitable[object]]


async def refused_after(own: Own, table: str, person_id: UUID, acting: Awaitable[object]) -> BaseException:
    """Lower the role of a person while the action of that person waits. Return the refusal."""
    async with holder(own.where) as other:
        await other.run(f"SELECT FROM {table} WHERE person_id = $1 FOR UPDATE", person_id)
        task = asyncio.ensure_future(acting)
        await other.until_waits(task)
        await other.run(f"UPDATE {table} SET role = 'read-only' WHERE person_id = $1", person_id)
    (refused,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(refused, BaseException)
    return refused


async def people_of(own: Own, table: str) -> list[tuple[Any, ...]]:
    async with own.owner() as connection:
        rows = await connection.fetch(f"SELECT email, role, removed_at FROM {table} ORDER BY email")
    return [tuple(row) for row in rows]


async def team_of_merchant(own: Own) -> list[Person]:
    ids = own.context, own.merchant.merchant_id
    roles = Role.OWNER, Role.OWNER, Role.SUPPORT
    return [
        await change_team.invite(*ids, OPERATOR, "Ana", email, role, "new", mail=False)
        for email, role in zip(TEAM, roles, strict=True)
    ]


DESK: dict[str, Act] = {
    "change a role": lambda own, actor, person_id: change_team.change_role(
        own.context, own.merchant.merchant_id, actor, person_id, Role.OWNER, "why"
    ),
    "remove": lambda own, actor, person_id: change_team.remove(
        own.context, own.merchant.merchant_id, actor, person_id, "why"
    ),
    "reset a second factor": lambda own, actor, person_id: change_team.reset_factor(
        own.context, own.merchant.merchant_id, actor, person_id, "why"
    ),
    "invite": lambda own, actor, _: change_team.invite(
        own.context, own.merchant.merchant_id, actor, "Eve", "eve@shop.example", Role.OWNER, "why"
    ),
}


@pytest.mark.parametrize("what", DESK)
async def test_a_person_whose_role_was_just_lowered_cannot_change_the_team(own: Own, what: str) -> None:
    actor, _, changed = await team_of_merchant(own)
    acting = DESK[what](own, Actor(actor), changed.person_id)
    assert isinstance(await refused_after(own, "desk_people", actor.person_id, acting), BadTeam)
    assert await people_of(own, "desk_people") == [
        (TEAM[0], "read-only", None),
        (TEAM[2], "support", None),
        (TEAM[1], "owner", None),
    ]


async def team_of_operator(own: Own) -> list[Operator]:
    roles = OperatorRole.OWNER, OperatorRole.OWNER, OperatorRole.SUPPORT
    nobody = OperatorActor(None)
    return [
        await change_operators.invite_operator(own.context, nobody, "Ana", email, role, "new", mail=False)
        for email, role in zip(TEAM, roles, strict=True)
    ]


PROVIDER: dict[str, Act] = {
    "change a role": lambda own, actor, person_id: change_operators.change_operator_role(
        own.context, actor, person_id, OperatorRole.OWNER, "why"
    ),
    "remove": lambda own, actor, person_id: change_operators.remove_operator(
        own.context, actor, person_id, "why"
    ),
    "reset a second factor": lambda own, actor, person_id: change_operators.reset_operator_factor(
        own.context, actor, person_id, "why"
    ),
    "forget an account": lambda own, actor, person_id: change_operators.forget_operator_account(
        own.context, actor, person_id, "why"
    ),
    "invite": lambda own, actor, _: change_operators.invite_operator(
        own.context, actor, "Eve", "eve@shop.example", OperatorRole.OWNER, "why"
    ),
}


@pytest.mark.parametrize("what", PROVIDER)
async def test_an_operator_whose_role_was_just_lowered_cannot_change_the_team(own: Own, what: str) -> None:
    actor, _, changed = await team_of_operator(own)
    acting = PROVIDER[what](own, OperatorActor(actor), changed.person_id)
    assert isinstance(await refused_after(own, "operator_people", actor.person_id, acting), BadTeam)
    assert await people_of(own, "operator_people") == [
        (TEAM[0], "read-only", None),
        (TEAM[2], "support", None),
        (TEAM[1], "owner", None),
    ]


async def test_a_person_whose_role_was_just_lowered_cannot_approve_a_movement(own: Own) -> None:
    actor, _, asker = await team_of_merchant(own)
    order = await own.merchant.approved()
    ids = own.context, own.merchant.merchant_id
    asked = MovementRequest(MovementKind.CAPTURE, "desk-0123456789ab", 1000)
    await ask_approval(*ids, Actor(asker), UUID(order["orderId"]), asked, "shipped")
    (found,) = await approvals.newest(own.context.pool, own.merchant.merchant_id, 1)
    acting = decide_approval(*ids, Actor(actor), found, approve=True)
    assert isinstance(await refused_after(own, "desk_people", actor.person_id, acting), CannotApprove)
    (after,) = await approvals.newest(own.context.pool, own.merchant.merchant_id, 1)
    assert after.state == "waiting"
