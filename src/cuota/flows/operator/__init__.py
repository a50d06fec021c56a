"""The operator's dashboard: signing in, the team, and the log of what its people do."""
