"""The table of all settings. The table in docs/running.md is generated from this one."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cuota.config.bank_reading import account_number, company_id, routing_number
from cuota.config.money_reading import dollars
from cuota.config.provider import claim, domains, issuer, plain, roles, two_factors
from cuota.config.reading import (
    accent,
    address,
    addresses,
    database,
    hook,
    hook_secret,
    hosts,
    key_of,
    line,
    listen,
    mail_server,
    mailbox,
    networks,
    one_of,
    picture,
    rail,
    rails,
    secret,
    secrets,
    web_page,
    whole,
    words,
)
from cuota.core.risk.adverse import AGENCY


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, its meaning, its default in words, and the function that reads its text."""

    name: str
    meaning: str
    default: str
    read: Callable[[str], object]


_LEVELS = one_of("debug", "info", "warning", "error")
SETTINGS = (
    Setting("CUOTA_ENVIRONMENT", "sandbox or production; the two share no data", "sandbox", one_of("sandbox", "production")),
    Setting("CUOTA_PUBLIC_URL", "the address at which merchants and consumers reach the service", "http://HOST:PORT of `serve`", address),
    Setting("CUOTA_AUTH_URL", "the token issuer's address", "CUOTA_PUBLIC_URL", address),
    Setting("CUOTA_AUDIENCE", "the audience for which merchants request tokens; you may list several, separated by commas or spaces, and the first is the default for requests without an audience", "CUOTA_PUBLIC_URL", addresses),
    Setting("CUOTA_TRUSTED_PROXIES", "addresses or networks of your reverse proxies, separated by commas; their X-Forwarded-For header gives the client's address for rate limits", "none: X-Forwarded-For is ignored", networks),
    Setting("CUOTA_DATABASE_URL", "address of a PostgreSQL 15 or later; you may list several hosts (host1:5432,host2:5432), and the one that accepts writes is used", "the embedded PostgreSQL", database),
    Setting("CUOTA_DATABASE_OWNER_URL", "address of the same database for the owner of its tables, for migrations, backup and restore; the service itself does not need this", "CUOTA_DATABASE_URL", database),
    Setting("CUOTA_DATABASE_ENTRY_URL", "on a Citus cluster: address of a worker through which this machine reads and saves orders, to relieve the coordinator of CUOTA_DATABASE_URL; while the worker is down, the coordinator does this work", "the coordinator", database),
    Setting("CUOTA_DATA_DIR", "folder of the embedded database and the sandbox's secret key; in production an absolute path", "~/.local/share/cuota/ENVIRONMENT; as root /var/lib/cuota/ENVIRONMENT", Path),
    Setting("CUOTA_SECRET_KEY", "32 random bytes in base64 that encrypt the stored secrets; must be the same on every machine", "sandbox: created once and stored in the data folder; production: none, it must be set", secret),
    Setting("CUOTA_SECRET_KEY_OLD", "older secret keys, separated by commas, that can decrypt but do not encrypt: see Secrets", "none", secrets),
    Setting("CUOTA_ORDER_MINUTES", "minutes that a consumer has to complete an order", "60", whole(1, 1440)),
    Setting("CUOTA_AUTHORIZATION_DAYS", "days for which an authorization is valid", "13", whole(1, 90)),
    Setting("CUOTA_WRITE_OFF_DAYS", "days after which an installment that is overdue is written off", "120", whole(30, 3650)),
    Setting("CUOTA_HARDSHIP_MOVE_DAYS", "the most days by which the operator may move payments of one plan in hardship, in all changes together", "30", whole(0, 365)),
    Setting("CUOTA_HARDSHIP_PAUSE_DAYS", "the most days for which the operator may pause one plan in hardship, in all changes together", "60", whole(0, 365)),
    Setting("CUOTA_HARDSHIP_PAYMENTS", "the highest number of smaller payments that may replace the unpaid payments of a plan in hardship; 1 allows none", "12", whole(1, 30)),
    Setting("CUOTA_HARDSHIP_FEE_A_YEAR", "the most dollars of plan fees that may be waived in hardship, for one consumer within 365 days", "50.00", dollars),
    Setting("CUOTA_CARD_RAIL", "sandbox, stripe, or a class of the CardRail protocol", "sandbox", rail("sandbox", "stripe", example="mybank.rails.CardRail")),
    Setting("CUOTA_CARD_RAILS_KEPT", "more card rails, separated by commas, whose cards still pay plans: the rail that you used before", "none", rails("sandbox", "stripe", example="mybank.rails.CardRail")),
    Setting("CUOTA_STRIPE_SECRET_KEY", "the secret key of your Stripe account, or a restricted key: a live key in production, a test key in the sandbox", "none; `stripe` needs it", key_of("sk_live_", "sk_test_", "rk_live_", "rk_test_")),
    Setting("CUOTA_STRIPE_PUBLISHABLE_KEY", "the publishable key of the same account, which the card form sends to the browser", "none; `stripe` needs it", key_of("pk_live_", "pk_test_")),
    Setting("CUOTA_STRIPE_WEBHOOK_SECRET", "the signing secret of the webhook endpoint that you created at Stripe for CUOTA_PUBLIC_URL/rails/card/events", "none; `stripe` needs it", key_of("whsec_")),
    Setting("CUOTA_STRIPE_API_URL", "the address of a stand-in for Stripe, in the sandbox only", "Stripe", address),
    Setting("CUOTA_MESSAGE_RAIL", "sandbox, live (text hook and SMTP), or a class of the MessageRail protocol", "sandbox", rail("sandbox", "live", example="mytexts.rails.MessageRail")),
    Setting("CUOTA_ISSUING_RAIL", "the issuer of virtual cards: sandbox, none, or a class of the IssuingRail protocol", "sandbox; production: none, which means no virtual cards", rail("sandbox", "none", example="mybank.rails.IssuingRail")),
    Setting("CUOTA_BANK_RAIL", "the bank that sends payouts: sandbox, files, none, or a class of the BankRail protocol", "sandbox; production: none, which means that payouts wait", rail("sandbox", "files", "none", example="mybank.rails.BankRail")),
    Setting("CUOTA_BANK_RAILS_KEPT", "more bank rails, separated by commas, which are still asked about the payouts that they sent: the rail that you used before", "none", rails("sandbox", "files", example="mybank.rails.BankRail")),
    Setting("CUOTA_BANK_FORMAT", "the format of bank files: nacha (ACH, United States) or pain001 (ISO 20022)", "nacha", one_of("nacha", "pain001")),
    Setting("CUOTA_BANK_COMPANY", "your company's name, as the bank knows it", "none; `files` needs it", words),
    Setting("CUOTA_BANK_COMPANY_ID", "the company's id of up to ten characters, which the bank gives you", "none; `files` needs it", company_id),
    Setting("CUOTA_BANK_NAME", "your bank's name", "none; `files` needs it", words),
    Setting("CUOTA_BANK_ROUTING", "your bank's routing number", "none; `files` needs it", routing_number),
    Setting("CUOTA_BANK_ACCOUNT", "the number of the account that pays the merchants", "none; `files` needs it", account_number),
    Setting("CUOTA_ONBOARDING", "whether a new merchant must be approved (off or required): until then, production refuses its orders, and its payouts are held; see operator.md, Onboarding", "off", one_of("off", "required")),
    Setting("CUOTA_SCREENING_RAIL", "the rail that searches lists of sanctioned people and companies for merchants' names: sandbox, none, or a class of the ScreeningRail protocol", "sandbox; production: none, which means that no names are screened", rail("sandbox", "none", example="mylists.rails.ScreeningRail")),
    Setting("CUOTA_SCREENING_DAYS", "days after which a merchant's names are screened again", "1", whole(1, 365)),
    Setting("CUOTA_TEXT_HOOK_URL", "the address to which `live` posts text messages", "none; `live` needs it", hook),
    Setting("CUOTA_TEXT_HOOK_SECRET", "the secret that signs requests to CUOTA_TEXT_HOOK_URL: whsec_ and 24 to 64 random bytes in base64", "none; `live` needs it", hook_secret),
    Setting("CUOTA_TEXTS_AN_HOUR", "most one-time codes sent by text in an hour, for the whole installation", "2000; sandbox: no limit", whole(1, 10_000_000)),
    Setting("CUOTA_TEXTS_AN_HOUR_PREFIX", "the same, for phone numbers with the same area code and exchange", "60; sandbox: no limit", whole(1, 10_000_000)),
    Setting("CUOTA_TEXTS_AN_HOUR_ADDRESS", "the same, for requests from one IP address", "12; sandbox: no limit", whole(1, 10_000_000)),
    Setting("CUOTA_SMTP_URL", "the server through which `live` sends mail: smtp://user:password@host:587 (STARTTLS) or smtps://user:password@host:465", "none: all messages are sent by text", mail_server),
    Setting("CUOTA_MAIL_FROM", "the sender's address of mail", "none; CUOTA_SMTP_URL needs it", mailbox),
    Setting("CUOTA_POOL_SIZE", "database connections of each worker process; it opens five more: four for batched requests, and one that shows that the process is alive", "16", whole(1, 200)),
    Setting("CUOTA_LOOPBACK_WEBHOOKS", "whether the sandbox may send webhooks to loopback addresses (127.0.0.1, localhost): allow or refuse", "allow if `serve` listens on a loopback address, otherwise refuse; production: always refuse", one_of("allow", "refuse")),
    Setting("CUOTA_HOSTS", "additional host names that the sandbox accepts, separated by commas; a request with any other Host header is refused", "the host of CUOTA_PUBLIC_URL, the address that `serve` listens on, and the loopback names", hosts),
    Setting("CUOTA_BRAND_NAME", "the name that consumers see", "Pay in four", words),
    Setting("CUOTA_BRAND_ACCENT", "the accent color of the pages", "#0B6E63", accent),
    Setting("CUOTA_BRAND_LOGO", "path of an SVG or PNG file shown beside the name", "none", picture),
    Setting("CUOTA_HELP_URL", "your help page for consumers, linked at the bottom of every page", "none: no link", web_page),
    Setting("CUOTA_PRIVACY_URL", "your privacy notice, linked at the bottom of every page", "none: no link", web_page),
    Setting("CUOTA_TERMS_URL", "your terms of use, linked at the bottom of every page", "none: no link", web_page),
    Setting("CUOTA_CREDITOR", "the lender's name and postal address, on one line, for letters to consumers", "sandbox: CUOTA_BRAND_NAME and CUOTA_PUBLIC_URL; production: none, it must be set", line),
    Setting("CUOTA_CREDITOR_AGENCY", "name and address of the federal agency that enforces the Equal Credit Opportunity Act for this lender, for letters of decline", AGENCY, line),
    Setting("CUOTA_POLICY", "path of the risk policy to use (TOML)", "the policy of this release, `policies/standard.toml`", Path),
    Setting("CUOTA_KEEP_ABANDONED_DAYS", "days after which names and addresses are deleted from an abandoned order", "90", whole(1, 3650)),
    Setting("CUOTA_KEEP_DECLINED_DAYS", "the same for a declined order, and for people who never agreed to a plan", "760", whole(1, 3650)),
    Setting("CUOTA_KEEP_MESSAGES_DAYS", "days after which the record of a sent message is deleted", "760", whole(1, 3650)),
    Setting("CUOTA_KEEP_ATTEMPTS_DAYS", "days after which the record of a webhook attempt is deleted, and with the last one a delivery that arrived", "90", whole(3, 3650)),
    Setting("CUOTA_DESK_CODE_ABOVE", "the merchant's dashboard asks for a code of the authenticator app before a capture, void or refund of more than this many dollars, unless the last code was given within five minutes", "500.00", dollars),
    Setting("CUOTA_DESK_SECOND_PERSON_ABOVE", "in the merchant's dashboard, a capture, void or refund of more than this many dollars is made only when a second person of the merchant's team approves it; what one person moves of one order in 24 hours counts together", "none: one person is enough", dollars),
    Setting("CUOTA_OPERATOR_OIDC_ISSUER", "the OpenID Connect provider at which the operator's people sign in: its issuer, exactly as the provider writes it; production: https", "none: mailed links and passkeys only", issuer),
    Setting("CUOTA_OPERATOR_OIDC_CLIENT_ID", "the id of Cuota at that provider", "none; a provider needs it", plain),
    Setting("CUOTA_OPERATOR_OIDC_CLIENT_SECRET", "the secret of Cuota at that provider", "none; a provider needs it", plain),
    Setting("CUOTA_OPERATOR_OIDC_NAME", "the provider's name on the sign-in page", "the issuer's host name", words),
    Setting("CUOTA_OPERATOR_OIDC_MODE", "also, or only. With only, mailed links do not work, and a passkey and the authenticator app are only second factors", "also", one_of("also", "only")),
    Setting("CUOTA_OPERATOR_OIDC_ALLOWED_DOMAINS", "domains of e-mail addresses, separated by commas, to which the provider's verified address must belong at every sign-in", "none: every domain; in any case, only invited people can sign in", domains),
    Setting("CUOTA_OPERATOR_OIDC_VERIFIED_CLAIM", "the claim that says that the provider has verified the e-mail address", "email_verified", claim),
    Setting("CUOTA_OPERATOR_OIDC_SECOND_FACTOR", "values of the claims amr and acr that prove a second factor, separated by commas, such as amr=mfa", "none: Cuota asks for its own second factor", two_factors),
    Setting("CUOTA_OPERATOR_OIDC_ROLE_CLAIM", "the claim that gives people their role at every sign-in, such as groups; owners keep theirs", "none: the team page gives roles", claim),
    Setting("CUOTA_OPERATOR_OIDC_ROLES", "the role for each value of that claim (the first match counts), such as cuota-finance=finance,cuota-help=support; never owner", "none; CUOTA_OPERATOR_OIDC_ROLE_CLAIM needs it", roles),
    Setting("CUOTA_OPERATOR_OIDC_NETWORK", "public, or private. With private, the provider may also be in a private network or on this machine", "public; a sandbox that may call its own machine (CUOTA_LOOPBACK_WEBHOOKS) also finds a provider there", one_of("public", "private")),
    Setting("CUOTA_REQUEST_LOG", "whether each API call is stored for 30 days, with masked bodies, for the people of the merchant's dashboard: on or off", "on", one_of("on", "off")),
    Setting("CUOTA_METRICS_LISTEN", "separate address and port for metrics and health, such as 127.0.0.1:9464; the public port then has no /metrics", "none: on the public port", listen),
    Setting("CUOTA_LOG_LEVEL", "debug, info, warning or error", "info", _LEVELS),
)  # fmt: skip


def no_such(name: str) -> str:
    """Say that there is no such setting, and which setting has the most similar name."""
    known = [setting.name.removeprefix("CUOTA_") for setting in SETTINGS]
    found = difflib.get_close_matches(name.removeprefix("CUOTA_"), known, 1)
    meant = f" Did you mean CUOTA_{found[0]}?" if found else ""
    return f"there is no such setting.{meant} `cuota --help` lists all settings."
