"""A merchant's onboarding in its own dashboard: missing items, rejected items with the reason, and the forms."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from cuota.core.desk.role import MAY, Action, Role
from cuota.core.merchant import Onboarding
from cuota.core.onboarding.checklist import Item, ItemState
from cuota.core.onboarding.screening import FindingState
from cuota.db.onboarding import onboardings
from cuota.flows.context import Context
from cuota.flows.merchant.suspend_merchant import suspend_merchant
from cuota.flows.onboarding.decide_item import decide_finding
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import screen_merchant
from support.evidence_files import JPEG, PDF
from support.makers import Merchant
from support.onboarding import BUSINESS, OWNER, RISK, decide, fill, state_of, stored
from support.pages.staff import Staff

ROOT = "/desk/onboarding"


@pytest.fixture
def context(merchant: Merchant) -> Context:
    return merchant.service.context


@pytest.fixture
def merchant_id(merchant: Merchant) -> UUID:
    return merchant.merchant_id


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN])
async def test_an_owner_or_admin_enters_the_missing_data(
    staff: Staff, context: Context, merchant_id: UUID, role: Role
) -> None:
    await staff.enter(role)
    page = await staff.open(staff.page.link("Business"))
    assert page.heading == "Your business"
    await staff.open(page.link("Business"))
    await staff.open(f"{ROOT}/business")
    page = await staff.press("business", **BUSINESS)
    assert (page.heading, "is saved" in page.text) == ("Your business", True)
    await staff.open(f"{ROOT}/owners")
    page = await staff.press("owners", **OWNER)
    for text in ("Jordan Rivera", "03/09/1979", "60.00 %"):
        assert text in page.text, text
    answer = await staff.upload(
        f"{ROOT}/documents", ("register.pdf", PDF), ("passport.jpg", JPEG), kind="identity"
    )
    assert answer.headers["location"].endswith("?said=sent")
    for item in (Item.BUSINESS, Item.OWNERS, Item.DOCUMENTS):
        assert await state_of(context, merchant_id, item) is ItemState.TO_CHECK
    rows = await context.pool.fetch(
        "SELECT action FROM audit_log WHERE merchant_id = $1 ORDER BY entry_id", merchant_id
    )
    assert {row["action"] for row in rows} >= {
        "onboarding.business", "onboarding.owner.add", "onboarding.document.add",
    }  # fmt: skip


@pytest.mark.parametrize("role", list(Role))
async def test_only_owners_and_admins_can_open_the_page(staff: Staff, role: Role) -> None:
    await staff.enter(role)
    may = Action.FILL_ONBOARDING in MAY[role]
    assert may is (role in {Role.OWNER, Role.ADMIN})
    assert (ROOT in staff.page.seen.links) is may
    assert (await staff.open(ROOT)).status == (200 if may else 403)


async def test_a_rejected_item_shows_the_reason_and_must_be_checked_again_after_a_change(
    staff: Staff, context: Context, merchant_id: UUID
) -> None:
    await fill(context, merchant_id)
    await decide(context, merchant_id, Item.BUSINESS, accepted=False, reason="The EIN is of another company.")
    await staff.enter()
    page = await staff.open(ROOT)
    assert "Rejected" in page.text
    assert "The EIN is of another company." in page.text
    # Only the operator's log names the person of the operator who decided.
    assert "risk" not in page.text
    await staff.open(f"{ROOT}/business")
    await staff.press("business", ein="98-7654321")
    assert await state_of(context, merchant_id, Item.BUSINESS) is ItemState.TO_CHECK


async def test_the_merchant_does_not_see_the_reason_of_an_acceptance(
    staff: Staff, context: Context, merchant_id: UUID
) -> None:
    await fill(context, merchant_id)
    await decide(context, merchant_id, Item.BUSINESS, reason="known from the trade fair")
    await staff.enter()
    page = await staff.open(ROOT)
    assert "Accepted" in page.text
    assert "trade fair" not in page.text


async def test_all_wrong_fields_are_named_at_once_and_the_typed_values_stay(staff: Staff) -> None:
    await staff.enter()
    await staff.open(f"{ROOT}/business")
    wrong = {
        "ein": "00-1234567",
        "website": "no site",
        "postcode": "123",
        "state": "",
        "type": "",
        "legal_name": "",
    }
    page = await staff.press("business", **{**BUSINESS, **wrong})
    assert page.status == 400
    held = page.form("business")[1]
    assert {name: held[name] for name in ("ein", "website", "postcode", "trading_name", "sells")} == {
        "ein": "00-1234567", "website": "no site", "postcode": "123",
        "trading_name": BUSINESS["trading_name"], "sells": BUSINESS["sells"],
    }  # fmt: skip
    for name in wrong:
        assert f'id="{name}-error"' in page.answer.text, name


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("born", "31/12/1980"),
        ("born", "01/01/2999"),
        ("share", "x"),
        ("share", "101"),
        ("share", "-1"),
    ],
)
async def test_the_error_about_a_wrong_owner_is_beside_its_field(
    staff: Staff, field: str, value: str
) -> None:
    await staff.enter()
    await staff.open(f"{ROOT}/owners")
    page = await staff.press("owners", **{**OWNER, field: value})
    assert page.status == 400
    assert f'id="{field}-error"' in page.answer.text
    assert "Nobody is named yet" in page.text


async def test_owners_with_more_than_one_hundred_percent_are_refused(staff: Staff) -> None:
    await staff.enter()
    for share, status in (("60", 200), ("40.01", 400), ("40", 200)):
        await staff.open(f"{ROOT}/owners")
        assert (await staff.press("owners", **{**OWNER, "share": share})).status == status


async def test_a_second_click_adds_no_second_person(
    staff: Staff, context: Context, merchant_id: UUID
) -> None:
    await staff.enter()
    await staff.open(f"{ROOT}/owners")
    action, held = staff.page.form("owners")
    for _ in range(2):
        answer = await staff.http.post(action, data={**held, **OWNER, "share": "30"})
        assert answer.status_code == 303
    assert len((await read_checklist(context, merchant_id)).facts.owners) == 1


async def test_an_owner_is_changed_and_removed(staff: Staff, context: Context, merchant_id: UUID) -> None:
    await fill(context, merchant_id)
    await staff.enter()
    page = await staff.open(f"{ROOT}/owners")
    address = page.link("Jordan Rivera")
    page = await staff.open(address)
    held = page.form(address.rpartition("/")[2])[1]
    assert (held["name"], held["born"], held["share"]) == ("Jordan Rivera", "03/09/1979", "60.00")
    await staff.press(address.rpartition("/")[2], do="save", name="Jordan Rivera Soto", share="70")
    assert "Jordan Rivera Soto" in staff.page.text
    # The page that was opened before would overwrite this change.
    answer = await staff.http.post(address, data={**held, "do": "save", "share": "10"})
    assert answer.status_code == 400
    await staff.open(address)
    page = await staff.press(address.rpartition("/")[2], do="remove")
    assert "Nobody is named yet" in page.text
    assert (await staff.open(address)).status == 404


async def test_the_merchant_does_not_see_a_match(staff: Staff, context: Context, merchant_id: UUID) -> None:
    await fill(context, merchant_id, owner="Viktor Morozov")
    await screen_merchant(context, merchant_id)
    await staff.enter()
    before = (await staff.open(ROOT)).text
    (finding,) = (await read_checklist(context, merchant_id)).facts.screening.findings
    merchant = await stored(context, merchant_id)
    await decide_finding(context, merchant, RISK, finding.finding_id, FindingState.CONFIRMED, "the same")
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.REJECTED
    after = (await staff.open(ROOT)).text
    assert after == before
    assert "Rejected" not in after
    assert "Morozov" not in after
    assert "screening" not in (await staff.open("/desk/audit")).text


@pytest.mark.parametrize("role", list(Role))
async def test_every_page_says_that_the_merchant_is_not_approved_or_is_suspended(
    staff: Staff, context: Context, merchant_id: UUID, role: Role
) -> None:
    await staff.enter(role)
    assert "not approved yet" not in staff.page.text
    await onboardings.set_standing(context.pool, merchant_id, Onboarding.OPEN)
    page = await staff.open("/desk")
    assert "Your account is not approved yet" in page.text
    assert ("See what is missing" in page.text) is (Action.FILL_ONBOARDING in MAY[role])
    await suspend_merchant(context, str(merchant_id), hold=False)
    assert "has suspended new orders" in (await staff.open("/desk")).text


async def test_a_form_of_another_browser_is_refused(
    browser: Callable[..., Staff], context: Context, merchant_id: UUID
) -> None:
    first, second = browser(), browser()
    await first.enter()
    await second.enter()
    await first.open(f"{ROOT}/business")
    action, held = first.page.form("business")
    answer = await second.http.post(action, data={**held, **BUSINESS})
    assert answer.status_code == 403
    assert (await read_checklist(context, merchant_id)).facts.business is None


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN])
async def test_the_bank_account_leads_to_the_page_on_which_it_is_entered(staff: Staff, role: Role) -> None:
    await staff.enter(role)
    page = await staff.open(ROOT)
    assert (await staff.open(page.link("Bank account"))).heading == "Bank account"
