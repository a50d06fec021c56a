"""Prints JSON as other programs do: as `JSON.stringify(JSON.parse(text))`, and in the usual layouts of other languages.

This is only for telling a developer which text was signed. It handles no money, so numbers may be doubles here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from cuota.core.wire.strict_json import DEEPEST, BadJson

# A larger text is not printed in all layouts, and a much larger text not at all. Anybody can cause a refusal in the
# sandbox, so a refusal must be cheap. A cart of twenty items has 150 values and 3 KiB.
MOST_VALUES = 150
MOST_BYTES = 3 * 1024
MOST_VALUES_ONCE = 1_000
LARGEST = 8 * 1024


class Number(str):
    """A number with its original text."""

    __slots__ = ()


class Layout(NamedTuple):
    """The separators of a JSON printer. `indent` is the indentation of one level."""

    words: str
    item: str
    colon: str
    indent: str = ""


COMPACT = Layout("without any spaces, as JSON.stringify prints it", ",", ":")
LAYOUTS = (
    COMPACT,
    Layout("with spaces after colons and commas, as Python's json.dumps prints it", ", ", ": "),
    Layout("pretty printed with 2 spaces", ",", ": ", "  "),
    Layout("pretty printed with 4 spaces", ",", ": ", "    "),
)


def _constant(name: str) -> None:
    raise BadJson(f"{name} is not JSON")


# The reader of strict_json is not used, because this reader must accept what JSON.parse accepts (repeated keys, half a surrogate pair).
_decoder = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=_constant, strict=True)
_quoted: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode
_HALVES = re.compile("[\ud800-\udfff]")
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")


def read(body: bytes) -> Any:
    """Read a body as JSON.parse does, but keep the text of numbers. Raises BadJson."""
    try:
        return _decoder.decode(body.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise BadJson("not JSON") from problem


def canonical(body: bytes) -> str | None:
    """Return the result of `JSON.stringify(JSON.parse(body))`. None if the body is not JSON, too large, or nested too deeply."""
    if len(body) > LARGEST or _values(body) > MOST_VALUES_ONCE:
        return None
    try:
        return _printed(read(body), COMPACT, _by_index, js_number)
    except BadJson:
        return None


def usual_texts(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the same value in the layouts of common printers, each with a description. Numbers keep their text."""
    if not _small(body):
        return
    try:
        tree = read(body)
        for layout in LAYOUTS:
            plain = _printed(tree, layout, _as_is, str)
            ordered = _printed(tree, layout, sorted, str)
            yield from _escapings(plain, layout.words)
            if ordered != plain:
                yield from _escapings(ordered, f"{layout.words} and with its keys sorted")
    except BadJson:
        return


def js_number(text: str) -> str:
    """Convert a number to the text that JavaScript would print."""
    if text.isdigit() and len(text) <= 15:
        return text
    # JavaScript's numbers are doubles, so the text is read as a double. repr gives the same digits in another notation.
    double = float(text)
    if double == 0:
        return "0"
    if abs(double) == float("inf"):
        return "null"
    sign, numerals, power = Decimal(repr(double)).as_tuple()
    digits = "".join(map(str, numerals))
    point = len(digits) + int(power)  # the position of the decimal point, counted from the first digit
    digits = digits.rstrip("0")
    return ("-" if sign else "") + _dressed(digits.rstrip("0"), point)


def _dressed(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


def _small(body: bytes) -> bool:
    return len(body) <= MOST_BYTES and _values(body) < MOST_VALUES


def _values(body: bytes) -> int:
    """Return an upper limit for the number of values in a text."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _escapings(text: str, words: str) -> Iterator[tuple[str, str]]:
    # Slashes, angle brackets and wide characters occur only in strings, so they can be replaced in the whole text at once.
    yield text, words
    narrow = text.translate({ord(char): json.dumps(char)[1:-1] for char in set(text) if char > "\x7f"})
    if narrow != text:
        yield narrow, f"{words}, with \\u escapes for characters beyond ASCII"
    if "/" in text:
        yield (
            narrow.replace("/", "\\/"),
            f"{words}, but with \\/ and \\u escapes as PHP's json_encode prints them",
        )
        yield text.replace("/", "\\/"), f"{words}, but with \\/ for / as PHP's json_encode prints it"
    angles = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    if angles != text:
        yield angles, f"{words}, but with \\u escapes for <, > and & as Go's json.Marshal prints them"


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


_Order = Callable[[dict[str, Any]], list[str]]


def _as_is(value: dict[str, Any]) -> list[str]:
    return list(value)


def _by_index(value: dict[str, Any]) -> list[str]:
    """Return the keys in JavaScript's order: array indexes first, in numeric order, then the other keys in their order."""
    indexes = [key for key in value if _INDEX.fullmatch(key) and int(key) < 2**32 - 1]
    if not indexes:
        return list(value)
    first = set(indexes)
    return sorted(indexes, key=int) + [key for key in value if key not in first]


def _printed(tree: Any, layout: Layout, order: _Order, number: Callable[[str], str]) -> str:
    printer = _Printer(layout, order, number)
    printer.value(tree, 1)
    return "".join(printer.out)


class _Printer:
    """Prints a tree of values into `out`. `depth` is the depth of the next opening bracket."""

    def __init__(self, layout: Layout, order: _Order, number: Callable[[str], str]) -> None:
        self.out: list[str] = []
        self._layout = layout
        self._order = order
        self._number = number

    def value(self, value: Any, depth: int) -> None:
        if isinstance(value, Number):
            self.out.append(self._number(value))
        elif isinstance(value, str):
            self.out.append(_text(value))
        elif isinstance(value, dict | list):
            self._members(value, depth)
        else:
            self.out.append("null" if value is None else "true" if value else "false")

    def _members(self, value: dict[str, Any] | list[Any], depth: int) -> None:
        if depth > DEEPEST:
            raise BadJson(f"nested deeper than {DEEPEST}")
        out, (_, item, colon, indent) = self.out, self._layout
        opened, closed = "{}" if isinstance(value, dict) else "[]"
        step = "\n" + indent * depth if indent else ""
        out.append(opened)
        between = step
        for member in self._order(value) if isinstance(value, dict) else value:
            out.append(between)
            between = item + step
            if isinstance(value, dict):
                out.append(_text(member) + colon)
            self.value(value[member] if isinstance(value, dict) else member, depth + 1)
        out.append(step[: len(step) - len(indent)] + closed if value else closed)


def _text(value: str) -> str:
    return _HALVES.sub(_escape, _quoted(value))
