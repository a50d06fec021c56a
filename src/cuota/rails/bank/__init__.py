"""The bank rail: sends payouts to merchants' bank accounts."""
