"""`cuota explain` with a reference, a wrong id, a pipe, or an invalid time span."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cuota import config
from cuota.db.embedded.server import open_embedded
from cuota.run import runtime
from support.commands import Cuota, on_a_folder
from support.gateway import gateway_body, post_json
from support.makers import complete
from support.own_service import opened_own
from support.phones import phone_number

SAID = {"accountCreationDate": "2020-01-01", "customerLoggedIn": "yes", "sameDevice": "perhaps"}


@dataclass(frozen=True)
class Sold:
    """Make an order with a unique reference, its decision, and two orders that share another reference."""

    cuota: Cuota
    order: str
    decision: str
    reference: str
    shops: tuple[str, str]


@pytest.fixture(scope="module")
def sold() -> Iterator[Sold]:
    with on_a_folder() as command, open_embedded(command.data) as embedded:
        yield asyncio.run(_sold(command, dict(embedded.dsn_kwargs)))


async def _sold(command: Cuota, where: dict[str, Any]) -> Sold:
    settings = config.load({"CUOTA_DATA_DIR": str(command.data)})
    await runtime.migrated(settings, where)
    async with opened_own(settings, where) as own:
        async with own.owner() as owner:
            await owner.execute("UPDATE merchants SET approvals = 'trial'")
        answer = await post_json(own.merchant, gateway_body(own.merchant, additionalData=SAID))
        assert answer.status_code in {200, 303}, answer.text
        token = answer.json()["token"]
        await complete(own.service, own.merchant.merchant_id, {"token": token}, phone=phone_number())
        for merchant in (own.merchant, own.auto_merchant):
            await merchant.create("50.00", merchantReference="TWICE-1")
        async with own.owner() as owner:
            row = await owner.fetchrow(
                "SELECT order_id, decision_id, reference FROM decisions JOIN order_details USING (merchant_id, order_id)"
            )
        names = (own.merchant.name, own.auto_merchant.name)
        return Sold(command, str(row["order_id"]), str(row["decision_id"]), row["reference"], names)


def test_an_order_and_its_plan_are_found_by_the_merchants_reference(sold: Sold) -> None:
    assert f"Order {sold.order} of" in sold.cuota("explain", "order", sold.reference).stdout
    assert f"Plan of order {sold.order}" in sold.cuota("explain", "plan", sold.reference).stdout
    none = sold.cuota("explain", "order", "no\x07such")
    assert (none.returncode, none.stdout) == (1, "")


def test_several_orders_with_one_reference_are_listed_to_choose_from(sold: Sold) -> None:
    several = sold.cuota("explain", "order", "TWICE-1")
    assert (several.returncode, several.stdout) == (1, "")
    assert "2 orders have the reference TWICE-1. Choose one by its id:" in several.stderr
    assert all(name in several.stderr for name in sold.shops)
    chosen = several.stderr.partition("Choose one by its id:")[2].split()[0]
    assert sold.cuota("explain", "order", chosen).returncode == 0


@pytest.mark.parametrize("what", ["order", "plan"])
def test_for_an_id_of_another_kind_the_error_names_the_right_command(sold: Sold, what: str) -> None:
    wrong = sold.cuota("explain", what, sold.decision)
    assert wrong.returncode == 1
    assert f"`cuota explain decision {sold.decision}`" in wrong.stderr
    other = sold.cuota("explain", "decision", sold.order)
    assert other.returncode == 1
    assert "`cuota explain order ID`" in other.stderr


def test_explain_lists_what_happened_in_order_of_time_and_the_merchant_s_data_in_words(sold: Sold) -> None:
    told = sold.cuota("explain", "order", sold.order).stdout
    times = [line.split()[0] for line in told.splitlines() if line.startswith("  20")]
    assert times == sorted(times)
    assert len(times) >= 4
    assert "  decided: approved" in told
    assert "customer is logged in: yes" in told
    assert "not readable, and therefore not used: sameDevice" in told
    facts = json.loads(sold.cuota("explain", "order", sold.order, "--json").stdout)
    assert facts["decisions"][0]["unreadable"] == ["sameDevice"]
    assert {"chargeId", "amount", "at"} <= set(facts["charges"][0])
    assert not [name for name in facts["decisions"][0]["inputs"]["history"] if "_" in name]


def test_a_closed_pipe_is_no_error(sold: Sold) -> None:
    command = [sys.executable, "-m", "cuota", "explain", "order", sold.order]
    process = subprocess.Popen(
        command, env=sold.cuota.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    process.wait(60)
    # Standard error has only the line that names the data.
    assert said.decode().splitlines() == [
        f"cuota: sandbox, data in {sold.cuota.data}; no service has run on it yet."
    ]


def test_an_empty_range_of_time_is_reported_as_empty(sold: Sold, tmp_path: Path) -> None:
    assert "There is no decision in this range" in sold.cuota("decide", "--replay", "--until", "1h").stdout
    policy = Path(config.__file__).parents[1] / "policies" / "standard.toml"
    empty = sold.cuota("policy", "simulate", str(policy), "--since", "2d", "--until", "1d")
    assert (empty.returncode, empty.stdout) == (0, "There is no order in this range.\n")


def test_an_unreadable_span_is_refused_and_the_error_lists_the_possible_forms(sold: Sold) -> None:
    refused = sold.cuota("decide", "--replay", "--since", "3y")
    assert refused.returncode == 2
    assert "Give a span (90m, 36h, 14d, 6w), a date (2026-12-25)" in refused.stderr


def test_a_letter_exists_only_for_a_decision(bare: Cuota) -> None:
    for what in ("order", "plan"):
        refused = bare("explain", what, "x", "--letter")
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"usage: cuota explain {what}")
        assert "--letter is only for decisions: cuota explain decision ID --letter" in refused.stderr
