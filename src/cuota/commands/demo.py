"""`cuota demo`: runs the service with a demo merchant, and the merchant's shop on a second port."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from cuota import config
from cuota.commands.desk import operator_sandbox_link, sandbox_link
from cuota.commands.history import command as history_command
from cuota.commands.parsers import Add, adder
from cuota.commands.place import in_another_terminal
from cuota.commands.service import add_listener, port
from cuota.config.reading import is_loopback, is_wildcard, own_address, url_host
from cuota.core.desk.role import Role
from cuota.core.merchant import Merchant
from cuota.core.operator.role import OperatorRole
from cuota.core.sandbox import APPROVED_SURNAME, CODE, DECLINED_SURNAME, REFERRED_SURNAME, TEST_CARDS
from cuota.db.webhook import endpoints
from cuota.db.webhook.events import OWN_ADDRESS
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import (
    BadMerchant,
    MerchantTerms,
    create_merchant,
    find_merchant,
    rotate_secret,
    update_merchant,
)
from cuota.flows.webhook.deliver_webhooks import live_secrets, live_signing
from cuota.run import runtime
from cuota.run.serve import CannotServe, bind, serve
from cuota.run.signals import signals_held

NAME = "Alder & Oak"
SHOP_READY_SECONDS = 15.0
WAIT_FOR_HISTORY = """  Six weeks of orders are being made now, in about two minutes. Meanwhile the clock jumps, so a checkout that you begin expires.
  Wait for "The history is ready".
"""


async def _credentials(settings: config.Settings, shop_url: str) -> dict[str, str]:
    """Return the demo merchant's credentials, and a sign-in link for its dashboard. Create the merchant if it does not exist.

    The credentials are stored in a file in the data folder, because the service shows secrets only once.
    """
    path = settings.data_dir / "demo-merchant.json"
    with runtime.database(settings) as where:
        async with runtime.opened(settings, where, pool_size=2, decides=False) as context:
            try:
                merchant = await find_merchant(context, NAME)
            except BadMerchant:
                terms = MerchantTerms(
                    name=NAME, maximum=100_000, defer_funds_capture=True, origins=(shop_url,)
                )
                new = await create_merchant(context, terms)
                merchant, client = new.merchant, (new.client_id, new.client_secret)
            else:
                client = await _client(context, merchant, path)
                # Only pages of these origins may open the checkout in a window over the page.
                if shop_url not in merchant.origins:
                    origins = (*merchant.origins, shop_url)
                    merchant = await update_merchant(context, NAME, MerchantTerms(origins=origins))
            identity = {
                "merchantId": str(merchant.merchant_id),
                "clientId": client[0],
                "clientSecret": client[1],
            }
            keys = await _webhook_keys(context, merchant)
            return {
                **_store(path, {**identity, **keys}),
                "desk": await sandbox_link(context, merchant, Role.OWNER),
                "operator": await operator_sandbox_link(context, OperatorRole.OWNER),
            }


async def _client(context: Context, merchant: Merchant, path: Path) -> tuple[str, str]:
    """Return the stored client id and secret. If none is stored for this merchant, create a new secret."""
    stored = _stored(path)
    if stored.get("merchantId") == str(merchant.merchant_id):
        return stored["clientId"], stored["clientSecret"]
    try:
        first, *_ = await rotate_secret(context, NAME, timedelta(hours=24))
    except BadMerchant:
        # The stored secret was lost for the second time within a day, so the first new secret has to be replaced.
        first, *_ = await rotate_secret(context, NAME, timedelta(hours=24), again=True)
    return first


async def _webhook_keys(context: Context, merchant: Merchant) -> dict[str, str]:
    """Return the secrets that sign requests and webhooks.

    They are read from the database at each start, because earlier releases did not store them in the file.
    """
    sealed = await endpoints.secrets_of(context.pool, merchant.merchant_id)
    webhook, *_ = live_secrets(context, merchant.merchant_id, OWN_ADDRESS, sealed)
    signing = live_signing(context, merchant.merchant_id, sealed)[-1]
    return {"signingSecret": signing, "webhookSecret": webhook}


def _stored(path: Path) -> dict[str, str]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _store(path: Path, credentials: dict[str, str]) -> dict[str, str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(credentials, indent=2) + "\n")
    return credentials


def register(add: Add) -> None:
    """Add the command, and `cuota demo history`."""
    text = "run the service with a demo merchant, and the merchant's shop on a second port"
    parser = add("demo", _demo, text, json=False)
    add_listener(parser)
    parser.add_argument("--shop-port", type=port, default=8001, help="port of the shop (default 8001)")
    parser.add_argument(
        "--history", action="store_true", help="also make six weeks of orders, as `cuota demo history` does"
    )
    history_command.register(adder(parser.add_subparsers(metavar="COMMAND")))


def _demo(options: argparse.Namespace) -> int:
    return demo(options.host, options.port, options.shop_port, options.workers, history=options.history)


def demo(host: str, port: int, shop_port: int, workers: int, *, history: bool = False) -> int:
    """Run the service and the shop until Ctrl-C, and return the exit code. `history` also makes the shop's history.

    Raises CannotServe in production, and if a port is in use or the shop does not start.
    """
    # A person reads this terminal. A log line for each request would push the welcome text off the screen.
    os.environ.setdefault("CUOTA_LOG_LEVEL", "warning")
    beside: list[subprocess.Popen[bytes]] = []

    def when_ready(settings: config.Settings) -> None:
        # If the shop listens on all addresses, browsers open it by the same host name as the service.
        everywhere = is_wildcard(host)
        shop_host = urlsplit(settings.public_url).hostname or host if everywhere else host
        shop_url = f"http://{url_host(shop_host)}:{shop_port}"
        credentials = asyncio.run(_credentials(settings, shop_url))
        password = os.environ.get("SHOP_STAFF_PASSWORD", "") or (
            "" if is_loopback(host) else secrets.token_urlsafe(12)
        )
        environment = _shop_environment(settings, credentials, shop_url, password)
        shop_command = [sys.executable, "-m", "cuota.commands.shop_process", str(os.getpid())]
        command = [*shop_command, "--host", host, "--port", str(shop_port)]
        with signals_held():
            beside.append(subprocess.Popen(command, env=environment))  # noqa: S603
        _wait_for_shop(beside[0], f"http://{url_host(own_address(host))}:{shop_port}")
        print(_welcome(settings, credentials, shop_url, password), flush=True)
        if history:
            print(WAIT_FOR_HISTORY, flush=True)
            made = {**os.environ, "CUOTA_DATA_DIR": str(settings.data_dir)}
            beside.append(subprocess.Popen([sys.executable, "-m", "cuota", "demo", "history"], env=made))

    # A production service must not run even for a moment: its jobs would charge cards.
    # The other settings are not read yet: they would be reported as incomplete, and the key would be created.
    if config.environment() != "sandbox":
        raise CannotServe("The demo runs only in the sandbox. Unset CUOTA_ENVIRONMENT.")
    # Check the shop's port before anything is started: the demo needs the shop.
    bind(host, shop_port, option="--shop-port").close()
    try:
        return serve(host, port, workers, when_ready=when_ready)
    finally:
        for process in reversed(beside):
            # Stop the history first. It then moves the clock to the end, for which it needs only the database.
            process.terminate()
            process.wait()


def _shop_environment(
    settings: config.Settings, credentials: dict[str, str], shop_url: str, password: str
) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("CUOTA_")},
        "SHOP_API_URL": settings.public_url,
        "SHOP_AUTH_URL": settings.auth_url,
        "SHOP_CLIENT_ID": credentials["clientId"],
        "SHOP_CLIENT_SECRET": credentials["clientSecret"],
        "SHOP_AUDIENCE": settings.audience,
        "SHOP_MERCHANT_ID": credentials["merchantId"],
        "SHOP_WEBHOOK_SECRET": credentials["webhookSecret"],
        "SHOP_SIGNING_SECRET": credentials["signingSecret"],
        "SHOP_PUBLIC_URL": shop_url,
        "SHOP_STAFF_PASSWORD": password,
        "SHOP_DATA": str(settings.data_dir / "demo-shop"),
    }


def _wait_for_shop(process: subprocess.Popen[bytes], shop_url: str) -> None:
    until = time.monotonic() + SHOP_READY_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise CannotServe("The demo shop could not start. The reason is printed above.")
        try:
            httpx.get(f"{shop_url}/health", timeout=1, trust_env=False)
        except httpx.HTTPError:
            time.sleep(0.05)
            continue
        return
    raise CannotServe(f"The demo shop did not answer within {SHOP_READY_SECONDS:.0f} seconds.")


def _welcome(settings: config.Settings, credentials: dict[str, str], shop_url: str, password: str) -> str:
    url = settings.public_url
    token_body = {
        "client_id": credentials["clientId"],
        "client_secret": credentials["clientSecret"],
        "audience": settings.audience,
        "grant_type": "client_credentials",
    }
    cards = f"\n{' ' * 19}".join(f"{card.number}  {card.meaning}" for card in TEST_CARDS)
    code = (
        CODE if settings.message_rail == "sandbox" else "sent to your phone by the rail in CUOTA_MESSAGE_RAIL"
    )
    login = f"; login: staff, password: {password}" if password else ""
    command = in_another_terminal(settings)
    return f"""  The shop         {shop_url}     buy something and pay in four, in a window over the shop or on the payment page

  Cuota is running as a sandbox: no real money moves.

  Its back office  {shop_url}/orders     capture, void, refund, and received webhooks{login}
  The API          {url}     documentation: {url}/docs
  Its dashboard    {credentials["desk"]}
  The operator's   {credentials["operator"]}
                   Both links sign in once, within a day; for others: {command} desk link --help
  Consumers        {url}/account     a consumer's plans; messages to consumers: {url}/sandbox/inbox

  Merchant         {NAME}, id {credentials["merchantId"]}
  client_id        {credentials["clientId"]}
  client_secret    {credentials["clientSecret"]}
  audience         {settings.audience}

  One-time code    {code}
  Cards            {cards}
  Last names       {DECLINED_SURNAME} is always declined, {APPROVED_SURNAME} is approved for any amount, {REFERRED_SURNAME} waits for a person

  To fill a shop without orders with six weeks of orders, payouts and disputes: {command} demo history

  To try the API, get a token in another terminal:
    curl -s {settings.auth_url}/oauth/token -H 'Content-Type: application/json' \\
      -d '{json.dumps(token_body)}'

  To dispute an order for its buyer once it is captured, such as the first one, and answer in the back office:
    {command} dispute open AO-1001 --reason not_received --amount 5.00

  To move the clock six weeks ahead, and to see the merchant's events:
    {command} time advance 6w
    {command} listen --merchant "{NAME}" --from-start

  CUOTA_LOG_LEVEL=info prints a line for each request. README.md shows the first steps with curl.
  Ctrl-C stops the demo. The data stays in {settings.data_dir}.
"""
