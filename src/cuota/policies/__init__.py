"""Risk policies, one TOML file each; `standard.toml` is the one that comes into force by itself."""
