"""core/wire/signature_hint: names every usual mistake in a signature, and reveals no secret. The tests make these
mistakes like a server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.webhook.signature import pay_signature
from cuota.core.wire.canonical_json import LARGEST
from cuota.core.wire.signature_hint import AROUND, explain
from support.properties.steady import steady

SECRET = "signing_y4w0vbDyzbhIFdrO_B5jrFBrrtwOofRefbr-1NU9oRs"
VALUE = {
    "reference": "A/1",
    "amount": 59.98,
    "buyer": {"name": "Zoë <z@example.com>", "age": 40},
    "items": [1, []],
    "capture": True,
}
BODY = json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False).encode()


def mac(text: bytes | str, key: bytes | str = SECRET, algorithm: str = "sha256") -> bytes:
    raw = [part.encode() if isinstance(part, str) else part for part in (key, text)]
    return hmac.digest(raw[0], raw[1], algorithm)


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def hint(signature: str | None, body: bytes = BODY) -> str:
    told = explain(SECRET, body, signature)["hint"]
    assert isinstance(told, str)
    assert told.endswith(".")
    assert told.count(". ") <= 1, "two sentences at most"
    return told


def form(signature: str) -> Any:
    received: Any = explain(SECRET, BODY, signature)["received"]
    return received["signature"]


PHP = json.dumps(VALUE, separators=(",", ":")).replace("/", "\\/")
GO = BODY.decode().replace("<", "\\u003c").replace(">", "\\u003e")
TEXTS = {
    "json.dumps prints": json.dumps(VALUE, ensure_ascii=False),
    "json.dumps prints it, with \\u escapes": json.dumps(VALUE),
    "without any spaces, as JSON.stringify prints it, with \\u escapes": json.dumps(
        VALUE, separators=(",", ":")
    ),
    "with 2 spaces": json.dumps(VALUE, indent=2, ensure_ascii=False),
    "with 4 spaces": json.dumps(VALUE, indent=4, ensure_ascii=False),
    "with 4 spaces, with \\u escapes": json.dumps(VALUE, indent=4),
    "with \\/ and \\u escapes as PHP's json_encode": PHP,
    "with \\/ for / as PHP's json_encode": BODY.decode().replace("/", "\\/"),
    "as Go's json.Marshal": GO,
    "as JSON.stringify prints it and with its keys sorted": json.dumps(
        VALUE, separators=(",", ":"), sort_keys=True, ensure_ascii=False
    ),
    "json.dumps prints it and with its keys sorted, with \\u": json.dumps(VALUE, sort_keys=True),
    "with a newline at its end": BODY.decode() + "\n",
    "the text with a newline at its end": BODY.decode() + "\r\n",
    "with 2 spaces and with a newline at its end": json.dumps(VALUE, indent=2, ensure_ascii=False) + "\n",
    "byte order mark": "\ufeff" + BODY.decode(),
    "an empty text": "",
}


@pytest.mark.parametrize(("words", "text"), TEXTS.items(), ids=TEXTS)
def test_a_signature_over_another_layout_of_the_body_names_that_layout(words: str, text: str) -> None:
    told = hint(b64(mac(text)))
    assert told.startswith("Your server signed ")
    assert words in told
    assert "pass openCheckout exactly the string that was signed" in told


RECEIVED = {
    "the text as JSON.stringify prints it": (json.dumps(VALUE, indent=2).encode(), BODY),
    "without the newline at its end": (json.dumps(VALUE).encode() + b"\n", json.dumps(VALUE).encode()),
    "without the white space around it": (b'  {"a" :1}\t', b'{"a" :1}'),
    "with \\n for its line ends": (b'{"a":\r\n1}', b'{"a":\n1}'),
    "with \\r\\n for its line ends": (b'{"a":\n1}', b'{"a":\r\n1}'),
}


@pytest.mark.parametrize(("words", "pair"), RECEIVED.items(), ids=RECEIVED)
def test_a_body_that_was_changed_after_signing_is_recognized(words: str, pair: tuple[bytes, bytes]) -> None:
    arrived, signed = pair
    assert words in hint(b64(mac(signed)), arrived)


def test_a_signature_of_a_body_that_is_no_json_is_explained_too() -> None:
    form_text = b"amount=10.00&merchantId=x"
    assert "newline at its end" in hint(b64(mac(form_text + b"\n")), form_text)
    assert explain(SECRET, form_text, "x")["firstDifference"] is None


BARE = SECRET.removeprefix("signing_")
KEYS = {
    "no prefix": (BARE, "without its signing_ prefix"),
    "decoded, bare": (base64.urlsafe_b64decode(BARE + "="), "base64-decoded"),
    "decoded, whole, as Node does": (base64.urlsafe_b64decode(SECRET + "="), "base64-decoded"),
    "decoded, as PHP does": (base64.b64decode(BARE.replace("-", "").replace("_", "")[:40]), "base64-decoded"),
    "line end": (SECRET + "\n", "line end around"),
    "windows line end": (SECRET + "\r\n", "line end around"),
    "space after": (SECRET + " ", "white space"),
    "space before": (" " + SECRET, "white space"),
    "spaces around": (f" {SECRET} ", "white space"),
    "quotation marks": (f'"{SECRET}"', "quotation marks"),
}


@pytest.mark.parametrize(("key", "words"), KEYS.values(), ids=KEYS)
def test_a_wrong_derivation_of_the_key_from_the_secret_is_named(key: str | bytes, words: str) -> None:
    told = hint(b64(mac(BODY, key)))
    assert told.startswith("The signature was keyed with ")
    assert words in told


@pytest.mark.parametrize(
    "hashed",
    [
        hashlib.sha256(BODY).digest(),
        hashlib.sha256(BODY).hexdigest().encode(),
        b64(hashlib.sha256(BODY).digest()).encode(),
    ],
)
def test_a_signature_over_the_hash_of_the_body_is_named(hashed: bytes) -> None:
    assert "the SHA-256 of the text in place of the text" in hint(b64(mac(hashed)))


def test_a_plain_hash_without_a_secret_is_named() -> None:
    assert "without a secret" in hint(b64(hashlib.sha256(BODY).digest()))
    assert "without a secret" in hint(hashlib.sha256(BODY).hexdigest())


def _with(marks: str) -> tuple[bytes, bytes]:
    """Return a body whose right signature has these characters, and its HMAC."""
    bodies = (json.dumps({"n": n}, separators=(",", ":")).encode() for n in range(10_000))
    return next((body, mac(body)) for body in bodies if all(mark in b64(mac(body)) for mark in marks))


def test_a_right_signature_in_another_encoding_is_named() -> None:
    body, raw = _with("+/")
    assert "is hex" in hint(raw.hex(), body)
    assert "is hex" in hint(raw.hex().upper(), body)
    assert "is base64url" in hint(base64.urlsafe_b64encode(raw).decode(), body)
    assert "is base64url" in hint(base64.urlsafe_b64encode(raw).decode().rstrip("="), body)
    assert "not as base64 prints it" in hint(b64(raw).rstrip("="), body)
    assert "base64 of the hex text" in hint(b64(raw.hex().encode()), body)
    for around in ("{} ", " {}", "{}\n", '"{}"'):
        assert "around it" in hint(around.format(b64(raw)), body)
    assert "spaces for its +" in hint(b64(raw).replace("+", " "), body)
    assert "percent-encoded" in hint(quote(b64(raw), safe=""), body)
    assert "is right for this body" in hint(b64(raw), body)


def test_two_mistakes_at_the_same_time_are_both_named() -> None:
    told = hint(mac(json.dumps(VALUE)).hex())
    assert "json.dumps" in told
    assert "is hex" in told


def test_a_missing_or_unreadable_signature_is_answered_with_the_formula() -> None:
    for nothing in (None, "", "  "):
        assert hint(nothing).startswith("No signature was sent.")
    for unreadable in ("é", "%", "A", "abc=d", "+-", "A" * 5000, "\ud800"):
        assert hint(unreadable).startswith("The signature cannot be read.")
        assert form(unreadable) == {"length": len(unreadable), "form": "unreadable"}


@pytest.mark.parametrize("algorithm", ["sha1", "sha384", "sha512", "md5"])
def test_another_hash_function_is_recognized_by_its_size(algorithm: str) -> None:
    name = {"md5": "MD5"}.get(algorithm, algorithm.upper().replace("SHA", "SHA-"))
    for signature in (b64(mac(BODY, SECRET, algorithm)), mac(BODY, SECRET, algorithm).hex()):
        assert f"the size of {name}, but HMAC-SHA256 has 32" in hint(signature)


def test_the_received_body_is_described_by_its_length_hash_and_form() -> None:
    wrong = bytes(32)
    assert explain(SECRET, BODY, b64(wrong))["received"] == {
        "bytes": len(BODY),
        "sha256": hashlib.sha256(BODY).hexdigest(),
        "signature": {"length": 44, "form": "base64"},
    }
    assert form(wrong.hex()) == {"length": 64, "form": "hex"}
    assert form("-" * 43) == {"length": 43, "form": "base64url"}
    assert form(b64(wrong) + "\n")["form"] == "unreadable"
    received: Any = explain(SECRET, BODY, None)["received"]
    assert received["signature"] is None


@pytest.mark.parametrize(
    ("body", "at", "received", "printed"),
    [
        (b'{"amount":10.0}', 12, 'ount":10.0}', 'ount":10}'),
        (b'{"a": 1}', 5, '{"a": 1}', '{"a":1}'),
        ('{"é€😀":"x\\u00e9"}'.encode(), 15, '"é€😀":"x\\u00e9"}', '"é€😀":"xé"}'),
        (b'{"a":1}\n', 7, '{"a":1}\n', '{"a":1}'),
        (b'{"a":1,"a":2}', 5, '{"a":1,"a":2}', '{"a":2}'),
    ],
)
def test_the_first_difference_between_the_body_and_its_canonical_form_is_shown(
    body: bytes, at: int, received: str, printed: str
) -> None:
    assert explain(SECRET, body, None)["firstDifference"] == {
        "at": at,
        "received": received,
        "canonical": printed,
    }


@pytest.mark.parametrize("body", [BODY, b"", b"{", b"\xff", b"[" * 40 + b"]" * 40])
def test_a_canonical_or_unreadable_body_has_no_first_difference(body: bytes) -> None:
    assert explain(SECRET, body, "x")["firstDifference"] is None


def test_a_hint_never_reveals_how_close_a_wrong_signature_is() -> None:
    right = mac(BODY)
    answers = set()
    for bit in range(256):
        wrong = bytes(byte ^ (1 << bit % 8 if place == bit // 8 else 0) for place, byte in enumerate(right))
        answers.add(json.dumps(explain(SECRET, BODY, b64(wrong))))
    answers.add(json.dumps(explain(SECRET, BODY, b64(random.Random(1).randbytes(32)))))
    assert len(answers) == 1
    assert "no usual form" in answers.pop()


BODIES = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda value, indent: json.dumps(value, indent=indent).encode(),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=30),
            lambda inner: st.dictionaries(st.text(max_size=3), inner),
        ),
        st.sampled_from([None, 1, 2, 4]),
    ),
    st.just(json.dumps({"secret": SECRET, "spaced": 1}).encode()),
    st.just(SECRET.encode()),
)
DRESSES = st.sampled_from(
    [b64, bytes.hex, lambda raw: f" {b64(raw)}", lambda raw: base64.urlsafe_b64encode(raw).decode()]
)


@steady(300, part=10)
@given(BODIES, st.data())
def test_no_hint_contains_the_right_signature_or_the_secret(body: bytes, data: st.DataObject) -> None:
    right = mac(body)
    made = st.builds(
        lambda raw, dress: dress(raw), st.sampled_from([right, mac(body + b"\n"), mac(body, BARE)]), DRESSES
    )
    signature = data.draw(st.none() | made | st.text(st.characters(), max_size=60))
    answer = explain(SECRET, body, signature)
    assert json.loads(json.dumps(answer)) == answer
    told = json.dumps(answer, ensure_ascii=False)
    forms = [
        pay_signature(SECRET, body).rstrip("="),
        right.hex(),
        base64.urlsafe_b64encode(right).decode().rstrip("="),
    ]
    for hidden in (SECRET, BARE, *forms):
        assert hidden not in told
    difference: Any = answer["firstDifference"]
    if difference is not None:
        assert max(len(difference["received"]), len(difference["canonical"])) <= AROUND
        assert difference["received"] != difference["canonical"] or len(body) > AROUND


def test_for_a_large_body_only_the_received_text_is_checked() -> None:
    large = BODY[:-1] + b',"more": "' + b"x" * LARGEST + b'"}'
    assert explain(SECRET, large, "x")["firstDifference"] is None
    assert "no usual form" in hint(b64(mac(json.dumps(json.loads(large)))), large)
    assert "newline at its end" in hint(b64(mac(large + b"\n")), large)
    assert "signing_ prefix" in hint(b64(mac(large, SECRET.removeprefix("signing_"))), large)
