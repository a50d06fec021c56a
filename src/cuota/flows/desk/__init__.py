"""The merchant's dashboard: signing in, the team, the audit log, and finding and changing orders."""
