"""Reads the settings of bank files. The errors (ValueError) say what a value must be, and never contain the value."""

from __future__ import annotations

import re

from cuota.core.payout.bank_account import BadBankAccount, read_bank_details


def company_id(text: str) -> str:
    """Read the id that a bank gives to a company that orders payments."""
    if not re.fullmatch(r"[A-Za-z0-9]{1,10}", text, re.ASCII):
        raise ValueError("must be 1 to 10 letters and digits")
    return text


def routing_number(text: str) -> str:
    """Read the routing number of a US bank."""
    try:
        return read_bank_details(text, "0000").routing
    except BadBankAccount:
        digits = re.sub(r"[ -]", "", text)
        why = ": its check digit is wrong" if re.fullmatch(r"[0-9]{9}", digits, re.ASCII) else ""
        raise ValueError(f"must be a routing number of 9 digits{why}") from None


def account_number(text: str) -> str:
    """Read the number of a bank account."""
    if not re.fullmatch(r"[0-9]{4,17}", text, re.ASCII):
        raise ValueError("must have 4 to 17 digits")
    return text
