"""Code that the tests of faults share: one service with failpoints, used again and again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.faults.struck_shop import Shop, struck_shop


@pytest.fixture(scope="package")
def shop() -> Iterator[Shop]:
    """A service with two workers. A fault in one worker leaves the other one running."""
    with struck_shop() as made:
        yield made
