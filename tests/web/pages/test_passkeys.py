"""Passkeys in both dashboards: people add, name and remove them, and use them to sign in and in place of a code."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from cuota.flows.context import utc_now
from cuota.work.tidy import LINKS_KEPT, tidy
from support.pages.authenticator import bytes_of, text_of
from support.pages.passkeys import Browsers, entered, refused, with_passkey


async def test_a_passkey_signs_in_without_mail_and_code(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    answer = await one.sign_in()
    assert (answer.status_code, answer.headers["location"]) == (303, one.root)
    assert await one.inside()


async def test_a_sign_in_by_passkey_counts_as_a_fresh_second_factor(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    await one.sign_in()
    assert "Code of your authenticator app" not in (await one.listed()).text
    await one.add("phone")


async def test_the_list_shows_when_a_passkey_was_added_and_last_used(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    await one.sign_in()
    page = await one.listed()
    assert "laptop" in page.text
    assert "last used" in page.text
    await one.add("spare key")
    assert "not used yet" in (await one.listed()).text


async def test_adding_a_passkey_requires_a_fresh_code(keyed: Browsers) -> None:
    one = await entered(keyed)
    await one.add()
    await one.grow_old()
    answer = await one.post("passkeys/options", name="phone")
    assert (answer.status_code, answer.json()["name"]) == (400, "code")
    answer = await one.post("passkeys", name="phone", passkey="{}")
    assert answer.status_code == 400
    assert "Enter the code of your authenticator app." in answer.text


@pytest.mark.parametrize("do", ["rename", "remove"])
async def test_changing_a_passkey_requires_a_fresh_code(keyed: Browsers, do: str) -> None:
    one = await entered(keyed)
    await one.add()
    path = (await one.listed()).link("laptop")
    await one.grow_old()
    answer = await one.post(path.removeprefix(f"{one.root}/"), do=do, name="other")
    assert answer.status_code == 400
    assert "Enter the code of your authenticator app." in answer.text
    assert "laptop" in (await one.listed()).text


async def test_a_passkey_can_be_renamed(keyed: Browsers) -> None:
    one = await entered(keyed)
    await one.add()
    await one.staff.open((await one.listed()).link("laptop"))
    page = await one.staff.press(
        one.staff.page.answer.url.path.rpartition("/")[2], do="rename", name="  office   laptop "
    )
    assert "office laptop" in page.text
    (entry,) = await one.logged("passkey.rename")
    assert json.loads(entry["before"]) == {"name": "laptop"}
    assert json.loads(entry["after"]) == {"name": "office laptop"}


async def test_a_removed_passkey_cannot_sign_in(keyed: Browsers) -> None:
    one = await entered(keyed)
    await one.add()
    path = (await one.listed()).link("laptop").removeprefix(f"{one.root}/")
    await one.post(path, do="remove", name="laptop")
    assert "You have no passkey yet." in (await one.listed()).text
    await one.leave()
    assert refused(await one.sign_in())
    assert not await one.inside()


async def test_each_change_is_in_the_audit_log(keyed: Browsers) -> None:
    one = await entered(keyed)
    await one.add()
    path = (await one.listed()).link("laptop").removeprefix(f"{one.root}/")
    await one.post(path, do="remove", name="laptop")
    for action in ("passkey.add", "passkey.remove"):
        (entry,) = await one.logged(action)
        assert entry["subject"] == "Passkey laptop"


async def test_a_passkey_replaces_a_fresh_code(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    await one.sign_in()
    await one.grow_old()
    assert "Use a passkey instead" in (await one.listed()).text
    passkey = one.device.get(await one.options("step-up"))
    assert (await one.post("step-up", passkey=passkey)).status_code == 200
    assert "Code of your authenticator app" not in (await one.listed()).text


async def test_the_options_of_a_step_up_contain_only_the_person_s_own_passkeys(keyed: Browsers) -> None:
    one, other = await entered(keyed), await entered(keyed)
    await other.add()
    key = await one.add()
    allowed = (await one.options("step-up"))["allowCredentials"]
    assert [each["id"] for each in allowed] == [text_of(key.credential_id)]


async def test_the_options_name_the_existing_passkeys_to_the_authenticator(keyed: Browsers) -> None:
    one = await entered(keyed)
    key = await one.add()
    options = await one.options("passkeys", name="again")
    assert [each["id"] for each in options["excludeCredentials"]] == [text_of(key.credential_id)]
    assert options["authenticatorSelection"] == {
        "residentKey": "required", "requireResidentKey": True, "userVerification": "required",
    }  # fmt: skip


async def test_an_authenticator_without_a_counter_signs_in_again_and_again(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    for _ in range(3):
        assert (await one.sign_in()).status_code == 303
        await one.leave()


async def test_removing_the_authenticator_app_removes_the_passkeys_too(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    await one.sign_in()
    path = (await one.staff.open(f"{one.root}/me")).answer.url.path
    owner = keyed()
    await owner.staff.enter()
    page = await owner.staff.open(path)
    assert "Forget the authenticator app and the passkeys" in page.answer.text
    await owner.staff.press(path.rpartition("/")[2], do="factor", reason="lost phone")
    assert not await one.inside()
    assert refused(await one.sign_in())


async def test_a_removed_person_has_no_passkey(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    await one.sign_in()
    path = (await one.staff.open(f"{one.root}/me")).answer.url.path
    owner = keyed()
    await owner.staff.enter()
    await owner.staff.open(path)
    await owner.staff.press(path.rpartition("/")[2], do="remove", reason="has left")
    assert refused(await one.sign_in())


async def test_the_mailed_link_still_requires_the_code(keyed: Browsers) -> None:
    one: Any = keyed()
    person = await one.staff.invited(f"ana-{uuid4().hex[:12]}@shop.example")
    await one.staff.sign_in(person)
    await one.add()
    await one.leave()
    page = await one.staff.open_link(person)
    assert page.heading == "Enter your code"


async def test_old_challenges_are_deleted(keyed: Browsers) -> None:
    one = keyed()
    old, young = [bytes_of((await one.options("sign-in/passkey"))["challenge"]) for _ in range(2)]
    pool = one.staff.service.context.pool
    sql = f"UPDATE {one.tables}_challenges SET ends_at = $1 WHERE challenge = $2"
    await pool.fetch(sql, utc_now() - LINKS_KEPT - timedelta(minutes=1), old)
    await tidy(one.staff.service.context)
    left = await pool.fetch(
        f"SELECT challenge FROM {one.tables}_challenges WHERE challenge = ANY ($1)", [old, young]
    )
    assert [row["challenge"] for row in left] == [young]
