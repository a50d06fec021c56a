"""Takes a merchant and its consumers through every step on a real service, with every kind of mistake."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from cuota.core.webhook.signature import pay_signature
from support.faults.served import token
from support.hostile.canary_rail import CODE
from support.hostile.hostile_shop import WideService
from support.hostile.traces import Canary
from support.pages.visitor import Visitor
from support.webhook.listeners import Hook, hooked

CARD = "4012 8888 8888 1881"
PHONE, MAIL = "9175550199", "wilhelmina.q@post.example"
TOLD_PHONE, TOLD_MAIL = "4155550123", "told.by.shop@post.example"
DETAILS = {"email": MAIL, "given_names": "Wilhelmina", "surname": "Approvetest"}


class LoudService(WideService):
    """A service at log level debug, with a one-time code that the test can search for."""

    @property
    def environment(self) -> dict[str, str]:
        given = super().environment
        path = f"{Path(__file__).parent}:{given.get('PYTHONPATH', '')}"
        rail = "canary_rail.CanaryMessageRail"
        return {**given, "CUOTA_LOG_LEVEL": "debug", "CUOTA_MESSAGE_RAIL": rail, "PYTHONPATH": path}


@dataclass
class Left:
    """The texts of the log, the API's answers, the metrics and the webhooks."""

    canaries: dict[str, Canary] = field(default_factory=dict)
    logs: str = ""
    refusals: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    reports: dict[str, str] = field(default_factory=dict)
    hooks: list[str] = field(default_factory=list)

    def note(self, name: str, text: str, *, digits: bool = False) -> None:
        self.canaries[name] = Canary(name, text, digits)


@dataclass
class Life:
    """One merchant during these steps."""

    service: LoudService
    kept: dict[str, Any]
    http: httpx.AsyncClient
    hook: Hook
    url: str
    left: Left

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[Visitor]:
        """The HTTP client of a consumer. It stores every page, and records the session's cookie."""
        async with httpx.AsyncClient(base_url=self.service.url, trust_env=False, timeout=60) as http:
            visitor = Visitor(http)
            yield visitor
            self.left.pages += [answer.text for answer in visitor.answers]
            for name, value in http.cookies.items():
                self.left.note(f"session cookie {name[:8]} {len(self.left.canaries)}", value)

    async def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        answer = await self.http.request(method, path, **more)
        if answer.status_code >= 400:
            self.left.refusals.append(answer.text)
        return answer


def order_body(url: str, **more: object) -> dict[str, object]:
    merchant = dict.fromkeys(("redirectConfirmUrl", "redirectCancelUrl"), "http://127.0.0.1:9/back")
    consumer = {"phoneNumber": TOLD_PHONE, "email": TOLD_MAIL, "givenNames": "Told", "surname": "Byshop"}
    return {
        "amount": "100.00", "merchantReference": "C-1", "consumer": consumer,
        "merchant": {**merchant, "statusCallbackUrl": url}, **more,
    }  # fmt: skip


async def odd_places(life: Life) -> None:
    """Send the card number and the secrets in fields where they do not belong."""
    number, kept = CARD.replace(" ", ""), life.kept
    spoilt: list[dict[str, object]] = [
        {"amount": number}, {"amount": CARD}, {"consumer": {"phoneNumber": number}}, {"consumer": {"email": f"{number}@x"}},
        {"billing": {"postcode": number, "addressLine1": CARD, "city": CARD, "state": number}}, {"items": [{"price": CARD}]},
        {"consumer": {"surname": number, "givenNames": CARD}}, {"taxAmount": number}, {"merchant": {"redirectConfirmUrl": CARD}},
    ]  # fmt: skip
    for change in spoilt:
        assert (await life.ask("POST", "/order", json=order_body(life.url, **change))).status_code == 400
    for content in (
        f'{{"card":"{number}"',
        f'{{"{number}":1,"{number}":2}}',
        number,
        f'"{CARD}"',
        f'{{"a":{number}}}x',
    ):
        await life.ask("POST", "/order", content=content, headers={"Content-Type": "application/json"})
    # Unknown fields are ignored, and stored nowhere.
    extra = {
        "card": {"number": CARD},
        "cardNumber": number,
        "client_secret": kept["clientSecret"],
        "phone": PHONE,
    }
    assert (await life.ask("POST", "/order", json=order_body(life.url, **extra))).status_code == 200
    await life.ask(
        "GET",
        "/configuration",
        params={"card": number, "code": CODE},
        headers={"X-Card": CARD, "Cookie": f"c={number}"},
    )
    await life.ask(
        "POST", "/order", content=b"x", headers={"Content-Type": f"text/{number}", "Idempotency-Key": "k"}
    )


async def failed_logins(life: Life) -> None:
    """Send slightly wrong secrets, and right secrets in wrong places."""
    kept = life.kept
    right = {
        "client_id": kept["clientId"], "client_secret": kept["clientSecret"], "audience": kept["audience"],
        "grant_type": "client_credentials",
    }  # fmt: skip
    for change in (
        {"client_id": kept["clientSecret"]}, {"grant_type": kept["clientSecret"]}, {"audience": kept["clientSecret"]},
        {"client_secret": kept["clientSecret"] + "x"}, {"client_secret": [kept["clientSecret"]]},
    ):  # fmt: skip
        assert (await life.ask("POST", "/oauth/token", json={**right, **change})).status_code in {400, 401}
    basic = base64.b64encode(f"{kept['clientId']}:{kept['clientSecret']}x".encode()).decode()
    form = {"audience": kept["audience"], "grant_type": "client_credentials"}
    await life.ask("POST", "/oauth/token", data=form, headers={"Authorization": f"Basic {basic}"})
    bearer = str(life.http.headers["authorization"])
    for spoilt in (bearer[:-4], bearer + "x", bearer.replace(".", "..", 1), f"Basic {bearer}"):
        assert (await life.ask("GET", "/configuration", headers={"Authorization": spoilt})).status_code == 401


async def paid(life: Life) -> dict[str, Any]:
    """Buy an order on the real pages after every kind of mistake, then capture and refund it."""
    headers = {"Idempotency-Key": "life-1"}
    created = (await life.ask("POST", "/order", json=order_body(life.url), headers=headers)).json()
    async with life.browser() as visitor:
        await visitor.until("phone", created)
        await visitor.send("phone", phone=CARD)
        await visitor.send("phone", phone=PHONE)
        await visitor.send("code", code="111111")
        await visitor.send("code", code=CODE)
        await visitor.send("details", **{**DETAILS, "postcode": CARD, "email": "no mail"})
        await visitor.send("details", **DETAILS)
        await visitor.send("pay", card_number=CARD, card_expiry="01/20")
        await visitor.send("pay", card_number="4000 0000 0000 0002")
        page = await visitor.send("pay", card_number=CARD)
        assert page.outcome == "approved" or page.left, page.heading
    path = f"/order/{created['orderId']}"
    for operation, amount in (
        ("capture", "60.00"),
        ("capture", CARD),
        ("void", "10.00"),
        ("refund", "5.00"),
        ("refund", "500"),
    ):
        body = {"amount": amount, "merchantReference": f"{operation} {amount[:4]}"}
        await life.ask(
            "POST", f"{path}/{operation}", json=body, headers={"Idempotency-Key": f"{operation} {amount[:4]}"}
        )
    return dict((await life.ask("GET", path)).json())


async def virtual_card(life: Life) -> None:
    """Create a virtual card, and show it to the browser that paid."""
    body = {
        "merchantId": life.kept["merchantId"], "merchantReference": "V-1", "integrationType": "virtual_card",
        "order": {"amount": "80.00", "currency": "USD"}, "callbackUrl": life.url,
    }  # fmt: skip
    raw = json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Origin": "http://127.0.0.1:9"}
    headers["X-Pay-Signature"] = pay_signature(life.kept["signingSecret"], raw)
    begun = (await life.ask("POST", "/sdk/v1/checkouts", content=raw, headers=headers)).json()
    async with life.browser() as visitor:
        await visitor.open(begun["checkoutUrl"])
        for step in ("phone", "code", "details", "pay"):
            given = {"phone": PHONE, "code": CODE, **DETAILS, "card_number": CARD}
            await visitor.send(step, **{n: v for n, v in given.items() if n in visitor.page.form(step)[1]})
        result = re.search(r'id="pay-result">(.*?)</script>', visitor.page.answer.text, re.DOTALL)
        assert result is not None, visitor.page.text
        card = json.loads(result[1])["result"] if "result" in json.loads(result[1]) else json.loads(result[1])
    life.left.note("virtual card", card["card"]["number"], digits=True)
    answer = await life.ask(
        "POST", "/sandbox/cards/authorize", json={**card["card"], "amount": "80.00", "cvc": "000"}
    )
    assert card["card"]["number"] not in answer.text


async def account(life: Life) -> None:
    """Use the consumer's account page, after a wrong code."""
    async with life.browser() as visitor:
        await visitor.open("/account")
        await visitor.send("phone", phone=PHONE)
        await visitor.send("code", code="111111")
        await visitor.send("code", code=CODE)
        assert visitor.page.status == 200


async def live(service: LoudService) -> Left:
    """Run all these steps with a person in the dashboard, so that the request log keeps each call. Return the texts to search."""
    left, kept = Left(), service.merchant()
    person = service.run("desk", "link", "--merchant", kept["merchantId"], "--role", "developer")
    left.note("sign-in link", re.findall(r"https?://\S+", person.stdout)[0].rpartition("/")[2])
    names = {
        "client secret": "clientSecret",
        "signing secret": "signingSecret",
        "webhook secret": "webhookSecret",
    }
    for name, at in names.items():
        left.note(name, kept[at])
    left.note("card", CARD, digits=True)
    left.note("one-time code", CODE, digits=True)
    left.note("phone", PHONE)
    left.note("e-mail", MAIL)
    left.note("phone told", TOLD_PHONE)
    left.note("e-mail told", TOLD_MAIL)
    async with (
        hooked() as (hook, listener),
        httpx.AsyncClient(
            base_url=service.url, trust_env=False, timeout=60, headers=token(service.url, kept)
        ) as http,
    ):
        left.note("access token", str(http.headers["authorization"]).partition(" ")[2])
        left.note("signature of the access token", str(http.headers["authorization"]).rpartition(".")[2])
        life = Life(service, kept, http, hook, listener.url, left)
        made = await life.ask(
            "POST", "/webhook-endpoints", json={"url": listener.url}, headers={"Idempotency-Key": "e"}
        )
        left.note("endpoint secret", made.json()["secret"])
        await odd_places(life)
        await failed_logins(life)
        record = await paid(life)
        await virtual_card(life)
        await account(life)
        async with asyncio.timeout(60):
            while not any(came.event["type"] == "refund.rejected" for came in hook.got):  # noqa: ASYNC110 - it listens
                await asyncio.sleep(0.1)
        left.reports = {
            "metrics": (await http.get("/metrics")).text,
            "events": (await http.get("/events", params={"limit": 100})).text,
            "record": json.dumps(record),
        }
        left.hooks = [came.body.decode() for came in hook.got]
    left.logs = service.errors()
    return left
