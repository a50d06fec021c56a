"""The sandbox's table of test cards. The page, the card simulator and `cuota demo` all use this table."""

from __future__ import annotations

from typing import NamedTuple

CODE = "123456"
DECLINED_SURNAME = "Declinetest"
APPROVED_SURNAME = "Approvetest"


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
    SandboxCard("4000 0000 0000 2685", "disputed", "pays and is later disputed"),
)
