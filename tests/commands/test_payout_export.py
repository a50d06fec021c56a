"""`cuota payout-export` prints a payout as a journal for an accounting program."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from commands.test_operate import sql
from support.commands import Cuota

PAYOUT = "01a1fd26-ec25-7faf-84fe-91b1266e7426"


@pytest.fixture
def shop(cuota: Cuota) -> str:
    """A merchant with one payout of two lines. Returns its id."""
    name = f"Shop {uuid4().hex}"
    made = cuota("merchant", "create", "--name", name, "--json")
    assert made.returncode == 0, made.stderr
    whose = json.loads(made.stdout)["merchantId"]
    line = """INSERT INTO settlement_lines (merchant_id, number, type, cause, reference, gross, fee, net, currency, at)
        VALUES"""
    sql(
        cuota,
        f"INSERT INTO settlements (merchant_id, lines, closed) VALUES ('{whose}', 2, 2) ON CONFLICT (merchant_id) DO NOTHING",
        f"INSERT INTO bank_accounts VALUES ('{whose}', '{PAYOUT}', 'x', 'x', '6789', '2026-01-01', '2026-01-01')",
        f"""WITH written AS ({line} ('{whose}', 1, 'capture', gen_random_uuid(), 'ship-1', 11996, 0, 11996, 'USD', '2026-11-23 12:00Z'),
            ('{whose}', 2, 'fee', gen_random_uuid(), 'ship-1', 0, -738, -738, 'USD', '2026-11-23 12:00Z') RETURNING 1)
        INSERT INTO payouts (merchant_id, payout_id, number, status, amount, currency, first_line, last_line, account_id, cutoff,
            closed_at, arrival_date)
        SELECT '{whose}', '{PAYOUT}', 1, 'paid', 11258, 'USD', 1, 2, '{PAYOUT}', '2026-11-24 05:00Z', '2026-11-24 05:00Z',
            '2026-11-25' FROM written LIMIT 1""",
    )
    return str(whose)


def test_a_payout_is_exported_as_transactions_that_name_its_lines(cuota: Cuota, shop: str) -> None:
    done = cuota("payout-export", "--merchant", shop, "--payout", PAYOUT)
    assert (done.returncode, done.stdout.count("\n20") + 1) == (0, 3)
    assert "    Expenses:Cuota:Fees  7.38 USD" in done.stdout
    assert "2026-11-25 * Cuota payout" in done.stdout
    assert "    Assets:Bank  112.58 USD" in done.stdout
    counted = cuota("payout-export", "--merchant", shop, "--payout", PAYOUT, "--format", "beancount")
    assert counted.stdout.startswith("1970-01-01 open Assets:Bank\n")


def test_an_unknown_payout_is_one_line_of_error(cuota: Cuota, shop: str) -> None:
    done = cuota("payout-export", "--merchant", shop, "--payout", str(uuid4()))
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no payout" in done.stderr
    assert cuota("payout-export", "--merchant", shop, "--payout", "x").returncode == 2
