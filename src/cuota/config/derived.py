"""Settings that are computed from several others, and the checks of a production environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from urllib.parse import urlsplit

from cuota.config.reading import LOOPBACK_NAMES, is_loopback, is_wildcard, own_address, url_host
from cuota.core.checkout.texting import TextLimits
from cuota.core.payout.bank_order import Originator
from cuota.core.plan.hardship import HardshipPolicy
from cuota.rails.senders import MailServer, Senders
from cuota.rails.settings import BankFileSettings, StripeKeys

Given = Mapping[str, object]


def loopback_webhooks(given: Given, listen: str) -> bool:
    """Return whether webhooks may go to loopback addresses: if the setting allows it, or `serve` listens on loopback only.

    If other machines can reach the service, their users could otherwise register a webhook to a server of this machine.
    """
    if given.get("CUOTA_ENVIRONMENT") == "production":
        return False
    chosen = given.get("CUOTA_LOOPBACK_WEBHOOKS")
    return chosen == "allow" or (chosen is None and is_loopback(urlsplit(listen).hostname or ""))


def browsable(listen: str) -> str:
    """Return the address that a browser on this machine opens. For 0.0.0.0 that is 127.0.0.1, and for :: it is [::1]."""
    parts = urlsplit(listen)
    host = parts.hostname or ""
    return f"{parts.scheme}://{url_host(own_address(host))}:{parts.port}" if is_wildcard(host) else listen


def hosts(given: Given, listen: str, public_url: str) -> frozenset[str]:
    """Return every host name that the sandbox accepts in a Host header, with IPv6 addresses in brackets."""
    more = given.get("CUOTA_HOSTS")
    addresses = (listen, public_url, str(given.get("CUOTA_AUTH_URL", public_url)))
    bracketed = frozenset(url_host((urlsplit(address).hostname or "").lower()) for address in addresses)
    return bracketed | LOOPBACK_NAMES | (more if isinstance(more, frozenset) else frozenset())


def audiences(given: Given, public_url: str) -> tuple[str, ...]:
    """Return every audience for which a merchant may request tokens, the default first."""
    named = given.get("CUOTA_AUDIENCE")
    return named if isinstance(named, tuple) else (public_url,)


_TEXTS = {"installation": 2000, "prefix": 60, "address": 12}


def hardship(given: Given) -> HardshipPolicy:
    """Return the limits of what may be changed in a plan for a consumer in hardship."""
    known = {
        field.name: given[name]
        for field in fields(HardshipPolicy)
        if (name := f"CUOTA_HARDSHIP_{field.name.upper()}") in given
    }
    return HardshipPolicy(**known)  # type: ignore[arg-type]


def text_limits(given: Given, environment: str) -> TextLimits:
    """Return the limits on one-time codes per hour. The sandbox has no default limits, because it sends no real texts."""
    usual = _TEXTS if environment == "production" else {}
    names = {name: f"CUOTA_TEXTS_AN_HOUR_{name.upper()}" for name in _TEXTS} | {
        "installation": "CUOTA_TEXTS_AN_HOUR"
    }
    chosen = {name: given.get(setting, usual.get(name)) for name, setting in names.items()}
    return TextLimits(**{name: most for name, most in chosen.items() if isinstance(most, int)})


def production_problems(given: Given, public_url: str) -> list[str]:
    """Return one sentence for each setting with which a production service must not start."""
    problems = []
    if "CUOTA_SECRET_KEY" not in given:
        problems.append(
            "CUOTA_SECRET_KEY: must be set in production. Create a key with: openssl rand -base64 32."
        )
    if "CUOTA_CREDITOR" not in given:
        problems.append(
            "CUOTA_CREDITOR: must be set in production to the lender's name and postal address. Letters to consumers must contain it."
        )
    if not Path(str(given.get("CUOTA_DATA_DIR", "/"))).is_absolute():
        problems.append(
            "CUOTA_DATA_DIR: must be an absolute path in production, such as /var/lib/cuota. A relative path is another folder for each"
            " command that runs elsewhere."
        )
    for name, value in (
        ("CUOTA_PUBLIC_URL", public_url),
        # If it is not set, it is CUOTA_PUBLIC_URL, which is named already.
        ("CUOTA_AUTH_URL", given.get("CUOTA_AUTH_URL", "https://")),
    ):
        if not str(value).startswith("https://"):
            problems.append(f"{name}: must be an https address in production.")
    problems.extend(
        f"{name}: production needs a real rail. Set it to {what}the dotted path of a class."
        for name, what in (("CUOTA_CARD_RAIL", "stripe, or "), ("CUOTA_MESSAGE_RAIL", "live, or "))
        if given.get(name, "sandbox") == "sandbox"
    )
    if given.get("CUOTA_ISSUING_RAIL") == "sandbox":
        problems.append(
            "CUOTA_ISSUING_RAIL: production needs a real rail. Set it to none, or the dotted path of a class."
        )
    if given.get("CUOTA_BANK_RAIL") == "sandbox":
        problems.append(
            "CUOTA_BANK_RAIL: production needs a real rail. Set it to files, none, or the dotted path of a class."
        )
    if not str(given.get("CUOTA_TEXT_HOOK_URL", "https://")).startswith("https://"):
        problems.append("CUOTA_TEXT_HOOK_URL: must be an https address in production.")
    return problems


def screening_problems(given: Given, environment: str) -> list[str]:
    """Return one sentence if the screening rail would let no merchant be approved, or would let every merchant be approved."""
    if given.get("CUOTA_ONBOARDING") != "required":
        return []
    production = environment == "production"
    chosen = given.get("CUOTA_SCREENING_RAIL", "none" if production else "sandbox")
    if chosen != "none" and not (production and chosen == "sandbox"):
        return []
    choices = "the dotted path of a class" if production else "sandbox, or the dotted path of a class"
    problem = (
        f"CUOTA_SCREENING_RAIL: must be {choices} if CUOTA_ONBOARDING is required, because no merchant is approved before its names"
        " are screened."
    )
    return [problem]


def senders(environ: Mapping[str, str], given: Given, problems: list[str]) -> Senders | None:
    """Return how the message rail `live` sends messages, or None for another rail. Adds missing settings to `problems`."""
    if given.get("CUOTA_MESSAGE_RAIL") != "live":
        return None
    needs = {
        "CUOTA_TEXT_HOOK_URL": "must be set if CUOTA_MESSAGE_RAIL is live, because one-time codes are sent by text message",
        "CUOTA_TEXT_HOOK_SECRET": "must be set if CUOTA_MESSAGE_RAIL is live, because it signs the requests to the text hook",
    }
    present = {name for name, text in environ.items() if text.strip()}
    if "CUOTA_SMTP_URL" in present:
        needs["CUOTA_MAIL_FROM"] = "must be set if CUOTA_SMTP_URL is set: it is the sender's address"
    if "CUOTA_MAIL_FROM" in present:
        needs["CUOTA_SMTP_URL"] = "must be set if CUOTA_MAIL_FROM is set: it is the server that sends mail"
    problems.extend(f"{name}: {why}." for name, why in needs.items() if name not in present)
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


_BANK_FILES = (
    "CUOTA_BANK_COMPANY",
    "CUOTA_BANK_COMPANY_ID",
    "CUOTA_BANK_NAME",
    "CUOTA_BANK_ROUTING",
    "CUOTA_BANK_ACCOUNT",
)


def bank_files(environ: Mapping[str, str], given: Given, problems: list[str]) -> BankFileSettings | None:
    """Return how bank files are written, or None if no bank rail is `files`. Adds missing settings to `problems`."""
    kept = given.get("CUOTA_BANK_RAILS_KEPT", ())
    if "files" not in (given.get("CUOTA_BANK_RAIL"), *(kept if isinstance(kept, tuple) else ())):
        return None
    present = {name for name, text in environ.items() if text.strip()}
    problems.extend(
        f"{name}: must be set if a bank rail is files, because each file contains it."
        for name in _BANK_FILES
        if name not in present
    )
    if problems:
        return None
    return BankFileSettings(
        str(given.get("CUOTA_BANK_FORMAT", "nacha")), Originator(*(str(given[name]) for name in _BANK_FILES))
    )


_STRIPE_KEYS = {
    "CUOTA_STRIPE_SECRET_KEY": "it charges the cards",
    "CUOTA_STRIPE_PUBLISHABLE_KEY": "the card form needs it in the browser",
    "CUOTA_STRIPE_WEBHOOK_SECRET": "it proves that an event is from Stripe",
}


def stripe(environ: Mapping[str, str], given: Given, problems: list[str]) -> StripeKeys | None:
    """Return the keys of the card rail `stripe`, or None if no card rail is `stripe`.

    Adds missing settings to `problems`, and keys of the other environment even if no rail uses them: with a live key in the
    sandbox, a test would charge real cards.
    """
    production = given.get("CUOTA_ENVIRONMENT") == "production"
    wrong, right, where = (
        ("_test_", "live", "production") if production else ("_live_", "test", "the sandbox")
    )
    problems.extend(
        f"{name}: this is a {wrong.strip('_')} key, but {where} needs a {right} key."
        for name in _STRIPE_KEYS
        if str(given.get(name, ""))[2:].startswith(wrong)
    )
    if production and "CUOTA_STRIPE_API_URL" in given:
        problems.append("CUOTA_STRIPE_API_URL: production always uses Stripe itself. Remove this setting.")
    kept = given.get("CUOTA_CARD_RAILS_KEPT", ())
    if "stripe" not in (given.get("CUOTA_CARD_RAIL"), *(kept if isinstance(kept, tuple) else ())):
        return None
    present = {name for name, text in environ.items() if text.strip()}
    problems.extend(
        f"{name}: must be set if a card rail is stripe, because {why}."
        for name, why in _STRIPE_KEYS.items()
        if name not in present
    )
    if problems:
        return None
    secret, publishable, webhook = (str(given[name]) for name in _STRIPE_KEYS)
    return StripeKeys(secret, publishable, webhook, str(given.get("CUOTA_STRIPE_API_URL", "")))
