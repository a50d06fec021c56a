"""The sandbox's page in the operator's dashboard: the clock and the forks of all merchants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from cuota.core.operator.role import OPERATOR_MAY, OperatorAction, OperatorRole
from cuota.db.sandbox import forks
from support.pages.operator_staff import OperatorStaff
from support.time.sandbox import Sandbox

PAGE = "/operator/sandbox"


@pytest.fixture
async def owner(sandbox: Sandbox) -> AsyncIterator[OperatorStaff]:
    """An owner of the operator's team, signed in."""
    person = OperatorStaff(sandbox.service.client(), sandbox.service)
    await person.enter()
    yield person
    await person.http.aclose()


async def test_the_operator_moves_the_clock_and_goes_back_to_a_fork(
    sandbox: Sandbox, owner: OperatorStaff
) -> None:
    await owner.open(PAGE)
    before = await sandbox.now()
    assert "The fork is saved" in (await owner.press_do("fork", name="monday")).text
    page = await owner.press("sandbox", by="1d")
    assert timedelta(days=1) <= await sandbox.now() - before < timedelta(days=1, hours=1)
    assert "ahead of the real time" in page.text
    await owner.open(f"{PAGE}/rewind?name=monday")
    assert "The sandbox is as it was" in (await owner.press_do("rewind")).text
    assert await sandbox.now() - before < timedelta(hours=1)
    log = (await owner.open("/operator/log?action=sandbox.")).text
    assert "sandbox.rewind" in log
    await owner.open(f"{PAGE}/rewind?name=monday")
    assert "The fork is deleted" in (await owner.press_do("forget")).text
    assert await forks.read_all(sandbox.context.pool) == []


@pytest.mark.parametrize("role", list(OperatorRole))
async def test_everybody_who_may_change_something_has_the_page_in_the_menu(
    desk_browser: Callable[..., OperatorStaff], role: OperatorRole
) -> None:
    person = desk_browser()
    await person.enter(role)
    seen = OperatorAction.USE_SANDBOX in OPERATOR_MAY[role]
    assert seen is (role is not OperatorRole.READ_ONLY)
    assert (PAGE in person.page.seen.links) is seen
    assert (await person.http.get(PAGE)).status_code == (200 if seen else 403)
