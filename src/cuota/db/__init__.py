"""Access to PostgreSQL, in plain SQL. Every statement about a merchant's rows names the merchant."""
