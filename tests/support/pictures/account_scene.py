"""Screenshots of the consumer's account page, in every state of a plan."""

from __future__ import annotations

import zlib

import httpx

from support.pictures.camera import DETAILS, Camera, fill, first_step, pay
from support.pictures.sandbox import Sandbox

OVERDUE = """UPDATE installments SET failures = 1, charge_at = {} WHERE number = 2 AND order_id = $1"""


async def account(camera: Camera, running: Sandbox) -> None:
    """Screenshots of the login, the list, plans, paying, another card, and the documents."""
    # Each kind of screenshot uses its own phone number, so that it shows only its own plans.
    page, phone = camera.page, f"212 555 02{zlib.crc32(camera.name.encode()) % 90 + 10}"
    await camera.visit(f"{running.url}/account")
    await camera.take("account-1-phone")
    await fill(page, phone="12")
    await camera.take("account-1-phone-error")
    await fill(page, phone=phone)
    await camera.take("account-2-code")
    await fill(page, code="000000")
    await camera.take("account-2-code-error")
    await fill(page, code="123456")
    await camera.take("account-3-none")
    await camera.visit(f"{running.url}/account/nowhere")
    await camera.take("account-7-nowhere")
    bought = [
        await _bought(camera, running, phone, amount) for amount in ("100.00", "66.20", "240.00", "966.20")
    ]
    await camera.visit(f"{running.url}/account")
    if await page.get_by_label("Mobile phone number").count():
        await fill(page, phone=phone)
        await fill(page, code="123456")
    await running.sql(OVERDUE.format("now() + interval '6 hours'"), bought[1].split("/")[1])
    await running.sql(OVERDUE.format("NULL"), bought[2].split("/")[1])
    await _plans(camera, running, bought)
    await camera.visit(f"{running.url}/account")
    await page.get_by_role("button", name="Sign out").click()
    await camera.take("account-1-phone-left")
    await camera.visit(f"{running.url}/account/plans/x/y")
    await camera.take("account-1-phone-ended")


async def _bought(camera: Camera, running: Sandbox, phone: str, amount: str) -> str:
    page, order = camera.page, await running.order(amount)
    await camera.visit(order["redirectUrl"])
    await first_step(page)
    await fill(page, phone=phone)
    await fill(page, code="123456")
    await fill(page, **DETAILS)
    await pay(page, "4000 0000 0000 0341" if amount == "66.20" else "4242 4242 4242 4242")
    return "/".join(page.url.split("?")[0].split("/")[-2:])


async def _void(running: Sandbox, order_id: str, amount: str) -> None:
    headers = {"Authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, trust_env=False, timeout=60, headers=headers) as http:
        body = {"amount": amount, "merchantReference": "V-1"}
        (await http.post(f"/order/{order_id}/void", json=body)).raise_for_status()


async def _plans(camera: Camera, running: Sandbox, bought: list[str]) -> None:
    page = camera.page
    plans = [f"{running.url}/account/plans/{each}" for each in bought]
    last = bought[3].split("/")[1]
    await camera.visit(f"{plans[0]}/pay?number=2")
    await camera.take("account-5-pay")
    await page.get_by_role("button", name="Pay $").click()
    await camera.take("account-4-plan-paid-early")
    await camera.visit(plans[1])
    await camera.take("account-4-plan-overdue")
    await camera.visit(f"{plans[1]}/pay?all=1")
    await camera.take("account-5-pay-all")
    await page.get_by_role("button", name="Pay $").click()
    await camera.take("account-4-plan-declined")
    await camera.visit(plans[2])
    await camera.take("account-4-plan-another-card")
    await camera.visit(f"{plans[2]}/card")
    await camera.take("account-5-card")
    await fill(page, card_number="4242 4242 4242 4241")
    await camera.take("account-5-card-errors")
    await _void(running, last, "866.20")
    await camera.visit(plans[3])
    await camera.take("account-4-plan-refunded")
    await page.get_by_role("link", name="Receipt").click()
    await camera.take("account-6-receipt")
    await camera.visit(f"{plans[0]}/agreement")
    await page.get_by_text("Fingerprint of this text").click()
    await camera.take("account-6-agreement")
    busy = "UPDATE orders SET charging = {}, charging_since = {} WHERE order_id = $1"
    await running.sql(busy.format("gen_random_uuid()", "now()"), last)
    await camera.visit(plans[3])
    await camera.take("account-4-plan-busy")
    await camera.visit(f"{running.url}/account")
    await camera.take("account-3-plans")
    await running.sql(busy.format("NULL", "NULL"), last)
    for _ in range(2):
        # The third and fourth card request of this consumer within an hour.
        await camera.visit(f"{plans[2]}/card")
        await fill(page, card_number="4242 4242 4242 4242", card_expiry="12 / 39", card_cvc="123")
    await camera.take("account-5-card-limited")
