"""An operator's own PostgreSQL, with exactly the SQL and the commands of docs/running.md."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx
import pytest

from cuota.db.embedded import cluster as embedded_cluster
from cuota.db.embedded.folders import prepare
from cuota.db.embedded.programs import binaries_for
from support.commands import Cuota
from support.folders import new_folder
from support.ports import free_port

RUNNING = Path(__file__).parents[2] / "docs" / "running.md"
SECONDS = 60


@dataclass
class Server:
    """A PostgreSQL that accepts connections over TCP with a password."""

    port: int
    cuota: Cuota

    def url(self, who: str, database: str = "cuota") -> str:
        return f"postgresql://{who}@127.0.0.1:{self.port}/{database}"

    def sql(self, *statements: str, database: str = "postgres") -> None:
        """Run statements as the server's superuser."""

        async def run() -> None:
            connection = await asyncpg.connect(self.url("postgres:super-password", database))
            for statement in statements:
                await connection.execute(statement)
            await connection.close()

        asyncio.run(run())


def _started(base: Path, port: int) -> subprocess.Popen[bytes]:
    places = prepare(base / "data")
    who = embedded_cluster._as(places.account)
    programs, folder = binaries_for(places.account), base / "server"
    folder.mkdir()
    (folder / "password").write_text("super-password")
    if os.geteuid() == 0:
        for path in (folder, folder / "password"):
            os.chown(path, places.account.uid, places.account.gid)
    initdb = [
        programs / "initdb",
        "-D",
        folder / "pg",
        "-U",
        "postgres",
        "--auth=scram-sha-256",
        f"--pwfile={folder}/password",
    ]
    subprocess.run([*map(str, initdb), "--locale=C.UTF-8"], check=True, capture_output=True, **who)
    command = [str(programs / "postgres"), "-D", str(folder / "pg"), "-p", str(port)]
    command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    base = new_folder("cuota-own-")
    port = free_port()
    postgres = _started(base, port)
    made = Server(port, Cuota(base / "service"))
    try:
        for _ in range(SECONDS * 10):
            try:
                made.sql("SELECT 1")
                break
            except (OSError, asyncpg.CannotConnectNowError):
                asyncio.run(asyncio.sleep(0.1))
        yield made
    finally:
        postgres.send_signal(signal.SIGINT)
        postgres.wait(SECONDS)
        shutil.rmtree(base, ignore_errors=True)


def test_the_sql_and_the_commands_of_the_docs_make_a_service_with_its_own_role(server: Server) -> None:
    blocks = re.findall(r"```sql\n(.*?)```", RUNNING.read_text(), re.DOTALL)
    server.sql(*(line.partition("--")[0].strip() for line in blocks[0].splitlines()))
    service = {"CUOTA_DATABASE_URL": server.url("cuota_service:service-password")}
    owner = server.url("cuota_owner:owner-password")
    early = server.cuota("merchant", "list", **service)
    assert (early.returncode, early.stdout) == (1, "")
    assert "has no tables of Cuota yet, and the role cuota_service cannot migrate it" in early.stderr
    assert "cuota migrate --database" in early.stderr
    done = server.cuota("migrate", "--database", owner, "--json")
    said = f"cuota: sandbox, database postgresql://127.0.0.1:{server.port}/cuota; no service has run on it yet.\n"
    assert (done.returncode, done.stderr) == (0, said)
    assert "0012_secrets" in json.loads(done.stdout)["applied"]
    assert server.cuota("migrate", "--database", owner).stdout == "The database is up to date.\n"
    _serves(server, service)
    assert server.cuota("verify", **service).returncode == 0
    refused = server.cuota("time", "fork", "a", **service)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "CUOTA_DATABASE_OWNER_URL" in refused.stderr
    assert server.cuota("time", "fork", "a", **service, CUOTA_DATABASE_OWNER_URL=owner).returncode == 0


def test_install_md_creates_the_roles_of_running_md_and_the_sample_settings_connect_as_these_roles() -> None:
    root = RUNNING.parents[1]
    block = re.findall(r"```sql\n(.*?)```", RUNNING.read_text(), re.DOTALL)[0]
    assert f"```sql\n{block}```" in (root / "docs" / "install.md").read_text()
    sample = (root / "deploy" / "cuota.env").read_text()
    assert re.search(r"^CUOTA_DATABASE_URL=postgresql://cuota_service:", sample, re.MULTILINE)
    assert re.search(r"^CUOTA_DATABASE_OWNER_URL=postgresql://cuota_owner:", sample, re.MULTILINE)


def test_backup_and_restore_need_the_owner_of_the_tables_and_say_so(server: Server, tmp_path: Path) -> None:
    server.sql("CREATE DATABASE saved OWNER cuota_owner", "CREATE DATABASE empty OWNER cuota_owner")
    saved, empty = (
        {
            "CUOTA_DATABASE_URL": server.url("cuota_service:service-password", name),
            "CUOTA_DATABASE_OWNER_URL": server.url("cuota_owner:owner-password", name),
        }
        for name in ("saved", "empty")
    )
    assert server.cuota("merchant", "create", "--name", "A", **saved).returncode == 0
    file, service = tmp_path / "saved.cuota", "CUOTA_DATABASE_URL"
    refused = server.cuota("backup", str(file), **{service: saved[service]})
    assert (refused.returncode, refused.stdout, file.exists()) == (1, "", False)
    assert "Only the owner of the tables can make a backup. Set CUOTA_DATABASE_OWNER_URL;" in refused.stderr
    done = server.cuota("backup", str(file), **saved)
    assert done.returncode == 0, done.stderr
    place = f"database postgresql://127.0.0.1:{server.port}"
    assert f"cuota: sandbox, {place}/saved; no service has run on it yet." in done.stderr
    refused = server.cuota("restore", str(file), **{service: empty[service]})
    assert (refused.returncode, refused.stdout) == (1, "")
    assert (
        "Only the owner of the database can restore a backup. Set CUOTA_DATABASE_OWNER_URL;" in refused.stderr
    )
    done = server.cuota("restore", str(file), **empty)
    assert done.returncode == 0, done.stderr
    assert f"cuota: restoring into sandbox, {place}/empty." in done.stderr
    assert "A" in server.cuota("merchant", "list", **{service: empty[service]}).stdout


def _serves(server: Server, settings: dict[str, str]) -> None:
    environment = server.cuota.environment(**settings)
    command = [sys.executable, "-m", "cuota", "serve", "--port", "0"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        ready = json.loads(process.stdout.readline())
        assert httpx.get(f"{ready['listen']}/health/ready", trust_env=False, timeout=60).status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=SECONDS)
    assert "warning" not in said


def test_a_service_that_connects_as_the_owner_prints_a_warning_and_what_to_do(server: Server) -> None:
    server.sql("CREATE DATABASE second OWNER cuota_owner")
    given = {"CUOTA_DATABASE_URL": server.url("cuota_owner:owner-password", "second")}
    command = [sys.executable, "-m", "cuota", "work"]
    process = subprocess.Popen(
        command,
        env=server.cuota.environment(**given),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert json.loads(process.stdout.readline())["working"]
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=SECONDS)
    assert "cuota: warning: The role cuota_owner in CUOTA_DATABASE_URL owns the tables." in said
    assert "docs/running.md" in said


def test_an_owner_s_url_without_the_service_s_url_is_refused(server: Server) -> None:
    done = server.cuota("merchant", "list", CUOTA_DATABASE_OWNER_URL=server.url("cuota_owner:owner-password"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "CUOTA_DATABASE_OWNER_URL: also set CUOTA_DATABASE_URL" in done.stderr
