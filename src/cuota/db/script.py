"""Splits a migration into its statements. Citus sends each DDL statement to the shards as text, so it needs them one by one."""

from __future__ import annotations

import re

# A semicolon inside these ends no statement: comments, quoted names, quoted text, and dollar-quoted bodies.
_PART = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | "[^"]*" | \b[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*'
    | \$(?P<tag>[A-Za-z_]\w*|)\$.*?\$(?P=tag)\$ | ; | [^;'"$/eE-]+ | .""",
    re.DOTALL | re.VERBOSE,
)


def statements_of(sql: str) -> list[str]:
    """Return the statements of a script, without comments between them and without their semicolons.

    A function whose body is not quoted (BEGIN ATOMIC) is not supported; migrations have none.
    """
    found: list[str] = []
    parts: list[str] = []
    for match in _PART.finditer(sql):
        text = match.group()
        if text == ";":
            found.append("".join(parts).strip())
            parts = []
        elif text.startswith(("--", "/*")):
            parts.append(" ")
        else:
            parts.append(text)
    found.append("".join(parts).strip())
    return [statement for statement in found if statement]
