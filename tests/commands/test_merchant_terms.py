"""Tests of `cuota merchant terms`."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest

from support.commands import Cuota


def a_merchant(cuota: Cuota) -> str:
    name = f"Shop {secrets.token_hex(4)}"
    assert cuota("merchant", "create", "--name", name).returncode == 0
    return name


def terms(cuota: Cuota, *arguments: str) -> list[dict[str, Any]]:
    done = cuota("merchant", "terms", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["terms"]
    return found


def test_a_merchant_has_no_terms_at_first(cuota: Cuota) -> None:
    name = a_merchant(cuota)
    assert terms(cuota, name) == []
    assert "captures cost nothing" in cuota("merchant", "terms", name).stdout


def test_each_change_makes_a_new_version_and_keeps_the_other_terms(cuota: Cuota) -> None:
    name = a_merchant(cuota)
    terms(cuota, name, "--percent", "5.9", "--fixed", "0.30", "--refund-fee", "returned")
    first, second = terms(
        cuota, name, "--payout", "weekly", "--minimum", "1.00", "--reserve", "5%", "--reserve-days", "90",
        "--cutoff", "17:00", "--time-zone", "America/Chicago", "--valid-from", "2035-01-01",
    )  # fmt: skip
    assert (first["version"], first["percent"], first["fixed"], first["payout"]) == (
        1,
        "5.90",
        "0.30",
        "daily",
    )
    assert second.pop("validFrom") == "2035-01-01T00:00:00.000Z"
    assert second == {
        "version": 2, "percent": "5.90", "fixed": "0.30", "refundFee": "returned", "payout": "weekly",
        "minimum": "1.00", "reserve": "5.00", "reserveDays": 90, "cutoff": "17:00", "timeZone": "America/Chicago",
    }  # fmt: skip
    assert len(terms(cuota, name)) == 2
    shown = cuota("merchant", "terms", name).stdout
    assert "a capture costs 5.90 % and 0.30" in shown
    assert "5.00 % of captures are kept back for 90 days" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--percent", "5.999"), "5.999 is not a percentage"),
        (("--percent", "101"), "101 is not a percentage"),
        (("--percent", "-1"), "-1"),
        (("--fixed", "-0.30"), "0.00 to"),
        (("--fixed", "0.305"), "0.305 is not an amount"),
        (("--minimum", "-1.00"), "negative"),
        (("--refund-fee", "half"), "half"),
        (("--payout", "hourly"), "hourly"),
        (("--cutoff", "25:00"), "time of day"),
        (("--time-zone", "Springfield"), "is not a time zone"),
        (("--time-zone", "../../etc/passwd"), "is not a time zone"),
        (("--reserve", "5"), "--reserve-days"),
        (("--reserve-days", "5"), "--reserve"),
        (("--percent", "1", "--valid-from", "2020-01-01"), "in the past"),
        (("--valid-from", "2035-01-01"), "Say what changes"),
        (("--percent", "1", "--valid-from", "3d"), "Give a date"),
    ],
)
def test_bad_terms_are_refused_with_an_explanation_and_nothing_changes(
    cuota: Cuota, arguments: tuple[str, ...], said: str
) -> None:
    name = a_merchant(cuota)
    done = cuota("merchant", "terms", name, *arguments)
    assert done.returncode in {1, 2}
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert terms(cuota, name) == []


def test_a_version_does_not_begin_before_the_latest_one(cuota: Cuota) -> None:
    name = a_merchant(cuota)
    terms(cuota, name, "--percent", "1", "--valid-from", "2035-01-01")
    done = cuota("merchant", "terms", name, "--percent", "2")
    assert done.returncode == 1
    assert "Version 1 is valid from 2035-01-01" in done.stderr
