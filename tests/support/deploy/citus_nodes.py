"""A Citus cluster whose nodes can be killed: the one that deploy/citus.sh starts, or one that commands start and kill."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

BACK_SECONDS = 90.0
_PORTS = "SELECT groupid, nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
_WORKER_OF = """SELECT p.groupid FROM pg_dist_placement p
    WHERE p.shardid = get_shard_id_for_distribution_column('orders', $1::uuid)"""


def has_citus() -> bool:
    """Return whether PGBIN is the folder of a PostgreSQL with Citus, which deploy/citus.sh needs."""
    program = Path(os.environ.get("PGBIN", "/nowhere")) / "pg_config"
    if not program.exists():
        return False
    shared = subprocess.run(
        [program, "--sharedir"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return (Path(shared) / "extension" / "citus.control").exists()


def _children(process: int) -> list[int]:
    """Return the child processes, as /proc lists them."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = each.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue  # ended meanwhile
        if int(parent) == process:
            found.append(int(each.parent.name))
    return found


@dataclass
class Nodes:
    """`folder` is the data folder of deploy/citus.sh. That script restarts a dead node itself. In the
    commands, `{node}` stands for a node's group id."""

    url: str
    folder: Path | None = None
    kill_command: str | None = None
    start_command: str | None = None
    _hanging: dict[int, list[int]] = field(default_factory=dict)

    async def ask(self, sql: str, *values: object) -> list[asyncpg.Record]:
        """Query the coordinator."""
        return await self._ask(self.url, sql, *values)

    async def _ask(self, url: str, sql: str, *values: object) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(url, timeout=20)
        try:
            return list(await connection.fetch(sql, *values))
        finally:
            connection.terminate()

    async def urls(self) -> dict[int, str]:
        """Return the address of each node, by its group id."""
        parts = urlsplit(self.url)
        who = parts.netloc.rpartition("@")[0]
        return {
            row["groupid"]: parts._replace(
                netloc=f"{who}@{row['nodename']}:{row['nodeport']}"
                if who
                else f"{row['nodename']}:{row['nodeport']}"
            ).geturl()
            for row in await self.ask(_PORTS)
        }

    async def worker_of(self, merchant_id: str) -> int:
        """Return the group id of the worker that has this merchant's rows."""
        [row] = await self.ask(_WORKER_OF, merchant_id)
        return int(row["groupid"])

    def kill(self, node: int) -> None:
        """End every process of this node at the same moment, as in a power failure."""
        if self.folder is not None:
            os.killpg(int((self.folder / f"node{node}" / "pid").read_text()), signal.SIGKILL)
        else:
            assert self.kill_command, "give the command that kills a node"
            subprocess.run(shlex.split(self.kill_command.format(node=node)), check=True)

    def hang(self, node: int) -> None:
        """Stop every process of this node, so that its host accepts connections and nothing answers. `back` ends this."""
        assert self.folder is not None, "only a node of deploy/citus.sh can hang"
        postmaster = int((self.folder / f"node{node}" / "pid").read_text())
        os.kill(postmaster, signal.SIGSTOP)
        self._hanging[node] = [postmaster, *_children(postmaster)]
        for process in self._hanging[node]:
            os.kill(process, signal.SIGSTOP)

    def _go_on(self, node: int) -> None:
        for process in reversed(self._hanging.pop(node, [])):
            os.kill(process, signal.SIGCONT)

    async def back(self, node: int) -> None:
        """Start the node again, or let it go on if it hangs, and wait until it answers."""
        self._go_on(node)
        if self.folder is None:
            assert self.start_command, "give the command that starts a node"
            await asyncio.to_thread(
                subprocess.run, shlex.split(self.start_command.format(node=node)), check=True
            )
        url, until = (await self.urls())[node], time.monotonic() + BACK_SECONDS
        while True:
            try:
                await self._ask(url, "SELECT 1")
            except (OSError, asyncpg.PostgresError) as problem:
                if time.monotonic() > until:
                    raise AssertionError(f"node {node} did not come back: {problem}") from None
                await asyncio.sleep(0.2)
            else:
                return

    async def prepared(self) -> dict[int, int]:
        """Wait until Citus has had time to end prepared transactions, and return how many each node still
        has."""
        await self.ask("SELECT recover_prepared_transactions()")
        urls = await self.urls()
        return {
            node: int((await self._ask(url, "SELECT count(*) AS n FROM pg_prepared_xacts"))[0]["n"])
            for node, url in urls.items()
        }
