"""The link to the checkout: who can open it, and what opening it changes."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest

from cuota.flows.checkout.leave_checkout import lapse_order
from support.makers import Merchant, Running, make_merchant
from support.pages.visitor import Visitor, address_of, rows


def _flipped(token: str) -> str:
    return token[:-1] + ("0" if token[-1] != "0" else "1")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda url: url.partition("?")[0],
        lambda url: url[:-5],
        _flipped,
        lambda url: url.partition("=")[0] + "=" + str(uuid4()),
        lambda url: url.partition("=")[0] + "=%00%27--",
        lambda url: (
            url.upper().replace("HTTP", "http").replace("CHECKOUT", "checkout").replace("TOKEN", "TOKEN")
        ),
    ],
    ids=["missing", "truncated", "bit flipped", "unknown", "not a token", "upper case name"],
)
async def test_an_incomplete_link_answers_404_and_names_no_merchant(
    merchant: Merchant, visitor: Visitor, spoil: Callable[[str], str]
) -> None:
    page = await visitor.open(spoil((await merchant.create())["redirectUrl"]))
    assert (page.status, page.heading) == (404, "This payment link is not valid")
    assert merchant.name not in page.answer.text
    assert not visitor.http.cookies


async def test_a_token_does_not_work_with_another_merchant_s_address(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    async with make_merchant(service) as other:
        url = order["redirectUrl"].replace(str(merchant.merchant_id), str(other.merchant_id))
        page = await visitor.open(url)
    assert page.status == 404
    assert merchant.name not in page.answer.text


async def test_the_page_of_an_expired_link_says_that_nothing_was_charged_and_links_to_the_merchant(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    async with service.clock.moved(minutes=61):
        page = await visitor.open(order["redirectUrl"])
        assert (page.status, page.heading) == (410, "This checkout expired")
        assert "This checkout expired after 60 minutes. You were not charged." in page.text
        back = f"http://127.0.0.1:9/cancel?token={order['token']}&orderId={order['orderId']}"
        assert (page.link("Back to the shop"), page.left) == (back, None)
        await lapse_order(service.context, merchant.merchant_id, UUID(order["orderId"]))
        again = await visitor.open(order["redirectUrl"])
        assert (again.status, again.text, again.link("Back to the shop")) == (410, page.text, back)
    assert merchant.name not in page.answer.text
    assert not visitor.http.cookies


@pytest.mark.parametrize("ending", ["approved", "abandoned"])
async def test_the_link_of_a_finished_order_answers_410_in_another_browser_and_the_result_in_its_own(
    merchant: Merchant, visit: Callable[..., Visitor], ending: str
) -> None:
    order = await merchant.create()
    own, other = visit(), visit()
    if ending == "approved":
        await own.buy(order)
    else:
        await own.open(order["redirectUrl"])
        await own.send("leave")
    page = await other.open(order["redirectUrl"])
    assert (page.status, page.heading) == (410, "This payment is finished")
    assert "pay again" not in page.text
    assert merchant.name not in page.answer.text
    assert (await own.open(order["redirectUrl"])).outcome == ending


async def test_the_pages_of_an_order_cannot_be_opened_without_the_browser_s_session(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    order = await merchant.create()
    await visit().until("pay", order)
    other = visit()
    page = await other.open(address_of(order))
    assert (page.status, page.heading) == (404, "Start again from the shop")
    assert merchant.name not in page.answer.text
    for step in ("phone", "code", "resend", "details", "pay", "leave"):
        answer = await other.http.post(f"{address_of(order)}/{step}", data={"agree": "yes"})
        assert (answer.status_code, merchant.name in answer.text) == (404, False)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_opening_the_address_of_a_form_changes_nothing_and_shows_the_page_of_its_step(
    service: Running, merchant: Merchant, visitor: Visitor, method: str
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    before = await rows(service, order)
    for step in ("phone", "code", "resend", "details", "pay", "leave"):
        answer = await visitor.http.request(method, f"{address_of(order)}/{step}?agree=yes&outcome=approved")
        page = "" if step in {"resend", "leave"} else f"?step={step}"
        assert (answer.status_code, answer.headers["location"]) == (303, f"{address_of(order)}{page}")
    assert await rows(service, order) == before


async def test_a_head_request_for_the_link_opens_no_session(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    before = await rows(service, order)
    answer = await visitor.http.head(order["redirectUrl"])
    assert (answer.status_code, answer.content, dict(answer.cookies)) == (200, b"", {})
    assert await rows(service, order) == before


async def test_a_query_parameter_never_decides_where_the_browser_is_sent(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    evil = "url=https://evil.example&return=https://evil.example&redirectConfirmUrl=https://evil.example&next=//evil.example"
    await visitor.open(f"{order['redirectUrl']}&{evil}")
    for step in ("phone", "code", "details", "pay"):
        page = await visitor.open(f"{address_of(order)}?{evil}")
        assert "evil.example" not in page.answer.text + str(page.answer.headers)
        await visitor.send(step)
    assert "evil.example" not in visitor.page.answer.text
    assert urlsplit(visitor.page.link(f"Back to {merchant.name}")).netloc == "127.0.0.1:9"


@pytest.mark.parametrize("header", ["host", "x-forwarded-host", "x-forwarded-proto", "forwarded"])
async def test_a_spoofed_host_header_changes_no_address_on_any_page(
    service: Running, merchant: Merchant, visitor: Visitor, header: str
) -> None:
    spoof = {
        header: "https"
        if header.endswith("proto")
        else "host=evil.example"
        if header == "forwarded"
        else "evil.example"
    }
    answer = await merchant.http.post(
        "/order", json={"amount": 20, "merchantReference": "h", "merchant": {"redirectConfirmUrl": "http://127.0.0.1:9/c",
        "redirectCancelUrl": "http://127.0.0.1:9/x"}}, headers=spoof,
    )  # fmt: skip
    order = answer.json()
    assert order["redirectUrl"].startswith(f"{service.settings.public_url}/checkout/")
    visitor.http.headers.update(spoof)
    # httpx stores cookies by the host name that it is given, so the test copies the session itself.
    opened = await visitor.http.get(order["redirectUrl"])
    assert opened.headers["location"] == f"{address_of(order)}?step=phone"
    cookie = opened.headers["set-cookie"].partition(";")[0]
    page = await visitor.http.get(address_of(order), headers={"cookie": cookie})
    assert page.status_code == 200
    assert "evil.example" not in page.text + str(page.headers)
    assert "https://127.0.0.1" not in page.text


async def test_the_token_is_not_in_the_address_after_the_first_step(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.buy(order)
    first, *later = visitor.answers
    assert order["token"] in str(first.url)
    assert first.headers["referrer-policy"] == "no-referrer"
    for answer in later:
        assert order["token"] not in str(answer.url)
        assert answer.headers["referrer-policy"] == "no-referrer"
    for answer in visitor.answers[:-1]:
        # Only the link back to the merchant, at the end, contains the token again.
        assert order["token"] not in answer.text + answer.headers.get("location", "")


@pytest.mark.parametrize(
    "path", ["/checkout/x", "/checkout/x/y", "/checkout/x/y/z", "/checkout/x/y/pay", "/checkout/x/y/z/q"]
)
async def test_an_unknown_address_answers_a_page_and_not_json(visitor: Visitor, path: str) -> None:
    page = await visitor.open(path)
    assert (page.status, page.answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert page.answer.headers["content-security-policy"].startswith("default-src 'none'")


async def test_a_form_that_is_too_large_is_refused_with_a_page(merchant: Merchant, visitor: Visitor) -> None:
    await visitor.open((await merchant.create())["redirectUrl"])
    page = await visitor.send("phone", phone="2" * 300_000)
    assert (page.status, page.heading) == (413, "This form is too large")
