"""Restores all nodes of a Citus cluster to one moment: `python tests/deploy/restore_cluster.py`.

The cluster is that of deploy/citus.sh (PGBIN). While storefronts create orders and capture on every worker, the program
backs up each node and creates one named restore point. Then it replaces every node by its backup, lets it recover to
the restore point, and checks that everything acknowledged before is there and that nothing later is.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.deploy.citus_nodes import Nodes
from support.deploy.fronts_on_workers import fronts
from support.deploy.machines import command, folder, free_ports, script
from support.deploy.timed_storefront import TimedStorefront

MOMENT = "moment"
SECONDS = 3.0  # how long the storefronts write before the backups, and after the restore point
ARCHIVED_SECONDS = 60.0
# Without hot_standby, a node accepts no session before it has recovered.
RECOVER = """
hot_standby = off
restore_command = 'cp {wal}/%f %p'
recovery_target_name = '{moment}'
recovery_target_action = 'promote'
"""
_CAPTURES = "SELECT reference FROM movements WHERE order_id = $1"
_CREATED = "SELECT reference FROM order_details WHERE reference = ANY ($1)"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What one storefront knew at a moment: the references of its captures and of its orders."""

    captured: frozenset[str]
    created: frozenset[str]

    @classmethod
    def of(cls, front: TimedStorefront) -> Acknowledged:
        return cls(frozenset(front.captured), frozenset(front.created))


@dataclass
class Restored:
    """The storefronts, and what each knew before and after the restore point was created."""

    fronts: list[TimedStorefront]
    before: list[Acknowledged]
    after: list[Acknowledged]


def _owned(path: Path, like: Path) -> None:
    """Give a file or folder to the user who runs PostgreSQL."""
    owner = like.stat()
    for each in (path, *path.rglob("*")):
        os.chown(each, owner.st_uid, owner.st_gid)


async def _archive(nodes: Nodes, db: Path) -> None:
    """Switch on each node's archive, which needs a restart."""
    for node, url in (await nodes.urls()).items():
        wal = db / f"node{node}" / "wal"
        wal.mkdir()
        _owned(wal, db / f"node{node}" / "pg")
        connection = await asyncpg.connect(url)
        await connection.execute("ALTER SYSTEM SET archive_mode = on")
        await connection.execute(f"ALTER SYSTEM SET archive_command = 'cp %p {wal}/%f'")
        await connection.close()
    for node in await nodes.urls():
        nodes.kill(node)
    for node in (0, *await _answering(nodes)):
        await nodes.back(node)


async def _answering(nodes: Nodes) -> list[int]:
    """Wait for the coordinator, and return the group ids of the workers."""
    until = time.monotonic() + ARCHIVED_SECONDS
    while True:
        try:
            return sorted(node for node in await nodes.urls() if node)
        except (OSError, asyncpg.PostgresError):
            assert time.monotonic() < until, "the coordinator did not come back"
            await asyncio.sleep(0.3)


def _base_backup(url: str, into: Path) -> None:
    parts = urlsplit(url)
    program = Path(os.environ["PGBIN"]) / "pg_basebackup"
    who = ["-h", str(parts.hostname), "-p", str(parts.port), "-U", str(parts.username)]
    # While Citus works, it has files such as 156_1.data, which the check of checksums takes for a table's and refuses.
    how = ["-X", "none", "-c", "fast", "--no-verify-checksums"]
    done = subprocess.run([program, *who, "-D", into, *how], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def _write_and_back_up(nodes: Nodes, db: Path, writing: list[TimedStorefront]) -> Restored:
    """Back up every node and create the restore point while the storefronts write."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(front.run(stop)) for front in writing]
    await asyncio.sleep(SECONDS)
    urls = await nodes.urls()
    for node, url in urls.items():
        await asyncio.to_thread(_base_backup, url, db / f"node{node}" / "backup")
    await asyncio.sleep(SECONDS)
    before = [Acknowledged.of(front) for front in writing]
    await nodes.ask("SELECT citus_create_restore_point($1)", MOMENT)
    after = [Acknowledged.of(front) for front in writing]
    await asyncio.sleep(SECONDS)
    stop.set()
    await asyncio.gather(*tasks)
    for node, url in urls.items():
        await _archived(url, db / f"node{node}" / "wal")
    return Restored(writing, before, after)


async def _archived(url: str, wal: Path) -> None:
    """Complete the node's current file of the log, and wait until it is in the archive."""
    connection = await asyncpg.connect(url)
    name = await connection.fetchval("SELECT pg_walfile_name(pg_switch_wal())")
    await connection.close()
    until = time.monotonic() + ARCHIVED_SECONDS
    while not (wal / name).exists():
        assert time.monotonic() < until, f"{name} is not in the archive"
        await asyncio.sleep(0.2)


def _replace(place: Path) -> None:
    """Replace a stopped node's data by its backup, which recovers to the moment at its next start."""
    shutil.rmtree(place / "pg")
    backup = place / "backup"
    with (backup / "postgresql.conf").open("a") as file:
        file.write(RECOVER.format(wal=place / "wal", moment=MOMENT))
    (backup / "recovery.signal").touch()
    _owned(backup, place / "wal")
    backup.chmod(0o700)
    backup.rename(place / "pg")


async def problems(nodes: Nodes, restored: Restored) -> list[str]:
    """Return what is missing, what is there although it is later, and prepared transactions that are left."""
    await nodes.ask("SELECT recover_prepared_transactions()")
    found: list[str] = []
    for front, before, after in zip(restored.fronts, restored.before, restored.after, strict=True):
        captured = {row["reference"] for row in await nodes.ask(_CAPTURES, UUID(front.order))}
        created = {row["reference"] for row in await nodes.ask(_CREATED, list(front.created))}
        for kind, there, known, later in (
            ("capture", captured, before.captured, after.captured),
            ("order", created, before.created, after.created),
        ):
            found += [
                f"{kind} {each} was acknowledged before the moment but is missing" for each in known - there
            ]
            # One request of each storefront may have been in progress at the moment.
            if len(there - later) > 1:
                found.append(f"{len(there - later)} of a storefront's {kind}s are later than the moment")
        if len(front.captured) <= len(captured) or len(front.created) <= len(created):
            found.append("a storefront wrote nothing after the moment, so the test shows nothing")
    left = {node: count for node, count in (await nodes.prepared()).items() if count}
    return [*found, *(f"node {node} has {count} prepared transactions" for node, count in left.items())]


def restore() -> tuple[Restored, list[str]]:
    """Run everything. Return what the storefronts knew, and the problems."""
    with folder() as path:
        port = free_ports(10)
        db, data = path / "db", str(path / "command")
        db.mkdir()
        started = {"PORT": str(port + 4), "REST": "1"}
        with script("citus.sh", str(db), **started) as cluster:
            nodes = Nodes(cluster["url"], db)
            asyncio.run(_archive(nodes, db))
            command("migrate", "--citus", "--database", nodes.url, CUOTA_DATA_DIR=data)
            shared = {"CUOTA_DATABASE_URL": nodes.url, "PORT": str(port)}
            with script("several-web.sh", str(path / "web"), "1", "0", **shared) as web:
                url = web["urls"][0]
                machine = {
                    "CUOTA_DATABASE_URL": nodes.url,
                    "CUOTA_SECRET_KEY": (path / "web" / "secret.key").read_text().strip(),
                    "CUOTA_PUBLIC_URL": url,
                    "CUOTA_DATA_DIR": data,
                }
                writing = asyncio.run(fronts(nodes, url, machine))
                restored = asyncio.run(_write_and_back_up(nodes, db, writing))
        for place in sorted(db.glob("node?")):
            _replace(place)
        with script("citus.sh", str(db), **started) as cluster:
            found = asyncio.run(problems(Nodes(cluster["url"], db), restored))
            said = command("verify", **machine)
    strange = [f"strange answer: {text}" for front in restored.fronts for text in front.strange]
    return restored, [*strange, *found, *([] if "; 0 disagree" in said else [said])]


def main() -> int:
    restored, found = restore()
    before = sum(len(each.captured) + len(each.created) for each in restored.before)
    total = sum(len(front.captured) + len(front.created) for front in restored.fronts)
    print(f"{before} captures and orders were acknowledged before the moment, {total - before} later")
    print(
        "\n".join(found)
        or "Everything before the moment is there, nothing later is, and cuota verify agrees."
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
