"""The migrations: SQL files that are applied in the order of their names."""
