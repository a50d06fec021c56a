"""A fault at each step between an event's commit and its acknowledgment: every event arrives, in order."""

from __future__ import annotations

import itertools
import time

import pytest

from support.faults.struck_shop import ACTIONS, HANG_SECONDS, Shop

pytestmark = pytest.mark.faults

PUBLISH, CLAIM, RECORD = "INTO feed (", "tries = least(d.tries + 1", "INTO delivery_attempts"
MOMENTS = {
    "before it is published": ("before", "sql", PUBLISH),
    "after it is published": ("after", "sql", PUBLISH),
    "before the claim": ("before", "sql", CLAIM),
    "after the claim": ("after", "sql", CLAIM),
    "before it is sent": ("before", "call", "GuardedClient.post"),
    "after it is sent and before that is recorded": ("after", "call", "GuardedClient.post"),
    "before the record": ("before", "sql", RECORD),
    "after the record": ("after", "sql", RECORD),
}
IN_HAND = (
    "after the claim",
    "before it is sent",
    "after it is sent and before that is recorded",
    "before the record",
)
SECONDS = 15.0
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def order(shop: Shop) -> str:
    return shop.completed()


def capture(shop: Shop, order: str) -> None:
    """Capture one cent. The fault may hit the worker that answers. The repeated request is then a duplicate."""
    body = {"amount": "0.01", "merchantReference": f"delivery {next(NUMBERS)}"}
    answer = shop.ask(f"/order/{order}/capture", body)
    assert answer.status_code == 200 or answer.json()["code"] == "duplicate_reference", answer.text


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_every_event_is_delivered_despite_a_fault_at_any_step(
    shop: Shop, order: str, moment: str, action: str
) -> None:
    shop.told_in_order(order)
    shop.arm(MOMENTS[moment], action)
    capture(shop, order)
    shop.service.wait_for_strike()
    if action == "hang":
        # The hanging worker has already passed its failpoint. Wait for it, or it would deliver the next test's event.
        time.sleep(HANG_SECONDS)
    # Claims end with their lease, and failed deliveries are retried later. Skip that minute.
    shop.later("1 minute")
    shop.told_in_order(order)


@pytest.mark.parametrize(
    ("moment", "action"), [*((each, "kill") for each in IN_HAND), ("after the claim", "cut")]
)
def test_events_claimed_by_a_killed_worker_or_not_yet_seen_by_any_worker_are_delivered_within_seconds(
    shop: Shop, order: str, moment: str, action: str
) -> None:
    shop.told_in_order(order)
    shop.arm(MOMENTS[moment], action)
    # The worker claims the first delivery, and the others wait for it. This test does not move the clock.
    for _ in range(3):
        capture(shop, order)
    shop.service.wait_for_strike()
    shop.told_in_order(order, SECONDS)


def test_after_all_faults_every_delivery_is_recorded_and_cuota_verify_finds_no_problem(
    shop: Shop, order: str
) -> None:
    shop.later("1 minute")
    shop.until(
        "SELECT NOT EXISTS (SELECT FROM deliveries WHERE order_id = $1::text::uuid AND state <> 'delivered')",
        order,
    )
    shop.verified()
