"""Signing in to the operator's dashboard at a company's OpenID Connect provider. The provider is a real program."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from cuota.core.operator.role import OperatorRole
from cuota.db.operator import identities, operators
from cuota.flows.operator.change_operators import forget_operator_account, remove_operator
from cuota.flows.operator.log_action import OperatorActor
from support.identity.company import NAME, Companies, Company, Employee
from support.identity.real_provider import FOLDER, opened_provider
from support.node_sdk import check_lock


@pytest.fixture
async def company(companies: Companies) -> Company:
    """A company whose provider proves only one factor, according to the settings."""
    return await companies.start()


async def inside(employee: Employee) -> bool:
    """Whether this browser is signed in."""
    return (await employee.open("/operator/orders")).heading == "Orders"


async def linked(employee: Employee) -> bool:
    """Whether the person's account is linked."""
    pool, issuer = employee.service.context.pool, employee.company.provider.issuer
    found = await identities.person_of(pool, issuer, employee.account)
    return found is not None and found.person_id == employee.person.person_id


async def test_a_person_signs_in_at_the_provider_and_then_enters_the_second_factor(company: Company) -> None:
    employee = await company.employee()
    page = await employee.open("/operator/sign-in")
    assert f"Sign in with {NAME}" in page.text
    assert "Mail me a link" in page.text
    page = await employee.come_in()
    assert page.heading == "Set up your second factor"
    assert not await inside(employee), "the provider alone opens nothing"
    await employee.open("/operator/code")
    assert (await employee.send("code", code=employee.code())).heading == "What waits"
    assert await linked(employee)
    assert await employee.logged() == ["sign-in.provider", "sign-in.linked"]


async def test_the_second_sign_in_asks_for_the_same_app_and_links_nothing_again(company: Company) -> None:
    employee = await company.employee()
    await employee.sign_in_fully()
    await employee.press("leave")
    assert (await employee.open("/operator/orders")).heading == "Sign in"
    assert (await employee.come_in()).heading == "Enter your code"
    assert (await employee.logged())[:3] == ["sign-in.provider", "sign-in.provider", "sign-in.linked"]


async def test_claims_that_only_the_userinfo_endpoint_has_are_used(companies: Companies) -> None:
    async with opened_provider(companies.settings.public_url, claims_at_userinfo=True) as provider:
        companies.provider = provider
        employee = await (await companies.start()).employee()
        assert (await employee.come_in()).heading == "Set up your second factor"


async def test_an_unverified_email_address_signs_nobody_in(company: Company) -> None:
    employee = await company.employee(verified=False)
    page = await employee.come_in()
    assert (page.status, page.heading) == (403, "You are not signed in")
    assert "Verify the address there" in page.text
    assert not await linked(employee)
    assert not await inside(employee)


async def test_a_sign_in_adds_nobody_to_the_team(company: Company) -> None:
    employee = await company.employee(email=f"stranger-{secrets.token_hex(5)}@company.example")
    team = len(await operators.team(employee.service.context.pool))
    page = await employee.come_in()
    assert "Ask an owner to invite you" in page.text
    assert len(await operators.team(employee.service.context.pool)) == team
    assert await employee.logged() == [], "anybody at the provider could fill the log"


async def test_an_address_with_a_similar_letter_is_another_address(company: Company) -> None:
    employee, name = company.browser(), f"im-{secrets.token_hex(5)}@company.example"
    employee.person = await employee.invited(f"k{name}")
    twin = await company.provider.account(f"twin-{secrets.token_hex(5)}", f"\N{KELVIN SIGN}{name}")
    assert "\N{KELVIN SIGN}".lower() == "k"
    assert (await employee.come_in(twin)).status == 403


async def test_a_changed_email_address_at_the_provider_changes_nothing(company: Company) -> None:
    employee = await company.employee()
    await employee.sign_in_fully()
    await employee.press("leave")
    await company.provider.account(employee.account, "married@elsewhere.example", verified=False)
    assert (await employee.come_in()).heading == "Enter your code"
    found = await operators.read(employee.service.context.pool, employee.person.person_id)
    assert found is not None
    assert found.email == employee.person.email


async def test_another_account_with_the_persons_address_is_refused(company: Company) -> None:
    employee = await company.employee()
    await employee.sign_in_fully()
    thief = company.browser()
    other = await company.provider.account(f"thief-{secrets.token_hex(5)}", employee.person.email)
    page = await thief.come_in(other)
    assert (page.status, "another account" in page.text) == (403, True)
    assert not await inside(thief)
    assert (await employee.logged())[0] == "sign-in.refused"


async def test_if_two_accounts_with_one_address_arrive_at_once_one_is_linked(company: Company) -> None:
    employee, other = await company.employee(), company.browser()
    other.account = await company.provider.account(f"second-{secrets.token_hex(5)}", employee.person.email)
    addresses = [await each.returning() for each in (employee, other)]
    pages = await asyncio.gather(
        *(each.open(path) for each, path in zip((employee, other), addresses, strict=True))
    )
    assert sorted(page.status for page in pages) == [200, 403]


async def test_a_removed_person_is_refused_and_can_be_invited_again(company: Company) -> None:
    employee, context = await company.employee(), company.service.context
    await employee.sign_in_fully()
    await remove_operator(context, OperatorActor(None), employee.person.person_id, "left")
    assert not await inside(employee)
    assert (await employee.come_in()).status == 403
    employee.person = await employee.invited(employee.person.email)
    assert (await employee.come_in()).heading == "Set up your second factor"
    assert await linked(employee)


async def test_an_owner_deletes_the_link_with_an_account_and_the_next_sign_in_links_another_account(
    company: Company,
) -> None:
    employee, owner = await company.employee(), company.browser()
    await employee.sign_in_fully()
    await owner.enter(OperatorRole.OWNER)
    page = await owner.open(f"/operator/team/{employee.person.person_id}")
    assert f"Account at {NAME}" in page.text
    page = await owner.press(str(employee.person.person_id), do="provider", reason="new laptop, new account")
    assert "The linked account was removed" in page.text
    assert not await inside(employee)
    employee.account = await company.provider.account(f"new-{secrets.token_hex(5)}", employee.person.email)
    employee.elsewhere.http.cookies.clear()
    assert (await employee.come_in()).heading == "Enter your code"
    assert await linked(employee)


async def test_only_an_owner_can_delete_the_link_with_an_account(company: Company) -> None:
    employee, other = await company.employee(), await company.employee()
    await employee.sign_in_fully()
    await other.sign_in_fully()
    path = f"/operator/team/{employee.person.person_id}"
    csrf = other.page.form("leave")[1]["csrf"]
    answer = await other.http.post(path, data={"csrf": csrf, "do": "provider", "reason": "x"})
    assert answer.status_code == 404, "support does not see the team"
    assert await linked(employee)
    context, person_id = company.service.context, employee.person.person_id
    await forget_operator_account(context, OperatorActor(None), person_id, "again")
    assert not await linked(employee)


async def test_a_domain_that_is_not_allowed_is_refused_also_at_later_sign_ins(companies: Companies) -> None:
    company = await companies.start(domains=frozenset({"company.example"}))
    employee = await company.employee()
    await employee.sign_in_fully()
    await company.provider.account(employee.account, "ana@elsewhere.example")
    employee.elsewhere.http.cookies.clear()
    await employee.press("leave")
    page = await employee.come_in()
    assert (page.status, "in a domain that may not sign in" in page.text) == (403, True)
    assert (await employee.logged())[0] == "sign-in.refused"


async def test_signing_out_ends_the_session_in_cuota(company: Company) -> None:
    employee = await company.employee()
    await employee.sign_in_fully()
    kept = employee.http.cookies["operator"]
    await employee.press("leave")
    employee.http.cookies.set("operator", kept)
    assert not await inside(employee)


async def test_if_no_provider_is_set_its_pages_do_not_exist(operator: Employee) -> None:
    assert f"Sign in with {NAME}" not in (await operator.open("/operator/sign-in")).text
    for path in ("", "/return?state=x&code=y"):
        assert (await operator.open(f"/operator/provider{path}")).status == 404


def test_the_providers_lock_file_names_no_registry_and_has_a_hash_for_every_package() -> None:
    check_lock(FOLDER)
