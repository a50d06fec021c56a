"""Reading a body by the rules of the merchant's profile; a strict refusal says where the lenient one would have read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cuota.core.merchant import BodyProfile, Merchant
from cuota.core.refusal import Refused

ParsedT = TypeVar("ParsedT")
ACCEPTED_BY = "acceptedByProfile"
HINT = (
    " The lenient profile, which is made for shop plugins, accepts this request: see Shop plugins (/docs/plugins), "
    "and ask for your account to be set to it."
)


def read_by_profile(merchant: Merchant, read: Callable[[BodyProfile], ParsedT]) -> ParsedT:
    """What `read` makes of a request by the merchant's profile. Only what strict refuses is read a second time."""
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
    """The same refusal, saying that the lenient profile would have accepted the request."""
    return Refused(
        refused.code,
        refused.message + HINT,
        errors=refused.errors,
        facts={**refused.facts, ACCEPTED_BY: BodyProfile.LENIENT.value},
        retry_after=refused.retry_after,
    )
