"""Tests of signing in to the operator's dashboard, and of its team."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

import pytest

from cuota.core.operator.role import OperatorRole
from cuota.db.operator import operators
from cuota.flows.desk import totp
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.operator import change_operators
from cuota.flows.operator.log_action import OperatorActor
from cuota.flows.operator.send_operator_links import send_operator_links
from cuota.rails import inbox
from support.pages.operator_staff import OperatorStaff


def new_email() -> str:
    return f"op-{secrets.token_hex(4)}@operator.example"


async def test_a_sandbox_link_signs_in_at_once_and_works_once(
    operator: OperatorStaff, desk_browser: Callable[..., OperatorStaff]
) -> None:
    assert (await operator.enter()).heading == "What waits"
    page = await desk_browser().open(operator.answers[0].url.path)
    assert (page.status, page.heading) == (410, "This link no longer works")


async def test_a_person_signs_in_with_a_mailed_link_and_an_authenticator_app(operator: OperatorStaff) -> None:
    email = new_email()
    await operator.invited(email)
    await operator.open("/operator/sign-in")
    await operator.press("sign-in", email=email)
    while await send_operator_links(operator.service.context):
        pass
    (mail,) = await inbox.look(operator.service.context.pool, to=email)
    await operator.open("/operator/enter/" + mail.text.partition("/operator/enter/")[2].split()[0])
    assert email in operator.page.text
    page = await operator._use_link()
    assert page.heading == "Set up your second factor"
    operator.key = page.text.partition("Enter this key:")[2].partition("On this device")[0].replace(" ", "")
    assert (await operator.open("/operator/orders")).heading == "Sign in", "the link alone opens nothing"
    await operator.open("/operator/code")
    assert (await operator.send("code", code=operator.code())).heading == "What waits"


async def test_a_code_works_once(operator: OperatorStaff, desk_browser: Callable[..., OperatorStaff]) -> None:
    person = await operator.invited(new_email())
    await operator.sign_in(person)
    code, thief = operator.code(), desk_browser()
    await thief.open_link(person)
    page = await thief.send("code", code=code)
    assert page.status == 400
    assert (await thief.open("/operator/orders")).heading == "Sign in"


async def test_five_wrong_codes_block_the_app_for_a_while(operator: OperatorStaff) -> None:
    person = await operator.invited(new_email())
    await operator.open_link(person)
    for _ in range(totp.TRIES):
        assert (await operator.send("code", code="000000")).status == 400
    page = await operator.send("code", code=operator.code())
    assert (page.status, "Too many wrong codes" in page.text) == (400, True)


async def test_the_answer_is_the_same_for_every_address(operator: OperatorStaff) -> None:
    known, unknown = new_email(), new_email()
    await operator.invited(known)
    texts = []
    for email in (known, unknown):
        await operator.open("/operator/sign-in")
        page = await operator.press("sign-in", email=email)
        texts.append(page.text.replace(email, "ADDRESS"))
    assert texts[0] == texts[1]
    while await send_operator_links(operator.service.context):
        pass
    assert not await inbox.look(operator.service.context.pool, to=unknown)


async def test_the_session_gets_a_new_secret_when_the_second_factor_is_given(operator: OperatorStaff) -> None:
    await operator.open_link(await operator.invited(new_email()))
    planted = operator.http.cookies["operator"]
    await operator.send("code", code=operator.code())
    assert operator.http.cookies["operator"] != planted
    operator.http.cookies.set("operator", planted)
    assert (await operator.open("/operator/orders")).heading == "Sign in"


async def test_no_other_site_frames_the_dashboard_or_sends_its_forms(operator: OperatorStaff) -> None:
    page = await operator.enter()
    assert "frame-ancestors 'none'" in page.answer.headers["content-security-policy"]
    answer = await operator.http.post(
        "/operator/team", data={"name": "Eve", "email": "eve@mail.example", "role": "owner", "reason": "x"}
    )
    assert answer.status_code == 403
    assert await operators.by_email(operator.service.context.pool, "eve@mail.example") is None


async def test_an_owner_invites_a_person_and_the_log_says_so(operator: OperatorStaff) -> None:
    email = new_email()
    await operator.enter()
    await operator.open("/operator/team")
    page = await operator.press("team", name="Bo Lindqvist", email=email, role="risk", reason="new analyst")
    assert "The invitation is on its way" in page.text
    page = await operator.open("/operator/log?action=team.")
    assert email in page.text
    assert "new analyst" in page.text


async def test_a_removed_person_is_signed_out_at_once(
    operator: OperatorStaff, desk_browser: Callable[..., OperatorStaff]
) -> None:
    person, other = await operator.invited(new_email()), desk_browser()
    await other.sign_in(person)
    await operator.enter()
    await operator.open(f"/operator/team/{person.person_id}")
    await operator.press(str(person.person_id), do="remove", reason="left")
    assert (await other.open("/operator/orders")).heading == "Sign in"


async def test_a_lost_phone_can_be_removed_and_the_next_sign_in_sets_up_another(
    operator: OperatorStaff, desk_browser: Callable[..., OperatorStaff]
) -> None:
    person, other = await operator.invited(new_email()), desk_browser()
    await other.sign_in(person)
    await operator.enter()
    await operator.open(f"/operator/team/{person.person_id}")
    page = await operator.press(str(person.person_id), do="factor", reason="lost")
    assert "The authenticator app and all passkeys were removed" in page.text
    log = await operator.open("/operator/log?action=team.factor")
    assert "secondFactor: authenticator app → removed" in log.text
    assert (await other.open("/operator/orders")).heading == "Sign in"
    assert (await other.open_link(person)).heading == "Set up your second factor"


async def test_a_person_ends_a_session_in_another_browser(
    operator: OperatorStaff, desk_browser: Callable[..., OperatorStaff]
) -> None:
    await operator.enter(OperatorRole.SUPPORT)
    other = desk_browser()
    await other.enter(OperatorRole.SUPPORT)
    await operator.open("/operator/me")
    mine = [fields["session"] for _, fields in operator.page.seen.forms if "session" in fields]
    for session in mine:
        action, held = operator.page.form("sessions")
        await operator.http.post(action, data={**held, "session": session})
    assert (await other.open("/operator/orders")).heading == "Sign in"


async def test_a_person_cannot_grant_a_role_with_more_rights_than_their_own(operator: OperatorStaff) -> None:
    context = operator.service.context
    for role in OperatorRole:
        person = await operator.invited(new_email(), role)
        if role is OperatorRole.OWNER:
            continue
        with pytest.raises(BadTeam):
            await change_operators.change_operator_role(
                context, OperatorActor(person), person.person_id, OperatorRole.OWNER, "coup"
            )


async def test_the_last_owner_cannot_leave_even_if_all_leave_at_once(operator: OperatorStaff) -> None:
    context = operator.service.context
    await operator.invited(new_email(), OperatorRole.OWNER)
    every = [each for each in await operators.team(context.pool) if each.role is OperatorRole.OWNER]
    results = await asyncio.gather(
        *(
            change_operators.remove_operator(context, OperatorActor(None), each.person_id, "bye")
            for each in every
        ),
        return_exceptions=True,
    )
    assert [type(each) for each in results if each is not None] == [BadTeam]
    assert any(each.role is OperatorRole.OWNER for each in await operators.team(context.pool))
