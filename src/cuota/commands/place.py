"""Prints on standard error which data and which service a command acts on, so that a wrong environment is noticed."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import sys
from pathlib import Path

from cuota.config import DataLocation, Settings, default_data_dir
from cuota.core.expected_failure import ExpectedFailure
from cuota.db import workers
from cuota.db.merchant import last_served
from cuota.db.session import Session

# A service that has just started registers its worker processes in the database within this many seconds.
LOOK_SECONDS = 3.0
PAUSE_SECONDS = 0.1


class NoService(ExpectedFailure):
    """The command needs a running service, but none is running on this data. The text says what to do."""


def data_of(settings: Settings | DataLocation) -> str:
    """Return the place of the data, without user and password.

    For example `data in /var/lib/cuota/sandbox` or `database postgresql://db:5432/cuota`.
    """
    if settings.database_url is None:
        return f"data in {settings.data_dir}"
    scheme, _, rest = settings.database_url.partition("://")
    place = re.split(r"[?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    return f"database {scheme}://{place}"


async def announce(settings: Settings, session: Session) -> None:
    """Print one line on standard error: environment, data, the service's address, and whether it is running."""
    served = await last_served.read(session)
    alive = await workers.count_alive(session)
    if served is None:
        service = "no service has run on it yet"
    elif alive:
        service = f"service {served.audience} is running"
    else:
        service = f"service {served.audience} is not running"
    print(f"cuota: {settings.environment}, {data_of(settings)}; {service}.", file=sys.stderr, flush=True)


async def require_service(settings: Settings, session: Session, why: str) -> None:
    """Raise NoService if no worker process registers within LOOK_SECONDS. `why` says why the command needs the service."""
    loop = asyncio.get_running_loop()
    until = loop.time() + LOOK_SECONDS
    while not await workers.count_alive(session):
        if loop.time() > until:
            raise NoService(
                f"No service is running on the {data_of(settings)}, but {why}. Start a service with these settings"
                " (cuota serve, or make run), or set CUOTA_DATA_DIR or CUOTA_DATABASE_URL to those of the running service."
            )
        await asyncio.sleep(PAUSE_SECONDS)


def called() -> str:
    """Return the command for the same shell and folder: `cuota`, or the path by which the user called it."""
    typed = Path(sys.argv[0])
    if typed.name != "cuota":
        return f"{sys.executable} -m cuota"
    found = shutil.which("cuota")
    return "cuota" if found and Path(found).resolve() == typed.resolve() else str(typed)


def in_another_terminal(settings: Settings) -> str:
    """Return the command for any folder: an absolute path, and CUOTA_DATA_DIR if the data folder is not the default."""
    command = called()
    if "/" in command and not command.startswith(sys.executable):
        command = shlex.quote(str(Path(command).absolute()))
    if settings.data_dir == default_data_dir(settings.environment):
        return command
    return f"CUOTA_DATA_DIR={shlex.quote(str(settings.data_dir.absolute()))} {command}"
