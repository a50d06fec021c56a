"""Inputs that break payment services, for `POST /order`. Names that begin with B are bodies; those with U are addresses."""

from __future__ import annotations

import json

from support.api.bodies import with_literal
from support.makers import order_body

BODY = json.dumps(order_body("10.00"))


def inside(literal: str) -> bytes:
    """Return a valid body with one more field, whose value is this JSON text."""
    return (BODY[:-1] + f',"extra":{literal}}}').encode()


MALFORMED_BODIES: dict[str, list[bytes]] = {
    "B01 empty": [b"", b" ", b"\n"],
    "B02 trailing comma": [b'{"amount":1,}', BODY[:-1].encode() + b",}"],
    "B03 something after it": [b'{"amount":10}garbage', BODY.encode() + b"{}", BODY.encode() + b"\x00"],
    "B05 byte order mark": [b"\xef\xbb\xbf" + BODY.encode()],
    "B06 utf-16 and utf-32": [BODY.encode(name) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le")],
    "B07 not utf-8": [inside('"\udcff"'.encode("utf-8", "surrogateescape").decode("latin-1")).replace("ÿ".encode(), b"\xff"), BODY.encode().replace(b"A-1042", b"\xc0\xaf"), BODY.encode().replace(b"A-1042", b"\xed\xa0\x80"), b"\xff"],
    "B09 a NUL in a text": [BODY.replace("A-1042", "a\\u0000b").encode(), inside('"\\u0000"'), inside('{"\\u0000":1}')],
    "B09 half a surrogate pair": [BODY.replace("A-1042", "\\ud800").encode(), inside('"\\udc00"'), inside('["\\ud83d"]')],
    "B10 a raw control byte": [BODY.encode().replace(b"A-1042", b"a\x01b"), BODY.encode().replace(b"A-1042", b"a\nb")],
    "B11 deep": [inside("[" * depth + "]" * depth) for depth in (32, 2_000, 100_000)] + [inside("[" * 2_000), inside('{"a":' * 40 + "1" + "}" * 40)],
    "B13 a key twice": [b'{"amount":1,"amount":999}', inside('{"a":1,"a":1}'), BODY[:-1].encode() + b',"amount":"10.00"}'],
    "B19 no number": [with_literal("amount", text) for text in ("NaN", "Infinity", "-Infinity")] + [inside("NaN")],
    "B25 another type": [with_literal("amount", text) for text in ("true", "[10]", "{}", "false")],
    "B27 no JSON number": [with_literal("amount", text) for text in ("010", "+10", ".5", "5.", "0x10", "1_000", "1e", "--1")],
    "no object": [b"[]", b'"x"', b"1", b"null", b"true"],
    "an exponent beyond all bounds": [with_literal("amount", "1e999999999999999999999")],
}  # fmt: skip


UNUSABLE_AMOUNTS = [
    ("B17", "null"),
    *[("B18", text) for text in ("0", "0.00", "-0", "-0.0", "-1", "1e-400", "0.001", '"0"', '"-1"')],
    *[("B21", text) for text in ("1" * 5_000, "-" + "1" * 5_000, "1." + "0" * 5_000 + "1", "1e4999", "1e400", '"' + "1" * 5_000 + '"')],
    *[("B22", text) for text in ("1234567890123456789", "12345678901234567.89", '"1234567890123456789"')],
    *[("B25", text) for text in ('"10,00"', '""', '"1e1"', '"ten"')],
]  # fmt: skip


FIELDS: dict[str, list[tuple[str, object]]] = {
    "B29 included in amount": [("taxAmount", "119.97"), ("taxAmount", "-0.01"), ("taxAmount", -5)],
    "B30 the same format": [("taxAmount", "1.005"), ("taxAmount", 10**18), ("shippingAmount", 0.001), ("shippingAmount", "1" * 19)],
    "B31 reference": [("merchantReference", None)],
    "B33 merchant": [("merchant", None), ("merchant.redirectConfirmUrl", None), ("merchant.redirectCancelUrl", None)],
    "B34 phone": [("consumer.phoneNumber", text) for text in ("1234567890", "0212555010", "212555010", "21255501000", "+12125550100", "(212)555-0100", "212 555 0100", "2120550100")],
    "B35 digits of other scripts": [("consumer.phoneNumber", text) for text in ("\u0662\u0661\u0662\u0665\u0665\u0665\u0660\u0661\u0660\u0660", "\uff12\uff11\uff12\uff15\uff15\uff15\uff10\uff11\uff10\uff10")],
    "B38 no letters": [("consumer.givenNames", f"Jo{char}rdan") for char in ("\u202e", "\u200b", "\ufeff", "\n", "\t", "\u2028", "1", ".", "\U0001f600")],
    "B39 email": [("consumer.email", text) for text in ("a" * 238 + "@mail.example", "a@b", "a@@b.c", "a b@c.de", "x@y.zz\r\nBcc: q", "x@y.z\r\nBcc: q", "@b.co", "a@.co", ".a@b.co", "a@b..co")],
    "B41 items": [("items", [{}] * 1001), ("items[0].name", "n" * 1001), ("items[0].sku", "s" * 101), ("items[0].price", "1 USD")],
    "B47 log injection": [("merchantReference", 'a\n{"level":"fatal"}'), ("merchantReference", "a\r\nb"), ("merchantReference", "\x1b[31m"), ("merchantReference", "\x85")],
    "S16 the fee": [("merchantFeeForPaymentPlan", "-1"), ("merchantFeeForPaymentPlan", "1.005")],
}  # fmt: skip


ADDRESSES: dict[str, list[str]] = {
    "U02": ["data:text/html,x", "file:///etc/passwd", "ftp://a.example/", "blob:https://a.example/1", "vbscript:x", "about:blank", "javascript:alert(1)", "java\tscript:alert(1)"],
    "U03": ["//evil.example", "/path", "https:evil.example", "https:///evil.example", "https:\\\\evil.example", "https:/evil.example", "", " ", "https://", "http://?x", "evil.example"],
    "U04": ["https://evil.example\\@good.example/", "https://good.example\\.evil.example/", "https://good.example/\\x"],
    "U06": ["https://user:pw@good.example/", "https://user@good.example/", "https://@good.example/", "https://:@good.example/"],
    "U07": ["https://good.example:99999/", "https://good.example:0/", "https://good.example:443abc/", "https://good.example:/", "https://[::1/", "https://%67ood.example/", "https://good..example/", "https://-good.example/"],
    "U08": ["https://g\u043e\u043ed.example/", "https://good\u3002example/", "https://\uff47ood.example/", "https://shop.example/caf\u00e9"],
    "controls": ["https://good.example/\r\nSet-Cookie: a=b", "https://good.example/\t", " https://good.example/", "https://good.example/ ", "https://good.example/\x7f", "https://good.example/a b", "https://good.example/\u202e"],
    "too long": ["https://good.example/" + "a" * 2028],
}  # fmt: skip
