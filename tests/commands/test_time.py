"""`cuota time`, as an operator uses it."""

from __future__ import annotations

import base64
import json
import os
import re
from collections import Counter
from datetime import datetime, timedelta

import pytest

from cuota.commands.time import _named, _summary
from cuota.work.advance import WorkDone
from support.commands import Cuota

PRODUCTION = {
    "CUOTA_ENVIRONMENT": "production",
    "CUOTA_PUBLIC_URL": "https://pay.example",
    "CUOTA_SECRET_KEY": base64.b64encode(os.urandom(32)).decode(),
    "CUOTA_CREDITOR": "Acme Lending LLC, 1 Main Street",
    "CUOTA_CARD_RAIL": "bank.rails.CardRail",
    "CUOTA_MESSAGE_RAIL": "bank.rails.MessageRail",
}


def now(cuota: Cuota) -> datetime:
    return datetime.fromisoformat(json.loads(cuota("time", "--json").stdout)["now"])


def test_the_clock_is_shown_to_people_and_to_scripts(cuota: Cuota) -> None:
    shown = cuota("time")
    assert shown.returncode == 0
    assert "the real time" in shown.stdout
    facts = json.loads(cuota("time", "--json").stdout)
    assert set(facts) == {"now", "aheadSeconds", "moving", "next", "forks"}
    assert facts["moving"] is False


def test_an_advance_prints_the_time_before_and_after(cuota: Cuota) -> None:
    before = now(cuota)
    moved = json.loads(cuota("time", "advance", "36h", "--json").stdout)
    span = datetime.fromisoformat(moved["to"]) - datetime.fromisoformat(moved["from"])
    assert abs(span - timedelta(hours=36)) < timedelta(milliseconds=2)
    assert now(cuota) >= before + timedelta(hours=36)
    # Moving the clock takes a moment of real time, so the clock is behind by that moment.
    assert re.search(r"1 day, 1[12]:\d\d:\d\d ahead", cuota("time").stdout)
    assert "The service's clock is at" in cuota("time", "advance", "90m").stdout
    # --json also works before the command's name.
    assert json.loads(cuota("time", "--json", "advance", "1m").stdout)["stopped"] is False


def test_a_fork_is_created_listed_restored_and_dropped(cuota: Cuota) -> None:
    cuota("merchant", "create", "--name", "Before")
    taken = json.loads(cuota("time", "fork", "one", "--json").stdout)
    assert taken["rows"] >= 2
    cuota("merchant", "create", "--name", "After")
    cuota("time", "advance", "10d")
    assert "  one\n" in cuota("time").stdout
    back = cuota("time", "rewind", "one")
    assert back.returncode == 0
    assert taken["serviceTime"] in back.stdout
    names = [item["name"] for item in json.loads(cuota("merchant", "list", "--json").stdout)]
    assert "Before" in names
    assert "After" not in names
    assert timedelta(0) <= now(cuota) - datetime.fromisoformat(taken["serviceTime"]) < timedelta(minutes=1)
    assert cuota("time", "fork", "one").returncode == 1
    assert cuota("time", "fork", "one", "--replace").returncode == 0
    assert cuota("time", "forget", "one").returncode == 0
    gone = cuota("time", "rewind", "one")
    assert gone.returncode == 1
    assert "There is no fork one" in gone.stderr


@pytest.mark.parametrize("text", ["", "soon", "14", "-1d", "2026-02-30", "2026-12-25T09:30"])
def test_a_text_that_is_no_instant_is_a_usage_error(bare: Cuota, text: str) -> None:
    done = bare("time", "advance", f" {text}" if text.startswith("-") else text)
    assert done.returncode == 2
    assert "SPAN_OR_DATE" in done.stderr


@pytest.mark.parametrize(
    ("text", "why"), [("2020-01-01", "not later than the service's clock"), ("400w", "5 years")]
)
def test_an_impossible_instant_is_refused_and_the_clock_does_not_move(
    cuota: Cuota, text: str, why: str
) -> None:
    before = now(cuota)
    done = cuota("time", "advance", text)
    assert done.returncode == 1
    assert why in done.stderr
    assert now(cuota) - before < timedelta(minutes=1)


@pytest.mark.parametrize("command", [[], ["advance", "1d"], ["fork", "a"], ["rewind", "a"], ["forget", "a"]])
def test_production_s_time_is_never_moved(bare: Cuota, command: list[str]) -> None:
    done = bare("time", *command, **PRODUCTION)
    assert done.returncode == 1
    assert "only in the sandbox" in done.stderr


def test_a_summary_counts_payments_and_messages_in_the_plural() -> None:
    paid = Counter({"payment received": 2, "message receipt": 33, "refund to a card succeeded": 1})
    said = _summary(WorkDone(paid=paid))
    assert said == "2 payments received, 33 messages (receipt), 1 refund to a card succeeded"


def test_a_summary_of_jobs_that_did_nothing_says_that_nothing_was_due() -> None:
    assert _summary(WorkDone(jobs=Counter({"tidy": 1}))) == "nothing was due"


def test_the_summary_names_ten_of_very_many_receivers_that_timed_out_and_counts_the_rest() -> None:
    hosts = [f"shop{number}.example" for number in range(2700)]
    assert _named(hosts[:2]) == "shop0.example, shop1.example"
    assert _named(hosts[:10]).endswith("shop9.example")
    assert _named(hosts).endswith(", shop9.example and 2,690 more")
