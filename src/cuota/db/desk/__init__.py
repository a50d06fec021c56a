"""The merchant's dashboard: people, sessions, the audit log, and finding orders."""
