"""The settings of rails. Every rail is created with (settings, books, vault, now)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuota.core.payout.bank_order import Originator
from cuota.rails.senders import Senders


@dataclass(frozen=True, slots=True)
class StripeKeys:
    """The keys of a Stripe account.

    `api_url` is the address of a stand-in; if it is empty, Stripe's own address is used.
    """

    secret: str = field(repr=False)
    publishable: str
    webhook_secret: str = field(repr=False)
    api_url: str = ""


@dataclass(frozen=True, slots=True)
class BankFileSettings:
    """How files for a bank are written: `nacha` or `pain001`, and who pays."""

    format: str
    originator: Originator = field(repr=False)


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The OpenID Connect provider of the operator's people. `issuer` is the exact name that it gives itself.

    `claims` are the claims that are read; if the ID token lacks one, the userinfo endpoint is called. `loopback` and `private` allow
    addresses of this machine and of private networks.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    claims: tuple[str, ...] = ("email",)
    loopback: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True)
class RailSettings:
    """The settings of all rails.

    `card`, `message`, `issuing`, `bank` and `screening` name the rails: a built-in one, or the dotted path of a class. `cards_kept` are
    other card rails, whose cards still pay plans; `banks_kept` are other bank rails, which know the payouts that they sent.
    `onboarding_required`: new merchants must be approved, so production needs real screening. `public_url` is the service's own
    address. `senders` are set if `message` is `live`, `stripe` if a card rail is `stripe`, `bank_files` if a bank rail is `files`, and
    `provider` if the operator's people sign in at one. `own` holds every setting that begins with CUOTA_RAIL_, for rails that
    operators wrote; it may contain secrets.
    """

    card: str = "sandbox"
    cards_kept: tuple[str, ...] = ()
    banks_kept: tuple[str, ...] = ()
    message: str = "sandbox"
    issuing: str = "none"
    bank: str = "none"
    screening: str = "none"
    onboarding_required: bool = False
    sandbox: bool = False
    public_url: str = "http://127.0.0.1:8080"
    senders: Senders | None = None
    stripe: StripeKeys | None = None
    bank_files: BankFileSettings | None = None
    provider: ProviderSettings | None = None
    own: Mapping[str, str] = field(default_factory=dict, repr=False)
