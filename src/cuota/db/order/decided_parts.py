"""The parts of the statement that a risk decision adds: the decision's record, the signals, and the guard.

The guard is the row of the consumer's exposure at all merchants. A decision is saved only if the version of that row is
still the one that was read. If two orders of one consumer were decided on the same version, the second decision is stale:
it is made again, and then includes the first order's amount. An erasure changes the version too, so a decision that was
made before the erasure writes nothing about the erased consumer.
"""

from __future__ import annotations

import hashlib
import json

from cuota.core.order.outcome import Outcome
from cuota.db.order.outcome_parts import StatementPart

# The order's row is locked first, as in all statements, so that two transactions never deadlock here.
_MINE = "SELECT 1 FROM orders WHERE merchant_id = :1 AND order_id = :2 AND version = :3 FOR UPDATE"
_GUARDED = """INSERT INTO consumer_exposure AS e (consumer_id, version) SELECT :1::uuid, :2::bigint + 1 FROM mine
    ON CONFLICT (consumer_id) DO UPDATE SET version = excluded.version WHERE e.version = :2 RETURNING 1"""
_DECISION = """INSERT INTO decisions (merchant_id, order_id, decided_at, approved, reasons, policy_version, inputs,
    decision_id, consumer_id, score, credit_limit, inputs_hash) SELECT merchant_id, order_id, :1::timestamptz,
    :2::boolean, :3::text[], :4::text, :5::json, :6::uuid, :7::uuid, :8::integer, :9::bigint, :10::bytea FROM changed"""
# A second attempt for the same order with the same values is not counted twice.
_SIGNALS = """INSERT INTO signals (merchant_id, order_id, kind, value_hash, at) SELECT changed.merchant_id,
    changed.order_id, s.kind, s.value_hash, :3::timestamptz FROM changed, unnest(:1::text[], :2::bytea[])
    AS s (kind, value_hash) ON CONFLICT (merchant_id, order_id, kind, value_hash) DO NOTHING"""


def guard(outcome: Outcome) -> list[StatementPart]:
    """Return the part that checks that the consumer's exposure still has the version that was read."""
    decided, order = outcome.decision, outcome.order
    assert decided is not None
    mine = StatementPart("mine", _MINE, (order.merchant_id, order.order_id, order.version))
    return [mine, StatementPart("guarded", _GUARDED, (decided.consumer_id, decided.exposure))]


def decision(outcome: Outcome) -> StatementPart:
    """Return the part that writes the record of a risk decision."""
    decided = outcome.decision
    assert decided is not None
    made = decided.decision
    inputs = json.dumps(made.inputs)
    values = (
        outcome.at, made.approved, list(made.reasons), made.policy_version, inputs, decided.decision_id,
        decided.consumer_id, made.score, made.limit, hashlib.sha256(inputs.encode()).digest(),
    )  # fmt: skip
    return StatementPart("decision", _DECISION, values)


def signals(outcome: Outcome) -> StatementPart:
    """Return the part that writes the order's signals: hashes of phone, card, address and device."""
    assert outcome.decision is not None
    seen = outcome.decision.signals
    columns = ([signal.kind for signal in seen], [signal.value_hash for signal in seen])
    return StatementPart("signal", _SIGNALS, (*columns, outcome.at))
