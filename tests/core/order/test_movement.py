"""core/order/movement: a repeated key, and the rules that the three operations share."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from cuota.core.order.movement import Movement, MovementKind, refuse_duplicate, shown_balances
from cuota.core.refusal import Code, Refused
from support.core.values import MOVEMENT, NOW, approved, asked

EARLIER = Movement(MovementKind.CAPTURE, MOVEMENT, "ship-1", 3050, NOW)
WHEN = "2026-11-21T09:30:00.000Z"


def _repeat(amount: int) -> Refused:
    return refuse_duplicate(
        approved(captured=3050), asked(MovementKind.CAPTURE, amount, "ship-1"), EARLIER, WHEN
    )


def _original(refused: Refused) -> dict[str, Any]:
    original = refused.facts["original"]
    assert isinstance(original, dict)
    return original


def test_a_repeated_request_gets_the_original_movement() -> None:
    refused = _repeat(3050)
    assert refused.code is Code.DUPLICATE_REFERENCE
    assert _original(refused) == {
        "operation": "capture", "id": str(MOVEMENT), "amount": Decimal("30.50"), "dateTime": WHEN, "sameRequest": True,
    }  # fmt: skip
    assert "30.50" in refused.message


def test_a_repeat_with_another_amount_is_reported_as_a_different_request() -> None:
    refused = _repeat(3051)
    assert _original(refused)["sameRequest"] is False
    assert _original(refused)["amount"] == Decimal("30.50"), (
        "the amount that was applied, not the repeated one"
    )
    assert refused.message != _repeat(3050).message


def test_a_repeat_shows_the_balances_too() -> None:
    assert _repeat(3050).facts["balances"] == shown_balances(approved(captured=3050))


def test_the_three_kinds_have_the_names_of_their_endpoints() -> None:
    assert [kind.value for kind in MovementKind] == ["capture", "void", "refund"]


def test_balances_are_exact_decimals_with_two_places() -> None:
    shown = shown_balances(approved(999_999_999_999_999_999))
    assert str(shown["orderAmount"]) == "9999999999999999.99"
    assert str(shown["captured"]) == "0.00"


def test_movements_compare_by_value() -> None:
    assert Movement(MovementKind.CAPTURE, UUID(int=3), "ship-1", 3050, NOW) == EARLIER
