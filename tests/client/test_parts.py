"""The client's pure parts: amounts, errors and webhooks. The client imports nothing else of Cuota."""

from __future__ import annotations

import copy
import json
import pickle
import re
import subprocess
import sys
from decimal import Decimal, localcontext
from pathlib import Path

import pytest

from cuota import client
from cuota.client import BadWebhook, Client, CuotaError, RequestRefused, Unavailable, cents, verify_webhook
from cuota.client.money import amount_text, json_text
from support.makers import order_body

SOURCE = Path(client.__file__).parent


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("12.5", "12.50"),
        (Decimal("12.50"), "12.50"),
        (cents(1250), "12.50"),
        (cents(5), "0.05"),
        ("112.0000", "112.00"),
        (Decimal("1E+2"), "100.00"),
        ("1234567890123456.78", "1234567890123456.78"),
        ("-3", "-3.00"),
        ("0", "0.00"),
    ],
)
def test_an_amount_is_sent_as_exact_text(given: Decimal | str, text: str) -> None:
    with localcontext() as context:
        context.prec = 3  # the caller's decimal context does not matter
        assert amount_text(given) == text


@pytest.mark.parametrize("given", [12.5, 12, True, None, b"12.50"])
def test_a_float_or_an_amount_of_unclear_unit_is_a_type_error_with_an_explanation(given: object) -> None:
    with pytest.raises(TypeError, match=r"cents\("):
        amount_text(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given", ["", "abc", "1.005", "1e3", "1,234.50", "٣", " 1", "1" * 19, Decimal("NaN"), Decimal("0.001")]
)
def test_a_text_that_is_no_amount_is_a_value_error(given: Decimal | str) -> None:
    with pytest.raises(ValueError, match="amount"):
        amount_text(given)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (order_body(12.5), "amount"),
        (order_body(12), "amount"),
        (order_body("12", taxAmount=0.1), "taxAmount"),
        (order_body("12", items=[{"name": "Tea", "price": 3.1}]), r"items\[0\].price"),
        (order_body("12", items=[{"name": "Tea", "quantity": 1.5}]), r"items\[0\].quantity"),
    ],
)
def test_a_float_anywhere_in_an_order_is_refused_and_the_error_names_its_place(
    body: dict[str, object], place: str
) -> None:
    with Client("http://127.0.0.1:9", "id", "secret") as shop, pytest.raises(TypeError, match=place):
        shop.create_order(body)


def test_a_call_without_a_reference_is_never_sent() -> None:
    with Client("http://127.0.0.1:9", "id", "secret") as shop, pytest.raises(ValueError, match="reference"):
        shop.capture("o-1", "1.00", "")


@pytest.mark.parametrize("key", ["", "é", "a\nb", "x" * 256])
def test_a_key_that_cannot_be_in_a_header_is_never_sent(key: str) -> None:
    with (
        Client("http://127.0.0.1:9", "id", "secret") as shop,
        pytest.raises(ValueError, match="idempotency_key"),
    ):
        shop.create_order(order_body(), idempotency_key=key)


def test_json_is_written_without_spaces_and_with_exact_numbers() -> None:
    value = {"a": [Decimal("10.0"), 1, None, True], "é": 'q"\n', "b": {"c": "☕"}}
    assert json_text(value) == '{"a":[10.0,1,null,true],"é":"q\\"\\n","b":{"c":"☕"}}'
    assert json.loads(json_text(value), parse_float=Decimal) == value
    for bad in ({1: 2}, {"a": {1, 2}}, {"a": b"x"}):
        with pytest.raises(TypeError):
            json_text(bad)
    with pytest.raises(ValueError, match="no such number"):
        json_text({"a": Decimal("Infinity")})


@pytest.mark.parametrize(
    "url", ["", "pay.example", "ftp://pay.example", "https://pay.example/?a=b", "https://"]
)
def test_an_unusable_service_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        Client(url, "id", "secret")


def test_credentials_are_required_and_never_shown() -> None:
    with pytest.raises(ValueError, match="client_secret"):
        Client("https://pay.example", "id", "")
    with Client("https://pay.example", "id", "hush") as shop:
        assert "hush" not in f"{shop!r} {shop._terms!r} {shop._tokens!r}"


def test_all_errors_have_one_base_class_and_can_be_copied() -> None:
    refusal = RequestRefused(422, {
        "code": "capture_exceeds_authorized", "message": "At most 3.10.", "requestId": "r-1",
        "errors": [{"field": "amount", "code": "invalid", "message": "is too much"}],
        "balances": {"capturable": Decimal("3.10")}, "original": None,
    })  # fmt: skip
    for again in (copy.copy(refusal), pickle.loads(pickle.dumps(refusal))):
        assert (again.code, again.status, again.message) == (
            "capture_exceeds_authorized",
            422,
            "At most 3.10.",
        )
        assert (again.errors[0].field, again.request_id, again.original) == ("amount", "r-1", None)
        assert again.balances.capturable == Decimal("3.10")
    assert "amount: is too much" in str(refusal)
    for kind in client.__all__:
        value = getattr(client, kind)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, CuotaError)
    kept = copy.copy(Unavailable("later", status=503, code="unavailable", retry_after=2, undecided=True))
    assert (kept.status, kept.code, kept.retry_after, kept.undecided) == (503, "unavailable", 2, True)


def test_malformed_secrets_raise_a_value_error_and_not_a_bad_webhook() -> None:
    for secrets in ([], "", "whsec_", "whsec_???", ["whsec_YQ==", ""]):
        with pytest.raises(ValueError, match="secret"):
            verify_webhook(b"{}", {}, secrets)
    with pytest.raises(ValueError, match="signing secret"):
        verify_webhook(b"{}", {}, "whsec_YQ==", "")
    with pytest.raises(TypeError, match="raw bytes"):
        verify_webhook({}, {}, "whsec_YQ==")  # type: ignore[arg-type]
    with pytest.raises(BadWebhook):
        verify_webhook(b"{}", {}, "whsec_YQ==")


def test_the_client_imports_nothing_of_cuota_and_no_library_except_httpx() -> None:
    code = (
        "import sys, httpx; before = set(sys.modules); import cuota.client\n"
        "new = {name for name in set(sys.modules) - before if name.partition('.')[0] not in sys.stdlib_module_names}\n"
        "print(sorted(name for name in new if not name.startswith('cuota.client') and name != 'cuota'))"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout == "[]\n"


@pytest.mark.parametrize(("first", "second"), [("sync", "asynchronous"), ("sync_disputes", "async_disputes")])
def test_the_source_of_both_clients_differs_only_in_async_and_await(first: str, second: str) -> None:
    blocking = (SOURCE / f"{first}.py").read_text().partition("class ")[2]
    waiting = (SOURCE / f"{second}.py").read_text().partition("class ")[2]
    waiting = re.sub(
        r"for (event|order|payout|line|dispute) in page\.\1s:\s+yield \1", r"yield from page.\1s", waiting
    )
    for found, instead in {
        "AsyncClient": "Client", "AsyncDispute": "Dispute", "AsyncIterator": "Iterator", "async ": "", "await ": "", "asyncio.Lock": "threading.Lock",
        "asyncio.sleep": "time.sleep", "for asyncio": "for threads", "aclose": "close", "__aenter": "__enter",
        "__aexit": "__exit", "an `with`": "a `with`",
    }.items():  # fmt: skip
        waiting = waiting.replace(found, instead)

    def plain(text: str) -> str:
        return re.sub(r"[\s(),]+", "", text)

    assert plain(waiting) == plain(blocking)
