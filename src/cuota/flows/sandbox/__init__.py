"""Move the sandbox's time, copy the sandbox."""
