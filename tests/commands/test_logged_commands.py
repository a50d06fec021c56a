"""Commands that change something are in the operator's log, with the user of the operating system; a refusal is a second entry."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from cuota import config
from cuota.cli import _about_database
from cuota.core.payout.bank_order import Credit
from cuota.db.embedded.server import open_embedded
from cuota.db.pool import FULL
from cuota.flows.context import utc_now
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.rails.bank.files import FileBankRail
from cuota.run import runtime
from support.bank.statements import BANK_FILES, booked, statement
from support.commands import Cuota, on_a_folder
from support.payouts import make_payout


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


def test_a_backup_and_a_rewrap_of_the_secrets_are_logged_when_they_are_done(
    cuota: Cuota, shop: str, tmp_path: Path
) -> None:
    file = str(tmp_path / "whole.backup")
    assert cuota("backup", file).returncode == 0
    assert cuota("backup", file).returncode == 1
    assert cuota("keys", "rewrap").returncode == 0
    rewrap, backup = entries(cuota)[:2]
    assert (backup["action"], backup["after"]["file"]) == ("backup", file)
    assert (rewrap["action"], rewrap["after"]["unreadable"]) == ("keys.rewrap", "0")
    assert "user " in backup["actor"]
    assert "user " in rewrap["actor"]


def test_a_migration_is_logged_if_it_changes_the_database() -> None:
    with on_a_folder() as fresh, open_embedded(fresh.data):
        assert fresh("migrate").returncode == 0
        assert fresh("migrate").returncode == 0
        (entry,) = entries(fresh)
    assert entry["action"] == "database.migrate"
    assert entry["after"]["migrations"].startswith("00")
    assert "user " in entry["actor"]


def test_each_change_of_the_sandbox_s_clock_and_its_forks_is_logged_also_after_a_rewind(cuota: Cuota) -> None:
    commands = (
        ("fork", "logged"),
        ("advance", "1h"),
        ("forget", "logged"),
        ("fork", "logged"),
        ("rewind", "logged"),
    )
    for command in commands:
        done = cuota("time", *command)
        assert done.returncode == 0, done.stderr
    assert cuota("time").returncode == 0
    rewind, forget, advance, fork = entries(cuota, "--action", "sandbox.")[:4]
    assert (rewind["action"], rewind["subject"]) == ("sandbox.rewind", "Back to the fork logged")
    assert (forget["action"], fork["action"]) == ("sandbox.forget", "sandbox.fork")
    assert advance["before"]["clock"] < advance["after"]["clock"]
    assert all("user " in each["actor"] for each in (rewind, forget, advance, fork))


def test_files_and_reports_of_the_bank_are_logged(cuota: Cuota, tmp_path: Path) -> None:
    (tmp_path / "statement.xml").write_bytes(
        statement(booked("CRDT", "10.00", "0" * 31 + "1", reason="AC04"))
    )
    assert cuota("bank", "make", **BANK_FILES).returncode == 0
    missing = cuota("bank", "file", "7", **BANK_FILES)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "cuota: There is no bank file 7. List them with: cuota bank files" in missing.stderr
    assert cuota("bank", "report", str(tmp_path / "statement.xml"), **BANK_FILES).returncode == 1
    assert [each["action"] for each in entries(cuota)[:4]] == [
        "bank.report", "bank.file.refused", "bank.file", "bank.make",
    ]  # fmt: skip


async def _queue(cuota: Cuota, shop: str, amount: int) -> None:
    """Queue a payment for the next bank file."""
    settings = config.load({"CUOTA_DATA_DIR": str(cuota.data), **BANK_FILES})
    with runtime.database(settings) as where:
        await runtime.migrated(settings, where)
        async with runtime.opened(settings, where, pool_size=2, decides=False) as context:
            assert context.rails.bank is not None
            rail = context.rails.bank.rail
            assert isinstance(rail, FileBankRail)
            merchant = await find_merchant(context, shop)
            payout_id = await make_payout(context, merchant.merchant_id)
            credit = Credit(payout_id, 0, "Shop", "021000021", "123456789", amount, "USD")
            await rail.books.order(credit, utc_now())


def test_the_number_of_a_new_bank_file_is_logged(cuota: Cuota, shop: str) -> None:
    asyncio.run(_queue(cuota, shop, 1234))
    made = cuota("bank", "make", "--effective", "2026-12-01", "--json", **BANK_FILES)
    assert made.returncode == 0, made.stderr
    (file,) = json.loads(made.stdout)
    newest = entries(cuota)[0]
    assert (newest["action"], newest["subject"]) == ("bank.made", f"bank file {file['number']}")
    assert newest["after"] == {"effective": "2026-12-01", "payments": "1", "amount": "12.34"}


def test_a_report_that_is_not_there_is_named_in_the_error(bare: Cuota) -> None:
    done = bare("bank", "report", "/nonexistent", **BANK_FILES)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "cuota: Cannot read /nonexistent: no such file. Nothing was recorded.\n"


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        (
            ("update", "--minimum", "2", "--defer-funds-capture", "--origin", "https://a.example", "--origin", "https://b.example"),
            {"minimum": "1.00", "deferFundsCapture": "no", "origins": "none"},
            {"minimum": "2.00", "deferFundsCapture": "yes", "origins": "https://a.example, https://b.example"},
        ),
        (("terms", "--percent", "5.9", "--fixed", "0.30"), None, {"percent": "5.90 %", "fixed": "0.30"}),
        (("terms", "--percent", "4", "--refund-fee", "kept"), {"percent": "5.90 %", "refundFee": "kept"},
            {"percent": "4.00 %", "refundFee": "kept"}),
        (("bank", "--routing", "021000021", "--account", "123456789"), {"account": "****6789"}, {"account": "****6789"}),
        (("rotate-secret",), None, {"replaced": "client secret"}),
        (("rotate-signing-secret",), None, {"replaced": "signing secret"}),
        (("rotate-webhook-secret",), None, {"replaced": "webhook secret"}),
        (("rotate-webhook-secret", "--end-old"), None, {"ended": "old webhook secret"}),
    ],
)  # fmt: skip
def test_an_entry_has_the_values_before_and_after_as_a_person_reads_them(
    cuota: Cuota, shop: str, command: tuple[str, ...], before: dict[str, str] | None, after: dict[str, str]
) -> None:
    done = cuota("merchant", command[0], shop, *command[1:])
    assert done.returncode == 0, done.stderr
    newest = entries(cuota)[0]
    assert (newest["before"], newest["after"]) == (before, after)


def test_the_printed_log_shows_the_values_and_has_one_line_for_each_entry(cuota: Cuota, shop: str) -> None:
    reason = "complaints\nof shoppers"
    assert cuota("merchant", "suspend", shop, "--reason", "x").returncode == 0
    assert cuota("merchant", "resume", shop, "--reason", "y").returncode == 0
    assert cuota("merchant", "update", shop, "--maximum", "1500").returncode == 0
    assert "maximum: 2000.00 → 1500.00" in cuota("desk", "log", "--limit", "1").stdout
    invited = ("desk", "invite", "--operator", "--role", "risk", "--name", "Bo", "--email", "bo@pay.example")
    assert cuota(*invited, "--reason", reason).returncode == 0
    printed = cuota("desk", "log", "--limit", "1").stdout
    assert "(complaints of shoppers)" in printed
    assert printed.count("\n") == 1


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
