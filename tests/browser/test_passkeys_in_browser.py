"""Passkeys in both dashboards in a real Chromium, with its virtual authenticator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import Route, expect

from cuota import config
from cuota.commands.desk import operator_sandbox_link, sandbox_link
from cuota.core.desk.role import Role
from cuota.core.operator.role import OperatorRole
from cuota.flows.merchant.manage_merchants import find_merchant
from support.browser.passkeys import Seat, seat
from support.browser.screens import WIDE, look, look_everywhere
from support.browser.tabs import PHONE, OpenTab
from support.makers import Merchant, make_merchant
from support.ports import free_port
from support.running import running

pytestmark = pytest.mark.browser
# The error statuses that a test causes on purpose.
REFUSALS = r"^4\d\d http"
Sit = Callable[..., Awaitable[Seat]]


@pytest.fixture
async def named(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Merchant]:
    """A merchant of a service whose address has a name: browsers bind no passkey to a number."""
    url = f"http://localhost:{free_port()}"
    given = replace(settings, public_url=url, auth_url=url, audience=url)
    async with (
        running(given, own_database) as service,
        make_merchant(service, defer_funds_capture=True) as shop,
    ):
        yield shop


@pytest.fixture(params=["desk", "operator"])
def sit(request: pytest.FixtureRequest, named: Merchant, open_tab: OpenTab) -> Sit:
    """Opens tabs of a signed-in owner of one dashboard, each with its own authenticator."""

    async def opened(expected: str | None = None, **how: Any) -> Seat:
        context = named.service.context
        if request.param == "desk":
            link = await sandbox_link(
                context, await find_merchant(context, str(named.merchant_id)), Role.OWNER
            )
        else:
            link = await operator_sandbox_link(context, OperatorRole.OWNER)
        page = await open_tab(expected, **{"viewport": WIDE, **how})
        return await seat(page, named, f"/{request.param}", link)

    return opened


async def test_a_person_adds_a_passkey_signs_out_and_signs_in_with_it(sit: Sit) -> None:
    one = await sit()
    await one.added()
    await expect(one.page.get_by_role("link", name="Change laptop")).to_be_visible()
    await one.leave()
    await one.press_sign_in()
    await one.inside()


async def test_a_passkey_takes_the_place_of_a_code_in_the_middle_of_a_form(sit: Sit) -> None:
    one = await sit()
    await one.added()
    await one.grow_old()
    await one.page.goto(f"{one.base}/team")
    await one.page.get_by_label("Name").fill("Ben Okoro")
    await one.page.get_by_label("E-mail").fill("ben@shop.example")
    await one.page.get_by_label("Reason").fill("new colleague")
    await look(one.page, "the choice between a code and a passkey")
    await one.page.get_by_role("button", name="Use a passkey instead").click()
    await expect(one.page.get_by_text("Confirmed with your passkey.")).to_be_focused()
    await expect(one.page.get_by_label("Code of your authenticator app")).to_be_hidden()
    await expect(one.page.get_by_role("button", name="Use a passkey instead")).to_be_hidden()
    await look(one.page, "a form that a passkey confirmed")
    await one.page.get_by_role("button", name="Invite").click()
    await expect(one.page.get_by_role("status").first).to_contain_text("The invitation is on its way")


async def test_a_passkey_is_renamed_and_removed_by_keyboard_and_can_no_longer_sign_in(sit: Sit) -> None:
    one = await sit()
    await one.added()
    await one.page.get_by_role("link", name="Change laptop").focus()
    await one.page.keyboard.press("Enter")
    await one.page.get_by_label("Name").fill("office laptop")
    await one.page.keyboard.press("Enter")
    await expect(one.page.get_by_role("status").first).to_contain_text("The passkey has its new name.")
    await one.page.get_by_role("link", name="Change office laptop").click()
    await look(one.page, "one passkey")
    await one.page.get_by_role("button", name="Remove the passkey").focus()
    await one.page.keyboard.press("Enter")
    await expect(one.page.get_by_text("You have no passkey yet.")).to_be_visible()
    await one.leave()
    await one.press_sign_in()
    await one.refused()


async def test_the_enter_key_in_the_name_adds_a_passkey_like_the_button(sit: Sit) -> None:
    one = await sit()
    await one.page.goto(f"{one.base}/passkeys")
    await one.page.get_by_label("Name").fill("laptop")
    await one.page.keyboard.press("Enter")
    await expect(one.page.get_by_role("status").first).to_contain_text("The passkey is added.")


async def test_the_same_authenticator_cannot_add_a_second_passkey(sit: Sit) -> None:
    one = await sit()
    await one.added()
    await one.add("again")
    await expect(one.page.get_by_text("This device already has a passkey of yours.")).to_be_visible()
    await look(one.page, "a passkey that is there already")
    await expect(one.page.get_by_text("again", exact=True)).to_have_count(0)


async def test_an_answer_that_was_used_before_is_refused(sit: Sit) -> None:
    one = await sit()
    await one.added()
    await one.leave()
    await one.page.goto(f"{one.base}/sign-in")
    await one.page.get_by_role("button", name="Sign in with a passkey").click()
    await one.inside()
    used = one.sent[-1]
    await one.leave()
    await one.page.goto(f"{one.base}/sign-in")
    await one.page.evaluate(
        """passkey => {
            const form = document.querySelector('[data-passkey]').closest('form');
            form.elements.passkey.value = passkey;
            form.submit();
        }""",
        used,
    )
    await one.refused()


async def test_a_challenge_of_another_browser_is_refused(sit: Sit) -> None:
    one = await sit()
    await one.added()
    await one.leave()
    async with one.service.client() as other:
        page = await other.get(f"{one.root}/sign-in")
        csrf = page.text.partition('name="csrf" value="')[2].partition('"')[0]
        theirs = await other.post(f"{one.root}/sign-in/passkey/options", data={"csrf": csrf})
        assert theirs.status_code == 200

        async def swap(route: Route) -> None:
            await route.fulfill(status=200, content_type="application/json", body=theirs.text)

        await one.page.route("**/sign-in/passkey/options", swap)
        await one.press_sign_in()
        await one.refused()


async def test_an_answer_whose_counter_goes_backwards_is_refused(sit: Sit) -> None:
    one = await sit()
    await one.added()
    for _ in range(2):
        await one.leave()
        await one.press_sign_in()
        await one.inside()
    await one.leave()
    (credential,) = (await one.ask("getCredentials"))["credentials"]
    assert credential["signCount"] >= 3
    await one.ask("removeCredential", credentialId=credential["credentialId"])
    await one.ask("addCredential", credential={**credential, "signCount": 1})
    await one.press_sign_in()
    await one.refused()


async def test_a_person_whom_the_device_does_not_verify_learns_what_else_to_do(sit: Sit) -> None:
    one = await sit()
    await one.added()
    await one.leave()
    await one.ask("setUserVerified", isUserVerified=False)
    await one.press_sign_in()
    await expect(one.page.get_by_text("Use the mailed link instead.")).to_be_visible()
    await expect(one.page.get_by_role("button", name="Sign in with a passkey")).to_be_focused()
    await look(one.page, "a passkey that was not used")
    await one.ask("setUserVerified", isUserVerified=True)
    await one.page.get_by_role("button", name="Sign in with a passkey").click()
    await one.inside()


async def test_a_wrong_name_is_reported_at_the_button_and_the_field_gets_the_focus(sit: Sit) -> None:
    one = await sit(REFUSALS)
    await one.add("   ")
    await expect(one.page.get_by_text("Give the passkey a name of at most 100 characters.")).to_be_visible()
    await expect(one.page.get_by_label("Name")).to_be_focused()


async def test_in_a_browser_without_passkeys_the_page_says_so(sit: Sit) -> None:
    one = await sit()
    await one.page.add_init_script("delete window.PublicKeyCredential")
    await one.leave()
    await expect(one.page.get_by_text("This browser does not support passkeys here.")).to_be_visible()
    await expect(one.page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
    await expect(one.page.get_by_role("button", name="Mail me a link")).to_be_visible()


async def test_without_script_the_sign_in_page_offers_only_the_mailed_link(
    open_tab: OpenTab, named: Merchant
) -> None:
    page = await open_tab(viewport=PHONE, java_script_enabled=False)
    for root in ("desk", "operator"):
        await page.goto(f"{named.service.settings.public_url}/{root}/sign-in")
        await expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
        await page.get_by_label("E-mail").fill("ana@shop.example")
        await page.get_by_role("button", name="Mail me a link").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Check your e-mail")


async def test_the_pages_fit_each_screen_and_break_no_rule_of_axe(sit: Sit) -> None:
    one = await sit(viewport=PHONE)
    await one.added("W" * 100)
    await look_everywhere(one.page, "the list")
    await one.page.get_by_role("link", name="Change").click()
    await look_everywhere(one.page, "one passkey")
    await one.leave()
    await look_everywhere(one.page, "the sign-in page")
