"""Configuration: `CUOTA_*` from the environment and nowhere else. This is its only reader."""

from __future__ import annotations

import base64
import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from cuota.config_reading import LOOPBACK_NAMES, SECRET_BYTES, Network, is_loopback, secret
from cuota.config_table import SETTINGS
from cuota.core.adverse import AGENCY
from cuota.core.texting import TextLimits
from cuota.rails.senders import MailServer, Senders


class BadSettings(Exception):  # noqa: N818 - stops the start with every problem at once
    """One or more settings are unknown or wrong; the text names each and says what it should be."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator may choose. The table in docs/running.md is made from `config_table.SETTINGS`."""

    environment: str
    public_url: str
    auth_url: str
    audience: str
    database_url: str | None = field(repr=False)
    database_owner_url: str | None = field(repr=False)
    data_dir: Path
    secret_key: bytes = field(repr=False)
    old_secret_keys: tuple[bytes, ...] = field(repr=False)
    order_minutes: int
    authorization_days: int
    card_rail: str
    message_rail: str
    issuing_rail: str
    senders: Senders | None
    # Both of the sandbox only.
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
    metrics_listen: tuple[str, int] | None
    log_level: str
    more_audiences: tuple[str, ...] = ()
    trusted_proxies: tuple[Network, ...] = ()
    text_limits: TextLimits = field(default_factory=TextLimits)

    @property
    def audiences(self) -> tuple[str, ...]:
        """Every audience that tokens may name; the first is that of a request which names none."""
        return (self.audience, *self.more_audiences)

    @property
    def sandbox(self) -> bool:
        """Whether this is the sandbox environment."""
        return self.environment == "sandbox"

    @property
    def secure(self) -> bool:
        """Whether the public address is https, so that cookies may be."""
        return self.public_url.startswith("https://")


def default_data_dir(environment: str) -> Path:
    """Where the embedded database and the sandbox's secret key live; root's must be open to `postgres`."""
    if os.name == "posix" and os.geteuid() == 0:
        return Path("/var/lib/cuota") / environment
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "cuota" / environment


_ISSUERS = {"sandbox": "sandbox", "production": "none"}


def load(environ: Mapping[str, str] | None = None, *, listen: str = "http://127.0.0.1:8000") -> Settings:
    """Read every `CUOTA_*` setting; raise BadSettings naming all that are unknown or wrong.

    `listen` is the address that `serve` was told to listen on, the default of CUOTA_PUBLIC_URL.
    """
    environ = os.environ if environ is None else environ
    given, problems = _read(environ)
    environment = str(given.get("CUOTA_ENVIRONMENT", "sandbox"))
    public_url = str(given.get("CUOTA_PUBLIC_URL", listen))
    data_dir = Path(str(given.get("CUOTA_DATA_DIR", default_data_dir(environment))))
    if environment == "production":
        problems += _production_problems(given, public_url)
    if "CUOTA_DATABASE_OWNER_URL" in given and "CUOTA_DATABASE_URL" not in given:
        problems.append(
            "CUOTA_DATABASE_OWNER_URL: needs CUOTA_DATABASE_URL, the same database as the service's role."
        )
    senders = _senders(environ, given, problems)
    if problems:
        raise BadSettings("\n".join(problems))
    key = given.get("CUOTA_SECRET_KEY") or _kept_secret(data_dir)
    assert isinstance(key, bytes)
    logo, policy = given.get("CUOTA_BRAND_LOGO"), given.get("CUOTA_POLICY")
    named, owner = given.get("CUOTA_DATABASE_URL"), given.get("CUOTA_DATABASE_OWNER_URL")
    brand_name = str(given.get("CUOTA_BRAND_NAME", "Pay in four"))
    metrics_listen = given.get("CUOTA_METRICS_LISTEN")
    audience, *more_audiences = _audiences(given, public_url)
    return Settings(
        environment=environment,
        public_url=public_url,
        auth_url=str(given.get("CUOTA_AUTH_URL", public_url)),
        audience=audience,
        more_audiences=tuple(more_audiences),
        database_url=str(named) if named else None,
        database_owner_url=str(owner) if owner else None,
        data_dir=data_dir,
        secret_key=key,
        old_secret_keys=tuple(cast("tuple[bytes, ...]", given.get("CUOTA_SECRET_KEY_OLD", ()))),
        order_minutes=int(str(given.get("CUOTA_ORDER_MINUTES", 60))),
        authorization_days=int(str(given.get("CUOTA_AUTHORIZATION_DAYS", 13))),
        card_rail=str(given.get("CUOTA_CARD_RAIL", "sandbox")),
        message_rail=str(given.get("CUOTA_MESSAGE_RAIL", "sandbox")),
        issuing_rail=str(given.get("CUOTA_ISSUING_RAIL", _ISSUERS[environment])),
        senders=senders,
        loopback_webhooks=_loopback_webhooks(given, listen),
        hosts=_hosts(given, listen, public_url),
        pool_size=int(str(given.get("CUOTA_POOL_SIZE", 16))),
        brand_name=brand_name,
        brand_accent=str(given.get("CUOTA_BRAND_ACCENT", "#0B6E63")),
        brand_logo=str(logo) if logo else None,
        help_url=_page(given, "CUOTA_HELP_URL"),
        privacy_url=_page(given, "CUOTA_PRIVACY_URL"),
        terms_url=_page(given, "CUOTA_TERMS_URL"),
        creditor=str(given.get("CUOTA_CREDITOR", f"{brand_name}, {public_url}")),
        creditor_agency=str(given.get("CUOTA_CREDITOR_AGENCY", AGENCY)),
        policy=Path(str(policy)) if policy else None,
        keep_abandoned_days=int(str(given.get("CUOTA_KEEP_ABANDONED_DAYS", 90))),
        keep_declined_days=int(str(given.get("CUOTA_KEEP_DECLINED_DAYS", 760))),
        keep_messages_days=int(str(given.get("CUOTA_KEEP_MESSAGES_DAYS", 760))),
        keep_attempts_days=int(str(given.get("CUOTA_KEEP_ATTEMPTS_DAYS", 90))),
        metrics_listen=metrics_listen if isinstance(metrics_listen, tuple) else None,
        log_level=str(given.get("CUOTA_LOG_LEVEL", "info")),
        trusted_proxies=_networks(given),
        text_limits=_text_limits(given, environment),
    )


def _loopback_webhooks(given: Mapping[str, object], listen: str) -> bool:
    """Who else reaches the service must not make it ask this machine's own services."""
    if given.get("CUOTA_ENVIRONMENT") == "production":
        return False
    chosen = given.get("CUOTA_LOOPBACK_WEBHOOKS")
    return chosen == "allow" or (chosen is None and is_loopback(urlsplit(listen).hostname or ""))


def _hosts(given: Mapping[str, object], listen: str, public_url: str) -> frozenset[str]:
    """Every name that the sandbox is reached by, IPv6 addresses in brackets."""
    more = given.get("CUOTA_HOSTS")
    addresses = (listen, public_url, str(given.get("CUOTA_AUTH_URL", public_url)))
    named = {(urlsplit(address).hostname or "").lower() for address in addresses}
    bracketed = frozenset(f"[{name}]" if ":" in name else name for name in named)
    return bracketed | LOOPBACK_NAMES | (more if isinstance(more, frozenset) else frozenset())


def _page(given: Mapping[str, object], name: str) -> str | None:
    return str(given[name]) if name in given else None


def _audiences(given: Mapping[str, object], public_url: str) -> tuple[str, ...]:
    named = given.get("CUOTA_AUDIENCE")
    return named if isinstance(named, tuple) else (public_url,)


def environment(environ: Mapping[str, str] | None = None) -> str:
    """The environment that the settings name, sandbox or production; `load` checks all of them."""
    given, _ = _read(os.environ if environ is None else environ)
    return str(given.get("CUOTA_ENVIRONMENT", "sandbox"))


def _networks(given: Mapping[str, object]) -> tuple[Network, ...]:
    named = given.get("CUOTA_TRUSTED_PROXIES", ())
    assert isinstance(named, tuple)
    return named


_TEXTS = {"installation": 2000, "prefix": 60, "address": 60}


def _text_limits(given: Mapping[str, object], environment: str) -> TextLimits:
    """How many one-time codes go out in an hour. The sandbox sends no text: it has no limit unless told."""
    usual = _TEXTS if environment == "production" else {}
    names = {name: f"CUOTA_TEXTS_AN_HOUR_{name.upper()}" for name in _TEXTS} | {
        "installation": "CUOTA_TEXTS_AN_HOUR"
    }
    chosen = {name: given.get(setting, usual.get(name)) for name, setting in names.items()}
    return TextLimits(**{name: most for name, most in chosen.items() if isinstance(most, int)})


def missing_database(environ: Mapping[str, str] | None = None) -> Path | None:
    """The data folder, where no database of its own has been made in it yet; None where there is one, or another is named.

    None too for settings that are wrong: `load` names them.
    """
    given, problems = _read(os.environ if environ is None else environ)
    if problems or given.get("CUOTA_DATABASE_URL"):
        return None
    environment = str(given.get("CUOTA_ENVIRONMENT", "sandbox"))
    folder = Path(str(given.get("CUOTA_DATA_DIR", default_data_dir(environment))))
    return None if (folder / "pg").exists() else folder


@dataclass(frozen=True, slots=True)
class Place:
    """Where an environment's data is, before anything of it is opened or made."""

    environment: str
    data_dir: Path
    database_url: str | None
    names_its_key: bool


def place(environ: Mapping[str, str] | None = None) -> Place:
    """Read it, and make nothing. Raises BadSettings."""
    given, problems = _read(os.environ if environ is None else environ)
    if problems:
        raise BadSettings("\n".join(problems))
    environment = str(given.get("CUOTA_ENVIRONMENT", "sandbox"))
    folder = Path(str(given.get("CUOTA_DATA_DIR", default_data_dir(environment))))
    url = given.get("CUOTA_DATABASE_URL")
    return Place(environment, folder, str(url) if url else None, "CUOTA_SECRET_KEY" in given)


def names_its_address(environ: Mapping[str, str] | None = None) -> bool:
    """Whether the environment says where the service is reached; otherwise it is where `serve` last listened."""
    environ = os.environ if environ is None else environ
    return any(environ.get(name, "").strip() for name in ("CUOTA_PUBLIC_URL", "CUOTA_AUDIENCE"))


def _read(environ: Mapping[str, str]) -> tuple[dict[str, object], list[str]]:
    known = {setting.name: setting for setting in SETTINGS}
    given: dict[str, object] = {}
    problems = []
    for name, text in environ.items():
        if not name.startswith("CUOTA_") or not text.strip():
            continue
        if name not in known:
            problems.append(f"{name}: no such setting. Settings are: {', '.join(known)}.")
            continue
        try:
            given[name] = known[name].read(text.strip())
        except ValueError as problem:
            problems.append(f"{name}: {problem}.")
    return given, problems


def _production_problems(given: Mapping[str, object], public_url: str) -> list[str]:
    problems = []
    if "CUOTA_SECRET_KEY" not in given:
        problems.append(
            "CUOTA_SECRET_KEY: must be set in production; make one with: openssl rand -base64 32."
        )
    if "CUOTA_CREDITOR" not in given:
        problems.append(
            "CUOTA_CREDITOR: must be set in production: the lender's name and postal address, which letters must give."
        )
    for name, value in (
        ("CUOTA_PUBLIC_URL", public_url),
        ("CUOTA_AUTH_URL", given.get("CUOTA_AUTH_URL", public_url)),
    ):
        if not str(value).startswith("https://"):
            problems.append(f"{name}: must be an https address in production.")
    problems.extend(
        f"{name}: production needs a real rail; give {what}the dotted path of its class."
        for name, what in (("CUOTA_CARD_RAIL", ""), ("CUOTA_MESSAGE_RAIL", "live, or "))
        if given.get(name, "sandbox") == "sandbox"
    )
    if given.get("CUOTA_ISSUING_RAIL") == "sandbox":
        problems.append(
            "CUOTA_ISSUING_RAIL: production needs a real rail; give none, or the dotted path of its class."
        )
    if not str(given.get("CUOTA_TEXT_HOOK_URL", "https://")).startswith("https://"):
        problems.append("CUOTA_TEXT_HOOK_URL: must be an https address in production.")
    return problems


def _senders(environ: Mapping[str, str], given: Mapping[str, object], problems: list[str]) -> Senders | None:
    """What the message rail `live` sends by; None where it is another. Adds what is missing to `problems`."""
    if given.get("CUOTA_MESSAGE_RAIL") != "live":
        return None
    needs = {
        "CUOTA_TEXT_HOOK_URL": "must be set where CUOTA_MESSAGE_RAIL is live: one-time codes go by text",
        "CUOTA_TEXT_HOOK_SECRET": "must be set where CUOTA_MESSAGE_RAIL is live: it signs what is posted to the hook",
    }
    there = {name for name, text in environ.items() if text.strip()}
    if "CUOTA_SMTP_URL" in there:
        needs["CUOTA_MAIL_FROM"] = "must be set where CUOTA_SMTP_URL is: the address that mail comes from"
    if "CUOTA_MAIL_FROM" in there:
        needs["CUOTA_SMTP_URL"] = "must be set where CUOTA_MAIL_FROM is: the server that mail goes by"
    problems.extend(f"{name}: {why}." for name, why in needs.items() if name not in there)
    if problems:
        return None
    server, mail_from = given.get("CUOTA_SMTP_URL"), given.get("CUOTA_MAIL_FROM")
    return Senders(
        mail=server if isinstance(server, MailServer) else None,
        mail_from=str(mail_from) if mail_from else None,
        hook_url=str(given["CUOTA_TEXT_HOOK_URL"]),
        hook_secret=str(given["CUOTA_TEXT_HOOK_SECRET"]),
        secure=given.get("CUOTA_ENVIRONMENT") == "production",
    )


def _kept_secret(data_dir: Path) -> bytes:
    """The sandbox's own key: made once, kept beside the embedded database, readable by its owner only."""
    path = data_dir / "secret.key"
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            # Written aside and linked: of two first starts at once one wins, and nobody reads half a key.
            with tempfile.NamedTemporaryFile("w", dir=data_dir, prefix=".secret-") as file:
                file.write(base64.b64encode(os.urandom(SECRET_BYTES)).decode() + "\n")
                file.flush()
                os.fsync(file.fileno())
                with contextlib.suppress(FileExistsError):
                    os.link(file.name, path)
        return secret(path.read_text().strip())
    except (OSError, ValueError) as problem:
        raise BadSettings(
            f"CUOTA_DATA_DIR: the secret key in {path} cannot be kept or read: {problem}."
        ) from None
