"""`cuota demo` as a person starts it, on the data of an earlier release: the shop hears of its orders by itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

WAIT_SECONDS = 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def demo(data: Path) -> Iterator[httpx.Client]:
    """A running demo, and a buyer at its shop."""
    port, shop_port = free_port(), free_port()
    command = [sys.executable, "-m", "cuota", "demo", "--port", str(port), "--shop-port", str(shop_port)]
    environment = {**os.environ, "CUOTA_DATA_DIR": str(data)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any("Ctrl-C stops it" in line for line in process.stdout)
        with httpx.Client(base_url=f"http://127.0.0.1:{shop_port}", trust_env=False, timeout=20) as buyer:
            try:
                yield buyer
            finally:
                process.terminate()
                process.wait(20)


@pytest.fixture
def data() -> Iterator[Path]:
    """A folder that the unprivileged user of postgres may reach."""
    base = Path(tempfile.mkdtemp(prefix="cuota-demo-"))
    base.chmod(0o711)
    yield base / "data"
    shutil.rmtree(base, ignore_errors=True)


def bought(buyer: httpx.Client, data: Path) -> None:
    """A kettle, ordered and paid."""
    csrf = _found(r'name="csrf" value="([^"]+)"', buyer.get("/").text)
    buyer.post("/basket", data={"csrf": csrf, "sku": "kettle"})
    basket = buyer.get("/basket").text
    fields = {name: _found(rf'name="{name}" value="([^"]+)"', basket) for name in ("csrf", "key", "amount")}
    checkout = buyer.post("/checkout", data=fields).headers["Location"]
    command = [sys.executable, "-m", "cuota", "sandbox", "complete", checkout, "--outcome", "approved"]
    subprocess.run(command, env={**os.environ, "CUOTA_DATA_DIR": str(data)}, check=True, timeout=60)


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, pattern
    return found[1]


def page_once(buyer: httpx.Client, text: str) -> str:
    """The order's page in the back office, as soon as it shows this."""
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        page = buyer.get("/orders/1001").text
        if text in page:
            return page
        time.sleep(0.1)
    raise AssertionError(f"{text} never came")


def test_the_shop_is_told_of_its_orders_also_on_a_folder_that_kept_no_webhook_secrets(data: Path) -> None:
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
