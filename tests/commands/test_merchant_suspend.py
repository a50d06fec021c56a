"""`cuota merchant suspend` and `resume`, and a new merchant of a service that requires an approval."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest

from support.commands import Cuota


def create(cuota: Cuota, **settings: str) -> dict[str, Any]:
    done = cuota("merchant", "create", "--name", f"Shop {secrets.token_hex(4)}", "--json", **settings)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def read(cuota: Cuota, *arguments: str) -> Any:
    done = cuota(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_merchant_is_suspended_and_resumed(cuota: Cuota) -> None:
    made = create(cuota)
    assert (made["suspended"], made["onboarding"]) == (False, "none")
    name = made["name"]
    assert read(cuota, "merchant", "suspend", name, "--reason", "complaints") == {
        "merchantId": made["merchantId"], "suspended": True, "payoutsHeld": False, "payoutsStopped": 0,
    }  # fmt: skip
    assert read(cuota, "merchant", "show", name)["suspended"] is True
    again = cuota("merchant", "suspend", name, "--reason", "complaints")
    assert (again.returncode, again.stdout) == (1, "")
    assert "is suspended already" in again.stderr
    assert read(cuota, "merchant", "resume", made["merchantId"], "--reason", "answered") == {
        "merchantId": made["merchantId"], "suspended": False,
    }  # fmt: skip
    assert read(cuota, "merchant", "show", name)["suspended"] is False
    again = cuota("merchant", "resume", name, "--reason", "answered")
    assert (again.returncode, again.stdout) == (1, "")
    assert "is not suspended" in again.stderr


def test_payouts_are_held_also_of_a_merchant_that_is_suspended_already(cuota: Cuota) -> None:
    made = create(cuota)
    cuota("merchant", "suspend", made["name"], "--reason", "complaints")
    done = cuota("merchant", "suspend", made["name"], "--reason", "fraud", "--hold-payouts")
    assert done.returncode == 0, done.stderr
    assert "Payouts are held" in done.stdout


@pytest.mark.parametrize("command", ["suspend", "resume"])
@pytest.mark.parametrize("reason", [None, "", "  ", "x" * 501])
def test_a_reason_is_needed(cuota: Cuota, command: str, reason: str | None) -> None:
    given = () if reason is None else ("--reason", reason)
    done = cuota("merchant", command, "Any shop", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--reason" in done.stderr


@pytest.mark.parametrize("command", ["suspend", "resume"])
def test_an_unknown_merchant_is_named(cuota: Cuota, command: str) -> None:
    done = cuota("merchant", command, "nobody", "--reason", "complaints")
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no merchant" in done.stderr


def test_a_merchant_that_is_created_while_an_approval_is_required_waits_for_it(cuota: Cuota) -> None:
    assert create(cuota, CUOTA_ONBOARDING="required")["onboarding"] == "open"
    assert create(cuota)["onboarding"] == "none"
