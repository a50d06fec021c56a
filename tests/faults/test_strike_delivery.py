"""`kill -9` at each step between an event's commit and its acknowledgment: every event arrives, in order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served import free_port, service, until
from struck import Receiver, StruckService, World, receiver, world_of

pytestmark = pytest.mark.faults

PUBLISH, CLAIM, RECORD = "INTO feed (", "tries = d.tries + 1", "INTO delivery_attempts"
MOMENTS = {
    "before the event's own commit": ("before", "sql", "INSERT INTO movements"),
    "after the event's own commit": ("after", "sql", "INSERT INTO movements"),
    "before it is published": ("before", "sql", PUBLISH),
    "after it is published": ("after", "sql", PUBLISH),
    "before the claim": ("before", "sql", CLAIM),
    "after the claim": ("after", "sql", CLAIM),
    "before it is sent": ("before", "call", "GuardedClient.post"),
    "after it is sent and before that is recorded": ("after", "call", "GuardedClient.post"),
    "before the record": ("before", "sql", RECORD),
    "after the record": ("after", "sql", RECORD),
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with service() as plain, receiver() as hooks:
        served = StruckService(plain.data, free_port())
        try:
            served.start()
            yield world_of(served, hooks)
        finally:
            served.stop()


@pytest.fixture(scope="module")
def order(world: World) -> str:
    return world.approved()


def arrived_in_order(hooks: Receiver, order_id: str, last: int) -> bool:
    """Each event at least once; the first arrival of n+1 after the first of n."""
    firsts = list(dict.fromkeys(hooks.sequences(order_id)))
    return firsts == list(range(1, last + 1))


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_event_is_delivered_whatever_dies_at_that_moment(world: World, order: str, moment: str) -> None:
    until(lambda: world.ask("SELECT count(*) FROM deliveries WHERE state = 'pending'") == 0)
    world.service.arm(*MOMENTS[moment])
    reference = f"strike {moment}"
    body = {"amount": "0.01", "merchantReference": reference}
    answer = world.call("POST", f"/order/{order}/capture", json=body)
    assert answer.status_code == 200 or answer.json()["original"]["sameRequest"], answer.text
    world.service.wait_for_strike()
    # The dead worker's claim ends by its lease; a minute passes at once here.
    world.later("1 minute")
    captures = len(world.call("GET", f"/order/{order}").json()["captures"])
    until(lambda: arrived_in_order(world.receiver, order, 2 + captures), 30)
    until(lambda: world.ask("SELECT count(*) FROM deliveries WHERE state <> 'delivered'") == 0, 30)
    assert world.ask("SELECT count(*) FROM movements WHERE reference = $1", reference) == 1
    assert world.service.run("verify").returncode == 0
