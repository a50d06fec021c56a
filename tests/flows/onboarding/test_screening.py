"""Names are screened after they change, every day, and after a press of a button. The rail may fail to answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

from cuota.core.merchant import Onboarding
from cuota.core.onboarding.business import read_business
from cuota.core.onboarding.checklist import Item, ItemState
from cuota.db.onboarding import screenings
from cuota.db.pool import Pool
from cuota.flows.context import Context
from cuota.flows.onboarding.change_business import change_business
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import NO_SCREENING_RAIL, screen_due_names, screen_merchant
from cuota.rails.screening.protocol import ScreeningMatch, ScreeningRequest
from support.onboarding import (
    BUSINESS,
    THEIRS,
    TestRail,
    approve,
    fill,
    state_of,
    stored,
    with_screening,
)
from support.own_service import Own

MATCH = ScreeningMatch("list", "7", "Jordan Riviera", 91, "born 1955")


async def test_names_are_screened_as_soon_as_they_are_entered_and_not_again_until_they_are_due(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    assert await screen_due_names(context) == 0
    await fill(context, merchant_id)
    assert await screen_due_names(context) == 1
    assert sorted(rail.asked) == ["Jordan Rivera", "Northwind", "Northwind Outfitters LLC"]
    assert await screen_due_names(context) == 0
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.ACCEPTED


async def test_the_job_screens_all_names_again_after_the_number_of_days_in_the_setting(
    own: Own, context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    weekly = replace(context, settings=replace(context.settings, screening_days=7))
    await fill(context, merchant_id)
    await screen_due_names(weekly)
    async with own.service.clock.moved(days=6, hours=23):
        assert await screen_due_names(weekly) == 0
    rail.found["Jordan Rivera"] = [MATCH]
    async with own.service.clock.moved(days=7, seconds=1):
        assert await screen_due_names(weekly) == 1
        assert await state_of(weekly, merchant_id, Item.SCREENING) is ItemState.TO_CHECK


async def test_a_changed_name_must_be_checked_until_it_is_screened_which_happens_at_once(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    await fill(context, merchant_id)
    await screen_due_names(context)
    rail.asked.clear()
    changed = read_business({**BUSINESS, "legal_name": "Obsidian Reef LLC"})
    await change_business(context, merchant_id, THEIRS, changed, 1)
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.TO_CHECK
    assert await screen_due_names(context) == 1
    assert "Obsidian Reef LLC" in rail.asked
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.ACCEPTED


async def test_if_the_rail_does_not_answer_the_item_must_be_checked_and_the_job_retries(
    own: Own, context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    rail.silent = True
    await fill(context, merchant_id)
    assert await screen_due_names(context) == 1
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.TO_CHECK
    screening = (await read_checklist(context, merchant_id)).facts.screening
    assert screening.problem == "the list is being updated"
    assert await screen_due_names(context) == 0
    rail.silent = False
    async with own.service.clock.moved(minutes=2):
        assert await screen_due_names(context) == 1
        screening = (await read_checklist(context, merchant_id)).facts.screening
        assert screening.problem is None
        assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.ACCEPTED


async def test_a_rail_that_fails_later_ends_no_approval(
    own: Own, context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    await approve(context, merchant_id)
    rail.silent = True
    async with own.service.clock.moved(days=2):
        assert await screen_due_names(context) == 1
    assert (await stored(context, merchant_id)).onboarding is Onboarding.APPROVED
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.ACCEPTED


async def test_without_a_rail_nothing_is_screened_and_nothing_is_accepted(
    context: Context, merchant_id: UUID
) -> None:
    none = with_screening(context, None)
    await fill(none, merchant_id)
    assert await screen_due_names(none) == 0
    assert await screen_merchant(none, merchant_id) == NO_SCREENING_RAIL
    assert await state_of(none, merchant_id, Item.SCREENING) is ItemState.TO_CHECK


async def test_a_name_that_changes_during_a_call_to_the_rail_is_screened_too(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    class Slow(TestRail):
        """Changes the business while the rail looks for the first name."""

        async def screen(self, request: ScreeningRequest) -> list[ScreeningMatch]:
            if not self.asked:
                self.asked.append("")
                changed = read_business({**BUSINESS, "legal_name": "Obsidian Reef LLC"})
                await change_business(context, merchant_id, THEIRS, changed, 1)
            return await super().screen(request)

    slow = Slow()
    await fill(context, merchant_id)
    await screen_due_names(with_screening(context, slow))
    assert "Obsidian Reef LLC" not in slow.asked
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.TO_CHECK
    assert await screen_due_names(with_screening(context, slow)) == 1
    assert "Obsidian Reef LLC" in slow.asked
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.ACCEPTED


async def test_two_workers_screen_a_merchant_once_and_another_worker_continues_after_a_crash(
    own: Own, context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    await fill(context, merchant_id)
    done = await asyncio.gather(*(screen_due_names(context) for _ in range(4)))
    assert sorted(done) == [0, 0, 0, 1]
    # A worker claims the merchant, and dies before it calls the rail.
    await screenings.soon(context.pool, merchant_id, context.now())
    assert len(await screenings.claim(context.pool, context.now(), 10)) == 1
    assert await screen_due_names(context) == 0
    async with own.service.clock.moved(minutes=11):
        assert await screen_due_names(context) == 1


async def test_the_rail_is_never_called_inside_a_transaction(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    pool: Pool = context.pool

    class Looking(TestRail):
        """Counts the transactions that are open during a call to the rail."""

        async def screen(self, request: ScreeningRequest) -> list[ScreeningMatch]:
            (row,) = await pool.fetch(
                """SELECT count(*) AS open FROM pg_stat_activity WHERE datname = current_database()
                AND state = 'idle in transaction'"""
            )
            assert row["open"] == 0
            return await super().screen(request)

    await fill(context, merchant_id)
    looking = Looking()
    assert await screen_merchant(with_screening(context, looking), merchant_id) is None
    assert len(looking.asked) == 3
