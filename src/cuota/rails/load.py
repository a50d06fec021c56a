"""Loads the rails that the settings name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cuota.rails.bounded import BoundedCardRail, BoundedIssuingRail, BoundedMessageRail
from cuota.rails.card import CardRail, SandboxCardRail
from cuota.rails.card_network import CardNetwork
from cuota.rails.issuing import IssuingRail, SandboxIssuingRail
from cuota.rails.message import MessageRail, SandboxMessageRail, utc_now
from cuota.rails.message_live import LiveMessageRail
from cuota.rails.senders import Senders
from cuota.rails.stores import RailDatabase, RailVault


class NoSuchRail(Exception):
    """A rail cannot be loaded or used. The text names the setting and says why."""


@dataclass(frozen=True, slots=True)
class Rails:
    """All rails. `issuing` is None if no virtual cards are issued.

    `card_network` simulates the network of the sandbox's virtual cards. It is None if another issuer issues the cards.
    """

    card: CardRail
    message: MessageRail
    issuing: IssuingRail | None = None
    card_network: CardNetwork | None = None


def load(
    card: str,
    message: str,
    books: RailDatabase,
    *,
    sandbox: bool,
    senders: Senders | None = None,
    issuing: str = "none",
    safe: RailVault | None = None,
    now: Callable[[], datetime] = utc_now,
) -> Rails:
    """Load all rails at the start. Raises NoSuchRail; production never accepts a simulator, by any name.

    `senders` are the settings of the message rail `live`. `now` is the clock of the sandbox's inbox. `safe` is required unless
    `issuing` is "none".
    """
    card_rail = _card_rail(card, books, safe)
    message_rail = _message_rail(message, books, senders, now)
    if not sandbox and isinstance(card_rail, SandboxCardRail):
        raise NoSuchRail("CUOTA_CARD_RAIL: production needs a real rail, but this one is a simulator.")
    if not sandbox and message_rail.shown_code is not None:
        raise NoSuchRail(
            "CUOTA_MESSAGE_RAIL: production needs a real rail, but this one shows its codes on the page."
        )
    issuing_rail, network = _issuing_rail(issuing, books, safe, now, sandbox=sandbox)
    return Rails(BoundedCardRail(card_rail), BoundedMessageRail(message_rail), issuing_rail, network)


def _card_rail(name: str, books: RailDatabase, safe: RailVault | None) -> CardRail:
    if name == "sandbox":
        return SandboxCardRail(books, safe)
    rail: CardRail = _made("CUOTA_CARD_RAIL", name, _named("CUOTA_CARD_RAIL", name), books)
    _complete("CUOTA_CARD_RAIL", name, rail, CardRail)
    return rail


def lacks(rail: object, protocol: type) -> list[str]:
    """Return the names of the protocol's members that the rail lacks."""
    methods = [name for name, part in vars(protocol).items() if callable(part) and not name.startswith("_")]
    return [name for name in (*protocol.__annotations__, *methods) if not _has(rail, name, methods)]


def _has(rail: object, name: str, methods: list[str]) -> bool:
    return callable(getattr(rail, name, None)) if name in methods else hasattr(rail, name)


def _complete(setting: str, name: str, rail: object, protocol: type) -> None:
    if lacking := lacks(rail, protocol):
        raise NoSuchRail(f"{setting}: {name} lacks {', '.join(lacking)} of the {protocol.__name__} protocol.")


def _made(setting: str, name: str, made: object, *parts: object) -> Any:
    """Return an instance of the class that the setting names. Raises NoSuchRail."""
    if not callable(made):
        raise NoSuchRail(f"{setting}: {name} is not a class.")
    try:
        return made(*parts)
    except TypeError as problem:
        raise NoSuchRail(f"{setting}: {name} raised an error when it was created: {problem}.") from None


def _issuing_rail(
    name: str, books: RailDatabase, safe: RailVault | None, now: Callable[[], datetime], *, sandbox: bool
) -> tuple[IssuingRail | None, CardNetwork | None]:
    if name == "none":
        return None, None
    assert safe is not None
    made = SandboxIssuingRail if name == "sandbox" else _named("CUOTA_ISSUING_RAIL", name)
    rail: IssuingRail = _made("CUOTA_ISSUING_RAIL", name, made, books, safe, now)
    _complete("CUOTA_ISSUING_RAIL", name, rail, IssuingRail)
    simulated = isinstance(rail, SandboxIssuingRail)
    if not sandbox and simulated:
        raise NoSuchRail(
            "CUOTA_ISSUING_RAIL: production needs a real rail or none, but this one is a simulator."
        )
    return BoundedIssuingRail(rail), CardNetwork(books, safe) if simulated else None


def _message_rail(
    name: str, books: RailDatabase, senders: Senders | None, now: Callable[[], datetime]
) -> MessageRail:
    if name == "live":
        if senders is None:
            raise NoSuchRail("CUOTA_MESSAGE_RAIL: live needs CUOTA_TEXT_HOOK_URL and CUOTA_TEXT_HOOK_SECRET.")
        return LiveMessageRail(senders)
    made = SandboxMessageRail if name == "sandbox" else _named("CUOTA_MESSAGE_RAIL", name)
    if isinstance(made, type) and issubclass(made, SandboxMessageRail):
        return made(books, now)
    rail: MessageRail = _made("CUOTA_MESSAGE_RAIL", name, made)
    _complete("CUOTA_MESSAGE_RAIL", name, rail, MessageRail)
    return rail


def _named(setting: str, path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise NoSuchRail(f"{setting}: {path} cannot be loaded: {problem}.") from None
