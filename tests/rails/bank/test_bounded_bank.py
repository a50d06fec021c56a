"""The wrapper around a bank rail has a timeout and passes only clear answers. Also tests which rails the settings
accept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.config import BadSettings, load
from cuota.rails.bank.protocol import BankAnswer, BankOrder, BankState
from cuota.rails.bank.rails import UNKNOWN_REASON, BoundedBankRail
from cuota.rails.load import NoSuchRail
from cuota.rails.load import load as load_rails
from cuota.rails.unavailable import RailUnavailable
from support.makers import Running
from support.production import PRODUCTION
from support.rails.parts import rail_parts

ORDER = BankOrder(uuid4(), uuid4(), "Shop", 1, 4711, "USD", "021000021", "12345678", date(2026, 11, 24))


class Fixed:
    """A rail that gives one answer, or raises one exception."""

    name = "fixed"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def send(self, order: BankOrder) -> Any:
        return await self.find(order.payout_id)

    async def find(self, payout_id: UUID) -> Any:
        if self.answer is asyncio.TimeoutError:
            await asyncio.sleep(60)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        asyncio.TimeoutError, ValueError("a bug"), "accepted", BankAnswer("accepted", 4711),  # type: ignore[arg-type]
        BankAnswer(BankState.PAID, 4712),
    ],
    ids=str,
)  # fmt: skip
async def test_a_late_or_broken_answer_or_one_with_another_amount_counts_as_no_answer(answer: Any) -> None:
    rail = BoundedBankRail(Fixed(answer), 0.05)
    with pytest.raises(RailUnavailable):
        await rail.send(ORDER)
    with pytest.raises(RailUnavailable):
        await rail.find(ORDER.payout_id, ORDER.amount)


async def test_sending_must_return_an_answer_but_a_look_up_may_find_nothing() -> None:
    rail = BoundedBankRail(Fixed(None))
    with pytest.raises(RailUnavailable):
        await rail.send(ORDER)
    assert await rail.find(ORDER.payout_id, ORDER.amount) is None


@pytest.mark.parametrize("reason", [None, "", "two\nlines", "x" * 201, 3])
async def test_an_unprintable_reason_is_replaced(reason: Any) -> None:
    rail = BoundedBankRail(Fixed(BankAnswer(BankState.RETURNED, 4711, reason)))
    assert (await rail.send(ORDER)).reason == UNKNOWN_REASON


async def test_the_reason_of_a_paid_payout_is_dropped() -> None:
    rail = BoundedBankRail(Fixed(BankAnswer(BankState.PAID, 4711, "R03", "ref")))
    assert await rail.send(ORDER) == BankAnswer(BankState.PAID, 4711, None, "ref")


def test_the_sandbox_has_its_own_bank_and_production_has_none_unless_a_setting_names_one() -> None:
    assert load({}).bank_rail == "sandbox"
    assert load(PRODUCTION).bank_rail == "none"


def test_production_refuses_the_sandbox_s_bank() -> None:
    with pytest.raises(BadSettings, match="CUOTA_BANK_RAIL: production needs a real rail"):
        load({**PRODUCTION, "CUOTA_BANK_RAIL": "sandbox"})


def test_a_rail_is_loaded_or_refused_by_name(service: Running) -> None:
    settings, *others = rail_parts(service.context.pool)
    assert load_rails(settings, *others).bank is None
    named = load_rails(replace(settings, bank="sandbox"), *others).bank
    assert named is not None
    assert named.name == "sandbox"
    simulator = "cuota.rails.bank.sandbox.SandboxBankRail"
    for name, why in (
        ("nowhere.Bank", "CUOTA_BANK_RAIL: nowhere.Bank cannot be loaded"),
        ("cuota.rails.card.sandbox.SandboxCardRail", "lacks send, find of the BankRail protocol"),
    ):
        with pytest.raises(NoSuchRail, match=why):
            load_rails(replace(settings, bank=name), *others)
    live = replace(
        settings,
        sandbox=False,
        card="support.rails.parts.RealCardRail",
        message="support.rails.bank.RealMessages",
    )
    with pytest.raises(NoSuchRail, match="CUOTA_BANK_RAIL: production needs a real rail or none"):
        load_rails(replace(live, bank=simulator), *others)


def test_two_bank_rails_never_have_the_same_name(service: Running) -> None:
    settings, *others = rail_parts(service.context.pool)
    with pytest.raises(
        NoSuchRail, match="CUOTA_BANK_RAILS_KEPT: another bank rail also has the name sandbox"
    ):
        load_rails(replace(settings, bank="sandbox", banks_kept=("sandbox",)), *others)
    rails = load_rails(replace(settings, banks_kept=("sandbox",)), *others)
    assert [each.name for each in rails.banks] == ["sandbox"]
