"""A fault at each step of a review: the referral, the answer of a person or of the job, and the second confirmation."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from cuota.commands.checkout_walker import CannotWalk, walk
from support.faults.struck_shop import ACTIONS, HANG_SECONDS, Shop, struck_shop
from support.long_run import LONG

pytestmark = pytest.mark.faults

SAVE = "save_reviewed("
SAVING = {"before it is saved": ("before", "sql", SAVE), "after it is saved": ("after", "sql", SAVE)}
REFERRING = {
    "before the limit is reserved": ("before", "sql", "reserve_exposure("),
    **SAVING,
    "before the reservation is deleted": ("before", "sql", "finish_reservation("),
    "before the page is shown": ("before", "answer", "/pay"),
}
ANSWERING = {
    "before the answer is logged": ("before", "sql", "INSERT INTO operator_log"),
    "after the answer is logged": ("after", "sql", "INSERT INTO operator_log"),
    **SAVING,
    "before the reviewer sees it": ("before", "answer", "POST /operator/risk/reviews/"),
}
CONFIRMING = {
    "before the charge is saved": ("before", "sql", "writes charges;"),
    "after the card has paid": ("after", "call", "SandboxCardRail.charge"),
    "after the approval is saved": ("after", "sql", "writes charges_settled;"),
}
SENDING = {
    "before the message is sent": ("before", "call", "SandboxMessageRail.send"),
    "after the message is sent": ("after", "call", "SandboxMessageRail.send"),
}
STATE = "SELECT state FROM reviews WHERE order_id = $1::text::uuid"
TOLD = "SELECT array_agg(type ORDER BY sequence) FROM events WHERE order_id = $1::text::uuid"
KINDS = "SELECT array_agg(kind ORDER BY kind) FROM messages WHERE order_id = $1::text::uuid"
PAID = """SELECT count(*) FROM charges c JOIN card_simulator.charges s ON s.key = c.charge_id
    WHERE c.order_id = $1::text::uuid AND s.approved"""
WAITS = "SELECT count(*) = 0 FROM messages WHERE order_id = $1::text::uuid AND state = 'pending'"
TEXTS = """SELECT count(*) FROM message_simulator.inbox WHERE channel = 'text' AND recipient = $1
    AND text LIKE '%You can complete your%'"""


def cases(moments: dict[str, tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Each moment with a kill. `make faults` combines each moment with all faults."""
    return [(moment, action) for moment in moments for action in ACTIONS if LONG or action == "kill"]


@dataclass
class Reviewed:
    """A shop whose consumers are referred by the test name, and a reviewer in a browser."""

    shop: Shop
    reviewer: httpx.Client

    def walked(self, order: dict[str, str], outcome: str, phone: str, until: str) -> None:
        """Let the consumer go through the pages, again and again, until a statement returns true."""
        deadline = time.monotonic() + 120
        while not self.shop.books.one(until, order["orderId"]):
            assert time.monotonic() < deadline, "waited in vain"
            with contextlib.suppress(httpx.HTTPError, CannotWalk):
                walk(order["redirectUrl"], outcome, phone=phone, surname="Refertest")
            if self.shop.books.one(
                "SELECT charging IS NOT NULL FROM orders WHERE order_id = $1::text::uuid", order["orderId"]
            ):
                # A charge without an answer is looked up after a while. Let that time pass at once.
                self.shop.later("20 seconds")

    def referred(self) -> tuple[dict[str, str], str]:
        order, phone = self.shop.order(), f"212{secrets.randbelow(8_000_000) + 2_000_000}"
        self.walked(
            order, "referred", phone, "SELECT review = 'waiting' FROM orders WHERE order_id = $1::text::uuid"
        )
        return order, phone

    def answer(self, order: dict[str, str], answer: str) -> None:
        """Answer as a person does, who sends the form again if there was no answer."""
        address = f"/operator/risk/reviews/{order['orderId']}"
        deadline = time.monotonic() + 120
        while True:
            assert time.monotonic() < deadline, "no definite answer"
            with contextlib.suppress(httpx.TransportError):
                fields = {"answer": answer, "reason": "known"}
                sent = self.reviewer.post(address, data={**fields, "csrf": self.csrf(address)})
                if sent.status_code == 303:
                    return
                assert sent.status_code >= 500, sent.text
            time.sleep(0.05)

    def csrf(self, address: str) -> str:
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', self.reviewer.get(address).text)
        return found[1] if found else ""


@pytest.fixture(scope="module")
def reviewed() -> Iterator[Reviewed]:
    """A separate service, because these tests move its clock."""
    with struck_shop() as shop, httpx.Client(base_url=shop.service.url, trust_env=False) as reviewer:
        shop.later("1 second")
        printed = shop.service.run("desk", "link", "--operator", "--role", "risk").stdout
        link = re.search(r"http\S+", printed)
        assert link is not None, printed
        made = Reviewed(shop, reviewer)
        assert reviewer.post(link[0], data={"csrf": made.csrf(link[0])}).status_code == 303
        yield made


@pytest.mark.parametrize(("moment", "action"), cases(REFERRING))
def test_an_order_is_referred_once_whatever_happens_at_that_moment(
    reviewed: Reviewed, moment: str, action: str
) -> None:
    reviewed.shop.service.arm(*REFERRING[moment], action, HANG_SECONDS)
    order, _ = reviewed.referred()
    reviewed.shop.service.wait_for_strike()
    books = reviewed.shop.books
    assert books.one(STATE, order["orderId"]) == "waiting"
    assert books.one(TOLD, order["orderId"]) == ["order.created"]
    assert books.one("SELECT count(*) FROM charges WHERE order_id = $1::text::uuid", order["orderId"]) == 0


@pytest.mark.parametrize("answer", ["approve", "decline"])
@pytest.mark.parametrize(("moment", "action"), cases(ANSWERING))
def test_an_answer_counts_once_whatever_happens_at_that_moment(
    reviewed: Reviewed, moment: str, action: str, answer: str
) -> None:
    order, _ = reviewed.referred()
    reviewed.shop.service.arm(*ANSWERING[moment], action, HANG_SECONDS)
    reviewed.answer(order, answer)
    reviewed.shop.service.wait_for_strike()
    books, declined = reviewed.shop.books, answer == "decline"
    assert books.one(STATE, order["orderId"]) == ("declined" if declined else "approved")
    assert books.one(TOLD, order["orderId"]) == ["order.created", *(["order.declined"] if declined else [])]
    expected = ["declined", "review_declined"] if declined else ["review_approved"]
    assert books.one(KINDS, order["orderId"]) == expected
    reviewed.shop.until(WAITS, order["orderId"])


@pytest.mark.parametrize(("moment", "action"), cases(SAVING))
def test_the_job_declines_what_nobody_answered_once_whatever_happens_at_that_moment(
    reviewed: Reviewed, moment: str, action: str
) -> None:
    order, _ = reviewed.referred()
    reviewed.shop.service.arm(*SAVING[moment], action, HANG_SECONDS)
    reviewed.shop.later("51 minutes")
    reviewed.shop.service.wait_for_strike()
    reviewed.shop.until(
        "SELECT status = 'Declined' FROM orders WHERE order_id = $1::text::uuid", order["orderId"]
    )
    assert reviewed.shop.books.one(STATE, order["orderId"]) == "unanswered"
    assert reviewed.shop.books.one(TOLD, order["orderId"]) == ["order.created", "order.declined"]
    assert reviewed.shop.books.one(KINDS, order["orderId"]) == ["declined", "review_declined"]


@pytest.mark.parametrize(("moment", "action"), cases(CONFIRMING))
def test_after_an_approval_the_consumer_pays_once_whatever_happens_at_that_moment(
    reviewed: Reviewed, moment: str, action: str
) -> None:
    order, phone = reviewed.referred()
    reviewed.answer(order, "approve")
    reviewed.shop.service.arm(*CONFIRMING[moment], action, HANG_SECONDS)
    reviewed.walked(
        order, "approved", phone, "SELECT status = 'Approved' FROM orders WHERE order_id = $1::text::uuid"
    )
    reviewed.shop.service.wait_for_strike()
    assert reviewed.shop.books.one(PAID, order["orderId"]) == 1
    assert reviewed.shop.books.one(STATE, order["orderId"]) == "approved"


@pytest.mark.parametrize(("moment", "action"), cases(SENDING))
def test_the_message_with_the_link_arrives_whatever_happens_at_that_moment(
    reviewed: Reviewed, moment: str, action: str
) -> None:
    order, phone = reviewed.referred()
    reviewed.shop.until("SELECT count(*) = 0 FROM messages WHERE state = 'pending'")
    reviewed.shop.service.arm(*SENDING[moment], action, HANG_SECONDS)
    reviewed.answer(order, "approve")
    reviewed.shop.service.wait_for_strike()
    # The lease of a claim ends after a minute.
    reviewed.shop.later("2 minutes")
    reviewed.shop.until(WAITS, order["orderId"])
    # The simulated rail stores a message once for each key.
    assert reviewed.shop.books.one(TEXTS, phone) == 1


def test_after_all_of_it_the_books_agree(reviewed: Reviewed) -> None:
    reviewed.shop.books.rows("UPDATE consumer_reservations SET expires_at = now()")
    reviewed.shop.until("SELECT NOT EXISTS (SELECT FROM consumer_reservations)")
    reviewed.shop.verified()
    replayed = reviewed.shop.service.run("decide", "--replay")
    assert replayed.returncode == 0, replayed.stdout
