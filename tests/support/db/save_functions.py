"""Reads the statements of the database functions that save orders, from the migrations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from cuota.db.migrate import files
from cuota.db.order import outcomes

PARAMETERS = {
    "save_orders": outcomes.SAVE_PARAMETERS,
    "create_orders": outcomes.CREATE_PARAMETERS,
    "save_claims": outcomes.SAVE_CLAIMS_PARAMETERS,
    "save_plan_change": outcomes.SAVE_CHANGE_PARAMETERS,
    "save_reviewed": outcomes.SAVE_REVIEWED_PARAMETERS,
}
_FUNCTION = re.compile(
    r"CREATE FUNCTION (\w+)\(([^()]*)\) RETURNS \S+ LANGUAGE plpgsql AS \$\$(.*?)\$\$", re.DOTALL
)
STATEMENT = re.compile(r"\b((?:PERFORM|INSERT INTO|UPDATE|DELETE FROM)\b.*?)(?:;|\bLOOP\b)", re.DOTALL)
_JSON = re.compile(r"json_to_recordset\((\w+)\) AS n \((.*?)\)\s+(?:WHERE|LOOP)", re.DOTALL)
_DECLARED = re.compile(r"^    (\w+) (\S+) :=", re.MULTILINE)


@cache
def sources() -> dict[str, tuple[str, str]]:
    """Return the parameters and the body of each function that the migrations create: its newest definition,
    without comments."""
    found = {}
    for _, sql in files():
        for name, parameters, body in _FUNCTION.findall(re.sub(r"--.*", "", sql)):
            found[name] = (parameters, body)
    return found


def _columns(text: str) -> tuple[str, ...]:
    return tuple(" ".join(column.split()) for column in text.split(","))


def parameters(function: str) -> tuple[str, ...]:
    """Return a function's parameters, each as `name type`."""
    return _columns(sources()[function][0])


def json_columns(function: str) -> dict[str, tuple[str, ...]]:
    """Return, for each JSON parameter, the fields that a function reads from its objects, each as `name
    type`."""
    return {name: _columns(columns) for name, columns in _JSON.findall(sources()[function][1])}


def statements() -> Iterator[tuple[str, str]]:
    """Return each statement on a table, as (function.number, SQL that can be prepared). The merchant is
    $1."""
    for function in PARAMETERS:
        body = sources()[function][1]
        types = dict(column.split() for column in parameters(function))
        types |= dict(_DECLARED.findall(body))
        for number, statement in enumerate(STATEMENT.findall(body), 1):
            yield f"{function}.{number}", _prepared(" ".join(statement.split()), types)


def _prepared(statement: str, types: dict[str, str]) -> str:
    """Return the statement with a numbered parameter in place of each parameter, variable and field of the
    function."""
    numbers: dict[str, int] = {"merchant": 1} if "merchant," in statement or "= merchant" in statement else {}

    def asked(match: re.Match[str]) -> str:
        name = match[0]
        kind = "integer" if name in {"i", "r.nth"} else types.get(name)
        if kind is None and not name.startswith("r."):
            return name
        place = f"${numbers.setdefault(name, len(numbers) + 1)}"
        if name == "merchant":
            return f"{place}::uuid"
        return f"({place}::{kind})" if kind else place

    head, table, rest = re.fullmatch(
        r"(PERFORM 1 FROM|INSERT INTO|UPDATE|DELETE FROM) (\w+)(.*)", statement
    ).groups()  # type: ignore[union-attr]
    head = head.replace("PERFORM", "SELECT")
    # The first brackets of an INSERT contain column names, so a name there is never a parameter.
    return f"{head} {table}{re.sub(r'(?<![.$])[a-z_]+(?:[.][a-z_0-9]+)?', asked, rest)}"
