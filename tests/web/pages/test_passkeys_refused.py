"""Both dashboards refuse wrong requests to add passkeys and to sign in with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from cuota.core.desk.passkey import MOST_PASSKEYS
from cuota.flows.context import utc_now
from cuota.flows.desk.check_passkey import HAVE, MOST_CHALLENGES, REFUSED, TOO_MANY, TOO_OFTEN
from support.makers import Merchant
from support.pages.authenticator import bytes_of
from support.pages.operator_staff import OperatorStaff
from support.pages.passkeys import Browsers, Keyed, entered, refused, with_passkey
from support.pages.staff import Staff


async def test_another_person_s_passkey_is_not_accepted_as_a_fresh_factor(keyed: Browsers) -> None:
    one, other = await entered(keyed), await entered(keyed)
    await one.add()
    theirs = await other.add()
    await one.grow_old()
    options = await one.options("step-up")
    for handle in (theirs.handle, one.device.keys[-1].handle):
        theirs.handle = handle
        answer = await one.post("step-up", passkey=other.device.get(options, key=theirs))
        assert (answer.status_code, answer.json()["error"]) == (400, REFUSED)
        options = await one.options("step-up")
    assert "Code of your authenticator app" in (await one.listed()).text


async def test_a_credential_signs_in_only_its_own_person(keyed: Browsers) -> None:
    one, other = await with_passkey(keyed), await with_passkey(keyed)
    # The key belongs to one person, and the user handle to another.
    one.device.keys[-1].handle = other.device.keys[-1].handle
    assert refused(await one.sign_in())


async def test_the_same_credential_cannot_be_added_twice(keyed: Browsers) -> None:
    one, other = await entered(keyed), await entered(keyed)
    key = await one.add()
    for browser in (one, other):
        made = browser.device.create(
            await browser.options("passkeys", name="again"), credential_id=key.credential_id
        )
        answer = await browser.post("passkeys", name="again", passkey=made)
        assert answer.status_code == 400
        assert HAVE in answer.text


async def test_a_person_has_a_limited_number_of_passkeys(keyed: Browsers) -> None:
    one = await entered(keyed)
    await one.add()
    table, person = f"{one.tables}_passkeys", one.device.keys[-1].handle[-16:]
    merchant = "merchant_id, " if one.tables == "desk" else ""
    await one.staff.service.context.pool.fetch(
        f"""INSERT INTO {table} ({merchant} passkey_id, person_id, credential_id, public_key, sign_count, name, added_at)
        SELECT {merchant} gen_random_uuid(), person_id, uuid_send(gen_random_uuid()), public_key, 0, 'more', added_at
        FROM {table}, generate_series(2, $2) WHERE uuid_send(person_id) = $1""",
        person,
        MOST_PASSKEYS,
    )
    answer = await one.post("passkeys/options", name="one more")
    assert (answer.status_code, answer.json()["error"]) == (400, TOO_MANY)


async def test_an_answer_that_was_used_before_is_refused(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    passkey = one.device.get(await one.options("sign-in/passkey"))
    jar = dict(one.staff.http.cookies)
    assert (await one.post("sign-in/passkey", passkey=passkey)).status_code == 303
    await one.leave()
    # The answer is refused even with the challenge's cookie, which the sign-in deleted.
    one.staff.http.cookies.update(jar)
    assert refused(await one.post("sign-in/passkey", passkey=passkey))
    assert not await one.inside()


async def test_of_two_identical_concurrent_answers_one_signs_in(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    passkey, csrf = one.device.get(await one.options("sign-in/passkey")), await one.csrf()
    sent = [
        one.staff.http.post(f"{one.root}/sign-in/passkey", data={"csrf": csrf, "passkey": passkey})
        for _ in range(4)
    ]
    answers = await asyncio.gather(*sent)
    assert sorted(answer.status_code for answer in answers) == [303, 400, 400, 400]


async def test_a_challenge_of_another_browser_is_refused(keyed: Browsers) -> None:
    one, other = await with_passkey(keyed), keyed()
    await one.options("sign-in/passkey")
    theirs = await other.options("sign-in/passkey")
    assert refused(await one.post("sign-in/passkey", passkey=one.device.get(theirs)))
    # The failed attempt does not use up the other browser's challenge.
    answer = await other.post("sign-in/passkey", passkey=one.device.get(theirs))
    assert answer.status_code == 303


async def test_a_challenge_for_another_purpose_is_refused(keyed: Browsers) -> None:
    one = await entered(keyed)
    await one.add()
    passkey = one.device.get(await one.options("passkeys", name="phone"))
    answer = await one.post("step-up", passkey=passkey)
    assert (answer.status_code, answer.json()["error"]) == (400, REFUSED)


async def test_an_expired_challenge_is_refused(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    options = await one.options("sign-in/passkey")
    sql = f"UPDATE {one.tables}_challenges SET ends_at = $1 WHERE challenge = $2 RETURNING purpose"
    (row,) = await one.staff.service.context.pool.fetch(sql, utc_now(), bytes_of(options["challenge"]))
    assert row["purpose"] == "sign-in"
    assert refused(await one.post("sign-in/passkey", passkey=one.device.get(options)))


async def test_a_counter_that_goes_backwards_is_refused_and_logged(keyed: Browsers) -> None:
    one = await with_passkey(keyed, count=5)
    assert (await one.sign_in()).status_code == 303
    await one.leave()
    one.device.keys[-1].count = 3
    assert refused(await one.sign_in())
    (entry,) = await one.logged("passkey.refused")
    assert entry["reason"] == "The counter did not rise: 6, then 4. Perhaps the passkey was copied."
    one.device.keys[-1].count = 6
    assert (await one.sign_in()).status_code == 303


async def test_a_counter_that_goes_back_to_zero_is_refused(keyed: Browsers) -> None:
    one = await with_passkey(keyed, count=5)
    one.device.keys[-1].count = 0
    assert refused(await one.sign_in())


async def test_an_answer_without_user_verification_is_refused(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    one.device.verified = False
    assert refused(await one.sign_in())


async def test_a_passkey_without_user_verification_is_not_added(keyed: Browsers) -> None:
    one = await entered(keyed)
    one.device.verified = False
    made = one.device.create(await one.options("passkeys", name="laptop"))
    assert (await one.post("passkeys", name="laptop", passkey=made)).status_code == 400
    assert "You have no passkey yet." in (await one.listed()).text


@pytest.mark.parametrize(
    "said",
    [
        {"origin": "https://evil.example"},
        {"crossOrigin": True},
        {"type": "webauthn.create"},
    ],
    ids=["another origin", "in a frame of another site", "of a creation"],
)
async def test_an_answer_from_another_origin_is_refused(keyed: Browsers, said: dict[str, Any]) -> None:
    one = await with_passkey(keyed)
    passkey = one.device.get(await one.options("sign-in/passkey"), **said)
    assert refused(await one.post("sign-in/passkey", passkey=passkey))


async def test_a_forged_signature_is_refused(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    told = json.loads(one.device.get(await one.options("sign-in/passkey")))
    other = json.loads(one.device.get(await one.options("sign-in/passkey")))
    told["response"]["signature"] = other["response"]["signature"]
    assert refused(await one.post("sign-in/passkey", passkey=json.dumps(told)))


async def test_unknown_people_unknown_passkeys_and_wrong_answers_get_the_same_response(
    keyed: Browsers,
) -> None:
    one = await with_passkey(keyed)
    key = one.device.keys[-1]
    seen = set()

    async def tried(change: Callable[[], Awaitable[str]]) -> None:
        answer = await one.post("sign-in/passkey", passkey=await change())
        assert refused(answer)
        seen.add(answer.text)

    async def unknown_credential() -> str:
        known, key.credential_id = key.credential_id, b"nobody's credential"
        made = one.device.get(await one.options("sign-in/passkey"))
        key.credential_id = known
        return made

    async def unknown_person() -> str:
        known, key.handle = key.handle, key.handle[:-16] + uuid4().bytes
        made = one.device.get(await one.options("sign-in/passkey"))
        key.handle = known
        return made

    async def unsigned() -> str:
        told = json.loads(one.device.get(await one.options("sign-in/passkey")))
        told["response"]["signature"] = "AAAA"
        return json.dumps(told)

    for change in (unknown_credential, unknown_person, unsigned):
        await tried(change)
    assert len(seen) == 1


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", "x", "[" * 5000, '{"id": 1}', '{"id": "a", "rawId": "a", "type": "public-key", "response": {}}'],
    ids=["empty", "null", "a list", "no fields", "no JSON", "deep", "a number", "no response"],
)  # fmt: skip
async def test_data_that_no_browser_sends_is_refused(keyed: Browsers, text: str) -> None:
    assert refused(await keyed().post("sign-in/passkey", passkey=text))
    one = await entered(keyed)
    assert (await one.post("step-up", passkey=text)).status_code == 400
    assert (await one.post("passkeys", name="laptop", passkey=text)).status_code == 400


async def test_a_passkey_of_another_person_is_not_found(keyed: Browsers) -> None:
    one, other = await entered(keyed), await entered(keyed)
    await one.add()
    path = (await one.listed()).link("laptop")
    seen = []
    for target in (path, f"{one.root}/passkeys/{uuid4()}", f"{one.root}/passkeys/no-id"):
        for do in (None, "remove", "rename"):
            if do is None:
                answer = await other.staff.http.get(target)
            else:
                answer = await other.post(target.removeprefix(f"{one.root}/"), do=do, name="mine now")
            assert answer.status_code == 404
            seen.append(answer.text)
    assert len(set(seen)) == 1
    assert "laptop" in (await one.listed()).text


async def test_a_browser_gets_a_limited_number_of_challenges(keyed: Browsers) -> None:
    one = keyed()
    for _ in range(MOST_CHALLENGES):
        await one.options("sign-in/passkey")
    answer = await one.post("sign-in/passkey/options")
    assert (answer.status_code, answer.json()["error"]) == (429, TOO_OFTEN)
    # The mailed link still works.
    page = await one.staff.open(f"{one.root}/sign-in")
    assert (await one.staff.send("sign-in", email="ana@shop.example")).heading == "Check your e-mail", (
        page.text
    )


async def test_used_challenges_count_toward_the_limit_too(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    await one.options("sign-in/passkey")
    jar = dict(one.staff.http.cookies)
    for _ in range(MOST_CHALLENGES - 1):
        passkey = one.device.get(await one.options("sign-in/passkey"), origin="https://evil.example")
        await one.post("sign-in/passkey", passkey=passkey)
    one.staff.http.cookies.update(jar)
    assert (await one.post("sign-in/passkey/options")).status_code == 429


async def test_a_form_of_another_site_is_refused(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    headers = {"Origin": "https://evil.example"}
    csrf = await one.csrf()
    for path in ("sign-in/passkey/options", "sign-in/passkey"):
        answer = await one.staff.http.post(f"{one.root}/{path}", data={"csrf": csrf}, headers=headers)
        assert answer.status_code == 403


async def test_a_passkey_of_one_dashboard_does_not_work_in_the_other(merchant: Merchant) -> None:
    async with merchant.service.client() as http:
        desk = Keyed(Staff(http, merchant), "/desk")
        operator = Keyed(OperatorStaff(http, merchant.service), "/operator")
        operator.device = desk.device
        await desk.staff.enter()
        key = await desk.add()
        assert refused(await operator.sign_in())
        key.handle = key.handle[-16:]
        assert refused(await operator.sign_in())
        # A challenge of the other dashboard is refused too.
        passkey = desk.device.get(await operator.options("sign-in/passkey"))
        await desk.leave()
        assert refused(await desk.post("sign-in/passkey", passkey=passkey))
