"""Rails for production processes on a machine whose clock is a day ahead. A process that imports this module has that clock."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

import cuota.flows.context
from support.rails.parts import RealCardRail, RealMessageRail

__all__ = ["AHEAD", "RealCardRail", "RealMessageRail"]

AHEAD = timedelta(days=1)


class _Ahead(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + AHEAD


cuota.flows.context.datetime = _Ahead  # type: ignore[attr-defined]
