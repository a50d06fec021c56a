"""Commands use the service's policy and letter texts, and ignore the settings in the environment of their shell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cuota import config
from cuota.db.embedded.server import open_embedded
from cuota.db.risk import policies
from cuota.flows.risk.keep_policy import WrongPolicy, read_policy, seal_policy
from cuota.run import runtime
from support.commands import Cuota, on_a_folder
from support.makers import PROFILE, complete
from support.own_service import opened_own
from support.phones import phone_number

STANDARD = read_policy(None)[1]
VERSION = read_policy(None)[0].version
DECLINED = replace(PROFILE, surname="Declinetest")
CREDITOR, AGENCY = "Acme Lending LLC, 1 Main Street", "Office of the Comptroller, Houston, TX 77010"


def _changed(folder: Path, version: str, was: str = 'new = "2000.00"', now: str = 'new = "2500.00"') -> Path:
    path = folder / f"{version}.toml"
    assert was in STANDARD
    path.write_text(STANDARD.replace(VERSION, version).replace(was, now))
    return path


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Cuota, str, str]]:
    """A service that ran with its own policy, creditor and agency, one of its declined decisions, and a shop."""
    with on_a_folder() as command, open_embedded(command.data) as embedded:
        where = dict(embedded.dsn_kwargs)
        path = _changed(command.data.parent, "2026-12-own", "most_points = 60", "most_points = 45")
        given = {"CUOTA_DATA_DIR": str(command.data), "CUOTA_POLICY": str(path), "CUOTA_CREDITOR": CREDITOR}
        settings = config.load({**given, "CUOTA_CREDITOR_AGENCY": AGENCY, "CUOTA_BRAND_NAME": "Quarterly"})

        async def run() -> tuple[str, str]:
            await runtime.migrated(settings, where)
            async with opened_own(settings, where) as own:
                await runtime.note_served(own.context, decides=True)
                order = await own.merchant.create("900.00")
                phone = phone_number()
                await complete(own.service, own.merchant.merchant_id, order, phone=phone, profile=DECLINED)
                async with own.owner() as owner:
                    found = await owner.fetchval("SELECT decision_id FROM decisions WHERE NOT approved")
                return own.merchant.name, str(found)

        yield command, *asyncio.run(run())


def test_a_trial_is_judged_by_the_policy_of_the_running_service(
    served: tuple[Cuota, str, str], tmp_path: Path
) -> None:
    cuota, shop, _ = served
    other = _changed(tmp_path, "2027-01-shell")
    for settings in ({}, {"CUOTA_POLICY": str(other)}):
        facts = json.loads(cuota("approvals", "report", shop, "--json", **settings).stdout)
        assert facts["policy"] == "2026-12-own"
    assert "under policy 2026-12-own" in cuota("approvals", "report", shop).stdout


def test_policy_show_prints_the_exact_text_in_force_and_stores_nothing(
    served: tuple[Cuota, str, str], tmp_path: Path
) -> None:
    cuota, _, _ = served
    other = _changed(tmp_path, "2027-01-shell")
    shown = cuota("policy", "show", CUOTA_POLICY=str(other))
    assert shown.stdout == (cuota.data.parent / "2026-12-own.toml").read_text()
    assert cuota("policy", "show", "2026-12-own").stdout == shown.stdout
    none = cuota("policy", "show", "2027-01-shell")
    assert (none.returncode, none.stdout) == (1, "")
    assert "There is no stored policy 2027-01-shell" in none.stderr


def test_the_letter_is_printed_as_the_service_writes_it(served: tuple[Cuota, str, str]) -> None:
    cuota, _, decision = served
    for settings in ({}, {"CUOTA_CREDITOR": "Somebody Else", "CUOTA_BRAND_NAME": "Shell"}):
        letter = cuota("explain", "decision", decision, "--letter", **settings).stdout
        assert f"Our address: {CREDITOR}." in letter
        assert f"concerning this creditor is: {AGENCY}." in letter
        assert "Thank you for choosing Quarterly." in letter
        assert "Shell" not in letter


@pytest.mark.parametrize("text", [None, "version = 1"])
def test_a_bad_policy_setting_stops_serve_but_no_command_that_needs_no_policy(
    served: tuple[Cuota, str, str], tmp_path: Path, text: str | None
) -> None:
    cuota, shop, _ = served
    path = tmp_path / "bad.toml"
    if text:
        path.write_text(text)
    for command in (["verify"], ["decide", "--replay"], ["approvals", "report", shop], ["policy", "show"]):
        assert cuota(*command, CUOTA_POLICY=str(path)).returncode == 0, command
    stopped = cuota("serve", "--port", "0", CUOTA_POLICY=str(path))
    assert stopped.returncode == 1
    assert stopped.stderr.startswith("cuota: CUOTA_POLICY: ")
    assert stopped.stderr.count("bad.toml") == 1


def test_a_policy_text_can_be_replaced_until_it_has_decided_an_order(
    served: tuple[Cuota, str, str],
) -> None:
    cuota, _, _ = served
    settings = config.load({"CUOTA_DATA_DIR": str(cuota.data)})
    folder = cuota.data.parent

    async def run(where: dict[str, object]) -> None:
        draft, final = _changed(folder, "2027-02-draft"), folder / "final.toml"
        final.write_text(draft.read_text() + "# final\n")
        async with (
            runtime.opened(replace(settings, policy=draft), where, pool_size=1) as first,
            runtime.opened(replace(settings, policy=final), where, pool_size=1) as second,
        ):
            await runtime.note_served(first, decides=True)
            await runtime.note_served(second, decides=True)
            assert await policies.read(first.pool, "2027-02-draft") == final.read_text()
            # The first service still runs with a policy that is not stored. It must not decide, and the second one
            # may.
            assert not await seal_policy(first)
            assert await seal_policy(second)
            with pytest.raises(WrongPolicy, match="decisions were already made by another text"):
                await runtime.note_served(first, decides=True)
        async with runtime.opened(settings, where, pool_size=1) as last:
            await runtime.note_served(last, decides=True)

    with open_embedded(cuota.data) as embedded:
        asyncio.run(run(dict(embedded.dsn_kwargs)))


def test_policy_check_shows_the_score_of_a_new_consumer_and_warns_if_none_would_be_approved(
    bare: Cuota, tmp_path: Path
) -> None:
    facts = json.loads(bare("policy", "check", str(_changed(tmp_path, "good")), "--json").stdout)
    assert facts["newConsumer"] == {
        "amount": "150.00", "base": 600, "score": 597, "approved": True, "outcome": "approved",
        "reasons": ["within_limit"],
    }  # fmt: skip
    assert facts["warnings"] == []
    never = bare("policy", "check", str(_changed(tmp_path, "never", "base = 600", "base = 450")))
    assert never.returncode == 0
    assert "Warning: this policy declines every order of a new consumer" in never.stdout
    small = bare("policy", "check", str(_changed(tmp_path, "small", 'new = "2000.00"', 'new = "100.00"')))
    assert "Warning: this policy declines a new consumer's order of $150.00" in small.stdout


def test_policy_check_refuses_another_text_with_the_version_of_the_release_s_policy(
    bare: Cuota, tmp_path: Path
) -> None:
    refused = bare("policy", "check", str(_changed(tmp_path, VERSION)))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"has version {VERSION}, but the policy of this release has the same version" in refused.stderr


def test_the_error_names_a_wrong_file_or_line_once(bare: Cuota, tmp_path: Path) -> None:
    missing = bare("policy", "check", "/nowhere.toml")
    assert missing.stderr == "cuota: Cannot use /nowhere.toml as a policy: No such file or directory\n"
    path = tmp_path / "torn.toml"
    path.write_text('version = "x"\nrefuse = [\n')
    torn = bare("policy", "check", str(path))
    assert torn.returncode == 1
    assert torn.stderr.count("line") == 1
    assert "(at " not in torn.stderr
