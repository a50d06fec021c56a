"""Reads a policy's text and keeps the line of every value, so that an error can say where to look and what to write."""

from __future__ import annotations

import re
import tomllib
from typing import TypeGuard

from cuota.core import money

KeyPath = tuple[str | int, ...]

MOST_CHARACTERS = 65_536
MOST_IN_A_LINE = 1_000

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]#]+)\]")
_KEY = re.compile(r"\s*([\w\"'.\- ]+?)\s*=")
_MONEY = re.compile(r"(?:0|[1-9][0-9]{0,11})\.[0-9]{2}", re.ASCII)
_VERSION = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}", re.ASCII)
_SAID_LINE = re.compile(r"at line (\d+)")
_SAID_PLACE = re.compile(r" \(at (?:line \d+, column \d+|end of document)\)$")


class BadPolicy(ValueError):
    """The text is not a policy. The message begins with `line N:` and says what to write there."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


class PolicyTable:
    """One table of the text. Each method raises BadPolicy if the value is missing or of another type."""

    def __init__(self, text: Text, path: KeyPath, values: dict[str, object]) -> None:
        self._text = text
        self._path = path
        self._values = values

    def table(self, name: str) -> PolicyTable:
        """Return a table inside this one."""
        found = self._take(name, f"a table [{_written((*self._path, name))}]")
        if not _is_table(found):
            raise self.refuse(name, f"must be a table [{_written((*self._path, name))}]")
        return PolicyTable(self._text, (*self._path, name), found)

    def tables(self, name: str) -> list[PolicyTable]:
        """Return the tables of one kind, in the order of the text. There may be none."""
        found = self._values.get(name, [])
        if not isinstance(found, list) or not all(_is_table(each) for each in found):
            raise self.refuse(name, f"must be tables [[{_written((*self._path, name))}]]")
        return [PolicyTable(self._text, (*self._path, name, at), each) for at, each in enumerate(found)]

    def integer(self, name: str, low: int, high: int) -> int:
        """Return a whole number. Both bounds are allowed."""
        needed = f"a whole number from {low} to {high}"
        found = self._take(name, needed)
        if isinstance(found, bool) or not isinstance(found, int) or not low <= found <= high:
            raise self.refuse(name, f"must be {needed}")
        return found

    def optional_integer(self, name: str, low: int, high: int) -> int | None:
        """Return a whole number, or None if it is missing."""
        return self.integer(name, low, high) if name in self._values else None

    def cents(self, name: str) -> int:
        """Return a positive amount of money, written as text with two decimals, exactly."""
        needed = 'an amount as text with two decimals, such as "600.00"'
        found = self._take(name, needed)
        if not isinstance(found, str) or not _MONEY.fullmatch(found) or not money.cents_of(found):
            raise self.refuse(name, f"must be {needed}, of more than 0.00")
        return money.cents_of(found)

    def version(self, name: str) -> str:
        """Return the version. A version always means the same text."""
        needed = 'a name of small letters, digits, dots and dashes, such as "2026-11-standard"'
        found = self._take(name, needed)
        if not isinstance(found, str) or not _VERSION.fullmatch(found):
            raise self.refuse(name, f"must be {needed}")
        return found

    def only(self, *known: str) -> PolicyTable:
        """Return the table; raise BadPolicy if it has any other key, because a misspelled key would have no effect."""
        for name in self._values:
            if name not in known:
                raise self.refuse(name, f"is not known; this table may contain: {', '.join(known)}")
        return self

    def refuse(self, name: str, message: str) -> BadPolicy:
        """Return an error about one key, with its line."""
        path = (*self._path, name)
        return BadPolicy(self._text.line_of(path), f"{_written(path)} {message}")

    def _take(self, name: str, needed: str) -> object:
        if name not in self._values:
            raise self.refuse(name, f"is missing: it must be {needed}")
        return self._values[name]


class Text:
    """A TOML text and the lines of its keys. Raises BadPolicy if the text is not TOML."""

    def __init__(self, text: str) -> None:
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            if len(line) > MOST_IN_A_LINE:
                raise BadPolicy(number, f"a line must have at most {MOST_IN_A_LINE} characters")
        if len(text) > MOST_CHARACTERS:
            raise BadPolicy(len(lines), f"a policy must have at most {MOST_CHARACTERS} characters")
        try:
            self._values: dict[str, object] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            said = _SAID_LINE.search(str(problem))
            message = _SAID_PLACE.sub("", str(problem))
            raise BadPolicy(int(said[1]) if said else len(lines), f"must be TOML: {message}") from None
        except RecursionError:
            deepest = max(range(len(lines)), key=lambda at: lines[at].count("[") + lines[at].count("{"))
            raise BadPolicy(deepest + 1, "must be TOML without such deep nesting") from None
        self._lines = _places(lines)

    def root(self) -> PolicyTable:
        """Return the whole text as a table."""
        return PolicyTable(self, (), self._values)

    def line_of(self, path: KeyPath) -> int:
        """Return the line of a key. For a missing key, return the first line of its table."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)


def _places(lines: list[str]) -> dict[KeyPath, int]:
    places: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(lines, 1):
        if header := _HEADER.match(line):
            stands = table = _path(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                stands = table = (*table, counts[table])
        elif key := _KEY.match(line):
            stands = (*table, *_path(key[1]))
        else:
            continue
        for length in range(1, len(stands) + 1):
            places.setdefault(stands[:length], number)
    return places


def _path(written: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in written.split("."))


def _written(path: KeyPath) -> str:
    return ".".join(part for part in path if isinstance(part, str))


def _is_table(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)
