"""Starts `cuota demo` as a person does: the service and the shop, with their own ports and data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from support.folders import new_folder
from support.ports import free_port


@contextmanager
def demo(data: Path) -> Iterator[httpx.Client]:
    """A running demo, and a buyer at its shop."""
    port, shop_port = free_port(), free_port()
    command = [sys.executable, "-m", "cuota", "demo", "--port", str(port), "--shop-port", str(shop_port)]
    environment = {**os.environ, "CUOTA_DATA_DIR": str(data)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any("Ctrl-C stops the demo" in line for line in process.stdout)
        with httpx.Client(base_url=f"http://127.0.0.1:{shop_port}", trust_env=False, timeout=60) as buyer:
            try:
                yield buyer
            finally:
                process.terminate()
                process.wait(60)


@contextmanager
def data_folder() -> Iterator[Path]:
    """Make a folder that the unprivileged user of postgres may enter."""
    base = new_folder("cuota-demo-")
    try:
        yield base / "data"
    finally:
        shutil.rmtree(base, ignore_errors=True)
