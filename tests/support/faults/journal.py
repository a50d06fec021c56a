"""The clients' record. A client writes one line before it sends an operation, and one line for the answer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Intent:
    """One operation, which a client may send several times. Amounts are in cents; `order` is empty for a new order.

    `merchant` is the merchant that sends it. `wrong` says why it must be refused: over its limit, or another
    merchant's order.
    """

    number: int
    operation: str
    merchant: str
    order: str
    reference: str
    amount: int
    wrong: str = ""


@dataclass(frozen=True)
class Told:
    """The definite answer: `applied`, `repeated` (this request was applied before), `taken` (its reference belongs to another
    request), `refused`, or `put off` (nothing was applied, and the client does not send the request again)."""

    result: str
    amount: int = 0
    order: str = ""
    code: str = ""


@dataclass(frozen=True)
class Story:
    """An operation and its definite answer. The answer is None if the operation never got one."""

    intent: Intent
    told: Told | None


class Journal:
    """A file that survives every process of the campaign."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("a", buffering=1)
        self._number = 0

    def intend(self, operation: str, merchant: str, order: str, amount: int, **more: str) -> Intent:
        """Record an operation before it is sent. Without a `reference`, one is made from its number."""
        self._number += 1
        reference = more.get("reference") or f"intent {self._number}"
        intent = Intent(self._number, operation, merchant, order, reference, amount, more.get("wrong", ""))
        self._write("intended", asdict(intent))
        return intent

    def told(self, intent: Intent, told: Told) -> None:
        """Record an answer before the client does anything else."""
        self._write("told", {"number": intent.number, **asdict(told)})

    def strange(self, intent: Intent, what: str) -> None:
        """Record an answer that no fault excuses."""
        self._write("strange", {"number": intent.number, "what": what})

    def _write(self, kind: str, facts: dict[str, Any]) -> None:
        self._file.write(json.dumps({kind: facts}) + "\n")

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> tuple[list[Story], list[str]]:
    """Return the stories so far, and the unexpected answers."""
    intents: dict[int, Intent] = {}
    told: dict[int, Told] = {}
    strange: list[str] = []
    for line in path.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            # Another thread is writing this line right now.
            break
        facts: dict[str, Any] = json.loads(line)
        if "intended" in facts:
            intents[facts["intended"]["number"]] = Intent(**facts["intended"])
        elif "told" in facts:
            number = facts["told"].pop("number")
            told[number] = Told(**facts["told"])
        else:
            number = facts["strange"]["number"]
            strange.append(f"intent {number} ({intents[number].operation}): {facts['strange']['what']}")
    return [Story(intent, told.get(number)) for number, intent in intents.items()], strange
