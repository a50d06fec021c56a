"""`cuota consumer export` and `erase`, as an operator uses them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from cuota.core.privacy.erasure import STAYS
from support.commands import Cuota, only_where
from support.serving import serving

PHONE = "2125550166"


@pytest.fixture(scope="module")
def known(cuota: Cuota) -> Cuota:
    """A sandbox in which an order contains a phone number and a one-time code has confirmed it."""
    with serving(cuota) as (line, _):
        made = json.loads(
            cuota("merchant", "create", "--name", "Known", "--json", CUOTA_PUBLIC_URL=line["url"]).stdout
        )
        with httpx.Client(base_url=line["listen"], trust_env=False, timeout=60) as http:
            grant = {
                "client_id": made["clientId"], "client_secret": made["clientSecret"], "audience": made["audience"],
                "grant_type": "client_credentials",
            }  # fmt: skip
            token = http.post("/oauth/token", json=grant).json()["access_token"]
            body = {
                "amount": "40.00", "merchantReference": "E-1", "consumer": {"phoneNumber": PHONE, "surname": "Quackenbush"},
                "merchant": {"redirectConfirmUrl": "http://127.0.0.1:9/y", "redirectCancelUrl": "http://127.0.0.1:9/n"},
            }  # fmt: skip
            order = http.post("/order", json=body, headers={"Authorization": f"Bearer {token}"}).json()
        done = cuota(
            "sandbox",
            "complete",
            order["redirectUrl"],
            "--phone",
            PHONE,
            "--outcome",
            "approved",
            CUOTA_PUBLIC_URL=line["url"],
        )
        assert done.returncode == 0, done.stderr
    return cuota


def test_an_export_is_written_to_a_new_file_that_only_its_owner_can_read(
    known: Cuota, tmp_path: Path
) -> None:
    file = tmp_path / "person.json"
    done = known("consumer", "export", "--phone", "(212) 555-0166", "--out", str(file))
    assert done.returncode == 0
    assert only_where(done), done.stderr
    found = json.loads(file.read_text())
    assert (found["phone"], found["found"], len(found["orders"])) == (PHONE, True, 1)
    assert file.stat().st_mode & 0o777 == 0o600
    again = known("consumer", "export", "--phone", PHONE, "--out", str(file))
    assert again.returncode == 1
    assert "exists already" in again.stderr
    assert json.loads(known("consumer", "export", "--phone", PHONE).stdout)["orders"]


def test_an_erasure_asks_for_confirmation_and_is_refused_while_money_is_owed(known: Cuota) -> None:
    unsure = known("consumer", "erase", "--phone", PHONE)
    assert unsure.returncode == 1
    assert "First see what would be erased with --dry-run" in unsure.stderr
    refused = known("consumer", "erase", "--phone", PHONE, "--yes")
    assert refused.returncode == 1
    assert "$30.00 of the plan is still owed" in refused.stdout
    log = json.loads(known("desk", "log", "--json").stdout)
    assert [each["action"] for each in log[:2]] == ["consumer.erase.refused", "consumer.erase"]
    assert "$30.00 of the plan is still owed" in log[0]["reason"]
    facts = json.loads(known("consumer", "erase", "--phone", PHONE, "--dry-run", "--json").stdout)
    assert (facts["erased"], facts["dryRun"], len(facts["refusedBecause"])) == (False, True, 1)


@pytest.mark.parametrize("number", ["12", "0125550166", "jordan@mail.example"])
def test_a_text_that_is_no_phone_number_is_a_usage_error(bare: Cuota, number: str) -> None:
    done = bare("consumer", "export", "--phone", number)
    assert done.returncode == 2
    assert "ten digits" in done.stderr


def test_a_person_at_a_terminal_confirms_by_typing_the_number_again(known: Cuota) -> None:
    """This test runs last, because it erases the data."""
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "cuota", "consumer", "erase", "--phone", "2125550100"]
    process = subprocess.Popen(
        command,
        env=known.environment(),
        stdin=secondary,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.write(primary, b"212-555-0100\n")
    said, _ = process.communicate(timeout=60)
    os.close(primary)
    os.close(secondary)
    assert process.returncode == 0
    assert "type the phone number again" in said
    assert "No personal data is stored for this number." in said


def test_the_command_lists_what_is_kept_and_why(known: Cuota) -> None:
    facts = json.loads(known("consumer", "erase", "--phone", "2125550100", "--dry-run", "--json").stdout)
    assert [(each["what"], each["why"]) for each in facts["kept"]] == list(STAYS)
