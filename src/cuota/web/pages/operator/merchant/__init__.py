"""The larger pages about merchants: the list, the onboarding, the suspension."""

from cuota.web.pages.operator.merchant import findings, items, listing, onboarding, suspension

__all__ = ["findings", "items", "listing", "onboarding", "suspension"]
