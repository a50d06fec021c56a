"""The file format of a backup: a zip with the database's dump, possibly the secret key, and a manifest with their hashes."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from cuota.core.expected_failure import ExpectedFailure

FORMAT = "cuota-backup/1"
DUMP, KEY, MANIFEST = "database.dump", "secret.key", "manifest.json"
CHUNK = 1 << 20


class BadArchive(ExpectedFailure):
    """The file is not a backup, or it is damaged. The text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a backup.

    `counts` are the numbers of rows in each table at the moment of the backup. `roles` are the roles with rights in the database;
    a dump does not contain them, because roles belong to the server. `probe` is a text encrypted with the secret key, in
    hexadecimal; only the right key decrypts it. During a replacement of the key, `old_probe` is the same for the old key, which the
    stored secrets still need; otherwise it is empty, as in the files of earlier releases.
    """

    format: str
    cuota: str
    environment: str
    taken_at: str
    server_version: int
    migrations: list[str]
    roles: list[str]
    counts: dict[str, int]
    has_key: bool
    probe: str
    sha256: dict[str, str]
    old_probe: str = ""


@contextmanager
def written(target: Path) -> Iterator[Path]:
    """Yield a temporary path next to `target`. At the end, the file is renamed to `target`, unless an error occurred.

    Raises FileExistsError if `target` exists. An existing file is never overwritten.
    """
    aside = target.with_name(f".{target.name}.{os.getpid()}.partial")
    if target.exists():
        raise FileExistsError(target)
    _delete_left_behind(target)
    # The system ends this lock when the process ends, however it ends.
    lock = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield aside
        # Unlike a rename, a link never replaces a file that was created meanwhile.
        os.link(aside, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        aside.unlink(missing_ok=True)
        os.close(lock)


def _delete_left_behind(target: Path) -> None:
    """Delete the temporary files of killed backups in the folder of `target`. A backup that is still running holds a lock on its file."""
    ours = re.compile(rf"\.(.+\.cuota|{re.escape(target.name)})\.[0-9]+\.partial")
    for path in target.parent.glob(".*.partial"):
        if ours.fullmatch(path.name):
            with contextlib.suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def pack(
    file: Path, dump: IO[bytes], key: bytes | None, manifest: Callable[[dict[str, str]], Manifest],
    told: Callable[[int], None],
) -> None:  # fmt: skip
    """Write a complete file. `told` is called with the number of bytes of the dump written so far."""
    hashes = {}
    with file.open("r+b") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        digest, size = hashlib.sha256(), 0
        with archive.open(DUMP, "w", force_zip64=True) as entry:
            while chunk := dump.read(CHUNK):
                entry.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                told(size)
        hashes[DUMP] = digest.hexdigest()
        if key is not None:
            archive.writestr(KEY, key)
            hashes[KEY] = hashlib.sha256(key).hexdigest()
        archive.writestr(MANIFEST, json.dumps(asdict(manifest(hashes)), indent=2))
    with file.open("rb") as complete:
        os.fsync(complete.fileno())


@contextmanager
def opened(file: Path) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """Open a backup and yield it with its manifest. Raises BadArchive, including for an unknown format."""
    try:
        with zipfile.ZipFile(file) as archive:
            facts = json.loads(archive.read(MANIFEST))
            if facts.get("format") != FORMAT:
                raise BadArchive(
                    f"{file} has the format {facts.get('format')}, but this release reads only {FORMAT}."
                )
            yield archive, Manifest(**facts)
    except FileNotFoundError:
        raise BadArchive(f"There is no file {file}.") from None
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError) as problem:
        raise BadArchive(f"{file} is not a backup of Cuota, or it is incomplete: {problem}.") from None


def require_whole(archive: zipfile.ZipFile, manifest: Manifest, file: Path) -> None:
    """Read the whole file and compare its hashes with the manifest. Raises BadArchive."""
    for name, expected in manifest.sha256.items():
        digest = hashlib.sha256()
        with archive.open(name) as entry:
            while chunk := entry.read(CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != expected:
            raise BadArchive(f"{file} is damaged: {name} has changed since it was written.")
