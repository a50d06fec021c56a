"""Searches texts, bytes and a dump of the database for a secret, in every form in which it might be stored."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cuota.db.embedded.programs import binaries
from cuota.db.embedded.server import open_embedded

_COPY = re.compile(r"^COPY ([^ ]+) \((.*)\) FROM stdin;$")


@dataclass(frozen=True)
class Canary:
    """A secret, and its name for the error message."""

    name: str
    text: str
    digits: bool = False

    def forms(self) -> list[str]:
        """Return the secret unchanged, without spaces and dashes, in groups of four digits, in hexadecimal, in base64,
        and as digests."""
        plain = re.sub(r"\D", "", self.text) if self.digits else self.text
        raw = plain.encode()
        grouped = (
            [" ".join(plain[at : at + 4] for at in range(0, len(plain), 4))]
            if len(plain) > 12 and self.digits
            else []
        )
        digests = [hashlib.new(kind, raw) for kind in ("sha256", "sha1", "md5")]
        hidden = [
            raw.hex(),
            *(base64.b64encode(raw[:length]).decode().rstrip("=")[:-1] for length in (len(raw),)),
        ]
        return [self.text, plain, *grouped, *hidden, *(each.hexdigest() for each in digests)]

    def found(self, text: str) -> list[str]:
        """Return the forms that occur in a text. Digits inside a longer number do not count, because any random id may
        contain them."""
        hits = []
        for form in dict.fromkeys(self.forms()):
            if form not in text:
                continue
            alone = rf"(?<![0-9A-Za-z]){re.escape(form)}(?![0-9A-Za-z])"
            if not form.isdigit() or re.search(alone, text):
                hits.append(form)
        return hits


def seen(canaries: Iterable[Canary], texts: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return which secret was found in which text."""
    return {(each.name, place) for each in canaries for place, text in texts.items() if each.found(text)}


def dumped(data: Path) -> str:
    """Return the `pg_dump` of a whole embedded database."""
    with open_embedded(data) as embedded:
        where = embedded.dsn_kwargs
        command = [
            str(binaries() / "pg_dump"), "--host", str(where["host"]), "--port", str(where["port"]),
            "--username", str(where["user"]), "--no-password", str(where["database"]),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def columns(dump: str) -> dict[str, str]:
    """Return the dump by column, `schema.table.column`, with bytes decoded. The key "" has everything that is not a row."""
    parts: dict[str, list[str]] = {"": []}
    names: list[str] = []
    for line in dump.splitlines():
        begins = _COPY.match(line)
        if begins:
            names = [f"{begins[1]}.{name.strip()}" for name in begins[2].split(",")]
            for name in names:
                parts.setdefault(name, [])
        elif line == "\\.":
            names = []
        elif names:
            for name, value in zip(names, line.split("\t"), strict=True):
                parts[name].append(_readable(value))
        else:
            parts[""].append(line)
    return {name: "\n".join(values) for name, values in parts.items()}


def _readable(value: str) -> str:
    """Return a value of pg_dump. For a bytea, the bytes are added to their hexadecimal digits."""
    if value.startswith("\\\\x"):
        return f"{value} {bytes.fromhex(value[3:]).decode('latin-1')}"
    return value
