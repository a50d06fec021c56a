"""Reads a body by the rules of the merchant's profile, strict or lenient.

If the strict profile refuses a body that the lenient profile would accept, the refusal says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cuota.core.merchant import BodyProfile, Merchant
from cuota.core.refusal import Refused

ParsedT = TypeVar("ParsedT")
ACCEPTED_BY = "acceptedByProfile"
HINT = (
    " The lenient profile, which is made for shop plugins, accepts this request: see Shop plugins (/docs/plugins), "
    "and ask us to switch your account to it."
)


def read_by_profile(merchant: Merchant, read: Callable[[BodyProfile], ParsedT]) -> ParsedT:
    """Call `read` with the merchant's profile and return its result. Raises Refused if `read` refuses the body.

    Only a body that the strict profile refuses is read a second time, to find out whether to add the hint.
    """
    try:
        return read(merchant.profile)
    except Refused as refused:
        if merchant.profile is BodyProfile.STRICT and _lenient_reads(read):
            raise hinted(refused) from None
        raise


def _lenient_reads(read: Callable[[BodyProfile], object]) -> bool:
    try:
        read(BodyProfile.LENIENT)
    except Refused:
        return False
    return True


def hinted(refused: Refused) -> Refused:
    """Return the same refusal with the hint that the lenient profile would accept the request."""
    return Refused(
        refused.code,
        refused.message + HINT,
        errors=refused.errors,
        facts={**refused.facts, ACCEPTED_BY: BodyProfile.LENIENT.value},
        retry_after=refused.retry_after,
    )
