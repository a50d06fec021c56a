"""The stand-in for Stripe: localstripe, and in front of it a proxy that follows Stripe's documentation and can lose answers.

docs/card-rails.md lists each difference between localstripe and Stripe's documentation that this proxy makes up for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx
import stripe
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from cuota.rails.settings import StripeKeys
from support.stripe import cards, pages
from support.stripe.disputes import Disputes, multipart
from support.stripe.faults import Faults, IdempotencyKeys
from support.stripe.intents import Answer, Intents, missing
from support.stripe.ledger import Ledger
from support.stripe.upstream import KEY, Json, Pairs, Upstream, opened_localstripe

PUBLISHABLE = "pk_test_standin0000"
SIGNING = "whsec_standin00000000"
SHIM = Path(__file__).with_name("elements_shim.js")


class StandIn:
    """An ASGI application that replaces api.stripe.com, js.stripe.com and the page of the consumer's bank."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.ledger = Ledger()
        self.intents = Intents(upstream, self.ledger)
        self.disputes = Disputes(self.ledger)
        self.faults = Faults()
        self.keys = IdempotencyKeys()
        self.requests: list[tuple[str, str]] = []

    def at(self, url: str) -> None:
        """Set the stand-in's own address."""
        self.intents.url = url

    @property
    def stripe_keys(self) -> StripeKeys:
        """The keys with which the rail talks to this stand-in."""
        return StripeKeys(KEY, PUBLISHABLE, SIGNING, self.intents.url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        request = Request(scope, receive)
        if not request.url.path.startswith("/v1/"):
            await (await self._page(request))(scope, receive, send)
            return
        self.requests.append((request.method, request.url.path))
        fault = self.faults.next(request.method)
        if fault != "request":
            status, said = await self._answer(request)
            if fault == "twice":
                status, said = await self._answer(request)
            await asyncio.sleep(self.faults.delay)
        if fault in {"request", "answer"}:
            # The server closes the connection, because this answer is not complete.
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
            return
        await pages.json_answer(status, said)(scope, receive, send)

    async def _page(self, request: Request) -> Any:
        path = request.url.path
        if path == "/js.stripe.com/v3/":
            script = (await self.upstream.http.get(path)).text
            return pages.script(f"{script}\n{SHIM.read_text()}")
        if path.startswith("/bank/"):
            intent_id = path.removeprefix("/bank/")
            if intent_id not in self.intents.added:
                return pages.gone()
            if request.method == "GET":
                _, intent = await self.intents.read(intent_id)
                return pages.bank(intent)
            passed = dict(parse_qsl((await request.body()).decode())).get("passed") == "yes"
            ended = await self.intents.confirm_by_consumer(intent_id, passed=passed)
            back = self.intents.added[intent_id].return_url
            return pages.gone() if ended is None else pages.go_back(str(back), ended)
        return pages.gone()

    async def _answer(self, request: Request) -> Answer:
        if request.url.path == "/v1/files":
            return await self._upload(request)
        text = request.url.query if request.method == "GET" else (await request.body()).decode()
        pairs = parse_qsl(text, keep_blank_values=True)
        path = request.url.path
        by_page = path == "/v1/payment_methods" and dict(pairs).get("key") == PUBLISHABLE
        if request.headers.get("authorization") != f"Bearer {KEY}" and not by_page:
            return 401, {"error": {"type": "invalid_request_error", "message": "Invalid API Key provided"}}
        if request.method == "DELETE":
            return await self._delete(path)
        if request.method == "GET":
            return await self._get(path, dict(pairs), pairs)
        key = request.headers.get("idempotency-key")
        post = self._dispute if path.startswith("/v1/disputes/") else self._post
        return await self.keys.once(key, pairs, lambda: post(path, pairs))

    async def _dispute(self, path: str, pairs: Pairs) -> Answer:
        return self.disputes.post(path.removeprefix("/v1/disputes/"), pairs)

    async def _upload(self, request: Request) -> Answer:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return 401, {"error": {"type": "invalid_request_error", "message": "Invalid API Key provided"}}
        parts = multipart(request.headers["content-type"], await request.body())
        pairs = [(name, content.hex()) for name, (_, content) in parts.items()]

        async def act() -> Answer:
            return self.disputes.upload(parts)

        return await self.keys.once(request.headers.get("idempotency-key"), pairs, act)

    async def _post(self, path: str, pairs: Pairs) -> Answer:
        thing, _, rest = path.removeprefix("/v1/").partition("/")
        if path == "/v1/payment_methods":
            return await self._enter_card(pairs)
        if thing == "payment_methods" and rest.endswith("/attach"):
            return await self._attach(rest.partition("/")[0], dict(pairs)["customer"])
        if path == "/v1/payment_intents":
            return await self.intents.create(pairs)
        if thing == "payment_intents" and rest.endswith("/cancel"):
            return await self.intents.cancel(rest.partition("/")[0], pairs)
        if path == "/v1/refunds":
            return await self.intents.refund(pairs)
        status, made = await self.upstream.call("POST", path, pairs)
        if path == "/v1/customers" and status == 200:
            self.ledger.customers.add(made["id"])
        return status, made

    async def _enter_card(self, pairs: Pairs) -> Answer:
        kept = [pair for pair in pairs if pair[0].partition("[")[0] in {"type", "card", "billing_details"}]
        status, made = await self.upstream.call("POST", "/v1/payment_methods", kept)
        if status == 200:
            self.ledger.numbers[made["id"]] = dict(pairs)["card[number]"]
        return status, made

    async def _attach(self, method: str, customer: str) -> Answer:
        if customer not in self.ledger.customers:
            return missing("customer")
        if method not in self.ledger.numbers:
            return missing("payment_method")
        if method in self.ledger.attached:
            message = "The payment method you provided has already been attached to a customer."
            return 400, {"error": {"type": "invalid_request_error", "message": message}}
        card = cards.test_card(self.ledger.numbers[method])
        if not card.attaches:
            return 402, {"error": cards.error(card)}
        answer = await self.upstream.call(
            "POST", f"/v1/payment_methods/{method}/attach", [("customer", customer)]
        )
        if answer[0] == 200:
            self.ledger.attached[method] = customer
        return answer

    async def _delete(self, path: str) -> Answer:
        gone = path.rpartition("/")[2]
        self.ledger.customers.discard(gone)
        self.ledger.deleted.add(gone)
        return await self.upstream.call("DELETE", path)

    async def _get(self, path: str, given: dict[str, str], pairs: Pairs) -> Answer:
        if path == "/v1/payment_intents":
            return await self.intents.listed(given)
        if path.startswith("/v1/payment_intents/"):
            return await self.intents.read(path.rpartition("/")[2])
        if path.startswith("/v1/disputes/"):
            return self.disputes.read(path.rpartition("/")[2])
        if path == "/v1/events":
            return 200, await self.events(given)
        if (gone := path.rpartition("/")[2]) in self.ledger.deleted:
            return 200, {"id": gone, "object": "customer", "deleted": True}
        status, found = await self.upstream.call("GET", path, pairs)
        return missing(path.split("/")[2]) if status == 404 else (status, found)

    async def events(self, given: dict[str, str]) -> Json:
        """GET /v1/events: the events of localstripe and of this stand-in, newest first."""
        _, made = await self.upstream.call("GET", "/v1/events", [("limit", "100000")])
        wanted = {text for name, text in given.items() if name.startswith("types[")}
        since, until = int(given.get("created[gte]", "0")), int(given.get("created[lt]", str(2**62)))
        found = [
            event
            for event in sorted(
                [*made["data"], *self.ledger.events], key=lambda event: -int(event["created"])
            )
            if since <= event["created"] < until and (not wanted or event["type"] in wanted)
        ]
        ids = [event["id"] for event in found]
        start = ids.index(given["starting_after"]) + 1 if "starting_after" in given else 0
        limit = int(given.get("limit", "10"))
        more = start + limit < len(found)
        if "ending_before" in given:
            # The page that ends before this event. It is in the same order, and "more" are the newer events.
            end = ids.index(given["ending_before"])
            start, limit = max(0, end - limit), min(limit, end)
            more = start > 0
        return {"object": "list", "url": "/v1/events", "has_more": more, "data": found[start : start + limit]}

    async def deliver(self, url: str) -> list[int]:
        """Send every event that was not sent yet to a webhook, signed by Stripe's library. Return the statuses."""
        untold, self.ledger.untold = self.ledger.untold, []
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            return [
                (await http.post(url, content=body, headers=headers)).status_code
                for headers, body in map(signed, untold)
            ]


def signed(event: Json, at: int | None = None, secret: str = SIGNING) -> tuple[dict[str, str], bytes]:
    """Return headers and body of an event as Stripe sends it."""
    body = json.dumps(event)
    signature = stripe.WebhookSignature.generate_signature_header(body, secret, at)
    return {"stripe-signature": signature}, body.encode()


async def enter_card(stand_in: StandIn, number: str) -> str:
    """Enter a card as the Payment Element does, and return the PaymentMethod's id."""
    form = {
        "key": PUBLISHABLE, "type": "card", "card[number]": number, "card[exp_month]": "12", "card[exp_year]": "2035",
        "card[cvc]": "123",
    }  # fmt: skip
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    url = f"{stand_in.intents.url}/v1/payment_methods"
    answer = await stand_in.upstream.http.post(url, content=urlencode(form), headers=headers)
    return str(answer.json()["id"])


@asynccontextmanager
async def opened_stand_in() -> AsyncIterator[StandIn]:
    """Start localstripe and the proxy in front of it, both on loopback."""
    async with opened_localstripe() as upstream:
        stand_in = StandIn(upstream)
        async with pages.served(stand_in) as url:
            stand_in.at(url)
            yield stand_in
