"""The rules for erasing a consumer's personal data."""
