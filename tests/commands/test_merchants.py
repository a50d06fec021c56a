"""Tests of `cuota merchant` and its subcommands."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from typing import Any
from uuid import UUID

import pytest

from support.commands import Cuota

TERMS = {
    "merchantId",
    "name",
    "minimumAmount",
    "maximumAmount",
    "deferFundsCapture",
    "profile",
    "currency",
    "origins",
    "onboarding",
    "suspended",
}
SECRETS = {"clientId", "clientSecret", "audience", "signingSecret", "webhookSecret"}


def create(cuota: Cuota, *more: str) -> dict[str, Any]:
    done = cuota("merchant", "create", "--name", f"Shop {secrets.token_hex(4)}", *more, "--json")
    assert done.returncode == 0, done.stderr
    # Standard error has only the line that says which data the command uses.
    assert done.stderr.startswith("cuota: sandbox, data in ")
    assert done.stderr.count("\n") == 1
    return dict(json.loads(done.stdout))


def read(cuota: Cuota, *arguments: str) -> Any:
    done = cuota(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    # Standard error has only the line that says which data the command uses.
    assert done.stderr.startswith("cuota: sandbox, data in ")
    assert done.stderr.count("\n") == 1
    return json.loads(done.stdout)


def test_a_new_merchant_s_secrets_are_printed_only_once(cuota: Cuota) -> None:
    made = create(cuota)
    assert set(made) == TERMS | SECRETS
    assert UUID(made["merchantId"])
    shown = read(cuota, "merchant", "show", made["merchantId"])
    assert set(shown) == TERMS | {"clientIds", "audience", "approvals", "status"}
    assert shown["approvals"] == "off"
    assert "approvals          off" in cuota("merchant", "show", made["merchantId"]).stdout
    assert shown["clientIds"] == [made["clientId"]]
    assert all(
        made[name] not in json.dumps(shown) for name in ("clientSecret", "signingSecret", "webhookSecret")
    )


def test_a_merchant_without_options_has_the_documented_defaults(cuota: Cuota) -> None:
    made = create(cuota)
    assert (made["minimumAmount"], made["maximumAmount"]) == ("1.00", "2000.00")
    assert (made["deferFundsCapture"], made["profile"], made["origins"]) == (False, "strict", [])


def test_every_option_of_a_merchant_can_be_chosen_and_changed(cuota: Cuota) -> None:
    made = create(
        cuota, "--minimum", "5", "--maximum", "99.99", "--defer-funds-capture", "--profile", "lenient",
        "--origin", "https://a.example:443/", "--origin", "http://localhost:3000",
    )  # fmt: skip
    assert (made["minimumAmount"], made["maximumAmount"], made["profile"]) == ("5.00", "99.99", "lenient")
    assert made["deferFundsCapture"] is True
    # The command writes origins like browsers, without the scheme's default port.
    assert made["origins"] == ["https://a.example", "http://localhost:3000"]
    changed = read(
        cuota, "merchant", "update", made["name"].upper(), "--no-defer-funds-capture", "--maximum", "50"
    )
    assert (changed["deferFundsCapture"], changed["maximumAmount"], changed["minimumAmount"]) == (
        False,
        "50.00",
        "5.00",
    )
    assert read(cuota, "merchant", "show", made["name"])["maximumAmount"] == "50.00"


def test_all_merchants_are_listed_for_scripts_and_for_people(cuota: Cuota) -> None:
    made = create(cuota)
    listed = read(cuota, "merchant", "list")
    assert all(set(merchant) == TERMS | {"approvals", "status"} for merchant in listed)
    assert made["merchantId"] in {merchant["merchantId"] for merchant in listed}
    cuota("merchant", "approvals", made["name"], "trial")
    assert (
        f"{made['merchantId']}  {made['name']}  (active; approvals: trial)"
        in cuota("merchant", "list").stdout
    )


def test_a_rotated_secret_is_new_and_keeps_its_client_id(cuota: Cuota) -> None:
    made = create(cuota)
    (rotated,) = read(cuota, "merchant", "rotate-secret", made["name"])
    assert rotated["clientId"] == made["clientId"]
    assert rotated["clientSecret"] != made["clientSecret"]


def test_a_revoked_merchant_has_no_valid_credential(cuota: Cuota) -> None:
    made = create(cuota)
    assert read(cuota, "merchant", "revoke", made["name"]) == {"revoked": 1}
    log = read(cuota, "desk", "log", "--merchant", made["name"])
    again = cuota("merchant", "revoke", made["name"])
    assert (again.returncode, again.stdout) == (1, "")
    assert f"Nothing was changed: {made['name']} is revoked already." in again.stderr
    assert read(cuota, "desk", "log", "--merchant", made["name"]) == log
    newest = read(cuota, "desk", "log", "--limit", "1")[0]
    assert newest["action"] == "merchant.revoke.refused"
    assert read(cuota, "merchant", "show", made["name"])["clientIds"] == []
    done = cuota("merchant", "rotate-secret", made["name"])
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no live credential" in done.stderr
    assert f"cuota merchant reinstate '{made['name']}'" in done.stderr


def test_the_state_of_a_merchant_is_listed_and_shown(cuota: Cuota) -> None:
    active, suspended, revoked = create(cuota), create(cuota), create(cuota)
    read(cuota, "merchant", "suspend", suspended["name"], "--reason", "complaints")
    read(cuota, "merchant", "revoke", revoked["name"])
    opened = cuota("merchant", "create", "--name", "Waits", "--json", CUOTA_ONBOARDING="required")
    waits = json.loads(opened.stdout)
    states = {each["merchantId"]: each["status"] for each in read(cuota, "merchant", "list")}
    lines = cuota("merchant", "list").stdout
    for made, state in (
        (active, "active"), (suspended, "suspended"), (revoked, "revoked"), (waits, "onboarding"),
    ):  # fmt: skip
        assert states[made["merchantId"]] == state
        assert f"{made['name']}  ({state}; approvals: off)" in lines
        assert read(cuota, "merchant", "show", made["name"])["status"] == state


def test_a_revoked_merchant_is_reinstated_with_a_new_credential(cuota: Cuota) -> None:
    made = create(cuota)
    early = cuota("merchant", "reinstate", made["name"])
    assert (early.returncode, early.stdout) == (1, "")
    assert "has a live credential" in early.stderr
    assert f"cuota merchant rotate-secret '{made['name']}'" in early.stderr
    read(cuota, "merchant", "revoke", made["name"])
    new = read(cuota, "merchant", "reinstate", made["name"])
    assert new["clientId"] != made["clientId"]
    assert new["clientSecret"].startswith("secret_")
    assert read(cuota, "merchant", "show", made["name"])["clientIds"] == [new["clientId"]]


def test_an_update_without_an_option_is_refused(cuota: Cuota) -> None:
    done = cuota("merchant", "update", create(cuota)["name"])
    assert (done.returncode, done.stdout) == (1, "")
    assert "Nothing was changed" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--name", ""), "1 to 100 printable characters"),
        (("--name", "x" * 101), "1 to 100 printable characters"),
        (("--name", "two\nlines"), "1 to 100 printable characters"),
        (("--name", b"\xff\xfe"), "1 to 100 printable characters"),
        (("--name", "A", "--minimum", "0"), "The minimum (0.00) must be positive"),
        (("--name", "A", "--minimum=-1"), "The minimum (-1.00) must be positive"),
        (
            ("--name", "A", "--minimum", "10", "--maximum", "9.99"),
            "The minimum 10.00 is above the maximum 9.99.",
        ),
        (("--name", "A", "--maximum", "9999999999999999"), "at most 1000000000.00"),
        (("--name", "A", "--origin", "shop.example"), "--origin shop.example "),
        (
            ("--name", "A", "--origin", "https://shop.example/cart"),
            "Give only the origin: https://shop.example",
        ),
        (("--name", "A", "--origin", "http://["), "--origin http://[ "),
        (("--name", "A", "--origin", "javascript:alert(1)"), "--origin javascript:alert(1) "),
    ],
)
def test_bad_options_exit_with_1_and_print_one_line(
    cuota: Cuota, arguments: tuple[str | bytes, ...], said: str
) -> None:
    done = cuota("merchant", "create", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert done.stderr.startswith("cuota: ")
    # Standard error may also have the line that says which data the command uses.
    lines = done.stderr.splitlines()
    assert len([line for line in lines if not line.startswith("cuota: sandbox, data in ")]) == 1


def test_a_name_can_be_used_only_once_regardless_of_case(cuota: Cuota) -> None:
    first, second = create(cuota), create(cuota)
    for arguments in (
        ("merchant", "create", "--name", first["name"].upper()),
        ("merchant", "update", second["name"], "--name", first["name"]),
    ):
        done = cuota(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert "There is already a merchant named" in done.stderr


def test_names_that_differ_only_in_their_spaces_are_the_same_name(cuota: Cuota) -> None:
    word = secrets.token_hex(4)
    made = read(cuota, "merchant", "create", "--name", f"  The   {word} shop ")
    assert made["name"] == f"The {word} shop"
    other = create(cuota)
    for again in (
        ("merchant", "create", "--name", f"The {word}  shop "),
        ("merchant", "update", other["name"], "--name", f" the {word} shop"),
    ):
        done = cuota(*again)
        assert done.returncode == 1
        assert "There is already a merchant named" in done.stderr
    assert read(cuota, "merchant", "show", f"The  {word} shop ")["merchantId"] == made["merchantId"]


def test_a_name_cannot_be_the_id_of_a_merchant(cuota: Cuota) -> None:
    made = create(cuota)
    taken = made["merchantId"].upper().replace("-", "")
    for arguments in (("merchant", "create", "--name"), ("merchant", "update", made["name"], "--name")):
        done = cuota(*arguments, taken)
        assert done.returncode == 1
        assert f"{taken} has the form of an id" in done.stderr


@pytest.mark.parametrize("name", ["nobody", "6cacf954-031b-4611-ba2c-ef68005d3112", b"\xff"])
@pytest.mark.parametrize("command", ["show", "update", "rotate-secret", "revoke"])
def test_an_unknown_merchant_exits_with_1_and_the_error_says_how_to_find_merchants(
    cuota: Cuota, command: str, name: str | bytes
) -> None:
    done = cuota("merchant", command, name)
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no merchant" in done.stderr
    assert "`cuota merchant list`" in done.stderr


def test_a_closed_pipe_causes_no_unexpected_error(cuota: Cuota) -> None:
    command = [sys.executable, "-m", "cuota", "merchant", "list"]
    process = subprocess.Popen(
        command, env=cuota.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    # Standard error has only the line that says which data the command uses.
    assert process.stderr.read().count(b"\n") == 1
    assert process.wait() == 1
    process.stderr.close()
