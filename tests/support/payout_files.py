"""Writes payouts as files for a bank, and reads the files with other authors' programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from cuota.core.payout.bank_order import Credit, Originator
from cuota.core.payout.nacha import nacha_file
from cuota.core.payout.pain001 import pain001_file
from support.bank import readers

US = Originator("Cuota Payments Inc.", "1234567890", "First Bank of Springfield", "011000015", "000111222333")


async def amounts_in_files(payouts: Sequence[Mapping[str, Any]]) -> list[int]:
    """Write one file for the payouts of each cutoff, in both formats. Return the cents of each payout that carta-ach
    reads.

    ISO's schema must accept the same payments as pain.001.
    """
    nacha, iso = [], []
    for number, cutoff in enumerate(sorted({row["cutoff"] for row in payouts}), 1):
        paid = [row for row in payouts if row["cutoff"] == cutoff]
        credits_ = [
            Credit(row["payout_id"], n, "Shop", "021000021", "000123456789", row["amount"], "USD")
            for n, row in enumerate(paid, 1)
        ]
        day = (cutoff + timedelta(days=1)).date()
        nacha.append(nacha_file(US, credits_, number, cutoff, day))
        iso.append(pain001_file(US, credits_, number, cutoff, day))
    found = await readers.read(nacha=nacha, pain001=iso)
    assert [problem for problem in found["pain001"] if problem] == []
    return [
        int(entry["entry_detail"]["amount"])
        for file in found["nacha"]
        for batch in file["batches"]
        for entry in batch["entries"]
    ]
