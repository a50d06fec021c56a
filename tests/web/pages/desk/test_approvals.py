"""Large movements of money need a second person of the merchant's team."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from cuota.core.desk.role import Role
from cuota.core.order.id_bounds import BEYOND
from cuota.core.order.movement import MovementKind
from cuota.db.desk import approvals, audit
from cuota.db.desk.approvals import Approval
from cuota.flows.context import utc_now
from cuota.flows.desk.approve_move import MOST_WAITING
from cuota.web.pages.desk.approvals import MOST_SHOWN
from support.makers import Merchant
from support.pages.second_person import captured, second_person_above
from support.pages.staff import Staff


@pytest.fixture(autouse=True)
def limit(merchant: Merchant) -> Iterator[None]:
    """Movements of more than $50.00 need a second person."""
    with second_person_above(merchant, 5000):
        yield


async def asked(staff: Staff, amount: str = "60.00") -> tuple[dict[str, Any], str]:
    """Request a capture as a support person. Return the order, and the path of the request."""
    order = await staff.shop.approved()
    await staff.enter(Role.SUPPORT)
    path = f"/desk/orders/{order['orderId']}/capture"
    await staff.open(f"{path}?amount={amount}")
    page = await staff.press("capture", reason="it was shipped")
    assert "Your request was received" in page.text
    found = await approvals.newest(staff.service.context.pool, staff.shop.merchant_id, 1)
    return order, f"/desk/approvals/{found[0].approval_id}"


def end_of(path: str) -> str:
    """Return the id in the path of a request."""
    return path.rpartition("/")[2]


async def test_nothing_moves_until_another_person_approves(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    order, path = await asked(staff)
    assert await captured(staff, order) == 0
    owner = browser()
    await owner.enter()
    assert "/desk/approvals" in (await owner.open("/desk")).seen.links
    assert "To approve" in owner.page.text
    page = await owner.open(path)
    assert "What will happen" in page.text
    assert "it was shipped" in page.text
    page = await owner.press(end_of(path), do="approve")
    assert "The capture is done" in page.text
    assert await captured(staff, order) == 6000
    page = await owner.open("/desk/audit")
    assert "order.capture.asked" in page.text
    assert "order.capture.approved" in page.text


async def test_the_person_who_requested_a_movement_cannot_approve_it(staff: Staff) -> None:
    order, path = await asked(staff)
    await staff.open(path)
    page = await staff.press(end_of(path), do="approve")
    assert (page.status, "Another person of your team must approve it" in page.text) == (400, True)
    assert await captured(staff, order) == 0


async def test_the_database_refuses_an_approval_by_the_person_who_made_the_request(staff: Staff) -> None:
    _, path = await asked(staff)
    with pytest.raises(asyncpg.CheckViolationError):
        await staff.service.context.pool.execute(
            """UPDATE desk_approvals SET state = 'approved', decided_by = asked_by, decider = asker, decided_at = now()
            WHERE approval_id = $1""",
            UUID(end_of(path)),
        )


async def test_a_role_that_may_not_capture_cannot_approve_a_capture(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    order, path = await asked(staff)
    other = browser()
    await other.enter(Role.FINANCE)
    await other.open(path)
    csrf = other.page.form("leave")[1]["csrf"]
    answer = await other.http.post(path, data={"csrf": csrf, "do": "approve"})
    assert "Your role does not include this" in answer.text
    assert await captured(staff, order) == 0


async def test_two_people_who_approve_at_once_move_the_money_once(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    order, path = await asked(staff)
    people = [browser(), browser()]
    for person, role in zip(people, (Role.OWNER, Role.ADMIN), strict=True):
        await person.enter(role)
        await person.open(path)
    forms = [person.page.form(end_of(path)) for person in people]
    await asyncio.gather(
        *(
            person.http.post(action, data={**held, "do": "approve"})
            for person, (action, held) in zip(people, forms, strict=True)
        )
    )
    assert await captured(staff, order) == 6000


async def test_a_rejected_request_can_never_move_money(staff: Staff, browser: Callable[..., Staff]) -> None:
    order, path = await asked(staff)
    owner = browser()
    await owner.enter()
    await owner.open(path)
    action, held = owner.page.form(end_of(path))
    page = await owner.press(end_of(path), do="reject")
    assert "The request was rejected" in page.text
    for do in ("approve", "finish"):
        assert (await owner.http.post(action, data={**held, "do": do})).status_code == 400
    assert await captured(staff, order) == 0


async def test_the_person_who_made_the_request_can_withdraw_it(staff: Staff) -> None:
    _, path = await asked(staff)
    await staff.open(path)
    assert "The request was rejected" in (await staff.press(end_of(path), do="reject")).text


async def test_an_approved_movement_that_a_crash_interrupted_is_finished_once(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    order, path = await asked(staff)
    owner = browser()
    await owner.enter()
    await staff.service.context.pool.execute(
        """UPDATE desk_approvals SET state = 'approved', decided_by = $2, decider = 'Ben', decided_at = now()
        WHERE approval_id = $1""",
        UUID(end_of(path)), UUID(int=7),
    )  # fmt: skip
    page = await owner.open(path)
    assert "it was approved, but is not done" in page.text
    action, held = owner.page.form(end_of(path))
    for _ in range(2):
        assert (await owner.http.post(action, data={**held, "do": "finish"})).status_code == 303
    assert await captured(staff, order) == 6000
    assert "but is not done" not in (await owner.open(path)).text
    logged = await audit.page(staff.service.context.pool, staff.shop.merchant_id, BEYOND, 50)
    assert [each.action for each in logged].count("order.capture.finished") == 1


async def test_a_second_click_makes_no_second_request(staff: Staff) -> None:
    order = await staff.shop.approved()
    await staff.enter(Role.SUPPORT)
    await staff.open(f"/desk/orders/{order['orderId']}/capture?amount=60.00")
    action, held = staff.page.form("capture")
    form = {**held, "reason": "it was shipped"}
    for _ in range(2):
        assert (await staff.http.post(action, data=form)).headers["location"] == "/desk/approvals?said=asked"
    found = await approvals.newest(staff.service.context.pool, staff.shop.merchant_id, 10)
    assert [each.order_id for each in found] == [UUID(order["orderId"])]


async def test_an_amount_up_to_the_limit_needs_one_person(staff: Staff) -> None:
    order = await staff.shop.approved()
    await staff.enter(Role.SUPPORT)
    await staff.open(f"/desk/orders/{order['orderId']}/capture?amount=50.00")
    assert "The capture is done" in (await staff.press("capture", reason="it was shipped")).text


async def test_a_request_that_is_no_longer_possible_says_why(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    order, path = await asked(staff)
    assert (await staff.shop.move(order, "void", "100.00")).status_code == 200
    owner = browser()
    await owner.enter()
    page = await owner.open(path)
    assert "This can no longer be done" in page.text
    assert "Approve" not in page.text.replace("Approvals", "")


async def test_an_approval_whose_movement_was_refused_ends_and_the_asker_cannot_make_it_later(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    order, path = await asked(staff)
    action, held = (await staff.open(path)).form(end_of(path))
    owner = browser()
    await owner.enter()
    await owner.open(path)
    assert (await staff.shop.move(order, "void", "50.00")).status_code == 200
    page = await owner.press(end_of(path), do="approve")
    assert page.status == 400
    assert "Rejected" in page.text
    answer = await staff.http.post(action, data={**held, "do": "finish"})
    assert answer.status_code == 400
    assert "This request was not approved. Nothing was changed." in answer.text
    assert await captured(staff, order) == 0


async def test_a_corrected_amount_in_a_form_that_was_sent_is_not_taken_for_the_first_request(
    staff: Staff,
) -> None:
    order, _ = await asked(staff)
    form = f"/desk/orders/{order['orderId']}/capture"
    before = await approvals.newest(staff.service.context.pool, staff.shop.merchant_id, 5)
    await staff.open(f"{form}?amount=55.00")
    page = await staff.press("capture", reference=before[0].reference, reason="less")
    assert "This form was sent before, and another person was asked." in page.text
    assert await approvals.newest(staff.service.context.pool, staff.shop.merchant_id, 5) == before
    await staff.press("capture", reason="less")
    amounts = [
        each.amount for each in await approvals.newest(staff.service.context.pool, staff.shop.merchant_id, 5)
    ]
    assert amounts == [5500, 6000]


async def test_a_small_amount_in_a_form_with_which_a_large_one_was_requested_does_not_take_its_place(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    order, path = await asked(staff)
    (request,) = await approvals.newest(staff.service.context.pool, staff.shop.merchant_id, 1)
    await staff.open(f"/desk/orders/{order['orderId']}/capture?amount=10.00")
    page = await staff.press("capture", reference=request.reference, reason="a part")
    assert "This form was sent before" in page.text
    assert await captured(staff, order) == 0
    owner = browser()
    await owner.enter()
    await owner.open(path)
    assert "The capture is done" in (await owner.press(end_of(path), do="approve")).text
    assert await captured(staff, order) == 6000


async def test_requests_that_wait_are_listed_however_many_newer_ones_are_decided(staff: Staff) -> None:
    _, waiting = await asked(staff)
    for _ in range(MOST_SHOWN):
        await added(staff, decided=True)
    page = await staff.open("/desk/approvals")
    assert waiting in page.seen.links
    # The page has room for it, and for all of the newest decided ones but one.
    assert len([link for link in page.seen.links if link.startswith("/desk/approvals/")]) == MOST_SHOWN


async def test_not_more_requests_may_wait_than_the_page_lists(staff: Staff) -> None:
    order = await staff.shop.approved()
    for _ in range(MOST_WAITING):
        await added(staff)
    await staff.enter(Role.SUPPORT)
    await staff.open(f"/desk/orders/{order['orderId']}/capture?amount=60.00")
    page = await staff.press("capture", reason="it was shipped")
    assert f"{MOST_WAITING} requests wait for a second person already." in page.text
    assert (
        len(await approvals.newest(staff.service.context.pool, staff.shop.merchant_id, 200)) == MOST_WAITING
    )


async def added(staff: Staff, *, decided: bool = False) -> None:
    """Add a request of an earlier day, and reject it with `decided`."""
    pool, merchant_id, new_id = (
        staff.service.context.pool,
        staff.shop.merchant_id,
        staff.service.context.new_id,
    )
    new = Approval(
        new_id(), new_id(), MovementKind.CAPTURE, 6000, str(new_id()), "why", new_id(), "Ana", utc_now()
    )
    assert await approvals.add(pool, merchant_id, new)
    if decided:
        assert await approvals.decide(
            pool, merchant_id, new.approval_id, "rejected", new_id(), "Bo", utc_now()
        )
