"""Starts the real service as an operator does, and measures its CPU time and its round trips to the database."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psutil


@dataclass(frozen=True)
class BenchService:
    """The service's data folder, its port, and the environment variables that name both. `more` are further settings."""

    data: Path
    port: int
    more: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this process without any CUOTA_ variables."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CUOTA_")}
        return {**inherited, **self.settings}

    @property
    def settings(self) -> dict[str, str]:
        return {
            "CUOTA_DATA_DIR": str(self.data),
            "CUOTA_PUBLIC_URL": self.url,
            "CUOTA_LOG_LEVEL": "warning",
            **dict(self.more),
        }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def cuota(place: BenchService, *arguments: str) -> str:
    """Run one command, and return its output."""
    command = [sys.executable, "-m", "cuota", *arguments]
    return subprocess.run(
        command, env=place.environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@contextlib.contextmanager
def serving(place: BenchService, workers: int, path: Path | None = None) -> Iterator[list[psutil.Process]]:
    """Run `cuota serve`. Yield its worker processes once it is ready. `path` is put in front of its PYTHONPATH."""
    environment = place.environment
    if path is not None:
        environment["PYTHONPATH"] = f"{path}{os.pathsep}{environment.get('PYTHONPATH', '')}"
    arguments = ["serve", "--port", str(place.port), "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-m", "cuota", *arguments], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        if '"ready": true' not in process.stdout.readline():
            raise RuntimeError("cuota serve did not become ready; the reason is printed above.")
        yield workers_of(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def workers_of(pid: int) -> list[psutil.Process]:
    """Return the worker processes of a `cuota serve`: those of its fork server. In earlier releases they are its own children."""
    found = []
    for child in psutil.Process(pid).children():
        if "cuota.run.process" in child.cmdline():
            found.append(child)
        if "cuota.run.fork_server" in child.cmdline():
            found.extend(child.children())
    return found


def merchant(place: BenchService, name: str = "Shop") -> dict[str, Any]:
    """Make a new merchant that captures by API calls, and return its credentials."""
    made = cuota(place, "merchant", "create", "--name", name, "--defer-funds-capture", "--json")
    return dict(json.loads(made))


def credentials(merchant: dict[str, Any]) -> dict[str, str]:
    """Return the body of a token request."""
    return {
        "client_id": merchant["clientId"],
        "client_secret": merchant["clientSecret"],
        "audience": merchant["audience"],
        "grant_type": "client_credentials",
    }


def token(place: BenchService, merchant: dict[str, Any]) -> str:
    """Return an access token. It stays valid when the service restarts."""
    answer = httpx.post(f"{place.url}/oauth/token", json=credentials(merchant), trust_env=False)
    return str(answer.raise_for_status().json()["access_token"])


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """Return the user and system time of these processes, and of their children that have ended."""
    times = [process.cpu_times() for process in processes]
    return float(sum(t.user + t.system + t.children_user + t.children_system for t in times))


def postgres_cpu_seconds(place: BenchService) -> float:
    """Return the CPU time of the whole embedded PostgreSQL: its sessions, and its background writers."""
    return server_cpu_seconds(place.data / "pg")


def server_cpu_seconds(folder: Path) -> float:
    """Return the CPU time of the whole PostgreSQL with this data folder."""
    postmaster = psutil.Process(int((folder / "postmaster.pid").read_text().splitlines()[0]))
    total = cpu_seconds([postmaster])
    for child in postmaster.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            total += cpu_seconds([child])
    return total


async def commits(where: dict[str, Any]) -> int:
    """Return the number of transactions committed so far. A statement outside a transaction counts as one: a round trip.

    PostgreSQL adds a session's count about a second late, when the session does something again.
    """
    connection = await asyncpg.connect(**where)
    try:
        sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        count: int = await connection.fetchval(sql)
        return count
    finally:
        await connection.close()


async def events_published(where: dict[str, Any]) -> None:
    """Wait until all events are published, at most a minute."""
    connection = await asyncpg.connect(**where)
    try:
        async with asyncio.timeout(60):
            while await connection.fetchval("SELECT EXISTS (SELECT FROM outbox)"):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)
    finally:
        await connection.close()
