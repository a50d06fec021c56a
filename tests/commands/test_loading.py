"""A run of one command loads the code of that command only."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from cuota.cli import COMMANDS, make_parser


def names(parser: argparse.ArgumentParser) -> set[str]:
    """Return the commands of a parser."""
    (groups,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    return set(groups.choices)


def test_without_a_command_the_parser_has_all_commands() -> None:
    assert names(make_parser()) == set(COMMANDS)
    assert names(make_parser("nonsense")) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_parser_of_a_command_has_the_commands_that_are_added_together(command: str) -> None:
    assert names(make_parser(command)) == {each for each, add in COMMANDS.items() if add is COMMANDS[command]}


@pytest.mark.parametrize(
    ("command", "others"),
    [
        ("merchant", ("cuota.run.serve", "cuota.commands.disputes", "cuota.work.loop")),
        ("serve", ("cuota.commands.merchants", "cuota.work.loop", "cuota.web.app")),
        ("verify", ("cuota.run.serve", "cuota.web.app")),
    ],
)
def test_a_command_does_not_load_the_code_of_others(command: str, others: tuple[str, ...]) -> None:
    program = f"import sys, cuota.cli; cuota.cli.make_parser({command!r}); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
    )
    assert set(others) & set(done.stdout.split()) == set()
