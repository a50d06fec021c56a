"""Several machines on one: each script of deploy/ is a process that stops, with all its children, when the test ends."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
ORDER: dict[str, Any] = {
    "amount": "100.00",
    "merchantReference": "A-1",
    "merchant": {
        "redirectConfirmUrl": "http://127.0.0.1:9/yes",
        "redirectCancelUrl": "http://127.0.0.1:9/no",
    },
}


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment, with these settings of Cuota and no others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUOTA_")}
    return {**kept, "PYTHON": sys.executable, "CUOTA_LOG_LEVEL": "error", **more}


def free_ports(count: int) -> int:
    """Return the first of this many free ports in a row."""
    for first in range(18200, 18500, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no ports are free")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Make a folder outside pytest's own folders, which the unprivileged user of postgres may not enter."""
    path = Path(tempfile.mkdtemp(prefix="cuota-deploy-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def script(name: str, *arguments: str, **more: str) -> Iterator[dict[str, Any]]:
    """Run a script of deploy/ until it reports that it is ready, and yield its output.

    None of its processes runs after the block.
    """
    process = subprocess.Popen(
        [str(DEPLOY / name), *arguments], env=environment(**more), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    with process.stdout:
        try:
            line = process.stdout.readline()
            assert line, f"{name} did not become ready"
            yield json.loads(line)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, f"{name} did not end well"


def command(*arguments: str, **more: str) -> str:
    """Run one command to its end, and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "cuota", *arguments], env=environment(**more), capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def merchant(**more: str) -> dict[str, Any]:
    """Make a new merchant that captures by API calls."""
    made = command(
        "merchant", "create", "--name", f"Shop {time.time_ns()}", "--defer-funds-capture", "--json", **more
    )
    return dict(json.loads(made))


def bearer(url: str, made: dict[str, Any]) -> dict[str, str]:
    """Return headers with a new access token of this machine."""
    body = {
        "client_id": made["clientId"],
        "client_secret": made["clientSecret"],
        "audience": made["audience"],
        "grant_type": "client_credentials",
    }
    answer = httpx.post(f"{url}/oauth/token", json=body, trust_env=False, timeout=60)
    return {"Authorization": f"Bearer {answer.raise_for_status().json()['access_token']}"}
