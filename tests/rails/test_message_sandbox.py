"""The sandbox's message rail writes each message into the inbox once, with the time of the sandbox's clock."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from cuota import config
from cuota.core.message import Message
from cuota.db.pool import Pool
from cuota.flows.context import utc_now
from cuota.rails.bounded import BoundedMessageRail
from cuota.rails.inbox import KEPT, PUT, look
from cuota.rails.load import NoSuchRail, load
from cuota.rails.message import SandboxMessageRail
from cuota.rails.message_live import LiveMessageRail
from cuota.rails.senders import Senders
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock
from cuota.rails.unavailable import RailUnavailable
from cuota.run import runtime
from support.rails.parts import rail_parts

THEN = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
SENDERS = Senders(
    None, None, "https://texts.example/send", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", secure=True
)


@pytest.fixture
async def pool(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Pool]:
    """A pool with the service's own role, and an empty inbox."""
    async with runtime.opened(settings, own_database, pool_size=8) as context:
        yield context.pool


def notice(phone: str | None = "2125550142", email: str | None = "jordan@mail.example") -> Message:
    return Message(uuid4(), phone, email, "Pay in four", "Your payment", "It is due.")


async def test_a_code_is_in_the_inbox_as_a_text_message(pool: Pool) -> None:
    rail = SandboxMessageRail(*rail_parts(pool, now=lambda: THEN))
    assert (rail.new_code(), rail.shown_code) == ("123456", "123456")
    await rail.send_code("2125550142", "123456", "Pay in four")
    [found] = await look(pool)
    assert (found.channel, found.recipient, found.created_at) == ("text", "2125550142", THEN)
    assert found.text.startswith("123456 is your Pay in four code.")


async def test_two_codes_are_two_messages(pool: Pool) -> None:
    rail = SandboxMessageRail(*rail_parts(pool))
    for _ in range(2):
        await rail.send_code("2125550142", "123456", "Pay")
    assert len(await look(pool)) == 2


async def test_a_notice_is_in_the_inbox_once_for_each_channel_however_often_it_is_sent(pool: Pool) -> None:
    rail = SandboxMessageRail(*rail_parts(pool))
    message = notice()
    await asyncio.gather(*(rail.send(message) for _ in range(8)))
    found = await look(pool)
    assert {(each.channel, each.recipient) for each in found} == {
        ("mail", "jordan@mail.example"),
        ("text", "2125550142"),
    }
    assert len(found) == 2
    assert {each.key for each in found} == {message.key}


async def test_messages_that_are_sent_at_the_same_moment_share_a_transaction(
    pool: Pool, own_database: dict[str, Any]
) -> None:
    rail = SandboxMessageRail(*rail_parts(pool))
    await asyncio.gather(*(rail.send(notice()) for _ in range(20)))
    owner = await asyncpg.connect(**own_database)
    found = await owner.fetchrow(
        "SELECT count(*) AS rows, count(DISTINCT xmin::text) AS transactions FROM message_simulator.inbox"
    )
    await owner.close()
    assert found["rows"] == 40
    assert found["transactions"] <= 2


async def test_a_message_that_cannot_be_stored_does_not_stop_the_messages_of_the_same_moment(
    pool: Pool,
) -> None:
    rail = SandboxMessageRail(*rail_parts(pool))
    good, bad = [notice() for _ in range(5)], replace(notice(), subject="a NUL: \0")
    found = await asyncio.gather(*(rail.send(each) for each in [bad, *good]), return_exceptions=True)
    assert isinstance(found[0], asyncpg.CharacterNotInRepertoireError)
    assert found[1:] == [None] * 5
    assert {each.key for each in await look(pool)} == {each.key for each in good}


async def test_the_newest_message_is_the_one_that_was_sent_last_whatever_the_clock_showed(pool: Pool) -> None:
    times = iter([THEN, THEN - timedelta(days=40), THEN - timedelta(days=90)])
    rail = SandboxMessageRail(*rail_parts(pool, now=lambda: next(times)))
    sent = [notice(email=None) for _ in range(3)]
    for message in sent:
        await rail.send(message)
    assert [each.key for each in await look(pool)] == [message.key for message in reversed(sent)]


@pytest.mark.parametrize(
    ("to", "count"),
    [
        ("2125550142", 2),
        ("+1 (212) 555-0142", 2),
        ("Jordan@Mail.Example", 1),
        (" jordan@mail.example ", 1),
        ("2125550143", 0),
        ("%", 0),
    ],
)
async def test_the_inbox_is_searched_by_a_number_or_address_as_a_person_types_it(
    pool: Pool, to: str, count: int
) -> None:
    rail = SandboxMessageRail(*rail_parts(pool))
    await rail.send(notice())
    await rail.send_code("2125550142", "123456", "Pay")
    await rail.send(notice("9175550199", "other@mail.example"))
    assert len(await look(pool, to=to)) == count


async def test_the_pages_of_the_inbox_have_no_gaps(pool: Pool) -> None:
    rail = SandboxMessageRail(*rail_parts(pool))
    sent = [notice(email=None) for _ in range(7)]
    for message in sent:
        await rail.send(message)
    seen, before = [], None
    while page := await look(pool, before=before, limit=3):
        seen += [each.key for each in page]
        before = page[-1].number
    assert seen == [message.key for message in reversed(sent)]


async def test_the_inbox_keeps_the_newest_ten_thousand_messages_and_few_more(
    pool: Pool, own_database: dict[str, Any]
) -> None:
    owner = await asyncpg.connect(**own_database)
    await owner.execute(
        f"""INSERT INTO message_simulator.inbox (key, channel, recipient, subject, text, created_at)
        SELECT gen_random_uuid(), 'text', '2125550142', '', n::text, now() FROM generate_series(1, {KEPT}) n"""
    )
    await owner.close()
    rail = SandboxMessageRail(*rail_parts(pool))
    repeated = notice(email=None)
    for _ in range(150):
        await rail.send(repeated)
        await rail.send(notice(email=None))
    found = await look(pool, limit=3 * KEPT)
    assert KEPT <= len(found) < KEPT + 100
    assert sum(each.text == "It is due." for each in found) == 151
    assert {"1", "100"}.isdisjoint(each.text for each in found)
    assert str(KEPT) in {each.text for each in found}


async def test_sending_reads_only_a_few_rows_however_full_the_inbox_is(
    own_database: dict[str, Any],
) -> None:
    owner = await asyncpg.connect(**own_database)
    await owner.execute(
        """INSERT INTO message_simulator.inbox (key, channel, recipient, subject, text, created_at)
        SELECT gen_random_uuid(), 'text', '2125550142', '', '', now() FROM generate_series(1, 10050);
        ANALYZE message_simulator.inbox"""
    )
    values = f"'{{{uuid4()}}}', '{{text}}', '{{2125550142}}', '{{Due}}', '{{Due}}', '{{2031-02-03}}'"
    await owner.execute(f"PREPARE put AS {PUT}")
    plan = await owner.fetch(f"EXPLAIN (ANALYZE, TIMING off, BUFFERS) EXECUTE put({values})")
    lines = [row[0] for row in plan]
    await owner.close()
    # The rail looks for old messages only at every hundredth message, and this one is none of these.
    assert any("inbox_newest" in line and "never executed" in line for line in lines), "\n".join(lines)
    assert not any("Seq Scan on inbox" in line for line in lines), "\n".join(lines)


async def test_a_message_rail_that_hangs_counts_as_unavailable(pool: Pool) -> None:
    class Hanging(SandboxMessageRail):
        async def send(self, message: Message) -> None:
            await asyncio.Event().wait()

        async def send_code(self, phone: str, code: str, sender: str) -> None:
            await asyncio.Event().wait()

    rail = BoundedMessageRail(Hanging(*rail_parts(pool)), seconds=0.05)
    assert (rail.shown_code, rail.new_code()) == ("123456", "123456")
    with pytest.raises(RailUnavailable, match="no answer within"):
        await rail.send(notice())
    with pytest.raises(RailUnavailable, match="no answer within"):
        await rail.send_code("2125550142", "123456", "Pay")


class Custom:
    """An operator's rail. It stores its constructor's arguments and every message."""

    shown_code = None

    def __init__(self, settings: RailSettings, books: object, vault: object, now: Clock) -> None:
        self.password, self.stores, self.now = settings.own["CUOTA_RAIL_PASSWORD"], (books, vault), now
        self.sent: list[Message] = []

    def new_code(self) -> str:
        return "739146"

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """Nothing to do."""

    async def send(self, message: Message) -> None:
        self.sent.append(message)


class Older:
    """A rail of a release that had no notices."""

    shown_code = None

    def __init__(self, *given: object) -> None:
        pass

    def new_code(self) -> str:
        return "739146"

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """Nothing to do."""


@pytest.fixture
def operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with an operator's rails."""
    module = types.ModuleType("operators_rails")
    module.__dict__.update(Custom=Custom, Older=Older)
    monkeypatch.setitem(sys.modules, "operators_rails", module)


@pytest.mark.usefixtures("operators")
async def test_an_operator_s_rail_gets_its_settings_the_database_the_vault_and_the_clock(
    pool: Pool,
) -> None:
    own = {"CUOTA_RAIL_PASSWORD": "secret"}
    given = rail_parts(pool, now=lambda: THEN, message="operators_rails.Custom", own=own)
    rails = load(*given)
    message = notice()
    await rails.message.send(message)
    assert isinstance(rails.message, BoundedMessageRail)
    rail = rails.message._rail
    assert isinstance(rail, Custom)
    assert (rail.password, rail.stores, rail.now(), rail.sent) == ("secret", given[1:3], THEN, [message])
    assert (rails.message.new_code(), rails.message.shown_code) == ("739146", None)


@pytest.mark.usefixtures("operators")
async def test_the_error_about_an_incomplete_rail_names_the_missing_method(pool: Pool) -> None:
    with pytest.raises(NoSuchRail, match=r"CUOTA_MESSAGE_RAIL: operators_rails.Older lacks send of"):
        load(*rail_parts(pool, message="operators_rails.Older"))


async def test_the_live_rail_is_loaded_only_with_its_settings(pool: Pool) -> None:
    rails = load(*rail_parts(pool, message="live", senders=SENDERS))
    assert isinstance(rails.message, BoundedMessageRail)
    assert isinstance(rails.message._rail, LiveMessageRail)
    with pytest.raises(NoSuchRail, match="live needs CUOTA_TEXT_HOOK_URL"):
        load(*rail_parts(pool, message="live"))


@pytest.mark.usefixtures("operators")
@pytest.mark.parametrize("path", ["sandbox", "cuota.rails.message.SandboxMessageRail"])
async def test_production_refuses_the_sandbox_s_inbox(pool: Pool, path: str) -> None:
    with pytest.raises(NoSuchRail, match="CUOTA_MESSAGE_RAIL: production needs a real rail"):
        load(
            *rail_parts(
                pool, card="support.rails.parts.RealCardRail", message=path, sandbox=False, senders=SENDERS
            )
        )


async def test_the_sandbox_s_rail_uses_the_clock_that_it_was_created_with(pool: Pool) -> None:
    rails = load(*rail_parts(pool, now=lambda: THEN))
    await rails.message.send(replace(notice(), email=None))
    [found] = await look(pool)
    assert found.created_at == THEN
    assert abs(utc_now() - THEN) > timedelta(days=1)
