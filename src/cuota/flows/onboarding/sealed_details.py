"""Encrypts a business and its owners, and makes the hashes that identify the screened names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from uuid import UUID

from cuota.core.consumer import Address
from cuota.core.onboarding.business import Business, BusinessType
from cuota.core.onboarding.owner import Owner, OwnerDetails
from cuota.core.onboarding.screening import ScreenedName
from cuota.db.onboarding.merchant_owners import SealedOwner
from cuota.db.vault import Vault


def seal_business(vault: Vault, merchant_id: UUID, business: Business) -> bytes:
    """Encrypt a business."""
    return vault.encrypt(json.dumps(asdict(business)), f"merchant-business:{merchant_id}")


def open_business(vault: Vault, merchant_id: UUID, sealed: bytes) -> Business:
    """Return a business. Raises WrongKey."""
    value = json.loads(vault.decrypt(sealed, f"merchant-business:{merchant_id}"))
    return Business(**{**value, "type": BusinessType(value["type"]), "address": Address(**value["address"])})


def seal_owner(vault: Vault, owner: Owner) -> SealedOwner:
    """Encrypt an owner's name and date of birth."""
    details = owner.details
    text = json.dumps({"name": details.name, "born": details.born.isoformat()})
    sealed = vault.encrypt(text, f"merchant-owner:{owner.owner_id}")
    return SealedOwner(owner.owner_id, owner.version, sealed, details.share, details.controlling)


def open_owner(vault: Vault, sealed: SealedOwner) -> Owner:
    """Return an owner. Raises WrongKey."""
    value = json.loads(vault.decrypt(sealed.details, f"merchant-owner:{sealed.owner_id}"))
    born = date.fromisoformat(value["born"])
    details = OwnerDetails(value["name"], born, sealed.share, sealed.controlling)
    return Owner(sealed.owner_id, sealed.version, details)


def subject_hash(vault: Vault, subject: ScreenedName) -> bytes:
    """Return the keyed hash of a name. The name cannot be read from the hash."""
    return vault.hash("screening-subject", subject.key)


def names_hash(vault: Vault, subjects: Sequence[ScreenedName]) -> bytes | None:
    """Return the keyed hash of all names of a merchant, or None if there are none."""
    keys = "\n\n".join(sorted(each.key for each in subjects))
    return vault.hash("screening-names", keys) if subjects else None
