"""The company's provider is the only way to sign in: the other ways are closed, and an emergency link lets an owner in."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

import pytest

from cuota.core.operator.role import OperatorRole
from cuota.flows.operator.change_operators import invite_operator
from cuota.flows.operator.emergency_link import make_emergency_link
from cuota.flows.operator.log_action import OperatorActor
from cuota.flows.operator.send_operator_links import send_operator_links
from cuota.rails import inbox
from support.identity.company import NAME, Companies, Company, Employee
from support.identity.real_provider import opened_provider
from support.pages.authenticator import Authenticator
from support.pages.passkeys import Keyed
from support.pages.visitor import Page


@pytest.fixture
async def only(companies: Companies) -> Company:
    """A company whose people can sign in only at the provider."""
    return await companies.start(only=True)


async def test_if_the_provider_is_the_only_way_no_mail_and_no_link_signs_in(only: Company) -> None:
    employee = await only.employee()
    page = await employee.open("/operator/sign-in")
    assert "Mail me a link" not in page.text
    assert "passkey" not in page.text
    context = only.service.context
    await context.pool.execute("UPDATE operator_links SET mail_at = NULL")
    csrf = context.vault.hash("csrf", "").hex()
    answer = await employee.http.post(
        "/operator/sign-in", data={"csrf": csrf, "email": employee.person.email}
    )
    assert (answer.status_code, f"Sign in with {NAME}." in answer.text) == (400, True)
    assert not await context.pool.fetch("SELECT FROM operator_links WHERE mail_at IS NOT NULL")
    page = await employee.open(await employee.link(employee.person))
    assert page.heading == "This link no longer works"
    assert (await employee.come_in()).heading == "Set up your second factor"


async def by_passkey(employee: Employee, device: Authenticator) -> Page:
    """Answer with the passkey on the page for the second factor, or on the sign-in page."""
    csrf, path = employee.service.context.vault.hash("csrf", "").hex(), "/operator/sign-in/passkey"
    options = (await employee.http.post(f"{path}/options", data={"csrf": csrf})).json()
    return await employee._follow(
        await employee.http.post(path, data={"csrf": csrf, "passkey": device.get(options)})
    )


async def test_if_the_provider_is_the_only_way_a_passkey_is_the_second_factor(only: Company) -> None:
    employee, other = await only.employee(), await only.employee()
    await employee.sign_in_fully()
    key = Keyed(employee, "/operator")
    csrf = employee.page.form("leave")[1]["csrf"]
    options = (
        await employee.http.post("/operator/passkeys/options", data={"csrf": csrf, "name": "phone"})
    ).json()
    await employee.http.post(
        "/operator/passkeys", data={"csrf": csrf, "name": "phone", "passkey": key.device.create(options)}
    )
    await employee.press("leave")
    page = await by_passkey(employee, key.device)
    assert (page.status, f"Sign in with {NAME} first" in page.text) == (400, True)
    await other.come_in()
    assert (await by_passkey(other, key.device)).status == 400, "after a colleague's sign-in"
    page = await employee.come_in()
    assert (page.heading, "Use a passkey" in page.text) == ("Enter your code", True)
    assert (await by_passkey(employee, key.device)).heading == "What waits"


async def test_an_invitation_says_to_sign_in_at_the_provider(only: Company) -> None:
    email = f"new-{time.monotonic_ns()}@company.example"
    context = only.service.context
    await invite_operator(context, OperatorActor(None), "Bo", email, OperatorRole.RISK, "new")
    while await send_operator_links(context):
        pass
    (mail,) = await inbox.look(context.pool, to=email)
    assert f"your account at {NAME}" in mail.text
    assert "/operator/enter/" not in mail.text


async def test_an_emergency_link_lets_an_owner_in_with_the_second_factor(only: Company) -> None:
    owner = await only.employee(OperatorRole.OWNER)
    await owner.sign_in_fully()
    await owner.press("leave")
    address = await make_emergency_link(only.service.context, owner.person.email, new_factor=False)
    await owner.open(urlsplit(address).path)
    assert (await owner._use_link()).heading == "Enter your code"
    await only.service.context.pool.execute("UPDATE operator_people SET factor_step = 0")
    assert (await owner.send("code", code=owner.code())).heading == "What waits"
    assert (await owner.open(urlsplit(address).path)).heading == "This link no longer works"


async def test_an_emergency_link_with_a_new_factor_sets_up_another_app(only: Company) -> None:
    owner = await only.employee(OperatorRole.OWNER)
    await owner.sign_in_fully()
    address = await make_emergency_link(only.service.context, owner.person.email, new_factor=True)
    assert (await owner.open("/operator/orders")).heading == "Sign in", "the sessions have ended"
    await owner.open(urlsplit(address).path)
    assert (await owner._use_link()).heading == "Set up your second factor"


async def test_if_the_provider_does_not_answer_the_other_ways_still_work(companies: Companies) -> None:
    async with opened_provider(companies.settings.public_url) as gone:
        given = gone.settings()
    for only, said in (
        (False, "a mailed link or a passkey"),
        (True, "cuota desk link --operator --emergency"),
    ):
        employee = (await companies.start(given, only=only)).browser()
        page = await employee.open("/operator/provider")
        assert (page.status, page.heading) == (503, f"{NAME} does not answer")
        assert said in page.text
        assert (await employee.open(page.link("Back to signing in"))).heading == "Sign in"


async def test_a_provider_that_fails_during_a_sign_in_signs_nobody_in(companies: Companies) -> None:
    async with opened_provider(companies.settings.public_url) as provider:
        companies.provider = provider
        employee = await (await companies.start()).employee()
        address = await employee.returning()
    page = await employee.open(address)
    assert (page.status, page.heading) == (503, f"{NAME} does not answer")
    assert (await employee.open("/operator/code")).heading == "Sign in"
