"""Disputes by consumers and card networks about orders, and consumers' notices of returned goods."""
