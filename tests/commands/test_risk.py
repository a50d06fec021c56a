"""`cuota explain`, `decide` and `policy` on the decisions of a real service, as an operator uses them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cuota import config
from cuota.db.embedded.server import open_embedded
from cuota.flows.risk.keep_policy import read_policy
from cuota.run import runtime
from support.commands import Cuota, on_a_folder
from support.makers import complete
from support.own_service import opened_own
from support.phones import phone_number

STANDARD = read_policy(None)[1]
VERSION = read_policy(None)[0].version


@dataclass(frozen=True)
class Decided:
    """Make one consumer's orders (approved, then declined above the limit), and an approved order of another consumer."""

    cuota: Cuota
    shop: str
    approved: str
    declined: str
    decisions: dict[str, str]

    def sql(self, *statements: str) -> None:
        """Change the database directly, like an attacker who has access to it."""

        async def run(where: dict[str, Any]) -> None:
            connection = await asyncpg.connect(**where)
            for statement in statements:
                await connection.execute(statement)
            await connection.close()

        with open_embedded(self.cuota.data) as embedded:
            asyncio.run(run(dict(embedded.dsn_kwargs)))


@pytest.fixture(scope="module")
def decided() -> Iterator[Decided]:
    with on_a_folder() as command, open_embedded(command.data) as embedded:
        yield asyncio.run(_decided(command, dict(embedded.dsn_kwargs)))


async def _decided(command: Cuota, where: dict[str, Any]) -> Decided:
    settings = config.load({"CUOTA_DATA_DIR": str(command.data)})
    await runtime.migrated(settings, where)
    async with opened_own(settings, where) as own:
        phone, orders = phone_number(), []
        for amount, number in (("1500.00", phone), ("900.00", phone), ("100.00", phone_number())):
            orders.append(await own.merchant.create(amount))
            await complete(own.service, own.merchant.merchant_id, orders[-1], phone=number)
        async with own.owner() as owner:
            rows = await owner.fetch("SELECT order_id, decision_id FROM decisions")
        ids = {str(row["order_id"]): str(row["decision_id"]) for row in rows}
        return Decided(command, own.merchant.name, orders[0]["orderId"], orders[1]["orderId"], ids)


def test_a_decision_is_explained_in_words_with_its_numbers(decided: Decided) -> None:
    done = decided.cuota("explain", "decision", decided.decisions[decided.declined])
    assert done.returncode == 0
    for words in (
        f"at {decided.shop}", f"DECLINED by policy {VERSION}", "over_limit: the consumer would owe more than their limit",
        "$1,125.00 already, plus $900.00 for this order, is $2,025.00: above the limit",
        "Limit: $2,000.00, based on 1 installment paid", "phone    1 in the last 24 hours", "gives the same result",
    ):  # fmt: skip
        assert words in done.stdout, words


def test_the_shown_contributions_add_up_to_the_score(decided: Decided) -> None:
    done = decided.cuota("explain", "decision", decided.decisions[decided.approved], "--json")
    facts = json.loads(done.stdout)
    assert facts["approved"] is True
    assert sum(part["points"] for part in facts["parts"]) == facts["score"] >= facts["threshold"]
    assert facts["again"] == {"differences": {}}
    assert (facts["limit"], facts["inputs"]["amount"]) == ("2000.00", "1500.00")


def test_the_letter_of_a_decline_is_printed_and_an_approval_has_none(decided: Decided) -> None:
    letter = decided.cuota("explain", "decision", decided.decisions[decided.declined], "--letter")
    assert letter.returncode == 0
    assert letter.stdout.startswith("Dear Jordan Rivera,")
    assert "$900.00" in letter.stdout
    none = decided.cuota("explain", "decision", decided.decisions[decided.approved], "--letter")
    assert (none.returncode, none.stdout) == (1, "")
    assert "was an approval" in none.stderr


def test_an_order_is_explained_with_its_history_and_each_decision(decided: Decided) -> None:
    told = decided.cuota("explain", "order", decided.declined)
    assert told.returncode == 0
    for words in (
        "of $900.00",
        "Declined",
        "order.created",
        "order.declined: The order was not approved.",
        "DECLINED by",
    ):
        assert words in told.stdout, words
    facts = json.loads(decided.cuota("explain", "order", decided.approved, "--json").stdout)
    assert [event["type"] for event in facts["events"]] == ["order.created", "order.approved"]
    assert [(charge["amount"], charge["state"]) for charge in facts["charges"]] == [("375.00", "succeeded")]
    assert [each["decisionId"] for each in facts["decisions"]] == [decided.decisions[decided.approved]]


def test_a_plan_is_explained_payment_by_payment(decided: Decided) -> None:
    told = decided.cuota("explain", "plan", decided.approved)
    assert told.returncode == 0
    for words in (
        "Total: $1,500.00",
        "1. $375.00",
        "paid by visa 4242",
        "4. $375.00",
        "the card will be charged on",
        decided.decisions[decided.approved],
    ):
        assert words in told.stdout, words
    none = decided.cuota("explain", "plan", decided.declined)
    assert none.returncode == 1
    assert "its status is Declined" in none.stderr


@pytest.mark.parametrize("what", ["decision", "order", "plan"])
def test_an_unknown_id_is_reported_as_not_found(decided: Decided, what: str) -> None:
    unknown = decided.cuota("explain", what, "00000000-0000-4000-8000-000000000000")
    assert unknown.returncode == 1
    assert "There is no" in unknown.stderr
    assert decided.cuota("explain", what, "rubbish").returncode == (2 if what == "decision" else 1)


def test_every_repeated_decision_has_the_same_result(decided: Decided) -> None:
    done = decided.cuota("decide", "--replay")
    assert (done.returncode, done.stdout) == (0, "3 decisions repeated; 0 differ.\n")
    facts = json.loads(
        decided.cuota("decide", "--replay", "--json", "--since", "1h", "--merchant", decided.shop).stdout
    )
    assert facts == {"decisions": 3, "referrals": 0, "madeBeforeFactsWereKept": 0, "differences": []}
    assert json.loads(decided.cuota("decide", "--replay", "--json", "--until", "1h").stdout)["decisions"] == 0


def test_without_the_option_replay_no_decision_is_repeated(decided: Decided) -> None:
    assert decided.cuota("decide").returncode == 2


CHANGES = {
    "approved": "approved = NOT approved",
    "reasons": "reasons = '{velocity_phone}'",
    "score": "score = score + 1",
    "limit": "credit_limit = 1",
    "again": "policy_version = 'never-kept'",
    "inputs": "inputs = replace(inputs::text, 'USD', 'CAD')::json",
    "again ": "inputs = '{}', score = NULL, credit_limit = NULL",
}


@pytest.mark.parametrize("name", CHANGES)
def test_one_altered_decision_is_found_and_shown(decided: Decided, name: str) -> None:
    chosen = decided.decisions[decided.declined]
    kept = "CREATE TABLE kept AS SELECT * FROM decisions"
    change = f"UPDATE decisions SET {CHANGES[name]} WHERE decision_id = '{chosen}'"
    back = "DELETE FROM decisions", "INSERT INTO decisions SELECT * FROM kept", "DROP TABLE kept"
    decided.sql(kept, "ALTER TABLE decisions DISABLE TRIGGER append_only", change)
    try:
        done = decided.cuota("decide", "--replay", "--json")
        told = decided.cuota("explain", "decision", chosen)
    finally:
        decided.sql(*back, "ALTER TABLE decisions ENABLE TRIGGER append_only")
    assert done.returncode == 1
    [difference] = json.loads(done.stdout)["differences"]
    assert (difference["decisionId"], list(difference["values"])) == (chosen, [name.strip()])
    assert "GIVES A DIFFERENT RESULT" in told.stdout or name.strip() == "again"


def test_a_decision_without_stored_facts_is_counted_and_not_reported_as_a_difference(
    decided: Decided,
) -> None:
    old = (
        "INSERT INTO decisions (merchant_id, order_id, decided_at, approved, reasons, policy_version, inputs)"
        f" SELECT merchant_id, order_id, now(), true, '{{x}}', 'old', '{{}}' FROM orders WHERE order_id = '{decided.approved}'"
    )
    decided.sql(old)
    try:
        done = decided.cuota("decide", "--replay")
        explained = decided.cuota("explain", "order", decided.approved)
        simulated = decided.cuota(
            "policy", "simulate", _file(decided, "2026-11-same"), "--since", "1d", "--json"
        )
    finally:
        decided.sql(
            "ALTER TABLE decisions DISABLE TRIGGER append_only", "DELETE FROM decisions WHERE policy_version = 'old'",
            "ALTER TABLE decisions ENABLE TRIGGER append_only",
        )  # fmt: skip
    assert done.returncode == 0
    assert "1 decision was made before Cuota stored facts" in done.stdout
    assert "This decision cannot be repeated" in explained.stdout
    assert json.loads(simulated.stdout)["madeBeforeFactsWereKept"] == 1


def _file(decided: Decided, version: str, **changes: str) -> str:
    text = STANDARD.replace(VERSION, version)
    for was, now in changes.items():
        assert f'{was} = "2000.00"' in text
        text = text.replace(f'{was} = "2000.00"', f'{was} = "{now}"')
    path = decided.cuota.data.parent / f"{version}.toml"
    path.write_text(text)
    return str(path)


def test_a_policy_is_checked_without_a_database(bare: Cuota, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(STANDARD)
    bad.write_text(STANDARD.replace("ceiling =", "cieling ="))
    assert VERSION in bare("policy", "check", str(good)).stdout
    refused = bare("policy", "check", str(bad))
    line = STANDARD[: STANDARD.index("ceiling =")].count("\n") + 1
    assert refused.returncode == 1
    assert f"line {line}" in refused.stderr
    bad.write_bytes(STANDARD.encode()[:200] + b"\n\xff")
    torn = bare("policy", "check", str(bad))
    assert torn.returncode == 1
    assert f"line {STANDARD[:200].count(chr(10)) + 2} must be UTF-8" in torn.stderr
    assert not bare.data.exists()
    assert bare("policy", "check", str(tmp_path / "none.toml")).returncode == 1


def test_another_policy_is_simulated_on_the_same_facts(decided: Decided) -> None:
    file = _file(decided, "2026-12-strict", new="200.00")
    facts = json.loads(decided.cuota("policy", "simulate", file, "--since", "1d", "--json").stdout)
    assert facts["was"]["approved"] == {"orders": 2, "amount": "1600.00", "unpaid": "0.00"}
    assert facts["was"]["declined"]["orders"] == 1
    assert facts["would"]["approve"] == {"orders": 1, "amount": "100.00", "unpaid": "0.00"}
    assert facts["newlyDeclined"] == {
        "orders": 1, "amount": "1500.00", "unpaid": "0.00", "reasons": {"over_limit": 1},
    }  # fmt: skip
    wide = _file(decided, "2026-12-wide", new="2100.00")
    facts = json.loads(decided.cuota("policy", "simulate", wide, "--since", "1d", "--json").stdout)
    assert (facts["newlyApproved"]["orders"], facts["newlyApproved"]["amount"]) == (1, "900.00")
    told = decided.cuota("policy", "simulate", file, "--since", "1d")
    assert "1 for over_limit" in told.stdout
    assert "newly declined 1 $1,500.00 $0.00" in " ".join(told.stdout.split())


def test_the_simulation_counts_unpaid_amounts_of_the_orders_that_it_would_decline(
    decided: Decided,
) -> None:
    late = f"UPDATE installments SET failures = 2 WHERE number = 2 AND order_id = '{decided.approved}'"
    decided.sql(late)
    try:
        file = _file(decided, "2026-12-strict", new="200.00")
        facts = json.loads(decided.cuota("policy", "simulate", file, "--since", "1d", "--json").stdout)
    finally:
        decided.sql("UPDATE installments SET failures = 0")
    assert (facts["was"]["approved"]["unpaid"], facts["newlyDeclined"]["unpaid"]) == ("375.00", "375.00")
    assert facts["would"]["approve"]["unpaid"] == "0.00"


def test_a_simulation_stores_and_changes_nothing(decided: Decided) -> None:
    decided.cuota("policy", "simulate", _file(decided, "2026-12-unseen", new="200.00"), "--since", "1d")
    done = decided.cuota("decide", "--replay", "--json")
    assert json.loads(done.stdout)["decisions"] == 3
    stored: list[str] = []

    async def look(where: dict[str, Any]) -> None:
        connection = await asyncpg.connect(**where)
        stored.extend(row["version"] for row in await connection.fetch("SELECT version FROM policies"))
        await connection.close()

    with open_embedded(decided.cuota.data) as embedded:
        asyncio.run(look(dict(embedded.dsn_kwargs)))
    assert stored == [VERSION]
