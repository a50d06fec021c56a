"""Plans, charges, accounts and messages."""
