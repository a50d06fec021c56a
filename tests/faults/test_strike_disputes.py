"""A fault at each step of a dispute and of a chargeback: the money moves once, and each event is reported once."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from support.faults.struck_shop import ACTIONS, Shop, struck_shop
from support.long_run import LONG

pytestmark = pytest.mark.faults

SAVE = "save_claims("
SAVING = {
    "before the dispute is saved": ("before", "sql", SAVE),
    "after the dispute is saved": ("after", "sql", SAVE),
}
ACCEPTING = {**SAVING, "before the answer": ("before", "answer", "POST /disputes/")}
PROVING = {
    "before the file is stored": ("before", "sql", "INSERT INTO dispute_files"),
    "after the file is stored": ("after", "sql", "INSERT INTO dispute_files"),
    **SAVING,
}
CHARGED_BACK = {
    "before the event is stored": ("before", "sql", "INSERT INTO card_events"),
    "after the event is stored": ("after", "sql", "INSERT INTO card_events"),
    "after the event is claimed": ("after", "sql", "UPDATE card_events e SET try_at"),
    **SAVING,
    "before the event counts as applied": ("before", "sql", "UPDATE card_events SET applied_at"),
}
ANSWERING = {
    "before the answer is claimed": ("before", "sql", "UPDATE dispute_evidence e SET send_at"),
    "after the answer is claimed": ("after", "sql", "UPDATE dispute_evidence e SET send_at"),
    "before the processor has the answer": ("before", "call", "CardRails.answer_chargeback"),
    "after the processor has the answer": ("after", "call", "CardRails.answer_chargeback"),
    "before it counts as sent": ("before", "sql", "UPDATE dispute_evidence SET sent_at"),
}
POSTED = """SELECT coalesce(sum(amount), 0)::bigint FROM transfers WHERE order_id = $1::text::uuid AND posting = $2"""
STATUS = "SELECT status = $2 FROM disputes WHERE dispute_id = $1::text::uuid"
OUTCOME = "SELECT outcome = $2 FROM disputes WHERE order_id = $1::text::uuid"
OPENED = "SELECT count(*) = 1 FROM disputes WHERE order_id = $1::text::uuid"
DISPUTE = "SELECT dispute_id::text FROM disputes WHERE order_id = $1::text::uuid"
TOLD = "SELECT array_agg(type ORDER BY sequence) FROM events WHERE order_id = $1::text::uuid AND type LIKE 'dispute.%'"
# Change the order's card into the test card whose bank takes the payment back.
DISPUTED_CARD = """UPDATE card_simulator.cards SET behaviour = 'disputed' WHERE token IN (
    SELECT token FROM card_simulator.charges WHERE order_id = $1::text::uuid)"""


def cases(moments: dict[str, tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Combine each moment with a kill. `make faults` combines each moment with all faults."""
    return [(moment, action) for moment in moments for action in ACTIONS if LONG or action == "kill"]


@pytest.fixture(scope="module")
def disputed() -> Iterator[Shop]:
    """A separate service, because these tests move its clock by weeks."""
    with struck_shop() as made:
        made.later("1 second")
        yield made


def captured(shop: Shop) -> str:
    order = shop.completed()
    body = {"amount": "100.00", "merchantReference": "all"}
    assert shop.ask(f"/order/{order}/capture", body).status_code == 200
    return order


def opened(shop: Shop, order: str) -> str:
    made = shop.service.run("dispute", "open", order, "--reason", "not_received", "--amount", "40.00")
    assert made.returncode == 0, made.stderr
    return str(shop.books.one(DISPUTE, order))


def posted(shop: Shop, order: str, **expected: int) -> None:
    for posting, cents in expected.items():
        assert shop.books.one(POSTED, order, posting) == cents, posting


@pytest.mark.parametrize(("moment", "action"), cases(ACCEPTING))
def test_an_accepted_dispute_is_refunded_once_despite_a_fault_at_any_step(
    disputed: Shop, moment: str, action: str
) -> None:
    shop, order = disputed, captured(disputed)
    dispute = opened(shop, order)
    shop.arm(ACCEPTING[moment], action)
    answer = shop.ask(f"/disputes/{dispute}/accept", {})
    assert (answer.status_code, answer.json()["status"] in {"lost", "closed"}) == (200, True), answer.text
    shop.until(STATUS, dispute, "closed")
    posted(shop, order, dispute_withheld=4000, dispute_released=4000, dispute_lost=4000)
    assert shop.books.one(TOLD, order) == ["dispute.opened", "dispute.lost", "dispute.closed"]


@pytest.mark.parametrize(("moment", "action"), cases(SAVING))
@pytest.mark.parametrize("side", ["consumer", "merchant"])
def test_a_dispute_is_closed_once_despite_a_fault_at_any_step(
    disputed: Shop, moment: str, action: str, side: str
) -> None:
    shop, order = disputed, captured(disputed)
    dispute = opened(shop, order)
    assert shop.service.run("dispute", "decide", dispute, "--for", side).returncode == 0
    shop.arm(SAVING[moment], action)
    shop.later("11 days")
    shop.service.wait_for_strike()
    shop.until(STATUS, dispute, "closed")
    lost = 4000 if side == "consumer" else 0
    posted(shop, order, dispute_withheld=4000, dispute_released=4000, dispute_lost=lost)


@pytest.mark.parametrize(("moment", "action"), cases(PROVING))
def test_evidence_is_stored_once_and_never_in_part(disputed: Shop, moment: str, action: str) -> None:
    shop, order = disputed, captured(disputed)
    dispute = opened(shop, order)
    shop.arm(PROVING[moment], action)
    file = {"name": "proof.txt", "content": base64.b64encode(b"signed").decode()}
    body = {"text": "It was delivered.", "files": [file]}
    answer = shop.ask(f"/disputes/{dispute}/evidence", body, key=f"key-{dispute}")
    assert answer.status_code == 200, answer.text
    shown = shop.http.get(f"/disputes/{dispute}").json()
    ours = [each for each in shown["statements"] if each["party"] == "merchant"]
    assert [[name["name"] for name in each["files"]] for each in ours] == [["proof.txt"]] * len(ours)
    # A request whose answer was lost may have been applied; its repetition under the same key adds no money.
    assert 1 <= len(ours) <= 2
    posted(shop, order, dispute_withheld=4000, dispute_released=0)


@pytest.mark.parametrize(("moment", "action"), cases(CHARGED_BACK))
def test_a_chargeback_is_booked_once_despite_a_fault_at_any_step(
    disputed: Shop, moment: str, action: str
) -> None:
    shop, order = disputed, captured(disputed)
    shop.books.rows(DISPUTED_CARD, order)
    shop.arm(CHARGED_BACK[moment], action)
    shop.later("7 days 1 hour")
    shop.service.wait_for_strike()
    # A dead worker's claim on the processor's events ends after five minutes, or a day of the sandbox's clock.
    shop.later("1 day 1 hour")
    shop.until(OPENED, order)
    posted(shop, order, dispute_withheld=2500, chargeback=2500)
    shop.later("10 days")
    shop.until(OUTCOME, order, "lost")
    posted(shop, order, chargeback=2500, dispute_released=2500, dispute_lost=2500, chargeback_loss=0)
    assert shop.books.one(TOLD, order)[0] == "dispute.opened"


@pytest.mark.parametrize(("moment", "action"), cases(ANSWERING))
def test_an_answer_to_a_chargeback_arrives_despite_a_fault_at_any_step(
    disputed: Shop, moment: str, action: str
) -> None:
    shop, order = disputed, captured(disputed)
    shop.books.rows(DISPUTED_CARD, order)
    shop.later("7 days 1 hour")
    shop.until(OPENED, order)
    dispute = str(shop.books.one(DISPUTE, order))
    shop.arm(ANSWERING[moment], action)
    answer = shop.ask(f"/disputes/{dispute}/evidence", {"text": "winning_evidence"}, key=f"key-{dispute}")
    assert answer.status_code == 200, answer.text
    shop.service.wait_for_strike()
    shop.later("3 minutes")
    shop.until(
        "SELECT sent_at IS NOT NULL FROM dispute_evidence WHERE dispute_id = $1::text::uuid AND party = 'merchant'",
        dispute,
    )
    shop.later("2 days")
    shop.until(OUTCOME, order, "won")
    posted(shop, order, chargeback=2500, chargeback_reversed=2500, dispute_released=2500, dispute_lost=0)


def test_after_all_faults_cuota_verify_finds_no_problem(disputed: Shop) -> None:
    disputed.verified()
    assert disputed.service.run("books").returncode == 0
