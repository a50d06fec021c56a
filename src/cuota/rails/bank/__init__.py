"""Bank rails: they send payouts to merchants' bank accounts, and say what became of them."""
