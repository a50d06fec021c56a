"""The fees that a merchant pays for captures, and how the merchant is paid."""
