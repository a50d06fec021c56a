"""The table of event types: an event has the operation and the success of its type, and other types do not exist."""

from __future__ import annotations

import pytest

from cuota.core.order.event import EVENT_TYPES, Event, EventType, event_type
from cuota.core.order.movement import MovementKind


@pytest.mark.parametrize("each", EVENT_TYPES, ids=lambda each: each.name)
def test_an_event_has_the_operation_and_the_success_of_its_type(each: EventType) -> None:
    event = Event(each.name, 100)
    assert (event.operation, event.success) == (each.operation, each.success)


@pytest.mark.parametrize("name", ["order.paid", "capture", "", "webhook.test"])
def test_an_event_of_a_type_that_is_not_in_the_table_cannot_be_made(name: str) -> None:
    with pytest.raises(ValueError, match="EVENT_TYPES"):
        Event(name, 100)


def test_sql_for_a_type_that_is_not_in_the_table_cannot_be_built() -> None:
    assert event_type("order.rejected") == "order.rejected"
    with pytest.raises(ValueError, match="EVENT_TYPES"):
        event_type("order.reject")


def test_every_kind_of_movement_has_an_event_for_success_and_one_for_refusal() -> None:
    for kind in MovementKind:
        done, refused = Event(f"{kind}.completed", 1), Event(f"{kind}.rejected", 1)
        assert (done.success, refused.success) == (True, False)
        assert done.operation == refused.operation
