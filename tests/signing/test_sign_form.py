"""docs/gateway: in each language, the example signs a form that the service accepts. The page shows the tested
examples."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest

from cuota.core.webhook.signature import pay_signature
from cuota.web.api.gateway_form import signed_text
from support.gateway import form_fields, get_link, post_form, record_of
from support.makers import Merchant
from support.needed import needed

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "gateway.md").read_text()
FILES = {"python": "sign_form.py", "node": "sign_form.mjs"}
EVERY_BYTE = "".join(map(chr, range(1, 256)))
VALUES = {
    "description": "Café ~ *noir* (1) 'x'! 100% a+b c/d?e=f&g",
    "metadata.every": EVERY_BYTE.replace("\r", "").replace("\n", ""),
    "order.firstName": "Zoë 日本 ☕ 😀",
    "Z": "upper case first",
    "a b~*!": "",
}


def program(language: str) -> str:
    return sys.executable if language == "python" else needed(language)


async def run(language: str, fields: dict[str, str], secret: str) -> dict[str, str]:
    """Return the program's output, read as JSON."""
    process = await asyncio.create_subprocess_exec(
        program(language), str(DOCS / "gateway" / FILES[language]),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "SIGNING_SECRET": secret, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    said, _ = await asyncio.wait_for(process.communicate(json.dumps(fields).encode()), 60)
    assert process.returncode == 0
    return dict(json.loads(said))


@pytest.mark.parametrize("language", FILES)
async def test_a_form_signed_in_each_language_is_accepted_as_a_form_and_as_a_link(
    merchant: Merchant, language: str
) -> None:
    values = {name: value for name, value in VALUES.items() if name != "metadata.every"}
    fields = await run(language, dict(form_fields(merchant, **values)), merchant.signing_secret)
    posted = await post_form(merchant, list(fields.items()))
    record = await record_of(merchant, posted)
    assert record["description"] == VALUES["description"]
    assert record["consumer"]["givenNames"] == VALUES["order.firstName"]
    followed = await get_link(merchant, list(fields.items()))
    assert followed.headers["location"] == posted.headers["location"]


@pytest.mark.parametrize("language", FILES)
async def test_each_language_encodes_every_character_like_the_service(language: str) -> None:
    signed = await run(language, VALUES, "a secret")
    assert signed.pop("signature") == pay_signature("a secret", signed_text(list(VALUES.items())))
    assert signed == VALUES


def test_the_signed_text_is_form_encoded_as_by_python() -> None:
    fields = [("b", "~*"), ("a", "x y"), ("Signature", "s"), ("B", "é")]
    assert signed_text(fields) == b"B=%C3%A9&a=x+y&b=~%2A"


async def test_the_page_s_example_is_right() -> None:
    found = re.search(
        r"^SIGNING_SECRET=(\S+)\nfields +(\{.*\})\ntext +(\S+)\nsignature +(\S+)$", PAGE, re.MULTILINE
    )
    assert found is not None
    secret, fields, text, signature = found.groups()
    assert urlencode(sorted(json.loads(fields).items())) == text
    assert pay_signature(secret, text.encode()) == signature
    for language in FILES:
        assert (await run(language, json.loads(fields), secret))["signature"] == signature


@pytest.mark.parametrize(("fence", "name"), [("python", "sign_form.py"), ("js", "sign_form.mjs")])
def test_the_page_shows_exactly_the_tested_examples(fence: str, name: str) -> None:
    shown = re.findall(rf"^```{fence}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert (DOCS / "gateway" / name).read_text() in shown


async def test_the_page_s_shop_system_request_is_accepted(merchant: Merchant) -> None:
    found = re.search(r"^POST \{base_url\}/checkouts\n(\{.*?^\})$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    answer = await merchant.http.post("/checkouts", json=json.loads(found[1]))
    assert answer.status_code == 200, answer.text


async def test_the_page_s_statement_about_php_is_right() -> None:
    line = "str_replace('%7E', '~', urlencode($text))"
    assert line in PAGE
    php = needed("php")
    code = f"$text = file_get_contents('php://stdin'); echo {line};"
    process = await asyncio.create_subprocess_exec(
        php, "-r", code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await asyncio.wait_for(process.communicate(EVERY_BYTE.encode()), 60)
    assert b"=" + said == urlencode({"": EVERY_BYTE}).encode()
