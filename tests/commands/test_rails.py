"""`cuota rails`, as an operator uses it."""

from __future__ import annotations

import json

from commands.test_operate import sql
from support.commands import Cuota

ORDER = "01a1fd26-ec25-7faf-84fe-91b1266e7426"


def test_on_a_new_sandbox_cuota_rails_lists_nothing(cuota: Cuota) -> None:
    done = cuota("rails")
    assert done.returncode == 0
    assert "sandbox (active)\n  charges in the last day: 0, of which declined: 0" in done.stdout
    assert "events fetched until: not yet" in done.stdout
    assert "No open disputes" in done.stdout


def test_charges_and_the_cases_for_the_operator_are_listed(cuota: Cuota) -> None:
    charge = f"gen_random_uuid(), '{ORDER}', gen_random_uuid(), 1, 2500"
    event = f"""INSERT INTO card_events (merchant_id, order_id, rail, at, received_at, applied_at, amount, event_id, kind, reference)
        VALUES ('{ORDER}', '{ORDER}', 'sandbox', now(), now(), now(), 1500"""
    columns = "merchant_id, order_id, charge_id, installment, amount, card_token, card_brand, card_last4, state, created_at"
    sql(
        cuota,
        f"INSERT INTO charges ({columns}) VALUES ({charge}, 'sandbox:a', 'visa', '4242', 'succeeded', now())",
        f"INSERT INTO charges ({columns}) VALUES ({charge}, 'sandbox:b', 'visa', '4242', 'failed', now())",
        f"INSERT INTO charges ({columns}) VALUES ({charge}, 'before', 'visa', '4242', 'failed', now() - interval '2 days')",
        f"INSERT INTO charges ({columns}) VALUES ({charge}, 'gone:c', 'visa', '4242', 'pending', now() - interval '1 hour')",
        f"{event}, 'e1', 'dispute.opened', 'dp_1')",
        f"{event}, 'e2', 'dispute.opened', 'dp_2')",
        f"{event}, 'e3', 'dispute.closed', 'dp_2')",
        f"{event}, 'e4', 'refund.elsewhere', 're_1')",
        f"{event}, 'e5', 'refund.failed', 're_2')",
    )
    done = cuota("rails", "--json")
    assert done.returncode == 1
    facts = json.loads(done.stdout)
    shown = {each["name"]: each for each in facts["rails"]}
    assert (shown["sandbox"]["role"], shown["sandbox"]["chargesLastDay"]) == ("active", 2)
    assert (shown["sandbox"]["declinedLastDay"], shown["sandbox"]["chargesWithoutAnswer"]) == (1, 0)
    assert (shown["gone"]["role"], shown["gone"]["chargesWithoutAnswer"]) == ("not loaded", 1)
    assert shown["sandbox"]["lastEventAt"]
    assert [each["reference"] for each in facts["openDisputes"]] == ["dp_1"]
    assert sorted(each["kind"] for each in facts["refunds"]) == ["refund.elsewhere", "refund.failed"]
    text = cuota("rails").stdout
    assert "gone (not loaded: name it in CUOTA_CARD_RAILS_KEPT if plans still use it)" in text
    assert f"open dispute: order {ORDER}, sandbox, " in text
    assert "refund made elsewhere" in text


def test_a_refund_that_the_operator_has_settled_is_no_longer_listed_and_the_reason_is_in_the_log(
    cuota: Cuota,
) -> None:
    # Other tests of this file may have left other cases, which stay listed.
    before = json.loads(cuota("rails", "--json").stdout)["refunds"]
    sql(
        cuota,
        f"""INSERT INTO card_events (merchant_id, order_id, rail, at, received_at, applied_at, amount, event_id, kind, reference)
            VALUES ('{ORDER}', '{ORDER}', 'sandbox', now(), now(), now(), 700, 'evt_settled', 'refund.elsewhere', 're_9')""",
    )
    listed = cuota("rails")
    assert listed.returncode == 1
    assert "7.00, re_9, event evt_settled" in listed.stdout
    done = cuota("rails", "settle", "evt_settled", "--reason", "refunded in Cuota too", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"event": "evt_settled", "settledNow": True})
    assert json.loads(cuota("rails", "--json").stdout)["refunds"] == before
    (entry,) = json.loads(cuota("desk", "log", "--json").stdout)[:1]
    assert (entry["action"], entry["reason"]) == ("rails.settle", "refunded in Cuota too")
    again = cuota("rails", "settle", "evt_settled", "--reason", "again")
    assert again.returncode == 0
    assert "Event evt_settled was settled before." in again.stdout


def test_an_unknown_event_cannot_be_settled_and_a_reason_is_required(cuota: Cuota) -> None:
    unknown = cuota("rails", "settle", "evt_unknown", "--reason", "paid")
    assert unknown.returncode == 1
    assert "List them with: cuota rails" in unknown.stderr
    assert cuota("rails", "settle", "evt_unknown").returncode == 2
    assert cuota("rails", "settle", "evt_unknown", "--reason", " ").returncode == 2
