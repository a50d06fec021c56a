"""The sandbox's help for a signature that does not verify: the received text, the first difference, and the way to fix it.

The help never contains the right signature or how close a wrong one is. It names a mistake only if the signature is right for
that mistake.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from cuota.core.wire.canonical_json import canonical, usual_texts

AROUND = 24  # the number of characters shown of each text
_BEFORE = 8  # how many of these are before the difference
_LONGEST = 1024  # a signature has 44 characters; much longer ones are not read
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+={0,2}")
_TO_BASE64 = str.maketrans("-_", "+/")
_ALGORITHMS = {16: "MD5", 20: "SHA-1", 28: "SHA-224", 48: "SHA-384", 64: "SHA-512"}

_CURE = "pass openCheckout exactly the string that was signed, or post that string"
_FORMULA = "base64 of HMAC-SHA256 over the exact text that is sent, keyed with the signing secret"
_MISSING = (
    f"No signature was sent. Make it on your server ({_FORMULA}) and pass it to openCheckout as its second argument, "
    "or send it as X-Pay-Signature."
)
_UNREADABLE = f"The signature cannot be read. It is {_FORMULA}: 44 characters that end with =."
_OTHER = (
    "The signature matches no usual form of this text with this merchant's signing secret. Check that the secret and "
    "merchantId belong to the same merchant in this sandbox, and pass openCheckout exactly the string that was signed: "
    "JSON that is parsed and printed again is a different text (10.0 becomes 10)."
)


class _Read(NamedTuple):
    """A decoded signature. `mistake` says what is wrong with its encoding, even if the bytes are right."""

    digest: bytes
    mistake: str


def explain(secret: str, body: bytes, signature: str | None) -> dict[str, object]:
    """Return the facts for `invalid_signature` as JSON values without secrets: `received`, `firstDifference`, `hint`."""
    given = None if signature is None else {"length": len(signature), "form": _form(signature)}
    received = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), "signature": given}
    # For a large body, only the received text itself is tried.
    printed = canonical(body)
    hint = _hint(secret, body, printed, signature)
    return {"received": received, "firstDifference": _first_difference(body, printed), "hint": hint}


def _first_difference(body: bytes, printed: str | None) -> dict[str, object] | None:
    """Return where the body first differs from its canonical form: the byte at which the first different character begins."""
    if printed is None or printed.encode() == body:
        return None
    text = body.decode()
    shorter = min(len(text), len(printed))
    at = next((i for i, (a, b) in enumerate(zip(text, printed, strict=False)) if a != b), shorter)
    start = max(0, at - _BEFORE)
    return {
        "at": len(text[:at].encode()),
        "received": text[start : start + AROUND],
        "canonical": printed[start : start + AROUND],
    }


def _hint(secret: str, body: bytes, printed: str | None, signature: str | None) -> str:
    if not (signature or "").strip():
        return _MISSING
    read = _readings(signature or "")
    if not read:
        return _UNREADABLE
    found = _mistake(secret, body, printed, read)
    if found is not None:
        mistake, form_mistake = found
        both = " ".join(part for part in (mistake, form_mistake) if part)
        return both or "This signature is right for this body and this merchant's signing secret."
    length = len(read[0].digest)
    if length != hashlib.sha256().digest_size:
        seems = f", the size of {_ALGORITHMS[length]}" if length in _ALGORITHMS else ""
        return f"The signature holds {length} bytes{seems}, but HMAC-SHA256 has 32. It is {_FORMULA}."
    return _OTHER


def _form(signature: str) -> str:
    if len(signature) > _LONGEST:
        return "unreadable"
    if _HEX.fullmatch(signature):
        return "hex"
    bare = signature.rstrip("=")
    padded = len(signature) % 4 == 0
    if len(bare) % 4 == 1 or (bare != signature and not padded):
        return "unreadable"
    if _BASE64.fullmatch(signature) and (padded or "+" in bare or "/" in bare):
        return "base64"
    return "base64url" if _BASE64URL.fullmatch(signature) else "unreadable"


def _readings(signature: str) -> list[_Read]:
    """Return the possible decodings of a signature, each with the mistake in its encoding."""
    text = signature.strip(" \t\r\n\"'")
    around = (
        "The signature has white space or quotation marks around it: send it bare."
        if text != signature
        else ""
    )
    if "%" in text and len(text) <= _LONGEST:
        text = unquote(text)
        around = "The signature came percent-encoded twice or in a header: send it as base64 prints it."
    if " " in text:
        text = text.replace(" ", "+")
        around = "The signature came with spaces for its + signs: percent-encode it where it stands in a form or a query."
    form = _form(text)
    if form == "unreadable":
        return []
    if form == "hex":
        return [_Read(bytes.fromhex(text), "The signature is hex: send the same bytes as base64.")]
    bare = text.rstrip("=").translate(_TO_BASE64)
    digest = base64.b64decode(bare + "=" * (-len(bare) % 4))
    if base64.b64encode(digest).decode() == text:
        mistake = around
    elif form == "base64url":
        mistake = "The signature is base64url (- and _, or no =): send it as plain base64, with + and / and = at its end."
    else:
        mistake = "The signature is not as base64 prints it: send its 44 characters, the last of them =."
    read = [_Read(digest, mistake)]
    if len(digest) == 64 and _HEX.fullmatch(inner := digest.decode("latin-1")):
        again = "The signature is base64 of the hex text: make base64 of the HMAC's 32 raw bytes."
        read.append(_Read(bytes.fromhex(inner), again))
    return read


def _mistake(secret: str, body: bytes, printed: str | None, read: list[_Read]) -> tuple[str, str] | None:
    """Return the mistake in signing (empty if key and text are right) and the mistake in the encoding, or None if unknown."""
    for key, text, words in _candidates(secret, body, printed):
        made = hmac.digest(key, text, "sha256")
        for digest, form_mistake in read:
            if hmac.compare_digest(made, digest):
                return words, form_mistake
    for digest, form_mistake in read:
        if hmac.compare_digest(hashlib.sha256(body).digest(), digest):
            words = f"The signature is a plain SHA-256 of the body, without a secret: it must be {_FORMULA}."
            return words, form_mistake
    return None


def _candidates(secret: str, body: bytes, printed: str | None) -> Iterator[tuple[bytes, bytes, str]]:
    right = secret.encode()
    yield right, body, ""
    for key, used in _keys(secret):
        if key and key != right:
            yield (
                key,
                body,
                f"The signature was keyed with {used}: use the signing secret's own text, all of it.",
            )
    for text, words in _texts(body, printed):
        if text != body:
            yield right, text, f"Your server signed {words}, but a different text arrived: {_CURE}."


def _keys(secret: str) -> Iterator[tuple[bytes, str]]:
    bare = secret.removeprefix("signing_")
    yield bare.encode(), "the secret without its signing_ prefix"
    for text in (secret, bare):
        # Node decodes - and _ like + and /. Other decoders skip these characters.
        for letters in (text.translate(_TO_BASE64), re.sub(r"[^A-Za-z0-9+/]", "", text)):
            whole = letters[: len(letters) - (len(letters) % 4 == 1)]
            try:
                yield base64.b64decode(whole + "=" * (-len(whole) % 4)), "the base64-decoded secret"
            except (binascii.Error, ValueError):
                continue
    for before, after in (("", "\n"), ("", "\r\n"), ("", " "), (" ", ""), (" ", " ")):
        yield f"{before}{secret}{after}".encode(), "the secret and white space or a line end around it"
    for mark in "\"'":
        yield f"{mark}{secret}{mark}".encode(), "the secret and quotation marks around it"


def _texts(body: bytes, printed: str | None) -> Iterator[tuple[bytes, str]]:
    yield b"", "an empty text"
    hashed = hashlib.sha256(body)
    for text in (hashed.digest(), hashed.hexdigest().encode(), base64.b64encode(hashed.digest())):
        yield text, "the SHA-256 of the text in place of the text"
    yield body.rstrip(b"\r\n"), "the text without the newline at its end"
    yield body.strip(), "the text without the white space around it"
    for end in (b"\n", b"\r\n"):
        yield body + end, "the text with a newline at its end"
    unix = body.replace(b"\r\n", b"\n")
    yield unix, "the text with \\n for its line ends"
    yield unix.replace(b"\n", b"\r\n"), "the text with \\r\\n for its line ends"
    yield b"\xef\xbb\xbf" + body, "the text with a byte order mark before it"
    if printed is not None:
        yield printed.encode(), "the text as JSON.stringify prints it"
    for usual, words in usual_texts(body):
        yield usual.encode(), f"the text {words}"
        yield f"{usual}\n".encode(), f"the text {words} and with a newline at its end"
