"""Loads the rails that the settings name."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cuota.core.expected_failure import ExpectedFailure
from cuota.rails.bank.files import FileBankRail
from cuota.rails.bank.protocol import BankRail
from cuota.rails.bank.rails import BoundedBankRail
from cuota.rails.bank.sandbox import SandboxBankRail
from cuota.rails.bounded import BoundedIssuingRail, BoundedMessageRail
from cuota.rails.card.protocol import CardRail
from cuota.rails.card.rails import CardRails
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.card_network import CardNetwork
from cuota.rails.issuing import IssuingRail, SandboxIssuingRail
from cuota.rails.message import MessageRail, SandboxMessageRail
from cuota.rails.message_live import LiveMessageRail
from cuota.rails.screening.protocol import ScreeningRail
from cuota.rails.screening.rails import BoundedScreeningRail
from cuota.rails.screening.sandbox import SandboxScreeningRail
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault

if TYPE_CHECKING:
    from cuota.rails.identity.provider import IdentityProvider


class NoSuchRail(ExpectedFailure):
    """A rail cannot be loaded or used. The text names the setting and says why."""


@dataclass(frozen=True, slots=True)
class Rails:
    """All rails. `issuing` is None if no virtual cards are issued.

    `card_network` simulates the network of the sandbox's virtual cards. It is None if another issuer issues the cards.
    `bank` is None if no bank rail is configured: payouts then wait. `banks_kept` are asked about the payouts that they sent.
    `screening` is None if no names are screened. `identity` is the provider at which the operator's people sign in, or None.
    """

    card: CardRails
    message: MessageRail
    issuing: IssuingRail | None = None
    card_network: CardNetwork | None = None
    bank: BoundedBankRail | None = None
    banks_kept: tuple[BoundedBankRail, ...] = ()
    screening: BoundedScreeningRail | None = None
    identity: IdentityProvider | None = None

    @property
    def banks(self) -> tuple[BoundedBankRail, ...]:
        """Return all bank rails. The first one sends new payouts."""
        return (*(() if self.bank is None else (self.bank,)), *self.banks_kept)

    async def close(self) -> None:
        """Close the connections of all rails."""
        for rail in (self.card, *self.banks, self.screening, self.identity):
            if rail is not None:
                await rail.close()


_CARD_RAILS = {"sandbox": SandboxCardRail}
# Imported only if the settings name it, because the processor's library is large.
_CARD_RAILS_LATER = {"stripe": "cuota.rails.card.stripe.StripeCardRail"}
_NAME = re.compile(r"[a-z0-9_]{2,32}", re.ASCII)
_MESSAGE_RAILS = {"sandbox": SandboxMessageRail, "live": LiveMessageRail}


def load(settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> Rails:
    """Create all rails at the start, each with these four arguments. `now` is the service's clock.

    Raises NoSuchRail; production never accepts a simulator, by any name.
    """
    given = (settings, books, vault, now)
    cards = _card_rails(settings, given)
    message = _rail("CUOTA_MESSAGE_RAIL", settings.message, _MESSAGE_RAILS, MessageRail, given)
    if not settings.sandbox and message.shown_code is not None:
        raise NoSuchRail(
            "CUOTA_MESSAGE_RAIL: production needs a real rail, but this one shows its codes on the page."
        )
    bank, banks_kept = _bank_rails(settings, given)
    rails = Rails(
        cards, BoundedMessageRail(message), bank=bank, banks_kept=banks_kept,
        screening=_screening_rail(settings, given), identity=_identity(settings),
    )  # fmt: skip
    if settings.issuing == "none":
        return rails
    issuing = _rail(
        "CUOTA_ISSUING_RAIL", settings.issuing, {"sandbox": SandboxIssuingRail}, IssuingRail, given
    )
    if not isinstance(issuing, SandboxIssuingRail):
        return replace(rails, issuing=BoundedIssuingRail(issuing))
    if not settings.sandbox:
        raise NoSuchRail(
            "CUOTA_ISSUING_RAIL: production needs a real rail or none, but this one is a simulator."
        )
    return replace(rails, issuing=BoundedIssuingRail(issuing), card_network=CardNetwork(books, vault))


def _card_rails(settings: RailSettings, given: tuple[object, ...]) -> CardRails:
    """Return the rail for new cards, and the rails that existing cards still use. Raises NoSuchRail."""
    loaded: list[CardRail] = []
    named = [
        ("CUOTA_CARD_RAIL", settings.card),
        *(("CUOTA_CARD_RAILS_KEPT", kept) for kept in settings.cards_kept),
    ]
    for setting, path in named:
        card: CardRail = _rail(setting, _CARD_RAILS_LATER.get(path, path), _CARD_RAILS, CardRail, given)
        if not settings.sandbox and isinstance(card, SandboxCardRail):
            raise NoSuchRail(f"{setting}: production needs a real rail, but this one is a simulator.")
        _require_name(setting, path, card.name)
        if any(card.name == other.name for other in loaded):
            raise NoSuchRail(
                f"{setting}: another card rail also has the name {card.name}. Each needs its own."
            )
        loaded.append(card)
    return CardRails(loaded[0], loaded[1:])


def _bank_rails(
    settings: RailSettings, given: tuple[object, ...]
) -> tuple[BoundedBankRail | None, tuple[BoundedBankRail, ...]]:
    """Return the rail for new payouts, or None if there is none, and the rails that sent earlier payouts. Raises NoSuchRail."""
    bank = None if settings.bank == "none" else _bank_rail("CUOTA_BANK_RAIL", settings.bank, settings, given)
    names = {settings.bank if bank is None else bank.name}
    kept = []
    for path in settings.banks_kept:
        earlier = _bank_rail("CUOTA_BANK_RAILS_KEPT", path, settings, given)
        if earlier.name in names:
            raise NoSuchRail(
                f"CUOTA_BANK_RAILS_KEPT: another bank rail also has the name {earlier.name}. Each needs its own."
            )
        names.add(earlier.name)
        kept.append(earlier)
    return bank, tuple(kept)


def _bank_rail(setting: str, path: str, settings: RailSettings, given: tuple[object, ...]) -> BoundedBankRail:
    """Return one bank rail. Raises NoSuchRail."""
    bank = _rail(setting, path, {"sandbox": SandboxBankRail, "files": FileBankRail}, BankRail, given)
    if not settings.sandbox and isinstance(bank, SandboxBankRail):
        raise NoSuchRail(f"{setting}: production needs a real rail or none, but this one is a simulator.")
    _require_name(setting, path, bank.name)
    return BoundedBankRail(bank)


def _identity(settings: RailSettings) -> IdentityProvider | None:
    """Return the sign-in provider, or None. Its library is imported only if a provider is set."""
    if settings.provider is None:
        return None
    module = importlib.import_module("cuota.rails.identity.provider")
    provider: IdentityProvider = module.IdentityProvider(settings.provider)
    return provider


def _screening_rail(settings: RailSettings, given: tuple[object, ...]) -> BoundedScreeningRail | None:
    """Return the rail that screens merchants' names, or None if there is none. Raises NoSuchRail."""
    if settings.screening == "none":
        return None
    screening = _rail(
        "CUOTA_SCREENING_RAIL", settings.screening, {"sandbox": SandboxScreeningRail}, ScreeningRail, given
    )
    if settings.onboarding_required and not settings.sandbox and isinstance(screening, SandboxScreeningRail):
        raise NoSuchRail(
            "CUOTA_SCREENING_RAIL: production needs a real rail if CUOTA_ONBOARDING is required, but this one is a simulator."
        )
    _require_name("CUOTA_SCREENING_RAIL", settings.screening, screening.name)
    return BoundedScreeningRail(screening)


def _require_name(setting: str, path: str, name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise NoSuchRail(
            f"{setting}: {path} needs a `name` of 2 to 32 lower-case letters, digits and underscores."
        )


def _rail(
    setting: str, name: str, built_in: Mapping[str, type], protocol: type, given: tuple[object, ...]
) -> Any:
    """Return an instance of the rail that the setting names. Raises NoSuchRail if it is not complete."""
    made = built_in[name] if name in built_in else _named(setting, name)
    if not callable(made):
        raise NoSuchRail(f"{setting}: {name} is not a class.")
    try:
        rail = made(*given)
    except ValueError as problem:
        raise NoSuchRail(f"{setting}: {name} {problem}.") from None
    except TypeError as problem:
        raise NoSuchRail(
            f"{setting}: {name}(settings, books, vault, now) raised an error: {problem}."
        ) from None
    if lacking := lacks(rail, protocol):
        raise NoSuchRail(f"{setting}: {name} lacks {', '.join(lacking)} of the {protocol.__name__} protocol.")
    return rail


def lacks(rail: object, protocol: type) -> list[str]:
    """Return the names of the protocol's members that the rail lacks."""
    methods = [name for name, part in vars(protocol).items() if callable(part) and not name.startswith("_")]
    return [name for name in (*protocol.__annotations__, *methods) if not _has(rail, name, methods)]


def _has(rail: object, name: str, methods: list[str]) -> bool:
    return callable(getattr(rail, name, None)) if name in methods else hasattr(rail, name)


def _named(setting: str, path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise NoSuchRail(f"{setting}: {path} cannot be loaded: {problem}.") from None
