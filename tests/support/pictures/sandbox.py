"""A separate sandbox for the screenshots: `cuota demo` on free ports, with a temporary folder."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx

from cuota.db.embedded.server import open_embedded
from support.ports import free_port

ITEMS = [
    {"name": "Stoneware Cup", "quantity": 2, "price": "22.00"},
    {"name": "Morning Blend", "quantity": 1, "price": "17.25"},
]


@dataclass
class Sandbox:
    """A running `cuota demo`."""

    url: str
    shop: str
    data: Path
    token: str

    async def order(self, amount: str = "66.20", **more: object) -> dict[str, str]:
        body = {
            "amount": amount, "merchantReference": "A-1042", "items": ITEMS, "shippingAmount": "4.95",
            "merchant": {"redirectConfirmUrl": f"{self.shop}/", "redirectCancelUrl": f"{self.shop}/"}, **more,
        }  # fmt: skip
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=60) as http:
            answer = await http.post("/order", json=body, headers={"Authorization": f"Bearer {self.token}"})
            return dict(answer.raise_for_status().json())

    async def sql(self, text: str, *values: str) -> None:
        """Run SQL to write a state into the database that lasts too briefly, or takes too long to reach, for the pages."""
        with open_embedded(self.data) as embedded:
            connection = await asyncpg.connect(**embedded.dsn_kwargs)
            await connection.execute(text, *values)
            await connection.close()


@contextlib.contextmanager
def sandbox() -> Iterator[Sandbox]:
    """Start a sandbox, and stop it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="cuota-screenshots-"))
    folder.chmod(0o711)  # the embedded PostgreSQL's user must reach into it
    port, shop_port = free_port(), free_port()
    data = folder / "data"
    environment = {**os.environ, "CUOTA_DATA_DIR": str(data)}
    command = [sys.executable, "-m", "cuota", "demo", "--port", str(port), "--shop-port", str(shop_port)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    url, shop = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{shop_port}"
    try:
        yield Sandbox(url, shop, data, _token(url, shop, data))
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _token(url: str, shop: str, data: Path) -> str:
    """Return the demo merchant's credentials, once the shop answers."""
    with httpx.Client(trust_env=False, timeout=60) as http:
        for _ in range(600):
            with contextlib.suppress(httpx.HTTPError):
                if http.get(f"{shop}/health").is_success:
                    break
            time.sleep(0.1)
        kept = json.loads((data / "demo-merchant.json").read_text())
        body = {"client_id": kept["clientId"], "client_secret": kept["clientSecret"], "audience": url}
        answer = http.post(f"{url}/oauth/token", json={**body, "grant_type": "client_credentials"})
        return str(answer.raise_for_status().json()["access_token"])
