"""Merchants' terms, settlement lines, payouts and bank accounts in the database."""
