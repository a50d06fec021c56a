"""Writes ISO 20022 credit transfers: pain.001.001.09, which banks in most of the world accept.

`EndToEndId` is the payout's id without hyphens. The bank's statement repeats this id, so the service finds the payment
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from xml.etree import ElementTree as ET

from cuota.core import money
from cuota.core.payout.bank_order import Credit, Originator, plain

NAMESPACE = "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"
_US_BANKS = "USABA"
_NAME = 140


def pain001_file(
    originator: Originator, payments: Sequence[Credit], file_number: int, made_at: datetime, effective: date
) -> str:
    """Return a file with one payment instruction for all credits. `file_number` counts all files."""
    assert payments
    document = ET.Element("Document", xmlns=NAMESPACE)
    transfer = ET.SubElement(document, "CstmrCdtTrfInitn")
    count, total = str(len(payments)), money.text_of(sum(credit.amount for credit in payments))
    header = ET.SubElement(transfer, "GrpHdr")
    _texts(header, MsgId=message_id(file_number), CreDtTm=f"{made_at:%Y-%m-%dT%H:%M:%S}Z", NbOfTxs=count)
    _texts(header, CtrlSum=total)
    _texts(ET.SubElement(header, "InitgPty"), Nm=plain(originator.company, _NAME))
    payment = ET.SubElement(transfer, "PmtInf")
    # The bank posts payments one by one, so that the statement shows each payment.
    _texts(
        payment,
        PmtInfId=message_id(file_number),
        PmtMtd="TRF",
        BtchBookg="false",
        NbOfTxs=count,
        CtrlSum=total,
    )
    _texts(ET.SubElement(payment, "ReqdExctnDt"), Dt=effective.isoformat())
    _texts(ET.SubElement(payment, "Dbtr"), Nm=plain(originator.company, _NAME))
    _account(payment, "DbtrAcct", originator.account)
    _bank(payment, "DbtrAgt", originator.routing)
    for credit in payments:
        _credit(payment, credit)
    ET.indent(document)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(document, encoding="unicode") + "\n"


def message_id(file_number: int) -> str:
    """Return the name of a file in the messages to and from the bank."""
    return f"CUOTA-{file_number}"


def _credit(payment: ET.Element, credit: Credit) -> None:
    transfer = ET.SubElement(payment, "CdtTrfTxInf")
    _texts(
        ET.SubElement(transfer, "PmtId"), InstrId=str(credit.order_number), EndToEndId=credit.payout_id.hex
    )
    amount = ET.SubElement(ET.SubElement(transfer, "Amt"), "InstdAmt", Ccy=credit.currency)
    amount.text = money.text_of(credit.amount)
    _bank(transfer, "CdtrAgt", credit.routing)
    _texts(ET.SubElement(transfer, "Cdtr"), Nm=plain(credit.name, _NAME))
    _account(transfer, "CdtrAcct", credit.account)
    _texts(ET.SubElement(transfer, "RmtInf"), Ustrd=f"Payout {credit.payout_id}")


def _texts(parent: ET.Element, **texts: str) -> None:
    for name, text in texts.items():
        ET.SubElement(parent, name).text = text


def _account(parent: ET.Element, name: str, account: str) -> None:
    holder = ET.SubElement(ET.SubElement(parent, name), "Id")
    _texts(ET.SubElement(holder, "Othr"), Id=account)


def _bank(parent: ET.Element, name: str, routing: str) -> None:
    institution = ET.SubElement(ET.SubElement(parent, name), "FinInstnId")
    member = ET.SubElement(institution, "ClrSysMmbId")
    _texts(ET.SubElement(member, "ClrSysId"), Cd=_US_BANKS)
    _texts(member, MmbId=routing)
