"""How scripts use `cuota migrate`, `verify`, `keys` and `serve`."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import asyncpg
import httpx

from cuota.db.embedded.server import open_embedded
from cuota.db.migrate import files
from support.commands import Cuota
from support.serving import ORDER, serving


def sql(cuota: Cuota, *statements: str) -> None:
    """Change the database directly, like an attacker who has access to it."""

    async def run(where: dict[str, Any]) -> None:
        connection = await asyncpg.connect(**where)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    with open_embedded(cuota.data) as embedded:
        asyncio.run(run(dict(embedded.dsn_kwargs)))


def test_migrate_prints_the_applied_migrations_and_then_that_there_are_none(cuota: Cuota) -> None:
    names = [name for name, _ in files()]
    first = cuota("migrate", "--json")
    assert (first.returncode, json.loads(first.stdout)) == (0, {"applied": names})
    assert json.loads(cuota("migrate", "--json").stdout) == {"applied": []}
    assert cuota("migrate").stdout == "The database is up to date.\n"


def test_migrate_says_for_how_many_tables_row_level_security_is_on_and_what_to_restart(cuota: Cuota) -> None:
    tables = len(json.loads(cuota("migrate", "--row-security", "off", "--json").stdout)["rowSecurityOff"])
    assert tables == 0
    on = cuota("migrate", "--row-security", "on")
    assert re.fullmatch(
        r"Row-level security is on for [0-9]+ tables\. Restart every process now; until then, running processes see all rows\.\n",
        on.stdout,
    )
    assert cuota("migrate", "--row-security", "on").stdout == "Row-level security was on already.\n"
    off = cuota("migrate", "--row-security", "off")
    assert re.fullmatch(r"Row-level security is off for [0-9]+ tables\. No restart is needed\.\n", off.stdout)


def test_serve_prints_one_line_when_it_is_ready(cuota: Cuota) -> None:
    with serving(cuota) as (line, _):
        assert set(line) == {"ready", "url", "listen", "environment", "policy", "workers", "seconds"}
        assert (line["ready"], line["environment"], line["workers"]) == (True, "sandbox", 1)
        assert httpx.get(f"{line['listen']}/health/ready", trust_env=False, timeout=60).json() == {
            "status": "ok"
        }


def test_two_workers_both_answer_and_their_metrics_are_added_up(cuota: Cuota) -> None:
    with serving(cuota, "--workers", "2") as (line, process):
        assert line["workers"] == 2
        for _ in range(40):
            # Open a new connection each time, so that both workers get some requests.
            assert (
                httpx.get(f"{line['listen']}/configuration", trust_env=False, timeout=60).status_code == 401
            )
        text = httpx.get(f"{line['listen']}/metrics", trust_env=False, timeout=60).text
        assert process.poll() is None
    counted = [
        row
        for row in text.splitlines()
        if row.startswith("cuota_requests_total") and '"/configuration"' in row
    ]
    assert [float(row.rpartition(" ")[2]) for row in counted] == [40.0]


def test_verify_names_the_altered_row_and_exits_with_1(cuota: Cuota) -> None:
    with serving(cuota) as (line, _):
        settings = {"CUOTA_PUBLIC_URL": line["url"]}
        made = json.loads(cuota("merchant", "create", "--name", "Tampered", "--json", **settings).stdout)
        body = {
            "client_id": made["clientId"],
            "client_secret": made["clientSecret"],
            "audience": made["audience"],
        }
        with httpx.Client(base_url=line["url"], trust_env=False, timeout=60) as http:
            answer = http.post("/oauth/token", json={**body, "grant_type": "client_credentials"})
            http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
            created = http.post("/order", json=ORDER).json()
        walked = cuota("sandbox", "complete", created["redirectUrl"], "--outcome", "approved", "--json")
        assert walked.returncode == 0
        counted = 'cuota_decisions_total{outcome="approved",reason="sandbox_approve_requested"} 1.0'
        assert counted in httpx.get(f"{line['listen']}/metrics", trust_env=False, timeout=60).text
        assert set(json.loads(walked.stdout)) == {"outcome", "url"}
        assert json.loads(walked.stdout)["url"].startswith("http://127.0.0.1:9/yes?")
    sound = json.loads(cuota("verify", "--json").stdout)
    assert set(sound) == {"orders", "transfers", "disagreements"}
    assert (sound["orders"], sound["disagreements"]) == (1, [])
    sql(
        cuota,
        "SET session_replication_role = replica",
        "UPDATE transfers SET amount = amount + 1 WHERE posting = 'capture'",
    )
    done = cuota("verify", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)["disagreements"]
    assert {row["orderId"] for row in found} == {created["orderId"]}
    assert {row["merchantId"] for row in found} == {made["merchantId"]}
    assert ("orders.captured", "is 10000, the ledger says 10001") in {
        (row["row"], row["problem"]) for row in found
    }
    people = cuota("verify")
    assert people.returncode == 1
    assert f"{created['orderId']}  orders.captured: is 10000, the ledger says 10001" in people.stdout


def test_the_output_names_a_rotated_key(cuota: Cuota) -> None:
    done = cuota("keys", "rotate", "--json")
    added = json.loads(done.stdout)
    assert (done.returncode, set(added), added["algorithm"]) == (0, {"keyId", "algorithm"}, "ES256")
    done = cuota("keys", "rotate", "--algorithm", "RS256")
    assert (
        done.returncode,
        "is published within a minute and starts to sign tokens in 10 minutes" in done.stdout,
    ) == (0, True)


def test_a_database_of_another_environment_or_release_is_refused_in_one_line(cuota: Cuota) -> None:
    sql(cuota, "UPDATE installation SET environment = 'production'")
    done = cuota("verify")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == "cuota: This database belongs to production, but CUOTA_ENVIRONMENT is sandbox. Use a separate database for sandbox.\n"
    )
    sql(
        cuota,
        "UPDATE installation SET environment = 'sandbox'",
        "INSERT INTO migrations VALUES ('9999_future')",
    )
    done = cuota("serve", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "A newer release has migrated this database" in done.stderr
    sql(cuota, "DELETE FROM migrations WHERE name = '9999_future'")


def test_a_new_merchant_gets_the_audience_of_the_service_that_ran_last(cuota: Cuota) -> None:
    """A service on another port than the default would refuse the default audience."""
    with serving(cuota) as (ready, _):
        made = cuota("merchant", "create", "--name", "Told", "--json")
    assert json.loads(made.stdout)["audience"] == ready["url"]


def test_a_refused_card_refund_is_listed_and_the_exit_code_tells_a_nightly_job(cuota: Cuota) -> None:
    none = cuota("card-refunds")
    assert (none.returncode, none.stdout) == (0, "No card has refused money back.\n")
    ids = "gen_random_uuid(), '01a1fd26-ec25-7faf-84fe-91b1266e7426', gen_random_uuid()"
    sql(
        cuota,
        f"""WITH c AS (INSERT INTO charges (merchant_id, order_id, charge_id, installment, amount, card_token, card_brand,
            card_last4, state, created_at) VALUES ({ids}, 1, 2500, 't', 'visa', '4242', 'succeeded', now()) RETURNING *)
        INSERT INTO card_refunds (merchant_id, order_id, card_refund_id, charge_id, amount, state, reason, created_at,
            settled_at) SELECT merchant_id, order_id, gen_random_uuid(), charge_id, 1250, 'failed', 'card_closed', now(),
            now() FROM c""",
    )
    done = cuota("card-refunds", "--json")
    (found,) = json.loads(done.stdout)
    assert done.returncode == 1
    assert (found["amount"], found["card"], found["reason"]) == ("12.50", "visa 4242", "card_closed")
