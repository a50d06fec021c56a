"""`cuota sandbox inbox` shows the messages to consumers, for a person at a terminal and for a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from cuota import config
from cuota.core.message import Message
from cuota.db.embedded.server import open_embedded
from cuota.run import runtime
from support.commands import Cuota, on_a_folder
from support.production import PRODUCTION

BAD = "Due \x1b[2Jnow."


@pytest.fixture(scope="module")
def told() -> Iterator[Cuota]:
    """An inbox with a code for one number, and a notice to another consumer by text and by mail."""
    with on_a_folder() as command, open_embedded(command.data):
        settings = config.load({"CUOTA_DATA_DIR": str(command.data)})

        async def fill() -> None:
            with runtime.database(settings) as where:
                await runtime.migrated(settings, where)
                async with runtime.opened(settings, where) as context:
                    rail = context.rails.message
                    await rail.send_code("2125550142", "123456", "Pay")
                    await rail.send(
                        Message(uuid4(), "9175550199", "jordan@mail.example", "Pay", "Your payment", BAD)
                    )

        asyncio.run(fill())
        yield command


def test_the_newest_message_is_printed_first_with_its_day_and_without_control_characters(told: Cuota) -> None:
    done = told("sandbox", "inbox")
    assert done.returncode == 0
    heads = [line.partition("UTC  ")[2] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert heads == ["text to 9175550199", "mail to jordan@mail.example", "text to 2125550142"]
    assert "    123456 is your Pay code." in done.stdout
    assert done.stdout.count("    Due  [2Jnow.") == 2
    assert done.stdout.count("    Your payment\n") == 1
    assert "\x1b" not in done.stdout


def test_a_script_can_get_the_messages_of_one_recipient_as_json(told: Cuota) -> None:
    done = told("sandbox", "inbox", "--json", "--to", "(917) 555-0199")
    [only] = json.loads(done.stdout)
    assert (only["channel"], only["to"], only["subject"], only["text"]) == (
        "text",
        "9175550199",
        "Your payment",
        BAD,
    )
    assert set(only) == {"id", "channel", "to", "subject", "text", "createdAt"}


def test_the_option_limit_is_respected(told: Cuota) -> None:
    assert len(json.loads(told("sandbox", "inbox", "--json", "--limit", "2").stdout)) == 2


def test_an_inbox_without_messages_says_so(told: Cuota) -> None:
    assert (
        told("sandbox", "inbox", "--to", "nobody@mail.example").stdout
        == "No messages have been sent to nobody@mail.example.\n"
    )
    assert json.loads(told("sandbox", "inbox", "--json", "--to", "nobody@mail.example").stdout) == []


@pytest.mark.parametrize("wrong", [["--limit", "0"], ["--limit", "x"], ["--limit", "10001"], ["--to", " "]])
def test_usage_errors_are_explained(bare: Cuota, wrong: list[str]) -> None:
    done = bare("sandbox", "inbox", *wrong)
    assert done.returncode == 2
    assert f"argument {wrong[0]}: must be" in done.stderr


def test_in_production_the_command_says_that_there_is_no_inbox_without_opening_a_database(
    bare: Cuota,
) -> None:
    done = bare("sandbox", "inbox", **PRODUCTION)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "cuota: CUOTA_ENVIRONMENT is production, which has no inbox because messages are really sent. "
        "Run this in the sandbox.\n"
    )
    assert not (bare.data).exists()
