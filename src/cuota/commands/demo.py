"""`cuota demo`: the service, a demo merchant, and its shop on a second origin."""

from __future__ import annotations

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
from cuota.commands.place import in_another_terminal
from cuota.config.reading import is_loopback, is_wildcard
from cuota.core.merchant import Merchant
from cuota.core.sandbox import APPROVED_SURNAME, CODE, DECLINED_SURNAME, TEST_CARDS
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

NAME = "Alder & Oak"
SHOP_READY_SECONDS = 15.0


async def _credentials(settings: config.Settings, shop_url: str) -> dict[str, str]:
    """The demo merchant's credentials: made once, kept beside the data, since secrets are shown only once."""
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
                if shop_url not in merchant.origins:  # whose pages may open the checkout over themselves
                    origins = (*merchant.origins, shop_url)
                    merchant = await update_merchant(context, NAME, MerchantTerms(origins=origins))
            known = {
                "merchantId": str(merchant.merchant_id),
                "clientId": client[0],
                "clientSecret": client[1],
            }
            return _keep(path, {**known, **await _webhook_keys(context, merchant)})


async def _client(context: Context, merchant: Merchant, path: Path) -> tuple[str, str]:
    """As it was kept; where it was not, a new secret."""
    kept = _kept(path)
    if kept.get("merchantId") == str(merchant.merchant_id):
        return kept["clientId"], kept["clientSecret"]
    try:
        first, *_ = await rotate_secret(context, NAME, timedelta(hours=24))
    except BadMerchant:
        # The kept one got lost twice in a day.
        first, *_ = await rotate_secret(context, NAME, timedelta(hours=24), again=True)
    return first


async def _webhook_keys(context: Context, merchant: Merchant) -> dict[str, str]:
    """What webhooks are signed with. Read anew at each start: an earlier release did not keep it beside the data."""
    held = await endpoints.secrets_of(context.pool, merchant.merchant_id)
    webhook, *_ = live_secrets(context, merchant.merchant_id, OWN_ADDRESS, held)
    signing = live_signing(context, merchant.merchant_id, held)[-1]
    return {"signingSecret": signing, "webhookSecret": webhook}


def _kept(path: Path) -> dict[str, str]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _keep(path: Path, kept: dict[str, str]) -> dict[str, str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(kept, indent=2) + "\n")
    return kept


def demo(host: str, port: int, shop_port: int, workers: int) -> int:
    """Run both until Ctrl-C."""
    # A person reads this terminal: a line a request would push what is printed here off the screen.
    os.environ.setdefault("CUOTA_LOG_LEVEL", "warning")
    shop: list[subprocess.Popen[bytes]] = []

    def when_ready(settings: config.Settings) -> None:
        if not settings.sandbox:
            raise CannotServe("The demo runs in the sandbox only. Unset CUOTA_ENVIRONMENT.")
        # Where every address is listened on, the shop is reached by the name that the service is reached by.
        everywhere = is_wildcard(host)
        shop_url = f"http://{urlsplit(settings.public_url).hostname if everywhere else host}:{shop_port}"
        kept = asyncio.run(_credentials(settings, shop_url))
        password = os.environ.get("SHOP_STAFF_PASSWORD", "") or (
            "" if is_loopback(host) else secrets.token_urlsafe(12)
        )
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CUOTA_")},
            "SHOP_API_URL": settings.public_url,
            "SHOP_AUTH_URL": settings.auth_url,
            "SHOP_CLIENT_ID": kept["clientId"],
            "SHOP_CLIENT_SECRET": kept["clientSecret"],
            "SHOP_AUDIENCE": settings.audience,
            "SHOP_MERCHANT_ID": kept["merchantId"],
            "SHOP_WEBHOOK_SECRET": kept["webhookSecret"],
            "SHOP_SIGNING_SECRET": kept["signingSecret"],
            "SHOP_PUBLIC_URL": shop_url,
            "SHOP_STAFF_PASSWORD": password,
            "SHOP_DATA": str(settings.data_dir / "demo-shop"),
        }
        shop_command = [sys.executable, "-m", "cuota.commands.shop_process", str(os.getpid())]
        command = [*shop_command, "--host", host, "--port", str(shop_port)]
        shop.append(subprocess.Popen(command, env=environment))  # noqa: S603
        _wait_for_shop(shop[0], f"http://{'127.0.0.1' if everywhere else host}:{shop_port}")
        print(_welcome(settings, kept, shop_url, password), flush=True)

    # Asked before anything is started: a shop that cannot listen is no demo.
    bind(host, shop_port, option="--shop-port").close()
    try:
        return serve(host, port, workers, when_ready=when_ready)
    finally:
        for process in shop:
            process.terminate()
            process.wait()


def _wait_for_shop(process: subprocess.Popen[bytes], shop_url: str) -> None:
    until = time.monotonic() + SHOP_READY_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise CannotServe("The demo shop could not start; its reason stands above.")
        try:
            httpx.get(f"{shop_url}/health", timeout=1, trust_env=False)
        except httpx.HTTPError:
            time.sleep(0.05)
            continue
        return
    raise CannotServe("The demo shop did not become ready.")


def _welcome(settings: config.Settings, kept: dict[str, str], shop_url: str, password: str) -> str:
    url = settings.public_url
    token_body = {
        "client_id": kept["clientId"],
        "client_secret": kept["clientSecret"],
        "audience": settings.audience,
        "grant_type": "client_credentials",
    }
    cards = f"\n{' ' * 19}".join(f"{card.number}  {card.meaning}" for card in TEST_CARDS)
    code = CODE if settings.message_rail == "sandbox" else "a real one, sent by CUOTA_MESSAGE_RAIL"
    login = f"; login: staff, password: {password}" if password else ""
    command = in_another_terminal(settings)
    return f"""  The shop         {shop_url}     buy something, pay in four: in a window of the shop, or on the payment page

  Cuota is running: a sandbox, no real money moves.

  Its back office  {shop_url}/orders     capture, void, refund, what webhooks told{login}
  The API          {url}     described at {url}/docs
  Consumers        {url}/account     their plans; what they are sent: {url}/sandbox/inbox

  Merchant         {NAME}, id {kept["merchantId"]}
  client_id        {kept["clientId"]}
  client_secret    {kept["clientSecret"]}
  audience         {settings.audience}

  One-time code    {code}
  Cards            {cards}
  Last names       {DECLINED_SURNAME} is declined by risk, {APPROVED_SURNAME} is approved whatever the amount

  First thing to try, in another terminal: a token.
    curl -s {settings.auth_url}/oauth/token -H 'Content-Type: application/json' \\
      -d '{json.dumps(token_body)}'

  Six weeks in seconds, and what merchants are told:
    {command} time advance 6w
    {command} listen --merchant "{NAME}" --from-start

  CUOTA_LOG_LEVEL=info shows a line for each request. The first steps with curl stand in README.md.
  Ctrl-C stops it; the data stays in {settings.data_dir}.
"""
