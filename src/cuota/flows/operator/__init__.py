"""The operator's dashboard: signing in, the team, and the log of its people's actions."""
