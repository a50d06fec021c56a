"""A real service process with several merchants, and a valid request for each interface of a merchant or its page."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import httpx

from cuota.commands.checkout_walker import walk
from support.api.bodies import FULL
from support.api.smi_bodies import FULL as SMI
from support.faults.served import Service, token, until
from support.folders import new_folder
from support.hostile.mutator import REFERENCE, Head, Seed
from support.pages.visitor import ANSWERS, Page
from support.phones import phone_number
from support.ports import free_port

WIDE = Path(__file__).parents[2] / "wide.toml"
AGENT = {"amount": "0.01", "merchantReference": REFERENCE.decode()}
BACK = {"redirectConfirmUrl": "http://127.0.0.1:9/yes", "redirectCancelUrl": "http://127.0.0.1:9/no"}


class WideService(Service):
    """A service with a risk policy that approves everybody, because risk is not tested here."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "CUOTA_POLICY": str(WIDE)}


@dataclass
class Shop:
    """A merchant of the service under test."""

    service: Service
    kept: dict[str, Any]
    http: httpx.Client
    orders: list[str] = field(default_factory=list)

    @property
    def bearer(self) -> Head:
        return (("Authorization", str(self.http.headers["authorization"])),)

    def order(self) -> dict[str, Any]:
        body = {"amount": "200.00", "merchantReference": "A-1", "merchant": BACK}
        answer = self.http.post("/order", json=body)
        assert answer.status_code == 200, answer.text
        self.orders.append(answer.json()["orderId"])
        return dict(answer.json())

    def approved(self, captured: str = "") -> str:
        """Make an approved order, so that it can be captured, voided and refunded."""
        order = self.order()
        walk(
            order["redirectUrl"],
            "approved",
            phone=phone_number(),
        )
        if captured:
            body = {"amount": captured, "merchantReference": "first"}
            assert self.http.post(f"/order/{order['orderId']}/capture", json=body).status_code == 200
        return str(order["orderId"])

    def records(self) -> dict[str, dict[str, Any]]:
        """Return every order that was made here, as the API shows it."""
        return {name: self.http.get(f"/order/{name}").raise_for_status().json() for name in self.orders}


@contextlib.contextmanager
def fired_at() -> Iterator[tuple[Service, Shop, Shop]]:
    """A service, the merchant whose requests are changed, and an uninvolved merchant that sends none."""
    base = new_folder("cuota-hostile-")
    service = WideService(base / "data", free_port())
    try:
        service.start()
        with contextlib.ExitStack() as stack:
            shops = []
            for _ in range(2):
                made = service.merchant()
                http = httpx.Client(
                    base_url=service.url, trust_env=False, timeout=60, headers=token(service.url, made)
                )
                shops.append(Shop(service, made, stack.enter_context(http)))
            yield service, shops[0], shops[1]
    finally:
        service.kill()
        until(lambda: not (service.data / "pg" / "postmaster.pid").exists())
        shutil.rmtree(base, ignore_errors=True)


def seeds_of(shop: Shop, bystander: str) -> list[Seed]:
    """Make at least two requests for each interface. Movements go to the merchant's own order and to another merchant's."""
    return [*_orders(shop, bystander), *_tokens(shop), *_starts(shop), *_pages(shop)]


def _orders(shop: Shop, bystander: str) -> list[Seed]:
    kind: Head = (*shop.bearer, ("Content-Type", "application/json"))
    mine = shop.approved("150.00")
    full = {name: value for name, value in FULL.items() if name != "merchant"}
    move = json.dumps(AGENT).encode()
    made = [
        Seed("create", "POST", "/order", kind, json.dumps({**full, "merchant": BACK}).encode()),
        Seed(
            "create again",
            "POST",
            "/order",
            (*kind, ("Idempotency-Key", "k-7")),
            json.dumps({**full, "merchant": BACK}).encode(),
        ),
        Seed("read", "GET", f"/order/{mine}", shop.bearer),
        Seed("read by token", "GET", f"/order?token={shop.order()['token']}", shop.bearer),
        Seed("configuration", "GET", "/configuration", shop.bearer),
        Seed("events", "GET", "/events?limit=3", shop.bearer),
        Seed("dry run", "POST", f"/order/{mine}/capture?dryRun=true", kind, move),
    ]
    for operation in ("capture", "void", "refund"):
        made.append(Seed(operation, "POST", f"/order/{mine}/{operation}", kind, move))
        made.append(Seed(f"a stranger's {operation}", "POST", f"/order/{bystander}/{operation}", kind, move))
    return made


def _tokens(shop: Shop) -> list[Seed]:
    kept = shop.kept
    body = {
        "client_id": kept["clientId"], "client_secret": kept["clientSecret"], "audience": kept["audience"],
        "grant_type": "client_credentials",
    }  # fmt: skip
    rest = {name: body[name] for name in ("audience", "grant_type")}
    basic = base64.b64encode(f"{kept['clientId']}:{kept['clientSecret']}".encode()).decode()
    form = ("Content-Type", "application/x-www-form-urlencoded")
    return [
        Seed(
            "token",
            "POST",
            "/oauth/token",
            (("Content-Type", "application/json"),),
            json.dumps(body).encode(),
        ),
        Seed("token by form", "POST", "/oauth/token", (form,), urlencode(body).encode()),
        Seed(
            "token by basic",
            "POST",
            "/oauth/token",
            (form, ("Authorization", f"Basic {basic}")),
            urlencode(rest).encode(),
        ),
    ]


def _starts(shop: Shop) -> list[Seed]:
    secret, mine = shop.kept["signingSecret"], shop.kept["merchantId"]
    kind: Head = (("Content-Type", "application/json"),)
    form: Head = (("Content-Type", "application/x-www-form-urlencoded"),)
    order = {
        "amount": "100.00",
        "currency": "USD",
        "lineItems": [{"name": "Cup", "quantity": 2, "price": 22.5, "sku": "C"}],
    }
    asked = {"merchantId": mine, "merchantReference": REFERENCE.decode(), "order": order, "capture": False}
    fields = {
        "merchantId": mine, "merchantReference": REFERENCE.decode(), "order.amount": "100.00", "order.currency": "USD",
        "capture": "false", "order.lineItems[0].name": "Cup", "additionalData.customerIsMember": "true", **BACK,
    }  # fmt: skip
    gateway = json.dumps({**asked, **BACK, "additionalData": {"customerIsMember": True}}).encode()
    click = base64.urlsafe_b64encode(b'{"customerLoggedIn":"true"}').decode().rstrip("=")
    page: Head = (*kind, ("Origin", "http://127.0.0.1:9"))
    text = urlencode(fields).replace("%25", "%").encode()
    smi = json.dumps(SMI).replace("S-7", REFERENCE.decode()).encode()
    return [
        Seed("gateway", "POST", "/orders/authorize", kind, gateway, secret, "header"),
        Seed("gateway form", "POST", "/orders/authorize", form, text, secret, "form"),
        Seed("gateway link", "GET", "/orders/authorize", (), text, secret, "query"),
        Seed(
            "SDK",
            "POST",
            "/sdk/v1/checkouts",
            (*page, ("X-Pay-Additional", click)),
            json.dumps(asked).encode(),
            secret,
            "header",
        ),
        Seed("SMI", "POST", "/checkouts", (*shop.bearer, *kind), smi),
    ]


def _pages(shop: Shop) -> list[Seed]:
    """Return each step's form, as the browser at that step would send it."""
    made = []
    for steps in range(4):
        # Each form belongs to a separate order, because a payment by the form of the last step ends its checkout.
        with httpx.Client(
            base_url=shop.service.url, trust_env=False, timeout=60, follow_redirects=True
        ) as browser:
            page = Page(browser.get(shop.order()["redirectUrl"]))
            for step in ("phone", "code", "details", "pay")[: steps + 1]:
                action, held = page.form(step)
                filled = {name: ANSWERS.get(name, value) for name, value in held.items()} | {"agree": "yes"}
                if step == "phone":
                    filled["phone"] = phone_number()
                path = urlsplit(urljoin(str(page.answer.url), action)).path
                word = urlencode({"csrf": filled.pop("csrf")}).encode()
                if step != ("phone", "code", "details", "pay")[steps]:
                    page = Page(browser.post(path, data={**filled, "csrf": word.decode().partition("=")[2]}))
            cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
            form: Head = (("Content-Type", "application/x-www-form-urlencoded"), ("Cookie", cookies))
            made.append(
                Seed(
                    f"the form of {step}",
                    "POST",
                    path,
                    form,
                    urlencode(filled).encode() + b"&" + word,
                    kept=b"&" + word,
                )
            )
    return made
