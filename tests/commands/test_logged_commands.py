"""Commands that change something are in the operator's log, with the user of the operating system; a refusal is a second entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuota.cli import _about_database
from cuota.db.pool import FULL
from support.bank.statements import BANK_FILES, booked, statement
from support.commands import Cuota


@pytest.fixture(scope="module")
def shop(cuota: Cuota) -> str:
    """A merchant."""
    assert cuota("merchant", "create", "--name", "Noted").returncode == 0
    return "Noted"


def entries(cuota: Cuota, *more: str) -> list[dict[str, Any]]:
    """Return the log, newest first."""
    done = cuota("desk", "log", "--json", *more)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("command", "action"),
    [
        (("keys", "rotate"), "keys.rotate"),
        (("webhook", "replay", "--merchant", "Noted", "--all"), "webhook.replay"),
        (("merchant", "approvals", "Noted", "trial"), "merchant.approvals"),
        (("desk", "invite", "--operator", "--role", "risk", "--name", "Ada", "--email", "ada@pay.example"), "operator.invite"),
    ],
)  # fmt: skip
def test_a_command_that_changes_something_is_logged_with_its_user(
    cuota: Cuota, shop: str, command: tuple[str, ...], action: str
) -> None:
    done = cuota(*command)
    assert done.returncode == 0, done.stderr
    newest = entries(cuota)[0]
    assert newest["action"].endswith(action.partition(".")[2])
    assert "user " in newest["actor"]


def test_files_and_reports_of_the_bank_are_logged(cuota: Cuota, tmp_path: Path) -> None:
    (tmp_path / "statement.xml").write_bytes(
        statement(booked("CRDT", "10.00", "0" * 31 + "1", reason="AC04"))
    )
    assert cuota("bank", "make", **BANK_FILES).returncode == 0
    assert cuota("bank", "file", "7", **BANK_FILES).returncode == 1
    assert cuota("bank", "report", str(tmp_path / "statement.xml"), **BANK_FILES).returncode == 1
    assert [each["action"] for each in entries(cuota)[:3]] == ["bank.report", "bank.file", "bank.make"]


def test_a_refused_change_of_the_approvals_is_logged_as_refused_and_the_merchant_sees_no_change(
    cuota: Cuota, shop: str
) -> None:
    assert cuota("merchant", "approvals", shop, "on").returncode == 1
    refused, asked = entries(cuota)[:2]
    assert (asked["action"], refused["action"]) == ("merchant.approvals", "merchant.approvals.refused")
    assert refused["reason"]


def test_more_workers_than_the_database_has_sessions_are_refused_with_the_largest_number(
    cuota: Cuota,
) -> None:
    done = cuota("serve", "--port", "0", "--workers", "64")
    assert done.returncode == 1
    assert "64 worker processes may need 1344 database sessions, and commands need 10 more." in done.stderr
    assert "Use at most --workers 18, or a smaller CUOTA_POOL_SIZE." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_says_what_to_do_if_the_database_has_no_free_session() -> None:
    said = _about_database(FULL("remaining connection slots are reserved"))
    assert said is not None
    assert said.startswith(
        "The database has no free session: remaining connection slots are reserved. Use fewer"
    )
