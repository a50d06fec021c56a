"""`cuota merchant approvals` and `cuota approvals report`: a trial may turn on only if its data helps."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from bench.population import FIRST_DAY, Placed, generate, standard_policy
from cuota import config
from cuota.core.risk.approvals import read_fields
from cuota.core.risk.decision import decide
from cuota.core.risk.facts import Approvals
from cuota.db.embedded.server import open_embedded
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant
from cuota.run import runtime
from support.commands import COMMAND, Cuota, on_a_folder

ORDERS = 6_000
AGO = timedelta(days=400)


@dataclass(frozen=True)
class Shops:
    """Three merchants: one has useful data, one has random data, and one has sold nothing."""

    cuota: Cuota

    def mode(self, name: str) -> dict[str, Any]:
        """Read one value from the database."""
        found: list[Any] = []

        async def look(where: dict[str, Any]) -> None:
            connection = await asyncpg.connect(**where)
            sql = "SELECT approvals, approvals_model, (SELECT count(*) FROM models f WHERE f.merchant_id = m.merchant_id) AS models FROM merchants m WHERE name = $1"
            found.append(await connection.fetchrow(sql, name))
            await connection.close()

        with open_embedded(self.cuota.data) as embedded:
            asyncio.run(look(dict(embedded.dsn_kwargs)))
        return dict(found[0])


@pytest.fixture(scope="module")
def shops() -> Iterator[Shops]:
    with on_a_folder() as command, open_embedded(command.data) as embedded:
        asyncio.run(_sold(command, dict(embedded.dsn_kwargs)))
        yield Shops(command)


async def _sold(command: Cuota, where: dict[str, Any]) -> None:
    settings = config.load({"CUOTA_DATA_DIR": str(command.data)})
    await runtime.migrated(settings, where)
    async with runtime.opened(settings, where, pool_size=2) as context:
        await runtime.note_served(context, decides=True)
        owner = await asyncpg.connect(**where)
        for name, helpful in (("Helpful", True), ("Noise", False), ("Empty", None)):
            new = await create_merchant(context, MerchantTerms(name=name))
            if helpful is not None:
                await _trial(owner, new.merchant.merchant_id, generate(7, ORDERS, helpful=helpful))
        await owner.close()


async def _trial(owner: asyncpg.Connection, merchant_id: UUID, population: list[Placed]) -> None:
    """Insert the rows that the service writes for such orders."""
    policy, orders, decided, owed = standard_policy(), [], [], []
    for placed in population:
        fields = read_fields(placed.additional, placed.placed_on).fields
        made = decide(replace(placed.facts, approvals=Approvals("trial", fields)), policy)
        at = datetime.now(UTC) - AGO + (placed.placed_on - FIRST_DAY)
        order_id, consumer_id = uuid4(), UUID(int=placed.consumer)
        status = "Approved" if made.approved else "Declined"
        orders.append(
            (merchant_id, order_id, uuid4(), 1, status, "USD", placed.facts.amount, 0, True, 0, at, at)
        )
        inputs = json.dumps(made.inputs)
        decided.append(
            (merchant_id, order_id, at, made.approved, list(made.reasons), made.policy_version, inputs,
             uuid4(), consumer_id, made.score, made.limit, hashlib.sha256(inputs.encode()).digest())
        )  # fmt: skip
        if made.approved:
            unpaid = placed.lost_amount if placed.lost else 0
            owed.append((merchant_id, order_id, 4, at.date(), unpaid, 0, None if unpaid else uuid4(), 1))
    async with owner.transaction():
        await owner.execute("SET LOCAL session_replication_role = replica")
        for table, rows, columns in (
            (
                "orders",
                orders,
                "merchant_id order_id token version status currency amount fee auto_capture events created_at expires_at",
            ),
            (
                "decisions",
                decided,
                "merchant_id order_id decided_at approved reasons policy_version inputs decision_id consumer_id score credit_limit inputs_hash",
            ),
            ("installments", owed, "merchant_id order_id number due_on amount fee charge_id failures"),
        ):
            await owner.copy_records_to_table(table, records=rows, columns=columns.split())


def test_advanced_approvals_are_off_for_a_merchant_until_an_operator_changes_that(shops: Shops) -> None:
    assert shops.mode("Empty") == {"approvals": "off", "approvals_model": None, "models": 0}
    told = shops.cuota("merchant", "approvals", "Empty", "trial")
    assert (told.returncode, told.stdout) == (0, "Advanced Approvals of Empty: trial.\n")
    assert (
        json.loads(shops.cuota("merchant", "approvals", "Empty", "off", "--json").stdout)["approvals"]
        == "off"
    )
    assert shops.cuota("merchant", "approvals", "Nobody", "trial").returncode == 1
    assert shops.cuota("merchant", "approvals", "Empty", "maybe").returncode == 2


def test_without_a_trial_the_mode_on_is_refused_and_the_error_says_what_is_missing(shops: Shops) -> None:
    refused = shops.cuota("merchant", "approvals", "Empty", "on")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "\n  There are 0 decided orders; 1,000 are needed.\n" in refused.stderr
    assert "interval" not in refused.stderr
    assert f"Start a trial first: {COMMAND} merchant approvals Empty trial." in refused.stderr
    assert "An order counts in the trial 60 days after its decision." in refused.stderr
    assert f"See {COMMAND} approvals report Empty." in refused.stderr
    script = shops.cuota("merchant", "approvals", "Empty", "on", "--json")
    assert script.returncode == 1
    told = json.loads(script.stdout)
    assert (set(told), told["refused"]) == ({"refused", "reasons"}, True)
    assert "There are 0 decided orders; 1,000 are needed." in told["reasons"]
    assert shops.mode("Empty")["approvals"] == "off"


def test_after_a_trial_on_random_data_the_mode_on_is_refused_with_the_reasons(shops: Shops) -> None:
    shops.cuota("merchant", "approvals", "Noise", "trial")
    refused = shops.cuota("merchant", "approvals", "Noise", "on")
    assert refused.returncode == 1
    assert "does not prove that the data helps" in refused.stderr
    assert shops.mode("Noise")["approvals"] == "trial"


def test_after_a_trial_on_useful_data_the_mode_can_be_turned_on(shops: Shops, tmp_path: Path) -> None:
    shops.cuota("merchant", "approvals", "Helpful", "trial")
    file = tmp_path / "report.html"
    facts = json.loads(shops.cuota("approvals", "report", "Helpful", "--json", "--html", str(file)).stdout)
    assert (facts["ready"], facts["approvals"]) == (True, "trial")
    assert facts["report"]["decided"] == ORDERS
    assert facts["report"]["equalLoss"]["approvalChange"]["low"] > 0
    assert facts["report"]["lostAmount"].split(".")[0].isdigit()
    assert facts["model"]["weights"][0].keys() == {"field", "milliPoints", "neutral"}
    page = file.read_text()
    assert "<svg" in page
    assert "Advanced Approvals of Helpful" in page
    assert f"Mode: trial. As of {facts['at']}, under policy {facts['policy']}." in page
    assert facts["model"]["version"] in page
    # In trial mode, the model's points are recorded, but no decision depends on them.
    assert shops.mode("Helpful") == {
        "approvals": "trial",
        "approvals_model": facts["model"]["version"],
        "models": 1,
    }
    told = shops.cuota("approvals", "report", "Helpful")
    assert "customer_fraud_incidents" in told.stdout
    assert "Advanced Approvals may be turned on." in told.stdout
    assert "of the losses\nwithout the data and " in told.stdout
    assert " in, " in told.stdout
    on = shops.cuota("merchant", "approvals", "Helpful", "on")
    assert on.returncode == 0, on.stderr
    # The same orders give the same model, so nothing new was stored.
    assert shops.mode("Helpful") == {
        "approvals": "on",
        "approvals_model": facts["model"]["version"],
        "models": 1,
    }
    assert shops.cuota("merchant", "approvals", "Helpful", "off").returncode == 0
    assert shops.mode("Helpful")["approvals"] == "off"


def test_a_report_that_cannot_be_written_is_one_line_of_error_and_a_written_one_is_named(
    shops: Shops, tmp_path: Path
) -> None:
    lost = shops.cuota("approvals", "report", "Empty", "--html", "/nonexist/x.html")
    assert (lost.returncode, lost.stdout) == (1, "")
    assert lost.stderr.endswith("cuota: Cannot write /nonexist/x.html: No such file or directory.\n")
    file = tmp_path / "x.html"
    written = shops.cuota("approvals", "report", "Empty", "--html", str(file))
    assert written.returncode == 0
    assert f"The page was written to {file}." in written.stdout


def test_the_decisions_of_a_trial_can_be_replayed(shops: Shops) -> None:
    done = shops.cuota("decide", "--replay", "--merchant", "Helpful", "--json")
    assert json.loads(done.stdout) == {
        "decisions": ORDERS,
        "madeBeforeFactsWereKept": 0,
        "referrals": 0,
        "differences": [],
    }
