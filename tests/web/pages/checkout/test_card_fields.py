"""The card rail provides the fields of a card: its scripts, the page's policy for them, and the sandbox's path for a
card."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import date

import httpx
import pytest

from cuota.core.checkout.card import BadCard, read_card
from cuota.rails.card.protocol import CardFields
from cuota.rails.card.rails import CardRails
from cuota.rails.card.sandbox import TOKENS_PATH
from cuota.web.pages.card_fields import policy_of
from support.makers import Merchant, Running
from support.pages.visitor import Visitor

OtherRails = Callable[[], AbstractContextManager[None]]
CARD = {"number": "4242 4242 4242 4242", "expiry": "12/39", "cvc": "737"}


class OtherRail:
    """A rail with its own fields on its own servers."""

    name = "other"

    def fields(self) -> CardFields:
        scripts = ("https://js.processor.example/v3/", "/static/stripe-card.js")
        sources = {
            "frame-src": ("https://frames.processor.example",),
            "connect-src": ("https://api.processor.example",),
        }
        return CardFields(scripts, {"key": "pk_public"}, sources)


@pytest.fixture
def other_rail(service: Running) -> OtherRails:
    """Inside the block, another card rail accepts new cards."""

    @contextmanager
    def replaced() -> Iterator[None]:
        rails = service.context.rails
        before = rails.card
        object.__setattr__(rails, "card", CardRails(OtherRail(), [before.active]))  # type: ignore[arg-type]
        try:
            yield
        finally:
            object.__setattr__(rails, "card", before)

    return replaced


def policy(answer: httpx.Response) -> dict[str, str]:
    parts = answer.headers["content-security-policy"].split("; ")
    return dict(part.partition(" ")[::2] for part in parts)


async def test_only_the_page_with_the_card_fields_may_load_the_rail_s_scripts(
    merchant: Merchant, visitor: Visitor, other_rail: OtherRails
) -> None:
    order = await merchant.create()
    with other_rail():
        await visitor.until("pay", order)
    *earlier, pay = [answer for answer in visitor.answers if not answer.is_redirect]
    assert earlier
    for answer in earlier:
        assert "example" not in answer.headers["content-security-policy"]
        assert "card_token" not in answer.text
    allowed = policy(pay)
    assert allowed["script-src"] == "'self' https://js.processor.example"
    assert allowed["frame-src"] == "https://frames.processor.example"
    assert allowed["connect-src"] == "https://api.processor.example"
    assert (allowed["default-src"], allowed["form-action"]) == ("'none'", "'self'")


async def test_a_page_of_another_rail_has_no_input_for_a_card_and_says_that_it_needs_javascript(
    merchant: Merchant, visitor: Visitor, other_rail: OtherRails
) -> None:
    with other_rail():
        await visitor.until("pay", await merchant.create())
        text = visitor.answers[-1].text
        assert not re.search(r'name="card_(number|expiry|cvc)"', text)
        assert "need JavaScript" in text
        assert re.findall(r'<script src="(.*?)"', text) == [
            "https://js.processor.example/v3/", "/static/stripe-card.js", "/static/checkout.js",
        ]  # fmt: skip
        options = json.loads(re.findall(r'data-options="(.*?)"', text)[0].replace("&#34;", '"'))
        assert options == {"key": "pk_public", "purpose": "payment", "amount": 2500, "currency": "USD"}
        assert "4242 4242" not in text


async def test_a_page_of_another_rail_does_not_read_a_card_that_a_form_sends(
    merchant: Merchant, visitor: Visitor, other_rail: OtherRails
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    with other_rail():
        page = await visitor.send("pay", card_number=CARD["number"])
    assert page.status == 400
    assert (await merchant.read(order))["orderStatus"] == "Created"


async def test_the_processor_s_path_exists_only_if_the_sandbox_rail_accepts_new_cards(
    visitor: Visitor, other_rail: OtherRails
) -> None:
    assert (await visitor.http.post(TOKENS_PATH, json=CARD)).status_code == 200
    with other_rail():
        assert (await visitor.http.post(TOKENS_PATH, json=CARD)).status_code == 404
        confirm = await visitor.http.get("/sandbox-processor/confirm/7d9f5a56-31a4-4c6d-9a55-d7c1f3b0a001")
    assert confirm.status_code == 404


async def test_the_token_pays_and_no_form_contains_the_card(merchant: Merchant, visitor: Visitor) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    answer = await visitor.http.post(TOKENS_PATH, json=CARD)
    token = answer.json()["token"]
    assert answer.headers["cache-control"] == "no-store"
    await visitor.send("pay", card_token=token, card_number="", card_expiry="", card_cvc="")
    assert (await merchant.read(order))["orderStatus"] == "Approved"


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": "4242424242424241"},
        {"expiry": "01/20"},
        {"cvc": ""},
        {"number": 4242424242424242},
        {"number": None},
    ],
)
async def test_errors_of_a_wrong_card_are_shown_at_each_field_in_the_form_s_words(
    visitor: Visitor, wrong: dict[str, object]
) -> None:
    answer = await visitor.http.post(TOKENS_PATH, json={**CARD, **wrong})
    sent = {name: value if isinstance(value, str) else "" for name, value in {**CARD, **wrong}.items()}
    with pytest.raises(BadCard) as form:
        read_card(sent["number"], sent["expiry"], sent["cvc"], date(2026, 1, 1))
    assert (answer.status_code, answer.json()) == (400, {"errors": form.value.errors})


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"origin": "https://elsewhere.example"}, json.dumps(CARD), 403),
        ({"sec-fetch-site": "cross-site"}, json.dumps(CARD), 403),
        ({"content-type": "text/plain"}, json.dumps(CARD), 415),
        ({}, "[]", 400),
        ({}, "{", 400),
        ({}, json.dumps({**CARD, "number": "4" * 20_000}), 413),
    ],
)
async def test_a_request_from_another_site_is_refused_and_its_card_is_not_repeated(
    visitor: Visitor, headers: dict[str, str], body: str, status: int
) -> None:
    answer = await visitor.http.post(
        TOKENS_PATH, content=body, headers={"content-type": "application/json", **headers}
    )
    assert answer.status_code == status
    assert "4242" not in answer.text


def test_a_rail_cannot_change_another_directive_of_the_page_s_policy() -> None:
    with pytest.raises(ValueError, match="frame-src"):
        policy_of(CardFields(("/a.js",), sources={"frame-src": ("https://x.example; script-src *",)}))
