"""The process's log: one JSON object on each line of standard error."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from cuota.core.wire.card_text import masked


class JsonLines(logging.Formatter):
    """Writes each log record as one line with a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the time, level, logger and message of the record, and the facts that were logged with it."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            # The DETAIL lines of PostgreSQL's messages quote whole rows, which may hold personal data.
            trace = self.formatException(record.exc_info).splitlines()
            line["trace"] = "\n".join(masked(text) for text in trace if not text.startswith("DETAIL:"))
        return json.dumps(line)


def set_up_logging(level: str) -> None:
    """Write our logs, and uvicorn's warnings, as JSON lines to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("cuota").setLevel(level.upper())
