"""`cuota demo`: the service with its shop, as `make run` starts them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import httpx
import pytest

from support.commands import Cuota
from support.ports import free_port
from support.production import PRODUCTION


@contextmanager
def demo(
    cuota: Cuota, *options: str, errors: TextIO | None = None
) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """Run a demo. Yield its process, the shop's address, and everything it printed until it was ready."""
    port, shop_port = free_port(), free_port()
    host = "[::1]" if any(":" in option for option in options) else "127.0.0.1"
    command = [sys.executable, "-m", "cuota", "demo", "--port", str(port), "--shop-port", str(shop_port)]
    command += options
    # In a terminal, the demo and its shop are one process group, and Ctrl-C reaches both.
    with subprocess.Popen(
        command,
        env=cuota.environment(),
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line)
            if "Ctrl-C stops the demo" in line:
                break
        try:
            yield process, f"http://{host}:{shop_port}", printed
        finally:
            process.terminate()
            process.wait(60)


@pytest.mark.parametrize(
    "settings", [PRODUCTION, {"CUOTA_ENVIRONMENT": "production"}], ids=["complete", "incomplete"]
)
def test_a_demo_with_the_settings_of_production_starts_nothing_not_even_a_database(
    bare: Cuota, settings: dict[str, str]
) -> None:
    done = bare("demo", "--port", str(free_port()), "--shop-port", str(free_port()), **settings)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "cuota: The demo runs only in the sandbox. Unset CUOTA_ENVIRONMENT.\n"
    assert not bare.data.exists()


def gone(address: str) -> bool:
    """True if nothing answers at the address any more, within a few seconds."""
    for _ in range(100):
        try:
            httpx.get(address, timeout=1, trust_env=False)
        except httpx.TransportError:
            return True
        time.sleep(0.1)
    return False


def test_the_demo_prints_addresses_credentials_and_a_first_thing_to_try(cuota: Cuota) -> None:
    with demo(cuota) as (process, shop, printed):
        text = "".join(printed)
        first = printed[0].split()
        assert first[:3] == ["The", "shop", shop]
        assert f"CUOTA_DATA_DIR={cuota.data} " in text
        assert not any(line.startswith("{") for line in printed)
        for wanted in (shop, "client_id", "client_secret", "123456", "4242 4242 4242 4242", "curl"):
            assert wanted in text
        assert httpx.get(shop, trust_env=False, timeout=60).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert gone(shop)


def test_pressing_ctrl_c_until_the_demo_has_ended_prints_no_error(cuota: Cuota, tmp_path: Path) -> None:
    with (tmp_path / "errors").open("w+") as errors, demo(cuota, errors=errors) as (process, shop, _):
        assert httpx.get(shop, trust_env=False, timeout=60).status_code == 200
        until = time.monotonic() + 60
        # Each step of the end meets a signal: the server of the shop, its event loop, and the interpreter.
        while process.poll() is None and time.monotonic() < until:
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.0005)
        assert process.wait(60) == 0
        assert gone(shop)
        errors.seek(0)
        assert errors.read() == ""


def test_a_demo_that_listens_everywhere_prints_addresses_that_a_browser_can_open(cuota: Cuota) -> None:
    with demo(cuota, "--host", "0.0.0.0") as (_, shop, printed):
        text = "".join(printed)
        assert "0.0.0.0" not in text
        assert printed[0].split()[:3] == ["The", "shop", shop]
        front = httpx.get(shop, trust_env=False, timeout=60)
        assert front.status_code == 200


@pytest.mark.parametrize("host", ["::1", "::"])
def test_a_demo_on_ipv6_prints_addresses_with_brackets_and_answers_there(cuota: Cuota, host: str) -> None:
    with demo(cuota, "--host", host) as (_, shop, printed):
        text = "".join(printed)
        assert printed[0].split()[:3] == ["The", "shop", shop]
        service = next(line.split()[2] for line in printed if line.split()[:2] == ["The", "API"])
        assert service.startswith("http://[::1]:")
        assert not re.search(r"//:|127\.0\.0\.1", text)
        for address in (shop, f"{shop}/health", f"{service}/health/ready"):
            assert httpx.get(address, trust_env=False, timeout=60).status_code == 200


def test_the_shop_ends_with_a_demo_that_is_killed(cuota: Cuota) -> None:
    with demo(cuota) as (process, shop, _):
        process.kill()
        process.wait(60)
        assert gone(shop)


def test_a_taken_port_of_the_shop_is_reported_before_anything_starts(bare: Cuota) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = bare("demo", "--port", str(free_port()), "--shop-port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Choose another --shop-port" in done.stderr
    assert not bare.data.exists()
