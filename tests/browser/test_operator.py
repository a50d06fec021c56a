"""The operator's dashboard in a real browser: on a phone and wide, light and dark, empty and with rows."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from playwright.async_api import Page, expect

from cuota.commands.desk import operator_sandbox_link
from cuota.core.operator.role import OperatorRole
from cuota.core.plan.hardship import PausePlan, WaiveFee
from cuota.core.risk.block import BlockKind
from cuota.core.sandbox import REFERRED_SURNAME
from cuota.flows.dispute.answer_dispute import submit_evidence
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from cuota.flows.plan.send_messages import send_messages
from cuota.flows.risk.block_consumer import block_consumer
from cuota.web.app import ROUTES
from cuota.web.operator_routes import OPERATOR
from cuota.web.pages.operator import disputes, reviews
from support.browser.dashboards import is_page
from support.browser.screens import WIDE, look_everywhere
from support.browser.tabs import OpenTab
from support.disputes import disputed
from support.makers import PROFILE, Merchant, complete
from support.phones import phone_number

pytestmark = pytest.mark.browser
LONG = "Bartholomew" * 4


async def enter(page: Page, shop: Merchant, role: OperatorRole = OperatorRole.OWNER) -> None:
    await page.goto(await operator_sandbox_link(shop.service.context, role))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("What waits")


async def lived(shop: Merchant) -> tuple[str, str, str]:
    """Make a captured order with a dispute that waits for the operator. Return the ids of order, dispute and consumer."""
    phone = phone_number()
    order = await shop.create("100.00", merchantReference="R" * 100)
    person = replace(PROFILE, given_names=LONG, surname=LONG)
    await complete(shop.service, shop.merchant_id, order, profile=person, phone=phone)
    await shop.move(order, "capture", "100.00")
    dispute = await disputed(shop, order, 4000, text="W" * 500)
    context = shop.service.context
    await submit_evidence(context, shop.merchant_id, dispute.dispute_id, "It was delivered.", [])
    return str(UUID(order["orderId"])), str(dispute.dispute_id), str(context.vault.consumer_id(phone))


async def referred(shop: Merchant) -> str:
    """Make an order with a long reference that waits for a person. Return its id."""
    order = await shop.create("120.00", merchantReference="R" * 100)
    person = replace(PROFILE, given_names=LONG, surname=REFERRED_SURNAME)
    made = await complete(shop.service, shop.merchant_id, order, profile=person, phone=phone_number())
    assert made.review == "waiting"
    return str(made.order_id)


async def test_every_page_fits_its_screen_and_breaks_no_rule_of_axe(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    page = await open_tab()
    await enter(page, merchant)
    base = merchant.service.settings.public_url
    order_id, dispute_id, consumer_id = await lived(merchant)
    for path in (
        *(row.path for row in ROUTES if is_page(row, OPERATOR)),
        f"/operator/orders/{order_id}",
        "/operator/orders?q=nothing",
        f"/operator/risk/reviews/{await referred(merchant)}",
        "/operator/risk/reviews?state=unanswered",
        f"/operator/disputes/{dispute_id}",
        "/operator/disputes?view=decide",
        f"/operator/consumers/{consumer_id}",
        f"/operator/merchants/{merchant.merchant_id}",
        "/operator/merchants?q=nobody",
        "/operator/log?action=consumer.",
    ):
        await page.goto(base + path)
        await look_everywhere(page, path)


async def test_the_pages_of_hardship_blocks_and_messages_fit_and_break_no_rule_of_axe(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    page = await open_tab()
    await enter(page, merchant)
    context, phone = merchant.service.context, phone_number()
    person = replace(PROFILE, given_names=LONG, surname=LONG)
    ids = []
    for reference in ("R" * 100, "A-1042"):
        order = await merchant.create(
            "1000.00", merchantReference=reference, merchantFeeForPaymentPlan="9.00"
        )
        await complete(merchant.service, merchant.merchant_id, order, profile=person, phone=phone)
        ids.append(UUID(order["orderId"]))
    consumer_id = context.vault.consumer_id(phone)
    for request in (PausePlan(20), WaiveFee(100)):
        given = merchant.merchant_id, ids[0], request
        mark = (await preview_change(context, *given)).found.before.mark
        await agree_on_change(context, *given, by="Ana " + LONG, reason="W" * 400, mark=mark)
    await block_consumer(context, consumer_id, BlockKind.IDENTITY, "W" * 400, None, by="Ana " + LONG)
    while await send_messages(context):
        pass
    base = merchant.service.settings.public_url
    for path in (
        f"/operator/orders/{ids[0]}/hardship",
        f"/operator/orders/{ids[0]}/hardship?kind=paused&pause=7",
        f"/operator/orders/{ids[1]}/hardship?kind=paused&pause=99",
        f"/operator/consumers/{consumer_id}",
        f"/operator/consumers/{consumer_id}/messages",
        f"/operator/orders/{ids[0]}",
    ):
        await page.goto(base + path)
        await look_everywhere(page, path)


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
async def test_a_support_person_pauses_a_plan_from_the_consumers_page(
    open_tab: OpenTab, merchant: Merchant, *, script: bool
) -> None:
    phone = phone_number()
    order = await merchant.create("100.00", merchantReference="H-77")
    await complete(merchant.service, merchant.merchant_id, order, phone=phone)
    page = await open_tab(viewport=WIDE, java_script_enabled=script)
    await enter(page, merchant, OperatorRole.SUPPORT)
    await page.goto(
        f"{merchant.service.settings.public_url}/operator/consumers/{merchant.service.context.vault.consumer_id(phone)}"
    )
    await page.get_by_role("link", name="H-77").click()
    await page.get_by_role("link", name="Hardship: change the plan").click()
    await page.get_by_label("Days", exact=True).fill("21")
    await page.get_by_role("button", name="Show what happens").first.click()
    await page.get_by_label("Reason").fill("Lost the job, called today.")
    await page.get_by_role("button", name="Change the plan").click()
    await expect(page.get_by_role("status").first).to_contain_text("The plan is changed")


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
async def test_a_support_person_decides_a_dispute_from_the_first_page_in_three_clicks(
    open_tab: OpenTab, merchant: Merchant, monkeypatch: pytest.MonkeyPatch, *, script: bool
) -> None:
    # Other tests' disputes may have waited longer.
    monkeypatch.setattr(disputes, "A_PAGE", 10_000)
    _, dispute_id, _ = await lived(merchant)
    page = await open_tab(viewport=WIDE, java_script_enabled=script)
    await enter(page, merchant, OperatorRole.SUPPORT)
    await page.get_by_role("link", name="Disputes to decide").click()
    await page.locator(f"a[href$='{dispute_id}']").click()
    await page.get_by_label("Reason").fill("The carrier shows no delivery.")
    await page.get_by_role("button", name="Decide for the consumer, $40.00").click()
    await expect(page.get_by_role("status").first).to_contain_text("The dispute is decided")


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
async def test_a_risk_person_answers_a_review_from_the_first_page_in_three_clicks(
    open_tab: OpenTab, merchant: Merchant, monkeypatch: pytest.MonkeyPatch, *, script: bool
) -> None:
    # Other tests' reviews may wait too.
    monkeypatch.setattr(reviews, "A_PAGE", 10_000)
    order_id = await referred(merchant)
    page = await open_tab(viewport=WIDE, java_script_enabled=script)
    await enter(page, merchant, OperatorRole.RISK)
    await page.get_by_role("link", name="Orders to review").click()
    await page.locator(f"a[href$='{order_id}']").click()
    await page.get_by_label("Reason").fill("Known at this shop for years.")
    await page.get_by_role("button", name="Approve, $120.00").click()
    await expect(page.get_by_role("status").first).to_contain_text("The order is approved")


async def test_a_support_person_finds_a_consumer_and_shows_the_name_with_a_reason(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    phone = phone_number()
    await complete(merchant.service, merchant.merchant_id, await merchant.create("20.00"), phone=phone)
    page = await open_tab(viewport=WIDE)
    await enter(page, merchant, OperatorRole.SUPPORT)
    await page.get_by_role("link", name="Consumers").click()
    await page.get_by_label("Phone number").fill(phone)
    await page.get_by_role("button", name="Find").click()
    await expect(page.get_by_text(PROFILE.surname)).to_have_count(0)
    await page.get_by_label("Reason").fill("The consumer is on the phone.")
    await page.get_by_role("button", name="Show the personal data").click()
    await expect(page.get_by_text(PROFILE.surname)).to_be_visible()
