"""`cuota_orders_total` counts each order under each status that the order gets."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from cuota.core.order.event import EVENT_TYPES, Event
from cuota.core.order.order import Status
from cuota.web.server.metrics import count

CAME_TO = {
    "order.created": Status.CREATED,
    "order.approved": Status.APPROVED,
    "order.declined": Status.DECLINED,
    "order.rejected": Status.DECLINED,
    "order.abandoned": Status.ABANDONED,
}


def orders() -> dict[str, float]:
    """Return the counter's values by status."""
    (family,) = (each for each in REGISTRY.collect() if each.name == "cuota_orders")
    return {each.labels["status"]: each.value for each in family.samples if each.name == "cuota_orders_total"}


@pytest.mark.parametrize("name", [each.name for each in EVENT_TYPES])
def test_an_event_counts_its_order_under_the_new_status_and_no_other(name: str) -> None:
    before = orders()
    count(Event(name, 100))
    after = orders()
    risen = {status for status, value in after.items() if value != before.get(status, 0)}
    assert risen == ({CAME_TO[name]} if name in CAME_TO else set())
    assert set(after) <= set(Status)
