"""`cuota review`, and what other commands say of orders that a policy refers to a person."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cuota import config
from cuota.core.sandbox import REFERRED_SURNAME
from cuota.db.embedded.server import open_embedded
from cuota.run import runtime
from support.commands import Cuota, on_a_folder
from support.makers import PROFILE, complete
from support.own_service import opened_own
from support.phones import phone_number
from support.reviews import referring


@dataclass(frozen=True)
class Waiting:
    """Orders that wait for a person, by their references."""

    cuota: Cuota
    orders: dict[str, str]
    merchant: str


@pytest.fixture(scope="module")
def waiting() -> Iterator[Waiting]:
    with on_a_folder() as command, open_embedded(command.data) as embedded:
        yield asyncio.run(_waiting(command, dict(embedded.dsn_kwargs)))


async def _waiting(command: Cuota, where: dict[str, Any]) -> Waiting:
    settings = config.load({"CUOTA_DATA_DIR": str(command.data)})
    await runtime.migrated(settings, where)
    async with opened_own(settings, where) as own:
        orders, person = {}, replace(PROFILE, surname=REFERRED_SURNAME)
        for name in ("A-1", "A-2", "A-3"):
            order = await own.merchant.create("120.00", merchantReference=name)
            ids = own.merchant.merchant_id, order
            done = await complete(own.service, *ids, profile=person, phone=phone_number())
            assert done.review == "waiting"
            orders[name] = order["orderId"]
        await own.merchant.create("50.00", merchantReference="NEW")
        return Waiting(command, orders, own.merchant.name)


def said(waiting: Waiting, *arguments: str) -> Any:
    done = waiting.cuota(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_waits_is_listed_and_answered_and_the_second_answer_is_told(waiting: Waiting) -> None:
    listed = said(waiting, "review", "list")["reviews"]
    assert [each["orderId"] for each in listed] == list(waiting.orders.values())
    assert listed[0]["state"] == "waiting"
    assert (listed[0]["amount"], listed[0]["merchantReference"]) == ("120.00", "A-1")
    approved = said(waiting, "review", "approve", "A-1", "--reason", "known  customer")
    assert (approved["orderStatus"], approved["review"]) == ("Created", "approved")
    declined = said(waiting, "review", "decline", waiting.orders["A-2"], "--reason", "not the owner")
    assert (declined["orderStatus"], declined["review"]) == ("Declined", "declined")
    late = waiting.cuota("review", "decline", "A-1", "--reason", "too late")
    assert (late.returncode, late.stdout) == (1, "")
    assert "has approved this order already. Nothing was changed." in late.stderr
    assert [each["orderId"] for each in said(waiting, "review", "list")["reviews"]] == [waiting.orders["A-3"]]
    ended = said(waiting, "review", "list", "--state", "approved", "--merchant", waiting.merchant)["reviews"]
    assert [(each["reason"], each["answeredBy"][:12]) for each in ended] == [
        ("known customer", "command line")
    ]
    log = waiting.cuota("desk", "log")
    assert "review.approve" in log.stdout
    assert "review.decline.refused" in log.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        (("approve", "NEW", "--reason", "r"), 1, "was never referred to a person"),
        (("approve", "NONE", "--reason", "r"), 1, "There is no order NONE"),
        (("approve", "A-3"), 2, "--reason"),
        (("approve", "A-3", "--reason", " "), 2, "give a reason"),
        (("list", "--state", "gone"), 2, "invalid choice"),
        (("list", "--merchant", "nobody"), 1, "nobody"),
    ],
)
def test_a_wrong_use_is_told_and_changes_nothing(
    waiting: Waiting, arguments: tuple[str, ...], status: int, named: str
) -> None:
    done = waiting.cuota("review", *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert named in done.stderr


def test_explain_replay_and_verify_know_what_was_referred(waiting: Waiting) -> None:
    facts = said(waiting, "explain", "order", "A-3")
    assert facts["review"]["state"] == "waiting"
    assert facts["decisions"] == []
    assert "REFERRED by policy" in waiting.cuota("explain", "order", "A-3").stdout
    done = waiting.cuota("decide", "--replay")
    assert done.returncode == 0, done.stdout
    assert "3 referrals repeated; 0 differ." in done.stdout
    assert waiting.cuota("verify").returncode == 0


def test_a_policy_that_refers_is_checked_and_simulated(waiting: Waiting, tmp_path: Path) -> None:
    file = tmp_path / "refer.toml"
    file.write_text(referring(600, 500))
    checked = waiting.cuota("policy", "check", str(file))
    assert "An order with 500 or more is referred to a person." in checked.stdout
    assert "has the score 596: referred (" in checked.stdout
    facts = said(waiting, "policy", "check", str(file))
    assert (facts["referFrom"], facts["newConsumer"]["outcome"]) == (500, "referred")
    simulated = waiting.cuota("policy", "simulate", str(file), "--since", "1d")
    assert "tests-refer refers" in simulated.stdout
    tallies = said(waiting, "policy", "simulate", str(file), "--since", "1d")
    assert set(tallies["would"]) == {"approve", "decline", "refer"}
    assert tallies["was"]["referred"]["orders"] >= 1


def test_an_empty_list_says_that_no_order_waits(cuota: Cuota) -> None:
    assert cuota("review", "list").stdout == "No order waits for a review.\n"
    assert cuota("review", "list", "--state", "approved").stdout == "No such reviews.\n"
