"""`cuota rails`, as an operator and a monitor use it."""

from __future__ import annotations

import json

import httpx

from support.commands import Cuota
from support.serving import ORDER, serving


def test_an_installation_without_charges_lists_its_rail(cuota: Cuota) -> None:
    done = cuota("rails", "--json")
    (rail,) = json.loads(done.stdout)["rails"]
    assert (rail["rail"], rail["active"], rail["loaded"]) == ("sandbox", True, True)
    assert rail["chargesOfLastDay"] == {"approved": 0, "declined": 0, "withoutAnswer": 0}
    shown = cuota("rails")
    assert (shown.returncode, shown.stdout.splitlines()[0]) == (0, "sandbox: takes new cards")


def test_a_charge_is_counted_and_its_dispute_is_listed_once_its_time_has_come(cuota: Cuota) -> None:
    made = json.loads(cuota("merchant", "create", "--name", "Disputed", "--json").stdout)
    with serving(cuota) as (line, _):
        given = {
            "client_id": made["clientId"], "client_secret": made["clientSecret"], "grant_type": "client_credentials",
            "audience": line["url"],
        }  # fmt: skip
        with httpx.Client(base_url=line["listen"], trust_env=False) as http:
            token = http.post("/oauth/token", json=given).json()["access_token"]
            order = http.post("/order", json=ORDER, headers={"Authorization": f"Bearer {token}"}).json()
        paid = cuota(
            "sandbox",
            "complete",
            order["redirectUrl"],
            "--outcome",
            "approved",
            "--card",
            "4000 0000 0000 2685",
        )
        assert paid.returncode == 0, paid.stderr
        assert json.loads(cuota("rails", "--json").stdout)["rails"][0]["chargesOfLastDay"]["approved"] == 1
        assert json.loads(cuota("rails", "--json").stdout)["events"] == []
        assert cuota("time", "advance", "8d").returncode == 0
        facts = json.loads(cuota("rails", "--json").stdout)
        (event,) = facts["events"]
        assert (event["kind"], event["orderId"], event["amount"], event["status"]) == (
            "dispute.opened", order["orderId"], "25.00", "needs_response",
        )  # fmt: skip
        assert (facts["rails"][0]["openDisputes"], facts["rails"][0]["eventsToApply"]) == (1, 0)
        assert f"dispute.opened  25.00  {order['orderId']}" in cuota("rails").stdout
