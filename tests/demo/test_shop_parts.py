"""The shop's pure parts: its money, its settings, its parsers and its store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from cuota_demo import money
from cuota_demo.records import Payment, changes
from cuota_demo.settings import SettingsError, ShopSettings
from cuota_demo.store import ShopOperation, Store
from support.demo.shop_network import ENVIRONMENT, RECORD


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("cents", "text"),
    [
        (0, "0.00"),
        (5, "0.05"),
        (12345, "123.45"),
        (10000, "100.00"),
        (123456789012345678, "1234567890123456.78"),
    ],
)
def test_cents_print_as_exact_decimals_and_read_back(cents: int, text: str) -> None:
    assert money.to_json(cents) == text
    assert money.from_json(json.loads(text, parse_float=Decimal)) == cents


def test_a_negative_amount_is_never_sent() -> None:
    with pytest.raises(ValueError, match="negative"):
        money.to_json(-1)


@pytest.mark.parametrize("value", [1.5, "1.50", True, [1]])
def test_an_amount_that_is_no_exact_number_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        money.from_json(value)


@pytest.mark.parametrize(
    ("typed", "cents"), [("12", 1200), (" 12.5 ", 1250), ("$1,234.50", 123450), ("0.07", 7), ("$ 3", 300)]
)
def test_typed_amounts_are_read_as_cents(typed: str, cents: int) -> None:
    assert money.from_form(typed) == cents


@pytest.mark.parametrize(
    "typed", ["", "abc", "1.005", "-5", "1e3", "٣", "1 2", ".", "1,00", "5,0", "1,00.00"]
)
def test_a_text_that_is_no_amount_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match="dollars and cents"):
        money.from_form(typed)


@pytest.mark.parametrize("cents", [*range(12), 1725, 6490, 8995, 11800])
def test_four_payments_add_up_and_the_first_ones_have_the_extra_cents(cents: int) -> None:
    four = money.in_four(cents)
    assert sum(four) == cents
    assert list(four) == sorted(four, reverse=True)
    assert four[0] - four[3] == (1 if cents % 4 else 0)


def test_the_offer_shows_the_highest_payment() -> None:
    assert money.offer(2200) == "or 4 payments of $5.50"
    assert money.offer(1725) == "or 4 payments of up to $4.32"


@pytest.mark.parametrize("name", ["SHOP_API_URL", "SHOP_CLIENT_ID", "SHOP_CLIENT_SECRET", "SHOP_AUDIENCE"])
def test_a_missing_setting_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        ShopSettings.from_environment({**ENVIRONMENT, name: ""})


def test_settings_have_the_provider_s_origin_and_do_not_show_secrets(settings: ShopSettings) -> None:
    assert settings.auth_url == settings.api_url == settings.api_origin == "https://pay.test"
    assert "hush" not in repr(settings)


def test_the_remaining_amounts_are_computed_from_the_record() -> None:
    payment = Payment.read(
        {**RECORD, "amount": 90, "voidedAmount": 10, "capturedAmount": 40, "refundedAmount": 15}
    )
    assert [payment.possible(kind) for kind in ("capture", "void", "refund")] == [5000, 5000, 2500]
    assert Payment.read({**RECORD, "orderStatus": "Declined"}).possible("capture") == 0


def test_a_dry_run_is_shown_as_a_list_of_changes() -> None:
    def standing(captured: int, fourth: int) -> dict[str, object]:
        return {"balances": {"captured": captured}, "plan": [{"number": 4, "amount": fourth}]}

    rows = changes({"before": standing(0, 25), "after": standing(20, 5)})
    assert rows == [("Captured", 0, 2000), ("Installment 4", 2500, 500)]


def test_a_stored_reference_keeps_its_amount_until_it_is_refused(store: Store) -> None:
    first = store.write_down(ShopOperation("r", 1001, "capture", 500))
    assert store.write_down(ShopOperation("r", 1001, "capture", 900)).amount == first.amount == 500
    store.finish("r", "refused")
    assert store.write_down(ShopOperation("r", 1001, "capture", 900)).amount == 900
    store.finish("r", "done")
    store.finish("r", "refused")
    assert store.write_down(ShopOperation("r", 1001, "capture", 100)).state == "done"
    assert store.pending(1001) == []
