"""`cuota merchant`: create and manage merchants."""

from __future__ import annotations

import argparse
from datetime import timedelta

from cuota.commands.common import cents, changes, run, show, table, worded
from cuota.commands.parsers import Add
from cuota.commands.place import called
from cuota.core import money
from cuota.core.expected_failure import WrongUsage
from cuota.core.merchant import BodyProfile, Merchant
from cuota.core.risk.explanation import counted
from cuota.db.merchant import credentials, merchants
from cuota.db.operator.merchant_list import state_of
from cuota.db.risk import approvals
from cuota.flows.context import Context
from cuota.flows.merchant import manage_merchants as manage
from cuota.web.addresses import BadAddress, read_origin

# One year, in hours. An old secret that stays valid for longer would defeat the rotation.
MOST_HOURS = 8760


def _facts(merchant: Merchant) -> dict[str, object]:
    return {
        "merchantId": str(merchant.merchant_id),
        "name": merchant.name,
        "minimumAmount": money.text_of(merchant.minimum),
        "maximumAmount": money.text_of(merchant.maximum),
        **_own_amounts(merchant),
        "deferFundsCapture": merchant.defer_funds_capture,
        "profile": merchant.profile.value,
        "currency": merchant.currency,
        "origins": list(merchant.origins),
        "onboarding": merchant.onboarding.value,
        "suspended": merchant.suspended,
    }


def _own_amounts(merchant: Merchant) -> dict[str, object]:
    """Return the amounts in force, if the merchant's own people narrowed the operator's limits."""
    if merchant.own.minimum is None and merchant.own.maximum is None:
        return {}
    return {
        "ownMinimumAmount": money.text_of(merchant.lowest),
        "ownMaximumAmount": money.text_of(merchant.highest),
    }


def _origins(options: argparse.Namespace) -> tuple[str, ...] | None:
    if options.origin is None:
        return None
    origins = []
    for text in options.origin:
        try:
            origins.append(read_origin(text))
        except BadAddress as bad:
            raise manage.BadMerchant(f"--origin {text} {bad}") from None
    return tuple(dict.fromkeys(origins))


def _text(cents: int | None) -> str | None:
    return None if cents is None else money.text_of(cents)


def _terms_of(options: argparse.Namespace) -> manage.MerchantTerms:
    return manage.MerchantTerms(
        name=options.name,
        minimum=options.minimum,
        maximum=options.maximum,
        defer_funds_capture=options.defer_funds_capture,
        profile=options.profile,
        origins=_origins(options),
    )


def merchant_create(options: argparse.Namespace) -> int:
    """`cuota merchant create`."""
    terms = _terms_of(options)
    new = run(
        lambda context: manage.create_merchant(context, terms),
        changes("merchant.create", terms.name or "", "", **{**manage.terms_words(terms), "name": None}),
    )
    facts = {
        **_facts(new.merchant),
        "clientId": new.client_id,
        "clientSecret": new.client_secret,
        "audience": new.audience,
        "signingSecret": new.signing_secret,
        "webhookSecret": new.webhook_secret,
    }
    show(options, facts, [*table(facts), "", "Store the three secrets now: they are not shown again."])
    return 0


def merchant_list(options: argparse.Namespace) -> int:
    """`cuota merchant list`."""

    async def flow(context: Context) -> list[dict[str, object]]:
        modes = await approvals.read_modes(context.pool)
        revoked = await merchants.revoked(context.pool)
        return [
            {
                **_facts(merchant),
                "status": state_of(merchant, live=merchant.merchant_id not in revoked).value,
                "approvals": modes.get(merchant.merchant_id, "off"),
            }
            for merchant in await merchants.read_all(context.pool)
        ]

    found = run(flow)
    lines = [
        f"{each['merchantId']}  {each['name']}  ({each['status']}; approvals: {each['approvals']})"
        for each in found
    ]
    show(
        options,
        found,
        lines or [f"No merchants yet. Add one: {called()} merchant create --name NAME"],
    )
    return 0


def merchant_show(options: argparse.Namespace) -> int:
    """`cuota merchant show`."""

    async def flow(context: Context) -> dict[str, object]:
        merchant = await manage.find_merchant(context, options.merchant)
        held = await credentials.read_of_merchant(context.pool, merchant.merchant_id)
        live = [item.client_id for item in held if item.revoked_at is None]
        standing = await approvals.read(context.pool, merchant.merchant_id)
        return {
            **_facts(merchant),
            "status": state_of(merchant, live=bool(live)).value,
            "approvals": standing.mode,
            "clientIds": live,
            "audience": context.settings.audience,
        }

    facts = run(flow)
    show(options, facts, table(facts))
    return 0


def merchant_update(options: argparse.Namespace) -> int:
    """`cuota merchant update`."""
    terms = _terms_of(options)

    async def before(context: Context) -> dict[str, str]:
        words = manage.terms_words(await manage.find_merchant(context, options.merchant))
        return {name: worded(value) for name, value in words.items()}

    changed = run(
        lambda context: manage.update_merchant(context, options.merchant, terms),
        changes("merchant.limits", options.merchant, "", **manage.terms_words(terms)),
        merchant=options.merchant,
        before=before,
    )
    show(options, _facts(changed), table(_facts(changed)))
    return 0


def merchant_rotate(options: argparse.Namespace) -> int:
    """`cuota merchant rotate-secret`."""
    if options.end_old:
        return _end_old(options)
    lives = timedelta(hours=options.old_lives_hours)
    rotated = run(
        lambda context: manage.rotate_secret(context, options.merchant, lives, again=options.again),
        changes("merchant.keys.replace", options.merchant, replaced="client secret"),
        merchant=options.merchant,
    )
    facts = [{"clientId": client_id, "clientSecret": secret} for client_id, secret in rotated]
    lines = [f"{client_id}  {secret}" for client_id, secret in rotated]
    old = "stays valid as before" if options.again else f"works for {options.old_lives_hours} more hours"
    show(options, facts, [*lines, "", f"Store the secret now: it is not shown again. The old secret {old}."])
    return 0


def _end_old(options: argparse.Namespace) -> int:
    if options.again:
        raise WrongUsage("Nothing was changed. Give either --again or --end-old, not both.")
    merchant = run(
        lambda context: manage.end_old_secret(context, options.merchant),
        changes("merchant.keys.end-old", options.merchant, ended="old client secret"),
        merchant=options.merchant,
    )
    facts = {"merchantId": str(merchant.merchant_id), "oldSecretEndsAt": None}
    show(options, facts, [f"The old client secret of {merchant.name} no longer works."])
    return 0


def merchant_revoke(options: argparse.Namespace) -> int:
    """`cuota merchant revoke`."""
    revoked = run(
        lambda context: manage.revoke_merchant(context, options.merchant),
        changes("merchant.revoke", options.merchant),
        merchant=options.merchant,
    )
    show(
        options,
        {"revoked": revoked},
        [f"Revoked: {counted(revoked, 'credential')}. Their tokens stop working within 5 seconds."],
    )
    return 0


def _profile(text: str) -> BodyProfile:
    try:
        return BodyProfile(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be strict or lenient") from None


def hours(text: str) -> int:
    """Read an option's text as a number of hours."""
    if not text.isascii() or not text.isdigit() or int(text) > MOST_HOURS:
        raise argparse.ArgumentTypeError(f"must be a whole number of hours from 0 to {MOST_HOURS}")
    return int(text)


def _terms(parser: argparse.ArgumentParser, *, new: bool) -> None:
    def with_default(text: str, default: str) -> str:
        return f"{text} ({default})" if new else text

    parser.add_argument(
        "--minimum", type=cents, metavar="AMOUNT", help=with_default("lowest order amount", "1.00")
    )
    parser.add_argument(
        "--maximum", type=cents, metavar="AMOUNT", help=with_default("highest order amount", "2000.00")
    )
    parser.add_argument(
        "--defer-funds-capture",
        action=argparse.BooleanOptionalAction,
        help=with_default(
            "capture an order when the merchant calls the API, not when the order is approved",
            "when approved",
        ),
    )
    parser.add_argument(
        "--profile",
        type=_profile,
        metavar="strict|lenient",
        help=with_default("how request bodies with an order are read", "strict"),
    )
    parser.add_argument(
        "--origin",
        action="append",
        metavar="URL",
        help="web origin whose pages may open the checkout; may be given several times",
    )


def register(add: Add) -> None:
    """`cuota merchant ...`."""
    create = add(
        "create", merchant_create, "add a merchant; print its credentials, which are shown only once"
    )
    create.add_argument("--name", required=True, help="the name that consumers see; must be unique")
    _terms(create, new=True)
    add("list", merchant_list, "list all merchants")
    for name, command, text in (
        ("show", merchant_show, "show a merchant's terms and client ids"),
        ("update", merchant_update, "change a merchant's terms, for orders created from now on"),
        ("rotate-secret", merchant_rotate, "create a new client secret; the old one stays valid for a while"),
        ("revoke", merchant_revoke, "revoke a merchant's credentials; its tokens stop working"),
    ):
        parser = add(name, command, text)
        parser.add_argument("merchant", metavar="NAME_OR_ID")
        if name == "update":
            parser.add_argument("--name", help="a new name")
            _terms(parser, new=False)
        if name == "rotate-secret":
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
