"""The extra rows that an outcome about a dispute or a return notice writes: the parameters of `save_claims`."""

from __future__ import annotations

from operator import attrgetter

from cuota.core.dispute.dispute import Dispute
from cuota.core.order.outcome import Outcome
from cuota.db.order.columns import CLAIMED, Values, claimed_row
from cuota.db.order.save_call import JsonTable

# Values are written by name, like the fields of Dispute, so that no value gets into the wrong column.
DISPUTE = (
    "dispute_id uuid", "kind text", "reason text", "status text", "amount bigint", "withheld bigint", "opened_by text",
    "opened_at timestamptz", "respond_by timestamptz", "reminded boolean", "submitted_at timestamptz",
    "decided_at timestamptz", "appeal_by timestamptz", "final boolean", "appealed_by text", "appealed_at timestamptz",
    "closed_at timestamptz", "outcome text", "movement_id uuid", "release_id uuid", "charge_id uuid", "reference text",
    "due_at timestamptz",
)  # fmt: skip
_DISPUTES = JsonTable("claims_disputes", DISPUTE)
_EVIDENCE = JsonTable(
    "claims_evidence",
    ("dispute_id uuid", "evidence_id uuid", "party text", "text bytea", "at timestamptz", "send_at timestamptz"),
)  # fmt: skip
_RETURNED = JsonTable(
    "claims_returned",
    (
        "return_id uuid", "carrier text", "tracking text", "noticed_at timestamptz", "hold_until timestamptz",
        "installment smallint", "due_on date", "ended_at timestamptz",
    ),
)  # fmt: skip
_RETURNED_FIELDS = attrgetter(*(column.split()[0] for column in _RETURNED.columns))
_DISPUTE_FIELDS = attrgetter(*(column.split()[0] for column in DISPUTE))
PARAMETERS = (
    *(f"claims_{typed}" for typed in CLAIMED),
    *_DISPUTES.parameters,
    *_EVIDENCE.parameters,
    *_RETURNED.parameters,
)


def claim_values(outcome: Outcome) -> Values:
    """Return the values of PARAMETERS."""
    evidence, returned = outcome.evidence, outcome.returned
    written = []
    if evidence is not None:
        send_at = outcome.at if evidence.outgoing else None
        written = [
            (evidence.dispute_id, evidence.evidence_id, evidence.party, evidence.text, outcome.at, send_at)
        ]
    return (
        *claimed_row(outcome.order),
        *_DISPUTES.values([_dispute_row(dispute) for dispute in outcome.disputes]),
        *_EVIDENCE.values(written),
        *_RETURNED.values([_RETURNED_FIELDS(returned)] if returned is not None else []),
    )


def _dispute_row(dispute: Dispute) -> Values:
    values: Values = _DISPUTE_FIELDS(dispute)
    return values
