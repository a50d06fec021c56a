"""Risk policies, one TOML file each. `standard.toml` is the default."""
