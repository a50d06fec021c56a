"""`cuota merchant adjust` and `cuota books`."""

from __future__ import annotations

import json

import pytest

from support.commands import Cuota


@pytest.fixture(scope="module")
def shop(cuota: Cuota) -> str:
    assert cuota("merchant", "create", "--name", "Adjusted Shop").returncode == 0
    return "Adjusted Shop"


def test_after_an_adjustment_the_trial_balance_has_changed_and_still_closes(cuota: Cuota, shop: str) -> None:
    for amount in ("-5.00", "1.25"):
        done = cuota(
            "merchant", "adjust", shop, "--amount", amount, "--reason", "Chargeback of June", "--json"
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["amount"] == amount
    done = cuota("books", "--json")
    assert done.returncode == 0
    books = json.loads(done.stdout)
    held = {each["account"]: each["balance"] for each in books["accounts"]}
    assert (held["losses"], held["merchant_payable"]) == ("-3.75", "3.75")
    assert books["totals"] == [{"currency": "USD", "debits": "6.25", "credits": "6.25"}]
    text = cuota("books").stdout
    assert "losses" in text
    assert "Debits and credits are equal." in text
    assert cuota("verify").returncode == 0


def test_the_trial_balance_of_a_day_before_all_movements_is_empty(cuota: Cuota, shop: str) -> None:
    done = cuota("books", "--as-of", "2020-02-29", "--json")
    assert json.loads(done.stdout) == {"before": "2020-03-01T00:00:00.000Z", "accounts": [], "totals": []}


@pytest.mark.parametrize(
    ("day", "before"),
    [
        ("2026-06-30", "2026-07-01T04:00:00.000Z"),
        ("2026-12-31", "2027-01-01T05:00:00.000Z"),
        # The clocks change on this day.
        ("2026-03-08", "2026-03-09T04:00:00.000Z"),
        ("2028-02-29", "2028-03-01T05:00:00.000Z"),
    ],
)
def test_with_bank_time_the_day_ends_at_midnight_in_new_york_like_the_months_of_losses(
    cuota: Cuota, shop: str, day: str, before: str
) -> None:
    done = cuota("books", "--as-of", day, "--bank-time", "--json")
    assert json.loads(done.stdout)["before"] == before


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("merchant", "adjust", "NAME", "--amount", "0", "--reason", "x"), 1, "must not be zero"),
        (("merchant", "adjust", "NAME", "--amount", "1.005", "--reason", "x"), 2, "is not an amount"),
        (("merchant", "adjust", "NAME", "--amount", "1", "--reason", " "), 1, "--reason must have 1 to 100"),
        (("merchant", "adjust", "NAME", "--amount", "1", "--reason", "x" * 101), 1, "--reason must have 1 to 100"),
        (("merchant", "adjust", "NAME", "--amount", "1"), 2, "--reason"),
        (("merchant", "adjust", "Nobody", "--amount", "1", "--reason", "x"), 1, "Nobody"),
        (("books", "--as-of", "yesterday"), 2, "is not a date such as 2026-06-30"),
        (("books", "--as-of", "2026-02-30"), 2, "is not a date such as 2026-06-30"),
        (("books", "--as-of", "20260630"), 2, "is not a date such as 2026-06-30"),
        (("books", "--as-of", "9999-12-31"), 2, "is not a date such as 2026-06-30"),
    ],
)  # fmt: skip
def test_a_usage_error_says_what_to_do(
    cuota: Cuota, shop: str, options: tuple[str, ...], code: int, said: str
) -> None:
    done = cuota(*(shop if word == "NAME" else word for word in options))
    assert done.returncode == code
    assert said in done.stderr
