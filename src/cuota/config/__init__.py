"""The settings: the `CUOTA_*` environment variables. Only this package reads them."""

from __future__ import annotations

import base64
import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cuota.config import derived
from cuota.config.plain import plain
from cuota.config.provider import provider as read_provider
from cuota.config.reading import SECRET_BYTES, Network, secret
from cuota.config.table import SETTINGS, no_such
from cuota.core.checkout.texting import TextLimits
from cuota.core.expected_failure import ExpectedFailure
from cuota.core.operator.provider import ProviderRules
from cuota.core.plan.hardship import HardshipPolicy
from cuota.rails.senders import Senders
from cuota.rails.settings import BankFileSettings, ProviderSettings, RailSettings, StripeKeys

# Settings of rails that operators wrote begin with this prefix. Cuota passes them on and does not read them.
OWN_RAIL = "CUOTA_RAIL_"


# The value of CUOTA_ONBOARDING with which a new merchant must be approved.
REQUIRED = "required"


class BadSettings(ExpectedFailure):
    """One or more settings are unknown or wrong. The text names each one and says what its value must be."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of an operator, with their defaults applied. `config.table.SETTINGS` explains each of them."""

    environment: str
    public_url: str
    auth_url: str
    audience: str
    database_url: str | None = field(repr=False)
    database_owner_url: str | None = field(repr=False)
    database_entry_url: str | None = field(repr=False)
    data_dir: Path
    secret_key: bytes = field(repr=False)
    old_secret_keys: tuple[bytes, ...] = field(repr=False)
    order_minutes: int
    authorization_days: int
    write_off_days: int
    hardship: HardshipPolicy
    card_rail: str
    message_rail: str
    issuing_rail: str
    bank_rail: str
    screening_rail: str
    onboarding: str
    screening_days: int
    senders: Senders | None
    # The next two apply only to the sandbox.
    loopback_webhooks: bool
    hosts: frozenset[str]
    pool_size: int
    brand_name: str
    brand_accent: str
    brand_logo: str | None
    help_url: str | None
    privacy_url: str | None
    terms_url: str | None
    creditor: str
    creditor_agency: str
    policy: Path | None
    keep_abandoned_days: int
    keep_declined_days: int
    keep_messages_days: int
    keep_attempts_days: int
    desk_fresh_above: int
    desk_second_above: int | None
    request_log: bool
    metrics_listen: tuple[str, int] | None
    log_level: str
    more_audiences: tuple[str, ...] = ()
    cards_kept: tuple[str, ...] = ()
    banks_kept: tuple[str, ...] = ()
    stripe: StripeKeys | None = None
    bank_files: BankFileSettings | None = None
    provider: ProviderSettings | None = None  # of the operator's people; set together with its rules
    provider_rules: ProviderRules | None = None
    trusted_proxies: tuple[Network, ...] = ()
    text_limits: TextLimits = field(default_factory=TextLimits)
    own_rails: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Every setting that begins with CUOTA_RAIL_. Operators' own rails read them."""

    @property
    def rails(self) -> RailSettings:
        """Return the settings of rails."""
        return RailSettings(
            card=self.card_rail,
            message=self.message_rail,
            issuing=self.issuing_rail,
            bank=self.bank_rail,
            screening=self.screening_rail,
            onboarding_required=self.onboarding_required,
            cards_kept=self.cards_kept,
            banks_kept=self.banks_kept,
            sandbox=self.sandbox,
            public_url=self.public_url,
            senders=self.senders,
            stripe=self.stripe,
            bank_files=self.bank_files,
            provider=self.provider,
            own=self.own_rails,
        )

    @property
    def audiences(self) -> tuple[str, ...]:
        """Every audience for which a merchant may request tokens. The first is the default."""
        return (self.audience, *self.more_audiences)

    @property
    def sandbox(self) -> bool:
        """True in the sandbox environment."""
        return self.environment == "sandbox"

    @property
    def onboarding_required(self) -> bool:
        """True if new merchants must be approved."""
        return self.onboarding == REQUIRED

    @property
    def secure(self) -> bool:
        """True if the public address is https, so that cookies can be marked Secure."""
        return self.public_url.startswith("https://")


def default_data_dir(environment: str) -> Path:
    """Return the default folder of the embedded database and the sandbox's secret key.

    For root it is under /var/lib, because PostgreSQL then runs as the user `postgres` and cannot read root's home folder.
    """
    if os.name == "posix" and os.geteuid() == 0:
        return Path("/var/lib/cuota") / environment
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "cuota" / environment


_SANDBOX_ONLY = {"sandbox": "sandbox", "production": "none"}


def load(environ: Mapping[str, str] | None = None, *, listen: str = "http://127.0.0.1:8000") -> Settings:
    """Read all `CUOTA_*` settings. Raises BadSettings, which names every setting that is unknown or wrong.

    `listen` is the address on which `serve` listens. It is the default of CUOTA_PUBLIC_URL.
    """
    environ = os.environ if environ is None else environ
    given, problems = _read(environ)
    environment = str(given.get("CUOTA_ENVIRONMENT", "sandbox"))
    public_url = str(given.get("CUOTA_PUBLIC_URL", derived.browsable(listen)))
    data_dir = Path(str(given.get("CUOTA_DATA_DIR", default_data_dir(environment))))
    problems += _contradictions(given, environment, public_url)
    senders = derived.senders(environ, given, problems)
    stripe = derived.stripe(environ, given, problems)
    bank_files = derived.bank_files(environ, given, problems)
    loopback = derived.loopback_webhooks(given, listen)
    provider, provider_rules = read_provider(given, problems, loopback=loopback)
    if problems:
        raise BadSettings("\n".join(problems))
    key = given.get("CUOTA_SECRET_KEY") or _stored_secret(data_dir)
    assert isinstance(key, bytes)
    audience, *more_audiences = derived.audiences(given, public_url)
    brand_name = str(given.get("CUOTA_BRAND_NAME", "Pay in four"))
    return Settings(
        environment=environment,
        public_url=public_url,
        auth_url=str(given.get("CUOTA_AUTH_URL", public_url)),
        audience=audience,
        more_audiences=tuple(more_audiences),
        data_dir=data_dir,
        secret_key=key,
        issuing_rail=str(given.get("CUOTA_ISSUING_RAIL", _SANDBOX_ONLY[environment])),
        bank_rail=str(given.get("CUOTA_BANK_RAIL", _SANDBOX_ONLY[environment])),
        screening_rail=str(given.get("CUOTA_SCREENING_RAIL", _SANDBOX_ONLY[environment])),
        senders=senders,
        stripe=stripe,
        bank_files=bank_files,
        provider=provider,
        provider_rules=provider_rules,
        loopback_webhooks=loopback,
        hosts=derived.hosts(given, listen, public_url),
        brand_name=brand_name,
        creditor=str(given.get("CUOTA_CREDITOR", f"{brand_name}, {public_url}")),
        hardship=derived.hardship(given),
        text_limits=derived.text_limits(given, environment),
        request_log=given.get("CUOTA_REQUEST_LOG") != "off",
        own_rails={name: text for name, text in environ.items() if name.startswith(OWN_RAIL)},
        **plain(given),
    )


def _contradictions(given: Mapping[str, object], environment: str, public_url: str) -> list[str]:
    """Return the problems of settings that are valid alone, but contradict each other or the environment."""
    problems = derived.production_problems(given, public_url) if environment == "production" else []
    problems += derived.screening_problems(given, environment)
    if "CUOTA_DATABASE_OWNER_URL" in given and "CUOTA_DATABASE_URL" not in given:
        problems.append(
            "CUOTA_DATABASE_OWNER_URL: also set CUOTA_DATABASE_URL, to the address of the same database for the service's role."
        )
    if "CUOTA_DATABASE_ENTRY_URL" in given and "CUOTA_DATABASE_URL" not in given:
        problems.append(
            "CUOTA_DATABASE_ENTRY_URL: also set CUOTA_DATABASE_URL, to the address of the cluster's coordinator."
        )
    return problems


def environment(environ: Mapping[str, str] | None = None) -> str:
    """Return `sandbox` or `production`, without checking the other settings. `load` checks all of them."""
    given, _ = _read(os.environ if environ is None else environ)
    return str(given.get("CUOTA_ENVIRONMENT", "sandbox"))


def missing_database(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the data folder if the embedded database has not been created in it yet.

    Return None if it has been created, if the settings name an external database, or if a setting is wrong; `load` reports
    wrong settings.
    """
    given, problems = _read(os.environ if environ is None else environ)
    if problems or given.get("CUOTA_DATABASE_URL") or given.get("CUOTA_DATABASE_OWNER_URL"):
        return None
    environment = str(given.get("CUOTA_ENVIRONMENT", "sandbox"))
    folder = Path(str(given.get("CUOTA_DATA_DIR", default_data_dir(environment))))
    return None if (folder / "pg").exists() else folder


@dataclass(frozen=True, slots=True)
class DataLocation:
    """The place of an environment's data. Reading it opens and creates nothing."""

    environment: str
    data_dir: Path
    database_url: str | None
    names_its_key: bool


def place(environ: Mapping[str, str] | None = None) -> DataLocation:
    """Return the place of the data, and create nothing. Raises BadSettings."""
    given, problems = _read(os.environ if environ is None else environ)
    if problems:
        raise BadSettings("\n".join(problems))
    environment = str(given.get("CUOTA_ENVIRONMENT", "sandbox"))
    folder = Path(str(given.get("CUOTA_DATA_DIR", default_data_dir(environment))))
    url = given.get("CUOTA_DATABASE_URL")
    return DataLocation(environment, folder, str(url) if url else None, "CUOTA_SECRET_KEY" in given)


def names_its_address(environ: Mapping[str, str] | None = None) -> bool:
    """True if the settings contain the service's address. Otherwise it is the address on which `serve` last listened."""
    environ = os.environ if environ is None else environ
    return any(environ.get(name, "").strip() for name in ("CUOTA_PUBLIC_URL", "CUOTA_AUDIENCE"))


def _read(environ: Mapping[str, str]) -> tuple[dict[str, object], list[str]]:
    settings = {setting.name: setting for setting in SETTINGS}
    given: dict[str, object] = {}
    problems = []
    for name, text in environ.items():
        if not name.startswith("CUOTA_") or name.startswith(OWN_RAIL) or not text.strip():
            continue
        if name not in settings:
            problems.append(f"{name}: {no_such(name)}")
            continue
        try:
            given[name] = settings[name].read(text.strip())
        except ValueError as problem:
            problems.append(f"{name}: {problem}.")
    return given, problems


def _stored_secret(data_dir: Path) -> bytes:
    """Return the sandbox's secret key. Create it on the first call, in the data folder, readable only by this user."""
    path = data_dir / "secret.key"
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            # The key is written to another file and then linked. So if two processes start at once, one wins, and no
            # process reads half a key.
            with tempfile.NamedTemporaryFile("w", dir=data_dir, prefix=".secret-") as file:
                file.write(base64.b64encode(os.urandom(SECRET_BYTES)).decode() + "\n")
                file.flush()
                os.fsync(file.fileno())
                with contextlib.suppress(FileExistsError):
                    os.link(file.name, path)
        return secret(path.read_text().strip())
    except (OSError, ValueError) as problem:
        raise BadSettings(
            f"CUOTA_DATA_DIR: cannot read or write the secret key in {path}: {problem}."
        ) from None
