"""`cuota demo history`: weeks of orders for the demo merchant, made through the API and the checkout's pages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from cuota.client import Client, Order, cents
from cuota.commands.history.people import CARDS, shopper
from cuota.commands.history.plan import HistoryAct, plan
from cuota.core.checkout.card import read_card
from support.commands import Cuota, on_a_folder
from support.demo_process import demo
from support.faults.served import until
from support.ports import free_port

START = datetime(2026, 10, 1, 12, tzinfo=UTC)
SHORT = ("--days", "3", "--orders", "8")


@contextmanager
def running() -> Iterator[Cuota]:
    """A running demo with its own data folder and no orders."""
    with on_a_folder() as cuota, demo(cuota.data):
        yield cuota


@contextmanager
def merchant(cuota: Cuota) -> Iterator[Client]:
    known = json.loads((cuota.data / "demo-merchant.json").read_text())
    shown = cuota("time")
    url = next(word for word in shown.stderr.split() if word.startswith("http://"))
    with Client(url, known["clientId"], known["clientSecret"]) as client:
        yield client


def orders(cuota: Cuota) -> list[Order]:
    with merchant(cuota) as client:
        return list(client.orders())


def ahead(cuota: Cuota) -> timedelta:
    return timedelta(seconds=json.loads(cuota("time", "--json").stdout)["aheadSeconds"])


def made(cuota: Cuota, *options: str) -> dict[str, Any]:
    done = cuota("demo", "history", "--json", *options)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def agrees(cuota: Cuota) -> bool:
    return cuota("verify").returncode == 0


def test_a_history_ends_at_the_present_time_and_verify_finds_nothing_and_a_second_call_changes_nothing() -> (
    None
):
    with running() as cuota:
        began = datetime.now(UTC)
        first = made(cuota, *SHORT)
        assert first["refused"] == []
        assert first["done"]["buy"] == 8
        found = orders(cuota)
        assert len(found) == 8
        assert {each.status for each in found} >= {"Approved", "Declined"}
        created = sorted(datetime.fromisoformat(each.raw["createdDateTime"]) for each in found)
        assert began - timedelta(days=3) < created[0] < began - timedelta(days=1)
        assert created[-1] < began
        assert len(set(created)) == 8
        assert abs(ahead(cuota)) < timedelta(seconds=3)
        assert agrees(cuota)
        again = cuota("demo", "history", *SHORT)
        assert (again.returncode, again.stdout) == (
            0,
            "The history already exists. Nothing was changed.\n",
        )
        assert len(orders(cuota)) == 8


def test_in_a_sandbox_with_an_order_the_clock_is_moved_only_if_the_user_allows_it() -> None:
    with running() as cuota:
        with merchant(cuota) as client:
            back = {"redirectConfirmUrl": "http://127.0.0.1/", "redirectCancelUrl": "http://127.0.0.1/"}
            order = {"amount": cents(5000), "merchantReference": "mine", "merchant": back}
            own = client.create_order(order).order_id
        refused = cuota("demo", "history", *SHORT)
        assert refused.returncode == 1
        assert "--ahead" in refused.stderr
        assert abs(ahead(cuota)) < timedelta(seconds=1)
        assert [each.order_id for each in orders(cuota)] == [own]
        assert made(cuota, "--ahead", "--days", "1", "--orders", "2")["refused"] == []
        assert len(orders(cuota)) == 3
        assert timedelta(hours=23) < ahead(cuota) < timedelta(hours=25)
        assert agrees(cuota)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_history_that_ends_early_leaves_a_sandbox_that_can_be_used(number: signal.Signals) -> None:
    with running() as cuota:
        command = [sys.executable, "-m", "cuota", "demo", "history", "--days", "8", "--orders", "20"]
        with (
            merchant(cuota) as client,
            subprocess.Popen(command, env=cuota.environment(), stderr=subprocess.PIPE, text=True) as process,
        ):
            assert process.stderr is not None
            until(lambda: any(client.orders()))
            process.send_signal(number)
            process.stderr.read()
        interrupted = number == signal.SIGINT
        assert process.returncode == (130 if interrupted else -number)
        count = len(orders(cuota))
        assert 0 < count < 20
        if interrupted:
            assert abs(ahead(cuota)) < timedelta(seconds=3)
        else:
            assert ahead(cuota) < timedelta(days=-1)
        made(cuota)
        # After Ctrl-C, a second call adds nothing. After a kill, a second call adds the rest.
        assert len(orders(cuota)) == count if interrupted else 18 < len(orders(cuota)) <= 20
        assert abs(ahead(cuota)) < timedelta(seconds=3)
        assert agrees(cuota)


def test_a_demo_with_a_history_ends_as_a_whole_with_ctrl_c() -> None:
    with on_a_folder() as cuota:
        command = [sys.executable, "-m", "cuota", "demo", "--history", "--port", str(free_port())]
        command += ["--shop-port", str(free_port())]
        with subprocess.Popen(
            command,
            env=cuota.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stderr is not None
            assert process.stdout is not None
            next(line for line in process.stderr if ", at " in line)
            # Like a terminal, send the signal to every process of the group.
            os.killpg(process.pid, signal.SIGINT)
            said, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert 'Wait for "The history is ready"' in said
        assert "Stopped; what was made stays" in said
        assert abs(ahead(cuota)) < timedelta(seconds=3)
        assert agrees(cuota)


def test_cuota_demo_history_needs_a_running_service(cuota: Cuota) -> None:
    assert cuota("migrate").returncode == 0
    refused = cuota("demo", "history")
    assert refused.returncode == 1
    assert "No service is running" in refused.stderr


def test_the_same_seed_plans_the_same_history() -> None:
    assert plan(START, 42, 180, 7) == plan(START, 42, 180, 7)
    assert plan(START, 42, 180, 7) != plan(START, 42, 180, 8)


@pytest.mark.parametrize("seed", range(5), ids=str)
def test_six_weeks_contain_every_kind_of_event_of_a_shop(seed: int) -> None:
    steps = plan(START, 42, 180, seed)
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert steps[0].at > START
    bought = [step.purchase for step in steps if step.purchase is not None]
    assert Counter(each.ending for each in bought).keys() == {"approved", "declined", "abandoned", "left"}
    assert {step.act for step in steps} >= set(HistoryAct) - {
        HistoryAct.ACCEPT,
        HistoryAct.FOR_MERCHANT,
        HistoryAct.FOR_CONSUMER,
    }
    assert {each.who.behaviour for each in bought} >= {"pays", "pays_once", "lost_later", "disputed"}
    assert all(0 < each.amount <= 100_000 for each in bought)


def test_every_shopper_has_a_card_that_the_checkout_accepts_and_a_phone_of_their_own() -> None:
    people = [shopper(Random(number), number) for number in range(500)]
    for each in people:
        read_card(each.card, "12/39", each.typed["card_cvc"], START.date())
    assert len({each.phone for each in people}) == 500
    assert not {each.card for each in people} & set(CARDS.values())
