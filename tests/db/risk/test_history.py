"""db/risk/history: one statement reads a consumer's history at all merchants, and how often the same signals were seen
recently."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from bench.past import consumer, fill
from cuota.core.risk.facts import History
from cuota.core.risk.signal import SignalKind
from cuota.db.risk import history
from cuota.db.risk.history import HistoryQuery, RiskHistory
from cuota.work.tidy import tidy
from support.makers import PROFILE, complete
from support.own_service import Own
from support.phones import phone_number

DAY = timedelta(days=1)


def asked(own: Own, consumer: str, **signals: bytes) -> HistoryQuery:
    now = own.service.clock.now()
    tried = {SignalKind(kind): value for kind, value in signals.items()}
    since = dict.fromkeys(SignalKind, now - DAY)
    consumer_id = own.context.vault.consumer_id(consumer)
    return HistoryQuery(own.merchant.merchant_id, uuid4(), consumer_id, now, since, tried)


async def seen(own: Own, phone: str) -> RiskHistory:
    return await history.read(own.context.pool, asked(own, phone))


async def test_an_unknown_consumer_has_no_history(own: Own) -> None:
    found = await seen(own, phone_number())
    assert (found.history, found.counted, found.surname) == (History(), frozenset(), None)
    assert (found.approvals, found.model, found.additional) == ("off", None, None)


async def test_the_history_covers_all_merchants(own: Own) -> None:
    phone = phone_number()
    for merchant in (own.merchant, own.auto_merchant):
        await complete(own.service, merchant.merchant_id, await merchant.create("100.00"), phone=phone)
    found = await seen(own, phone)
    past = History(approved_orders=2, paid_installments=2, outstanding=2 * 7500, days_known=0)
    assert (found.history, found.surname) == (past, PROFILE.surname)


async def test_an_installment_whose_charge_failed_is_overdue_and_counts_as_late_once_it_is_paid(
    own: Own,
) -> None:
    phone = phone_number()
    order = await own.merchant.create("100.00")
    await complete(own.service, own.merchant.merchant_id, order, phone=phone)
    async with own.service.clock.moved(days=16):
        async with own.owner() as owner:
            await owner.execute("UPDATE installments SET failures = 1 WHERE number = 2")
            found = (await seen(own, phone)).history
            assert (found.overdue_installments, found.late_installments, found.days_known) == (1, 0, 16)
            await owner.execute(
                "UPDATE installments SET charge_id = gen_random_uuid(), failures = 1, charge_at = NULL, remind_at = NULL"
                " WHERE number = 2"
            )
        found = (await seen(own, phone)).history
        assert (found.overdue_installments, found.late_installments, found.paid_installments) == (0, 1, 2)
        assert found.outstanding == 5000


async def test_the_whole_order_counts_as_owed_while_its_card_is_charged(own: Own) -> None:
    phone = phone_number()
    order = await own.merchant.create("100.00", merchantFeeForPaymentPlan="2.00")
    declined = "4000 0000 0000 0002"
    await complete(own.service, own.merchant.merchant_id, order, declined, phone=phone)
    assert (await seen(own, phone)).history.outstanding == 0
    async with own.owner() as owner:
        await owner.execute("UPDATE orders SET charging = gen_random_uuid(), charging_since = now()")
    assert (await seen(own, phone)).history.outstanding == 10_200


async def test_the_history_lists_the_reserved_orders_that_it_has_counted(own: Own) -> None:
    phone, merchant_id = phone_number(), own.merchant.merchant_id
    orders = [await own.merchant.create() for _ in range(3)]
    approved, refused, waits = [UUID(order["orderId"]) for order in orders]
    await complete(own.service, merchant_id, orders[0], phone=phone)
    await complete(own.service, merchant_id, orders[1], "4000 0000 0000 0002", phone=phone)
    request = replace(asked(own, phone), reserved=(approved, refused, waits))
    assert (await history.read(own.context.pool, request)).counted == {approved}
    async with own.owner() as owner:
        await owner.execute(
            "UPDATE orders SET charging = gen_random_uuid(), charging_since = now() WHERE order_id = $1",
            refused,
        )
    assert (await history.read(own.context.pool, request)).counted == {approved, refused}


async def test_declined_orders_count_for_thirty_days_except_those_of_the_sandbox_s_test_name(
    own: Own,
) -> None:
    phone, profile = phone_number(), PROFILE
    order = await own.merchant.create("100.00")
    for _ in range(3):
        await complete(own.service, own.merchant.merchant_id, order, "4000 0000 0000 0002", profile, phone)
    steered = type(profile)("Jordan", "Declinetest", profile.email, profile.address)
    await complete(
        own.service, own.merchant.merchant_id, await own.merchant.create(), profile=steered, phone=phone
    )
    assert (await own.merchant.read(order))["orderStatus"] == "Declined"
    assert (await seen(own, phone)).history.declined_orders == 1
    async with own.service.clock.moved(days=31):
        assert (await seen(own, phone)).history.declined_orders == 0


async def test_a_chargeback_counts_as_a_dispute(own: Own) -> None:
    phone = phone_number()
    await complete(own.service, own.merchant.merchant_id, await own.merchant.create(), phone=phone)
    async with own.owner() as owner:
        await owner.execute(
            "INSERT INTO charges SELECT merchant_id, order_id, gen_random_uuid(), 2, 2500, 't', 'visa', '4242', 'failed',"
            " 'card_stolen', now(), now() FROM orders"
        )
    assert (await seen(own, phone)).history.disputes == 1


@pytest.mark.parametrize("kind", list(SignalKind))
async def test_other_orders_with_the_same_signal_count_only_within_the_window(
    own: Own, kind: SignalKind
) -> None:
    same, other = secrets.token_bytes(32), secrets.token_bytes(32)
    request = asked(own, phone_number(), **{kind.value: same})
    rows = [
        (uuid4(), same, timedelta(hours=1)),
        (uuid4(), same, timedelta(hours=23)),
        (uuid4(), same, timedelta(hours=25)),
        (uuid4(), other, timedelta(hours=1)),
        (request.order_id, same, timedelta(minutes=1)),
    ]
    async with own.owner() as owner:
        for order_id, value, ago in rows:
            await owner.execute(
                "INSERT INTO signals VALUES ($1, $2, $3, $4, $5)",
                request.merchant_id, order_id, kind, value, request.at - ago,
            )  # fmt: skip
    found = (await history.read(own.context.pool, request)).velocity
    assert {each: getattr(found, each) for each in SignalKind} == {
        each: 2 if each is kind else 0 for each in SignalKind
    }


async def test_the_count_of_a_very_frequent_signal_stops_at_a_limit(own: Own) -> None:
    request = asked(own, phone_number(), phone=b"often")
    async with own.owner() as owner:
        await owner.execute(
            "INSERT INTO signals SELECT $1::uuid, gen_random_uuid(), 'phone', 'often', $2::timestamptz FROM generate_series(1, 1500)",
            request.merchant_id, request.at,
        )  # fmt: skip
    assert (await history.read(own.context.pool, request)).velocity.phone == history.MOST_SEEN


async def test_signals_older_than_every_window_are_deleted(own: Own) -> None:
    request = asked(own, phone_number(), phone=b"kept", card=b"old")
    async with own.owner() as owner:
        for kind, ago in (("phone", 30 * DAY), ("card", 61 * DAY)):
            value = request.signals[SignalKind(kind)]
            ids = request.merchant_id, uuid4()
            await owner.execute(
                "INSERT INTO signals VALUES ($1, $2, $3, $4, $5)", *ids, kind, value, request.at - ago
            )
        await tidy(own.context)
        assert [row["kind"] for row in await owner.fetch("SELECT kind FROM signals")] == ["phone"]


async def test_the_statement_also_reads_the_merchant_s_mode_and_model_and_the_order_s_data(own: Own) -> None:
    request = asked(own, phone_number())
    async with own.owner() as owner:
        ids = request.merchant_id, request.order_id
        await owner.execute(
            "INSERT INTO models VALUES ($1, 'm1', '{\"a\": 1}', '{}', now()), ($2, 'm1', '{\"b\": 1}', '{}', now())",
            request.merchant_id, own.auto_merchant.merchant_id,
        )  # fmt: skip
        await owner.execute(
            "UPDATE merchants SET approvals = 'trial', approvals_model = 'm1' WHERE merchant_id = $1", ids[0]
        )
        await owner.execute(
            "INSERT INTO sdk_checkouts (merchant_id, order_id, display, flow, integration, additional)"
            " VALUES ($1, $2, 'redirect', 'standard', 'gateway', '{\"fields\": {}}')", *ids,
        )  # fmt: skip
    found = await history.read(own.context.pool, request)
    assert (found.approvals, json.loads(found.model or "")) == ("trial", {"a": 1})
    assert json.loads(found.additional or "") == {"fields": {}}


BIG = ("plans", "orders", "installments", "charges", "decisions", "signals")


async def test_the_statement_reads_no_table_from_end_to_end(own: Own) -> None:
    async with own.owner() as owner:
        await fill(owner, own.merchant.merchant_id, 150, 60)
        consumer_id: UUID = await consumer(owner, 7)
        now = own.service.clock.now()
        past = "uuid, uuid, uuid, timestamptz, timestamptz, text[], text[]"
        await owner.execute(
            f"PREPARE read ({past}{', bytea, timestamptz' * 4}, bytea, uuid[]) AS {history._READ}"
        )
        for mode in ("force_custom_plan", "force_generic_plan"):
            await owner.execute(f"SET plan_cache_mode = {mode}")
            given = f"'{own.merchant.merchant_id}', '{uuid4()}', '{consumer_id}', '{now}', '{now - 30 * DAY}', '{{x}}', '{{x}}'"
            tried = f", '\\x01', '{now - DAY}'" * 4
            rows = await owner.fetch(f"EXPLAIN (FORMAT JSON) EXECUTE read ({given}{tried}, NULL, '{{}}')")
            plan = rows[0][0]
            scanned = [
                table for table in BIG if f'"Seq Scan", "Relation Name": "{table}"' in " ".join(plan.split())
            ]
            nodes = list(_nodes(json.loads(plan)[0]["Plan"]))
            assert {node["Relation Name"] for node in nodes if "Relation Name" in node} >= set(BIG)
            assert [
                n["Relation Name"]
                for n in nodes
                if n["Node Type"] == "Seq Scan" and n["Relation Name"] in BIG
            ] == []
            assert scanned == []


def _nodes(plan: dict) -> list[dict]:
    return [plan, *(node for inner in plan.get("Plans", []) for node in _nodes(inner))]
