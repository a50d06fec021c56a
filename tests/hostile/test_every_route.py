"""Tries every route with an id: the id of another merchant gets the same answer as an id that does not exist.

These tests try each new route of the table without a change here. A route with a new kind of id fails until the fixture
`stranger` has an example of such an id.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from cuota.core.dispute.dispute import DisputeReason
from cuota.core.dispute.evidence import EvidenceFile
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.web import app
from cuota.web.app import ROUTES
from cuota.web.desk_routes import DESK
from cuota.web.operator_routes import OPERATOR
from support.api.smi_bodies import smi_body
from support.api.token_maker import ABSENT, forge
from support.hostile.world import World
from support.makers import Merchant, complete
from support.pages.visitor import Visitor
from support.settlement_rows import Row, paid
from support.virtual_card import virtual_order

IDS = re.compile(r"{(\w+)}")
# An id in these paths names a public file of the service.
FILES = {app.STATIC, app.SCRIPTS, app.DOCS}
PAGES = {app.CHECKOUT, app.ACCOUNT}
EVERY = [(method, row.path, row.area) for row in ROUTES for method in row.methods.split()]
WITH_ID = [(method, path, area) for method, path, area in EVERY if IDS.search(path) and area not in FILES]
WITH_TOKEN = [(method, path) for method, path, area in WITH_ID if area.needs_token]
ASK_TOKEN = [(method, path) for method, path, area in EVERY if area.needs_token]
PAGES_WITH_ID = [(method, path) for method, path, area in WITH_ID if area in PAGES]
SANDBOX_WITH_ID = [(method, path) for method, path, area in WITH_ID if area is app.SANDBOX]
DESK_WITH_ID = [(method, path) for method, path, area in WITH_ID if area in {DESK, OPERATOR}]
BANK_WITH_ID = [(method, path) for method, path, area in WITH_ID if area is app.BANK]
# A process reads these tables again from time to time, whatever the request is.
BESIDE = ("credentials", "signing_keys", "api_requests")


@dataclass
class Stranger:
    """A merchant that has one of everything with an id. The tests do not use its tokens and sessions."""

    shop: Merchant
    ids: dict[str, str] = field(default_factory=dict)

    def unknown(self) -> dict[str, str]:
        """Return ids of the same form that do not exist."""
        own = {"step", "number"}
        return {name: text if name in own else str(uuid4()) for name, text in self.ids.items()}

    def near(self) -> dict[str, str]:
        """Return ids that do not exist, and that differ from the merchant's ids in one digit."""
        own = {"step", "number"}
        return {
            name: text if name in own else f"{text[:20]}{'a' if text[20] != 'a' else 'b'}{text[21:]}"
            for name, text in self.ids.items()
        }

    def halfway(self) -> dict[str, str]:
        """Return ids of which only the merchant's exists."""
        return {**self.unknown(), "merchant_id": self.ids["merchant_id"]}


@pytest.fixture
async def stranger(auto_merchant: Merchant) -> Stranger:
    shop = auto_merchant
    card = await virtual_order(shop)
    network = await card.authorize(await card.card(), "100.00")
    bought = await shop.create()
    await complete(shop.service, shop.merchant_id, bought)
    pool = shop.service.context.pool
    (charge,) = await pool.fetch("SELECT charge_id FROM charges WHERE order_id::text = $1", bought["orderId"])
    begun = await shop.http.post("/checkouts", json=smi_body())
    endpoint = await shop.http.post("/webhook-endpoints", json={"url": "http://127.0.0.1:9/hook"})
    from cuota.flows.webhook.deliver_webhooks import publish_events

    await publish_events(shop.service.context)
    event = (await shop.http.get("/events")).json()["events"][-1]
    note = EvidenceFile("note.txt", "text/plain", b"I waited.")
    ids = shop.merchant_id, UUID(bought["orderId"])
    opened = await open_dispute(
        shop.service.context, *ids, DisputeReason.NOT_RECEIVED, 100, "Nothing came.", [note]
    )
    (file,) = await pool.fetch(
        "SELECT evidence_id FROM dispute_files WHERE dispute_id = $1", opened.dispute_id
    )
    return Stranger(
        shop,
        {
            "merchant_id": str(shop.merchant_id), "order_id": bought["orderId"], "checkout_id": begun.json()["id"],
            "event_id": event["id"], "endpoint_id": endpoint.json()["id"], "charge_id": str(charge["charge_id"]),
            "authorization_id": network["authorizationId"], "step": "pay",
            "payout_id": await paid(shop, Row("capture", 100)), "dispute_id": str(opened.dispute_id),
            "file_id": f"{file['evidence_id']}-1", "evidence_id": str(file["evidence_id"]), "number": "1",
        },
    )  # fmt: skip


def filled(path: str, ids: dict[str, str]) -> str:
    missing = [name for name in IDS.findall(path) if name not in ids]
    assert not missing, f"{path} takes {missing}: add an example to the fixture `stranger`"
    return IDS.sub(lambda found: ids[found[1]], path)


def body_of(method: str, path: str) -> dict[str, Any]:
    """Return a body that would be valid with the merchant's own id."""
    if method in {"GET", "DELETE"}:
        return {}
    if (method, path) in PAGES_WITH_ID:
        return {"data": {"csrf": "x", "phone": "2125550187", "code": "123456"}}
    known = {"amount": "1.00", "merchantReference": "x", "reference": "x", "description": "mine"}
    return {"json": known}


def told(answer: httpx.Response) -> tuple[int, set[str], str]:
    """Return an answer without the parts that always differ: the request's id and path."""
    text = answer.text
    if answer.headers["content-type"].endswith("json"):
        body = answer.json()
        for name in ("requestId", "instance"):
            body.pop(name, None)
        text = json.dumps(body, sort_keys=True)
    return answer.status_code, set(answer.headers), text.replace(answer.request.url.path, "")


async def everything(shop: Merchant) -> list[str]:
    """Return the merchant's rows in the database, so that a test can see whether anything changed."""
    pool = shop.service.context.pool
    rows = []
    for table in (
        "orders",
        "movements",
        "webhook_endpoints",
        "deliveries",
        "checkout_sessions",
        "charges",
        "events",
        "payouts",
        "settlement_lines",
        "disputes",
        "dispute_evidence",
        "dispute_files",
    ):
        found = await pool.fetch(
            f"SELECT to_jsonb(t)::text AS row FROM {table} t WHERE merchant_id = $1", shop.merchant_id
        )
        rows += [row["row"] for row in found]
    return sorted(rows)


@pytest.mark.parametrize("path", [path for method, path in WITH_TOKEN if method == "GET"])
async def test_a_merchant_reads_its_own_data_with_its_own_token(stranger: Stranger, path: str) -> None:
    assert (await stranger.shop.http.get(filled(path, stranger.ids))).status_code == 200


@pytest.mark.parametrize(("method", "path"), WITH_TOKEN)
async def test_another_merchant_s_id_gets_the_same_answer_as_an_id_that_does_not_exist(
    merchant: Merchant, stranger: Stranger, method: str, path: str
) -> None:
    before = await everything(stranger.shop)
    answers = [
        await merchant.http.request(method, filled(path, ids), **body_of(method, path))
        for ids in (stranger.ids, stranger.unknown(), dict.fromkeys(stranger.ids, "no-id"))
    ]
    assert {answer.status_code for answer in answers} == {404}, answers[0].text
    assert told(answers[0]) == told(answers[1]) == told(answers[2])
    assert await everything(stranger.shop) == before


@pytest.mark.parametrize(("method", "path"), WITH_TOKEN)
async def test_another_merchant_s_id_takes_the_same_statements_as_an_id_that_does_not_exist(
    merchant: Merchant, stranger: Stranger, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    # Otherwise the time of the answer would show that the id exists.
    asked: list[str] = []
    ask = asyncpg.Connection._do_execute

    async def noted(self: Any, query: str, *arguments: Any, **more: Any) -> Any:
        asked.extend([] if any(table in query for table in BESIDE) else [query])
        return await ask(self, query, *arguments, **more)

    monkeypatch.setattr(asyncpg.Connection, "_do_execute", noted)
    seen = []
    for ids in (stranger.ids, stranger.near()):
        answer = await merchant.http.request(method, filled(path, ids), **body_of(method, path))
        assert answer.status_code == 404
        assert asked
        seen.append(asked.copy())
        asked.clear()
    assert seen[0] == seen[1]


@pytest.mark.parametrize(("method", "path"), PAGES_WITH_ID)
async def test_another_consumer_s_page_gets_the_same_answer_as_a_page_that_does_not_exist(
    merchant: Merchant, stranger: Stranger, method: str, path: str
) -> None:
    before = await everything(stranger.shop)
    seen = []
    for ids in (stranger.ids, stranger.halfway(), stranger.unknown()):
        # A browser with a session of another order.
        async with merchant.service.client() as http:
            await Visitor(http).open((await merchant.create())["redirectUrl"])
            answer = await http.request(method, filled(path, ids), **body_of(method, path))
            while answer.is_redirect:
                answer = await http.get(answer.headers["location"])
        assert answer.status_code in {200, 404}, answer.status_code
        assert stranger.shop.name not in answer.text
        seen.append(re.sub(r'value="[0-9a-f]{64}"', "", told(answer)[2]))
    assert seen[0] == seen[1] == seen[2]
    assert await everything(stranger.shop) == before


@pytest.mark.parametrize(("method", "path"), SANDBOX_WITH_ID)
async def test_an_authorization_that_does_not_exist_at_the_card_network_is_not_found(
    stranger: Stranger, method: str, path: str
) -> None:
    # The card network has no access tokens: it identifies a processor by the authorization's random id.
    async with stranger.shop.service.client() as http:
        answers = [
            await http.request(method, filled(path, ids), **body_of(method, path))
            for ids in (stranger.unknown(), dict.fromkeys(stranger.ids, "no-id"))
        ]
    assert {answer.status_code for answer in answers} == {404}
    assert told(answers[0]) == told(answers[1])


@pytest.mark.parametrize(("method", "path"), ASK_TOKEN)
async def test_no_route_accepts_a_missing_or_invalid_token_or_a_token_of_another_environment(
    world: World, stranger: Stranger, method: str, path: str
) -> None:
    tokens = [
        None,
        await world.foreign.token(),
        await forge(stranger.shop, iss=world.elsewhere.settings.auth_url),
        await forge(stranger.shop, exp=ABSENT),
        await forge(stranger.shop, header={"typ": "JWT"}),
        (await forge(stranger.shop)).rpartition(".")[0] + ".",
        "x",
    ]
    async with world.service.client() as http:
        target = filled(path, stranger.ids)
        seen = set()
        for token in tokens:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            answer = await http.request(method, target, headers=headers, **body_of(method, path))
            assert answer.status_code == 401, answer.text
            assert answer.headers["www-authenticate"] == "Bearer"
            seen.add(told(answer)[2])
    assert len(seen) == 1


def test_each_route_with_an_id_is_covered_by_a_test() -> None:
    """Every route with an id requires a token, is a page, or is the sandbox's. Every route of the API requires a token.

    Other tests try the routes that are not tried here: tests/web/pages/checkout/test_confirm.py the simulated bank's
    page, tests/web/pages/desk/test_roles.py the merchant's dashboard, and
    tests/web/pages/operator/test_operator_roles.py the operator's dashboard.
    """
    with_id = (
        len(WITH_TOKEN) + len(PAGES_WITH_ID) + len(SANDBOX_WITH_ID) + len(BANK_WITH_ID) + len(DESK_WITH_ID)
    )
    assert with_id == len(WITH_ID)
    assert {(method, path) for method, path, area in EVERY if area is app.API} == set(ASK_TOKEN)
    assert {path for _, path in WITH_TOKEN} < {path for _, path in ASK_TOKEN}
    assert len(WITH_TOKEN) >= 13
    assert len(WITH_ID) >= 30
