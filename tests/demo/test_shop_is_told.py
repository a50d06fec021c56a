"""`cuota demo` with the data of an earlier release: the shop receives its webhooks without any setup."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.demo_process import data_folder, demo

WAIT_SECONDS = 30


@pytest.fixture
def data() -> Iterator[Path]:
    with data_folder() as folder:
        yield folder


def bought(buyer: httpx.Client, data: Path) -> None:
    """Order and pay a kettle."""
    csrf = _found(r'name="csrf" value="([^"]+)"', buyer.get("/").text)
    buyer.post("/cart", data={"csrf": csrf, "sku": "kettle"})
    cart = buyer.get("/cart").text
    fields = {name: _found(rf'name="{name}" value="([^"]+)"', cart) for name in ("csrf", "key", "amount")}
    checkout = buyer.post("/checkout", data=fields).headers["Location"]
    command = [sys.executable, "-m", "cuota", "sandbox", "complete", checkout, "--outcome", "approved"]
    subprocess.run(command, env={**os.environ, "CUOTA_DATA_DIR": str(data)}, check=True, timeout=60)


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, pattern
    return found[1]


def origins(data: Path) -> list[str]:
    """Return the web origins whose pages may open the demo merchant's checkout."""
    command = [sys.executable, "-m", "cuota", "merchant", "show", "Alder & Oak", "--json"]
    environment = {**os.environ, "CUOTA_DATA_DIR": str(data)}
    shown = subprocess.run(command, env=environment, check=True, timeout=60, capture_output=True)
    return list(json.loads(shown.stdout)["origins"])


def page_once(buyer: httpx.Client, text: str) -> str:
    """Return the order's page in the back office, as soon as it contains this text."""
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        page = buyer.get("/orders/1001").text
        if text in page:
            return page
        time.sleep(0.1)
    raise AssertionError(f"{text} never came")


def test_the_shop_gets_webhooks_even_if_its_folder_has_no_webhook_secrets_yet(data: Path) -> None:
    with demo(data):
        pass
    path = data / "demo-merchant.json"
    kept = json.loads(path.read_text())
    old = {name: kept[name] for name in ("merchantId", "clientId", "clientSecret")}
    path.write_text(json.dumps(old))
    with demo(data) as buyer:
        assert json.loads(path.read_text()) == kept
        bought(buyer, data)
        page = page_once(buyer, "order.approved")
        assert "order.created" in page
        assert 'data-source="webhook"' in page
    with demo(data) as buyer:
        assert 'data-source="webhook"' in buyer.get("/orders/1001").text


def test_the_shop_s_current_origin_is_registered_at_each_start(data: Path) -> None:
    for _ in range(2):  # each start uses other ports
        with demo(data) as buyer:
            assert str(buyer.base_url).rstrip("/") in origins(data)
            csrf = _found(r'name="csrf" value="([^"]+)"', buyer.get("/").text)
            buyer.post("/cart", data={"csrf": csrf, "sku": "kettle"})
            assert "<pay-button" in buyer.get("/cart").text
