"""The settings whose value is used as it was read, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuota.core.risk.adverse import AGENCY

# By the field in `Settings`: the name of the setting, and the default.
_PLAIN: dict[str, tuple[str, object]] = {
    "database_url": ("CUOTA_DATABASE_URL", None),
    "database_owner_url": ("CUOTA_DATABASE_OWNER_URL", None),
    "database_entry_url": ("CUOTA_DATABASE_ENTRY_URL", None),
    "old_secret_keys": ("CUOTA_SECRET_KEY_OLD", ()),
    "order_minutes": ("CUOTA_ORDER_MINUTES", 60),
    "authorization_days": ("CUOTA_AUTHORIZATION_DAYS", 13),
    "write_off_days": ("CUOTA_WRITE_OFF_DAYS", 120),
    "card_rail": ("CUOTA_CARD_RAIL", "sandbox"),
    "cards_kept": ("CUOTA_CARD_RAILS_KEPT", ()),
    "banks_kept": ("CUOTA_BANK_RAILS_KEPT", ()),
    "onboarding": ("CUOTA_ONBOARDING", "off"),
    "screening_days": ("CUOTA_SCREENING_DAYS", 1),
    "message_rail": ("CUOTA_MESSAGE_RAIL", "sandbox"),
    "pool_size": ("CUOTA_POOL_SIZE", 16),
    "brand_accent": ("CUOTA_BRAND_ACCENT", "#0B6E63"),
    "brand_logo": ("CUOTA_BRAND_LOGO", None),
    "help_url": ("CUOTA_HELP_URL", None),
    "privacy_url": ("CUOTA_PRIVACY_URL", None),
    "terms_url": ("CUOTA_TERMS_URL", None),
    "creditor_agency": ("CUOTA_CREDITOR_AGENCY", AGENCY),
    "policy": ("CUOTA_POLICY", None),
    "keep_abandoned_days": ("CUOTA_KEEP_ABANDONED_DAYS", 90),
    "keep_declined_days": ("CUOTA_KEEP_DECLINED_DAYS", 760),
    "keep_messages_days": ("CUOTA_KEEP_MESSAGES_DAYS", 760),
    "keep_attempts_days": ("CUOTA_KEEP_ATTEMPTS_DAYS", 90),
    "desk_fresh_above": ("CUOTA_DESK_CODE_ABOVE", 50_000),
    "desk_second_above": ("CUOTA_DESK_SECOND_PERSON_ABOVE", None),
    "metrics_listen": ("CUOTA_METRICS_LISTEN", None),
    "log_level": ("CUOTA_LOG_LEVEL", "info"),
    "trusted_proxies": ("CUOTA_TRUSTED_PROXIES", ()),
}


def plain(given: Mapping[str, object]) -> dict[str, Any]:
    """Return these settings by their field in `Settings`."""
    return {field: given.get(name, default) for field, (name, default) in _PLAIN.items()}
