"""How a person uses `cuota listen` and `cuota webhook replay`, even without any data."""

from __future__ import annotations

import json

import pytest

from support.commands import Cuota


@pytest.mark.parametrize(
    "command", [["verify"], ["listen", "--merchant", "x"], ["webhook", "replay", "--merchant", "x", "--all"]]
)
def test_a_folder_without_a_database_is_reported_and_no_database_is_created(
    bare: Cuota, command: list[str]
) -> None:
    done = bare(*command)
    assert done.returncode == 1
    assert f"There is no database in {bare.data}. Set CUOTA_DATA_DIR" in done.stderr
    assert not bare.data.exists()


def test_a_replay_with_a_forgotten_option_sends_nothing(cuota: Cuota) -> None:
    assert cuota("merchant", "create", "--name", "Alder").returncode == 0
    done = cuota("webhook", "replay", "--merchant", "Alder")
    assert done.returncode == 2
    assert "Choose what to send again: --event, --endpoint, --after, --until, or --all." in done.stderr
    again = cuota("webhook", "replay", "--merchant", "Alder", "--all", "--json")
    assert json.loads(again.stdout) == {"replayed": 0}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--event", "X", "--all"), "either --event or --all"),
        (("--event", "X", "--after", "Y"), "either --event or --after"),
        (("--all", "--until", "Y"), "either --all or --until"),
    ],
)
def test_a_replay_refuses_an_option_that_it_would_ignore(
    bare: Cuota, options: tuple[str, ...], said: str
) -> None:
    done = bare("webhook", "replay", "--merchant", "Alder", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("option", ["--event", "--after", "--until"])
def test_a_replay_of_an_unknown_event_names_the_event_and_the_command_that_lists_the_merchant_s_events(
    cuota: Cuota, option: str
) -> None:
    cuota("merchant", "create", "--name", "Elder Tree")
    done = cuota("webhook", "replay", "--merchant", "Elder Tree", option, "evt_1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Elder Tree has no event evt_1. To see the merchant's events, run:" in done.stderr
    assert "listen --merchant 'Elder Tree' --from-start --json" in done.stderr


def test_listen_refuses_an_invalid_address(bare: Cuota) -> None:
    done = bare("listen", "--merchant", "Alder", "--forward", "notaurl")
    assert done.returncode == 1
    assert "--forward notaurl" in done.stderr
