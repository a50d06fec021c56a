"""Tests of the team in the merchant's dashboard: roles, invitations, sessions, and the last owner."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

import pytest

from cuota.core.desk.role import Role
from cuota.core.order.id_bounds import BEYOND
from cuota.db.desk import audit, people
from cuota.flows.desk import change_team
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.desk.record import OPERATOR, Actor
from cuota.flows.desk.send_links import send_links
from cuota.rails import inbox
from support.makers import Merchant
from support.pages.staff import Staff

SENT = [True, True, True, True, True, False]


def new_email() -> str:
    return f"bo-{secrets.token_hex(4)}@shop.example"


async def test_an_owner_invites_a_person_who_then_signs_in(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    email = new_email()
    await staff.enter()
    await staff.open("/desk/team")
    page = await staff.press(
        "team", name="Bo Lindqvist", email=email, role="support", reason="new in support"
    )
    assert "The invitation is on its way" in page.text
    assert "invited, not signed in yet" in page.text
    while await send_links(staff.service.context):
        pass
    (mail,) = await inbox.look(staff.service.context.pool, to=email)
    assert "7 days" in mail.text
    second = browser()
    await second.open("/desk/enter/" + mail.text.partition("/desk/enter/")[2].split()[0])
    assert email in second.page.text
    page = await staff.open("/desk/audit")
    assert "team.invite" in page.text
    assert "new in support" in page.text


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("name", " ", "Enter the person's name"),
        ("email", "bo", "Enter an e-mail address"),
        ("reason", "", "Say why"),
        ("role", "king", "Choose a role"),
    ],
)
async def test_a_wrong_invitation_is_refused_beside_its_field(
    staff: Staff, field: str, typed: str, said: str
) -> None:
    await staff.enter()
    await staff.open("/desk/team")
    right = {"name": "Bo", "email": new_email(), "role": "support", "reason": "new"}
    page = await staff.press("team", **{**right, field: typed})
    assert page.status == 400
    assert said in page.text


async def test_only_a_person_who_has_not_joined_is_mailed_another_invitation(staff: Staff) -> None:
    person = await staff.invited(new_email())
    ids = staff.service.context, staff.shop.merchant_id, OPERATOR, person.person_id
    # `invited` has made the first of the five links of an hour. A mail that is not sent has no entry.
    assert [await change_team.invite_again(*ids) for _ in range(6)] == SENT
    logged = await audit.page(staff.service.context.pool, staff.shop.merchant_id, BEYOND, 50)
    assert [each.action for each in logged].count("team.invite_again") == sum(SENT)
    await staff.sign_in(person)
    with pytest.raises(BadTeam, match="has joined already"):
        await change_team.invite_again(*ids)


async def test_a_mail_address_can_be_in_a_team_only_once(staff: Staff) -> None:
    email = new_email()
    await staff.invited(email)
    with pytest.raises(BadTeam, match="already in the team"):
        await staff.invited(email.upper())


@pytest.mark.parametrize("granter", [role for role in Role if role is not Role.OWNER])
async def test_a_person_cannot_grant_a_role_with_more_rights_than_their_own(
    staff: Staff, granter: Role
) -> None:
    person = await staff.invited(new_email(), granter)
    context, merchant_id = staff.service.context, staff.shop.merchant_id
    with pytest.raises(BadTeam):
        await change_team.invite(
            context, merchant_id, Actor(person), "Eve", new_email(), Role.OWNER, "coup", mail=False
        )
    with pytest.raises(BadTeam):
        await change_team.change_role(
            context, merchant_id, Actor(person), person.person_id, Role.OWNER, "coup"
        )
    found = await people.read(context.pool, merchant_id, person.person_id)
    assert found is not None
    assert found.role is granter


async def test_the_last_owner_cannot_leave_even_if_two_leave_at_once(staff: Staff) -> None:
    context, merchant_id = staff.service.context, staff.shop.merchant_id
    first = await staff.invited(new_email(), Role.OWNER)
    with pytest.raises(BadTeam, match="needs an owner"):
        await change_team.remove(context, merchant_id, Actor(first), first.person_id, "bye")
    second = await staff.invited(new_email(), Role.OWNER)
    results = await asyncio.gather(
        change_team.remove(context, merchant_id, Actor(first), first.person_id, "bye"),
        change_team.change_role(context, merchant_id, Actor(second), second.person_id, Role.SUPPORT, "bye"),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in results) == ["BadTeam", "NoneType"]
    owners = [each for each in await people.team(context.pool, merchant_id) if each.role is Role.OWNER]
    assert len(owners) == 1


async def test_a_removed_person_is_signed_out_at_once_and_cannot_come_back(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    person = await staff.invited(new_email())
    await staff.sign_in(person)
    kept = await staff.link(person)
    owner = browser()
    await owner.enter()
    await owner.open(f"/desk/team/{person.person_id}")
    page = await owner.press(str(person.person_id), do="remove", reason="left the company")
    assert "The person was removed" in page.text
    assert (await staff.open("/desk/orders")).heading == "Sign in"
    assert (await staff.open(kept)).status == 410


async def test_a_changed_role_applies_from_the_next_click(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    person = await staff.invited(new_email(), Role.ADMIN)
    await staff.sign_in(person)
    assert (await staff.open("/desk/audit")).status == 200
    owner = browser()
    await owner.enter()
    await owner.open(f"/desk/team/{person.person_id}")
    await owner.press(str(person.person_id), do="role", role="support", reason="moved")
    assert (await staff.open("/desk/audit")).status == 403


async def test_a_lost_phone_is_replaced(staff: Staff, browser: Callable[..., Staff]) -> None:
    person = await staff.invited(new_email())
    await staff.sign_in(person)
    owner = browser()
    await owner.enter()
    await owner.open(f"/desk/team/{person.person_id}")
    page = await owner.press(str(person.person_id), do="factor", reason="lost phone")
    assert "The authenticator app and all passkeys were removed" in page.text
    assert (await staff.open("/desk")).heading == "Sign in"
    again = browser()
    old = staff.key
    await again.sign_in(person)
    assert again.key != old


async def test_a_person_sees_and_ends_their_own_sessions(staff: Staff, browser: Callable[..., Staff]) -> None:
    await staff.enter(Role.FINANCE)
    second = browser()
    await second.enter(Role.FINANCE)
    page = await staff.open("/desk/me")
    assert "this browser" in page.text
    action = next(action for action, _ in page.seen.forms if action.endswith("/sessions"))
    others = [fields for each, fields in page.seen.forms if each == action]
    assert len(others) == 2
    for fields in others:
        await staff.http.post(action, data=fields)
    assert (await second.open("/desk")).heading == "Sign in"


async def test_the_end_of_a_session_that_has_ended_is_not_logged(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    person = await staff.invited(new_email())
    await staff.sign_in(person)
    owner = browser()
    await owner.enter()
    page = await owner.open(f"/desk/team/{person.person_id}")
    action, fields = next(
        (action, fields) for action, fields in page.seen.forms if action.endswith("/sessions")
    )
    for _ in range(4):
        assert (await owner.http.post(action, data=fields)).status_code == 303
    logged = await audit.page(staff.service.context.pool, staff.shop.merchant_id, BEYOND, 50)
    assert [each.action for each in logged].count("team.end_session") == 1


async def test_another_merchants_person_is_not_found(
    staff: Staff, browser: Callable[..., Staff], auto_merchant: Merchant
) -> None:
    other = browser(auto_merchant)
    person = await other.invited(new_email())
    await staff.enter()
    assert (await staff.open(f"/desk/team/{person.person_id}")).status == 404
    with pytest.raises(BadTeam):
        await change_team.remove(
            staff.service.context, staff.shop.merchant_id, OPERATOR, person.person_id, "theft"
        )


async def test_the_audit_log_is_append_only(staff: Staff) -> None:
    await staff.invited(new_email())
    pool = staff.service.context.pool
    for sql in ("UPDATE audit_log SET reason = 'other'", "DELETE FROM audit_log"):
        with pytest.raises(Exception, match=r"permission denied|append-only"):
            await pool.fetch(sql)
