"""core/plan/notice: the text of each message, and the parts of the plan that it contains."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from zoneinfo import ZoneInfo

import pytest

from cuota.core.dates import day
from cuota.core.order.movement import MovementKind
from cuota.core.order.refund import refund
from cuota.core.plan import collection
from cuota.core.plan.card import PlanCard
from cuota.core.plan.charge import Origin
from cuota.core.plan.notice import Notice, NoticeKind, PlanStanding
from cuota.core.plan.notice_words import About, words
from cuota.core.plan.payday import Days, timed
from support.core.values import MOVEMENT, NOW, TODAY, approved, asked, charge_id, ids, plan

ZONE = ZoneInfo("America/New_York")
ABOUT = About(
    "Alder & Oak", "A-7", "USD", "https://pay.example/account", "Visa ending 4242",
    {charge_id(1): "Visa ending 4242", charge_id(2): "Mastercard ending 4444"},
)  # fmt: skip
LEFT = PlanStanding(left=((date(2026, 12, 19), 1500),))


def notice(kind: NoticeKind, standing: PlanStanding | None = LEFT, amount: int = 2500) -> Notice:
    return Notice(MOVEMENT, kind, 2, amount, TODAY, NOW, standing)


# Notices about an order that has no plan.
WITHOUT_PLAN = (NoticeKind.DECLINED, NoticeKind.REVIEW_APPROVED, NoticeKind.REVIEW_DECLINED)


@pytest.mark.parametrize("kind", [kind for kind in NoticeKind if kind not in WITHOUT_PLAN])
def test_every_notice_names_the_shop_the_order_and_the_way_to_the_plan(kind: NoticeKind) -> None:
    said = words(notice(kind), ABOUT)
    for part in ("Alder & Oak", "order A-7", "https://pay.example/account"):
        assert part in said.text
    assert "cancelled" not in f"{said.subject} {said.text}"


@pytest.mark.parametrize("kind", [NoticeKind.REVIEW_APPROVED, NoticeKind.REVIEW_DECLINED])
def test_the_answer_of_a_reviewer_names_the_shop_and_the_order_and_that_nothing_was_charged(
    kind: NoticeKind,
) -> None:
    said = words(notice(kind), replace(ABOUT, checkout="https://pay.example/checkout/1", until="3:30 PM"))
    for part in ("Alder & Oak", "order A-7", "$25.00", "Nothing was charged"):
        assert part in said.text
    is_approved = kind is NoticeKind.REVIEW_APPROVED
    assert ("https://pay.example/checkout/1" in said.text and "by 3:30 PM" in said.text) == is_approved


@pytest.mark.parametrize(
    "kind", [NoticeKind.REFUNDED, NoticeKind.VOIDED, NoticeKind.EXPIRED, NoticeKind.PAYMENT_RECEIVED, NoticeKind.PLAN_STARTED]
)  # fmt: skip
def test_a_notice_about_moved_money_names_the_amount_the_card_and_the_remaining_payments(
    kind: NoticeKind,
) -> None:
    text = words(notice(kind), ABOUT).text
    assert "$25.00" in text
    assert f"Still to pay, by Visa ending 4242: $15.00 on {day(date(2026, 12, 19))}." in text


def test_money_that_goes_back_to_two_cards_is_named_by_card() -> None:
    back = PlanStanding(back=((charge_id(2), 2500), (charge_id(1), 1000)))
    text = words(notice(NoticeKind.REFUNDED, back), ABOUT).text
    assert "We are sending back $25.00 to Mastercard ending 4444 and $10.00 to Visa ending 4242." in text
    assert "Nothing is left to pay." in text
    assert "has changed" not in text


def test_a_notice_about_a_void_says_that_the_plan_has_changed() -> None:
    assert "Your plan has changed" in words(notice(NoticeKind.VOIDED), ABOUT).text


def test_a_notice_says_whether_the_merchant_refunded_canceled_or_did_not_ship_in_time() -> None:
    said = {kind: words(notice(kind), ABOUT).text for kind in (NoticeKind.REFUNDED, NoticeKind.VOIDED, NoticeKind.EXPIRED)}  # fmt: skip
    assert said[NoticeKind.REFUNDED].startswith("Alder & Oak refunded $25.00")
    assert said[NoticeKind.VOIDED].startswith("Alder & Oak canceled $25.00")
    assert said[NoticeKind.EXPIRED].startswith("Alder & Oak did not ship in time")


def test_a_notice_also_reads_well_without_an_order_number_and_a_known_card() -> None:
    bare = replace(ABOUT, reference="", card="", cards={})
    said = words(notice(NoticeKind.CARD_NEEDED), bare).text
    assert "Your card cannot pay $25.00: payment 2 of 4 for your order at Alder & Oak." in said


def test_the_agreement_is_in_the_mail_and_not_in_the_text_message() -> None:
    said = words(notice(NoticeKind.PLAN_STARTED), replace(ABOUT, agreement="All of it.\n\nEvery word."))
    assert "Every word." in said.attached
    assert "Every word." not in said.text
    assert words(notice(NoticeKind.REFUNDED), ABOUT).attached == ""


def test_a_notice_of_the_previous_release_says_when_the_next_payment_is_due() -> None:
    text = words(notice(NoticeKind.PLAN_STARTED, None), ABOUT).text
    assert f"The next is due on {day(TODAY)}." in text


def test_the_last_receipt_says_that_the_plan_is_paid_off_and_the_others_name_the_remaining_payments() -> None:
    card = PlanCard("card_token", "visa", "4242")
    for paid, number, kind, left in (
        ((1, 2), 3, NoticeKind.PAYMENT_RECEIVED, 1),
        ((1, 2, 3), 4, NoticeKind.PLAN_PAID_OFF, 0),
    ):
        agreed = timed(plan(paid=paid), ZONE, NOW)
        begun = collection.begin(approved(captured=10_000), agreed, number, card, charge_id(number), NOW)
        assert begun is not None
        assert begun.charge is not None
        (told,) = collection.paid(begun.order, agreed, begun.charge, ZONE, NOW, ids()).notices
        assert told.kind is kind
        assert told.standing is not None
        assert len(told.standing.left) == left


def test_if_a_refund_reduces_a_payment_during_its_charge_the_receipt_says_that_the_excess_goes_back() -> None:
    agreed = timed(plan(), ZONE, NOW)
    due = Days(ZONE).charge_at(agreed[1].due_on)
    card = PlanCard("card_token", "visa", "4242")
    begun = collection.begin(approved(captured=10_000), agreed, None, card, charge_id(2), due)
    assert begun is not None
    assert begun.charge is not None
    assert begun.charge.origin is Origin.SCHEDULE
    cut = refund(begun.order, agreed, asked(MovementKind.REFUND, 6000), MOVEMENT, due, ids())
    assert cut.notices[0].standing == PlanStanding(left=((agreed[1].due_on, 1500),))
    after = {item.number: item for item in (*agreed, *cut.installments)}
    paid = collection.paid(cut.order, list(after.values()), begun.charge, ZONE, due, ids())
    assert paid.notices[0].standing == PlanStanding(back=((charge_id(2), 1000),))


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (NoticeKind.DISPUTE_OPENED, ("dispute of $25.00", "we charge you nothing", f"until {day(TODAY)} to answer")),
        (NoticeKind.DISPUTE_UPHELD, ("We decided for you: $25.00", f"can appeal until {day(TODAY)}")),
        (NoticeKind.DISPUTE_REJECTED, ("We decided for Alder & Oak", f"appeal once, until {day(TODAY)}")),
        (NoticeKind.DISPUTE_APPEALED, ("Alder & Oak has appealed", "nothing is charged meanwhile")),
        (NoticeKind.DISPUTE_ENDED, ("is closed", "$25.00 is refunded", "$15.00", day(date(2026, 12, 19)))),
        (NoticeKind.RETURN_NOTED, ("sent your order A-7", f"Your payment of $25.00 waits until {day(TODAY)}, or until the refund")),
    ],
)  # fmt: skip
def test_a_message_about_a_dispute_says_what_happened_and_the_deadline(
    kind: NoticeKind, parts: tuple[str, ...]
) -> None:
    said = words(notice(kind), ABOUT)
    for part in parts:
        assert part in said.text, said.text


def test_a_dispute_that_ends_without_a_refund_names_no_refund() -> None:
    said = words(notice(NoticeKind.DISPUTE_ENDED, amount=0), ABOUT)
    assert "refunded" not in said.text
    assert "$15.00" in said.text
