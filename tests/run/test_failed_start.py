"""A start of `cuota serve` that fails, and a Ctrl-C while the failed start ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import psutil

from support.faults.served import fork_servers_of, until
from support.own_service import Own
from support.ports import free_port


def waits_for_its_fork_server(process: psutil.Process) -> bool:
    """True if a failed `cuota serve` has closed the socket to its fork server, and waits for the end of the fork server."""
    return not process.net_connections("unix")


async def test_ctrl_c_while_a_failed_start_ends_adds_nothing_to_the_reason(own: Own, tmp_path: Path) -> None:
    url = f"postgresql://{own.where['user']}@/no_such_database?host={quote(str(own.where['host']), safe='')}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CUOTA_")}
    command = [sys.executable, "-m", "cuota", "serve", "--port", str(free_port())]
    with (tmp_path / "errors").open("w+") as errors:
        process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs
            command,
            env={**kept, "CUOTA_DATABASE_URL": url, "CUOTA_DATA_DIR": str(tmp_path / "data")},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        until(lambda: fork_servers_of(process.pid))
        until(lambda: waits_for_its_fork_server(psutil.Process(process.pid)))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 1
        errors.seek(0)
        assert re.fullmatch(
            r'cuota: CUOTA_DATABASE_URL: database "no_such_database" does not exist\.\n', errors.read()
        )
