"""A checkout is limited to its own browser by sessions, form tokens and policies. Before the code, pages show no
personal data."""

from __future__ import annotations

import re
from collections.abc import Callable
from http.cookies import SimpleCookie

import pytest

from support.makers import Merchant, Running
from support.pages.visitor import ANSWERS, Visitor, address_of, rows

PERSONAL = {
    "consumer": {
        "phoneNumber": "4155550166", "givenNames": "Marisol", "surname": "Vandermeer", "email": "marisol@mail.example",
    },
    "billing": {
        "addressLine1": "77 Quiet Harbor Lane", "addressLine2": "Apt 9Q", "city": "Portsmouth", "state": "NH", "postcode": "03801",
    },
    "shipping": {"addressLine1": "12 Elsewhere Road", "city": "Dover", "state": "NH", "postcode": "03820"},
}  # fmt: skip
TRACES = re.compile(
    r"4155550166|555-?0166|0166|Marisol|Vandermeer|marisol@|Quiet Harbor|9Q|Portsmouth|03801|Elsewhere|Dover|03820",
    re.IGNORECASE,
)
NAME = "checkout-{}"


async def test_no_page_shows_personal_data_before_the_code_is_right(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create(**PERSONAL)
    await visitor.open(order["redirectUrl"])
    await visitor.send("phone", phone="12")
    await visitor.send("phone", phone="4155550166")
    await visitor.send("code", code="000000")
    await visitor.send("resend")
    for step in ("phone", "code", "details", "pay"):
        await visitor.open(f"{address_of(order)}?step={step}")
    for answer in visitor.answers:
        # A number that was typed here is shown masked, by its last digits: "ending 66".
        assert not TRACES.search(answer.text.replace(ANSWERS["phone"], "")), answer.text


async def test_the_order_fills_in_the_details_of_the_consumer_with_the_order_s_number(
    merchant: Merchant, visitor: Visitor
) -> None:
    page = await visitor.until("details", await merchant.create(**PERSONAL), phone="(415) 555-0166")
    held = page.form("details")[1]
    assert {name: held[name] for name in ("given_names", "email", "address_line1", "state", "postcode")} == {
        "given_names": "Marisol", "email": "marisol@mail.example", "address_line1": "77 Quiet Harbor Lane", "state": "NH",
        "postcode": "03801",
    }  # fmt: skip


async def test_the_order_fills_in_nothing_for_a_consumer_with_another_number(
    merchant: Merchant, visitor: Visitor
) -> None:
    page = await visitor.until("details", await merchant.create(**PERSONAL), phone="415 555 0167")
    held = page.form("details")[1]
    held.pop("csrf")
    assert set(held.values()) == {""}
    assert not TRACES.search(page.answer.text)


async def test_a_planted_cookie_is_replaced_by_a_new_session(merchant: Merchant, visitor: Visitor) -> None:
    order = await merchant.create()
    name = NAME.format(order["orderId"])
    visitor.http.cookies.set(name, "planted-by-somebody-else", domain="127.0.0.1", path="/")
    await visitor.open(order["redirectUrl"])
    assert visitor.page.form("phone")
    assert "planted" not in str(visitor.http.cookies.jar)


async def test_the_session_changes_after_the_right_code_and_the_earlier_one_is_refused(
    merchant: Merchant, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    order = await merchant.create()
    await visitor.until("code", order)
    name = NAME.format(order["orderId"])
    before = visitor.http.cookies[name]
    await visitor.send("code")
    assert visitor.http.cookies[name] != before
    thief = visit()
    thief.http.cookies.set(name, before, domain="127.0.0.1", path="/")
    assert (await thief.open(address_of(order))).status == 404


async def test_the_session_cookie_is_sent_only_to_the_service_and_scripts_cannot_read_it(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    opened = await visitor.http.get(order["redirectUrl"])
    name = NAME.format(order["orderId"])
    [given] = [text for text in opened.headers.get_list("set-cookie") if text.startswith(name)]
    cookie = SimpleCookie(given)[name]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]) == (
        True,
        "lax",
        "/",
        "",
    )
    assert len(cookie.value) >= 43


@pytest.mark.parametrize("step", ["phone", "code", "resend", "details", "pay", "leave"])
@pytest.mark.parametrize("forged", ["missing", "foreign", "cross-site", "same-site", "json"])
async def test_a_form_that_another_page_sent_is_refused_and_changes_nothing(
    service: Running,
    merchant: Merchant,
    visitor: Visitor,
    visit: Callable[..., Visitor],
    step: str,
    forged: str,
) -> None:
    order = await merchant.create()
    if step in {"code", "resend"}:
        await visitor.until("code", order)
    else:
        await visitor.until("pay", order)
    other = visit()
    await other.open((await merchant.create())["redirectUrl"])
    own = visitor.page.seen.forms[0][1]["csrf"]
    csrf = {"missing": "", "foreign": other.page.form("phone")[1]["csrf"]}.get(forged, own)
    headers = {"sec-fetch-site": forged} if forged.endswith("site") else {}
    held = visitor.page.seen.forms[0][1]
    fields = {**ANSWERS, **held, "csrf": csrf} if csrf else {**ANSWERS, "agree": "yes"}
    body = {"json": fields} if forged == "json" else {"data": fields}
    before = await rows(service, order)
    answer = await visitor.http.post(f"{address_of(order)}/{step}", headers=headers, **body)
    assert (answer.status_code, "Nothing was changed" in answer.text) == (403, True)
    assert await rows(service, order) == before


async def test_every_page_has_a_content_policy_and_forbids_framing_and_caching(
    service: Running, merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    visitor = visit()
    order = await merchant.create()
    await visitor.until("pay", order)
    await visitor.send("pay", card_number="1")
    await visitor.send("pay")
    for url in (order["redirectUrl"][:-3], address_of(await merchant.create())):
        await visitor.open(url)
    left = visit()
    await left.open((await merchant.create())["redirectUrl"])
    await left.send("leave")
    shown = [answer for answer in visitor.answers + left.answers if not answer.is_redirect]
    assert {answer.status_code for answer in shown} == {200, 400, 404}
    for answer in shown:
        policy = dict(
            part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";")
        )
        assert {name: policy[name] for name in ("default-src", "script-src", "style-src", "base-uri", "frame-ancestors")} == {
            "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "base-uri": "'none'",
            "frame-ancestors": "'none'",
        }  # fmt: skip
        assert policy["form-action"] == "'self'"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
    for answer in visitor.answers + left.answers:
        assert answer.headers["cache-control"] == "no-store"


async def test_no_page_has_a_third_party_s_address_or_an_inline_script_or_style(
    merchant: Merchant, visitor: Visitor
) -> None:
    await visitor.buy(await merchant.create())
    for answer in visitor.answers:
        assert not re.search(r"\s(on\w+|style)=|<style|javascript:", answer.text)
        scripts = re.findall(r"<script(.*?)>", answer.text)
        fields = [' src="/static/sandbox-card.js" defer'] if 'id="card-fields"' in answer.text else []
        assert scripts in ([], [*fields, ' src="/static/checkout.js" defer'])
        loaded = re.findall(r'<(?:link|img|script|iframe)[^>]*(?:href|src)="([^"]+)"', answer.text)
        assert all(address.startswith(("/static/", "data:image/svg+xml,")) for address in loaded)


POLYGLOTS = (
    '"><script>alert(1)</script>', "'-alert(1)-'", "{{7*7}}", "${7*7}", "</title><svg/onload=alert(1)>",
    "jaVasCript:/*-/*`/*\\`/*'/*\"/**/(/* */oNcliCk=alert() )//", "<!--", "]]>", "\u202egpj.exe",
)  # fmt: skip


@pytest.mark.parametrize("polyglot", POLYGLOTS)
async def test_a_merchant_s_text_is_shown_as_text_and_never_run_as_code(
    merchant: Merchant, visitor: Visitor, polyglot: str
) -> None:
    items = [{"name": polyglot, "description": polyglot, "sku": polyglot[:100], "quantity": 1, "price": 100}]
    order = await merchant.create(description=polyglot, items=items)
    await visitor.buy(order)
    for answer in visitor.answers:
        assert not re.search(r"<script>|<svg/onload|<!--", answer.text, re.IGNORECASE)
        assert "49" not in re.findall(r'<span class="what">(.*?)</span>', answer.text)
    assert " ".join(polyglot.split()) in " ".join(visitor_text(visitor))


def visitor_text(visitor: Visitor) -> list[str]:
    """Return the text of all pages."""
    from support.pages.visitor import Page

    return [Page(answer).text for answer in visitor.answers]
