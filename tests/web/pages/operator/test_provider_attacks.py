"""Attacks on a sign-in at the company's provider: stolen, replayed, planted and mixed-up answers."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from ipaddress import ip_network
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from cuota.core.operator.role import OperatorRole
from cuota.flows.context import utc_now
from cuota.flows.operator import visit_provider
from support.identity.company import Companies, Company, Employee
from support.identity.real_provider import OTHER_CLIENT


@pytest.fixture
async def company(companies: Companies) -> Company:
    """A company with the usual settings."""
    return await companies.start()


def changed(address: str, **parameters: str | None) -> str:
    """Return the address with other parameters. None removes a parameter."""
    parts = urlsplit(address)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | parameters
    return f"{parts.path}?{urlencode({name: value for name, value in query.items() if value is not None})}"


async def signed_in_or_halfway(employee: Employee) -> bool:
    """Whether the browser has any session in the dashboard."""
    return (await employee.open("/operator/code")).heading != "Sign in"


async def test_an_answer_works_once(company: Company) -> None:
    employee = await company.employee()
    address = await employee.returning()
    assert (await employee.open(address)).status == 200
    employee.http.cookies.delete("operator")
    page = await employee.open(address)
    assert (page.status, "was finished before" in page.text) == (403, True)
    assert not await signed_in_or_halfway(employee)


async def test_if_two_answers_arrive_at_once_only_one_works(company: Company) -> None:
    employee = await company.employee()
    address = await employee.returning()
    answers = await asyncio.gather(*(employee.http.get(address) for _ in range(2)))
    assert sorted(answer.status_code for answer in answers) == [303, 403]


async def test_a_stolen_answer_works_in_no_other_browser(company: Company) -> None:
    employee, thief = await company.employee(), company.browser()
    address = await employee.returning()
    assert (await thief.open(address)).status == 403
    await thief.leave_for()
    assert (await thief.open(address)).status == 403, "the thief has a cookie now, but of another sign-in"
    assert not await signed_in_or_halfway(thief)
    assert (await employee.open(address)).status == 200, "the thief's try did not use it up"


async def test_an_answer_that_another_person_began_signs_nobody_in(company: Company) -> None:
    """Login CSRF: the attacker makes the victim open the answer to the attacker's own sign-in."""
    thief, victim = await company.employee(), await company.employee()
    planted = await thief.returning()
    await victim.leave_for()
    assert (await victim.open(planted)).status == 403
    assert not await signed_in_or_halfway(victim)


async def test_a_used_code_does_not_work_with_a_new_state(company: Company) -> None:
    employee, thief = await company.employee(), company.browser()
    used = await employee.returning()
    await employee.open(used)
    code = parse_qs(urlsplit(used).query)["code"][0]
    own = parse_qs(urlsplit(await thief.leave_for()).query)["state"][0]
    page = await thief.open(changed(used, state=own, code=code))
    assert (page.status, "could not be accepted" in page.text) == (403, True)
    assert not await signed_in_or_halfway(thief)


async def test_a_stolen_unused_code_does_not_work_with_another_state(company: Company) -> None:
    """The code is bound to the verifier of its own sign-in (PKCE), which no browser sees."""
    employee, thief = await company.employee(), company.browser()
    stolen = parse_qs(urlsplit(await employee.returning()).query)["code"][0]
    leaving = await thief.leave_for()
    own = parse_qs(urlsplit(leaving).query)["state"][0]
    issuer = company.provider.issuer
    page = await thief.open(
        f"/operator/provider/return?{urlencode({'state': own, 'code': stolen, 'iss': issuer})}"
    )
    assert page.status == 403
    assert not await signed_in_or_halfway(thief)


@pytest.mark.parametrize("named", ["https://login.evil.example", "", None])
async def test_an_answer_of_another_provider_is_refused_before_its_code_is_sent(
    company: Company, named: str | None
) -> None:
    employee = await company.employee()
    address = await employee.returning()
    page = await employee.open(changed(address, iss=named))
    assert page.status == 403
    # The provider still accepts the code, so Cuota did not send it. Otherwise a mix-up would have sent the code to another
    # provider.
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    asked = visit_provider._asked(company.service.context, query["state"])
    provider = company.service.context.rails.identity
    assert provider is not None
    assert (await provider.claims(asked, query["code"]))["sub"] == employee.account


async def test_an_answer_to_a_sign_in_that_began_at_an_earlier_provider_is_refused(
    companies: Companies, company: Company
) -> None:
    employee = await company.employee()
    address = await employee.returning()
    later = await companies.start(replace(company.provider.settings(), issuer="http://127.0.0.1:9"))
    moved = later.browser()
    moved.http.cookies = employee.http.cookies
    page = await moved.open(address)
    assert (page.status, "was begun in another browser" in page.text) == (403, True)


async def test_a_token_for_another_client_of_the_same_provider_is_refused(company: Company) -> None:
    """The attacker has a code for another application of the company, at which the victim signed in."""
    victim, thief = await company.employee(), company.browser()
    leaving = changed(await thief.leave_for(), client_id=OTHER_CLIENT)
    there = f"{company.provider.issuer}{leaving}"
    page = await thief.open(await victim.elsewhere.sign_in(there, victim.account))
    assert page.status == 403
    assert not await signed_in_or_halfway(thief)


async def test_the_return_address_is_exactly_ours(company: Company) -> None:
    employee = await company.employee()
    leaving = await employee.leave_for()
    query = parse_qs(urlsplit(leaving).query)
    assert query["redirect_uri"] == [f"{company.service.settings.public_url}/operator/provider/return"]
    assert query["code_challenge_method"] == ["S256"]
    assert len(query["state"][0]) == len(query["nonce"][0]) == len(query["code_challenge"][0]) == 43
    elsewhere = f"{company.provider.issuer}{changed(leaving, redirect_uri='https://evil.example/')}"
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(elsewhere)).status_code == 400


async def test_the_host_header_does_not_change_an_address(company: Company) -> None:
    employee = await company.employee()
    answer = await employee.http.get("/operator/provider", headers={"host": "evil.example"})
    assert "evil.example" not in answer.headers.get("location", "")


async def test_each_step_gives_the_session_a_new_secret_and_ends_the_previous_one(company: Company) -> None:
    """Session fixation: a secret that was planted in the browser is useless after the sign-in."""
    employee, thief = await company.employee(), company.browser()
    await thief.open_link(await thief.invited(f"thief-{secrets.token_hex(4)}@company.example"))
    planted = thief.http.cookies["operator"]
    employee.http.cookies.set("operator", planted, domain="127.0.0.1", path="/")
    await employee.come_in()
    halfway = {cookie.value for cookie in employee.http.cookies.jar if cookie.name == "operator"}
    assert planted not in halfway
    assert not await signed_in_or_halfway(thief), "the planted session has ended"
    await employee.send("code", code=employee.code())
    assert not halfway & {cookie.value for cookie in employee.http.cookies.jar if cookie.name == "operator"}


async def test_a_refused_sign_in_does_not_end_the_existing_session(company: Company) -> None:
    employee = await company.employee()
    await employee.sign_in_fully()
    page = await employee.open("/operator/provider/return?state=x&code=y")
    assert page.status == 403
    assert (await employee.open("/operator/orders")).heading == "Orders"


async def test_a_sign_in_expires_after_ten_minutes(company: Company) -> None:
    employee = await company.employee()
    address = await employee.returning()
    await company.service.context.pool.execute(
        "UPDATE operator_provider_visits SET ends_at = $1 WHERE used_at IS NULL", utc_now()
    )
    assert (await employee.open(address)).status == 403


async def test_the_number_of_sign_ins_of_a_browser_is_limited(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit_provider, "MOST_OF_BROWSER", 3)
    employee = company.browser()
    for _ in range(3):
        await employee.leave_for()
    page = await employee.open("/operator/provider")
    assert (page.status, "Too many tries" in page.text) == (403, True)


async def test_the_number_of_sign_ins_of_an_ip_address_is_limited(
    companies: Companies, monkeypatch: pytest.MonkeyPatch
) -> None:
    companies.settings = replace(companies.settings, trusted_proxies=(ip_network("127.0.0.1"),))
    company, header = await companies.start(), {"x-forwarded-for": "198.51.100.7"}
    monkeypatch.setattr(visit_provider, "MOST_OF_ADDRESS", 3)
    for status in (303, 303, 303, 403):
        answer = await company.browser().http.get("/operator/provider", headers=header)
        assert answer.status_code == status
    header["x-forwarded-for"] = "198.51.100.8"
    assert (await company.browser().http.get("/operator/provider", headers=header)).status_code == 303


async def test_a_head_request_begins_and_finishes_nothing(company: Company) -> None:
    employee = await company.employee()
    assert (await employee.http.head("/operator/provider")).status_code == 404
    address = await employee.returning()
    assert (await employee.http.head(address)).status_code == 404
    assert (await employee.open(address)).status == 200


@pytest.mark.parametrize(
    "answer",
    ["", "?state=", "?code=x", "?state=%00&code=%00", "?state=a&state=b&code=c", "?state=" + "a" * 9000, "?error=access_denied"],
)  # fmt: skip
async def test_a_malformed_answer_is_refused(company: Company, answer: str) -> None:
    employee = await company.employee()
    await employee.leave_for()
    page = await employee.open(f"/operator/provider/return{answer}")
    assert (page.status, page.heading) == (403, "You are not signed in")


async def test_a_canceled_sign_in_says_so_and_never_shows_the_text_in_the_address(company: Company) -> None:
    employee = await company.employee()
    address = await employee.elsewhere.sign_in(await employee.leave_for(), "", cancel=True)
    page = await employee.open(f"{address}&error_description=Call+555-0100+now")
    assert (page.status, "was canceled" in page.text, "555-0100" in page.text) == (403, True, False)


async def test_a_person_of_a_merchants_team_cannot_sign_in_here(company: Company) -> None:
    employee = await company.employee(OperatorRole.READ_ONLY)
    await employee.come_in()
    employee.http.cookies.set("desk", employee.http.cookies["operator"])
    assert (await employee.open("/desk/orders")).heading == "Sign in"
