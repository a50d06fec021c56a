"""Silences the log: calls of the bank fail in these tests on purpose."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def expected_log(caplog: pytest.LogCaptureFixture) -> None:
    """Lost answers and returned payouts are logged."""
    caplog.set_level("CRITICAL", "cuota.rails")
    caplog.set_level("CRITICAL", "cuota.work")
