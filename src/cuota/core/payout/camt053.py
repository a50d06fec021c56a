"""Reads ISO 20022 bank statements: camt.053.001.08, and other versions with the same elements.

A booked debit that names our `EndToEndId` was paid. A booked credit that names it, with a return reason or as a
reversal, is a returned payment. All other entries of the statement are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID
from xml.etree import ElementTree as ET

from cuota.core import money
from cuota.core.payout.bank_report import BadReport, Reported

_NAMESPACE = re.compile(r"\{(urn:iso:std:iso:20022:tech:xsd:camt\.053\.001\.[0-9]{2})\}Document", re.ASCII)
_OURS = re.compile(r"[0-9a-f]{32}", re.ASCII)
_FILE = re.compile(r"CUOTA-([1-9][0-9]{0,17})", re.ASCII)
NO_REASON = "NARR"
"""The reason of a return without a code: ISO 20022's code for `see the text`."""


class _NoDoctype(ET.TreeBuilder):
    """A parser that refuses a document type, because it can make a small file expand to any size."""

    def doctype(self, *_: str | None) -> None:
        raise BadReport("The file declares a document type, which no bank statement has.")


def read_camt053(content: bytes) -> list[Reported]:
    """Return our payments in a statement. Raises BadReport."""
    try:
        root = ET.fromstring(content, parser=ET.XMLParser(target=_NoDoctype()))  # noqa: S314, a document type is refused
    except ET.ParseError as error:
        raise BadReport(f"The file is not complete XML: {error}.") from None
    found = _NAMESPACE.fullmatch(root.tag)
    if found is None:
        raise BadReport(
            "The file is not a bank statement (camt.053): its first element must be Document of camt.053.001.08."
        )
    names = {"": found[1]}
    return [
        item for entry in root.iterfind("BkToCstmrStmt/Stmt/Ntry", names) for item in _entry(entry, names)
    ]


def _entry(entry: ET.Element, names: dict[str, str]) -> Iterator[Reported]:
    if (entry.findtext("Sts/Cd", "", names) or entry.findtext("Sts", "", names)).strip() != "BOOK":
        return
    back = entry.findtext("CdtDbtInd", "", names) == "CRDT"
    reversal = entry.findtext("RvslInd", "false", names) in {"true", "1"}
    details = entry.findall("NtryDtls/TxDtls", names)
    batch = _FILE.fullmatch(entry.findtext("NtryDtls/Btch/PmtInfId", "", names))
    if not details and batch is not None and not back:
        yield Reported(_cents(entry, names), file_number=int(batch[1]))
    for item in details:
        name = item.findtext("Refs/EndToEndId", "", names).replace("-", "").lower()
        if not _OURS.fullmatch(name):
            continue
        reason = item.findtext("RtrInf/Rsn/Cd", None, names) or item.findtext("RtrInf/Rsn/Prtry", None, names)
        if not back and reason is None:
            yield Reported(_cents(item, names, entry), payout_id=UUID(name))
        elif back and (reason is not None or reversal):
            yield Reported(_cents(item, names, entry), (reason or NO_REASON)[:35], payout_id=UUID(name))


def _cents(element: ET.Element, names: dict[str, str], entry: ET.Element | None = None) -> int:
    """Return the amount of a transaction, or of its entry if only the entry has an amount."""
    text = element.findtext("Amt", None, names) or element.findtext("AmtDtls/TxAmt/Amt", None, names)
    if text is None and entry is not None:
        text = entry.findtext("Amt", None, names)
    try:
        return money.cents_of((text or "").strip())
    except money.BadAmount as error:
        raise BadReport(f"The statement has an amount {text!r}, which {error}.") from None
