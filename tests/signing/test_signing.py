"""docs/signing: in each language, the example signs exactly the bytes that the service verifies. docs/sdk.md shows the
tested examples."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cuota.client import cents, sign
from cuota.core.webhook.signature import pay_signature
from cuota.core.wire.strict_json import read_json
from support.needed import needed

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "sdk.md").read_text()
SECTION = PAGE[PAGE.index("\n## Signing on your server\n") : PAGE.index("\n## What can go wrong")]
SECRET = "signing_é-☕_of the tests"
FILES = {"python": "sign.py", "node": "sign.mjs", "php": "sign.php"}
VECTORS = {
    "plain": b'{"a":1}',
    "spaces and line breaks": b' {\n\t"a" : 1 ,\r\n"b":[ ]} \n',
    "non-ASCII": '{"name":"Café · thé 日本 ☕ 😀","é":"\u00a0\u2028"}'.encode(),
    "escapes": rb'{"a":"caf\u00e9 \/ \" \\ \n \u2615 \ud83d\ude00","b":"<\/script>&amp;"}',
    "10.0": b'{"amount":10.0,"x":[1.50,1e2,-0.0,100000000000000000000.01,12345678901234567890]}',
    "key order": b'{"z":1,"10":2,"9":3,"a":{"c":1,"b":2}}',
    "a byte order mark": b'\xef\xbb\xbf{"a":1}',
    "a long one": b'{"a":"' + b"x" * 200_000 + b'"}',
}


def program(language: str) -> str:
    return sys.executable if language == "python" else needed(language)


def run(command: list[str], given: bytes = b"") -> dict[str, str]:
    """Return the program's output, read as JSON."""
    environment = {**os.environ, "SIGNING_SECRET": SECRET, "PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, input=given, env=environment, check=True, capture_output=True, timeout=60)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)
@pytest.mark.parametrize("language", FILES)
def test_each_language_signs_the_exact_bytes_and_passes_them_on_unchanged(
    language: str, vector: bytes
) -> None:
    signed = run([program(language), str(DOCS / "signing" / FILES[language])], vector)
    assert signed["body"].encode() == vector
    assert signed["signature"] == pay_signature(SECRET, vector)


OBJECTS = {
    "python": "import sys, json, os; sys.path.insert(0, {folder!r}); from sign import sign\n"
    "request = {{'amount': '10.0', 'name': 'Café / \"☕\"', 'z': 1, 'a': [True, None]}}\n"
    "print(json.dumps(sign(request, os.environ['SIGNING_SECRET'])))",
    "node": "import {{ sign }} from '{folder}/sign.mjs';\n"
    "const request = {{amount: '10.0', name: 'Café / \"☕\"', z: 1, a: [true, null]}};\n"
    "console.log(JSON.stringify(sign(request, process.env.SIGNING_SECRET)));",
    "php": "require '{folder}/sign.php';\n"
    "$request = ['amount' => '10.0', 'name' => 'Café / \"☕\"', 'z' => 1, 'a' => [true, null]];\n"
    "echo json_encode(sign_request($request, getenv('SIGNING_SECRET')));",
}
HOW = {"python": ["-c"], "node": ["--input-type=module", "-e"], "php": ["-r"]}


@pytest.mark.parametrize("language", FILES)
def test_an_object_is_serialized_once_and_that_text_is_signed(language: str) -> None:
    code = OBJECTS[language].format(folder=str(DOCS / "signing"))
    signed = run([program(language), *HOW[language], code])
    assert signed["signature"] == pay_signature(SECRET, signed["body"].encode())
    assert json.loads(signed["body"]) == {"amount": "10.0", "name": 'Café / "☕"', "z": 1, "a": [True, None]}


@pytest.mark.parametrize("vector", [name for name in VECTORS if name != "a byte order mark"])
@pytest.mark.parametrize("as_text", [True, False])
def test_the_client_signs_text_and_bytes_unchanged(vector: str, as_text: bool) -> None:  # noqa: FBT001
    raw = VECTORS[vector]
    body, signature = sign(raw.decode() if as_text else raw, SECRET)
    assert body.encode() == raw
    assert signature == pay_signature(SECRET, raw)


def test_the_client_serializes_a_mapping_once_with_exact_decimals() -> None:
    request: dict[str, Any] = {
        "z": "Café ☕",
        "order": {"amount": cents(1000), "price": Decimal("10.0"), "lines": ({"quantity": 2},)},
        "capture": True,
    }
    body, signature = sign(request, SECRET)
    assert (
        body
        == '{"z":"Café ☕","order":{"amount":10.00,"price":10.0,"lines":[{"quantity":2}]},"capture":true}'
    )
    assert signature == pay_signature(SECRET, body.encode())
    assert read_json(body.encode())["order"]["amount"] == Decimal("10.00")


@pytest.mark.parametrize("bad", [b"[]", "1", b"\xff", "{", "", {"a": "\ud800"}])
def test_data_that_no_checkout_accepts_is_not_signed(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting|codec"):
        sign(bad, SECRET)


def test_a_float_and_an_empty_secret_are_refused() -> None:
    with pytest.raises(TypeError, match=r"body\.order\.amount is the float 59\.98"):
        sign({"order": {"amount": 59.98}}, SECRET)
    with pytest.raises(ValueError, match="empty"):
        sign({}, "")


@pytest.mark.parametrize(("fence", "name"), [("python", "sign.py"), ("js", "sign.mjs"), ("php", "sign.php")])
def test_the_page_shows_exactly_the_tested_examples(fence: str, name: str) -> None:
    shown = re.findall(rf"^```{fence}\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
    assert (DOCS / "signing" / name).read_text() in shown


def example() -> tuple[str, str, str]:
    found = re.search(r"^SIGNING_SECRET=(\S+)\nbody +(\{.*\})\nsignature +(\S+)$", SECTION, re.MULTILINE)
    assert found is not None
    return found[1], found[2], found[3]


def test_the_page_s_example_is_right() -> None:
    secret, body, signature = example()
    assert signature == pay_signature(secret, body.encode())
    assert json.dumps(json.loads(body)) != body, "it is to show what printing anew breaks"


def test_the_page_s_use_of_the_client_works() -> None:
    code = next(
        block
        for block in re.findall(r"^```python\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
        if "cuota" in block
    )
    names: dict[str, Any] = {"MERCHANT_ID": "m-1", "SIGNING_SECRET": SECRET}
    exec(code, names)
    assert names["signature"] == pay_signature(SECRET, names["body"].encode())
    assert '"amount":59.98' in names["body"]
