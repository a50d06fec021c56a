"""Configuration: `CUOTA_*` from the environment and nowhere else. This is its only reader."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

SECRET_BYTES = 32


class BadSettings(Exception):  # noqa: N818 - stops the start with every problem at once
    """One or more settings are unknown or wrong; the text names each and says what it should be."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator may choose. The table in docs/running.md is made from SETTINGS below."""

    environment: str
    public_url: str
    auth_url: str
    audience: str
    database_url: str | None
    data_dir: Path
    secret_key: bytes = field(repr=False)
    order_minutes: int
    authorization_days: int
    card_rail: str
    message_rail: str
    pool_size: int
    brand_name: str
    brand_accent: str
    brand_logo: str | None
    log_level: str

    @property
    def sandbox(self) -> bool:
        """Whether this is the sandbox environment."""
        return self.environment == "sandbox"

    @property
    def secure(self) -> bool:
        """Whether the public address is https, so that cookies may be."""
        return self.public_url.startswith("https://")


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: name, what it is, its default in words, and how its text is read."""

    name: str
    meaning: str
    default: str
    read: Callable[[str], object]


def _one_of(*values: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"must be {' or '.join(values)}")
        return text

    return read


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def _split(text: str) -> SplitResult | None:
    """The parts of an address; None where it is none, down to its port."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _address(text: str) -> str:
    parts = _split(text)
    if (
        parts is None
        or parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.query
        or parts.fragment
    ):
        raise ValueError("must be an http or https address such as https://pay.example.com")
    if parts.username or parts.password:
        raise ValueError("must not carry a user name or password")
    return text.rstrip("/")


def _database(text: str) -> str:
    parts = _split(text)
    if parts is None or parts.scheme not in {"postgres", "postgresql"}:
        raise ValueError("must be a PostgreSQL address such as postgresql://user:password@host:5432/cuota")
    return text


def _secret(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != SECRET_BYTES or len(set(key)) < 8:
        raise ValueError("must be 32 random bytes in base64; make one with: openssl rand -base64 32")
    return key


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in {".svg", ".png"} or not path.is_file():
        raise ValueError("must be the path of an SVG or PNG file that is there")
    return path


def _accent(text: str) -> str:
    if not re.fullmatch(r"#[0-9A-Fa-f]{6}", text):
        raise ValueError("must be a colour such as #0B6E63")
    return text


def _dotted(text: str) -> str:
    if text != "sandbox" and not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", text):
        raise ValueError("must be sandbox, or the dotted path of a class such as mybank.rails.CardRail")
    return text


def _words(text: str) -> str:
    if not 1 <= len(text) <= 60 or not text.isprintable():
        raise ValueError("must be 1 to 60 printable characters")
    return text


def default_data_dir(environment: str) -> Path:
    """Where the embedded database and the sandbox's secret key live; root's must be open to `postgres`."""
    if os.name == "posix" and os.geteuid() == 0:
        return Path("/var/lib/cuota") / environment
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "cuota" / environment


_LEVELS = _one_of("debug", "info", "warning", "error")
SETTINGS = (
    Setting("CUOTA_ENVIRONMENT", "sandbox or production; the two share nothing", "sandbox", _one_of("sandbox", "production")),
    Setting("CUOTA_PUBLIC_URL", "the address at which merchants and consumers reach the service", "http://HOST:PORT of `serve`", _address),
    Setting("CUOTA_AUTH_URL", "the token issuer's address", "CUOTA_PUBLIC_URL", _address),
    Setting("CUOTA_AUDIENCE", "the audience that merchants ask tokens for", "CUOTA_PUBLIC_URL", _address),
    Setting("CUOTA_DATABASE_URL", "a PostgreSQL 16 or later", "the embedded PostgreSQL", _database),
    Setting("CUOTA_DATA_DIR", "folder of the embedded database and the sandbox's secret key", "~/.local/share/cuota/ENVIRONMENT; as root /var/lib/cuota/ENVIRONMENT", Path),
    Setting("CUOTA_SECRET_KEY", "32 random bytes in base64: encrypts secrets, keys hashes; the same on every machine", "sandbox: made once and kept in the data folder; production: none, it must be set", _secret),
    Setting("CUOTA_ORDER_MINUTES", "minutes that a consumer has to complete an order", "60", _whole(1, 1440)),
    Setting("CUOTA_AUTHORIZATION_DAYS", "days that an authorization holds", "13", _whole(1, 90)),
    Setting("CUOTA_CARD_RAIL", "sandbox, or a class of the CardRail protocol", "sandbox", _dotted),
    Setting("CUOTA_MESSAGE_RAIL", "sandbox, or a class of the MessageRail protocol", "sandbox", _dotted),
    Setting("CUOTA_POOL_SIZE", "database connections of each worker process", "16", _whole(1, 200)),
    Setting("CUOTA_BRAND_NAME", "the name that consumers see", "Pay in four", _words),
    Setting("CUOTA_BRAND_ACCENT", "the accent colour of the pages", "#0B6E63", _accent),
    Setting("CUOTA_BRAND_LOGO", "path of an SVG or PNG file shown beside the name", "none", _picture),
    Setting("CUOTA_LOG_LEVEL", "debug, info, warning or error", "info", _LEVELS),
)  # fmt: skip


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
    if problems:
        raise BadSettings("\n".join(problems))
    secret = given.get("CUOTA_SECRET_KEY") or _kept_secret(data_dir)
    assert isinstance(secret, bytes)
    logo = given.get("CUOTA_BRAND_LOGO")
    database = given.get("CUOTA_DATABASE_URL")
    return Settings(
        environment=environment,
        public_url=public_url,
        auth_url=str(given.get("CUOTA_AUTH_URL", public_url)),
        audience=str(given.get("CUOTA_AUDIENCE", public_url)),
        database_url=str(database) if database else None,
        data_dir=data_dir,
        secret_key=secret,
        order_minutes=int(str(given.get("CUOTA_ORDER_MINUTES", 60))),
        authorization_days=int(str(given.get("CUOTA_AUTHORIZATION_DAYS", 13))),
        card_rail=str(given.get("CUOTA_CARD_RAIL", "sandbox")),
        message_rail=str(given.get("CUOTA_MESSAGE_RAIL", "sandbox")),
        pool_size=int(str(given.get("CUOTA_POOL_SIZE", 16))),
        brand_name=str(given.get("CUOTA_BRAND_NAME", "Pay in four")),
        brand_accent=str(given.get("CUOTA_BRAND_ACCENT", "#0B6E63")),
        brand_logo=str(logo) if logo else None,
        log_level=str(given.get("CUOTA_LOG_LEVEL", "info")),
    )


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
    for name, value in (
        ("CUOTA_PUBLIC_URL", public_url),
        ("CUOTA_AUTH_URL", given.get("CUOTA_AUTH_URL", public_url)),
    ):
        if not str(value).startswith("https://"):
            problems.append(f"{name}: must be an https address in production.")
    problems.extend(
        f"{name}: production needs a real rail; give the dotted path of its class."
        for name in ("CUOTA_CARD_RAIL", "CUOTA_MESSAGE_RAIL")
        if given.get(name, "sandbox") == "sandbox"
    )
    return problems


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
        return _secret(path.read_text().strip())
    except (OSError, ValueError) as problem:
        raise BadSettings(
            f"CUOTA_DATA_DIR: the secret key in {path} cannot be kept or read: {problem}."
        ) from None
