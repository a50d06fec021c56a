"""`cuota sandbox complete`: completes a checkout through the hosted pages, over HTTP, like a browser without JavaScript.

It uses only what a consumer's browser can use, so that it tests the real pages.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx

from cuota.core.expected_failure import ExpectedFailure
from cuota.core.sandbox import APPROVED_SURNAME, CODE, DECLINED_SURNAME, REFERRED_SURNAME, TEST_CARDS

REFERRED = "referred"
SURNAMES = {"approved": APPROVED_SURNAME, "declined": DECLINED_SURNAME, REFERRED: REFERRED_SURNAME}
ANSWERS = {
    "phone": "2125550142", "code": CODE, "given_names": "Sam",
    "address_line1": "1 Main Street", "address_line2": "", "city": "Springfield", "state": "NY",
    "postcode": "10001", "card_number": TEST_CARDS[0].number, "card_expiry": "12/39", "card_cvc": "123",
    "agree": "yes",
}  # fmt: skip
MOST_PAGES = 20
# A page that reloads itself is read again after a pause. The sandbox's slowest card pays after a minute.
PAUSE_SECONDS = 1.0
MOST_WAITS = 90


class CannotWalk(ExpectedFailure):
    """The pages did not lead to the requested outcome. The text says what they showed instead."""


class FormPage(HTMLParser):
    """A page as a browser without JavaScript sees it: its forms, its primary link, and its automatic redirect."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.link: str | None = None
        self.other_phone: str | None = None
        self.refresh: str | None = None
        self.sandbox = False
        self.outcome: str | None = None
        self.heading = ""
        self.errors: list[str] = []
        self._in_heading = self._in_error = self._unseen = False
        self.feed(html)

    @property
    def words(self) -> str:
        """The heading, and the errors that the page shows at its fields."""
        shown = [" ".join(each.split()) for each in (self.heading, *self.errors)]
        return " ".join(each if each[-1] in ".?!" else f"{each}." for each in shown if each)

    @property
    def offers_a_number(self) -> bool:
        """True if this is the phone page that shows a number to confirm and has no field for another number."""
        return any(action.endswith("/phone") and "phone" not in fields for action, fields in self.forms)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record forms with their fields, links, the sandbox's mark, and the outcome."""
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
        elif tag == "p" and given.get("class") == "error":
            self._in_error = True
            self.errors.append("")
        elif tag == "span" and given.get("class") == "vh":
            self._unseen = True
        classes = given.get("class", "").split()
        self.sandbox = self.sandbox or "sandbox" in classes
        if "mark" in classes:
            self.outcome = next((name for name in classes if name != "mark"), None)

    def handle_data(self, data: str) -> None:
        """Record the text of the heading and of the errors, without the words for screen readers only."""
        if self._in_heading:
            self.heading += data
        elif self._in_error and not self._unseen:
            self.errors[-1] += data

    def handle_endtag(self, tag: str) -> None:
        """Record the end of the heading, and of an error."""
        if tag == "h1":
            self._in_heading = False
        elif tag == "p":
            self._in_error = False
        elif tag == "span":
            self._unseen = False


def _nothing() -> None:
    """Do nothing before the next card."""


def walk(
    redirect_url: str, outcome: str, before_retry: Callable[[], None] = _nothing, /, **typed: str
) -> str:
    """Complete the checkout at a redirectUrl, and return the merchant's address to which its last page leads.

    The merchant's address is not called. If the merchant's page is still open in the browser, the checkout has no address to
    return to; then this returns the address of the last page. Like a browser, the function follows redirects and refreshes, but
    does not click links. An order that is `referred` is left waiting; then this returns the address of its page. `typed` replaces
    values of ANSWERS, by field name. `before_retry` is called before a declined card is tried again. Raises CannotWalk, and httpx
    errors if the service cannot be reached.
    """
    here, paid, mail = urlsplit(redirect_url).netloc, False, _mail_of(redirect_url)
    with httpx.Client(trust_env=False, timeout=30) as client:
        answer = _settled(client, client.get(redirect_url), here)
        for _ in range(MOST_PAGES):
            if isinstance(answer, str):
                return answer
            page = FormPage(answer.text)
            if not page.sandbox:
                shown = f"{answer.status_code} {page.heading}".strip()
                raise CannotWalk(f"This address is not a sandbox checkout. It answered: {shown}.")
            if page.outcome:
                return _checked(page, outcome, str(answer.url))
            if "phone" in typed and page.other_phone and page.offers_a_number:
                # The order contains a phone number, but the caller gave another one.
                answer = _settled(client, client.get(urljoin(str(answer.url), page.other_phone)), here)
                continue
            if not page.forms or answer.status_code >= httpx.codes.BAD_REQUEST:
                raise CannotWalk(f"The checkout showed: {page.words or answer.status_code}")
            asks_card = any("card_number" in fields for _, fields in page.forms)
            if asks_card and paid:
                before_retry()
            paid = paid or asks_card
            answer = _settled(client, _send(client, page, outcome, str(answer.url), mail, typed), here)
    raise CannotWalk(f"The checkout did not end within {MOST_PAGES} pages.")


def _mail_of(redirect_url: str) -> str:
    """Return a mail address for this order alone, so that the messages to two consumers never have the same recipient."""
    return f"sam.{hashlib.sha256(redirect_url.encode()).hexdigest()[:16]}@example.com"


def _send(
    client: httpx.Client, page: FormPage, outcome: str, url: str, mail: str, typed: dict[str, str]
) -> httpx.Response:
    """Send the page's form. The consumer's mail address stays if the page shows one, and is `mail` otherwise."""
    wanted = "/leave" if outcome == "abandoned" else ""
    for action, fields in page.forms:
        if action.endswith("/leave") == bool(wanted) and not action.endswith("/resend"):
            known = {"surname": SURNAMES.get(outcome, ""), "email": fields.get("email") or mail}
            answers = {**ANSWERS, **known, **typed}
            filled = {name: answers.get(name, value) for name, value in fields.items()}
            return client.post(urljoin(url, action), data=filled)
    raise CannotWalk(f"The checkout cannot be {outcome} at this step: {page.heading.strip()}.")


def _follow(client: httpx.Client, answer: httpx.Response, here: str) -> httpx.Response | str:
    """Follow redirects within the service. Return the address of a redirect that leaves the service, without calling it."""
    while answer.is_redirect:
        target = urljoin(str(answer.url), answer.headers["location"])
        if urlsplit(target).netloc != here:
            return target
        answer = client.get(target)
    return answer


def _settled(client: httpx.Client, answer: httpx.Response, here: str) -> httpx.Response | str:
    """Follow redirects. While a card is being charged, the page reloads itself: read it again until the result is known."""
    got = _follow(client, answer, here)
    for _ in range(MOST_WAITS):
        again = None if isinstance(got, str) else _target(got.headers.get("refresh", ""))
        # The last page leads to the merchant, which is not called.
        if isinstance(got, str) or not again or not got.is_success or FormPage(got.text).outcome:
            return got
        time.sleep(PAUSE_SECONDS)
        got = _follow(client, client.get(urljoin(str(got.url), again)), here)
    raise CannotWalk(f"The charge of the card had no result after {MOST_WAITS * PAUSE_SECONDS:.0f} seconds.")


def _target(refresh: str) -> str | None:
    """Return the address in a Refresh header or meta element, such as `/there` in `3;url=/there`."""
    found = re.fullmatch(r"\s*[0-9]+\s*;\s*url=(.+)", refresh, re.IGNORECASE)
    return found[1] if found else None


def _checked(page: FormPage, outcome: str, url: str) -> str:
    if page.outcome != outcome:
        raise CannotWalk(f"The checkout ended with another outcome: {page.heading.strip()}.")
    if page.link and not page.refresh and outcome != REFERRED:
        raise CannotWalk(
            "The checkout ended, but its last page does not redirect to the merchant automatically."
        )
    # If the merchant's page stayed open, the checkout has no address to return to.
    return page.refresh or url
