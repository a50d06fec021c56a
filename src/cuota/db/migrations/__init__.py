"""SQL files, applied in order of their names."""
