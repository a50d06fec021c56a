"""core/risk/facts: the stored facts are enough to repeat a decision, and do not identify the person."""

from __future__ import annotations

import json

import pytest

from cuota.core.risk.facts import Approvals, BadInputs, Facts, History, Velocity
from support.core.risk_values import ALL_MISMATCHES, facts

FULL = facts(
    history=History(3, 9, 1, 0, 12_345, 2, 99, 1),
    velocity=Velocity(1, 2, 3, 4),
    mismatches=ALL_MISMATCHES,
    approvals=Approvals(
        "trial",
        {"sameDevice": False, "accountCreationDate": 800, "fulfillmentMethod": "online"},
        "m7",
        -3,
        (("a", -3),),
    ),
    steer="approve",
)


@pytest.mark.parametrize("known", [FULL, facts()], ids=["everything", "nothing"])
def test_facts_are_read_back_exactly_from_their_stored_json(known: Facts) -> None:
    assert Facts.of_inputs(json.loads(json.dumps(known.as_inputs()))) == known


def test_booleans_and_numbers_keep_their_types() -> None:
    read = Facts.of_inputs(json.loads(json.dumps(FULL.as_inputs()))).approvals
    assert read is not None
    assert {name: type(value) for name, value in read.fields.items()} == {
        "sameDevice": bool,
        "accountCreationDate": int,
        "fulfillmentMethod": str,
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"amount": "100"}, "amount must be a whole number"),
        ({"amount": True}, "amount must be a whole number"),
        ({"amount": 1.5}, "amount must be a whole number"),
        ({"currency": None}, "currency must be text"),
        ({"history": None}, "history must be an object"),
        ({"velocity": {"phone": 1}}, "velocity must have exactly"),
        ({"steer": "maybe"}, "steer must be one of"),
        ({"surname": "Ruiz"}, "it differs in surname"),
        ({"approvals": {"mode": "on"}}, "approvals must have exactly"),
        (
            {"mismatches": {**FULL.as_inputs()["mismatches"], "surname": 1}},
            "mismatches.surname must be true or false",
        ),  # type: ignore[dict-item]
        (
            {"approvals": {**FULL.as_inputs()["approvals"], "mode": "perhaps"}},
            "approvals.mode must be one of",
        ),  # type: ignore[dict-item]
        ({"approvals": {**FULL.as_inputs()["approvals"], "fields": [1]}}, "fields as an object"),  # type: ignore[dict-item]
        (
            {"approvals": {**FULL.as_inputs()["approvals"], "fields": {"a": 1.5}}},
            "approvals.fields.a must be",
        ),  # type: ignore[dict-item]
        ({"approvals": {**FULL.as_inputs()["approvals"], "contributions": [["a"]]}}, "each contribution"),  # type: ignore[dict-item]
    ],
)
def test_stored_inputs_of_another_shape_are_refused_and_the_error_names_the_place(
    change: dict[str, object], said: str
) -> None:
    with pytest.raises(BadInputs, match=said):
        Facts.of_inputs({**FULL.as_inputs(), **change})


def test_inputs_of_an_earlier_release_s_decisions_are_refused() -> None:
    with pytest.raises(BadInputs, match="inputs must have exactly"):
        Facts.of_inputs({"amount": 10_000, "currency": "USD", "sandbox": True})
