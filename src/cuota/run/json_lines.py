"""The process's log: one JSON object on each line of standard error."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from cuota.core.wire.card_text import masked

# In a group of errors, each line begins with the lines of a tree.
_TREE = " |"
# What comes after the text of an error: the rest of PostgreSQL's message, the next error, or the next branch of the tree.
_NEXT = (
    "HINT:",
    "Traceback (most recent call last)",
    "During handling of the above exception",
    "The above exception was",
    "+ Exception Group Traceback",
    "+-",
)


def _without_rows(trace: Iterable[str]) -> Iterator[str]:
    """Leave out the DETAIL of PostgreSQL's messages. It quotes whole rows, whose values may have line breaks."""
    quoted = False
    for text in trace:
        bare = text.lstrip(_TREE)
        if bare.startswith("DETAIL:"):
            quoted = True
        elif bare.startswith(_NEXT):
            quoted = False
        if not quoted:
            yield text


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
            trace = self.formatException(record.exc_info).splitlines()
            line["trace"] = "\n".join(masked(text) for text in _without_rows(trace))
        return json.dumps(line)


def set_up_logging(level: str) -> None:
    """Write our logs, and uvicorn's warnings, as JSON lines to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("cuota").setLevel(level.upper())
