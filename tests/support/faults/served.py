"""Real processes of the service on their own data folder, and clients that record their answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from support.command_server import command_server
from support.folders import new_folder
from support.ports import free_port

READY_SECONDS = 120.0


def until(true: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until a condition is true. Fails if that takes longer than `seconds`."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.02)


def number(file: Path) -> int:
    """Return the process id on a file's first line, or 0 if there is none."""
    try:
        return int(file.read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return 0


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def workers_of(pid: int) -> list[int]:
    """Return the worker processes of a `cuota serve`: the children of its fork server."""
    return [worker for fork_server in fork_servers_of(pid) for worker in children(fork_server)]


def fork_servers_of(pid: int) -> list[int]:
    """Return the fork server of a `cuota serve`, if it runs."""
    return [child for child in children(pid) if b"cuota.run.fork_server" in command_line(child)]


def command_line(pid: int) -> bytes:
    """Return the command line of a process, or nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@dataclass
class Service:
    """`cuota serve` on one data folder and port. A test may start it several times."""

    data: Path
    port: int
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CUOTA_")}
        return {
            **kept,
            "CUOTA_DATA_DIR": str(self.data),
            "CUOTA_PUBLIC_URL": self.url,
            "CUOTA_LOG_LEVEL": "error",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return command_server().run(arguments, self.environment, 120)

    def start(self, workers: int = 1) -> subprocess.Popen[str]:
        """Start `cuota serve`, and wait until it reports that it is ready."""
        command = [
            sys.executable,
            "-m",
            "cuota",
            "serve",
            "--port",
            str(self.port),
            "--workers",
            str(workers),
        ]
        with (self.data.parent / "errors.log").open("a") as errors:
            process = subprocess.Popen(
                command, env=self.environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.started.append(process)
        assert process.stdout
        line = process.stdout.readline()
        assert line, self.errors()
        assert json.loads(line)["ready"] is True
        return process

    def answers(self) -> bool:
        """True if the service is ready."""
        try:
            return httpx.get(f"{self.url}/health/ready", trust_env=False, timeout=60).status_code == 200
        except httpx.TransportError:
            return False

    def errors(self) -> str:
        return (self.data.parent / "errors.log").read_text()

    def workers(self) -> list[int]:
        return workers_of(self.started[-1].pid)

    @property
    def postmaster(self) -> int:
        return number(self.data / "pg" / "postmaster.pid")

    @property
    def supervisor(self) -> int:
        return number(self.data / "supervisor.lock")

    def merchant(self) -> dict[str, Any]:
        made = self.run(
            "merchant", "create", "--name", f"Shop {secrets.token_hex(4)}", "--defer-funds-capture", "--json"
        )
        assert made.returncode == 0, made.stderr
        return dict(json.loads(made.stdout))

    def stop(self) -> None:
        """Stop as an operator does: running requests end first, which takes seconds."""
        for process in self.started:
            if process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(12)
        self.kill()

    def kill(self) -> None:
        """Kill everything that still runs."""
        for process in self.started:
            if process.poll() is None:
                workers = workers_of(process.pid)
                process.kill()
                for worker in workers:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)
            process.wait()
            if process.stdout:
                process.stdout.close()


@contextlib.contextmanager
def service() -> Iterator[Service]:
    """Make a folder and a port. At the end of the block, none of their processes remains."""
    # Do not use pytest's own folder, because the unprivileged user of postgres may not enter it.
    base = new_folder("cuota-faults-")
    made = Service(base / "data", free_port())
    try:
        yield made
    finally:
        made.kill()
        until(lambda: not (made.data / "pg" / "postmaster.pid").exists())
        shutil.rmtree(base, ignore_errors=True)


@dataclass
class Client:
    """One storefront: creates orders, captures one cent at a time, and records each answer."""

    url: str
    merchant: dict[str, Any]
    order: str
    created: list[str] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    async def run(self, stop: asyncio.Event, headers: dict[str, str]) -> None:
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=60, headers=headers) as http:
            while not stop.is_set():
                answer = await self._post(http, "/order", ORDER)
                if answer is not None and answer.status_code == 200:
                    self.created.append(answer.json()["orderId"])
                await self._capture(http, secrets.token_hex(8))

    async def _capture(self, http: httpx.AsyncClient, reference: str) -> None:
        body = {"amount": "0.01", "merchantReference": reference}
        answer = await self._post(http, f"/order/{self.order}/capture", body)
        if answer is None or answer.status_code != 200:
            self.lost.append(reference)
        else:
            self.applied.append(reference)

    async def _post(self, http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> httpx.Response | None:
        try:
            answer = await http.post(path, json=body)
        except httpx.TransportError:
            await asyncio.sleep(0.05)
            return None
        if answer.status_code not in {200, 503}:
            self.strange.append(f"{answer.status_code} {answer.text}")
        return answer


ORDER: dict[str, Any] = {
    "amount": "100.00",
    "merchantReference": "A-1",
    "merchant": {
        "redirectConfirmUrl": "http://127.0.0.1:9/yes",
        "redirectCancelUrl": "http://127.0.0.1:9/no",
    },
}


def token(url: str, merchant: dict[str, Any]) -> dict[str, str]:
    """Return headers with a new access token."""
    body = {
        "client_id": merchant["clientId"],
        "client_secret": merchant["clientSecret"],
        "audience": merchant["audience"],
        "grant_type": "client_credentials",
    }
    answer = httpx.post(f"{url}/oauth/token", json=body, trust_env=False, timeout=60)
    return {"Authorization": f"Bearer {answer.json()['access_token']}"}
