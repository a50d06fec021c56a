"""The clock of this machine, which a test can set. The database keeps its own."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

import pytest


def set_clock(monkeypatch: pytest.MonkeyPatch, ahead: timedelta) -> None:
    """Set the clock of this machine. The database keeps its own."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + ahead

    monkeypatch.setattr("cuota.flows.context.datetime", Wrong)
