"""The sandbox's clock and its copies."""
