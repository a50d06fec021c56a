"""Reads ISO 20022 bank statements: camt.053.001.08, and other versions with the same elements.

A booked debit that names our `EndToEndId` was paid. A booked credit that names it, with a return reason, as a reversal or with
the code of a return, is a returned payment. A credit without any of these, a debit with one of them, and the reversal of a
whole file are unclear: a person must look at them. Entries that name none of our payments and files are ignored.
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
    except BadReport:
        raise
    except (ET.ParseError, LookupError, ValueError) as error:
        # An unknown or unsupported encoding is a LookupError or a ValueError.
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
    named = [(_name(item, names), item) for item in details]
    ours = [(name, item) for name, item in named if _OURS.fullmatch(name)]
    batch = _FILE.fullmatch(entry.findtext("NtryDtls/Btch/PmtInfId", "", names))
    if not ours and batch is not None:
        cents, currency = _amount(entry, names)
        yield Reported(cents, file_number=int(batch[1]), currency=currency, unclear=back or reversal)
    for name, item in ours:
        cents, currency = _amount(item, names, entry)
        reason = item.findtext("RtrInf/Rsn/Cd", None, names) or item.findtext("RtrInf/Rsn/Prtry", None, names)
        came_back = reason is not None or reversal or _is_return(entry, names)
        why = (reason or NO_REASON)[:35] if back else None
        # A credit comes back, and a debit does not.
        yield Reported(cents, why, payout_id=UUID(name), currency=currency, unclear=back is not came_back)


def _is_return(entry: ET.Element, names: dict[str, str]) -> bool:
    """Return whether the bank calls the entry a return, by its code of the transaction."""
    return entry.findtext("BkTxCd/Domn/Fmly/SubFmlyCd", "", names) == "RRTN"


def _name(item: ET.Element, names: dict[str, str]) -> str:
    return item.findtext("Refs/EndToEndId", "", names).strip().replace("-", "").lower()


def _amount(element: ET.Element, names: dict[str, str], entry: ET.Element | None = None) -> tuple[int, str]:
    """Return cents and currency of a transaction, or of its entry if only the entry has an amount."""
    found = element.find("Amt", names)
    if found is None:
        found = element.find("AmtDtls/TxAmt/Amt", names)
    if found is None and entry is not None:
        found = entry.find("Amt", names)
    text = ((found.text or "") if found is not None else "").strip()
    try:
        return money.cents_of(text), found.get("Ccy", "") if found is not None else ""
    except money.BadAmount as error:
        raise BadReport(f"The statement has an amount {text!r}, which {error}.") from None
