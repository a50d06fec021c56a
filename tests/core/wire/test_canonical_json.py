"""core/wire/canonical_json: prints every JSON text as JavaScript prints it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.wire.canonical_json import MOST_BYTES, MOST_VALUES, canonical, js_number, usual_texts
from cuota.core.wire.strict_json import DEEPEST
from support.needed import needed
from support.properties.steady import STEADY, steady

PROGRAM = """
require("node:readline").createInterface({input: process.stdin}).on("line", (line) => {
  let printed = null;
  try { printed = JSON.stringify(JSON.parse(JSON.parse(line))); } catch {}
  process.stdout.write(JSON.stringify(printed) + "\\n");
});
"""
Node = Callable[[str], str | None]


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """Return what Node's JSON.stringify(JSON.parse(text)) prints for each text, or None. All texts use one Node
    process."""
    found = needed("node")
    with subprocess.Popen([found, "-e", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        reads, writes = process.stdout, process.stdin

        def ask(text: str) -> str | None:
            writes.write(json.dumps(text).encode() + b"\n")
            writes.flush()
            printed: str | None = json.loads(reads.readline())
            return printed

        yield ask
        process.stdin.close()
        assert process.wait(60) == 0


SPACES = st.text(" \t\r\n", max_size=2)
KEYS = st.sampled_from(
    ["a", "b", "", "__proto__", "0", "9", "10", "01", "-1", "4294967294", "4294967295", "99999999999"]
)
NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(-(10**24), 10**24).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


def _quoted(text: str) -> st.SearchStrategy[str]:
    plain = json.dumps(text)
    ways = [plain, plain.replace("/", "\\/")]
    if not any("\ud800" <= char <= "\udfff" for char in text):
        ways.append(json.dumps(text, ensure_ascii=False))
    return st.sampled_from(ways)


STRINGS = st.text(st.characters(categories=None), max_size=8).flatmap(_quoted)
MEMBERS = st.one_of(KEYS, st.text(max_size=3)).flatmap(_quoted)


def _between(opened: str, parts: list[str], spaces: str, closed: str) -> str:
    return opened + spaces + f"{spaces},".join(parts) + spaces + closed


def _holders(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.builds("{}{}:{}".format, MEMBERS, SPACES, inner)
    return st.builds(_between, st.just("["), st.lists(inner, max_size=4), SPACES, st.just("]")) | st.builds(
        _between, st.just("{"), st.lists(member, max_size=6), SPACES, st.just("}")
    )


TEXTS = st.recursive(
    st.one_of(NUMBERS, STRINGS, st.sampled_from(["null", "true", "false"])), _holders, max_leaves=12
)


@steady(400, part=10)
@given(TEXTS)
def test_any_json_is_printed_as_javascript_prints_it(node: Node, text: str) -> None:
    assert canonical(text.encode()) == node(text) is not None


@steady(400)
@given(NUMBERS)
def test_any_number_is_printed_as_javascript_prints_it(node: Node, text: str) -> None:
    assert js_number(text) == node(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("10.0", "10"),
        ("1e21", "1e+21"),
        ("1e20", "100000000000000000000"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("-0.0", "0"),
        ("1e400", "null"),
        ("12345678901234567890", "12345678901234567000"),
        ("999999999999999", "999999999999999"),
        ("-1.50", "-1.5"),
        ("5e-324", "5e-324"),
        (' {"b": 1, "a": [ ], "b": 2, "10": 0, "9": {} } ', '{"9":{},"10":0,"b":2,"a":[]}'),
        (
            r'"caf\u00e9 \/ \u0000 \u001F \ud800 \u007f \ud83d\ude00"',
            '"café / \\u0000 \\u001f \\ud800 \x7f 😀"',
        ),
    ],
)
def test_the_known_differences_are_printed_as_javascript_prints_them(
    node: Node, text: str, printed: str
) -> None:
    assert canonical(text.encode()) == printed == node(text)


@pytest.mark.parametrize(
    "text", ["", "{", "[1,]", "NaN", "-Infinity", "'a'", "\ufeff{}", "01", "1.", '"\t"', '"\\u12"', "{}{}"]
)
def test_a_text_that_javascript_cannot_read_has_no_canonical_form(node: Node, text: str) -> None:
    assert canonical(text.encode()) is None
    assert list(usual_texts(text.encode())) == []
    assert node(text) is None


def test_text_that_is_not_utf_8_or_nested_too_deep_has_no_canonical_form() -> None:
    assert canonical(b'"\xff"') is None
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        inside = "" if opened == "[" else "1"
        deepest = opened * DEEPEST + inside + closed * DEEPEST
        assert canonical(deepest.encode()) == deepest
        assert canonical((opened + (deepest if inside else f"[{deepest[1:-1]}]") + closed).encode()) is None
        assert canonical((opened * 100_000).encode()) is None


def _number(text: str) -> str | None:
    printed = js_number(text)
    return None if printed == "null" else printed


@STEADY
@given(TEXTS)
def test_all_usual_layouts_of_a_body_have_the_same_value(text: str) -> None:
    exact = canonical(text.encode())
    assert exact is not None
    value = json.loads(exact, parse_float=_number, parse_int=_number)
    usual = list(usual_texts(text.encode()))
    assert usual
    for printed, words in usual:
        assert json.loads(printed, parse_float=_number, parse_int=_number) == value
        assert canonical(printed.encode()) == exact or "sorted" in words


def test_a_body_with_very_many_values_is_not_printed_in_all_layouts() -> None:
    assert list(usual_texts(b"[" + b"1," * MOST_VALUES + b"1]")) == []
    assert list(usual_texts(b"[" + b"1," * (MOST_VALUES - 2) + b"1]"))


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":' + b"[" * 29 + b",".join([b'"/<\xc3\xa9"'] * 100) + b"]" * 29 + b"}",
        b'{"a":"' + b"/<\xc3\xa9" * 700 + b'"}',
        b'{"a":[' + b",".join([b"1e9"] * 140) + b"]}",
    ],
    ids=["deep", "long", "wide"],
)
def test_the_texts_that_a_refusal_prints_stay_within_a_megabyte(body: bytes) -> None:
    """Clients without a secret can cause this work, and the work blocks all other responses while it runs."""
    texts = [text for text, _ in usual_texts(body)]
    assert texts
    assert sum(map(len, texts)) < 1_000_000
    assert list(usual_texts(body + b" " * MOST_BYTES)) == []
