"""Looking at what the database holds: every order against its ledger, its plan and its events."""
