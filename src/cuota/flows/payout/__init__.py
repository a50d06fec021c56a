"""How a merchant is paid: terms, settlement, bank accounts, payouts."""
