"""When `/orders/authorize` refuses a person's form, it shows a page with the reasons and a way back."""

from __future__ import annotations

import asyncio
import html
from typing import Any

from cuota import config
from support.api.bodies import assert_refused, failures
from support.db.locks import holder
from support.gateway import SHOP, Fields, form_fields, orders_of, post_form, signed
from support.makers import Merchant
from support.own_service import opened_own


def text_of(answer: Any) -> str:
    assert answer.headers["content-type"].startswith("text/html"), answer.text
    return " ".join(html.unescape(answer.text).split())


async def test_the_page_for_a_broken_form_explains_the_error_and_links_to_the_signed_return_address(
    merchant: Merchant,
) -> None:
    fields = form_fields(merchant, capture="yes", **{"order.amount": "1.005", "order.currency": "<b>"})
    page = await post_form(merchant, signed(merchant, fields))
    assert page.status_code == 400
    words = text_of(page)
    assert "order.amount" in words
    assert "capture must be true or false" in words
    assert "validation_failed" in words
    assert f'href="{SHOP}/cancel"' in page.text
    assert "Go back to the shop" in words
    assert "default-src 'none'" in page.headers["content-security-policy"]


async def test_the_page_links_to_the_return_address_only_if_that_can_be_read(merchant: Merchant) -> None:
    for address in ("javascript:alert(1)", "http://user@shop.example/", "//evil.example", "http://a\\@b/"):
        page = await post_form(merchant, signed(merchant, form_fields(merchant, redirectCancelUrl=address)))
        assert page.status_code == 400
        assert "primary" not in page.text
        assert "Go back to the shop" in text_of(page)


async def test_an_amount_out_of_range_is_a_page_that_says_so(merchant: Merchant) -> None:
    page = await post_form(merchant, signed(merchant, form_fields(merchant, **{"order.amount": "2000.01"})))
    assert page.status_code == 400
    assert "must be from 1.00 to 2000.00" in text_of(page)
    assert "Orders of this amount cannot be paid in installments in this shop" in text_of(page)
    assert f'href="{SHOP}/cancel"' in page.text


async def test_markup_in_a_field_is_shown_as_text(merchant: Merchant) -> None:
    mark = "<script>alert(1)</script>"
    page = await post_form(
        merchant, [("merchantId", str(merchant.merchant_id)), (mark, mark), ("signature", mark)]
    )
    assert page.status_code == 401
    assert mark not in page.text
    twice: Fields = [*form_fields(merchant), (mark, "1"), (mark, "2")]
    page = await post_form(merchant, signed(merchant, twice))
    assert page.status_code == 400
    assert mark not in page.text
    assert html.escape(mark) in page.text


async def test_a_link_without_fields_says_what_is_missing(merchant: Merchant) -> None:
    async with merchant.service.client() as anybody:
        answer = await anybody.get("/orders/authorize")
        page = await anybody.get("/orders/authorize", headers={"Accept": "text/html"})
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [("merchantId", "required")]
    assert "merchantId must be the merchant's GUID" in text_of(page)


async def test_while_the_database_does_not_answer_a_browser_gets_a_page(
    settings: config.Settings, own_database: dict[str, Any]
) -> None:
    async with opened_own(settings, own_database) as own:
        merchant = own.merchant
        fields = signed(merchant, form_fields(merchant))
        async with holder(own_database) as held:
            await held.run("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
            both = asyncio.gather(post_form(merchant, fields), post_form(merchant, fields, Accept="*/*"))
            page, problem = await held.until_done(both)
        assert_refused(problem, 503, "unavailable")
        assert page.status_code == 503
        assert int(page.headers["retry-after"]) >= 1
        assert "We cannot answer right now" in text_of(page)
        assert f'href="{SHOP}/cancel"' in page.text
        assert (await post_form(merchant, fields)).status_code == 303
        assert await orders_of(merchant) == 1
