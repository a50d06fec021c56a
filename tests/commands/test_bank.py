"""`cuota bank`: files for a bank, and its reports."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commands.test_merchants import create
from commands.test_operate import sql
from commands.test_payouts import a_payout
from cuota.core.payout.calendar import next_business_day
from support.bank.statements import BANK_FILES as FILES
from support.bank.statements import booked, nacha_returns, statement
from support.commands import Cuota


def test_without_the_rail_for_bank_files_the_commands_say_so(cuota: Cuota) -> None:
    done = cuota("bank", "files")
    assert done.returncode == 1
    assert "CUOTA_BANK_RAIL is not files" in done.stderr


def test_each_missing_setting_is_named(cuota: Cuota) -> None:
    done = cuota("bank", "files", CUOTA_BANK_RAIL="files")
    assert done.returncode != 0
    for name in FILES:
        if name != "CUOTA_BANK_RAIL":
            assert name in done.stderr
    wrong = cuota("bank", "files", **{**FILES, "CUOTA_BANK_ROUTING": "011000016"})
    assert "CUOTA_BANK_ROUTING: must be a routing number" in wrong.stderr
    assert "011000016" not in wrong.stderr


def test_the_commands_still_work_for_the_files_of_an_earlier_rail(cuota: Cuota) -> None:
    kept = {**FILES, "CUOTA_BANK_RAIL": "sandbox", "CUOTA_BANK_RAILS_KEPT": "files"}
    assert cuota("bank", "files", **kept).returncode == 0
    missing = cuota("bank", "files", CUOTA_BANK_RAILS_KEPT="files")
    assert "CUOTA_BANK_COMPANY: must be set if a bank rail is files" in missing.stderr


def test_an_empty_queue_makes_no_file(cuota: Cuota) -> None:
    assert "No payment waits for a file." in cuota("bank", "make", **FILES).stdout
    shown = json.loads(cuota("bank", "files", "--json", **FILES).stdout)
    assert shown == {"files": [], "waiting": {"payments": 0, "amount": "0.00"}}
    done = cuota("bank", "file", "1", **FILES)
    assert (done.returncode, "There is no bank file 1" in done.stderr) == (1, True)


def test_a_report_about_unknown_payments_lists_them_and_exits_with_1(cuota: Cuota, tmp_path: Path) -> None:
    for name, content in (
        ("statement.xml", statement(booked("DBIT", "10.00", "0" * 31 + "1"))),
        ("returns.ach", nacha_returns(("799R03", "011000010000042", 1000)).encode()),
    ):
        (tmp_path / name).write_bytes(content)
        done = cuota("bank", "report", str(tmp_path / name), **FILES)
        assert done.returncode == 1
        assert "No payment of this amount" in done.stdout


@pytest.mark.parametrize("content", [b"", b"hello", b"<x/>", b"101 cut off"])
def test_a_file_that_is_no_report_is_refused_with_an_explanation(
    cuota: Cuota, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "report").write_bytes(content)
    done = cuota("bank", "report", str(tmp_path / "report"), **FILES)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("cuota: Nothing was recorded.")
    assert "Nothing was recorded." in cuota("bank", "report", str(tmp_path / "missing"), **FILES).stderr


@pytest.mark.parametrize(
    ("day", "said"), [("2026-11-26", "The next one is 2026-11-27"), ("tomorrow", "not a date")]
)
def test_the_bank_pays_on_business_days_only(cuota: Cuota, day: str, said: str) -> None:
    done = cuota("bank", "make", "--effective", day, **FILES)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("years", "said"), [(-1, "is over: at the bank, today is"), (1, "is more than 30 days ahead")]
)
def test_a_file_for_a_day_that_is_over_or_far_away_is_refused(cuota: Cuota, years: int, said: str) -> None:
    day = next_business_day(datetime.now(UTC).date() + timedelta(days=365 * years))
    done = cuota("bank", "make", "--effective", day.isoformat(), **FILES)
    assert done.returncode == 1
    assert f"{day} {said}" in done.stderr
    assert "No file was written." in done.stderr


def test_a_payment_whose_account_cannot_be_decrypted_is_named_and_the_exit_code_is_1(cuota: Cuota) -> None:
    merchant = create(cuota)
    a_payout(cuota, merchant, 1, "created")
    sql(
        cuota,
        """INSERT INTO bank_files.payments (payout_id, name, routing, account, amount, currency, ordered_at)
        SELECT payout_id, 'A shop', decode(repeat('ab', 40), 'hex'), decode(repeat('ab', 40), 'hex'), amount, currency, now() FROM payouts""",
    )
    done = cuota("bank", "make", **FILES)
    assert (done.returncode, done.stdout) == (1, "No file was written.\n")
    assert "of 47.11 to A shop stays in the queue." in done.stderr
    assert "Set CUOTA_SECRET_KEY_OLD to that key" in done.stderr
    assert json.loads(cuota("bank", "make", "--json", **FILES).stdout) == []
