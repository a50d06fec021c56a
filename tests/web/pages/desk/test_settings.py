"""The settings of a merchant in its dashboard, and their effect on the API, the checkout and the messages."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from cuota.core.desk.role import Role
from cuota.core.merchant import BodyProfile
from cuota.flows.desk.send_notices import send_notices
from cuota.flows.merchant.authenticate import FRESH_SECONDS
from cuota.flows.merchant.manage_merchants import MerchantTerms, update_merchant
from cuota.rails import inbox
from support.core.pictures import png
from support.makers import order_body
from support.pages.settings import SETTINGS, held, save, send_logo
from support.pages.staff import Staff


async def in_force(staff: Staff) -> tuple[float, float]:
    """Return the amounts in the API's response, after the process has read the merchant again."""
    await asyncio.sleep(FRESH_SECONDS)
    answer = (await staff.shop.http.get("/configuration")).json()
    return answer["minimumAmount"], answer["maximumAmount"]


async def test_amounts_within_the_operators_limits_apply_in_the_api_within_seconds(
    staff: Staff,
) -> None:
    assert FRESH_SECONDS <= 5
    await staff.enter()
    page = await save(staff, "amounts", minimum="$20.00", maximum="1,000")
    assert "$20.00 to $1,000.00" in page.text
    assert await in_force(staff) == (20.0, 1000.0)
    for amount in ("19.99", "1000.01"):
        answer = await staff.shop.http.post("/order", json=order_body(amount))
        assert (answer.status_code, answer.json()["code"]) == (400, "amount_out_of_range")
        assert "from 20.00 to 1000.00" in answer.text
    assert (await staff.shop.http.post("/order", json=order_body("20.00"))).status_code == 200
    text = (await staff.open("/desk/audit?action=settings.")).text
    assert "smallestAmount: as the provider's → 20.00" in text
    assert "largestAmount: as the provider's → 1000.00" in text
    assert "Reason: as agreed" in text


async def test_an_empty_field_means_the_operators_limit(staff: Staff) -> None:
    await staff.enter()
    await save(staff, "amounts", minimum="20.00", maximum="")
    await save(staff, "amounts", minimum="", maximum="")
    found = await held(staff)
    assert (found.own.minimum, found.own.maximum) == (None, None)
    assert (found.lowest, found.highest) == (found.minimum, found.maximum)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ("0.99", "", "Your payment provider allows $1.00 to $2,000.00"),
        ("", "2000.01", "Your payment provider allows $1.00 to $2,000.00"),
        ("100.00", "50.00", "The largest amount must be at least the smallest"),
        ("ten", "", "Enter an amount such as 100.00"),
        ("", "1.005", "Enter an amount such as 100.00"),
        ("-5", "", "Your payment provider allows"),
        ("1e3", "", "Enter an amount such as 100.00"),
        ("1,50", "", "Enter an amount such as 100.00"),
    ],
)
async def test_amounts_that_the_operator_does_not_allow_change_nothing(
    staff: Staff, low: str, high: str, words: str
) -> None:
    await staff.enter()
    before = await held(staff)
    page = await save(staff, "amounts", minimum=low, maximum=high)
    assert (page.status, words in page.text) == (400, True)
    assert await held(staff) == before
    _, fields = staff.form_named("amounts")
    assert (fields["minimum"], fields["maximum"]) == (low, high)


async def test_if_the_operator_narrows_its_limits_a_merchants_limit_outside_them_does_not_count(
    staff: Staff,
) -> None:
    await staff.enter()
    await save(staff, "amounts", minimum="20.00", maximum="1000.00")
    name = str(staff.shop.merchant_id)
    await update_merchant(staff.service.context, name, MerchantTerms(minimum=3000, maximum=50_000))
    found = await held(staff)
    assert (found.lowest, found.highest) == (3000, 50_000)
    page = await staff.open(SETTINGS)
    assert "Your own limit of $20.00 does not count" in page.text
    assert "Your own limit of $1,000.00 does not count" in page.text
    await update_merchant(staff.service.context, name, MerchantTerms(minimum=100, maximum=200_000))
    found = await held(staff)
    assert (found.lowest, found.highest) == (2000, 100_000)


async def test_the_capture_model_applies_to_new_orders(staff: Staff) -> None:
    await staff.enter()
    assert (await held(staff)).defer_funds_capture
    await save(staff, "capture", capture="approved")
    await asyncio.sleep(FRESH_SECONDS)
    order = await staff.shop.approved()
    assert (await staff.shop.read(order))["capturedAmount"] == (await staff.shop.read(order))["amount"]
    assert "deferFundsCapture: yes → no" in (await staff.open("/desk/audit?action=settings.")).text
    page = await save(staff, "capture", capture="never")
    assert (page.status, "Choose when an order is captured" in page.text) == (400, True)


async def test_the_reading_profile_is_changed(staff: Staff) -> None:
    await staff.enter()
    await save(staff, "profile", profile="lenient")
    assert (await held(staff)).profile is BodyProfile.LENIENT
    assert (await save(staff, "profile", profile="loose")).status == 400


async def test_the_earlier_address_for_notices_gets_a_mail_about_the_new_address(staff: Staff) -> None:
    first, second = (f"{secrets.token_hex(5)}@shop.example" for _ in range(2))
    await staff.enter()
    await save(staff, "notices", notify_email=first)
    await save(staff, "notices", notify_email=second)
    while await send_notices(staff.service.context):
        pass
    pool = staff.service.context.pool
    (mail,) = await inbox.look(pool, to=first)
    assert f"from {first} to {second}" in mail.text
    assert await inbox.look(pool, to=second) == []
    assert f"noticesTo: {first} → {second}" in (await staff.open("/desk/audit?action=settings.")).text


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.FINANCE])
async def test_developers_and_finance_people_can_read_the_settings_but_not_change_them(
    staff: Staff, role: Role
) -> None:
    await staff.enter(role)
    page = await staff.open(SETTINGS)
    assert "An owner or an admin of your team can change these settings" in page.text
    assert all("settings" not in action for action, _ in page.seen.forms)
    csrf = page.form("leave")[1]["csrf"]
    answer = await staff.http.post(
        SETTINGS, data={"csrf": csrf, "do": "amounts", "minimum": "5", "reason": "x"}
    )
    assert answer.status_code == 403


async def test_a_change_needs_a_fresh_code(staff: Staff) -> None:
    person = await staff.invited(f"{secrets.token_hex(5)}@shop.example", Role.ADMIN)
    await staff.sign_in(person)
    await staff.service.context.pool.execute(
        "UPDATE desk_sessions SET proved_at = now() - interval '6 minutes' WHERE merchant_id = $1",
        staff.shop.merchant_id,
    )
    for form in ("amounts", "capture", "profile", "brand", "notices"):
        page = await save(staff, form)
        assert (page.status, "Enter the code of your authenticator app" in page.text) == (400, True)
    page = await send_logo(staff, png())
    assert (page.status, "Enter the code of your authenticator app" in page.text) == (400, True)


async def test_a_form_without_a_change_writes_no_entry(staff: Staff) -> None:
    await staff.enter()
    for _ in range(2):
        await save(staff, "amounts", minimum="20.00", maximum="")
    page = await staff.open("/desk/audit?action=settings.")
    assert page.answer.text.count("<b>settings.amounts</b>") == 1
