"""All card rails of an installation, with a timeout for every call. Each stored card names its rail."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar
from uuid import UUID

from cuota.core.order.order import LOOK_UP_AFTER
from cuota.rails.bounded import SECONDS, within
from cuota.rails.card.breaker import Breaker, guarded
from cuota.rails.card.protocol import (
    BadEvent,
    Card,
    CardAnswer,
    CardEvent,
    CardFields,
    CardHolder,
    CardOutcome,
    CardRail,
    ChargebackReply,
    ChargeRequest,
    RefundRequest,
    UnknownToken,
    declined,
)
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.unavailable import RailUnavailable

# A charge is looked up only after its own call has timed out.
assert LOOK_UP_AFTER.total_seconds() > SECONDS
T = TypeVar("T")
_REASON = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
_LONGEST_URL = 2048
# Evidence has files, which take longer to send, so its timeout is this many times the timeout of other calls.
EVIDENCE_FACTOR = 2.5


def _read(answer: object) -> CardAnswer:
    """Check an answer. An unclear answer counts as no answer, so the charge is looked up later."""
    if not isinstance(answer, CardAnswer) or not isinstance(answer.outcome, CardOutcome):
        raise RailUnavailable("the rail's answer cannot be read")
    if answer.outcome is CardOutcome.REQUIRES_ACTION and not _is_url(answer.action_url):
        raise RailUnavailable("the rail asks for a confirmation without a valid address")
    if answer.outcome is not CardOutcome.DECLINED:
        return answer
    if isinstance(answer.reason, str) and _REASON.fullmatch(answer.reason):
        return answer
    return declined("card_declined")


def _is_url(url: object) -> bool:
    return isinstance(url, str) and url.startswith(("https://", "http://")) and len(url) <= _LONGEST_URL


def _uncounted(name: str, result: str) -> None:
    del name, result


class CardRails:
    """Calls the rail of each card. Raises RailUnavailable after a timeout or an unexpected error.

    The `active` rail accepts new cards. `others` only serve the plans whose cards they have stored. A stored token is
    the rail's name, a colon, and the rail's own token. Tokens that were stored before rails had names belong to the
    active rail.
    """

    def __init__(self, active: CardRail, others: Sequence[CardRail] = (), seconds: float = SECONDS) -> None:
        self.active = active
        self.by_name: dict[str, CardRail] = {rail.name: rail for rail in (*others, active)}
        self._seconds = seconds
        self.breakers = {name: Breaker() for name in self.by_name}
        # Called with the rail's name, and `answered`, `failed` or `refused` for each call. The metrics count these.
        self.called: Callable[[str, str], None] = _uncounted

    @property
    def sandbox(self) -> SandboxCardRail | None:
        """Return the simulated processor if it accepts the new cards."""
        return self.active if isinstance(self.active, SandboxCardRail) else None

    async def close(self) -> None:
        """Close the connections of each rail that has a method `close`."""
        for rail in self.by_name.values():
            close = getattr(rail, "close", None)
            if close is not None:
                await close()

    def fields(self) -> CardFields:
        """Return the values with which a page shows the card fields."""
        return self.active.fields()

    async def keep(self, token: str, holder: CardHolder) -> Card:
        """Set up a card for later charges. The returned token names the rail. Raises UnknownToken."""
        card = await self._call(self.active, lambda: self.active.keep(token, holder))
        return replace(card, token=f"{self.active.name}:{card.token}")

    def _of(self, token: str) -> tuple[CardRail, str]:
        name, colon, own = token.partition(":")
        if not colon:
            return self.active, token
        if name not in self.by_name:
            raise RailUnavailable(f"the card rail {name} is not loaded; name it in CUOTA_CARD_RAILS_KEPT")
        return self.by_name[name], own

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        """Charge the card."""
        return _read(await self._ask(asked, lambda rail: rail.charge))

    async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
        """Look up a charge. Return None if it never arrived."""
        found = await self._ask(asked, lambda rail: rail.find_charge)
        return None if found is None else _read(found)

    async def give_up(self, asked: ChargeRequest) -> CardAnswer:
        """Cancel a charge that waits for the consumer."""
        return _read(await self._ask(asked, lambda rail: rail.give_up))

    async def _ask(
        self, asked: ChargeRequest, method: Callable[[CardRail], Callable[[ChargeRequest], Awaitable[T]]]
    ) -> T:
        rail, own = self._of(asked.token)
        return await self._call(rail, lambda: method(rail)(replace(asked, token=own)))

    async def refund(self, asked: RefundRequest) -> CardAnswer:
        """Refund to the card that paid."""
        rail, own = self._of(asked.token)
        return _read(await self._call(rail, lambda: rail.refund(replace(asked, token=own))))

    async def answer_chargeback(self, reply: ChargebackReply) -> None:
        """Send evidence for a chargeback, or accept the chargeback."""
        rail, own = self._of(reply.token)
        seconds = self._seconds * EVIDENCE_FACTOR
        await self._call(rail, lambda: rail.answer_chargeback(replace(reply, token=own)), seconds)

    async def read_event(self, headers: Mapping[str, str], body: bytes) -> tuple[str, CardEvent | None]:
        """Return the name of the rail whose processor signed a message, and the event. Raises BadEvent if none did."""
        for name, rail in self.by_name.items():
            try:
                # Anybody can send a message, so a message neither opens nor closes the breaker.
                return name, await within(rail.read_event(headers, body), self._seconds, passed=(BadEvent,))
            except BadEvent:
                continue
        raise BadEvent("no card processor of this installation signed this message")

    async def events_since(self, name: str, since: datetime) -> Sequence[CardEvent]:
        """Return the events of a rail's processor since that time."""
        rail = self.by_name[name]
        return await self._call(rail, lambda: rail.events_since(since))

    async def forget(self, name: str, consumer_id: UUID) -> None:
        """Ask a rail's processor to delete an erased consumer."""
        rail = self.by_name[name]
        await self._call(rail, lambda: rail.forget(consumer_id))

    async def _call(
        self, rail: CardRail, call: Callable[[], Awaitable[T]], seconds: float | None = None
    ) -> T:
        return await guarded(
            self.breakers[rail.name],
            lambda: within(call(), seconds or self._seconds, passed=(UnknownToken,)),
            partial(self.called, rail.name),
        )
