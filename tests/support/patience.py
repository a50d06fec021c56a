"""Longer time limits for the service inside a test process. On a busy machine, a test waits and does not fail.

The tests of the limits themselves take the fixture `product_limits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cuota.db import pool

SECONDS = 60
_SESSION = {
    "lock_timeout": f"{SECONDS}s",
    "statement_timeout": f"{SECONDS}s",
    "idle_in_transaction_session_timeout": f"{2 * SECONDS}s",
}
# In a batch, a request still waits only briefly for a locked row.
_TOGETHER = {name: value for name, value in _SESSION.items() if name != "lock_timeout"}
# The statement's own time limit ends the statement before the session counts as hanging.
_MODULE = {"WAIT_SECONDS": SECONDS / 3, "CONNECT_SECONDS": SECONDS / 3, "HANGS_SECONDS": 2.0 * SECONDS}
_PRODUCT = (
    {name: pool.SESSION[name] for name in _SESSION},
    {name: pool.TOGETHER[name] for name in _TOGETHER},
    {name: getattr(pool, name) for name in _MODULE},
)


def be_patient() -> None:
    """Give longer limits to all pools that are opened from now on."""
    _take(_SESSION, _TOGETHER, _MODULE)


@contextmanager
def as_in_production() -> Iterator[None]:
    """Inside the block, pools are opened with the service's normal limits."""
    _take(*_PRODUCT)
    try:
        yield
    finally:
        be_patient()


def _take(session: dict[str, str], together: dict[str, str], module: dict[str, float]) -> None:
    pool.SESSION.update(session)
    pool.TOGETHER.update(together)
    for name, value in module.items():
        setattr(pool, name, value)
