"""Code that the tests of time share: a service with a movable clock, in this process or as `cuota serve`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.faults.served import Service, service


@pytest.fixture
def served() -> Iterator[Service]:
    """A process of `cuota serve` with two worker processes."""
    with service() as made:
        made.start(workers=2)
        yield made
