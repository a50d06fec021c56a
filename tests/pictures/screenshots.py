"""Starts a sandbox, and takes pictures of every page and state of checkout and shop in a real browser.

python tests/pictures/screenshots.py FOLDER     375 and 1280 pixels wide, light and dark; also makes FOLDER/checkout.png
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

sys.path.append(str(Path(__file__).resolve().parents[1]))

from playwright.async_api import Browser, Route, async_playwright

from support.pictures.account_scene import account
from support.pictures.camera import DETAILS, Camera, fill, first_step, pay, through
from support.pictures.sandbox import Sandbox, sandbox

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
PHONE = {"width": 375, "height": 812}
WIDE = {"width": 1280, "height": 800}
LOOKS = [(size, scheme) for size in (PHONE, WIDE) for scheme in ("light", "dark")]
ITEMS_OF_A_HUNDRED = [
    {"name": "Stoneware Cup", "quantity": 2, "price": "22.00"},
    {"name": "Linen Towels", "quantity": 2, "price": "26.50"},
]


async def _stay(route: Route) -> None:
    """The last page goes to the merchant automatically. Keep it open for its picture."""
    await route.abort("aborted")


async def checkout(camera: Camera, running: Sandbox) -> None:
    """Take pictures of every page of the hosted checkout."""
    page = camera.page
    await page.route(lambda url: not url.startswith(running.url), _stay)
    named = await running.order(consumer={"phoneNumber": "2125550142", "surname": "Rivera"})
    await camera.visit(named["redirectUrl"])
    await camera.take("checkout-1-phone-known")
    order = await running.order()
    await camera.visit(order["redirectUrl"])
    await camera.take("checkout-1-phone")
    await fill(page, phone="12")
    await camera.take("checkout-1-phone-error")
    await fill(page, phone="212 555 0142")
    await camera.take("checkout-2-code")
    await fill(page, code="000000")
    await camera.take("checkout-2-code-error")
    await page.get_by_role("button", name="Send a new code").click()
    await camera.take("checkout-2-code-resent")
    await fill(page, code="123456")
    await fill(page, **dict.fromkeys(DETAILS, ""))
    await camera.take("checkout-3-details-errors")
    await camera.visit(order["redirectUrl"])
    await camera.take("checkout-3-details")
    await fill(page, **DETAILS)
    await camera.take("checkout-4-pay")
    await page.get_by_text("Your order", exact=True).click()
    await page.get_by_text("Sandbox test cards").click()
    await camera.take("checkout-4-pay-unfolded")
    await fill(page, card_number="4242 4242 4242 4241")
    await camera.take("checkout-4-pay-errors")
    await pay(page, "4000 0000 0000 0002")
    await camera.take("checkout-4-pay-declined")
    await confirmation(camera, f"{running.url}{urlsplit(page.url).path}")
    await running.sql(
        "UPDATE orders SET charging = gen_random_uuid(), charging_since = now() WHERE order_id = $1",
        order["orderId"],
    )
    await camera.visit(
        f"{running.url}/checkout/{order['redirectUrl'].split('/')[-1].split('?')[0]}/{order['orderId']}"
    )
    await camera.take("checkout-5-working")
    await running.sql(
        "UPDATE orders SET charging = NULL, charging_since = NULL WHERE order_id = $1", order["orderId"]
    )
    await page.reload()
    await pay(page, "4242 4242 4242 4242")
    await page.locator("svg.mark").wait_for()
    await camera.take("checkout-6-approved")
    await ends(camera, running)


async def confirmation(camera: Camera, address: str) -> None:
    """Take pictures of a card whose bank wants a confirmation, and of the way back to the form."""
    page = camera.page
    await pay(page, "4000 0027 6000 3184")
    await page.wait_for_url("**/sandbox-processor/confirm/*")
    await camera.take("checkout-5-bank")
    bank = page.url
    await camera.visit(address)
    await camera.take("checkout-5-confirm")
    await page.get_by_role("button", name="Use another card instead").click()
    await page.get_by_role("alert").wait_for()
    await camera.take("checkout-5-confirm-canceled")
    await camera.visit(bank)
    await camera.take("checkout-5-bank-ended")
    await camera.visit(address)


async def ends(camera: Camera, running: Sandbox) -> None:
    """Take pictures of the other last pages, a plan with a fee, a long order, and invalid links."""
    page = camera.page
    again = await running.order(items=ITEMS_OF_A_HUNDRED)
    await camera.visit(again["redirectUrl"])
    await camera.take("checkout-8-again")
    costly = await running.order("966.20", merchantFeeForPaymentPlan="65.00")
    await camera.visit(costly["redirectUrl"])
    await camera.take("checkout-8-again-fee")
    await first_step(page)
    await camera.take("checkout-1-phone-fee")
    await through(page, {**DETAILS, "surname": "Declinetest"})
    await camera.take("checkout-4-pay-fee")
    await pay(page, "4242 4242 4242 4242")
    await camera.take("checkout-6-declined")
    waits = await running.order()
    await camera.visit(waits["redirectUrl"])
    await first_step(page)
    await through(page, {**DETAILS, "surname": "Refertest"})
    await pay(page, "4242 4242 4242 4242")
    await page.locator("svg.mark").wait_for()
    await camera.take("checkout-6-referred")
    many = [
        {"name": f"Stainless steel tent peg number {n}, 24 cm", "quantity": n, "price": "1.10"}
        for n in range(1, 60)
    ]
    long = await running.order(
        "66.20", items=[{"name": "Unbreakable" * 30, "quantity": 1, "price": 4}, *many]
    )
    await camera.visit(long["redirectUrl"])
    await first_step(page)
    await camera.take("checkout-1-phone-long-order")
    await page.locator("form.leave button").click()
    await camera.visit(long["redirectUrl"])
    await camera.take("checkout-6-abandoned")
    expired = await running.order()
    await camera.visit(expired["redirectUrl"])
    await running.sql(
        "UPDATE orders SET expires_at = now(), due_at = 'infinity' WHERE order_id = $1", expired["orderId"]
    )
    await page.reload()
    await camera.take("checkout-7-expired")
    await camera.visit(f"{long['redirectUrl'][:-4]}")
    await camera.take("checkout-7-unknown-link")
    await camera.visit((await running.order())["redirectUrl"].replace("token=", "token=0"))
    await page.context.clear_cookies()
    await camera.visit(long["redirectUrl"])
    await camera.take("checkout-7-finished-elsewhere")


async def shop(camera: Camera, running: Sandbox) -> None:
    """Take pictures of every page of the shop."""
    page = camera.page
    await camera.visit(f"{running.shop}/cart")
    await camera.take("shop-2-cart-empty")
    await camera.visit(running.shop)
    await camera.take("shop-1-products")
    for ends_as in ("Approved", "Declined", "Abandoned"):
        await camera.visit(running.shop)
        for product in ("Stoneware Cup", "Morning Blend"):
            await page.get_by_role("button", name=product).click()
            await camera.visit(running.shop)
        await camera.visit(f"{running.shop}/cart")
        await camera.take("shop-2-cart")
        await page.get_by_role("button", name="Continue to pay in four").click()
        if ends_as == "Abandoned":
            await camera.visit(f"{running.shop}/orders")
            await page.locator(".orders a").first.click()
            await camera.take("shop-5-order-created")
            await page.go_back()
            await page.go_back()
            await page.locator("form.leave button").click()
        else:
            await through(page, {**DETAILS, "surname": "Declinetest" if ends_as == "Declined" else "Rivera"})
            await pay(page, "4242 4242 4242 4242")
            await page.wait_for_url(re.compile(rf"^{running.shop}/(confirm|cancel)"))
        await camera.take(f"shop-3-{ends_as.lower()}")
    await camera.visit(f"{running.shop}/orders")
    await camera.take("shop-4-orders")
    await page.locator(".orders a", has_text="Approved").first.click()
    await camera.take("shop-5-order")
    await page.get_by_role("button", name="What would happen? (void)").click()
    await camera.take("shop-5-order-preview")
    for kind, amount in (("capture", "30.00"), ("void", "10.00"), ("refund", "12.50")):
        await page.get_by_label(f"Amount in dollars to {kind}").fill(amount)
        await page.get_by_role("button", name=kind.capitalize(), exact=True).click()
    await camera.take("shop-5-order-moved")
    await page.get_by_label("Amount in dollars to capture").fill("900")
    await page.get_by_role("button", name="Capture", exact=True).click()
    await camera.take("shop-5-order-refused")
    await camera.visit(f"{running.shop}/orders/7")
    await camera.take("shop-6-not-found")


FILL = """INSERT INTO message_simulator.inbox (key, channel, recipient, subject, text, created_at)
    SELECT gen_random_uuid(), channel, recipient, 'Your payment of $25.00 is on Sat, Dec 5', format(E'Sample Shop, order %s:\n'
        'we charge $25.00 to your card ending 4242 on Sat, Dec 5.\nSee your payments at %s/account. Not a link: https://shop.example/x',
        $1::text, $2::text), now()
    FROM (VALUES ('mail', 'jordan.rivera.with.a.rather.long.mailbox.name@subdomain.mail.example'), ('text', '2125550142')) r (channel, recipient),
        generate_series(1, 30)"""


async def inbox(camera: Camera, running: Sandbox) -> None:
    """Take pictures of the sandbox's inbox: full, of one consumer, and empty."""
    page = camera.page
    order = await running.order()
    await running.sql(FILL, order["orderId"], running.url)
    await camera.visit(order["redirectUrl"])
    await fill(page, phone="212 555 0142")
    await camera.visit(f"{running.url}/sandbox/inbox?to=2125550142")
    await page.get_by_label("Answer from this phone").fill("STOP")
    await page.get_by_role("button", name="Send").click()
    await camera.take("inbox-5-answered")
    await camera.visit(f"{running.url}/sandbox/inbox")
    await camera.take("inbox-1")
    await page.get_by_role("link", name="Older messages").click()
    await camera.take("inbox-2-older")
    await page.get_by_label("Phone number or email").fill("(212) 555-0142")
    await page.get_by_role("button", name="Show").click()
    await camera.take("inbox-3-of-one")
    await camera.visit(f"{running.url}/sandbox/inbox?to=nobody@mail.example")
    await camera.take("inbox-4-nothing")


async def picture(browser: Browser, running: Sandbox, folder: Path) -> None:
    """Make the README's picture: the first and the last page on a phone, side by side."""
    page = await browser.new_page(viewport=PHONE, color_scheme="light")
    await page.goto(
        (await running.order("100.00", items=ITEMS_OF_A_HUNDRED, shippingAmount="3.00"))["redirectUrl"]
    )
    first = await page.screenshot()
    await through(page, DETAILS)
    await page.get_by_label("Card number").wait_for()
    last = await page.screenshot()
    both = await browser.new_page(viewport={"width": 840, "height": 876})
    await both.set_content(BOTH.format(*(b64encode(shot).decode() for shot in (first, last))))
    await both.screenshot(path=folder / "checkout.png")


BOTH = """<!doctype html><style>body{{margin:0;padding:32px 30px;display:flex;gap:30px;background:#e7edeb}}
img{{width:375px;height:812px;border-radius:20px;box-shadow:0 1px 2px #0003,0 12px 32px #0002}}</style>
<img src="data:image/png;base64,{}"><img src="data:image/png;base64,{}">"""


async def take_all(folder: Path, running: Sandbox) -> None:
    """Take all pictures."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        for size, scheme in LOOKS:
            for scene in (checkout, shop, inbox, account):
                context = await browser.new_context(viewport=size, color_scheme=scheme)
                page = await context.new_page()
                await scene(Camera(page, folder, f"{size['width']}-{scheme}"), running)
                await context.close()
        await picture(browser, running, folder)
        await browser.close()


def main() -> int:
    """Run the program."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with sandbox() as running:
        asyncio.run(take_all(folder, running))
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
