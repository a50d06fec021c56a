"""Signing in to the merchant's dashboard: links, authenticator apps, sessions."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyotp
import pytest

from cuota.core.desk.role import Role
from cuota.flows.desk import totp
from cuota.flows.desk.factor import check_factor
from cuota.flows.desk.send_links import send_links
from cuota.flows.desk.sign_in import LINKS_AN_HOUR
from cuota.rails import inbox
from support.makers import Merchant
from support.pages.staff import Staff

SIGN_IN = "/desk/sign-in"


def new_email() -> str:
    return f"ana-{secrets.token_hex(4)}@shop.example"


async def mails(staff: Staff, email: str) -> list[inbox.Received]:
    while await send_links(staff.service.context):
        pass
    return await inbox.look(staff.service.context.pool, to=email)


async def test_the_dashboard_asks_a_stranger_to_sign_in(staff: Staff) -> None:
    for path in ("/desk", "/desk/orders", "/desk/team", "/desk/audit"):
        page = await staff.open(path)
        assert (page.status, page.heading) == (200, "Sign in")


async def test_a_sandbox_link_signs_in_at_once_and_works_once(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    page = await staff.enter()
    assert page.heading == staff.page.heading
    assert "Orders today" in page.text
    link = staff.answers[0].url.path
    second = browser()
    page = await second.open(link)
    assert (page.status, page.heading) == (410, "This link no longer works")


async def test_opening_a_link_does_not_use_it_up(staff: Staff) -> None:
    person = await staff.invited(new_email())
    path = await staff.link(person)
    for _ in range(3):
        page = await staff.open(path)
        assert (page.status, page.heading) == (200, "Sign in")


async def test_the_first_sign_in_sets_up_an_authenticator_app_and_the_next_asks_for_its_code(
    staff: Staff, browser: Callable[..., Staff], monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await staff.invited(new_email())
    page = await staff.sign_in(person)
    assert "Orders today" in page.text
    later = browser()
    later.key = staff.key
    # Use the next code of the app, because a code works only once.
    monkeypatch.setattr(later, "code", lambda: pyotp.TOTP(staff.key).at(_soon()))
    page = await later.sign_in(person)
    assert later.key == staff.key, "the app is not set up a second time"
    assert "Orders today" in page.text


def _soon() -> int:
    return int(time.time()) + 30


async def test_a_code_of_the_authenticator_app_works_once(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    person = await staff.invited(new_email())
    await staff.sign_in(person)
    code = staff.code()
    thief = browser()
    thief.key = staff.key
    await thief.open_link(person)
    page = await thief.send("code", code=code)
    assert page.status == 400
    assert "used before" in page.text or "not right" in page.text
    assert (await thief.open("/desk/orders")).heading == "Sign in"


async def test_five_wrong_codes_block_the_app_for_a_quarter_of_an_hour(staff: Staff) -> None:
    person = await staff.invited(new_email())
    await staff.sign_in(person)
    visit = await staff.visit()
    for _ in range(totp.TRIES):
        with pytest.raises(totp.WrongCode):
            await check_factor(staff.service.context, visit, "000000")
    right = pyotp.TOTP(staff.key).at(_soon())
    with pytest.raises(totp.WrongCode, match="Too many"):
        await check_factor(staff.service.context, visit, right)
    await staff.service.context.pool.fetch(
        "UPDATE desk_people SET factor_closed_until = now() - interval '1 second' WHERE person_id = $1",
        person.person_id,
    )
    await check_factor(staff.service.context, visit, right)


async def test_the_session_gets_a_new_secret_when_the_second_factor_is_given(staff: Staff) -> None:
    person = await staff.invited(new_email())
    await staff.open_link(person)
    planted = staff.http.cookies["desk"]
    await staff.send("code", code=staff.code())
    own = staff.http.cookies["desk"]
    assert own != planted
    staff.http.cookies.set("desk", planted)
    assert (await staff.open("/desk/orders")).heading == "Sign in"


async def test_each_browser_sets_up_an_app_of_its_own_and_only_the_first_one_counts(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    person, thief = await staff.invited(new_email()), browser()
    await thief.open_link(person)
    await staff.open_link(person)
    assert "" != thief.key != staff.key
    again = await staff.open("/desk/code")
    assert staff.key in again.text.replace(" ", ""), "the same browser is shown the same key again"
    await staff.send("code", code=staff.code())
    page = await thief.send("code", code=thief.code())
    assert page.status == 400
    assert (await thief.open("/desk/orders")).heading == "Sign in"


async def test_a_link_alone_gives_no_access(staff: Staff) -> None:
    person = await staff.invited(new_email())
    await staff.open_link(person)
    assert staff.page.heading == "Set up your second factor"
    assert (await staff.open("/desk/orders")).heading == "Sign in"


async def test_the_answer_is_the_same_for_every_mail_address_and_only_a_person_of_a_team_gets_mail(
    staff: Staff,
) -> None:
    known, unknown = new_email(), new_email()
    await staff.invited(known)
    texts = []
    for email in (known, unknown):
        await staff.open(SIGN_IN)
        page = await staff.press("sign-in", email=email)
        texts.append(page.text.replace(email, "ADDRESS"))
    assert texts[0] == texts[1]
    assert len(await mails(staff, known)) == 1
    assert not await mails(staff, unknown)


async def test_the_mailed_link_signs_in_at_its_merchant(staff: Staff) -> None:
    email = new_email()
    await staff.invited(email)
    await staff.open(SIGN_IN)
    await staff.press("sign-in", email=email.upper())
    (mail,) = await mails(staff, email)
    path = "/desk/enter/" + mail.text.partition("/desk/enter/")[2].split()[0]
    page = await staff.open(path)
    assert email in page.text


async def test_a_person_gets_at_most_five_links_in_an_hour(staff: Staff) -> None:
    email = new_email()
    await staff.invited(email)
    for _ in range(LINKS_AN_HOUR + 2):
        await staff.open(SIGN_IN)
        await staff.press("sign-in", email=email)
    assert len(await mails(staff, email)) == LINKS_AN_HOUR


async def test_a_mail_whose_worker_died_is_sent_by_the_next_worker(staff: Staff) -> None:
    email = new_email()
    await staff.invited(email)
    await staff.open(SIGN_IN)
    await staff.press("sign-in", email=email)
    pool = staff.service.context.pool
    # A worker has claimed the mail and then died.
    await pool.fetch(
        "UPDATE desk_links SET tries = 1, mail_at = now() - interval '1 second' WHERE mail_at IS NOT NULL"
    )
    assert len(await mails(staff, email)) == 1


@pytest.mark.parametrize(
    "typed", ["", "ana", "ana@shop", "a na@shop.example", "ana@shop.example\nbcc: x@y.example"]
)
async def test_a_text_that_is_no_mail_address_is_refused_beside_the_field(staff: Staff, typed: str) -> None:
    await staff.open(SIGN_IN)
    page = await staff.press("sign-in", email=typed)
    assert page.status == 400
    assert "Enter an e-mail address" in page.text


async def test_signing_out_ends_the_session_everywhere(staff: Staff) -> None:
    await staff.enter()
    secret = staff.http.cookies["desk"]
    page = await staff.press("leave")
    assert "You are signed out." in page.text
    staff.http.cookies.set("desk", secret)
    assert (await staff.open("/desk")).heading == "Sign in"


async def test_a_session_ends_after_an_hour_without_activity(staff: Staff) -> None:
    await staff.enter()
    await staff.service.context.pool.fetch(
        "UPDATE desk_sessions SET seen_at = $1 WHERE merchant_id = $2",
        datetime.now(UTC) - timedelta(minutes=61), staff.shop.merchant_id,
    )  # fmt: skip
    assert (await staff.open("/desk")).heading == "Sign in"


async def test_a_form_of_another_site_changes_nothing(staff: Staff) -> None:
    await staff.enter()
    action, fields = staff.page.form("leave")
    for wrong in ({**fields, "csrf": ""}, {**fields, "csrf": "0" * 64}):
        answer = await staff.http.post(action, data=wrong)
        assert answer.status_code == 403
    answer = await staff.http.post(action, data=fields, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "Orders today" in (await staff.open("/desk")).text


async def test_no_other_site_shows_the_dashboard_in_a_frame(staff: Staff) -> None:
    await staff.enter()
    answer = staff.page.answer
    assert answer.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_a_session_of_one_merchant_gives_no_access_to_another_merchant(
    staff: Staff, browser: Callable[..., Staff], auto_merchant: Merchant
) -> None:
    await staff.enter()
    other = browser(auto_merchant)
    await other.enter(Role.OWNER)
    order = await staff.shop.approved()
    assert (await other.open(f"/desk/orders/{order['orderId']}")).status == 404
    # The same secret with another merchant's id is not accepted as a session.
    secret = staff.http.cookies["desk"].partition(".")[2]
    other.http.cookies.set("desk", f"{auto_merchant.merchant_id.hex}.{secret}")
    assert (await other.open("/desk")).heading == "Sign in"
