"""Each form of a signed-in person is judged by the session and the role at the time when the form has arrived.

A form may arrive slowly. Meanwhile an owner may end the session, remove the person, lower the role or reset the second factor.
These tests try each new route of the table without a change here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from uuid import uuid4

from cuota.core.desk.role import MAY, Role
from cuota.core.operator.role import OPERATOR_MAY, OperatorRole
from cuota.db.desk import people, sessions
from cuota.db.operator import operator_sessions, operators
from cuota.flows.context import utc_now
from cuota.flows.operator.operator_sign_in import load_operator_visit
from cuota.flows.plan.enter_account import leave_account, load_account
from cuota.web import app
from cuota.web.app import ROUTES
from cuota.web.desk_routes import DESK
from cuota.web.operator_routes import OPERATOR
from cuota.web.server.route import Area
from support.hostile.wire import Answer
from support.makers import Merchant
from support.pages.consumer import Consumer
from support.pages.late_form import send_late
from support.pages.operator_staff import OperatorStaff
from support.pages.staff import Staff
from support.pages.visitor import Visitor
from support.phones import phone_number

Meanwhile = Callable[[], Awaitable[object]]


def guarded(area: Area) -> Iterable[Any]:
    """Return the routes of an area with forms of signed-in people."""
    return (
        row
        for row in ROUTES
        if row.area is area and "POST" in row.methods.split() and hasattr(row.endpoint, "actions")
    )


def path_of(path: str, ids: dict[str, str]) -> str:
    return "/".join(
        ids.get(part[1:-1], str(uuid4())) if part.startswith("{") else part for part in path.split("/")
    )


def multipart(path: str) -> bool:
    """Return whether a form has files."""
    return path.endswith(("/evidence", "/appeal", "/documents", "/logo", "/dispute", "/add"))


async def late(visitor: Visitor, path: str, csrf: str, meanwhile: Meanwhile) -> Answer:
    files = {"files": ("", b"")} if multipart(path) else None
    ran = False

    async def once() -> None:
        nonlocal ran
        ran = True
        await meanwhile()

    answer = await send_late(visitor.http, path, once, data={"csrf": csrf, "reason": "r"}, files=files)
    assert ran, f"{path} answered {answer.status} before it read the form"
    return answer


async def test_a_form_of_a_person_whose_session_ended_while_the_form_arrived_is_not_used(
    merchant: Merchant,
) -> None:
    async with merchant.service.client() as http:
        staff, pool = Staff(http, merchant), merchant.service.context.pool
        ids = {"order_id": (await merchant.approved())["orderId"]}
        for row in guarded(DESK):
            await staff.enter()
            person = (await staff.visit()).person

            async def end(person: Any = person) -> None:
                await sessions.end_all(pool, merchant.merchant_id, person.person_id, utc_now())

            answer = await late(staff, path_of(row.path, ids), staff.page.form("leave")[1]["csrf"], end)
            assert (answer.status, answer.headers.get("location")) == (303, "/desk/sign-in"), row.path


async def test_a_form_of_a_person_whose_role_was_lowered_while_the_form_arrived_is_not_used(
    merchant: Merchant,
) -> None:
    async with merchant.service.client() as http:
        staff, pool = Staff(http, merchant), merchant.service.context.pool
        ids = {"order_id": (await merchant.approved())["orderId"]}
        await staff.enter()
        person, csrf = (await staff.visit()).person, staff.page.form("leave")[1]["csrf"]
        tried = [row for row in guarded(DESK) if not set(row.endpoint.actions) <= MAY[Role.READ_ONLY]]
        assert len(tried) > 20
        for row in tried:

            async def lower() -> None:
                await people.change_role(pool, merchant.merchant_id, person.person_id, Role.READ_ONLY)

            answer = await late(staff, path_of(row.path, ids), csrf, lower)
            await people.change_role(pool, merchant.merchant_id, person.person_id, Role.OWNER)
            assert answer.status == 403, row.path
            assert b"Your role does not include this" in answer.body, row.path


async def test_a_form_of_an_operator_whose_session_ended_while_the_form_arrived_is_not_used(
    merchant: Merchant,
) -> None:
    async with merchant.service.client() as http:
        staff, context = OperatorStaff(http, merchant.service), merchant.service.context
        ids = {"merchant_id": str(merchant.merchant_id)}
        for row in guarded(OPERATOR):
            await staff.enter()
            visit = await load_operator_visit(context, http.cookies["operator"])
            assert visit is not None

            async def end(person: Any = visit.person) -> None:
                await operator_sessions.end_all(context.pool, person.person_id, utc_now())

            answer = await late(staff, path_of(row.path, ids), staff.page.form("leave")[1]["csrf"], end)
            assert (answer.status, answer.headers.get("location")) == (303, "/operator/sign-in"), row.path


async def test_a_form_of_an_operator_whose_role_was_lowered_while_the_form_arrived_is_not_used(
    merchant: Merchant,
) -> None:
    async with merchant.service.client() as http:
        staff, context = OperatorStaff(http, merchant.service), merchant.service.context
        ids = {"merchant_id": str(merchant.merchant_id)}
        await staff.enter()
        csrf = staff.page.form("leave")[1]["csrf"]
        visit = await load_operator_visit(context, http.cookies["operator"])
        assert visit is not None
        person_id = visit.person.person_id
        lowest = OperatorRole.READ_ONLY
        tried = [row for row in guarded(OPERATOR) if not set(row.endpoint.actions) <= OPERATOR_MAY[lowest]]
        assert len(tried) > 15
        for row in tried:

            async def lower() -> None:
                await operators.change_role(context.pool, person_id, lowest)

            answer = await late(staff, path_of(row.path, ids), csrf, lower)
            await operators.change_role(context.pool, person_id, OperatorRole.OWNER)
            assert answer.status == 403, row.path
            assert b"Your role does not include this" in answer.body, row.path


async def test_a_form_of_a_consumer_who_signed_out_while_the_form_arrived_is_not_used(
    auto_merchant: Merchant,
) -> None:
    # These forms are for a browser that has not verified a number yet, or that signs out.
    before = {f"/account/{step}" for step in ("phone", "code", "resend", "leave")}
    rows = [row for row in ROUTES if row.area is app.ACCOUNT and "POST" in row.methods.split()]
    context = auto_merchant.service.context
    async with auto_merchant.service.client() as http:
        consumer = Consumer(http, auto_merchant.service, phone_number())
        plan = await consumer.buy_at(auto_merchant)
        ids = {"merchant_id": str(auto_merchant.merchant_id), "order_id": plan.order["orderId"]}
        for row in rows:
            if row.path in before:
                continue
            await consumer.enter()

            async def leave() -> None:
                visit = await load_account(context, http.cookies["account"])
                assert visit is not None
                await leave_account(context, visit)

            csrf = consumer.page.form("leave")[1]["csrf"]
            answer = await late(consumer, path_of(row.path, ids), csrf, leave)
            assert (answer.status, answer.headers.get("location")) == (303, "/account?said=ended"), row.path
