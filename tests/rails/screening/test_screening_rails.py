"""The sandbox's screening rail, and the checks of a rail's answers."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pytest

from cuota.core.sandbox import SANCTIONED
from cuota.rails.screening.protocol import NameKind, ScreeningMatch, ScreeningRequest
from cuota.rails.screening.rails import MOST_MATCHES, BoundedScreeningRail
from cuota.rails.screening.sandbox import SILENT, SandboxScreeningRail
from cuota.rails.unavailable import RailUnavailable
from support.makers import Running
from support.rails.parts import rail_parts

ASKED = ScreeningRequest(NameKind.PERSON, "Viktor Morozov", date(1961, 1, 1))
MATCH = ScreeningMatch("list", "1", "Viktor Morozov", 97)


class Saying:
    """A rail that returns or raises what the test sets, or hangs."""

    name = "saying"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def screen(self, request: ScreeningRequest) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer == "hangs":
            await asyncio.Event().wait()
        return self.answer


async def asked(answer: Any, seconds: float = 5.0) -> list[ScreeningMatch]:
    return await BoundedScreeningRail(Saying(answer), seconds).screen(ASKED)


@pytest.fixture
def sandbox(service: Running) -> BoundedScreeningRail:
    return BoundedScreeningRail(SandboxScreeningRail(*rail_parts(service.context.pool)))


@pytest.mark.parametrize("entry", SANCTIONED, ids=lambda entry: entry.entry)
async def test_the_sandbox_finds_every_entry_of_its_list_by_each_of_its_names(
    sandbox: BoundedScreeningRail, entry: Any
) -> None:
    kind = NameKind.COMPANY if entry.company else NameKind.PERSON
    for name in entry.names:
        found = await sandbox.screen(ScreeningRequest(kind, name))
        assert [each.entry for each in found] == [entry.entry]
        assert (found[0].listed_name, found[0].detail) == (entry.names[0], entry.detail)


async def test_a_company_is_not_compared_with_people(sandbox: BoundedScreeningRail) -> None:
    assert await sandbox.screen(ScreeningRequest(NameKind.COMPANY, "Viktor Morozov")) == []
    assert await sandbox.screen(ScreeningRequest(NameKind.PERSON, "Jordan Rivera")) == []


async def test_a_name_makes_the_sandbox_not_answer(sandbox: BoundedScreeningRail) -> None:
    with pytest.raises(RailUnavailable):
        await sandbox.screen(ScreeningRequest(NameKind.PERSON, f"Ana {SILENT}"))


@pytest.mark.parametrize(
    "answer",
    [None, "none", [None], [{"entry": "1"}], [ScreeningMatch("", "1", "V", 97)], [ScreeningMatch("list", "", "V", 97)],
     [ScreeningMatch("list", "1", "V", 101)], [ScreeningMatch("list", "1", "V", -1)], [ScreeningMatch("list", "x" * 101, "V", 97)],
     [ScreeningMatch("list", "1", 7, 97)], [ScreeningMatch("list", "1", "V", True)], ValueError("secret"), RailUnavailable("no")],
)  # fmt: skip
async def test_an_invalid_answer_does_not_count_as_no_match(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "cuota.rails")
    with pytest.raises(RailUnavailable) as caught:
        await asked(answer)
    assert "secret" not in str(caught.value)


async def test_a_rail_that_hangs_counts_as_a_rail_that_did_not_answer() -> None:
    with pytest.raises(RailUnavailable, match="no answer"):
        await asked("hangs", 0.01)


async def test_the_most_similar_matches_come_first_and_their_number_is_limited() -> None:
    many = [ScreeningMatch("list", str(n), "V\x07iktor" * 100, n % 100) for n in range(2 * MOST_MATCHES)]
    found = await asked(many)
    assert len(found) == MOST_MATCHES
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert all(len(each.listed_name) == 500 and each.listed_name.isprintable() for each in found)


async def test_an_empty_answer_means_no_match() -> None:
    assert await asked([]) == []
    assert await asked([MATCH]) == [MATCH]
