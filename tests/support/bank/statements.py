"""Makes the files that a bank sends: bank statements (camt.053.001.08) and files of returned ACH payments."""

from __future__ import annotations

STATEMENT = """<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>
<GrpHdr><MsgId>STMT-1</MsgId><CreDtTm>2026-11-24T18:00:00Z</CreDtTm></GrpHdr>
<Stmt><Id>1</Id><CreDtTm>2026-11-24T18:00:00Z</CreDtTm>
<Acct><Id><Othr><Id>000111222333</Id></Othr></Id><Ccy>USD</Ccy></Acct>
<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="USD">1000.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-24</Dt></Dt></Bal>
{entries}
</Stmt></BkToCstmrStmt></Document>
"""
ODFI = "01100001"
BANK_FILES = {
    "CUOTA_BANK_RAIL": "files",
    "CUOTA_BANK_COMPANY": "Cuota Payments Inc.",
    "CUOTA_BANK_COMPANY_ID": "1234567890",
    "CUOTA_BANK_NAME": "First Bank",
    "CUOTA_BANK_ROUTING": "011000015",
    "CUOTA_BANK_ACCOUNT": "000111222333",
}
"""The settings of the rail `files`."""


def statement(*entries: str) -> bytes:
    """Return a statement with these entries."""
    return STATEMENT.format(entries="\n".join(entries)).encode()


def booked(
    side: str,
    amount: str,
    end_to_end: str | None,
    *,
    reason: str | None = None,
    reversal: bool = False,
    status: str = "BOOK",
    batch: str | None = None,
) -> str:
    """Return one entry: a credit or a debit of one transaction, or of a whole file (`batch`)."""
    money = f'<Amt Ccy="USD">{amount}</Amt><CdtDbtInd>{side}</CdtDbtInd>'
    details = f"<Btch><PmtInfId>{batch}</PmtInfId></Btch>" if batch else ""
    if end_to_end is not None:
        returned = f"<RtrInf><Rsn><Cd>{reason}</Cd></Rsn></RtrInf>" if reason else ""
        details += f"<TxDtls><Refs><EndToEndId>{end_to_end}</EndToEndId></Refs>{money}{returned}</TxDtls>"
    back = "<RvslInd>true</RvslInd>" if reversal else ""
    return (
        f"<Ntry>{money}{back}<Sts><Cd>{status}</Cd></Sts><BookgDt><Dt>2026-11-24</Dt></BookgDt>"
        "<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd><SubFmlyCd>DMCT</SubFmlyCd></Fmly></Domn></BkTxCd>"
        f"<NtryDtls>{details}</NtryDtls></Ntry>"
    )


def nacha_returns(*items: tuple[str, str, int] | tuple[str, str, int, str]) -> str:
    """Return a file of returned payments. Each payment has the addendum's first six characters, the trace
    number and the cents."""
    lines = [
        f"101 011000015{'1234567890':>10}2611260905A094101{'Cuota Payments Inc.':<23}{'First Bank':<23}{'':8}",
        f"5200{'Cuota Payments I':<16}{'':20}1234567890CCD{'PAYOUT':<10}261126261126   1{ODFI}0000001",
    ]
    for number, (kind, trace, cents, *corrected) in enumerate(items, 1):
        lines += [
            f"621021000021{'123456789':<17}{cents:010d}{'42':<15}{'A shop':<22}  1{ODFI}{number:07d}",
            f"{kind}{trace}{'':6}{'02100002'}{(corrected or [''])[0]:<44}{ODFI}{number:07d}",
        ]
    hashed, total = 2_100_002 * len(items), sum(item[2] for item in items)
    sums = f"{hashed:010d}{0:012d}{total:012d}"
    lines += [
        f"8200{2 * len(items):06d}{sums}1234567890{'':25}{ODFI}0000001",
        f"9000001{(len(lines) + 11) // 10:06d}{2 * len(items):08d}{sums}{'':39}",
    ]
    lines += ["9" * 94] * (-len(lines) % 10)
    assert all(len(line) == 94 for line in lines)
    return "\r\n".join(lines) + "\r\n"
