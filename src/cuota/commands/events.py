"""`cuota listen` and `cuota webhook`: show events as they happen, and send webhooks again."""

from __future__ import annotations

import argparse
import shlex

from cuota.commands.common import changes, require_database, run, show
from cuota.commands.listen import WHY, listen
from cuota.commands.parsers import Add
from cuota.commands.place import called, require_service
from cuota.core.expected_failure import WrongUsage
from cuota.core.merchant import Merchant
from cuota.core.refusal import Refused
from cuota.db import workers
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import BadMerchant, find_merchant
from cuota.flows.webhook.replay_webhooks import replay
from cuota.web.addresses import BadAddress, read_address


def listen_to(options: argparse.Namespace) -> int:
    """`cuota listen`. It runs until Ctrl-C."""
    if options.forward is not None:
        try:
            read_address(options.forward, https_only=False)
        except BadAddress as bad:
            raise BadMerchant(f"--forward {options.forward} {bad}.") from None
    require_database()

    async def flow(context: Context) -> None:
        await require_service(context.settings, context.pool, WHY)
        await listen(
            context, options.merchant, options.forward, as_json=options.json, from_start=options.from_start
        )

    run(flow)
    return 0


def _require_choice(options: argparse.Namespace) -> None:
    if not (options.event or options.endpoint or options.after or options.until or options.all):
        raise WrongUsage("Choose what to send again: --event, --endpoint, --after, --until, or --all.")
    others = [f"--{name}" for name in ("after", "until", "all") if getattr(options, name)]
    alone = "--event" if options.event else "--all" if options.all else None
    for other in others:
        if alone not in {None, other}:
            raise WrongUsage(f"Nothing was sent. Give either {alone} or {other}, not both.")


def _no_such(merchant: Merchant, options: argparse.Namespace, refused: Refused) -> Exception:
    """Return the failure for the operator if an event is not one of the merchant's events."""
    field = refused.errors[0].field if refused.errors else "event"
    text = getattr(options, field, None)
    if text is None or "event" not in refused.message:
        return refused
    quoted = shlex.quote(merchant.name)
    return BadMerchant(
        f"{merchant.name} has no event {text}. To see the merchant's events, run:"
        f" {called()} listen --merchant {quoted} --from-start --json"
    )


def webhook_replay(options: argparse.Namespace) -> int:
    """`cuota webhook replay`. Sending everything again requires --all, so that a forgotten option cannot cause it."""
    _require_choice(options)
    require_database()

    async def flow(context: Context) -> tuple[int, int]:
        merchant = await find_merchant(context, options.merchant)
        named = (options.event, options.endpoint, options.after, options.until)
        try:
            replayed = await replay(context, merchant.merchant_id, *named)
        except Refused as refused:
            raise _no_such(merchant, options, refused) from None
        return replayed, await workers.count_alive(context.pool)

    note = changes(
        "webhook.replay",
        options.merchant,
        event=options.event,
        endpoint=options.endpoint,
        after=options.after,
        until=options.until,
    )
    replayed, alive = run(flow, note, merchant=options.merchant)
    lines = [f"{replayed} deliveries will be sent again."]
    if replayed and not alive:
        lines.append(
            f"No service is running. The deliveries will be sent when one starts ({called()} serve)."
        )
    show(options, {"replayed": replayed}, lines)
    return 0


def register_listen(add: Add) -> None:
    """`cuota listen`."""
    heard = add("listen", listen_to, "print a merchant's events as they happen")
    heard.add_argument("--merchant", required=True, metavar="NAME_OR_ID")
    heard.add_argument(
        "--forward", metavar="URL", help="also send each event to this address, with its signatures"
    )
    heard.add_argument("--from-start", action="store_true", help="begin with the merchant's first event")


def register_webhook(add: Add) -> None:
    """`cuota webhook ...`."""
    again = add(
        "replay", webhook_replay, "send events again: one event, a range, or all events of an endpoint"
    )
    again.add_argument("--merchant", required=True, metavar="NAME_OR_ID")
    again.add_argument("--event", metavar="ID", help="send this event")
    again.add_argument("--endpoint", metavar="ID", help="send only to this endpoint")
    again.add_argument("--after", metavar="ID", help="send the events after this event")
    again.add_argument("--until", metavar="ID", help="send the events up to and including this event")
    again.add_argument("--all", action="store_true", help="send all events")
