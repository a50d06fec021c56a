"""The sandbox's table of test cards. The page, the card simulator and `cuota demo` all use this table."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

CODE = "123456"
DECLINED_SURNAME = "Declinetest"
APPROVED_SURNAME = "Approvetest"
REFERRED_SURNAME = "Refertest"


# The tables with scheduled work, and the name of one row.
SCHEDULED = {
    "orders": "order",
    "card_refunds": "card refund",
    "card_events": "card event",
    "payouts": "payout",
    "disputes": "dispute",
    "dispute_evidence": "answer to a chargeback",
    "messages": "message",
    "deliveries": "webhook",
    "virtual_cards": "virtual card",
    "issuing_simulator.clearings": "card clearing",
    "settlements": "settlement",
    "installments": "write-off",
}


def scheduled(table: str, rows: int) -> str:
    """Return how many rows of a table are due, as `1 order` or `3 orders`."""
    return f"{rows} {SCHEDULED[table]}{'' if rows == 1 else 's'}"


def ahead_of_real(ahead: timedelta) -> str:
    """Return how far the sandbox's clock is from the real time, in words."""
    if abs(ahead) < timedelta(seconds=1):
        return "the real time"
    span = timedelta(seconds=round(abs(ahead).total_seconds()))
    return f"{span} {'ahead of' if ahead > timedelta(0) else 'behind'} the real time"


class SandboxCard(NamedTuple):
    """A test card: its number as people type it, its behavior in the simulator, and a description."""

    number: str
    behaviour: str
    meaning: str


TEST_CARDS = (
    SandboxCard("4242 4242 4242 4242", "pays", "pays"),
    SandboxCard("4000 0000 0000 0002", "declined", "is declined by its bank"),
    SandboxCard("4000 0000 0000 9995", "no_funds", "has no funds"),
    SandboxCard("4000 0000 0000 0341", "pays_once", "pays the first installment and fails later ones"),
    SandboxCard("4000 0000 0000 9987", "lost_later", "pays the first installment and is then reported lost"),
    SandboxCard("4000 0000 0000 2685", "disputed", "pays and is disputed after a week"),
    SandboxCard("4000 0027 6000 3184", "action", "must be confirmed at its bank for each payment"),
    SandboxCard(
        "4000 0025 0000 3155", "action_once", "must be confirmed at its bank for the first payment only"
    ),
    SandboxCard("4000 0082 6000 3178", "action_declined", "is confirmed at its bank and then declined"),
    SandboxCard("4000 0000 0000 3006", "processing", "stays in progress for a minute and then pays"),
    SandboxCard("4000 0000 0000 4004", "renewed", "pays, and its bank replaces it after three weeks"),
)


class SandboxAccount(NamedTuple):
    """A test account of the sandbox's bank: its number, its behavior, and a description."""

    number: str
    behaviour: str
    meaning: str


TEST_ROUTING = "110000000"
"""The routing number of the sandbox's bank. Any other valid one works too."""
TEST_ACCOUNTS = (
    SandboxAccount("000123456789", "pays", "pays on the next business day"),
    SandboxAccount(
        "000111111116", "returned", "pays, and the money comes back two business days later (R03)"
    ),
    SandboxAccount("000111111113", "rejected", "is rejected at once (R13)"),
    SandboxAccount("000111111112", "silent", "is accepted, and then the bank never says whether it paid"),
)


class SanctionedName(NamedTuple):
    """An invented entry of the sandbox's list of sanctioned names: its number, all its names, and what else is known."""

    entry: str
    company: bool
    names: tuple[str, ...]
    detail: str


SANCTIONED = (
    SanctionedName("S-1", company=False, names=("Viktor Morozov", "Viktor Morosow"), detail="born 1961 in Zarovia"),
    SanctionedName("S-2", company=False, names=("Yuri Volkov",), detail="born 1974 in Zarovia"),
    SanctionedName("S-3", company=False, names=("Muhammad al-Hakim", "Abu Salim"), detail="born 1969, country not known"),
    SanctionedName("S-4", company=False, names=("Wang Xiaoming",), detail="born 1980, country not known"),
    SanctionedName("S-5", company=True, names=("Obsidian Reef Trading LLC",), detail="owned by S-1"),
    SanctionedName("S-6", company=True, names=("Zarovia Export Company", "ZarEx"), detail="seat in Zarovia"),
)  # fmt: skip
"""These names stand for no real person or company. docs/operator.md lists them."""
