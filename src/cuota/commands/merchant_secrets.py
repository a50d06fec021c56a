"""`cuota merchant rotate-signing-secret`, `rotate-webhook-secret` and `reinstate`."""

from __future__ import annotations

import argparse
from datetime import timedelta

from cuota.commands.common import changes, run, show, table
from cuota.commands.merchants import hours
from cuota.commands.parsers import Add
from cuota.core.expected_failure import WrongUsage
from cuota.core.merchant import Merchant
from cuota.db.merchant.secrets import SecretKind
from cuota.flows.context import Context
from cuota.flows.merchant import rotate_secrets as rotating
from cuota.flows.merchant.reinstate_merchant import reinstate_merchant
from cuota.flows.merchant.rotate_secrets import Rotated

_BOTH = {
    "signingSecret": "Until then, the service accepts requests signed with either secret, and signs X-Pay-Signature on"
    " webhooks with the old secret.",
    "webhookSecret": "Until then, webhooks carry both signatures.",
}


def rotate_signing(options: argparse.Namespace) -> int:
    """`cuota merchant rotate-signing-secret`."""
    return _rotate(options, SecretKind.SIGNING, None)


def rotate_webhook(options: argparse.Namespace) -> int:
    """`cuota merchant rotate-webhook-secret`: rotate the merchant's own secret, or the secret of one endpoint."""
    return _rotate(options, SecretKind.WEBHOOK, options.endpoint)


def _rotate(options: argparse.Namespace, kind: SecretKind, endpoint: str | None) -> int:
    if options.end_old:
        if options.again:
            raise WrongUsage("Nothing was changed. Give either --again or --end-old, not both.")
        return _end_old(options, kind, endpoint)
    lives = timedelta(hours=options.old_lives_hours)

    async def flow(context: Context) -> Rotated:
        if endpoint is None:
            return await rotating.rotate_merchant_secret(
                context, options.merchant, kind, lives, again=options.again
            )
        return await rotating.rotate_endpoint_secret(
            context, options.merchant, endpoint, lives, again=options.again
        )

    rotated = run(
        flow,
        changes("merchant.keys.replace", options.merchant, replaced=_which(kind, endpoint)),
        merchant=options.merchant,
    )
    name, ends_at = f"{kind}Secret", rotated.old_ends_at
    facts: dict[str, object] = {
        "merchantId": str(rotated.merchant.merchant_id),
        name: rotated.secret,
        "oldSecretEndsAt": ends_at.isoformat() if ends_at else None,
    }
    reminder = "Store the secret now: it is not shown again."
    old = (
        f"The old secret works until {ends_at:%Y-%m-%d %H:%M} UTC. {_BOTH[name]}"
        if ends_at
        else "The old secret no longer works."
    )
    show(options, facts, [rotated.secret, "", f"{reminder} {old}"])
    return 0


def _which(kind: SecretKind, endpoint: str | None) -> str:
    """Name a secret for the log."""
    return f"{kind} secret" if endpoint is None else f"{kind} secret of endpoint {endpoint}"


def _end_old(options: argparse.Namespace, kind: SecretKind, endpoint: str | None) -> int:
    async def flow(context: Context) -> Merchant:
        if endpoint is None:
            return await rotating.end_old_secret(context, options.merchant, kind)
        return await rotating.end_old_endpoint_secret(context, options.merchant, endpoint)

    merchant = run(
        flow,
        changes("merchant.keys.end-old", options.merchant, ended=f"old {_which(kind, endpoint)}"),
        merchant=options.merchant,
    )
    facts: dict[str, object] = {"merchantId": str(merchant.merchant_id), "oldSecretEndsAt": None}
    show(options, facts, [f"The old {kind} secret of {merchant.name} no longer works."])
    return 0


def merchant_reinstate(options: argparse.Namespace) -> int:
    """`cuota merchant reinstate`."""
    made = run(
        lambda context: reinstate_merchant(context, options.merchant),
        changes("merchant.reinstate", options.merchant),
        merchant=options.merchant,
    )
    own: dict[str, object] = {
        "clientId": made.client_id,
        "clientSecret": made.client_secret,
        "signingSecret": made.renewed.signing_secret,
        "webhookSecret": made.renewed.webhook_secret,
    }
    renewed = [
        {"endpointId": str(endpoint_id), "url": url, "webhookSecret": secret}
        for endpoint_id, url, secret in made.renewed.endpoints
    ]
    lines = [*table(own), *(f"endpoint {each['url']}  {each['webhookSecret']}" for each in renewed)]
    reminder = "Store the secrets now: they are not shown again. The old secrets no longer work."
    show(options, {**own, "endpoints": renewed}, [*lines, "", reminder])
    return 0


def register(add: Add) -> None:
    """Register these commands in the `cuota merchant` group."""
    signing = add(
        "rotate-signing-secret",
        rotate_signing,
        "create a new secret for signed checkout requests and X-Pay-Signature; the old secret stays valid for a while",
    )
    signing.add_argument("merchant", metavar="NAME_OR_ID")
    webhook = add(
        "rotate-webhook-secret",
        rotate_webhook,
        "create a new secret for webhook signatures; for a while, webhooks carry both signatures",
    )
    webhook.add_argument("merchant", metavar="NAME_OR_ID")
    webhook.add_argument(
        "endpoint",
        metavar="ENDPOINT",
        nargs="?",
        help="id or address of a registered endpoint (default: the merchant's own secret, for webhooks to callback addresses)",
    )
    for parser in (signing, webhook):
        parser.add_argument(
            "--old-lives-hours",
            type=hours,
            default=24,
            metavar="N",
            help="hours for which the old secret stays valid (default 24); 0 ends it now",
        )
        parser.add_argument(
            "--again",
            action="store_true",
            help="replace a new secret that was lost; the old secret stays valid as before",
        )
        parser.add_argument(
            "--end-old", action="store_true", help="create no new secret, and end the old one now"
        )
    reinstate = add(
        "reinstate",
        merchant_reinstate,
        "reactivate a revoked merchant, with a new credential and new secrets",
    )
    reinstate.add_argument("merchant", metavar="NAME_OR_ID")
