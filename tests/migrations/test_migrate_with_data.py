"""This release continues with a database that an earlier release filled: it collects plans and sends events."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from support.db.migrating import ask, migrated, migrated_to

# The rows of an approved order of 100.00 in the release of 0002. The first installment is paid, and nothing is
# captured.
FILLED = """
INSERT INTO orders (merchant_id, order_id, token, version, status, currency, amount, fee, auto_capture, transfers, events,
    created_at, expires_at, authorization_expires_at, due_at) VALUES ({m}, {o}, gen_random_uuid(), 3, 'Created', 'USD',
    10000, 0, false, 2, 2, {t}, {t}, timestamptz '2026-11-14 18:00Z', timestamptz '2026-11-14 18:00Z');
INSERT INTO plans VALUES ({m}, {o}, gen_random_uuid(), 'America/New_York', '2026-11-01', 'text', 'hash', {t});
INSERT INTO charges VALUES ({m}, {o}, {c}, 1, 2500, 'card_token', 'visa', '4242', 'succeeded', NULL, {t}, {t});
UPDATE orders SET status = 'Approved';
INSERT INTO installments SELECT {m}::uuid, {o}::uuid, n, date '2026-11-01' + 14 * (n - 1), 2500, 0, CASE WHEN n = 1 THEN {c}::uuid END
    FROM generate_series(1, 4) n;
INSERT INTO events SELECT {m}::uuid, {o}::uuid, n, 'order.created', NULL, 10000, NULL, true, NULL, {t} FROM generate_series(1, 2) n;
""".format(
    m="'00000000-0000-4000-8000-000000000001'", o="'00000000-0000-7000-8000-000000000002'",
    c="'00000000-0000-7000-8000-000000000003'", t="timestamptz '2026-11-01 18:00Z'",
)  # fmt: skip


async def filled_before(where: dict[str, Any], last: str) -> None:
    """Fill a database like the release whose last migration is `last`."""
    await migrated_to(where, last)
    connection = await asyncpg.connect(**where)
    async with connection.transaction():
        await connection.execute(FILLED)
    await connection.close()


async def test_plans_of_the_earlier_release_are_collected_on_their_days(empty: dict[str, Any]) -> None:
    await filled_before(empty, "0002_card_simulator")
    await migrated(empty)
    charged = "SELECT array_agg(charge_at AT TIME ZONE 'UTC' ORDER BY number) FROM installments"
    days = [str(at) for at in await ask(empty, charged) if at]
    assert days == ["2026-11-15 05:00:00", "2026-11-29 05:00:00", "2026-12-13 05:00:00"]
    reminded = "SELECT array_agg(remind_at AT TIME ZONE 'UTC' ORDER BY number) FROM installments"
    assert str((await ask(empty, reminded))[1]) == "2026-11-12 15:00:00"
    assert await ask(
        empty, "SELECT collect_at = timestamptz '2026-11-12 15:00Z' AND due_at = collect_at FROM orders"
    )


async def test_events_of_the_earlier_release_are_in_the_feed_and_no_webhook_is_sent_about_them(
    empty: dict[str, Any],
) -> None:
    await filled_before(empty, "0002_card_simulator")
    await migrated(empty)
    assert await ask(empty, "SELECT array_agg(position ORDER BY sequence) FROM feed") == [1, 2]
    assert await ask(empty, "SELECT last_position FROM feeds") == 2
    assert await ask(empty, "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM deliveries)") == 0


DECIDED = """
INSERT INTO decisions (merchant_id, order_id, decided_at, approved, reasons, policy_version, inputs) VALUES
    ({m}, {o}, {t}, true, '{{within_merchant_limits}}', '2026-11-sandbox-names', '{{"amount": 10000}}'),
    ({m}, {o}, {t} + interval '90 seconds', true, '{{within_merchant_limits}}', '2026-11-sandbox-names', '{{}}')
""".format(
    m="'00000000-0000-4000-8000-000000000001'", o="'00000000-0000-7000-8000-000000000002'",
    t="timestamptz '2026-11-01 18:00Z'",
)  # fmt: skip


async def test_decisions_of_the_earlier_release_get_ids_computed_from_their_keys_and_are_not_changed_otherwise(
    empty: dict[str, Any],
) -> None:
    await filled_before(empty, "0008_issuing_simulator")
    await ask(empty, DECIDED)
    await migrated(empty)
    key = "00000000-0000-4000-8000-00000000000100000000-0000-7000-8000-000000000002"
    at = int(datetime(2026, 11, 1, 18, tzinfo=UTC).timestamp())
    expected = [UUID(hashlib.md5(f"{key}{each}.000000".encode()).hexdigest()) for each in (at, at + 90)]
    assert await ask(empty, "SELECT array_agg(decision_id ORDER BY decided_at) FROM decisions") == expected
    kept = "SELECT count(*) FROM decisions WHERE approved AND score IS NULL AND credit_limit IS NULL"
    assert await ask(empty, kept) == 2
    whose = "SELECT bool_and(d.consumer_id = p.consumer_id) FROM decisions d JOIN plans p USING (merchant_id, order_id)"
    assert await ask(empty, whose) is True


async def test_decisions_still_cannot_be_changed_after_the_migration(empty: dict[str, Any]) -> None:
    await filled_before(empty, "0008_issuing_simulator")
    await ask(empty, DECIDED)
    await migrated(empty)
    for statement in ("UPDATE decisions SET score = 1", "DELETE FROM decisions", "TRUNCATE decisions"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await ask(empty, statement)


async def test_the_previous_release_can_still_write_decisions_and_sessions_while_this_release_starts(
    empty: dict[str, Any],
) -> None:
    await filled_before(empty, "0008_issuing_simulator")
    await migrated(empty)
    await ask(empty, DECIDED)
    assert await ask(empty, "SELECT count(DISTINCT decision_id) FROM decisions") == 2
    assert await ask(empty, "SELECT count(*) FROM merchants WHERE approvals <> 'off'") == 0
    session = "INSERT INTO checkout_sessions (merchant_id, order_id, session_hash, created_at, display) VALUES (gen_random_uuid(), gen_random_uuid(), 'x', now(), 'popup')"
    await ask(empty, session)
    assert await ask(empty, "SELECT count(*) FROM checkout_sessions WHERE device_hash IS NULL") == 1


A_MERCHANT = """INSERT INTO merchants (merchant_id, name, minimum, maximum, defer_funds_capture, profile, currency, origins, signing_secret,
    webhook_secret, created_at) VALUES (gen_random_uuid(), '{}', 100, 200000, false, 'strict', 'USD', '{{}}', 'x', 'x', now())"""


async def test_merchants_that_exist_need_no_approval_nor_do_those_that_the_previous_release_still_adds(
    empty: dict[str, Any],
) -> None:
    await filled_before(empty, "0037_passkeys")
    await ask(empty, A_MERCHANT.format("Before"))
    await migrated(empty)
    await ask(empty, A_MERCHANT.format("Meanwhile"))
    free = "SELECT array_agg(name ORDER BY name) FROM merchants WHERE onboarding = 'none' AND suspended_at IS NULL"
    assert await ask(empty, free) == ["Before", "Meanwhile"]


VALUES_FROM = (
    "SELECT round(extract(epoch FROM agreement_values_from - now()) / 3600)::integer FROM installation"
)


async def test_agreements_are_stored_as_values_a_day_after_an_upgrade_and_their_texts_stay(
    empty: dict[str, Any],
) -> None:
    await filled_before(empty, "0002_card_simulator")
    await migrated(empty)
    assert await ask(empty, VALUES_FROM) == 24
    assert await ask(empty, "SELECT agreement FROM plans") == "text"


async def test_a_new_installation_stores_agreements_as_values_at_once(empty: dict[str, Any]) -> None:
    await migrated(empty)
    assert await ask(empty, VALUES_FROM) == 0
