"""A visitor of the hosted checkout without JavaScript: stores cookies, follows redirects, fills in forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit
from uuid import UUID

import httpx

from support.makers import Running

CARD_THAT_PAYS = "4242 4242 4242 4242"
CARD_DECLINED = "4000 0000 0000 0002"
CARD_NO_FUNDS = "4000 0000 0000 9995"
ANSWERS = {
    "phone": "(212) 555-0187", "code": "123456", "given_names": "Jordan", "surname": "Rivera",
    "email": "jordan@mail.example", "address_line1": "1480 Mission Street", "address_line2": "", "city": "San Francisco",
    "state": "CA", "postcode": "94103", "card_number": CARD_THAT_PAYS, "card_expiry": "12/39", "card_cvc": "737",
    "agree": "yes",
}  # fmt: skip
STEPS = ("phone", "code", "details", "pay")


class _Reader(HTMLParser):
    """Collects a page's headings, forms with their values, links, and the text that a person reads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.heading, self.text = "", ""
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.links: dict[str, str] = {}
        self.mark: str | None = None
        self.refresh: str | None = None
        self._tag, self._href, self._select, self._area = "", "", "", ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._tag = tag
        if tag == "form":
            self.forms.append((given.get("action", ""), {}))
        elif tag == "input" and "name" in given and (given.get("type") != "checkbox" or "checked" in given):
            self.forms[-1][1][given["name"]] = given.get("value", "")
        elif tag == "select":
            self._select = given["name"]
            self.forms[-1][1][self._select] = ""
        elif tag == "option" and "selected" in given:
            self.forms[-1][1][self._select] = given["value"]
        elif tag == "textarea":
            self._area = given["name"]
            self.forms[-1][1][self._area] = ""
        elif tag == "a":
            self._href = given.get("href", "")
        elif tag == "meta" and given.get("http-equiv") == "refresh":
            self.refresh = given["content"]
        if "mark" in given.get("class", "").split():
            self.mark = given["class"].split()[-1]

    def handle_data(self, data: str) -> None:
        if self._tag in {"script", "style", "title"}:
            return
        self.text += data
        if self._tag == "textarea":
            self.forms[-1][1][self._area] += data
        if self._tag == "h1":
            self.heading += data
        if self._href:
            self.links[self._href] = self.links.get(self._href, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""
        if tag == "a":
            self._href = ""


@dataclass
class Page:
    """One answer, as a person would see it. `redirect` is the address at a merchant to which the answer redirects."""

    answer: httpx.Response
    redirect: str | None = None

    @cached_property
    def seen(self) -> _Reader:
        """The parsed page. Many tests look only at the status of most pages, and parsing a page takes milliseconds."""
        return _Reader(self.answer.text)

    @property
    def left(self) -> str | None:
        """The merchant's address, if the page goes there automatically."""
        if self.redirect is None and self.seen.refresh:
            return self.seen.refresh.partition(";url=")[2]
        return self.redirect

    @property
    def seconds(self) -> int | None:
        """Return after how many seconds the page redirects automatically."""
        return int(self.seen.refresh.partition(";")[0]) if self.seen.refresh else None

    @property
    def status(self) -> int:
        return self.answer.status_code

    @property
    def heading(self) -> str:
        return " ".join(self.seen.heading.split())

    @property
    def text(self) -> str:
        return " ".join(self.seen.text.split())

    @property
    def outcome(self) -> str | None:
        """Return the result that a last page shows: approved, declined or abandoned."""
        return self.seen.mark

    def form(self, step: str) -> tuple[str, dict[str, str]]:
        for action, fields in self.seen.forms:
            if urlsplit(action).path.endswith(f"/{step}"):
                return action, fields
        raise AssertionError(f"{self.heading!r} has no form for {step}: {self.text[:200]}")

    def has_form(self, step: str) -> bool:
        """Return whether the page has the form of a step."""
        return any(urlsplit(action).path.endswith(f"/{step}") for action, _ in self.seen.forms)

    def link(self, words: str) -> str:
        """Return the address of the link with these words."""
        return next(href for href, text in self.seen.links.items() if words in text)


class Visitor:
    """One browser."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.page: Page
        self.answers: list[httpx.Response] = []

    async def open(self, url: str) -> Page:
        return await self._follow(await self.http.get(url))

    async def send(self, step: str, *, without: str = "", **fields: str) -> Page:
        """Send the page's form, filled in with Jordan Rivera's data and these changes, but not the field `without`."""
        action, held = self.page.form(step)
        known = {name: ANSWERS.get(name, value) for name, value in held.items()}
        known |= {"agree": "yes"} if step == "pay" else {}
        sent = {name: value for name, value in {**known, **fields}.items() if name != without}
        return await self._follow(await self.http.post(action, data=sent))

    async def until(self, step: str, order: dict[str, Any], **fields: str) -> Page:
        """Open the order's link and continue until this step's page is shown."""
        await self.open(order["redirectUrl"])
        if any(urlsplit(action).path.endswith("/again") for action, _ in self.page.seen.forms):
            # This browser bought before, so all the steps are behind a link.
            await self.open(self.page.link("Use another card"))
        for each in STEPS[: STEPS.index(step)]:
            # Enter a number even if the page offers the number of the order.
            asked = {*self.page.form(each)[1], *(("phone",) if each == "phone" else ())}
            await self.send(each, **{name: value for name, value in fields.items() if name in asked})
        self.page.form(step)
        return self.page

    async def buy(self, order: dict[str, Any], **fields: str) -> Page:
        """Complete the whole checkout."""
        await self.until("pay", order, **fields)
        return await self.send("pay", **{name: value for name, value in fields.items() if "card" in name})

    def form_that(self, do: str) -> tuple[str, dict[str, str]]:
        """Return the form whose field `do` has this value."""
        return next(each for each in self.page.seen.forms if each[1].get("do") == do)

    async def press_do(self, do: str, **fields: str) -> Page:
        """Send the form whose field `do` has this value, with these changes."""
        action, held = self.form_that(do)
        return await self._follow(await self.http.post(action, data={**held, **fields}))

    async def upload(self, address: str, *files: tuple[str, bytes], **fields: str) -> httpx.Response:
        """Send the form with files of a page as a browser does. Its address is that of the page."""
        await self.open(address)
        action, held = self.page.form(address.rpartition("/")[2])
        parts: list[Any] = [("files", each) for each in files] or [("files", ("", b""))]
        return await self.http.post(action, data={**held, **fields}, files=parts)

    async def _follow(self, answer: httpx.Response) -> Page:
        self.answers.append(answer)
        while answer.is_redirect:
            target = urljoin(str(answer.url), answer.headers["location"])
            if urlsplit(target).netloc != self.http.base_url.netloc.decode():
                self.page = Page(answer, redirect=target)
                return self.page
            answer = await self.http.get(target)
            self.answers.append(answer)
        self.page = Page(answer)
        return self.page


def address_of(order: dict[str, Any]) -> str:
    """Return the checkout's own address, without the token."""
    return f"{urlsplit(order['redirectUrl']).path}/{order['orderId']}"


async def rows(service: Running, order: dict[str, Any]) -> list[str]:
    """Return everything in the database about an order, so that a test can see whether anything changed."""
    tables = (
        "orders",
        "order_details",
        "checkout_sessions",
        "plans",
        "charges",
        "events",
        "decisions",
        "installments",
    )
    sql = " UNION ALL ".join(
        f"SELECT to_jsonb(t)::text AS row FROM {name} t WHERE order_id = $1" for name in tables
    )
    return sorted(row["row"] for row in await service.context.pool.fetch(sql, UUID(order["orderId"])))


async def charges(service: Running, order: dict[str, Any]) -> list[Any]:
    """Return the requests to the simulated card network for this order, from the network's own records."""
    sql = """SELECT s.amount, s.approved, s.reason FROM card_simulator.charges s JOIN charges c ON c.charge_id = s.key
        WHERE c.order_id = $1 ORDER BY s.created_at"""
    return [tuple(row) for row in await service.context.pool.fetch(sql, UUID(order["orderId"]))]
