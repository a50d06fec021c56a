"""What the one-shot commands do: open the database, do one thing, print it for a person or a script."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import httpx

from cuota import config, runtime
from cuota.core import money
from cuota.core.merchant import Merchant
from cuota.db import credentials, merchants
from cuota.db.verify import verify
from cuota.flows import manage_merchants as manage
from cuota.flows.context import Context
from cuota.flows.keys import rotate_keys
from cuota.flows.replay_webhooks import replay
from cuota.listen import listen
from cuota.walk import CannotWalk, walk
from cuota.web.addresses import BadAddress, origin_of, read_address

T = TypeVar("T")


def _run(flow: Callable[[Context], Awaitable[T]]) -> T:
    """One flow on a migrated database, started for it if need be."""
    settings = config.load()
    with runtime.database(settings) as where:

        async def go() -> T:
            await runtime.migrated(settings, where)
            async with runtime.opened(settings, where, pool_size=2) as context:
                if config.names_its_address():
                    return await flow(context)
                known = replace(settings, audience=await runtime.noted_audience(context))
                return await flow(replace(context, settings=known))

        return asyncio.run(go())


def _print(options: argparse.Namespace, facts: object, lines: list[str]) -> None:
    print(json.dumps(facts, indent=2) if options.json else "\n".join(lines))


def _table(facts: dict[str, object]) -> list[str]:
    width = max(len(name) for name in facts)
    return [f"{name:{width}}  {_plain(value)}" for name, value in facts.items()]


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _facts(merchant: Merchant) -> dict[str, object]:
    return {
        "merchantId": str(merchant.merchant_id),
        "name": merchant.name,
        "minimumAmount": money.text_of(merchant.minimum),
        "maximumAmount": money.text_of(merchant.maximum),
        "deferFundsCapture": merchant.defer_funds_capture,
        "profile": merchant.profile.value,
        "currency": merchant.currency,
        "origins": list(merchant.origins),
    }


def _origins(options: argparse.Namespace) -> tuple[str, ...] | None:
    if options.origin is None:
        return None
    origins = []
    for text in options.origin:
        try:
            origin = origin_of(read_address(text, https_only=False))
        except BadAddress as bad:
            raise manage.BadMerchant(f"--origin {text} {bad}") from None
        if text.rstrip("/").lower() != origin:
            raise manage.BadMerchant(f"--origin {text} has a path; an origin is only {origin}.")
        origins.append(origin)
    return tuple(dict.fromkeys(origins))


def _asked(options: argparse.Namespace) -> manage.Terms:
    return manage.Terms(
        name=options.name,
        minimum=options.minimum,
        maximum=options.maximum,
        defer_funds_capture=options.defer_funds_capture,
        profile=options.profile,
        origins=_origins(options),
    )


def merchant_create(options: argparse.Namespace) -> int:
    """`cuota merchant create`."""
    terms = _asked(options)
    new = _run(lambda context: manage.create_merchant(context, terms))
    facts = {
        **_facts(new.merchant),
        "clientId": new.client_id,
        "clientSecret": new.client_secret,
        "audience": new.audience,
        "signingSecret": new.signing_secret,
        "webhookSecret": new.webhook_secret,
    }
    _print(options, facts, [*_table(facts), "", "Keep the three secrets now: they are not shown again."])
    return 0


def merchant_list(options: argparse.Namespace) -> int:
    """`cuota merchant list`."""
    found = _run(lambda context: merchants.read_all(context.pool))
    lines = [f"{merchant.merchant_id}  {merchant.name}" for merchant in found]
    _print(
        options,
        [_facts(merchant) for merchant in found],
        lines or ["No merchants yet. Add one: cuota merchant create"],
    )
    return 0


def merchant_show(options: argparse.Namespace) -> int:
    """`cuota merchant show`."""

    async def flow(context: Context) -> dict[str, object]:
        merchant = await manage.find_merchant(context, options.merchant)
        held = await credentials.read_of_merchant(context.pool, merchant.merchant_id)
        live = [item.client_id for item in held if item.revoked_at is None]
        return {**_facts(merchant), "clientIds": live, "audience": context.settings.audience}

    facts = _run(flow)
    _print(options, facts, _table(facts))
    return 0


def merchant_update(options: argparse.Namespace) -> int:
    """`cuota merchant update`."""
    terms = _asked(options)
    changed = _run(lambda context: manage.update_merchant(context, options.merchant, terms))
    _print(options, _facts(changed), _table(_facts(changed)))
    return 0


def merchant_rotate(options: argparse.Namespace) -> int:
    """`cuota merchant rotate-secret`."""
    lives = timedelta(hours=options.old_lives_hours)
    rotated = _run(lambda context: manage.rotate_secret(context, options.merchant, lives))
    facts = [{"clientId": client_id, "clientSecret": secret} for client_id, secret in rotated]
    lines = [f"{client_id}  {secret}" for client_id, secret in rotated]
    kept = f"Keep the secret now: it is not shown again. The old one works for {options.old_lives_hours} more hours."
    _print(options, facts, [*lines, "", kept])
    return 0


def merchant_revoke(options: argparse.Namespace) -> int:
    """`cuota merchant revoke`."""
    revoked = _run(lambda context: manage.revoke_merchant(context, options.merchant))
    _print(
        options,
        {"revoked": revoked},
        [f"{revoked} credentials revoked; their tokens stop working within 5 seconds."],
    )
    return 0


def merchant_reinstate(options: argparse.Namespace) -> int:
    """`cuota merchant reinstate`."""
    client_id, secret = _run(lambda context: manage.reinstate_merchant(context, options.merchant))
    facts: dict[str, object] = {"clientId": client_id, "clientSecret": secret}
    _print(options, facts, [*_table(facts), "", "Keep the secret now: it is not shown again."])
    return 0


def sandbox_complete(options: argparse.Namespace) -> int:
    """`cuota sandbox complete`."""
    try:
        address = walk(options.redirect_url, options.outcome)
    except httpx.HTTPError as problem:
        raise CannotWalk(f"The checkout cannot be reached: {problem}.") from None
    except (httpx.InvalidURL, ValueError) as problem:
        raise CannotWalk(f"The redirectUrl is not an address: {problem}.") from None
    _print(options, {"outcome": options.outcome, "url": address}, [address])
    return 0


def listen_to(options: argparse.Namespace) -> int:
    """`cuota listen`: until Ctrl-C."""
    _run(
        lambda context: listen(
            context, options.merchant, options.forward, as_json=options.json, from_start=options.from_start
        )
    )
    return 0


def webhook_replay(options: argparse.Namespace) -> int:
    """`cuota webhook replay`."""

    async def flow(context: Context) -> int:
        merchant = await manage.find_merchant(context, options.merchant)
        return await replay(
            context, merchant.merchant_id, options.event, options.endpoint, options.after, options.until
        )

    again = _run(flow)
    _print(options, {"replayed": again}, [f"{again} deliveries will be sent again."])
    return 0


def keys_rotate(options: argparse.Namespace) -> int:
    """`cuota keys rotate`."""
    key_id = _run(rotate_keys)
    _print(options, {"keyId": key_id}, [f"{key_id} is published now and signs in 10 minutes."])
    return 0


def verify_ledger(options: argparse.Namespace) -> int:
    """`cuota verify`: exit 1 if a row disagrees."""
    report = _run(lambda context: verify(context.pool))
    lines = [f"{d.merchant_id} {d.order_id}  {d.row}: {d.problem}" for d in report.disagreements]
    facts = {
        "orders": report.orders,
        "transfers": report.transfers,
        "disagreements": [
            {"merchantId": str(d.merchant_id), "orderId": str(d.order_id), "row": d.row, "problem": d.problem}
            for d in report.disagreements
        ],
    }
    summary = (
        f"{report.orders} orders and {report.transfers} transfers; {len(report.disagreements)} disagree."
    )
    _print(options, facts, [*lines, summary])
    return 1 if report.disagreements else 0


def migrate_database(options: argparse.Namespace) -> int:
    """`cuota migrate`."""
    settings = config.load()
    with runtime.database(settings) as where:
        applied = asyncio.run(runtime.migrated(settings, where))
    _print(
        options,
        {"applied": applied},
        [f"applied {name}" for name in applied] or ["The database is up to date."],
    )
    return 0
