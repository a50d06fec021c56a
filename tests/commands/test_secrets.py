"""`cuota merchant rotate-signing-secret`, `rotate-webhook-secret`, `reinstate` and `cuota keys rewrap`."""

from __future__ import annotations

import base64
import json
import os
import secrets

from support.commands import Cuota, only_where


def test_each_secret_is_shown_once_by_the_command_that_makes_it(cuota: Cuota) -> None:
    name = f"Shop {secrets.token_hex(4)}"
    made = json.loads(cuota("merchant", "create", "--name", name, "--json").stdout)
    for what in ("signing", "webhook"):
        done = cuota("merchant", f"rotate-{what}-secret", name, "--json")
        facts = json.loads(done.stdout)
        assert done.returncode == 0
        assert only_where(done), done.stderr
        assert set(facts) == {"merchantId", f"{what}Secret", "oldSecretEndsAt"}
        assert facts[f"{what}Secret"] != made[f"{what}Secret"]
        again = cuota("merchant", f"rotate-{what}-secret", name)
        assert (again.returncode, again.stdout) == (1, "")
        assert "Nothing was changed" in again.stderr
        people = cuota("merchant", f"rotate-{what}-secret", name, "--again")
        assert people.returncode == 0
        assert "it is not shown again. The old secret works until" in people.stdout
        ended = cuota("merchant", f"rotate-{what}-secret", name, "--end-old")
        assert (ended.returncode, ended.stdout) == (0, f"The old {what} secret of {name} no longer works.\n")
    wrong = cuota("merchant", "rotate-webhook-secret", name, "https://nowhere.example")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "has no webhook endpoint" in wrong.stderr
    cuota("merchant", "revoke", name)
    new = json.loads(cuota("merchant", "reinstate", name, "--json").stdout)
    assert set(new) == {"clientId", "clientSecret", "signingSecret", "webhookSecret", "endpoints"}


def test_the_secret_key_is_replaced_by_three_commands(cuota: Cuota) -> None:
    name = f"Shop {secrets.token_hex(4)}"
    assert cuota("merchant", "create", "--name", name).returncode == 0
    old = (cuota.data / "secret.key").read_text().strip()
    new = base64.b64encode(os.urandom(32)).decode()
    given = {"CUOTA_SECRET_KEY": new, "CUOTA_SECRET_KEY_OLD": old}
    done = cuota("keys", "rewrap", "--json", **given)
    facts = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (facts["oldKeysCanBeRemoved"], facts["unreadable"], facts["otherProcesses"]) == (True, [], [])
    assert facts["rewrapped"] >= 4
    people = cuota("keys", "rewrap", **given)
    assert people.stdout.startswith("0 secrets were encrypted again.")
    assert "Remove CUOTA_SECRET_KEY_OLD" in people.stdout
    assert cuota("merchant", "show", name, CUOTA_SECRET_KEY=new).returncode == 0
    assert cuota("merchant", "show", name).returncode == 1
    bad = cuota("keys", "rewrap", CUOTA_SECRET_KEY=new, CUOTA_SECRET_KEY_OLD=f"{old},short")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "CUOTA_SECRET_KEY_OLD: must be one or more keys" in bad.stderr
    (cuota.data / "secret.key").write_text(new + "\n")
    assert cuota("merchant", "show", name).returncode == 0
