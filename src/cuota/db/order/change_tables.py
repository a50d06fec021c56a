"""The extra rows that an outcome about a change of a plan writes: the parameters of `save_plan_change`."""

from __future__ import annotations

from operator import attrgetter

from cuota.core.order.outcome import Outcome
from cuota.db.order.columns import Values
from cuota.db.order.save_call import JsonTable

# Values are written by name, like the fields of PlanChange, so that no value gets into the wrong column.
CHANGE = (
    "number smallint", "change_id uuid", "kind text", "changed_at timestamptz", "changed_by text", "days smallint", "waived bigint",
    "payments smallint", "transfers integer", "before json", "after json", "reason bytea", "text text", "text_hash text",
    "message_id uuid",
)  # fmt: skip
_CHANGE = JsonTable("change", CHANGE)
_CHANGE_FIELDS = attrgetter(*(column.split()[0] for column in CHANGE))
PARAMETERS = _CHANGE.parameters


def change_values(outcome: Outcome) -> Values:
    """Return the values of PARAMETERS."""
    change = outcome.plan_change
    return _CHANGE.values([_CHANGE_FIELDS(change)] if change is not None else [])
