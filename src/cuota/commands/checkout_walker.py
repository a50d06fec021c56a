"""`cuota sandbox complete`: walks the hosted pages over HTTP like a browser without script, through no back door."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx

from cuota.core.sandbox import APPROVED_SURNAME, CODE, DECLINED_SURNAME, TEST_CARDS

SURNAMES = {"approved": APPROVED_SURNAME, "declined": DECLINED_SURNAME}
ANSWERS = {
    "phone": "2125550142", "code": CODE, "given_names": "Sam", "email": "sam@example.com",
    "address_line1": "1 Main Street", "address_line2": "", "city": "Springfield", "state": "NY",
    "postcode": "10001", "card_number": TEST_CARDS[0].number, "card_expiry": "12/39", "card_cvc": "123",
    "agree": "yes",
}  # fmt: skip
MOST_PAGES = 20


class CannotWalk(Exception):
    """The pages led somewhere else than asked for; the text says where."""


class _Page(HTMLParser):
    """What a browser without script makes of a page: its forms, its primary link, and where it leads by itself."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.link: str | None = None
        self.other_phone: str | None = None
        self.refresh: str | None = None
        self.sandbox = False
        self.outcome: str | None = None
        self.heading = ""
        self._in_heading = False
        self.feed(html)

    @property
    def offers_a_number(self) -> bool:
        """Whether this is the phone page with a number to confirm and no field for another one."""
        return any(action.endswith("/phone") and "phone" not in held for action, held in self.forms)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note forms and their fields, links and the strip."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append((given.get("action", ""), {}))
        elif tag in {"input", "select"} and self.forms and "name" in given:
            self.forms[-1][1][given["name"]] = given.get("value", "")
        elif tag == "meta" and given.get("http-equiv", "").lower() == "refresh":
            self.refresh = _target(given.get("content", ""))
        elif tag == "a" and "primary" in given.get("class", "").split():
            self.link = given.get("href")
        elif tag == "a" and "other=1" in given.get("href", ""):
            self.other_phone = given["href"]
        elif tag == "h1":
            self._in_heading = True
        classes = given.get("class", "").split()
        self.sandbox = self.sandbox or "sandbox" in classes
        if "mark" in classes:
            self.outcome = next((name for name in classes if name != "mark"), None)

    def handle_data(self, data: str) -> None:
        """The heading's words."""
        if self._in_heading:
            self.heading += data

    def handle_endtag(self, tag: str) -> None:
        """The heading ends."""
        if tag == "h1":
            self._in_heading = False


def walk(redirect_url: str, outcome: str, **typed: str) -> str:
    """Complete the checkout behind a redirectUrl; answers the merchant address at its end, without calling it.

    It follows what a browser follows by itself, redirects and refreshes, and no link: those wait for a person.

    Where no merchant address is known, the merchant's page being open still, the last page's own.

    `typed` is what the consumer types instead of what stands above, by field.
    """
    here = urlsplit(redirect_url).netloc
    with httpx.Client(trust_env=False, timeout=30) as client:
        answer = _follow(client, client.get(redirect_url), here)
        for _ in range(MOST_PAGES):
            if isinstance(answer, str):
                return answer
            page = _Page(answer.text)
            if not page.sandbox:
                said = f"{answer.status_code} {page.heading}".strip()
                raise CannotWalk(f"This is not a sandbox checkout (the address answers {said}).")
            if page.outcome:
                return _checked(page, outcome, str(answer.url))
            again = _target(answer.headers.get("refresh", ""))
            if again and answer.is_success:
                # A card is being charged: the page looks again by itself.
                time.sleep(1)
                answer = _follow(client, client.get(urljoin(str(answer.url), again)), here)
                continue
            if "phone" in typed and page.other_phone and page.offers_a_number:
                # The order names a number; the caller wants another one.
                answer = _follow(client, client.get(urljoin(str(answer.url), page.other_phone)), here)
                continue
            if not page.forms or answer.status_code >= httpx.codes.BAD_REQUEST:
                raise CannotWalk(f"The checkout says: {page.heading.strip() or answer.status_code}.")
            answer = _follow(client, _send(client, page, outcome, str(answer.url), typed), here)
    raise CannotWalk("The checkout did not come to an end.")


def _send(client: httpx.Client, page: _Page, outcome: str, url: str, typed: dict[str, str]) -> httpx.Response:
    wanted = "/leave" if outcome == "abandoned" else ""
    for action, fields in page.forms:
        if action.endswith("/leave") == bool(wanted) and not action.endswith("/resend"):
            answers = {**ANSWERS, "surname": SURNAMES.get(outcome, ""), **typed}
            filled = {name: answers.get(name, value) for name, value in fields.items()}
            return client.post(urljoin(url, action), data=filled)
    raise CannotWalk(f"The checkout cannot be {outcome} from here: {page.heading.strip()}.")


def _follow(client: httpx.Client, answer: httpx.Response, here: str) -> httpx.Response | str:
    """Follow redirects within the service; one that leads elsewhere is the end of the way."""
    while answer.is_redirect:
        target = urljoin(str(answer.url), answer.headers["location"])
        if urlsplit(target).netloc != here:
            return target
        answer = client.get(target)
    return answer


def _target(refresh: str) -> str | None:
    """Where a Refresh (header or meta element) leads: `3;url=/there`."""
    found = re.fullmatch(r"\s*[0-9]+\s*;\s*url=(.+)", refresh, re.IGNORECASE)
    return found[1] if found else None


def _checked(page: _Page, outcome: str, url: str) -> str:
    if page.outcome != outcome:
        raise CannotWalk(f"The checkout ended otherwise: {page.heading.strip()}.")
    if page.link and not page.refresh:
        raise CannotWalk(
            "The checkout ended, but its last page does not lead back to the merchant by itself."
        )
    # A merchant's page that stayed open has no address to go back to.
    return page.refresh or url
