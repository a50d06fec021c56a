"""The forks of the sandbox in the merchant's dashboard: saved, gone back to, and deleted while the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from cuota.db.sandbox import forks
from cuota.flows.sandbox import fork_sandbox
from cuota.web.pages.desk.sandbox_panel import MOST_FORKS
from support.makers import make_merchant
from support.pages.staff import Staff
from support.time.sandbox import Sandbox

PAGE = "/desk/sandbox"


@pytest.fixture
async def staff(sandbox: Sandbox) -> AsyncIterator[Staff]:
    """An owner of the merchant, signed in."""
    staff = Staff(sandbox.service.client(), sandbox.merchant)
    await staff.enter()
    yield staff
    await staff.http.aclose()


async def save(staff: Staff, name: str) -> str:
    """Save a fork by the page's form. Return the text of the page after that."""
    await staff.open(PAGE)
    return (await staff.press_do("fork", name=name)).text


async def names(sandbox: Sandbox) -> list[str]:
    return [fork.name for fork in await forks.read_all(sandbox.context.pool)]


async def test_the_page_goes_back_to_a_fork_with_its_orders_and_its_clock(
    sandbox: Sandbox, staff: Staff
) -> None:
    kept = await sandbox.merchant.create("80.00")
    assert "The fork is saved" in await save(staff, "before-refund")
    before = await sandbox.now()
    lost = await sandbox.merchant.create("90.00")
    await sandbox.advance("3d")
    await staff.open(f"{PAGE}/rewind?name=before-refund")
    assert "every merchant" in staff.page.text
    assert "The sandbox is as it was when the fork was saved" in (await staff.press_do("rewind")).text
    assert abs(await sandbox.now() - before) < timedelta(hours=1)
    assert (await sandbox.merchant.http.get(f"/order/{kept['orderId']}")).status_code == 200
    assert (await sandbox.merchant.http.get(f"/order/{lost['orderId']}")).status_code == 404
    # The fork is still there, for the next time.
    assert await names(sandbox) == ["before-refund"]
    actions = (await staff.open("/desk/audit?action=sandbox.")).text
    assert "sandbox.rewind" in actions


async def test_a_person_whose_sign_in_is_newer_than_the_fork_signs_in_again_after_a_rewind(
    sandbox: Sandbox, staff: Staff
) -> None:
    await fork_sandbox.fork(sandbox.where, "early")
    later = Staff(sandbox.service.client(), sandbox.merchant)
    await later.enter()
    await later.open(f"{PAGE}/rewind?name=early")
    assert (await later.press_do("rewind")).heading == "Sign in"
    await later.http.aclose()
    assert (await staff.open(PAGE)).status == 200


async def test_a_rewind_by_a_merchant_that_is_newer_than_the_fork_removes_it(sandbox: Sandbox) -> None:
    await fork_sandbox.fork(sandbox.where, "empty")
    async with make_merchant(sandbox.service) as newer:
        staff = Staff(sandbox.service.client(), newer)
        await staff.enter()
        await staff.open(f"{PAGE}/rewind?name=empty")
        assert (await staff.press_do("rewind")).heading == "Sign in"
        await staff.http.aclose()
        assert (await newer.http.get("/configuration")).status_code == 401


async def test_while_the_sandbox_is_copied_other_requests_wait_and_are_answered(
    sandbox: Sandbox, staff: Staff
) -> None:
    await staff.open(PAGE)
    made = await asyncio.gather(
        staff.press_do("fork", name="busy"), *(sandbox.merchant.create(f"{60 + n}.00") for n in range(20))
    )
    assert "The fork is saved" in made[0].text
    assert len({order["orderId"] for order in made[1:]}) == 20


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "Enter a name for the fork"),
        ("Before", "is not a valid name for a fork"),
        ("a b", "is not a valid name for a fork"),
        ("x" * 4000, "is not a valid name for a fork"),
        ('f"; DROP TABLE orders; --', "is not a valid name for a fork"),
        ("there", "There is already a fork there"),
    ],
)
async def test_a_name_that_cannot_be_used_is_refused_and_stays_in_the_field(
    sandbox: Sandbox, staff: Staff, name: str, why: str
) -> None:
    await fork_sandbox.fork(sandbox.where, "there")
    text = await save(staff, name)
    assert (staff.page.status, why in text) == (400, True)
    assert staff.form_that("fork")[1]["name"] == name[:100]
    assert await names(sandbox) == ["there"]


async def test_the_page_saves_no_more_than_ten_forks(sandbox: Sandbox, staff: Staff) -> None:
    for number in range(MOST_FORKS):
        await fork_sandbox.fork(sandbox.where, f"f{number}")
    assert "Delete one before you save another" in await save(staff, "more")
    assert len(await names(sandbox)) == MOST_FORKS


async def test_a_fork_is_deleted_on_its_page(sandbox: Sandbox, staff: Staff) -> None:
    await save(staff, "old")
    await staff.open(f"{PAGE}/rewind?name=old")
    assert "The fork is deleted" in (await staff.press_do("forget")).text
    assert await names(sandbox) == []


@pytest.mark.parametrize("do", ["rewind", "forget"])
async def test_a_fork_that_was_deleted_meanwhile_changes_nothing(
    sandbox: Sandbox, staff: Staff, do: str
) -> None:
    await save(staff, "gone")
    await staff.open(f"{PAGE}/rewind?name=gone")
    await fork_sandbox.forget(sandbox.where, "gone")
    order = await sandbox.merchant.create("80.00")
    page = await staff.press_do(do)
    assert (page.status, "There is no such fork" in page.text) == (400, True)
    assert (await sandbox.merchant.http.get(f"/order/{order['orderId']}")).status_code == 200
    assert (await staff.open(f"{PAGE}/rewind?name=gone")).status == 400


async def test_two_people_who_save_forks_at_once_get_both_or_an_error(sandbox: Sandbox, staff: Staff) -> None:
    other = Staff(sandbox.service.client(), sandbox.merchant)
    await other.enter()
    await staff.open(PAGE)
    await other.open(PAGE)
    first, second = await asyncio.gather(
        staff.press_do("fork", name="one"), other.press_do("fork", name="two")
    )
    await other.http.aclose()
    saved = await names(sandbox)
    assert {first.status, second.status} <= {200, 400}
    assert len(saved) == [first.status, second.status].count(200) > 0
