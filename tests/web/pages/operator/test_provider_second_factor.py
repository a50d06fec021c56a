"""The company's provider as a second factor, and the roles that the provider gives."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

from cuota.core.operator.role import OperatorRole
from cuota.db.operator import operators
from cuota.flows.context import utc_now
from cuota.flows.desk.sign_in import Place
from cuota.flows.operator.operator_sign_in import open_operator
from support.identity.company import NAME, Companies, Employee
from support.identity.real_provider import opened_provider

TWO = {"two_factors": frozenset({"amr=mfa"})}
ROLES = {
    "role_claim": "groups",
    "roles": (("money", OperatorRole.FINANCE), ("help", OperatorRole.SUPPORT)),
}


async def asks_for_code(employee: Employee) -> bool:
    """Whether the dashboard asks for a fresh second factor before a change."""
    page = await employee.open(f"/operator/team/{employee.person.person_id}")
    return "Code of your authenticator app" in page.text


async def grow_old(employee: Employee) -> None:
    """Move the person's last second factor six minutes into the past."""
    sql = "UPDATE operator_sessions SET proved_at = now() - interval '6 minutes' WHERE person_id = $1"
    await employee.service.context.pool.execute(sql, employee.person.person_id)


async def role_of(employee: Employee) -> OperatorRole:
    found = await operators.read(employee.service.context.pool, employee.person.person_id)
    assert found is not None
    return found.role


async def test_a_second_factor_that_the_provider_proves_completes_the_sign_in(companies: Companies) -> None:
    employee = await (await companies.start(**TWO)).employee(amr=("pwd", "mfa"))
    assert (await employee.come_in()).heading == "What waits"
    assert not await asks_for_code(employee)


async def test_a_second_factor_of_the_provider_counts_only_if_the_settings_allow_it(
    companies: Companies,
) -> None:
    employee = await (await companies.start()).employee(amr=("pwd", "mfa"))
    assert (await employee.come_in()).heading == "Set up your second factor"


async def test_after_one_factor_at_the_provider_cuota_asks_for_its_second_factor(
    companies: Companies,
) -> None:
    employee = await (await companies.start(**TWO)).employee(amr=("pwd",))
    assert (await employee.come_in()).heading == "Set up your second factor"


async def test_a_sign_in_that_the_provider_remembers_is_not_fresh(companies: Companies) -> None:
    employee = await (await companies.start(**TWO)).employee(
        amr=("mfa",), signed_in_at=int(time.time()) - 600
    )
    assert (await employee.come_in()).heading == "What waits"
    assert await asks_for_code(employee)


async def test_the_provider_can_replace_a_fresh_code(companies: Companies) -> None:
    employee = await (await companies.start(**TWO)).employee(amr=("mfa",))
    await employee.come_in()
    await grow_old(employee)
    assert await asks_for_code(employee)
    assert f"confirm at {NAME}" in employee.page.text
    leaving = (await employee.open("/operator/provider/confirm")).left
    assert leaving is not None
    asked = parse_qs(urlsplit(leaving).query)
    assert (asked["prompt"], asked["max_age"]) == (["login"], ["0"])
    page = await employee.confirm()
    assert (page.status, page.heading) == (200, "Confirmed")
    assert not await asks_for_code(employee)
    assert (await employee.logged())[0] == "sign-in.confirmed"


async def test_the_provider_does_not_replace_a_fresh_code_without_a_second_factor(
    companies: Companies,
) -> None:
    company = await companies.start(**TWO)
    employee = await company.employee(amr=("mfa",))
    await employee.come_in()
    await grow_old(employee)
    await company.provider.account(employee.account, employee.person.email, amr=("pwd",))
    page = await employee.confirm()
    assert (page.status, page.heading) == (403, "Not confirmed")
    assert await asks_for_code(employee)


async def test_the_provider_does_not_replace_a_fresh_code_if_the_sign_in_was_long_ago(
    companies: Companies,
) -> None:
    company = await companies.start(**TWO)
    employee = await company.employee(amr=("mfa",))
    await employee.come_in()
    await grow_old(employee)
    ago = int(time.time()) - 600
    await company.provider.account(employee.account, employee.person.email, amr=("mfa",), signed_in_at=ago)
    assert (await employee.confirm()).heading == "Not confirmed"
    assert await asks_for_code(employee)


async def test_a_colleagues_account_does_not_replace_a_fresh_code(companies: Companies) -> None:
    company = await companies.start(**TWO)
    employee, colleague = await company.employee(amr=("mfa",)), await company.employee(amr=("mfa",))
    await colleague.come_in()
    await employee.come_in()
    await grow_old(employee)
    # Without this, the provider shows its own page when another person signs in.
    employee.elsewhere.http.cookies.clear()
    page = await employee.confirm(colleague.account)
    assert (page.status, "is not yours here" in page.text) == (403, True)
    assert await asks_for_code(employee)


async def test_an_answer_for_a_fresh_code_signs_nobody_in(companies: Companies) -> None:
    employee = await (await companies.start(**TWO)).employee(amr=("mfa",))
    await employee.come_in()
    await employee.open("/operator/provider/confirm")
    assert employee.page.left is not None
    address = await employee.elsewhere.sign_in(employee.page.left, employee.account)
    employee.http.cookies.delete("operator")
    assert (await employee.open(address)).status == 403
    assert (await employee.open("/operator/orders")).heading == "Sign in"


async def test_an_answer_counts_as_a_fresh_code_only_for_the_session_that_asked(companies: Companies) -> None:
    company = await companies.start(**TWO)
    employee = await company.employee(amr=("mfa",))
    await employee.come_in()
    await employee.open("/operator/provider/confirm")
    assert employee.page.left is not None
    address = await employee.elsewhere.sign_in(employee.page.left, employee.account)
    employee.http.cookies.delete("operator")
    context = company.service.context
    other = await open_operator(context, context.pool, employee.person, Place("", ""), utc_now())
    employee.http.cookies.set("operator", other)
    await grow_old(employee)
    assert (await employee.open(address)).heading == "Not confirmed"
    assert await asks_for_code(employee)


async def test_after_one_factor_a_new_app_cannot_replace_a_passkey(companies: Companies) -> None:
    company = await companies.start()
    employee = await company.employee()
    await employee.service.context.pool.execute(
        "INSERT INTO operator_passkeys VALUES ($1, $2, '\\x01' || $3::bytea, '\\x01', 0, 'phone', now(), NULL)",
        employee.service.context.new_id(), employee.person.person_id, employee.person.person_id.bytes,
    )  # fmt: skip
    page = await employee.come_in()
    assert page.heading == "Use your passkey"
    assert "Enter this key" not in page.text
    csrf = employee.service.context.vault.hash("csrf", employee.http.cookies["operator"]).hex()
    answer = await employee.http.post("/operator/code", data={"csrf": csrf, "code": "000000"})
    assert (answer.status_code, "Use your passkey." in answer.text) == (400, True)
    found = await operators.read(employee.service.context.pool, employee.person.person_id)
    assert found is not None
    assert not found.has_factor


async def test_new_keys_of_the_provider_are_found(companies: Companies) -> None:
    async with opened_provider(companies.settings.public_url) as provider:
        companies.provider = provider
        company = await companies.start()
        now = [0.0]
        keys = company.service.context.rails.identity._keys  # type: ignore[union-attr]
        keys.now = lambda: now[0]
        employee = await company.employee()
        await employee.come_in()
        await provider.new_keys()
        employee.elsewhere.http.cookies.clear()
        assert (await employee.come_in()).status == 403, "the keys were read a moment ago"
        now[0] += 61
        assert (await employee.come_in()).heading == "Set up your second factor"


async def test_the_provider_gives_people_their_role(companies: Companies) -> None:
    company = await companies.start(**ROLES)
    employee = await company.employee(OperatorRole.RISK, groups=["staff", "money"])
    await employee.come_in()
    assert await role_of(employee) is OperatorRole.FINANCE
    assert "team.role" in await employee.logged()


async def test_a_person_to_whom_the_provider_gives_no_role_is_refused(companies: Companies) -> None:
    company = await companies.start(**ROLES)
    for groups in ([], ["owner"], "staff", 7):
        employee = await company.employee(OperatorRole.RISK, groups=groups)
        page = await employee.come_in()
        assert (page.status, "gives you no role" in page.text) == (403, True)
        assert await role_of(employee) is OperatorRole.RISK


async def test_an_owner_stays_an_owner_whatever_the_provider_says(companies: Companies) -> None:
    company = await companies.start(**ROLES)
    for groups in ([], ["help"]):
        owner = await company.employee(OperatorRole.OWNER, groups=groups)
        assert (await owner.come_in()).heading == "Set up your second factor"
        assert await role_of(owner) is OperatorRole.OWNER


async def test_without_a_setting_the_provider_gives_no_role(companies: Companies) -> None:
    employee = await (await companies.start()).employee(OperatorRole.RISK, groups=["money"])
    await employee.come_in()
    assert await role_of(employee) is OperatorRole.RISK
