"""`cuota verify`: compares every order with its ledger, its plan and its events."""
