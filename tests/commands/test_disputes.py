"""`cuota dispute`, as an operator uses it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota import config
from cuota.db.embedded.server import open_embedded
from cuota.flows.dispute.notice_return import notice_return
from cuota.run import runtime
from support.commands import Cuota, on_a_folder
from support.disputes import captured, charged_back, disputed
from support.own_service import opened_own


@dataclass(frozen=True)
class Sold:
    """Two merchants, and their captured orders of $100.00 by reference."""

    cuota: Cuota
    orders: dict[str, str]
    merchants: tuple[str, str]
    chargeback: str
    open_one: str


@pytest.fixture(scope="module")
def sold() -> Iterator[Sold]:
    with on_a_folder() as command, open_embedded(command.data) as embedded:
        yield asyncio.run(_sold(command, dict(embedded.dsn_kwargs)))


async def _sold(command: Cuota, where: dict[str, Any]) -> Sold:
    settings = config.load({"CUOTA_DATA_DIR": str(command.data)})
    await runtime.migrated(settings, where)
    async with opened_own(settings, where) as own:
        names = ["A-1", "A-2", "A-3", "A-4", "A-5", "A-6", "A-7", "TWICE"]
        made = {name: await captured(own.merchant, merchantReference=name) for name in names}
        await own.auto_merchant.approved("100.00", merchantReference="TWICE")
        await own.merchant.create("50.00", merchantReference="NEW")
        chargeback = await charged_back(own.merchant, made["A-4"], 2500)
        ids = own.merchant.merchant_id, UUID(made["A-5"]["orderId"])
        await notice_return(own.context, *ids, "UPS", "1Z999")
        still_open = await disputed(own.merchant, made["A-5"], 500, text="It\x1b[2J came broken.")
        return Sold(
            command,
            {name: order["orderId"] for name, order in made.items()},
            (own.merchant.name, own.auto_merchant.name),
            str(chargeback.dispute_id),
            str(still_open.dispute_id),
        )


def said(sold: Sold, *arguments: str) -> Any:
    done = sold.cuota("dispute", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(sold: Sold, *arguments: str, status: int = 1) -> str:
    done = sold.cuota("dispute", *arguments)
    assert (done.returncode, done.stdout) == (status, ""), done.stdout
    return done.stderr


OPEN = ("--reason", "not_received", "--amount", "20.00")


def test_a_dispute_is_opened_by_reference_and_decided_and_appealed(sold: Sold) -> None:
    opened = said(sold, "open", "A-1", *OPEN, "--text", "Nothing came.")
    assert (opened["orderId"], opened["status"], opened["openedBy"]) == (
        sold.orders["A-1"],
        "open",
        "operator",
    )
    assert (opened["amount"], opened["withheld"], opened["reason"]) == ("20.00", "20.00", "not_received")
    assert [(each["party"], each["text"]) for each in opened["statements"]] == [("operator", "Nothing came.")]
    dispute = opened["disputeId"]
    lost = said(sold, "decide", dispute, "--for", "consumer")
    assert (lost["status"], lost["final"]) == ("lost", False)
    assert lost["decidedAt"] < lost["appealBy"]
    appealed = said(sold, "appeal", dispute, "--by", "merchant", "--text", "It did come.")
    assert (appealed["status"], appealed["appealedBy"]) == ("appealed", "merchant")
    assert "WAITS FOR YOUR DECISION" in sold.cuota("dispute", "show", dispute).stdout
    won = said(sold, "decide", dispute, "--for", "merchant")
    assert (won["status"], won["final"], won["appealBy"]) == ("won", True, None)
    assert "is won; this is not possible now." in refused(sold, "decide", dispute, "--for", "consumer")


def test_a_dispute_is_accepted_twice_with_the_same_result(sold: Sold) -> None:
    dispute = said(sold, "open", sold.orders["A-2"], *OPEN)["disputeId"]
    first, second = (said(sold, "accept", dispute) for _ in range(2))
    assert first == second
    assert (first["status"], first["final"]) == ("lost", True)
    text = sold.cuota("dispute", "accept", dispute).stdout
    assert "Status: lost (final; the money moves at once). Withheld from the merchant now: $20.00" in text
    assert "Opened for the consumer by the payment provider." in text


def merchant_log(sold: Sold, count: int) -> list[tuple[str, dict[str, str]]]:
    """Return the newest entries of the merchant's own audit log, the oldest first."""
    done = sold.cuota("desk", "log", "--merchant", sold.merchants[0], "--limit", str(count), "--json")
    return [(each["action"], each["after"]) for each in reversed(json.loads(done.stdout))]


def test_a_dispute_that_is_accepted_for_a_merchant_is_in_the_merchant_s_own_log(sold: Sold) -> None:
    dispute = said(sold, "open", sold.orders["A-6"], *OPEN)["disputeId"]
    assert said(sold, "accept", dispute)["status"] == "lost"
    assert merchant_log(sold, 1) == [("dispute.accept", {"dispute": dispute})]


def test_each_step_of_the_operator_in_a_dispute_is_in_the_merchant_s_own_log(sold: Sold) -> None:
    dispute = said(sold, "open", sold.orders["A-7"], *OPEN, "--text", "Ann says that nothing came.")[
        "disputeId"
    ]
    said(sold, "decide", dispute, "--for", "consumer")
    said(sold, "appeal", dispute, "--by", "merchant", "--text", "It did come.")
    assert merchant_log(sold, 3) == [
        ("dispute.open", {"dispute": dispute, "amount": "20.00"}),
        ("dispute.decide", {"dispute": dispute, "for": "consumer"}),
        ("dispute.appeal", {"dispute": dispute, "by": "merchant"}),
    ]
    refused(sold, "appeal", dispute, "--by", "merchant", "--text", "It did come.")
    assert merchant_log(sold, 1) == [("dispute.appeal", {"dispute": dispute, "by": "merchant"})]


def test_disputes_are_listed_newest_first_by_status_and_merchant(sold: Sold) -> None:
    everything = said(sold, "list")["disputes"]
    assert [each["disputeId"] for each in everything[-2:]] == [sold.open_one, sold.chargeback]
    assert all(each["merchant"] == sold.merchants[0] for each in everything)
    found = said(sold, "list", "--status", "open", "--merchant", sold.merchants[0])["disputes"]
    assert [(each["kind"], each["amount"]) for each in found[-2:]] == [
        ("dispute", "5.00"),
        ("chargeback", "25.00"),
    ]
    assert "the merchant has until" in sold.cuota("dispute", "list", "--status", "open").stdout
    assert sold.cuota("dispute", "list", "--merchant", sold.merchants[1]).stdout == "No such disputes.\n"


def test_a_text_from_outside_cannot_control_the_terminal(sold: Sold) -> None:
    text = sold.cuota("dispute", "show", sold.open_one).stdout
    assert "The consumer wrote at" in text
    assert "It [2J came broken." in text
    assert "\x1b" not in text


def test_a_chargeback_names_the_payment_that_it_took_back(sold: Sold) -> None:
    assert said(sold, "show", sold.chargeback)["payment"] == 1
    assert (
        "The chargeback took back payment 1 of the plan"
        in sold.cuota("dispute", "show", sold.chargeback).stdout
    )
    assert said(sold, "show", sold.open_one)["payment"] is None


def test_the_card_network_decides_a_chargeback(sold: Sold) -> None:
    text = refused(sold, "decide", sold.chargeback, "--for", "merchant")
    assert "The card network decides a chargeback." in text
    assert "nobody can appeal here" in refused(
        sold, "appeal", sold.chargeback, "--by", "consumer", "--text", "x"
    )


def test_only_the_side_that_lost_can_appeal(sold: Sold) -> None:
    dispute = said(sold, "open", "A-3", *OPEN)["disputeId"]
    said(sold, "decide", dispute, "--for", "merchant")
    text = refused(sold, "appeal", dispute, "--by", "merchant", "--text", "x")
    assert "Only the side that lost can appeal." in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("open", "no-such", *OPEN), "There is no order no-such."),
        (("open", "TWICE", *OPEN), "2 orders have the reference TWICE. Choose one by its id:"),
        (("open", "NEW", *OPEN), "The consumer has not completed this order"),
        (("open", "A-5", *OPEN), "A dispute about this order is open already."),
        (("open", "A-4", "--reason", "not_mine", "--amount", "500"), "The amount must be between 0.01 and 75.00."),
        (("show", str(uuid4())), "`cuota dispute list` lists the disputes."),
        (("list", "--merchant", "Nobody"), "There is no merchant Nobody."),
    ],
)  # fmt: skip
def test_a_command_about_an_unknown_dispute_or_an_impossible_step_is_refused(
    sold: Sold, arguments: tuple[str, ...], text: str
) -> None:
    assert text in refused(sold, *arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("open", "A-1", "--reason", "not_received", "--amount", "20.005"), "20.005 is not an amount: it must have at most 2 decimal places"),
        (("open", "A-1", "--reason", "not_received", "--amount", "0"), "it must be greater than 0"),
        (("open", "A-1", "--reason", "not_received", "--amount", "-5"), "-5 is not an amount: it must be greater than 0"),
        (("open", "A-1", "--reason", "not_received", "--amount", "1,000"), "1,000 is not an amount"),
        (("open", "A-1", "--reason", "other", "--amount", "1"), "invalid choice: "),
        (("open", "A-1", "--amount", "1"), "--reason"),
        (("decide", "x", "--for", "consumer"), "x is not the id of a dispute. cuota dispute list shows the ids"),
        (("decide", str(uuid4()), "--for", "us"), "us is not a side: give consumer or merchant"),
        (("list", "--status", "done"), "invalid choice: 'done'"),
    ],
)  # fmt: skip
def test_the_error_names_a_wrong_argument(sold: Sold, arguments: tuple[str, ...], text: str) -> None:
    assert text in refused(sold, *arguments, status=2)


def test_explain_shows_the_disputes_and_the_return_notices_of_an_order(sold: Sold) -> None:
    done = sold.cuota("explain", "order", "A-5", "--json")
    facts = json.loads(done.stdout)
    (dispute,) = facts["disputes"]
    assert (dispute["disputeId"], dispute["status"], dispute["withheld"]) == (sold.open_one, "open", "5.00")
    (notice,) = facts["returns"]
    assert (notice["carrier"], notice["trackingNumber"], notice["endedAt"]) == ("UPS", "1Z999", None)
    text = sold.cuota("explain", "order", "A-5").stdout
    assert f"Dispute {sold.open_one}: $5.00, not_received, open (the merchant has until" in text
    assert "The consumer sent the goods back (UPS 1Z999)" in text
    assert "dispute.opened" in text
    without = json.loads(sold.cuota("explain", "order", "NEW", "--json").stdout)
    assert (without["disputes"], without["returns"]) == ([], [])
