"""Reads the NACHA files that a bank sends back: returned payments (addendum 99) and notifications of change (addendum 98)."""

from __future__ import annotations

import re

from cuota.core.payout.bank_report import BadReport, ChangeNotice, Reported

RETURN, CHANGE = "799", "798"
_LINE = 94
# Codes with which the merchant's bank rejects or contests our bank's return: nothing came back.
_DISHONORED = re.compile(r"R[67][0-9]", re.ASCII)
_REASON = re.compile(r"[RC][0-9]{2}", re.ASCII)
_DIGITS = re.compile(r"[0-9]+", re.ASCII)


def read_nacha_return(text: str) -> tuple[list[Reported], list[ChangeNotice]]:
    """Return the returned payments and the notifications of change of a file. Raises BadReport."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not lines[0].startswith("101"):
        raise BadReport("The file is not a NACHA file: its first line must begin with 101.")
    returned: list[Reported] = []
    notices: list[ChangeNotice] = []
    entry, entries, ended = "", 0, False
    for number, raw in enumerate(lines, 1):
        line = raw.ljust(_LINE)
        if len(line) != _LINE:
            raise BadReport(f"Line {number} has {len(line)} characters; a NACHA line has {_LINE}.")
        if line[0] == "6":
            entry, entries = line, entries + 1
        elif line[0] == "7":
            entries += 1
            _read_addendum(number, entry, line, returned, notices)
        elif line[0] == "9" and not ended:
            ended = True
            if _number(number, line[13:21]) != entries:
                raise BadReport(
                    f"The file says that it has {line[13:21]} entries; it has {entries}. It is cut off."
                )
    if not ended:
        raise BadReport("The file has no last line (type 9). It is cut off.")
    return returned, notices


def _read_addendum(
    number: int, entry: str, line: str, returned: list[Reported], notices: list[ChangeNotice]
) -> None:
    kind = line[:3]
    if kind not in {RETURN, CHANGE}:
        return
    if not entry:
        raise BadReport(f"Line {number} is an addendum without an entry before it.")
    reason, trace = line[3:6], line[6:21]
    if not _REASON.fullmatch(reason) or not _DIGITS.fullmatch(trace):
        raise BadReport(f"Line {number} has no reason code and trace number where a return has them.")
    if kind == RETURN:
        unclear = _DISHONORED.fullmatch(reason) is not None
        returned.append(Reported(_number(number, entry[29:39]), reason, trace=trace, unclear=unclear))
    else:
        notices.append(ChangeNotice(trace, reason, line[35:64].strip()))


def _number(number: int, digits: str) -> int:
    if not _DIGITS.fullmatch(digits):
        raise BadReport(f"Line {number} has {digits!r} where a number belongs.")
    return int(digits)
