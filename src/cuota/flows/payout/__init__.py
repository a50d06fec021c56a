"""How a merchant is paid: bank accounts, and sending payouts to the bank."""
