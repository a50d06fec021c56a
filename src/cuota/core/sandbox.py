"""The sandbox's test table: one for every interface. The page, the card simulator and `cuota demo` all read it."""

from __future__ import annotations

from typing import NamedTuple

CODE = "123456"
DECLINED_SURNAME = "Declinetest"
APPROVED_SURNAME = "Approvetest"


class SandboxCard(NamedTuple):
    """A card number as people type it, how the simulator behaves for it, and what that means in words."""

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
