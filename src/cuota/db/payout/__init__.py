"""Payouts and bank accounts."""
