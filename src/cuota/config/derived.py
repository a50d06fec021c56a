"""Settings that follow from several others, and what production needs."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from cuota.config.reading import LOOPBACK_NAMES, is_loopback, is_wildcard
from cuota.core.checkout.texting import TextLimits
from cuota.rails.senders import MailServer, Senders

Given = Mapping[str, object]


def loopback_webhooks(given: Given, listen: str) -> bool:
    """Whether webhooks may go to this machine: not where other machines reach the service, unless a setting says so."""
    if given.get("CUOTA_ENVIRONMENT") == "production":
        return False
    chosen = given.get("CUOTA_LOOPBACK_WEBHOOKS")
    return chosen == "allow" or (chosen is None and is_loopback(urlsplit(listen).hostname or ""))


def browsable(listen: str) -> str:
    """The address that a browser on this machine opens for a service that listens here."""
    parts = urlsplit(listen)
    if not is_wildcard(parts.hostname or ""):
        return listen
    return f"{parts.scheme}://127.0.0.1:{parts.port}"


def hosts(given: Given, listen: str, public_url: str) -> frozenset[str]:
    """Every name that the sandbox is reached by, IPv6 addresses in brackets."""
    more = given.get("CUOTA_HOSTS")
    addresses = (listen, public_url, str(given.get("CUOTA_AUTH_URL", public_url)))
    named = {(urlsplit(address).hostname or "").lower() for address in addresses}
    bracketed = frozenset(f"[{name}]" if ":" in name else name for name in named)
    return bracketed | LOOPBACK_NAMES | (more if isinstance(more, frozenset) else frozenset())


def audiences(given: Given, public_url: str) -> tuple[str, ...]:
    """Every audience that tokens may name, the default one first."""
    named = given.get("CUOTA_AUDIENCE")
    return named if isinstance(named, tuple) else (public_url,)


_TEXTS = {"installation": 2000, "prefix": 60, "address": 12}


def text_limits(given: Given, environment: str) -> TextLimits:
    """How many one-time codes go out in an hour. The sandbox sends no text: it has no limit unless told."""
    usual = _TEXTS if environment == "production" else {}
    names = {name: f"CUOTA_TEXTS_AN_HOUR_{name.upper()}" for name in _TEXTS} | {
        "installation": "CUOTA_TEXTS_AN_HOUR"
    }
    chosen = {name: given.get(setting, usual.get(name)) for name, setting in names.items()}
    return TextLimits(**{name: most for name, most in chosen.items() if isinstance(most, int)})


def production_problems(given: Given, public_url: str) -> list[str]:
    """What a production service may not start with, one sentence each."""
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


def senders(environ: Mapping[str, str], given: Given, problems: list[str]) -> Senders | None:
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
